"""The memory that kernels need, and where their values lie in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from hagane.native.kernels.kernel import AnyKernel
from hagane.native.kernels.tensor import Border, Buffer
from hagane.native.ready.context import FITS, Fitted
from hagane.native.ready.rows import PartTable
from hagane.native.run.engine import load_engine
from hagane.native.run.tables import part_rows
from hagane.symbolic import Dim, number_of

# Bytes that reads past the end of the last value may touch.
ARENA_SLACK = 4096
# The treatment of the border of a value: HG_SET_ONCE and so on.
_SET_ONCE, _SET_IN_RUNS = 1, 2


@dataclass(frozen=True, slots=True)
class Measured:
    """The memory of runs of some sizes.

    Attributes:
        values: Bytes for values.
        scratch: Bytes of scratch memory of each thread.
        threads: How many threads there are.
        whole: The estimated time, in nanoseconds of one thread.
        shared: The part of it that threads share.
        alone: Loops and branches that one thread runs by itself.
    """

    values: int
    scratch: int
    threads: int
    whole: int
    shared: int
    alone: frozenset[int]


@dataclass(frozen=True, slots=True)
class Clearing:
    """A border that something else may have written over, set anew while its pixels are written.

    Attributes:
        kernel: Index of the first kernel that writes pixels.
        offset: Of the buffer, in bytes.
        border: The border to clear.
    """

    kernel: int
    offset: int
    border: Border


@dataclass(frozen=True, slots=True)
class MemoryPlan:
    """Offsets into the arena, in bytes.

    Attributes:
        offsets: Of each buffer that lies in the arena.
        size: Of the whole arena.
        filled: Offset and size of the values whose borders are set before the first run, and the byte.
        cleared: Borders that are set in every run.
    """

    offsets: Mapping[Buffer, int]
    size: int
    filled: tuple[tuple[int, int, int], ...]
    cleared: tuple[Clearing, ...]


def measured(fitted: Fitted, sizes: Mapping[str, int]) -> Measured:
    """Return the memory of runs of named sizes; no run of the context is possible then.

    Raises:
        KeyError: A name has no size.
        MemoryError: Sizes are beyond any memory.
    """
    flat = np.array([*(sizes[name] for name in fitted.table.symbols), 0], np.int64)
    found = np.zeros(5, np.int64)
    if fitted.engine.measure(fitted.address, flat.ctypes.data, found.ctypes.data) != FITS:
        raise MemoryError(f"values of sizes {dict(sizes)}: they are beyond any memory")
    alone = np.zeros(fitted.table.rows.counts["kernels"] + 1, np.uint8)
    fitted.engine.list(fitted.address, None, 0, None, None, alone.ctypes.data)
    values, scratch, threads, whole, shared = map(int, found)
    lonely = frozenset(map(int, np.flatnonzero(alone)))
    return Measured(values, scratch, threads, whole, shared, lonely)


def planned(fitted: Fitted, kernels: Sequence[AnyKernel], size: int) -> MemoryPlan:
    """Return where the values of a context lie, of ``size`` bytes in all."""
    count = fitted.table.rows.counts["buffers"] + 1
    offsets, borders = np.zeros(count, np.int64), np.zeros(count, np.uint8)
    fitted.engine.list(fitted.address, None, 0, offsets.ctypes.data, borders.ctypes.data, None)
    known = fitted.sizes()

    def number(dim: Dim) -> int:
        return number_of(dim, known)

    first: dict[Buffer, int] = {}
    for index, kernel in enumerate(kernels):
        for pointer in kernel.pointers:
            first.setdefault(pointer.buffer, index)
    places: dict[Buffer, int] = {}
    filled: list[tuple[int, int, int]] = []
    cleared: list[Clearing] = []
    for (buffer, start), at, kind in zip(first.items(), offsets, borders, strict=False):
        if at >= 0:
            places[buffer] = int(at)
        if kind == _SET_ONCE:
            filled.append((int(at), number(buffer.bytes), buffer.border[0].fill))
        elif kind == _SET_IN_RUNS:
            cleared += [Clearing(start, int(at), b.numbers(number)) for b in buffer.border]
    return MemoryPlan(places, size, tuple(filled), tuple(cleared))


def plan_memory(kernels: Sequence[AnyKernel], sizes: Mapping[str, int]) -> MemoryPlan:
    """Plan the arena of some kernels: `native/c/place.c` tells how.

    Args:
        kernels: In order.
        sizes: Named sizes.
    """
    fitted = _of(kernels)
    return planned(fitted, kernels, measured(fitted, sizes).values)


def measure(kernels: Sequence[AnyKernel], sizes: Mapping[str, int]) -> Measured:
    """Return the memory of a run of some kernels on one thread.

    Args:
        kernels: In order.
        sizes: Named sizes.

    Raises:
        KeyError: A size has no number.
    """
    return measured(_of(kernels), sizes)


def _of(kernels: Sequence[AnyKernel]) -> Fitted:
    rows = part_rows(kernels)
    return Fitted(load_engine(), PartTable(rows, [0] * len(kernels), [0] * len(rows.weights)), 1)
