"""Datasets that workers can import."""

from __future__ import annotations

import random
from typing import Any

import numpy as np

from hagane.training.iterators import sample_random


class Mixed:
    """Nested samples: stacked, ragged, text, numbers."""

    def __init__(self, length: int = 23):
        self.length = length

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> dict[str, Any]:
        return {
            "image": np.full((2, 3), index, np.float32),
            "pair": (index, f"name {index}"),
            "ragged": np.arange(index % 5, dtype=np.int16),
            "list": [np.float64(index), None],
        }


class Drawing:
    """Samples made of random numbers from every generator."""

    def __len__(self) -> int:
        return 12

    def __getitem__(self, index: int) -> tuple[int, float, float, float]:
        return index, random.random(), float(np.random.rand()), float(sample_random().random())
