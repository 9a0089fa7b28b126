"""A detector of objects: SSD over VGG-16, its default boxes and its loss."""

from __future__ import annotations

from functools import cache
from itertools import product
from typing import Any

import numpy as np

from hagane.nn import functions as F  # noqa: N812
from hagane.nn import initializers
from hagane.nn import links as L  # noqa: N812
from hagane.nn.autograd.parameter import Parameter
from hagane.nn.model.chain import Chain, ChainList
from hagane.nn.model.link import Link
from hagane.zoo.classifiers import convolved, scaled, vgg16_stages

# Of the six maps with boxes: pixels between their places, the side of boxes and that of the next
# larger ones in pixels, and the ratios of sides, each also inverted.
_MAPS = (
    (8, 30, 60, (2,)),
    (16, 60, 111, (2, 3)),
    (32, 111, 162, (2, 3)),
    (64, 162, 213, (2, 3)),
    (100, 213, 264, (2,)),
    (300, 264, 315, (2,)),
)
# Of the four blocks behind VGG-16: channels between, channels, stride and border of the last.
_EXTRA = ((256, 512, 2, 1), (128, 256, 2, 1), (128, 256, 1, 0), (128, 256, 1, 0))
_BOXES = tuple(2 + 2 * len(ratios) for *_, ratios in _MAPS)
# By which the offsets of centres, and logarithms of sides, are divided.
_VARIANCES = np.array((0.1, 0.1, 0.2, 0.2))


def _initial() -> Any:
    """Return the initializer of weights before rectifiers.

    Behind 23 convolutions with that of links, of which each halves the mean square, nothing is left
    of a picture.
    """
    return initializers.HeNormal()


class _Scale(Link):
    """Vectors of channels at length one, times a trained factor each."""

    def __init__(self, channels: int, start: float):
        super().__init__()
        with self.init_scope():
            self.scale = Parameter(start, (channels,))

    def forward(self, x: Any) -> Any:
        return F.scale(F.normalize(x, axis=1), self.scale, axis=1)


class _Extra(Chain):
    """A convolution of single pixels and one of size 3 behind it."""

    def __init__(self, between: int, channels: int, stride: int, pad: int):
        super().__init__()
        with self.init_scope():
            self.narrow = L.Convolution2D(None, between, 1, initialW=_initial())
            self.wide = L.Convolution2D(between, channels, 3, stride, pad, initialW=_initial())

    def forward(self, x: Any) -> Any:
        return F.relu(self.wide(F.relu(self.narrow(x))))


class SSD300(Chain):
    """SSD; images ``(batch, 3, 300, 300)`` to places and scores of 8,732 boxes.

    "SSD: single shot multibox detector" (Liu et al., 2016). A call returns offsets
    ``(batch, boxes, 4)`` to :func:`default_boxes`, and scores ``(batch, boxes, classes)``, of which
    class 0 is the background.

    Args:
        classes: With the background.
        width: Factor of all channels, for small models.
    """

    def __init__(self, classes: int = 21, width: float = 1.0):
        super().__init__()
        self.classes = classes
        with self.init_scope():
            self.stages = vgg16_stages(width, _initial())
            self.norm = _Scale(scaled(width, 512), 20.0)
            wide = scaled(width, 1024)
            self.conv6 = L.DilatedConvolution2D(None, wide, 3, 1, 6, 6, initialW=_initial())
            self.conv7 = L.Convolution2D(None, wide, 1, initialW=_initial())
            self.extra = ChainList(
                *(_Extra(scaled(width, a), scaled(width, b), s, p) for a, b, s, p in _EXTRA)
            )
            self.places = ChainList(*(L.Convolution2D(None, 4 * n, 3, pad=1) for n in _BOXES))
            self.scores = ChainList(*(L.Convolution2D(None, classes * n, 3, pad=1) for n in _BOXES))

    def forward(self, x: Any) -> tuple[Any, Any]:
        """Return offsets and scores."""
        maps = self._maps(x)
        places = [_rows(link(h), 4) for link, h in zip(self.places.children(), maps, strict=True)]
        scores = [
            _rows(link(h), self.classes)
            for link, h in zip(self.scores.children(), maps, strict=True)
        ]
        return F.concat(places, axis=1), F.concat(scores, axis=1)

    def _maps(self, x: Any) -> list[Any]:
        maps = []
        for number, stage in enumerate(self.stages.children()):
            x = convolved(stage, x)
            if number == 3:
                maps.append(self.norm(x))
            if number < 4:
                x = F.max_pooling_2d(x, 2)
        x = F.max_pooling_2d(x, 3, stride=1, pad=1)
        x = F.relu(self.conv7(F.relu(self.conv6(x))))
        maps.append(x)
        for block in self.extra.children():
            x = block(x)
            maps.append(x)
        return maps

    def loss(self, x: Any, offsets: Any, labels: Any) -> Any:
        """Return the loss of equation 1 of the paper, for targets of :func:`matched_boxes`.

        Of boxes without an object, those count that the scores are most wrong about: three for each
        box with one.

        Args:
            x: (batch, 3, 300, 300).
            offsets: (batch, boxes, 4).
            labels: Classes, (batch, boxes).
        """
        places, scores = self(x)
        found = labels > 0
        classes = scores.shape[2]
        wrong = F.softmax_cross_entropy(
            F.reshape(scores, (-1, classes)), F.flatten(labels), reduce="no"
        )
        wrong = F.reshape(wrong, labels.shape)
        hard = _hardest(np.where(found, -1.0, wrong.array), 3 * found.sum(axis=1, keepdims=True))
        counted = (found | hard).astype(scores.dtype)
        away = F.huber_loss(places, offsets, 1.0, reduce="no")
        away = F.sum(away, axis=2) * found.astype(scores.dtype)
        number = np.maximum(found.sum(), 1).astype(scores.dtype)
        return (F.sum(wrong * counted) + F.sum(away)) / number


