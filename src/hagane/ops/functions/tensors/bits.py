"""Memory read as elements of another type."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.ops.builder import dtype_of, op

_UNSIGNED = {
    1: ir.DataType.UINT8, 2: ir.DataType.UINT16, 4: ir.DataType.UINT32, 8: ir.DataType.UINT64,
}  # fmt: skip


def same_bytes(x: Any, dtype: ir.DataType) -> Any:
    """Return the bytes of a tensor as elements of another type, of which the last axis has more.

    Or fewer; the first bytes of a wide element are its lowest. Truth values are bytes of 0 and 1.
    """
    old, new = dtype_of(x), dtype
    if old == ir.DataType.BOOL:
        x, old = op("Cast", x, to=ir.DataType.UINT8), ir.DataType.UINT8
    read = ir.DataType.UINT8 if new == ir.DataType.BOOL else new
    if old.itemsize != read.itemsize:
        wide = _narrowed if read.itemsize < old.itemsize else _widened
        x, old = wide(x, int(old.itemsize), int(read.itemsize)), _UNSIGNED[int(read.itemsize)]
    found = x if old == read else op("BitCast", x, to=read)
    return op("Cast", found, to=new) if read != new else found


def _narrowed(x: Any, old: int, new: int) -> Any:
    bits = op("Unsqueeze", op("Cast", _plain(x, old), to=ir.DataType.UINT64), np.array([-1]))
    steps = np.arange(0, 8 * old, 8 * new, dtype=np.uint64)
    parts = op("BitShift", bits, steps, direction="RIGHT")
    parts = op("BitwiseAnd", parts, np.uint64(2 ** (8 * new) - 1))
    return _last(op("Cast", parts, to=_UNSIGNED[new]), [-1], 2)


def _widened(x: Any, old: int, new: int) -> Any:
    parts = _last(op("Cast", _plain(x, old), to=ir.DataType.UINT64), [-1, new // old], 1)
    steps = np.arange(0, 8 * new, 8 * old, dtype=np.uint64)
    parts = op("BitShift", parts, steps, direction="LEFT")
    return op("Cast", op("ReduceSum", parts, np.array([-1]), keepdims=0), to=_UNSIGNED[new])


def _plain(x: Any, size: int) -> Any:
    """Return elements as unsigned numbers of the same bits."""
    wanted = _UNSIGNED[size]
    return x if dtype_of(x) == wanted else op("BitCast", x, to=wanted)


def _last(x: Any, sizes: list[int], several: int) -> Any:
    """Return a tensor whose last axes, as many as ``several``, have other sizes."""
    front = op("Shape", x, end=-several)
    return op("Reshape", x, op("Concat", front, np.array(sizes), axis=0))


__all__ = ["same_bytes"]
