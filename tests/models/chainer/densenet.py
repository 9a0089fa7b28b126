"""DenseNet (Huang et al., 2016), whose layers each see the outputs of all before."""

import chainer
import chainer.functions as F
import chainer.links as L


class DenseBlock(chainer.Chain):
    def __init__(self, in_channels, growth_rate, n_layer):
        super(DenseBlock, self).__init__()
        self.n_layer = n_layer
        channels = in_channels
        for i in range(n_layer):
            self.add_link("bn%d" % (i + 1), L.BatchNormalization(channels))
            self.add_link("conv%d" % (i + 1), L.Convolution2D(channels, growth_rate, 3, 1, 1))
            channels += growth_rate
        self.out_channels = channels

    def __call__(self, x, dropout_ratio):
        for i in range(1, self.n_layer + 1):
            h = F.relu(self["bn%d" % i](x))
            h = F.dropout(self["conv%d" % i](h), dropout_ratio)
            x = F.concat((x, h))
        return x


class Transition(chainer.Chain):
    def __init__(self, in_channels, out_channels):
        super(Transition, self).__init__(
            bn=L.BatchNormalization(in_channels),
            conv=L.Convolution2D(in_channels, out_channels, 1),
        )

    def __call__(self, x, dropout_ratio):
        h = F.relu(self.bn(x))
        h = F.dropout(self.conv(h), dropout_ratio)
        h = F.average_pooling_2d(h, 2)
        return h


class DenseNet(chainer.Chain):
    def __init__(
        self, n_layer=12, growth_rate=12, n_class=10, dropout_ratio=0.2, in_ch=16, n_block=3
    ):
        super(DenseNet, self).__init__()
        self.dropout_ratio = dropout_ratio
        with self.init_scope():
            self.conv0 = L.Convolution2D(3, in_ch, 3, 1, 1)
            self.blocks = chainer.ChainList()
            self.transitions = chainer.ChainList()
            channels = in_ch
            for i in range(n_block):
                block = DenseBlock(channels, growth_rate, n_layer)
                self.blocks.append(block)
                channels = block.out_channels
                if i + 1 < n_block:
                    self.transitions.append(Transition(channels, channels // 2))
                    channels = channels // 2
            self.bn = L.BatchNormalization(channels)
            self.fc = L.Linear(channels, n_class)

    def __call__(self, x):
        h = self.conv0(x)
        last = len(self.blocks) - 1
        for i, block in enumerate(self.blocks):
            h = block(h, self.dropout_ratio)
            if i != last:
                h = self.transitions[i](h, self.dropout_ratio)
        h = F.relu(self.bn(h))
        h = F.average_pooling_2d(h, (h.shape[2], h.shape[3]))
        y = self.fc(F.reshape(h, h.shape[:2]))
        return y
