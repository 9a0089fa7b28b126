"""Kernels that work in float32 where the element type is too narrow to compute in."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.ops.builder import dtype_of, op
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


def composed_wide(compose: Callable[..., Any]) -> Callable[..., Any]:
    """Let ``compose``, written over the builder, see float32 instead of 16-bit floats.

    Results stay float32; the caller knows the element types that they are to have.
    """

    @wraps(compose)
    def wide(*inputs: Any, **attributes: Any) -> Any:
        return compose(*map(_cast_wide, inputs), **attributes)

    return wide


def _cast_wide(value: Any) -> Any:
    if value is None or dtype_of(value) not in (ir.DataType.FLOAT16, ir.DataType.BFLOAT16):
        return value
    return op("Cast", value, to=ir.DataType.FLOAT)


def _widen(value: Any) -> Any:
    if isinstance(value, np.ndarray) and value.dtype in LOW_PRECISION:
        return value.astype(np.float32)
    return value


def _narrow(value: Any, dtype: np.dtype[Any]) -> Any:
    value = None if value is None else np.asarray(value)
    if value is None or value.dtype.kind != "f":
        return value
    return value.astype(dtype)
