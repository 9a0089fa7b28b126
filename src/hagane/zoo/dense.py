"""Models with a result for each position: U-Net, a dilated residual network in one dimension."""

from __future__ import annotations

from typing import Any

from hagane.nn import functions as F  # noqa: N812
from hagane.nn import links as L  # noqa: N812
from hagane.nn.model.chain import Chain, ChainList


class _Pair(Chain):
    """Two convolutions of size 3 with rectifiers."""

    def __init__(self, channels_in: int, channels: int):
        super().__init__()
        with self.init_scope():
            self.first = L.Convolution2D(channels_in, channels, 3, pad=1)
            self.second = L.Convolution2D(channels, channels, 3, pad=1)

    def forward(self, x: Any) -> Any:
        return F.relu(self.second(F.relu(self.first(x))))


class UNet(Chain):
    """U-Net; ``(batch, channels, height, width)`` to ``(batch, classes, height, width)``.

    "U-Net: convolutional networks for biomedical image segmentation" (Ronneberger et al., 2015),
    with borders of zeros. Height and width are multiples of ``2 ** depth``.

    Args:
        channels: Of the image.
        classes: Scores a pixel.
        width: Channels of the first level; each further one has twice as many.
        depth: How often the image is halved.
    """

    def __init__(self, channels: int = 3, classes: int = 2, width: int = 64, depth: int = 4):
        super().__init__()
        widths = [width << level for level in range(depth + 1)]
        down = [_Pair(a, b) for a, b in zip([channels, *widths], widths, strict=False)]
        with self.init_scope():
            self.down = ChainList(*down)
            self.up = ChainList(
                *(L.Deconvolution2D(2 * c, c, 2, stride=2) for c in reversed(widths[:-1]))
            )
            self.join = ChainList(*(_Pair(2 * c, c) for c in reversed(widths[:-1])))
            self.out = L.Convolution2D(width, classes, 1)

    def forward(self, x: Any) -> Any:
        """Return scores."""
        sides = []
        *outer, deepest = self.down.children()
        for pair in outer:
            sides.append(pair(x))
            x = F.max_pooling_2d(sides[-1], 2)
        x = deepest(x)
        for up, join, side in zip(
            self.up.children(), self.join.children(), reversed(sides), strict=True
        ):
            x = join(F.concat((side, up(x)), axis=1))
        return self.out(x)


class _Dilated(Chain):
    """Two dilated convolutions of one dimension beside a shortcut."""

    def __init__(self, channels: int, size: int, dilate: int):
        super().__init__()
        pad = dilate * (size - 1) // 2
        with self.init_scope():
            self.first = L.Convolution1D(channels, channels, size, pad=pad, dilate=dilate)
            self.norm1 = L.BatchNormalization(channels)
            self.second = L.Convolution1D(channels, channels, size, pad=pad, dilate=dilate)
            self.norm2 = L.BatchNormalization(channels)

    def forward(self, x: Any) -> Any:
        h = self.second(F.relu(self.norm1(self.first(x))))
        return F.relu(self.norm2(h) + x)


class DilatedResNet(Chain):
    """A residual network of one dimension whose dilation doubles from block to block.

    ``(batch, channels, time)`` to ``(batch, classes, time)``.

    Args:
        channels: Of the signal.
        classes: Scores at each time.
        width: Channels inside.
        blocks: How many blocks; the last one has dilation ``2 ** (blocks - 1)``.
        size: Of the convolutions; odd.
    """

    def __init__(
        self, channels: int = 1, classes: int = 2, width: int = 32, blocks: int = 6, size: int = 3
    ):
        super().__init__()
        with self.init_scope():
            self.enter = L.Convolution1D(channels, width, 1)
            self.body = ChainList(*(_Dilated(width, size, 1 << n) for n in range(blocks)))
            self.out = L.Convolution1D(width, classes, 1)

    def forward(self, x: Any) -> Any:
        """Return scores."""
        h = self.enter(x)
        for block in self.body.children():
            h = block(h)
        return self.out(h)
