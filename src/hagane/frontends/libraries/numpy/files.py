"""Functions of NumPy that read files: of their content only the element type is known.

https://numpy.org/doc/stable/reference/routines.io.html
"""

from __future__ import annotations

import onnx_ir as ir

from hagane.frontends.libraries.numpy.operands import DOUBLE, dtype_of, new, size, sizes
from hagane.frontends.libraries.numpy.table import NUMPY
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.values.values import (
    Tensor,
    Unknown,
    Value,
    is_size,
)
from hagane.symbolic import Dim


@NUMPY.function("load")
def load(t: Core, file: Value, *_: Value, **__: Value) -> Value:
    """Return what a file holds: an array of any type, or several by name."""
    return t.loaded("a file")


@NUMPY.function("loadtxt", "genfromtxt")
def loadtxt(
    t: Core, fname: Value, dtype: Value = None, comments: Value = "#", delimiter: Value = None,
    *_: Value, usecols: Value = None, unpack: Value = False, ndmin: Value = 0,
    names: Value = None, **__: Value,
) -> Value:  # fmt: skip
    """Return a table of numbers, a row for each line."""
    known = dtype is None or not isinstance(dtype, Unknown | list | dict | str)
    if not known or names is not None or not isinstance(unpack, bool):
        return t.loaded("a file")
    rows: Dim = t.emit.fresh("rows")
    found = dtype_of(t, dtype, DOUBLE)
    if is_size(usecols):
        return new(t, found, (rows,))
    if isinstance(usecols, list | tuple) and len(usecols) > 1:
        columns: Dim = len(usecols)
    else:
        columns = t.emit.fresh("columns")
        if ndmin != 2:
            t.assume("a file that is read has more than one line and column")
    return new(t, found, (columns, rows) if unpack else (rows, columns))


@NUMPY.function("fromfile")
def fromfile(
    t: Core, file: Value, dtype: Value = None, count: Value = -1, *_: Value, **__: Value
) -> Tensor:
    """Return the numbers of a file in one axis."""
    read: Dim = t.emit.fresh("count") if count == -1 else size(t, count)
    return new(t, dtype_of(t, dtype, DOUBLE), (read,))


@NUMPY.function("memmap")
def memmap(
    t: Core, filename: Value, dtype: Value = None, mode: Value = "r+", offset: Value = 0,
    shape: Value = None, order: Value = "C",
) -> Tensor:  # fmt: skip
    """Return the numbers of a file, of a shape or in one axis."""
    known = [t.emit.fresh("count")] if shape is None else sizes(t, shape)
    return new(t, dtype_of(t, dtype, ir.DataType.UINT8), tuple(known))


__all__ = ["load"]
