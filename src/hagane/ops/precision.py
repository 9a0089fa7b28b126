"""Kernels that work in float32 where the element type is too narrow to compute in."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

from hagane.ops.values import LOW_PRECISION


def widened(kernel: Callable[..., Any]) -> Callable[..., Any]:
    """Let ``kernel`` see float32 instead of 16-bit and 8-bit floats; round its results back.

    The results take the element type of the first narrow input.
    """

    @wraps(kernel)
    def wide(*inputs: Any, **attributes: Any) -> Any:
        narrow = [x.dtype for x in inputs if isinstance(x, np.ndarray) and x.dtype in LOW_PRECISION]
        if not narrow:
            return kernel(*inputs, **attributes)
        result = kernel(*map(_widen, inputs), **attributes)
        if isinstance(result, tuple):
            return tuple(_narrow(item, narrow[0]) for item in result)
        return _narrow(result, narrow[0])

    return wide


def _widen(value: Any) -> Any:
    if isinstance(value, np.ndarray) and value.dtype in LOW_PRECISION:
        return value.astype(np.float32)
    return value


def _narrow(value: Any, dtype: np.dtype[Any]) -> Any:
    value = None if value is None else np.asarray(value)
    if value is None or value.dtype.kind != "f":
        return value
    return value.astype(dtype)