def _rows(x: Any, size: int) -> Any:
    """Return the outputs of a convolution, ``(batch, boxes, size)``."""
    return F.reshape(F.transpose(x, (0, 2, 3, 1)), (x.shape[0], -1, size))


def _hardest(errors: Any, counts: Any) -> Any:
    """Return which entries of each row are among its largest, as many as its count."""
    order = np.argsort(np.argsort(-errors, axis=1), axis=1)
    return (order < counts) & (errors >= 0)


def default_boxes() -> Any:
    """Return the boxes of SSD300, (8732, 4): centre x, y, width, height as shares of the image."""
    return _default_boxes().copy()


@cache
def _default_boxes() -> Any:
    found = []
    for step, size, larger, ratios in _MAPS:
        side = -(-300 // step) if step < 100 else {100: 3, 300: 1}[step]
        for row, column in product(range(side), repeat=2):
            x, y = (column + 0.5) * step, (row + 0.5) * step
            middle = (size * larger) ** 0.5
            sides = [(size, size), (middle, middle)]
            for ratio in ratios:
                long, short = size * ratio**0.5, size / ratio**0.5
                sides += [(long, short), (short, long)]
            found += [(x, y, *pair) for pair in sides]
    return np.clip(np.array(found) / 300, 0, 1).astype(np.float32)


def matched_boxes(boxes: Any, labels: Any, threshold: float = 0.5) -> tuple[Any, Any]:
    """Return the targets of the default boxes for the objects of one image.

    Each object gets the box that overlaps it most, and all that overlap it by the threshold and no
    other object more.

    Args:
        boxes: (objects, 4): left, top, right, bottom, as shares of the image.
        labels: Classes of the objects, from 1 on, (objects,).
        threshold: The least share of the intersection in the union.

    Returns:
        Offsets, float32 (8732, 4), and labels, int32 (8732,), 0 where there is no object.
    """
    default = _default_boxes()
    offsets = np.zeros(default.shape, np.float32)
    classes = np.zeros(len(default), np.int32)
    boxes, labels = np.asarray(boxes, np.float32).reshape(-1, 4), np.asarray(labels)
    if not len(boxes):
        return offsets, classes
    shared = _overlaps(boxes, default)
    owner, most = shared.argmax(axis=0), shared.max(axis=0)
    best = shared.argmax(axis=1)
    owner[best], most[best] = np.arange(len(boxes)), 2.0
    taken = most >= threshold
    objects, own = boxes[owner[taken]], default[taken]
    centre, side = (objects[:, :2] + objects[:, 2:]) / 2, objects[:, 2:] - objects[:, :2]
    moved = (centre - own[:, :2]) / own[:, 2:]
    grown = np.log(np.maximum(side, 1e-6) / own[:, 2:])
    offsets[taken] = np.concatenate([moved, grown], axis=1) / _VARIANCES
    classes[taken] = labels[owner[taken]]
    return offsets, classes


def placed_boxes(offsets: Any) -> Any:
    """Return boxes, (..., 8732, 4): left, top, right, bottom, of the offsets of a call."""
    default = _default_boxes()
    given = np.asarray(offsets) * _VARIANCES
    centre = default[:, :2] + given[..., :2] * default[:, 2:]
    half = default[:, 2:] * np.exp(given[..., 2:]) / 2
    return np.concatenate([centre - half, centre + half], axis=-1).astype(np.float32)


def _overlaps(boxes: Any, default: Any) -> Any:
    """Return intersections over unions, (boxes, default boxes)."""
    half = default[:, 2:] / 2
    low, high = default[:, :2] - half, default[:, :2] + half
    inner = np.minimum(boxes[:, None, 2:], high) - np.maximum(boxes[:, None, :2], low)
    both = np.prod(np.maximum(inner, 0), axis=2)
    areas = np.prod(boxes[:, 2:] - boxes[:, :2], axis=1)[:, None] + np.prod(default[:, 2:], axis=1)
    return both / (areas - both)
