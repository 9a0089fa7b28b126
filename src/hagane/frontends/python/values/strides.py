"""The places of a tensor's elements in memory, on which ``view`` depends.

A stride is the distance of two neighbours along an axis, in elements. A tensor whose elements lie
without gaps in the order of its axes has none noted. The rules of ``view`` are those of
https://docs.pytorch.org/docs/stable/generated/torch.Tensor.view.html.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence

from hagane.frontends.python.values.values import (
    Tensor,
    Value,
    is_size,
)
from hagane.symbolic import Dim, definitely_equal

Strides = tuple[Dim, ...]


def dense(shape: Sequence[Dim]) -> Strides:
    """Return the strides of elements that lie without gaps in the order of their axes."""
    found: list[Dim] = []
    total: Dim = 1
    for size in reversed(shape):
        found.append(total)
        total = total * size
    return tuple(reversed(found))


def strides_of(x: Tensor) -> Strides:
    """Return the strides of a tensor whose shape is known."""
    return dense(x.shape or ()) if x.strides is None else x.strides


def lie(made: Tensor, strides: Sequence[Dim]) -> Tensor:
    """Note the strides of a view that was made, and return it."""
    if made.shape is not None and len(made.shape) == len(strides):
        pairs = zip(made.shape, strides, dense(made.shape), strict=True)
        plain = all(is_one(size) or definitely_equal(a, b) for size, a, b in pairs)
        made.strides = None if plain else tuple(strides)
    return made


def is_one(size: Dim) -> bool:
    """Whether an axis has one item, which lies anywhere."""
    return isinstance(size, int) and size == 1


def sliced(x: Tensor, index: Value) -> Strides | None:
    """Return the strides of ``x[index]``; None if it is a copy."""
    parts = list(index) if isinstance(index, tuple) else [index]
    basic = (type(None), type(Ellipsis), slice)
    if not all(isinstance(part, basic) or is_size(part) for part in parts):
        return None
    strides, found = list(strides_of(x)), list[Dim]()
    rest = len(strides) - sum(part is not None and part is not Ellipsis for part in parts)
    if Ellipsis not in parts:
        parts.append(Ellipsis)
    for part in parts:
        if part is None:
            found.append(1)  # of one item, which lies anywhere
        elif part is Ellipsis:
            found += strides[:rest]
            del strides[:rest]
        else:
            stride = strides.pop(0)
            if isinstance(part, slice):
                step = 1 if part.step is None else part.step
                if not isinstance(step, int):
                    return None
                found.append(stride * step)
    return tuple(found)


def order_of(x: Tensor, is_nonnegative: Callable[[Dim], bool]) -> tuple[int, ...] | None:
    """Return the axes in the order in which they lie in memory; None if it is that of the axes."""
    if x.strides is None or x.shape is None:
        return None
    order: list[int] = []
    for place, stride in enumerate(x.strides):
        at = len(order)
        while at and not is_nonnegative(x.strides[order[at - 1]] - stride):
            at -= 1
        order.insert(at, place)
    pairs = itertools.pairwise(order)
    sorted_ = all(is_nonnegative(x.strides[a] - x.strides[b]) for a, b in pairs)
    moved = order != sorted(order)
    return tuple(order) if moved and sorted_ and 0 not in x.strides else None


def in_order(shape: Sequence[Dim], order: Sequence[int]) -> Strides:
    """Return the strides of elements without gaps, whose axes lie in memory in some order."""
    found: list[Dim] = [1] * len(shape)
    for place, stride in zip(order, dense([shape[p] for p in order]), strict=True):
        found[place] = stride
    return tuple(found)


# The axes in their order in memory, by their number, where channels come last.
_CHANNELS_LAST = {4: (0, 2, 3, 1), 5: (0, 2, 3, 4, 1)}


def by_format(
    shape: Sequence[Dim], operands: Sequence[int], decide: Callable[[Iterable[bool]], bool]
) -> Strides:
    """Return the strides of a result that has channels last if operands have.

    Args:
        shape: Its shape; the first axis may be left out.
        operands: For each operand the number of its axes if it has channels last, otherwise 0.
        decide: Whether the result has, from whether each operand has: ``any`` or ``all``.
    """
    rank = max(operands)
    if not decide(map(bool, operands)) or rank - len(shape) not in (0, 1):
        return dense(shape)
    return in_order([1, *shape][-rank:], _CHANNELS_LAST[rank])[-len(shape) :]


def iterated(
    shape: Sequence[Dim], operands: Sequence[Strides], is_nonnegative: Callable[[Dim], bool]
) -> Strides | None:
    """Return the strides of a result whose axes are in the order of its operands' in memory.

    Args:
        shape: Its shape.
        operands: The strides of each operand along the axes of the result, 0 where it is repeated.
        is_nonnegative: Whether a size is proved to be at least 0.

    Returns:
        None where the sizes do not tell the order.
    """
    order = list(range(len(shape)))
    for moved in range(len(shape) - 2, -1, -1):
        place = moved
        for other in range(moved + 1, len(shape)):
            inner = _is_inner(order[other], order[place], shape, operands, is_nonnegative)
            if inner is None:
                return None
            if inner < 0:
                order[other], order[place] = order[place], order[other]
                place = other
            elif inner > 0:
                break
    return in_order(shape, order)


def _is_inner(
    one: int, other: int, shape: Sequence[Dim], operands: Sequence[Strides],
    is_nonnegative: Callable[[Dim], bool],
) -> int | None:  # fmt: skip
    """Return 1 if ``one`` lies inside of ``other``, -1 if outside, 0 if either may be."""
    for strides in operands:
        a, b = strides[one], strides[other]
        if _is_zero(a) or _is_zero(b):
            continue
        if definitely_equal(a, b):
            if definitely_equal(shape[one], shape[other]) or is_nonnegative(
                shape[other] - shape[one]
            ):
                continue
            return -1 if is_nonnegative(shape[one] - shape[other] - 1) else None
        if is_nonnegative(b - a):
            return 1
        return -1 if is_nonnegative(a - b) else None
    return 0


def _is_zero(stride: Dim) -> bool:
    return isinstance(stride, int) and stride == 0
