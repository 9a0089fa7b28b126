"""Where each value lies: one arena whose parts are reused once a value is dead."""

from __future__ import annotations

import math
from bisect import insort
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass

from hagane.native.kernels.control import estimate
from hagane.native.kernels.kernel import AnyKernel, Work
from hagane.native.kernels.tensor import Border, Buffer, Kind
from hagane.symbolic import Dim, Expr, number_of, python_text, symbols_of

_ALIGNMENT = 64
# Reads of whole vectors may look this far past a value's end.
_SLACK = 64
# Bytes that reads past the end of the last value may touch.
ARENA_SLACK = 4096
# Clearing borders may take this share of a run's estimated time,
_CLEARING = 0.01
# in nanoseconds of one thread for each byte and each stretch of them.
_NS_OF_BYTE, _NS_OF_STRETCH = 0.04, 4.0


@dataclass(frozen=True, slots=True)
class Clearing:
    """A border that something else may have written over, set anew while its pixels are written.

    Attributes:
        kernel: Index of the first kernel that writes pixels.
        offset: Of the buffer, in bytes.
        border: What to clear.
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
        filled: Offset and size of the parts that are filled before the first run, and the byte.
        cleared: Borders that are cleared in every run.
    """

    offsets: Mapping[Buffer, int]
    size: int
    filled: tuple[tuple[int, int, int], ...]
    cleared: tuple[Clearing, ...]


class SizeCode:
    """Python code that computes all sizes of a part at once from those that are named.

    Args:
        dims: The sizes; kept, so that each may be known by its identity.
    """

    def __init__(self, dims: Sequence[Dim]):
        self._dims = [dim for dim in dims if isinstance(dim, Expr)]
        places: dict[Dim, int] = {}
        self._places = [places.setdefault(dim, len(places)) for dim in self._dims]
        self._names = sorted({name for dim in places for name in symbols_of(dim)})
        names = {name: f"s{i}" for i, name in enumerate(self._names)}
        texts = "".join(f"{python_text(dim, names)}, " for dim in places)
        self._function: Callable[..., tuple[int, ...]] = eval(  # our own text, of numbers
            f"lambda {', '.join(names.values())}: ({texts})"
        )

    def compute(self, sizes: Mapping[str, int]) -> dict[int, int]:
        """Return the number of each size by its identity; nothing if a name has no size."""
        try:
            found = self._function(*(sizes[name] for name in self._names))
        except KeyError:
            return {}
        return {id(dim): found[place] for dim, place in zip(self._dims, self._places, strict=True)}


class Numbers:
    """Sizes as numbers, each expression evaluated once.

    Args:
        sizes: Values of the names in them.
        code: Computes those that are asked for most.
    """

    def __init__(self, sizes: Mapping[str, int], code: SizeCode | None = None):
        self._sizes = sizes
        self._by_identity = {} if code is None else code.compute(sizes)
        self._known: dict[Dim, int] = {}

    def with_sizes(self, sizes: Mapping[str, int]) -> Numbers:
        """Return the same for other values of some names."""
        return Numbers({**self._sizes, **sizes})

    def of_work(self, work: Work) -> float:
        """Return a time or a count of operations that may depend on sizes."""
        return self(work) if isinstance(work, Expr) else work

    def __call__(self, dim: Dim) -> int:
        """Return the value of a size."""
        if isinstance(dim, int):
            return dim
        found = self._by_identity.get(id(dim))
        if found is None:
            found = self._known.get(dim)
        if found is None:
            found = self._known[dim] = number_of(dim, self._sizes)
        return found


@dataclass(frozen=True, slots=True)
class _Value:
    """A buffer of the arena: its size in bytes, and the kernels that it lives from and to.

    ``border`` is that of the buffer in numbers.
    """

    buffer: Buffer
    size: int
    first: int
    last: int
    border: tuple[Border, ...]


