"""A convolution, a pooling and a score for each place."""

import chainer
import chainer.functions as F
import chainer.links as L


class Model(chainer.Chain):
    def __init__(self, n_class=10):
        super(Model, self).__init__()
        with self.init_scope():
            self.conv1 = L.Convolution2D(3, 64, 3, stride=2)
            self.conv2 = L.Convolution2D(64, n_class, 1)

    def forward(self, x, t):
        h = F.max_pooling_2d(F.relu(self.conv1(x)), 2, stride=2)
        y = self.conv2(h)
        loss = F.softmax_cross_entropy(y, t)
        return loss
