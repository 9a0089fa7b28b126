"""Small tools that Chainer's programs import."""

from __future__ import annotations

from typing import Any

import numpy as np

from hagane.nn.walker_alias import WalkerAlias
from hagane.utils import argument, conv, type_check

__all__ = [
    "WalkerAlias",
    "argument",
    "conv",
    "force_array",
    "force_type",
    "size_of_shape",
    "type_check",
]


def force_array(x: Any, dtype: Any = None) -> Any:
    """Return a number as an array without axes, and an array as it is, of an element type."""
    found = np.array(x) if np.isscalar(x) else x
    return found if dtype is None else found.astype(dtype, copy=False)


def force_type(dtype: Any, value: Any) -> Any:
    """Return a number in an element type; what is no number as it is."""
    return dtype.type(value) if np.isscalar(value) else value


def size_of_shape(shape: Any) -> int:
    """Return the number of elements."""
    return int(np.prod(shape, dtype=np.int64))
