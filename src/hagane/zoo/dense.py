"""Models with a result for each position: U-Net, FCN, a dilated network of one dimension."""

from __future__ import annotations

from typing import Any

import numpy as np

from hagane.errors import InvalidArgument
from hagane.nn import functions as F  # noqa: N812
from hagane.nn import links as L  # noqa: N812
from hagane.nn.model.chain import Chain, ChainList
from hagane.zoo.classifiers import convolved, vgg16_stages


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


def _bilinear(classes: int, factor: int) -> Any:
    """Return filters of a transposed convolution that enlarges each map by interpolation.

    (classes, classes, 2 factor, 2 factor), as section 3.3 of the paper on FCN starts them.
    """
    places = (np.arange(2 * factor) + 0.5) / factor - 1
    row = 1 - abs(places)
    return np.eye(classes)[:, :, None, None] * np.outer(row, row)


class FCN(Chain):
    """A fully convolutional network over VGG-16.

    ``(batch, 3, height, width)`` to ``(batch, classes, height, width)``; height and width are
    multiples of 32.

    "Fully convolutional networks for semantic segmentation" (Long et al., 2015): FCN-8s, FCN-16s or
    FCN-32s. Borders are of zeros around each convolution, where the paper puts 100 pixels around
    the image and cuts them off.

    Args:
        classes: Scores a pixel.
        stride: Pixels between the scores that are enlarged to the image: 8, 16 or 32.
        units: Channels behind the stages of VGG-16.
        width: Factor of the channels in these.

    Raises:
        InvalidArgument: There is no such stride.
    """

    def __init__(self, classes: int = 21, stride: int = 8, units: int = 4096, width: float = 1.0):
        super().__init__()
        if stride not in (8, 16, 32):
            raise InvalidArgument(f"FCN: expected stride to be 8, 16 or 32, got {stride}")
        halvings = {32: 0, 16: 1, 8: 2}[stride]
        with self.init_scope():
            self.stages = vgg16_stages(width)
            self.fc6 = L.Convolution2D(None, units, 7, pad=3)
            self.fc7 = L.Convolution2D(units, units, 1)
            # Scores start at zero, as the paper has it.
            self.score = L.Convolution2D(units, classes, 1, initialW=0)
            self.sides = ChainList(
                *(L.Convolution2D(None, classes, 1, initialW=0) for _ in range(halvings))
            )
            self.up = ChainList(*(_enlarging(classes, 2) for _ in range(halvings)))
            self.out = _enlarging(classes, stride)

    def forward(self, x: Any) -> Any:
        """Return scores."""
        pooled = []
        for stage in self.stages.children():
            x = F.max_pooling_2d(convolved(stage, x), 2)
            pooled.append(x)
        h = F.dropout(F.relu(self.fc6(x)))
        h = self.score(F.dropout(F.relu(self.fc7(h))))
        levels = zip(
            self.up.children(), self.sides.children(), (pooled[3], pooled[2]), strict=False
        )
        for up, side, level in levels:
            h = up(h) + side(level)
        return self.out(h)


def _enlarging(classes: int, factor: int) -> Any:
    start = _bilinear(classes, factor)
    return L.Deconvolution2D(
        classes, classes, 2 * factor, factor, factor // 2, nobias=True, initialW=start
    )


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
