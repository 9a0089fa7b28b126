"""Convolutions whose number of groups only a run knows, such as one group an image of a batch."""

from __future__ import annotations

from typing import Any

from hagane.ops.builder import op, rank_of, shape_of
from hagane.ops.builder.control import scan
from hagane.ops.functions.numbers.elementary import transpose
from hagane.ops.functions.tensors.parts import resized
from hagane.symbolic import Dim, floordiv


def convolved_in_groups(
    operator: str, x: Any, w: Any, b: Any, groups: Dim, **attributes: Any
) -> Any:
    """Return a convolution whose groups are computed one after the other.

    Args:
        operator: ``Conv`` or ``ConvTranspose``.
        x: (batch, channels, ...), floats.
        w: The weights as the operator takes them, those of all groups along the first axis.
        b: One number an output channel; or None.
        groups: How many groups there are; it divides the channels.
        attributes: Those of the operator, but for ``group``.
    """
    batch, channels, *space = shape_of(x)
    order = list(range(rank_of(x) + 1))
    order[0], order[1] = 1, 0
    images = resized(x, [batch, groups, floordiv(channels, groups), *space])
    parts = [transpose(images, order), _split(w, groups)]
    if b is not None:
        parts.append(_split(b, groups))
    (found,) = scan([], parts, lambda *items: (op(operator, *items, **attributes),), 1)
    found = transpose(found, order)
    batch, _, inside, *space = shape_of(found)
    return resized(found, [batch, groups * inside, *space])


def _split(x: Any, groups: Dim) -> Any:
    """Return ``x`` with an axis of groups before its first axis, which they divide."""
    first, *rest = shape_of(x)
    return resized(x, [groups, floordiv(first, groups), *rest])
