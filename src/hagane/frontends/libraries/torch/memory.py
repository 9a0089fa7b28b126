"""Tensors seen in another shape, or in another order of axes, over the same memory."""

from __future__ import annotations

from collections.abc import Sequence

from hagane.frontends.libraries.memory.seeing import seen_as
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.values.strides import Strides, in_order, lie, strides_of
from hagane.frontends.python.values.values import Tensor, Value
from hagane.symbolic import Expr, symbols_of

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
