"""Classifiers in a row: MLP, LeNet-5, VGG-16, GoogLeNet."""

from __future__ import annotations

from typing import Any

from hagane.nn import functions as F  # noqa: N812
from hagane.nn import links as L  # noqa: N812
from hagane.nn.links.vision.googlenet import BLOCKS, BRANCHES
from hagane.nn.model.chain import Chain, ChainList


class MLP(Chain):
    """Two hidden layers with rectifiers; ``(batch, ...)`` to ``(batch, classes)``.

    Args:
        units: Of the hidden layers.
        classes: How many scores it returns.
    """

    def __init__(self, units: int = 1000, classes: int = 10):
        super().__init__()
        with self.init_scope():
            self.l1 = L.Linear(None, units)
            self.l2 = L.Linear(None, units)
            self.l3 = L.Linear(None, classes)

    def forward(self, x: Any) -> Any:
        """Return scores."""
        return self.l3(F.relu(self.l2(F.relu(self.l1(x)))))


class LeNet(Chain):
    """LeNet-5 with rectifiers and maxima; ``(batch, 1, 28, 28)`` to ``(batch, classes)``.

    "Gradient-based learning applied to document recognition" (LeCun et al., 1998).

    Args:
        classes: How many scores it returns.
    """

    def __init__(self, classes: int = 10):
        super().__init__()
        with self.init_scope():
            self.conv1 = L.Convolution2D(None, 6, 5, pad=2)
            self.conv2 = L.Convolution2D(6, 16, 5)
            self.fc1 = L.Linear(None, 120)
            self.fc2 = L.Linear(120, 84)
            self.fc3 = L.Linear(84, classes)

    def forward(self, x: Any) -> Any:
        """Return scores."""
        h = F.max_pooling_2d(F.relu(self.conv1(x)), 2)
        h = F.max_pooling_2d(F.relu(self.conv2(h)), 2)
        return self.fc3(F.relu(self.fc2(F.relu(self.fc1(h)))))


# Channels of the convolutions of each of the five stages.
_VGG16 = ((64, 64), (128, 128), (256, 256, 256), (512, 512, 512), (512, 512, 512))


def vgg16_stages(width: float = 1.0, initial: Any = None) -> ChainList:
    """Return VGG-16's thirteen convolutions of size 3, in five stages, for other models too.

    Args:
        width: Factor of all channels.
        initial: The initializer of their weights; that of links where it is None.
    """
    stages = [[scaled(width, each) for each in stage] for stage in _VGG16]
    return ChainList(
        *(
            ChainList(*(L.Convolution2D(None, c, 3, pad=1, initialW=initial) for c in s))
            for s in stages
        )
    )


def convolved(stage: Any, x: Any) -> Any:
    """Return the output of a stage of VGG-16, before it is pooled."""
    for convolution in stage.children():
        x = F.relu(convolution(x))
    return x


def scaled(width: float, channels: int) -> int:
    """Return a number of channels times a factor, at least one."""
    return max(1, round(width * channels))


class VGG16(Chain):
    """VGG-16 (configuration D); ``(batch, 3, height, width)`` to ``(batch, classes)``.

    "Very deep convolutional networks for large-scale image recognition" (Simonyan and Zisserman,
    2014). Height and width are at least 32, and the same in every call.

    Args:
        classes: How many scores it returns.
        units: Of the hidden layers behind the convolutions.
        width: Factor of all channels, for small models.
    """

    def __init__(self, classes: int = 1000, units: int = 4096, width: float = 1.0):
        super().__init__()
        with self.init_scope():
            self.stages = vgg16_stages(width)
            self.fc6 = L.Linear(None, units)
            self.fc7 = L.Linear(units, units)
            self.fc8 = L.Linear(units, classes)

    def forward(self, x: Any) -> Any:
        """Return scores."""
        for stage in self.stages.children():
            x = F.max_pooling_2d(convolved(stage, x), 2)
        h = F.dropout(F.relu(self.fc6(x)))
        return self.fc8(F.dropout(F.relu(self.fc7(h))))


class _Branch(Chain):
    """A classifier of a value in the middle of GoogLeNet."""

    def __init__(self, classes: int, width: float):
        super().__init__()
        with self.init_scope():
            self.conv = L.Convolution2D(None, scaled(width, 128), 1)
            self.fc1 = L.Linear(None, scaled(width, 1024))
            self.fc2 = L.Linear(None, classes)

    def forward(self, x: Any) -> Any:
        h = F.relu(self.conv(F.average_pooling_2d(x, 5, stride=3)))
        return self.fc2(F.dropout(F.relu(self.fc1(h)), 0.7))


class GoogLeNet(Chain):
    """GoogLeNet; ``(batch, 3, height, width)`` to ``(batch, classes)``.

    "Going deeper with convolutions" (Szegedy et al., 2014), of the blocks of
    ``links.GoogLeNet``, which takes weights from a file. Height and width are at least 79, and the
    same in every call of :meth:`loss`; 224 in the paper.

    Args:
        classes: How many scores it returns.
        width: Factor of all channels, for small models.
    """

    def __init__(self, classes: int = 1000, width: float = 1.0):
        super().__init__()
        blocks = [
            L.Inception(None, *(scaled(width, each) for each in sizes[1:]))
            for sizes in BLOCKS.values()
        ]
        with self.init_scope():
            self.conv1 = L.Convolution2D(3, scaled(width, 64), 7, stride=2, pad=3)
            self.conv2_reduce = L.Convolution2D(None, scaled(width, 64), 1)
            self.conv2 = L.Convolution2D(None, scaled(width, 192), 3, pad=1)
            self.blocks = ChainList(*blocks)
            self.fc = L.Linear(None, classes)
            self.branches = ChainList(*(_Branch(classes, width) for _ in BRANCHES))

    def forward(self, x: Any) -> Any:
        """Return scores."""
        return self._scores(x)[-1]

    def loss(self, x: Any, t: Any) -> Any:
        """Return the cross entropy, and 0.3 times that of each of the two classifiers inside.

        Args:
            x: (batch, 3, height, width).
            t: Classes, (batch,).
        """
        *inside, last = self._scores(x)
        total = F.softmax_cross_entropy(last, t)
        for branch, value in zip(self.branches.children(), inside, strict=True):
            total = total + 0.3 * F.softmax_cross_entropy(branch(value), t)
        return total

    def _scores(self, x: Any) -> list[Any]:
        """Return the inputs of the classifiers inside, and the scores."""
        h = F.max_pooling_2d(F.relu(self.conv1(x)), 3, stride=2)
        h = F.relu(self.conv2_reduce(_normalized(h)))
        h = F.max_pooling_2d(_normalized(F.relu(self.conv2(h))), 3, stride=2)
        inside = []
        for name, block in zip(BLOCKS, self.blocks.children(), strict=True):
            h = block(h)
            if f"inception_{name}" in [block for block, _channels in BRANCHES.values()]:
                inside.append(h)
            if name in ("3b", "4e"):
                h = F.max_pooling_2d(h, 3, stride=2)
        return [*inside, self.fc(F.dropout(F.mean(h, axis=(2, 3)), 0.4))]


def _normalized(x: Any) -> Any:
    return F.local_response_normalization(x, n=5, k=1, alpha=1e-4 / 5)
