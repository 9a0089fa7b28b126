"""Classifiers in a row: MLP, LeNet-5, VGG-16."""

from __future__ import annotations

from typing import Any

from hagane.nn import functions as F  # noqa: N812
from hagane.nn import links as L  # noqa: N812
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
        stages = [[max(1, round(width * each)) for each in stage] for stage in _VGG16]
        with self.init_scope():
            self.stages = ChainList(
                *(ChainList(*(L.Convolution2D(None, c, 3, pad=1) for c in s)) for s in stages)
            )
            self.fc6 = L.Linear(None, units)
            self.fc7 = L.Linear(units, units)
            self.fc8 = L.Linear(units, classes)

    def forward(self, x: Any) -> Any:
        """Return scores."""
        for stage in self.stages.children():
            for convolution in stage.children():
                x = F.relu(convolution(x))
            x = F.max_pooling_2d(x, 2)
        h = F.dropout(F.relu(self.fc6(x)))
        return self.fc8(F.dropout(F.relu(self.fc7(h))))
