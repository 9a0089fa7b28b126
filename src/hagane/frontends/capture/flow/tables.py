"""Lists of plain numbers as constants."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hagane.frontends.capture.flow.slots import (
    DTYPES,
    Contents,
    Fixed,
    Listed,
    NumberSlot,
    Parts,
    Slot,
)
from hagane.frontends.python.values.sizes import Size
from hagane.frontends.python.values.values import Choice, ListRef, Value
from hagane.ops.definition import Array


def known_columns(form: Slot, items: Sequence[Value], contents: Contents) -> list[Array] | None:
    """Return the columns of items that have only plain numbers; None if there are others.

    Args:
        form: The form of an item.
        items: The items.
        contents: The contents of objects.
    """
    if isinstance(form, Fixed):
        return []
    if isinstance(form, NumberSlot):
        if not all(isinstance(item, int | float) for item in items):
            return None
        try:
            return [np.array(items, DTYPES[form.kind].numpy())]
        except OverflowError:
            return None
    if isinstance(form, Parts):
        if any(isinstance(item, Choice) for item in items):
            return None
        held = [parts_of(form, item, contents) for item in items]
        columns = [
            known_columns(part, [values[place] for values in held], contents)
            for place, part in enumerate(form.items)
        ]
        known = [column for column in columns if column is not None]
        return [array for column in known for array in column] if known == columns else None
    if isinstance(form, Listed) and form.item is not None and isinstance(form.length, int):
        lists = [contents[item.key] if isinstance(item, ListRef) else item for item in items]
        if not all(type(one) in (tuple, Size) for one in lists):
            return None
        inner = known_columns(form.item, [value for one in lists for value in one], contents)
        shape = len(items), form.length
        return None if inner is None else [a.reshape(*shape, *a.shape[1:]) for a in inner]
    return None


def parts_of(form: Parts, value: Value, contents: Contents) -> list[Value]:
    """Return the members of a tuple, list, dictionary or object."""
    if isinstance(value, tuple):
        return list(value)
    held = contents[value.key]
    return [held[name] for name in form.names] if form.names else list(held)


__all__ = ["known_columns", "parts_of"]
