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
        weights = np.array(probs, dtype=np.float64)
        weights = weights / weights.sum()
        n = len(weights)
        # A draw takes one of two categories; ``threshold`` is the share of the first.
        self.threshold = np.ones(n, np.float32)
        shares = weights * n
        small = [i for i in range(n) if shares[i] < 1]
        large = [i for i in range(n) if shares[i] >= 1]
        self.alias = np.arange(n, dtype=np.int32)
        while small and large:
            poor, rich = small.pop(), large.pop()
            self.threshold[poor] = shares[poor]
            self.alias[poor] = rich
            shares[rich] -= 1 - shares[poor]
            (small if shares[rich] < 1 else large).append(rich)
        self.probs = probs

    def sample(self, shape: Any) -> Any:
        """Return drawn categories, int32, by NumPy's global generator."""
        place = np.random.uniform(0, len(self.threshold), shape)
        index = np.floor(place).astype(np.int32)
        # float32 rounding may reach the end.
        index = np.minimum(index, len(self.threshold) - 1)
        own = place - index < self.threshold[index]
        return np.where(own, index, self.alias[index]).astype(np.int32)

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
