"""Tables of a part: the rows that ``native/c/tables.h`` describes, in memory or for C data."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

# Tables of records, in the order of hgt_part; then tables of plain indices.
RECORDS = (
    *("kernels", "pointers", "buffers", "borders", "controls", "carried", "scanned", "changing"),
    *("found", "inputs", "outputs", "named"),
)
INDICES = ("sizes", "failure_sizes", "dims", "control_dims", "moved", "equal")
# All tables, in the order of hgt_part.
ARRAYS = (*RECORDS, *INDICES, "formulas", "constants")
# ONNX's TensorProto.DataType of element types by name.
TYPES = {
    "float32": 1,
    "uint8": 2,
    "int8": 3,
    "uint16": 4,
    "int16": 5,
    "int32": 6,
    "int64": 7,
    "bool": 9,
    "float16": 10,
    "float64": 11,
    "uint32": 12,
    "uint64": 13,
    "complex64": 14,
    "complex128": 15,
    "bfloat16": 16,
    "float8_e4m3fn": 17,
    "float8_e4m3fnuz": 18,
    "float8_e5m2": 19,
    "float8_e5m2fnuz": 20,
    "uint4": 21,
    "int4": 22,
    "float4_e2m1fn": 23,
    "float8_e8m0fnu": 24,
    "uint2": 25,
    "int2": 26,
}
Row = list[int]


class PartRows(NamedTuple):
    """A part as numbers.

    Attributes:
        rows: Of each table, by its name.
        formulas: See ``SizeTable``.
        constants: See ``SizeTable``.
        weights: The buffers that hold packed weights; rows of buffers number them.
        symbols: Names whose sizes the inputs tell.
        names: These, and those whose sizes differ between iterations or are found.
        counts: The counts of hgt_part, by name.
        growing: Whether the size of each output is known after a run alone.
    """

    rows: Mapping[str, Sequence[Row]]
    formulas: Sequence[tuple[int, int, int, int]]
    constants: Sequence[int]
    weights: Sequence[Any]
    symbols: tuple[str, ...]
    names: tuple[str, ...]
    counts: Mapping[str, int]
    growing: tuple[bool, ...]


class PartTable:
    """The tables of a part in memory, as the engine reads them.

    Args:
        rows: The tables.
        functions: The address of each kernel's code, 0 where it has none.
        weights: The address of each buffer of packed weights.
        arrays: ``flattened(rows)``, if it is at hand; ``rows`` then needs no tables.
    """

    def __init__(
        self,
        rows: PartRows,
        functions: Sequence[int],
        weights: Sequence[int],
        arrays: Mapping[str, np.ndarray] | None = None,
    ) -> None:
        self.symbols, self.rows = rows.symbols, rows
        arrays = flattened(rows) if arrays is None else arrays
        tables = [np.array([*functions, 0], np.uint64), None, None]
        tables += [arrays[name] for name in ARRAYS]
        tables += [np.array([*weights, 0], np.int64)]
        words = [0 if table is None else table.ctypes.data for table in tables]
        words += [rows.counts[name] for name in COUNTS]
        self._kept = tables
        self._part = np.array(words, np.int64)

    @property
    def address(self) -> int:
        """Where the engine's hgt_part lies."""
        return int(self._part.ctypes.data)


# The counts of hgt_part, in order.
COUNTS = (
    *("kernels", "pointers", "buffers", "controls", "inputs", "outputs", "named", "equal"),
    *("numbers", "symbols", "sizes", "begin", "exact", "formulas"),
)
assert ctypes.sizeof(ctypes.c_void_p) == 8


def flattened(rows: PartRows) -> dict[str, np.ndarray]:
    """Return the tables as arrays, each of one number more than it has."""
    arrays = {name: _array(rows.rows[name]) for name in (*RECORDS, *INDICES)}
    arrays["formulas"] = _array(rows.formulas)
    arrays["constants"] = np.array([*rows.constants, 0], np.int64)
    return arrays


def _array(rows: Sequence[Sequence[int]]) -> np.ndarray:
    flat = [number for row in rows for number in row]
    return np.array([*flat, 0], np.int32)
