"""U-Net (Ronneberger et al., 2015) for images of any size."""

import chainer
import chainer.functions as F
import chainer.links as L


class DoubleConv(chainer.Chain):
    def __init__(self, in_channels, out_channels):
        super().__init__()
        with self.init_scope():
            self.conv1 = L.Convolution2D(in_channels, out_channels, ksize=3, pad=1)
            self.bn1 = L.BatchNormalization(out_channels)
            self.conv2 = L.Convolution2D(out_channels, out_channels, ksize=3, pad=1)
            self.bn2 = L.BatchNormalization(out_channels)

    def forward(self, x):
        h = F.leaky_relu(self.bn1(self.conv1(x)))
        return F.leaky_relu(self.bn2(self.conv2(h)))


class Up(chainer.Chain):
    def __init__(self, in_channels, out_channels):
        super().__init__()
        with self.init_scope():
            self.deconv = L.Deconvolution2D(in_channels, out_channels, ksize=2, stride=2)
            self.conv = DoubleConv(2 * out_channels, out_channels)

    def forward(self, x, skip):
        h = F.relu(self.deconv(x))
        if h.shape[2:] != skip.shape[2:]:
            height, width = skip.shape[2:]
            h = h[:, :, :height, :width]
        h = F.concat([skip, h], axis=1)
        return self.conv(h)


class UNet(chainer.Chain):
    def __init__(self, n_class, width=64, depth=4):
        super().__init__()
        self.depth = depth
        with self.init_scope():
            self.first = DoubleConv(3, width)
            self.down = chainer.ChainList(
                *[DoubleConv(width * 2**i, width * 2 ** (i + 1)) for i in range(depth)]
            )
            self.up = chainer.ChainList(
                *[Up(width * 2 ** (i + 1), width * 2**i) for i in reversed(range(depth))]
            )
            self.score = L.Convolution2D(width, n_class, 1)

    def forward(self, x):
        h = self.first(x)
        skips = []
        for conv in self.down:
            skips.append(h)
            h = conv(F.max_pooling_2d(h, 2))
        for up in self.up:
            h = up(h, skips.pop())
        return self.score(h)

    def loss(self, x, t):
        """Return the mean of the cross entropy and one minus the Dice coefficient."""
        y = self(x)
        entropy = F.softmax_cross_entropy(y, t, ignore_label=-1)
        p = F.softmax(y, axis=1)
        one_hot = self.xp.eye(p.shape[1], dtype=p.dtype)[t].transpose(0, 3, 1, 2)
        overlap = F.sum(p * one_hot, axis=(0, 2, 3))
        total = F.sum(p + one_hot, axis=(0, 2, 3))
        dice = F.mean(2 * overlap / total)
        loss = (entropy + (1 - dice)) / 2
        chainer.report({"loss": loss, "dice": dice}, self)
        return loss
