"""Drawing from a categorical distribution in constant time."""

from __future__ import annotations

from typing import Any

import numpy as np

from hagane.nn.autograd.devices import cpu


class WalkerAlias:
    """Walker's alias method (1977): each draw looks at two entries of a table.

    Args:
        probs: Weights of the categories, an array of one axis.
    """

    def __init__(self, probs: Any):
        weights = np.array(probs, np.float32)
        weights /= weights.sum()
        n = len(weights)
        # A draw takes a column, and one of the two categories there; ``threshold`` is the share of
        # the first. Categories come from the lightest to the heaviest, each in a column of its own;
        # what is above one column fills the oldest that are not full. This order, and float32, are
        # Chainer's, so that a seed draws the same.
        self.threshold = np.empty(n, np.float32)
        self.first = np.argsort(weights, kind="stable").astype(np.int32)
        self.second = np.zeros(n, np.int32)
        full = 0
        for column, category in enumerate(self.first.tolist()):
            share = float(weights[category]) * n
            while share > 1 and full < column:
                self.second[full] = category
                share -= 1 - float(self.threshold[full])
                full += 1
            self.threshold[column] = share
        self.probs = probs

    def sample(self, shape: Any) -> Any:
        """Return drawn categories, int32, by NumPy's global generator."""
        place = np.random.uniform(0, len(self.threshold), shape)
        index = np.asarray(place).astype(np.int32)
        above = np.asarray(place, np.float32) - index.astype(np.float32)
        return np.where(self.threshold[index] < above, self.second[index], self.first[index])

    def to_device(self, device: Any) -> Any:
        """Return itself."""
        return self

    def to_cpu(self) -> Any:
        """Return itself."""
        return self

    def device_resident_accept(self, visitor: Any) -> None:
        """There is nothing to move."""

    @property
    def device(self) -> Any:
        """The device: this machine."""
        return cpu

    @property
    def xp(self) -> Any:
        """NumPy."""
        return np

    @property
    def use_gpu(self) -> bool:
        """Always false."""
        return False
