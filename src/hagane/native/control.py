"""Loops and branches of a compiled program, and the tables by which the engine runs them.

A loop is a kernel without code, its body's kernels, and a mark. Values that lie elsewhere in each
turn have buffers of a kind of their own, ``Kind.MOVING``: before a turn the engine writes their
addresses into the pointers of the kernels that read or write them.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from hagane.native.tensor import Buffer
from hagane.symbolic import Dim

NONE = -1
# How many turns a loop is taken to make where that is not known.
_LIKELY_TURNS = 16
# A body with less work than this, in nanoseconds, that threads could share is run by one.
_SHARED_NS = 8000.0


class Mark(enum.Enum):
    """What a kernel without code stands for."""

    OTHERWISE = "otherwise"  # kernels of a false condition begin
    END = "end"  # the body of a loop, or the last of a branch, ends


@dataclass(frozen=True, slots=True)
class Carried:
    """A value that a turn reads as the one before left it.

    Attributes:
        before: Where the body reads it; moves.
        after: Where the body writes it; moves.
        start: Which of the loop's pointers is the initial value.
        first: Which is the result.
        second: Which is a spare place of the same size.
        size: Bytes.
    """

    before: Buffer
    after: Buffer
    start: int
    first: int
    second: int
    size: Dim


@dataclass(frozen=True, slots=True)
class Scanned:
    """A value of which each turn reads or writes one slice.

    Attributes:
        slice: Where the body reads or writes it; moves.
        base: Which of the loop's pointers is the whole; ``NONE`` if it grows while the loop runs.
        start: Bytes from there to the first slice.
        step: Bytes from one slice to the next.
        result: The output that is made of what grew.
    """

    slice: Buffer
    base: int
    start: Dim
    step: Dim
    result: Buffer | None = None


@dataclass(frozen=True, slots=True)
class Loop:
    """Turns of a body. Numbers are of the kernel's pointers; ``NONE`` is none.

    Attributes:
        turns: How many turns at most, where that is known before the run.
        limit: Where that number lies otherwise.
        going: Whether to begin.
        condition: Whether to go on, as the body says.
        count: Where the body reads the number of the turn.
        carried: Values that turns hand on.
        scanned: Values in slices.
    """

    turns: Dim | None
    limit: int
    going: int
    condition: int
    count: int
    carried: tuple[Carried, ...]
    scanned: tuple[Scanned, ...]

    def dims(self) -> Iterator[Dim]:
        """Yield the sizes in it."""
        if self.turns is not None:
            yield self.turns
        yield from (value.size for value in self.carried)
        yield from (dim for value in self.scanned for dim in (value.start, value.step))


@dataclass(frozen=True, slots=True)
class Branch:
    """One body or another, as the value tells that the pointer ``condition`` points to."""

    condition: int

    def dims(self) -> Iterator[Dim]:
        """Yield nothing: there is no size in it."""
        yield from ()


Control: TypeAlias = "Loop | Branch | Mark"


@dataclass(frozen=True, slots=True)
class Extent:
    """The kernels of a loop or branch: those after ``begin``, up to the mark at ``end``."""

    begin: int
    otherwise: int
    end: int


def extents(controls: Sequence[Control | None]) -> dict[int, Extent]:
    """Return where each loop and branch ends, by where it begins."""
    found: dict[int, Extent] = {}
    opened: list[tuple[int, int]] = []
    for index, control in enumerate(controls):
        if isinstance(control, Loop | Branch):
            opened.append((index, NONE))
        elif control is Mark.OTHERWISE:
            opened[-1] = opened[-1][0], index
        elif control is Mark.END:
            begin, otherwise = opened.pop()
            found[begin] = Extent(begin, otherwise, index)
    assert not opened
    return found


@dataclass(frozen=True, slots=True)
class Estimate:
    """What kernels take, in nanoseconds of one thread.

    Attributes:
        alone: Loops and branches that one thread runs by itself.
        whole: All, as often as they are likely to run.
        shared: What threads share of that.
        often: How often each kernel is likely to run.
    """

    alone: frozenset[int]
    whole: float
    shared: float
    often: tuple[float, ...]


def estimate(controls: Sequence[Control | None], work: Sequence[float], least: float) -> Estimate:
    """Return what kernels take.

    Args:
        controls: What each kernel is, if it has no code.
        work: The nanoseconds of each.
        least: Kernels of less work are not shared.
    """
    alone: set[int] = set()
    often = [1.0] * len(work)
    lonely = [False] * len(work)
    for begin, extent in sorted(extents(controls).items()):
        control, inside = controls[begin], range(begin + 1, extent.end)
        if isinstance(control, Loop):
            turns = control.turns if isinstance(control.turns, int) else _LIKELY_TURNS
            for index in inside:
                often[index] *= max(turns, 1)
        # Outer loops come first, so `often` tells how often one turn of this one runs the rest.
        scale = min((often[index] for index in inside), default=1.0)
        once = sum(work[i] * often[i] / scale for i in inside if work[i] >= least)
        if lonely[begin] or once < _SHARED_NS:
            alone.add(begin)
            for index in inside:
                lonely[index] = True
    whole = sum(one * times for one, times in zip(work, often, strict=True))
    shared = sum(
        one * times for one, times, by_one in zip(work, often, lonely, strict=True) if not by_one
    )
    return Estimate(frozenset(alone), whole, shared, tuple(often))


# The engine's hg_patch, hg_carried, hg_scanned and hg_control, in 64-bit words.
_PATCH, _CARRIED, _SCANNED, _CONTROL = 2, 10, 7, 15
_MEMORY, _MADE = 5, 13  # where hg_scanned has `memory`, and hg_control `made`


class ControlTable:
    """What the engine reads of one loop or branch.

    Args:
        control: What it is.
        extent: Its kernels.
        patches: For each moving buffer, the addresses of kernels' pointers and their offsets.
        number: Evaluates a size.
    """

    def __init__(
        self,
        control: Loop | Branch,
        extent: Extent,
        patches: Mapping[Buffer, Sequence[tuple[int, int]]],
        number: Callable[[Dim], int],
    ):
        self._patches: list[np.ndarray] = []
        self.control = control
        row = np.full(_CONTROL, NONE, np.int64)
        self._row = row
        row[:3] = isinstance(control, Loop), extent.otherwise, extent.end
        row[8] = row[10] = 0
        if isinstance(control, Branch):
            row[6] = control.condition
            return
        turns = NONE if control.turns is None else max(0, number(control.turns))
        row[3:8] = turns, control.limit, control.going, control.condition, control.count
        self._carried = np.zeros((len(control.carried) + 1, _CARRIED), np.int64)
        for into, value in zip(self._carried, control.carried, strict=False):
            into[:4] = (*self._patched(patches, value.before), *self._patched(patches, value.after))
            into[4:8] = value.start, value.first, value.second, number(value.size)
        self._scanned = np.zeros((len(control.scanned) + 1, _SCANNED), np.int64)
        for into, part in zip(self._scanned, control.scanned, strict=False):
            into[:2] = self._patched(patches, part.slice)
            into[2:5] = part.base, number(part.start), number(part.step)
        row[8:10] = len(control.carried), self._carried.ctypes.data
        row[10:12] = len(control.scanned), self._scanned.ctypes.data

    def _patched(
        self, patches: Mapping[Buffer, Sequence[tuple[int, int]]], buffer: Buffer
    ) -> tuple[int, int]:
        found = patches.get(buffer, ())
        table = np.array([*found, (0, 0)], np.int64).reshape(-1, _PATCH)
        self._patches.append(table)
        return table.ctypes.data, len(found)

    @property
    def address(self) -> int:
        """Where the engine's structure lies."""
        return int(self._row.ctypes.data)

    @property
    def made(self) -> int:
        """The turns that the loop made last."""
        return int(self._row[_MADE])

    def grown(self, buffer: Buffer) -> int | None:
        """Return where the slices lie that make an output, 0 if there are none yet."""
        if isinstance(self.control, Loop):
            for row, part in zip(self._scanned, self.control.scanned, strict=False):
                if part.result is buffer:
                    return int(row[_MEMORY])
        return None


def grows(controls: Sequence[Control | None]) -> frozenset[Buffer]:
    """Return the outputs whose first size is known when a loop has ended."""
    return frozenset(
        part.result
        for control in controls
        if isinstance(control, Loop)
        for part in control.scanned
        if part.result is not None
    )
