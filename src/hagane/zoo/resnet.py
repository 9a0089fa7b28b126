"""Residual networks: "Deep residual learning for image recognition" (He et al., 2015)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hagane.nn import functions as F  # noqa: N812
from hagane.nn import links as L  # noqa: N812
from hagane.nn.model.chain import Chain, ChainList


class _Unit(Chain):
    """A convolution without bias, and batch normalisation."""

    def __init__(self, channels_in: int, channels: int, size: int, stride: int = 1):
        super().__init__()
        with self.init_scope():
            self.conv = L.Convolution2D(channels_in, channels, size, stride, size // 2, nobias=True)
            self.norm = L.BatchNormalization(channels)

    def forward(self, x: Any) -> Any:
        return self.norm(self.conv(x))


class _Block(Chain):
    """Two convolutions, or three of which the middle one is narrow, beside a shortcut."""

    def __init__(self, channels_in: int, channels: int, stride: int, *, narrow: bool):
        super().__init__()
        wide = 4 * channels if narrow else channels
        with self.init_scope():
            if narrow:
                self.first = _Unit(channels_in, channels, 1)
                self.second = _Unit(channels, channels, 3, stride)
                self.third = _Unit(channels, wide, 1)
            else:
                self.first = _Unit(channels_in, channels, 3, stride)
                self.second = _Unit(channels, wide, 3)
            if stride != 1 or channels_in != wide:
                self.shortcut = _Unit(channels_in, wide, 1, stride)
        self._narrow, self._projects = narrow, stride != 1 or channels_in != wide
        self.width = wide

    def forward(self, x: Any) -> Any:
        h = self.second(F.relu(self.first(x)))
        if self._narrow:
            h = self.third(F.relu(h))
        return F.relu(h + (self.shortcut(x) if self._projects else x))


class _ResNet(Chain):
    """A residual network of ``blocks`` a stage, narrow in the middle or not."""

    blocks: Sequence[int]
    narrow: bool

    def __init__(self, classes: int = 1000, *, small: bool = False, width: int = 64):
        super().__init__()
        self._small = small
        blocks, channels_in = [], width
        for stage, count in enumerate(self.blocks):
            for number in range(count):
                stride = 2 if stage and not number else 1
                blocks.append(_Block(channels_in, width << stage, stride, narrow=self.narrow))
                channels_in = blocks[-1].width
        with self.init_scope():
            self.stem = _Unit(3, width, 3) if small else _Unit(3, width, 7, 2)
            self.body = ChainList(*blocks)
            self.fc = L.Linear(channels_in, classes)

    def forward(self, x: Any) -> Any:
        """Return scores."""
        h = F.relu(self.stem(x))
        if not self._small:
            h = F.max_pooling_2d(h, 3, 2, 1, cover_all=False)
        for block in self.body.children():
            h = block(h)
        return self.fc(F.mean(h, axis=(2, 3)))


class ResNet18(_ResNet):
    """ResNet-18; ``(batch, 3, height, width)`` to ``(batch, classes)``.

    Args:
        classes: How many scores it returns.
        small: Whether images are small (32 x 32): the first convolution then has size 3 and
            stride 1, and nothing is pooled before the blocks.
        width: Channels of the first stage.
    """

    blocks, narrow = (2, 2, 2, 2), False


class ResNet50(_ResNet):
    """ResNet-50; ``(batch, 3, height, width)`` to ``(batch, classes)``.

    Args:
        classes: How many scores it returns.
        small: Whether images are small (32 x 32): the first convolution then has size 3 and
            stride 1, and nothing is pooled before the blocks.
        width: Channels of the first stage.
    """

    blocks, narrow = (3, 4, 6, 3), True


class ResNet152(_ResNet):
    """ResNet-152; ``(batch, 3, height, width)`` to ``(batch, classes)``.

    Args:
        classes: How many scores it returns.
        small: Whether images are small (32 x 32): the first convolution then has size 3 and
            stride 1, and nothing is pooled before the blocks.
        width: Channels of the first stage.
    """

    blocks, narrow = (3, 8, 36, 3), True
