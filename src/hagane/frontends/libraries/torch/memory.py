"""Tensors seen in another shape, or in another order of axes, over the same memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.values.strides import Strides, in_order, is_one, lie, strides_of
from hagane.frontends.python.values.values import Tensor, Value
from hagane.symbolic import Dim, Expr, symbols_of
from hagane.symbolic.path import Verdict

# The axes in their order in memory.
FORMATS = {"channels_last": (0, 2, 3, 1), "channels_last_3d": (0, 2, 3, 4, 1)}


def strides_in(t: Core, x: Tensor, memory_format: Value) -> Strides | None:
    """Return the strides of a format of memory; None if that is the order of the axes."""
    axes = FORMATS.get(memory_format) if isinstance(memory_format, str) else None
    if axes is None:
        return None
    shape = x.shape
    if shape is None or len(shape) != len(axes):
        t.fail("rank", f"{memory_format}: expected {len(axes)} axes, got {t.show(x)}", x)
    return lie(t.emit.new(x.dtype, shape), in_order(shape, axes)).strides


def turned(t: Core, x: Tensor, order: Sequence[int]) -> Tensor:
    """Return a tensor with its axes in another order; its memory stays as it is."""
    made: Tensor = t.op("Transpose", x, perm=list(order))
    strides = strides_of(x)
    return lie(made, [strides[place] for place in order])


def seen_as(t: Core, x: Tensor, shape: Sequence[Dim]) -> tuple[Strides | None, bool]:
    """Return the strides of a tensor's memory in another shape, and whether that is certain.

    Axes of which one begins where the next one ends are joined, and may be split anywhere; others
    stay apart. There are no strides if the shape joins what lies apart.
    """
    assert x.shape is not None
    certain = True

    def equal(left: Dim, right: Dim) -> bool:
        nonlocal certain
        verdict = t.knowledge.same(left, right).verdict
        certain = certain and verdict is not Verdict.UNKNOWN
        return verdict is Verdict.PROVED

    runs = _joined(x.shape, strides_of(x), equal)
    rest, found = list(shape), list[Dim]()
    for elements, stride in runs:
        total: Dim = 1
        while not equal(total, elements):
            if not rest:
                return None, certain
            size = rest.pop()
            found.append(total * stride)
            total = total * size
    found += [1] * len(rest)  # of one item each
    return tuple(reversed(found)), certain


def _joined(
    shape: Sequence[Dim], strides: Sequence[Dim], equal: Callable[[Dim, Dim], bool]
) -> list[tuple[Dim, Dim]]:
    """Return the elements and strides of axes that lie behind each other, last ones first."""
    runs: list[tuple[Dim, Dim]] = []
    for size, stride in zip(reversed(shape), reversed(strides), strict=True):
        if is_one(size):
            continue
        if runs and equal(stride, runs[-1][0] * runs[-1][1]):
            runs[-1] = (runs[-1][0] * size, runs[-1][1])
        else:
            runs.append((size, stride))
    return runs


def expect_viewable(t: Core, x: Tensor, made: Tensor) -> None:
    """Fail unless the memory of a tensor can be seen in the shape of another one without a copy."""
    if x.strides is None or x.shape is None or made.shape is None:
        return
    sizes = (*x.shape, *x.strides, *made.shape)
    if any(t.knowledge.invented & symbols_of(size) for size in sizes if isinstance(size, Expr)):
        return
    strides, certain = seen_as(t, x, made.shape)
    if strides is not None:
        lie(made, strides)
    elif certain:
        t.fail(
            "view",
            f"{t.show(x)} cannot be viewed as ({', '.join(map(str, made.shape))}): the strides of "
            f"its axes in memory are ({', '.join(map(str, x.strides))}), and the view joins or "
            "splits elements that are no neighbours",
            x,
            remedy="use .reshape(...), or .contiguous() before .view(...)",
        )
    else:
        t.assume(f"{t.show(x)} lies in memory as a view of it needs")
