"""``DataLoader``: PyTorch's interface over the iterators' workers and shared memory."""

from __future__ import annotations

from hagane.training.loader.data_loader import DataLoader
from hagane.training.loader.sampling import (
    BatchSampler,
    DistributedSampler,
    RandomSampler,
    SequentialSampler,
)

__all__ = [
    "BatchSampler",
    "DataLoader",
    "DistributedSampler",
    "RandomSampler",
    "SequentialSampler",
]
