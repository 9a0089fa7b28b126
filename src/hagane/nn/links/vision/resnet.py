"""Residual networks of 50, 101 and 152 layers (He et al., 2015)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from hagane.nn import functions as F
from hagane.nn.initializers import HeNormal
from hagane.nn.links.connection import Linear
from hagane.nn.links.convolution import Convolution2D
from hagane.nn.links.normalization import BatchNormalization
from hagane.nn.links.vision.images import ImageModel, available, prepared, weights_of
from hagane.nn.model.chain import Chain

__all__ = ["ResNet50Layers", "ResNet101Layers", "ResNet152Layers", "available", "prepare"]


def prepare(image: Any, size: tuple[int, int] | None = (224, 224)) -> Any:
    """Return an image, (3, height, width), less the mean of the training images."""
    return prepared(image, size, (103.063, 115.903, 123.152))


class _Bottleneck(Chain):
    """Three convolutions, of which the middle one is narrow, beside a shortcut.

    Args:
        channels: Of the input.
        narrow: Maps of the middle convolution.
        wide: Maps of the result.
        strides: Of the first and the middle convolution.
        fill: Fills the filters.
        projects: Whether the shortcut is a convolution.
    """

    def __init__(
        self, channels: int, narrow: int, wide: int, strides: tuple[int, int], fill: Any,
        *, projects: bool,
    ):  # fmt: skip
        super().__init__()
        self._projects = projects
        rows = [
            (channels, narrow, 1, strides[0]),
            (narrow, narrow, 3, strides[1]),
            (narrow, wide, 1, 1),
        ]
        if projects:
            rows.append((channels, wide, 1, strides[0] * strides[1]))
        with self.init_scope():
            for number, (before, maps, ksize, stride) in enumerate(rows, start=1):
                made = Convolution2D(
                    before, maps, ksize, stride, ksize // 2, nobias=True, initialW=fill
                )
                setattr(self, f"conv{number}", made)
                setattr(self, f"bn{number}", BatchNormalization(maps))

    def forward(self, x: Any) -> Any:
        h = F.relu(self.bn1(self.conv1(x)))
        h = F.relu(self.bn2(self.conv2(h)))
        h = self.bn3(self.conv3(h))
        return F.relu(h + (self.bn4(self.conv4(x)) if self._projects else x))


class _Stage(Chain):
    """Blocks of one size: ``a``, which changes it, and then ``b1``, ``b2``, …."""

    def __init__(
        self, count: int, channels: int, narrow: int, wide: int, stride: int, fill: Any,
        *, in_middle: bool,
    ):  # fmt: skip
        super().__init__()
        strides = (1, stride) if in_middle else (stride, 1)
        self._forward = ["a", *(f"b{number}" for number in range(1, count))]
        with self.init_scope():
            self.a = _Bottleneck(channels, narrow, wide, strides, fill, projects=True)
            for name in self._forward[1:]:
                setattr(self, name, _Bottleneck(wide, narrow, wide, (1, 1), fill, projects=False))

    def forward(self, x: Any) -> Any:
        for name in self._forward:
            x = getattr(self, name)(x)
        return x


class _ResNet(ImageModel):
    counts: Sequence[int]

    def __init__(self, pretrained_model: Any = "auto", downsample_fb: bool = False):
        super().__init__()
        fill = weights_of(pretrained_model, HeNormal(scale=1.0))
        with self.init_scope():
            self.conv1 = Convolution2D(3, 64, 7, 2, 3, initialW=fill)
            self.bn1 = BatchNormalization(64)
            before = 64
            for number, count in enumerate(self.counts):
                narrow, stride = 64 << number, 2 if number else 1
                made = _Stage(
                    count, before, narrow, 4 * narrow, stride, fill, in_middle=downsample_fb
                )
                setattr(self, f"res{number + 2}", made)
                before = 4 * narrow
            self.fc6 = Linear(before, 1000)
        self._load(pretrained_model)

    def prepare(self, image: Any, size: tuple[int, int] | None = (224, 224)) -> Any:
        """Return an image as the model takes it."""
        return prepare(image, size)

    @property
    def functions(self) -> Mapping[str, Sequence[Callable[[Any], Any]]]:
        """The steps in their order, each a row of functions."""
        return {
            "conv1": [self.conv1, self.bn1, F.relu],
            "pool1": [lambda x: F.max_pooling_2d(x, 3, stride=2)],
            **{name: [getattr(self, name)] for name in ("res2", "res3", "res4", "res5")},
            "pool5": [lambda x: F.mean(x, axis=(2, 3))],
            "fc6": [self.fc6],
            "prob": [F.softmax],
        }


class ResNet50Layers(_ResNet):
    """ResNet-50; steps ``conv1``, ``pool1``, ``res2`` to ``res5``, ``pool5``, ``fc6``, ``prob``.

    Args:
        pretrained_model: The path of an npz file with the weights, None for random ones.
        downsample_fb: Whether the convolution of 3 x 3 has the stride, not the one before it.

    Raises:
        InvalidArgument: The weights should be downloaded or converted.
    """

    counts = (3, 4, 6, 3)


class ResNet101Layers(_ResNet):
    """ResNet-101, as :class:`ResNet50Layers`."""

    counts = (3, 4, 23, 3)


class ResNet152Layers(_ResNet):
    """ResNet-152, as :class:`ResNet50Layers`."""

    counts = (3, 8, 36, 3)
