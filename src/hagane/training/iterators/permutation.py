"""A shuffle of any number of indices in constant memory.

A permutation of the numbers below ``n`` is computed, not stored: a generalised Feistel network
over a rectangle of ``rows * columns >= n`` cells, where a value that falls outside ``n`` walks on
until it is inside (J. Black and P. Rogaway, "Ciphers with arbitrary finite domains", CT-RSA 2002).
The rectangle is close to a square, so that fewer than ``2 / sqrt(n)`` of its cells lie outside.
"""

from __future__ import annotations

import math
from typing import Any, overload

import numpy as np
import numpy.typing as npt

_ROUNDS = 8
# Indices are computed this many at a time; a batch alone would pay more for calls than for work.
_BLOCK = 4096
_GOLDEN = 0x9E3779B97F4A7C15
_MASK = (1 << 64) - 1


def _mix(value: int) -> int:
    """Return 64 well-mixed bits (the finaliser of SplitMix64)."""
    value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9 & _MASK
    value = (value ^ (value >> 27)) * 0x94D049BB133111EB & _MASK
    return value ^ (value >> 31)


def _mix_array(values: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def mix(*values: int) -> int:
    """Return 64 bits that depend on every bit of several integers."""
    mixed = 0
    for value in values:
        mixed = _mix((mixed + _GOLDEN + (value & _MASK)) & _MASK)
    return mixed


class Permutation:
    """An order over ``length`` indices that is computed where it is read.

    Memory is that of one block of 4,096 indices at any length.

    Args:
        length: Number of indices, below 2**62.
        seed: Together with ``sweep`` the key: equal keys give equal orders.
        sweep: Number of the epoch.
    """

    def __init__(self, length: int, seed: int, sweep: int):
        self._length = length
        self._columns = max(1, math.isqrt(max(0, length - 1)) + 1)
        self._rows = max(1, -(-length // self._columns))
        self._keys = [np.uint64(mix(seed, sweep, number)) for number in range(_ROUNDS)]
        self._block = -1
        self._cached: npt.NDArray[np.int64] = np.empty(0, np.int64)

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, span: slice) -> npt.NDArray[np.int64]: ...
    @overload
    def __getitem__(self, span: int) -> int: ...
    def __getitem__(self, span: slice | int) -> Any:
        if isinstance(span, int):
            position = range(self._length)[span]
            return int(self[position : position + 1][0])
        begin, end, stride = span.indices(self._length)
        if stride != 1 or end - begin >= _BLOCK:
            return self._at(np.arange(begin, end, stride, dtype=np.uint64))
        parts = [np.empty(0, np.int64)]
        while begin < end:
            number = begin // _BLOCK
            upto = min(end, (number + 1) * _BLOCK)
            parts.append(self._read(number)[begin % _BLOCK : upto - number * _BLOCK])
            begin = upto
        return np.concatenate(parts)

    def _read(self, number: int) -> npt.NDArray[np.int64]:
        if number != self._block:
            first = number * _BLOCK
            positions = np.arange(first, min(first + _BLOCK, self._length), dtype=np.uint64)
            self._cached, self._block = self._at(positions), number
        return self._cached

    def _at(self, positions: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
        values = self._encrypt(positions)
        outside = np.flatnonzero(values >= self._length)
        while outside.size:
            walked = self._encrypt(values[outside])
            values[outside] = walked
            outside = outside[walked >= self._length]
        return values.astype(np.int64)

    def _encrypt(self, values: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
        """Permute the cells of the rectangle: alternating rounds shift the row, the column."""
        rows, columns = np.uint64(self._rows), np.uint64(self._columns)
        row, column = values // columns, values % columns
        for number, key in enumerate(self._keys):
            if number % 2:
                column = (column + _mix_array(row + key) % columns) % columns
            else:
                row = (row + _mix_array(column + key) % rows) % rows
        return row * columns + column
