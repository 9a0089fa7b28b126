"""Where each value lies: one arena whose parts are reused once a value is dead."""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from hagane.native.kernel import Kernel
from hagane.native.tensor import Buffer, Kind
from hagane.symbolic import Dim, Expr, number_of, python_text, symbols_of

_ALIGNMENT = 64
# Reads of whole vectors may look this far past a value's end.
_SLACK = 64
# Bytes that reads past the end of the last value may touch.
ARENA_SLACK = 4096


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
