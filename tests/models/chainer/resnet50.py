"""ResNet-50 with bottlenecks (He et al., 2015)."""

import chainer
import chainer.functions as F
import chainer.links as L
from chainer import initializers


class BottleneckA(chainer.Chain):
    """A bottleneck that changes the number of channels, and the size by its stride."""

    def __init__(self, in_size, ch, out_size, stride=2):
        super(BottleneckA, self).__init__()
        initialW = initializers.HeNormal()
        with self.init_scope():
            self.conv1 = L.Convolution2D(in_size, ch, 1, stride, 0, True, initialW)
            self.bn1 = L.BatchNormalization(ch)
            self.conv2 = L.Convolution2D(ch, ch, 3, 1, 1, nobias=True, initialW=initialW)
            self.bn2 = L.BatchNormalization(ch)
            self.conv3 = L.Convolution2D(ch, out_size, 1, 1, 0, initialW=initialW, nobias=True)
            self.bn3 = L.BatchNormalization(out_size)
            self.conv4 = L.Convolution2D(
                in_size, out_size, 1, stride, 0, initialW=initialW, nobias=True
            )
            self.bn4 = L.BatchNormalization(out_size)

    def forward(self, x):
        h1 = F.relu(self.bn1(self.conv1(x)))
        h1 = F.relu(self.bn2(self.conv2(h1)))
        h1 = self.bn3(self.conv3(h1))
        h2 = self.bn4(self.conv4(x))
        return F.relu(h1 + h2)


class BottleneckB(chainer.Chain):
    """A bottleneck that keeps shape."""

    def __init__(self, in_size, ch):
        super(BottleneckB, self).__init__()
        initialW = initializers.HeNormal()
        with self.init_scope():
            self.conv1 = L.Convolution2D(in_size, ch, 1, 1, 0, True, initialW)
            self.bn1 = L.BatchNormalization(ch)
            self.conv2 = L.Convolution2D(ch, ch, 3, 1, 1, True, initialW)
            self.bn2 = L.BatchNormalization(ch)
            self.conv3 = L.Convolution2D(ch, in_size, 1, 1, 0, True, initialW)
            self.bn3 = L.BatchNormalization(in_size)

    def forward(self, x):
        h = F.relu(self.bn1(self.conv1(x)))
        h = F.relu(self.bn2(self.conv2(h)))
        h = self.bn3(self.conv3(h))
        return F.relu(h + x)


class Block(chainer.Chain):
    def __init__(self, layer, in_size, ch, out_size, stride=2):
        super(Block, self).__init__()
        self.add_link("a", BottleneckA(in_size, ch, out_size, stride))
        for i in range(1, layer):
            self.add_link("b{}".format(i), BottleneckB(out_size, ch))
        self.layer = layer

    def forward(self, x):
        h = self.a(x)
        for i in range(1, self.layer):
            h = getattr(self, "b{}".format(i))(h)
        return h


class ResNet50(chainer.Chain):
    def __init__(self, n_class=1000, width=64):
        super(ResNet50, self).__init__()
        with self.init_scope():
            self.conv1 = L.Convolution2D(3, width, 7, 2, 3, initialW=initializers.HeNormal())
            self.bn1 = L.BatchNormalization(width)
            self.res2 = Block(3, width, width, 4 * width, 1)
            self.res3 = Block(4, 4 * width, 2 * width, 8 * width)
            self.res4 = Block(6, 8 * width, 4 * width, 16 * width)
            self.res5 = Block(3, 16 * width, 8 * width, 32 * width)
            self.fc = L.Linear(32 * width, n_class)

    def extract(self, x):
        h = self.bn1(self.conv1(x))
        h = F.max_pooling_2d(F.relu(h), 3, stride=2)
        stages = [self.res2, self.res3, self.res4, self.res5]
        features = []
        for stage in stages:
            h = stage(h)
            features.append(h)
        return features

    def forward(self, x, t):
        h = self.extract(x)[-1]
        h = F.average(h, axis=(2, 3))
        y = self.fc(h)
        loss = F.softmax_cross_entropy(y, t)
        chainer.report({"loss": loss, "accuracy": F.accuracy(y, t)}, self)
        return loss
