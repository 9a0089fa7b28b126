"""Packed weights that several programs of a session read, packed once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

import numpy as np

from hagane.machine import Lock
from hagane.native.run.compiled import View, Weight, mapped

if TYPE_CHECKING:
    from hagane.native.run.compiled import Source
    from hagane.native.run.engine import Mapped, Memory

# Arrays of more bytes than this are told apart by their names and so many of their bytes.
_WHOLE, _SAMPLE = 1 << 16, 4096


@dataclass(eq=False)
class Packed:
    """A packed weight in memory, which is kept as long as this is."""

    memory: Memory | Mapped
    address: int


@dataclass(eq=False)
class WeightStore:
    """Packed weights by recipe and content; each is kept as long as a program reads it."""

    _found: WeakValueDictionary[object, Packed] = field(default_factory=WeakValueDictionary)
    _lock: Lock = field(default_factory=Lock)

    def get(self, key: object) -> Packed | None:
        """Return a weight that was packed before."""
        with self._lock:
            return None if key is None else self._found.get(key)

    def put(self, key: object, packed: Packed) -> None:
        """Offer a packed weight to others."""
        if key is not None:
            with self._lock:
                self._found.setdefault(key, packed)


def keys_of(weights: Sequence[Weight], sources: Sequence[Source]) -> list[object]:
    """Return a mark of the content of weights; None for weights that belong to their program."""
    marks = [_mark(source) for source in sources]

    def key(weight: Weight) -> object:
        if weight.buffer.owner is not None:
            return None

        def place(view: View) -> Any:
            return (marks[view.source], view.dtype, view.shape, view.strides, view.offset)

        packing = weight.packing
        found = (packing.function.__name__, mapped(packing.arguments, place), weight.buffer.bytes)
        try:
            hash(found)
        except TypeError:
            return None
        return found

    return [key(weight) for weight in weights]


def _mark(source: Source) -> tuple[object, ...]:
    """Return a mark that tells a source apart from the others of a session."""
    array = source.array
    if array.dtype == object:
        return (object(),)
    flat = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    if source.name and flat.size > _WHOLE:
        # (One name stands for one content, but for results of passes, which differ everywhere.)
        flat = flat[:: flat.size // _SAMPLE | 1]
    return (source.name, array.nbytes, array.dtype.name, hash(flat.tobytes()))
