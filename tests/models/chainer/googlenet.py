"""GoogLeNet with its two auxiliary classifiers (Szegedy et al., 2014)."""

import chainer
import chainer.functions as F
import chainer.links as L


class Auxiliary(chainer.Chain):
    def __init__(self, width, n_class):
        super(Auxiliary, self).__init__()
        with self.init_scope():
            self.conv = L.Convolution2D(None, width, 1)
            self.fc1 = L.Linear(None, 4 * width)
            self.fc2 = L.Linear(4 * width, n_class)

    def forward(self, x):
        h = F.average_pooling_2d(x, 5, stride=3)
        h = F.relu(self.conv(h))
        h = F.relu(self.fc1(h))
        return self.fc2(h)


class GoogLeNet(chainer.Chain):
    """The network of Inception modules; ``shrink`` divides the number of every layer's channels."""

    # out1, proj3, out3, proj5, out5, proj_pool
    modules = [  # noqa: RUF012
        ("inc3a", (64, 96, 128, 16, 32, 32)),
        ("inc3b", (128, 128, 192, 32, 96, 64)),
        ("inc4a", (192, 96, 208, 16, 48, 64)),
        ("inc4b", (160, 112, 224, 24, 64, 64)),
        ("inc4c", (128, 128, 256, 24, 64, 64)),
        ("inc4d", (112, 144, 288, 32, 64, 64)),
        ("inc4e", (256, 160, 320, 32, 128, 128)),
        ("inc5a", (256, 160, 320, 32, 128, 128)),
        ("inc5b", (384, 192, 384, 48, 128, 128)),
    ]

    def __init__(self, n_class=1000, shrink=1):
        super(GoogLeNet, self).__init__()
        channels = 192 // shrink
        with self.init_scope():
            self.conv1 = L.Convolution2D(3, 64 // shrink, 7, stride=2, pad=3)
            self.conv2_reduce = L.Convolution2D(64 // shrink, 64 // shrink, 1)
            self.conv2 = L.Convolution2D(64 // shrink, channels, 3, stride=1, pad=1)
            for name, sizes in self.modules:
                out1, proj3, out3, proj5, out5, proj_pool = [n // shrink for n in sizes]
                module = L.Inception(channels, out1, proj3, out3, proj5, out5, proj_pool)
                setattr(self, name, module)
                channels = out1 + out3 + out5 + proj_pool
            self.loss3_fc = L.Linear(channels, n_class)
            self.loss1 = Auxiliary(128 // shrink, n_class)
            self.loss2 = Auxiliary(128 // shrink, n_class)

    def forward(self, x, t):
        h = F.relu(self.conv1(x))
        h = F.local_response_normalization(F.max_pooling_2d(h, 3, stride=2), n=5)
        h = F.relu(self.conv2_reduce(h))
        h = F.relu(self.conv2(h))
        h = F.max_pooling_2d(F.local_response_normalization(h, n=5), 3, stride=2)

        h = self.inc3a(h)
        h = self.inc3b(h)
        h = F.max_pooling_2d(h, 3, stride=2)
        h = self.inc4a(h)

        loss1 = None
        if chainer.config.train:
            loss1 = F.softmax_cross_entropy(self.loss1(h), t)

        h = self.inc4b(h)
        h = self.inc4c(h)
        h = self.inc4d(h)

        loss2 = None
        if chainer.config.train:
            loss2 = F.softmax_cross_entropy(self.loss2(h), t)

        h = self.inc4e(h)
        h = F.max_pooling_2d(h, 3, stride=2)
        h = self.inc5a(h)
        h = self.inc5b(h)
        h = F.average_pooling_2d(h, h.shape[2:])
        y = self.loss3_fc(F.dropout(h, 0.4))
        loss3 = F.softmax_cross_entropy(y, t)

        if loss1 is None or loss2 is None:
            loss = loss3
        else:
            loss = 0.3 * (loss1 + loss2) + loss3
        accuracy = F.accuracy(y, t)
        chainer.report({"loss": loss, "accuracy": accuracy}, self)
        return loss
