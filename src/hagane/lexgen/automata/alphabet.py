"""Classes of symbols that no transition tells apart."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from hagane.lexgen.expressions.charset import END, Ranges


@dataclass(frozen=True, slots=True)
class Alphabet:
    """A partition of the code points and ``END`` into classes numbered from 0.

    Interval ``k`` runs from ``starts[k]`` to just before ``starts[k + 1]`` and belongs to class
    ``ids[k]``. The last interval is ``END`` alone.
    """

    starts: tuple[int, ...]
    ids: tuple[int, ...]
    n_classes: int

    def class_of(self, symbol: int) -> int:
        """Return the class of a symbol."""
        return self.ids[bisect_right(self.starts, symbol) - 1]

    @property
    def end_class(self) -> int:
        """The class of ``END``; no code point is in it."""
        return self.ids[-1]

    def members(self) -> list[Ranges]:
        """Return the symbols of each class."""
        found: list[list[tuple[int, int]]] = [[] for _ in range(self.n_classes)]
        for start, stop, id in zip(self.starts, (*self.starts[1:], END + 1), self.ids, strict=True):
            found[id].append((start, stop - 1))
        return [tuple(pairs) for pairs in found]

    def classes_in(self, symbols: Ranges) -> frozenset[int]:
        """Return the classes that make up a set; the set must be a union of classes."""
        found = set()
        for low, high in symbols:
            index = bisect_right(self.starts, low) - 1
            while index < len(self.starts) and self.starts[index] <= high:
                found.add(self.ids[index])
                index += 1
        return frozenset(found)

    def merged(self, groups: Sequence[int]) -> Alphabet:
        """Return the coarser alphabet in which class ``c`` has become class ``groups[c]``."""
        starts: list[int] = []
        ids: list[int] = []
        for start, id in zip(self.starts, self.ids, strict=True):
            if not ids or ids[-1] != groups[id] or start == END:
                starts.append(start)
                ids.append(groups[id])
        return Alphabet(tuple(starts), tuple(ids), max(groups) + 1)


def partition(sets: Iterable[Ranges]) -> Alphabet:
    """Return the coarsest alphabet of which each given set is a union of classes."""
    toggles: dict[int, int] = {0: 0, END: 0}
    for number, symbols in enumerate(dict.fromkeys(sets)):
        bit = 1 << number
        for low, high in symbols:
            toggles[low] = toggles.get(low, 0) ^ bit
            toggles[high + 1] = toggles.get(high + 1, 0) ^ bit
    signature = 0
    known: dict[int, int] = {}
    starts: list[int] = []
    ids: list[int] = []
    for start in sorted(toggles):
        if start > END:
            break
        signature ^= toggles[start]
        id = len(known) if start == END else known.setdefault(signature, len(known))
        if not ids or ids[-1] != id:
            starts.append(start)
            ids.append(id)
    return Alphabet(tuple(starts), tuple(ids), len(known) + 1)
