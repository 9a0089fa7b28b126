"""Arrays as nested lists of Python's numbers."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir

from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.values.values import (
    Many,
    Tensor,
    Truth,
    Value,
)
from hagane.symbolic import Dim

# Lists of at most so many items are followed one by one.
_FOLLOWED = 64


def listed(t: Core, x: Tensor, sizes: tuple[Dim, ...]) -> Any:
    """Return the content of an array as ``x.tolist()`` does.

    Args:
        t: The interpreter.
        x: The array.
        sizes: Its shape.
    """
    if x.known is not None:
        return x.known.tolist()
    if not sizes:
        return number(t, x)
    count, rest = sizes[0], sizes[1:]

    def item(place: Dim) -> Any:
        return listed(t, t.tables.tensor_item(t, x, place), rest)

    if isinstance(count, int) and count <= _FOLLOWED:
        return [item(place) for place in range(count)]
    first = item(0)
    if not rest:
        return t.domain.many(x, Many(first, count))
    return Many(t.wrap(first), count, lambda place: t.wrap(item(place)))


def number(t: Core, x: Tensor) -> Value:
    """Return the only element of an array as Python's number, as ``x.item()`` does."""
    if x.dtype == ir.DataType.BOOL:
        found = t.truth(x)
        return found if isinstance(found, bool) else Truth(found)
    return t.tensor_number(x, whole=x.dtype.is_integer())