def plan_memory(kernels: Sequence[AnyKernel], number: Numbers) -> MemoryPlan:
    """Plan the arena: largest values first, each at the lowest offset that is free in its time.

    The greedy scheme by size of "Efficient Memory Management for Deep Neural Net Inference"
    (Pisarchyk and Lee, 2020). A value whose border must hold one number either has a place to
    itself and others of the same border, or shares it with any and is cleared in every run, as
    long as all clearing together takes little time.
    """
    first: dict[Buffer, int] = {}
    last: dict[Buffer, int] = {}
    for index, kernel in enumerate(kernels):
        for pointer in kernel.pointers:
            first.setdefault(pointer.buffer, index)
            last[pointer.buffer] = index
    values = [
        _Value(
            buffer,
            -(-(number(buffer.bytes) + _SLACK) // _ALIGNMENT) * _ALIGNMENT,
            start,
            last[buffer],
            tuple(
                made
                for part in buffer.border
                if (made := part.numbers(number)).planes and made.bytes
            ),
        )
        for buffer, start in first.items()
        if buffer.kind in (Kind.ARENA, Kind.BORDERED)
    ]
    plan = _place(values, set())
    cleared = _worth_clearing([v for v in values if v.border], kernels, number)
    return min(plan, _place(values, cleared), key=lambda plan: plan.size) if cleared else plan


def _worth_clearing(
    values: Sequence[_Value], kernels: Sequence[AnyKernel], number: Numbers
) -> Set[tuple[Border, ...]]:
    """Return borders to clear for the memory they free, as far as time allows."""
    if not values:
        return set()
    time = estimate([k.control for k in kernels], [number.of_work(k.work) for k in kernels], 0.0)
    budget = _CLEARING * time.whole
    cost: dict[tuple[Border, ...], float] = {}
    size: dict[tuple[Border, ...], int] = {}
    for value in values:
        key = value.border
        stretches = sum(int(border.runs + border.planes) for border in key)
        bytes_ = sum(int(border.bytes) for border in key)
        clearing = _NS_OF_BYTE * bytes_ + _NS_OF_STRETCH * stretches
        # Loops and branches have no tasks that could clear anything.
        often = math.inf if kernels[value.first].control else time.often[value.first]
        cost[key] = cost.get(key, 0.0) + clearing * often
        size[key] = value.size
    chosen = set()
    for key in sorted(cost, key=lambda key: cost[key] / size[key]):
        if cost[key] <= budget:
            budget -= cost[key]
            chosen.add(key)
    return chosen


def _place(values: Sequence[_Value], cleared: Set[tuple[Border, ...]]) -> MemoryPlan:
    """Place all values; those of borders that are not cleared after the rest."""
    placed: list[tuple[int, int, _Value]] = []  # by offset; the second number makes them differ
    offsets: dict[Buffer, int] = {}
    shared = [value for value in values if not value.border or value.border in cleared]
    for value in sorted(shared, key=lambda value: (-value.size, value.first)):
        at = 0
        for other, _, neighbour in placed:
            if neighbour.last < value.first or neighbour.first > value.last:
                continue
            if other - at >= value.size:
                break
            at = max(at, other + neighbour.size)
        offsets[value.buffer] = at
        insort(placed, (at, len(placed), value))
    top = max((at + value.size for at, _, value in placed), default=0)
    clearings, filled = _clearings(shared, offsets)
    free: dict[object, list[tuple[int, int]]] = {}  # border and size -> (last use, offset)
    own = [value for value in values if value.buffer not in offsets]
    for value in sorted(own, key=lambda value: value.first):
        places = free.setdefault((value.border, value.size), [])
        for i, (end, at) in enumerate(places):
            if end < value.first:
                places[i] = (value.last, at)
                offsets[value.buffer] = at
                break
        else:
            offsets[value.buffer] = top
            places.append((value.last, top))
            filled.append((top, value.size, value.border[0].fill))
            top += value.size
    return MemoryPlan(offsets, top, tuple(filled), tuple(clearings))


def _clearings(
    values: Sequence[_Value], offsets: Mapping[Buffer, int]
) -> tuple[list[Clearing], list[tuple[int, int, int]]]:
    """Return which borders a run must clear, and which are filled once for all runs."""
    clearings: list[Clearing] = []
    filled: list[tuple[int, int, int]] = []
    for value in values:
        border, at = value.border, offsets[value.buffer]
        if not border:
            continue
        # Whatever else lies here may come between: loops and branches have no one order.
        alone = all(
            other.border == border and offsets[other.buffer] == at
            for other in values
            if offsets[other.buffer] < at + value.size and at < offsets[other.buffer] + other.size
        )
        if alone:
            filled.append((at, value.size, border[0].fill))
        else:
            clearings += [Clearing(value.first, at, part) for part in border]
    return clearings, filled
