"""Where each value lies: one arena whose parts are reused once a value is dead."""

from __future__ import annotations

from bisect import insort
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hagane.native.kernel import Kernel
from hagane.native.tensor import Buffer, Kind
from hagane.symbolic import Dim, evaluate

_ALIGNMENT = 64
# Reads of whole vectors may look this far past a value's end.
_SLACK = 64


@dataclass(frozen=True, slots=True)
class MemoryPlan:
    """Offsets into the arena, in bytes.

    Attributes:
        offsets: Of each buffer that lies in the arena.
        size: Of the whole arena.
        filled: Offset and size of the parts that are filled before the first run, and the byte.
    """

    offsets: Mapping[Buffer, int]
    size: int
    filled: tuple[tuple[int, int, int], ...]


class Numbers:
    """Sizes as numbers, each expression evaluated once.

    Args:
        sizes: Values of the names in them.
    """

    def __init__(self, sizes: Mapping[str, int]):
        self._sizes = sizes
        self._known: dict[Dim, int] = {}

    def __call__(self, dim: Dim) -> int:
        """Return the value of a size."""
        if isinstance(dim, int):
            return dim
        found = self._known.get(dim)
        if found is None:
            value = evaluate(dim, self._sizes)
            assert isinstance(value, int), value
            found = self._known[dim] = value
        return found


def plan_memory(kernels: Sequence[Kernel], number: Numbers) -> MemoryPlan:
    """Plan the arena: largest values first, each at the lowest offset that is free in its time.

    The greedy scheme by size of "Efficient Memory Management for Deep Neural Net Inference"
    (Pisarchyk and Lee, 2020). A value that must keep its border shares its place only with
    values of the same geometry.
    """

    def size_of(buffer: Buffer) -> int:
        return -(-(number(buffer.bytes) + _SLACK) // _ALIGNMENT) * _ALIGNMENT

    first: dict[Buffer, int] = {}
    last: dict[Buffer, int] = {}
    for index, kernel in enumerate(kernels):
        for pointer in kernel.pointers:
            first.setdefault(pointer.buffer, index)
            last[pointer.buffer] = index
    placed: list[tuple[int, int, int, int]] = []  # offset, size, first, last
    offsets: dict[Buffer, int] = {}
    arena = [buffer for buffer in first if buffer.kind is Kind.ARENA]
    bytes_of = {buffer: size_of(buffer) for buffer in arena}
    for buffer in sorted(arena, key=lambda b: (-bytes_of[b], first[b])):
        size = bytes_of[buffer]
        at = 0
        for other, length, start, end in placed:
            if end < first[buffer] or start > last[buffer]:
                continue
            if other - at >= size:
                break
            at = max(at, other + length)
        offsets[buffer] = at
        insort(placed, (at, size, first[buffer], last[buffer]))
    top = max((at + size for at, size, _, _ in placed), default=0)
    filled: list[tuple[int, int, int]] = []
    free: dict[object, list[tuple[int, int]]] = {}  # border -> (last use, offset)
    bordered = [buffer for buffer in first if buffer.kind is Kind.BORDERED]
    for buffer in sorted(bordered, key=lambda b: first[b]):
        places = free.setdefault(buffer.border, [])
        for i, (end, at) in enumerate(places):
            if end < first[buffer]:
                places[i] = (last[buffer], at)
                offsets[buffer] = at
                break
        else:
            size = size_of(buffer)
            offsets[buffer] = top
            places.append((last[buffer], top))
            filled.append((top, size, buffer.fill))
            top += size
    return MemoryPlan(offsets, top, tuple(filled))
