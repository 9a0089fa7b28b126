"""Loops and branches of a compiled program, and the tables by which the engine runs them.

A loop is a kernel without code, its body's kernels, and a mark. Values whose place changes between
iterations have buffers of a kind of their own, ``Kind.MOVING``: before an iteration the engine writes
their addresses into the pointers of the kernels that read or write them.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from hagane.native.kernels.tensor import Buffer
from hagane.symbolic import Dim

NONE = -1
# How many iterations a loop is taken to make where that is not known.
LIKELY_ITERATIONS = 16


class Mark(enum.Enum):
    """The meaning of a kernel without code, other than a loop or branch."""

    OTHERWISE = "otherwise"  # kernels of a false condition begin
    END = "end"  # the body of a loop, or the last of a branch, ends


@dataclass(frozen=True, slots=True)
class Carried:
    """A value that an iteration reads as the one before left it.

    Attributes:
        before: Where the body reads it; moves.
        after: Where the body writes it; moves.
        start: Which of the loop's pointers is the initial value.
        first: Which is the result.
        second: Which is a spare place of the same size, or, of a value whose size an iteration finds in
            the data, where its kernels leave it; ``after`` is ``before`` then.
        size: Bytes of the initial value.
        grown: Bytes of the value after an iteration, if they differ between iterations: the engine
            then has two places of its own, and ``second`` is there only if an iteration finds them.
        result: The output made of a value that grew; there is no ``first``.
        shape: Its shape before an iteration.
    """

    before: Buffer
    after: Buffer
    start: int
    first: int
    second: int
    size: Dim
    grown: Dim | None = None
    result: Buffer | None = None
    shape: tuple[Dim, ...] = ()


@dataclass(frozen=True, slots=True)
class Scanned:
    """A value of which each iteration reads or writes one slice.

    Attributes:
        slice: Where the body reads or writes it; moves.
        base: Which of the loop's pointers is the whole; ``NONE`` if it grows while the loop runs.
        start: Bytes from there to the first slice.
        step: Bytes from one slice to the next.
        result: The output made of a value that grew.
    """

    slice: Buffer
    base: int
    start: Dim
    step: Dim
    result: Buffer | None = None


@dataclass(frozen=True, slots=True)
class ChangingSizes:
    """Sizes that differ between iterations.

    The kernel behind the loop's computes all numbers that follow from them; the engine calls it
    before each iteration and brings the numbers to where they are read.

    Attributes:
        names: Each with its size before the first iteration and, as a function of the sizes in one
            iteration, its size in the next; itself, if the body finds it in the data.
        dims: The numbers that this kernel computes, in order; the sizes themselves follow.
        numbers: Where it leaves them.
        temporaries: Values of the body that have no fixed size, and places of their own.
        scratch: The scratch memory that an iteration needs, if that differs too.
    """

    names: tuple[tuple[str, Dim, Dim], ...]
    dims: tuple[Dim, ...]
    numbers: Buffer
    temporaries: tuple[Buffer, ...]
    scratch: Dim


@dataclass(frozen=True, slots=True)
class Loop:
    """Iterations of a body. Numbers are of the kernel's pointers; ``NONE`` is none.

    Attributes:
        iterations: How many iterations at most, where that is known before the run.
        limit: Where that number lies otherwise.
        going: Whether to begin.
        condition: Whether to go on, as the body says.
        count: Where the body reads the number of the iteration.
        carried: Values that iterations hand on.
        scanned: Values in slices.
        changing: Sizes that differ between iterations, if any do.
    """

    iterations: Dim | None
    limit: int
    going: int
    condition: int
    count: int
    carried: tuple[Carried, ...]
    scanned: tuple[Scanned, ...]
    changing: ChangingSizes | None = None

    def dims(self) -> Iterator[Dim]:
        """Yield the sizes in it."""
        if self.iterations is not None:
            yield self.iterations
        yield from (value.size for value in self.carried)
        yield from (dim for value in self.scanned for dim in (value.start, value.step))
        if self.changing is not None:
            for _, start, after in self.changing.names:
                yield from (start, after)


@dataclass(frozen=True, slots=True)
class Found:
    """Sizes that the kernels before it have found in the data.

    The kernel behind it computes all numbers that follow; the engine calls it and brings them to
    where they are read.

    Attributes:
        names: Of the sizes.
        checks: Other sizes that have to equal a number: size, pointer, index of the number there.
        factors: For each name, the known size that it is multiplied by in the number: size, pointer,
            index.
        changing: The numbers.
        scanned: Places in values, at offsets that follow from the sizes.
        results: Outputs whose memory is there only now, and their shapes.
        settled: Whether the above is known.
    """

    names: tuple[str, ...]
    checks: tuple[tuple[Dim, int, int], ...]
    factors: tuple[tuple[Dim, int, int], ...]
    changing: ChangingSizes
    scanned: tuple[Scanned, ...]
    results: tuple[tuple[Buffer, tuple[Dim, ...]], ...]
    settled: bool = False

    def dims(self) -> Iterator[Dim]:
        """Yield the sizes in it that are known before."""
        yield from (dim for part in self.scanned for dim in (part.start, part.step))


@dataclass(frozen=True, slots=True)
class Branch:
    """One body or another, as the value tells that the pointer ``condition`` points to."""

    condition: int

    def dims(self) -> Iterator[Dim]:
        """Yield nothing: there is no size in it."""
        yield from ()


Control: TypeAlias = "Loop | Branch | Found | Mark"


@dataclass(frozen=True, slots=True)
class Extent:
    """The kernels of a loop or branch: those after ``begin``, up to the mark at ``end``."""

    begin: int
    otherwise: int
    end: int


def extents(controls: Sequence[Control | None]) -> dict[int, Extent]:
    """Return where each loop, branch and find ends, by where it begins."""
    found: dict[int, Extent] = {}
    opened: list[tuple[int, int]] = []
    for index, control in enumerate(controls):
        if isinstance(control, Loop | Branch):
            opened.append((index, NONE))
        elif isinstance(control, Found):
            found[index] = Extent(index, NONE, index + 2)
        elif control is Mark.OTHERWISE:
            opened[-1] = opened[-1][0], index
        elif control is Mark.END:
            begin, otherwise = opened.pop()
            found[begin] = Extent(begin, otherwise, index)
    assert not opened
    return found


def grows(controls: Sequence[Control | None]) -> frozenset[Buffer]:
    """Return the outputs whose size is known when a loop has ended, or it is found."""
    return frozenset(
        part
        for control in controls
        if isinstance(control, Loop | Found)
        for part in _left(control)
        if part is not None
    )


def _left(loop: Loop | Found) -> Iterator[Buffer | None]:
    if isinstance(loop, Found):
        yield from (buffer for buffer, _ in loop.results)
        return
    yield from (part.result for part in loop.scanned)
    yield from (value.result for value in loop.carried)


def changing_names(controls: Sequence[Control | None]) -> dict[str, Dim]:
    """Return the names of sizes that differ between iterations or are found, and first values."""
    found: dict[str, Dim] = {}
    for control in controls:
        if isinstance(control, Found):
            found.update(dict.fromkeys(control.names, 0))
        elif isinstance(control, Loop) and control.changing is not None:
            found.update({name: start for name, start, _ in control.changing.names})
    return found
