"""Sizes as operands, filling, and the undoing of broadcasting."""

from __future__ import annotations

from typing import Any

import numpy as np

from hagane.ops.builder import dtype_of, op, shape_of
from hagane.ops.functions.numbers.elementary import cast, squeeze


def sizes_of(x: Any) -> Any:
    """Return the shape of ``x`` as an operand: numbers where all are known."""
    shape = shape_of(x)
    return list(shape) if all(isinstance(dim, int) for dim in shape) else op("Shape", x)


def size_as_number(x: Any, axis: int, like: Any) -> Any:
    """Return the size of an axis, counted from the front, in the element type of a value."""
    size = shape_of(x)[axis]
    if isinstance(size, int):
        return float(size)
    return cast(op("Squeeze", op("Shape", x, start=axis, end=axis + 1), [0]), dtype_of(like))


def reshape_like(x: Any, like: Any) -> Any:
    """Return ``x`` in the shape of another value; ``x`` itself where it has that one."""
    if shape_of(x) == shape_of(like):
        return x
    return op("Reshape", x, sizes_of(like), allowzero=1)


def filled_like(x: Any, number: float) -> Any:
    """Return a tensor of one number in the shape and element type of ``x``."""
    content = np.full(1, number, dtype_of(x).numpy())
    return op("ConstantOfShape", sizes_of(x), value=content)


def zeros_like(x: Any) -> Any:
    """Return zeros in the shape and element type of ``x``."""
    return filled_like(x, 0)


def expand_like(x: Any, like: Any) -> Any:
    """Return ``x`` broadcast to the shape of another value; ``x`` itself where it has that one."""
    return x if shape_of(x) == shape_of(like) else op("Expand", x, sizes_of(like))


def unbroadcast(gradient: Any, operand: Any) -> Any:
    """Return the gradient of an operand from that of its broadcast form.

    Axes along which the operand was repeated are summed. Where two names of sizes leave open
    whether it was, that is found out when the graph runs.

    Args:
        gradient: The gradient of the broadcast form.
        operand: The operand, whose shape and element type the result has.
    """
    wide, narrow = shape_of(gradient), shape_of(operand)
    if wide == narrow:
        return cast(gradient, dtype_of(operand))
    extra = len(wide) - len(narrow)
    repeated = list(range(extra))
    is_open = False
    for axis, (got, had) in enumerate(zip(wide[extra:], narrow, strict=True), extra):
        if had == 1 and got != 1:
            repeated.append(axis)
        elif got != had:
            is_open = True
    if repeated:
        only_extra = len(repeated) == extra
        gradient = op("ReduceSum", gradient, repeated, keepdims=int(not only_extra))
        gradient = gradient if only_extra else squeeze(gradient, range(extra))
    if is_open:
        differs = op("Not", op("Equal", op("Shape", gradient), op("Shape", operand)))
        axes = op("Squeeze", op("NonZero", differs), [0])
        gradient = op("ReduceSum", gradient, axes, keepdims=1, noop_with_empty_axes=1)
        gradient = op("Reshape", gradient, op("Shape", operand), allowzero=1)
    return cast(gradient, dtype_of(operand))
