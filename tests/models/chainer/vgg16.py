"""VGG-16 (Simonyan and Zisserman, 2014), as a Sequential of blocks."""

import chainer
import chainer.functions as F
import chainer.links as L


def block(n_conv, out_channels):
    layers = chainer.Sequential()
    for _ in range(n_conv):
        layers.append(L.Convolution2D(None, out_channels, 3, pad=1, nobias=True))
        layers.append(L.BatchNormalization(out_channels))
        layers.append(F.relu)
    layers.append(lambda x: F.max_pooling_2d(x, ksize=2, stride=2))
    return layers


class VGG16(chainer.Chain):
    def __init__(self, n_class=1000, width=64, n_hidden=4096):
        super(VGG16, self).__init__()
        self.n_channels = [width, 2 * width, 4 * width, 8 * width, 8 * width]
        with self.init_scope():
            self.features = chainer.Sequential(
                *[block(n, ch) for n, ch in zip([2, 2, 3, 3, 3], self.n_channels)]
            )
            self.fc6 = L.Linear(None, n_hidden)
            self.fc7 = L.Linear(n_hidden, n_hidden)
            self.fc8 = L.Linear(n_hidden, n_class)

    def forward(self, x):
        h = x
        for i, layer in enumerate(self.features):
            h = layer(h)
            if i < len(self.features) - 1:
                h = F.dropout(h, ratio=0.3)
        h = F.dropout(F.relu(self.fc6(h)), ratio=0.5)
        h = F.dropout(F.relu(self.fc7(h)), ratio=0.5)
        return self.fc8(h)


class Classifier(L.Classifier):
    """The classifier of the network, which also counts what it gets right."""

    def __init__(self, n_class=1000, width=64, n_hidden=4096):
        predictor = VGG16(n_class, width, n_hidden)
        super(Classifier, self).__init__(predictor, lossfun=F.softmax_cross_entropy)

    def objective(self, x, t):
        loss = self(x, t)
        if not chainer.config.train:
            return loss
        decay = sum(F.sum(W**2) for W in self.params() if W.ndim > 1)
        return loss + 5e-4 * decay

    def count_correct(self, x, t):
        with chainer.using_config("train", False), chainer.no_backprop_mode():
            y = self.predictor(x)
        label = y.array.argmax(axis=1).astype(t.dtype)
        correct = (label == t).astype("i")
        return correct.sum()
