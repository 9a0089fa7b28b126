"""Marks of packed weights, by which several programs of a session share them."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hagane.native.run.compiled import View, Weight, mapped

if TYPE_CHECKING:
    from hagane.native.run.compiled import Source

# Arrays of more bytes than this are told apart by their names and so many of their bytes.
_WHOLE, _SAMPLE = 1 << 16, 4096


def keys_of(weights: Sequence[Weight], sources: Sequence[Source]) -> list[str | None]:
    """Return a mark of the content of weights; None for weights that belong to their program.

    Marks mean the same in every process that reads the same model.
    """
    marks = [_mark(source) for source in sources]

    def key(weight: Weight) -> str | None:
        if weight.buffer.owner is not None:
            return None
        places: list[str | None] = []

        def place(view: View) -> Any:
            places.append(marks[view.source])
            return (marks[view.source], view.dtype, view.shape, view.strides, view.offset)

        packing = weight.packing
        recipe = mapped(packing.arguments, place)
        text = repr((packing.function.__name__, recipe, weight.buffer.bytes))
        # (Objects that have no text of their own show where they lie.)
        if None in places or " at 0x" in text:
            return None
        return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()

    return [key(weight) for weight in weights]


def _mark(source: Source) -> str | None:
    """Return a mark that tells a source apart from the others of a model; None if there is none."""
    array = source.array
    if array.dtype == object:
        return None
    flat = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    if source.name and flat.size > _WHOLE:
        # (One name stands for one content, but for results of passes, which differ everywhere.)
        flat = flat[:: flat.size // _SAMPLE | 1]
    digest = hashlib.blake2b(flat.tobytes(), digest_size=16).hexdigest()
    return f"{source.name!r} {array.nbytes} {array.dtype.name} {digest}"
