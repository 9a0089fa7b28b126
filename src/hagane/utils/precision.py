"""Functions of half-precision arrays that compute in single precision."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

Forward = Callable[[Any, tuple[Any, ...]], tuple[Any, ...]]


def _fp16_mixed_precision_helper(fn: Forward) -> Forward:
    """Return a method ``forward`` that is given float32 for float16, and returns float16 again.

    Results are float16 where all floating-point inputs are; other element types stay.
    """

    @functools.wraps(fn)
    def forward(self: Any, in_data: tuple[Any, ...]) -> tuple[Any, ...]:
        halves = all(x.dtype.kind != "f" or x.dtype == np.float16 for x in in_data)
        found = fn(self, tuple(_in(x, np.float16, np.float32) for x in in_data))
        return tuple(_in(y, np.float32, np.float16) for y in found) if halves else found

    return forward


def _in(x: Any, given: Any, wanted: Any) -> Any:
    return x.astype(wanted) if x is not None and x.dtype == given else x
