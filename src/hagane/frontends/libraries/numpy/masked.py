"""NumPy's reductions of some elements only (``where=``), and of a first value (``initial=``)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.frontends.libraries.computing import built
from hagane.frontends.libraries.numpy.operands import (
    BOOL,
    FLOATS,
    broadcast_shape,
    cast,
    shape_of,
    to_array,
)
from hagane.frontends.libraries.numpy.ufuncs import elementwise
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.values.values import (
    Tensor,
    Value,
    is_size,
)
from hagane.ops.functions.numbers.elementary import where as where_of

# The function of two elements that a reduction repeats, and the number that changes nothing.
_REPEATED: dict[str, tuple[str, Any]] = {
    "sum": ("add", 0), "nansum": ("add", 0), "prod": ("multiply", 1), "nanprod": ("multiply", 1),
    "max": ("maximum", None), "amax": ("maximum", None), "nanmax": ("fmax", None),
    "min": ("minimum", None), "amin": ("minimum", None), "nanmin": ("fmin", None),
    "any": ("logical_or", False), "all": ("logical_and", True),
}  # fmt: skip


def masked(t: Core, x: Tensor, where: Value, neutral: Value) -> Tensor:
    """Return an array with another number where a mask has none of its elements."""
    there = cast(t, to_array(t, where), BOOL)
    if x.dtype == BOOL and isinstance(neutral, bool):
        rest = elementwise(t, "logical_not", there) if neutral else there
        both: Tensor = elementwise(t, "logical_or" if neutral else "logical_and", x, rest)
        return both
    made = either(t, there, x, neutral)
    if len(shape_of(t, made)) != len(shape_of(t, x)):
        t.fail("shape-mismatch", f"where={t.show(there)} does not broadcast to {t.show(x)}", there)
    return made


def either(t: Core, there: Tensor, x: Tensor, other: Value) -> Tensor:
    """Return the elements of an array, and others where a condition does not hold.

    Unlike ``numpy.where``, of scalars it makes a scalar.
    """
    fill = cast(t, to_array(t, other), x.dtype)
    return built(t, (x.dtype, broadcast_shape(t, there, x, fill)), where_of, there, x, fill)


def selected(t: Core, name: str, x: Tensor, where: Value, initial: Value) -> Tensor:
    """Return an array whose reduction is that of the elements where a mask is true."""
    if where is True:
        return x
    neutral = _REPEATED[name][1]
    if neutral is None and initial is None:
        t.fail(
            "value", f"ValueError: reduction operation '{_REPEATED[name][0]}' does not have an "
            "identity, so to use a where mask one has to specify 'initial'", x,
        )  # fmt: skip
    return masked(t, x, where, initial if neutral is None else neutral)


def begun(
    t: Core, name: str, x: Tensor, places: Sequence[int], where: Value, initial: Value
) -> Tensor:
    """Return an array whose maximum or minimum is that of some elements and a first value.

    The first value becomes an element more along each axis that is reduced, which may have none.
    """
    x = selected(t, name, x, where, initial)
    if initial is None:
        return x
    if isinstance(initial, Tensor) or (x.dtype.is_integer() and not is_size(initial)):
        t.fail("value", f"expected initial= as a number that is {t.show(x)}'s type", x)
    widths = tuple((0, int(place in places)) for place in range(len(shape_of(t, x))))
    if not widths:
        return x
    made: Tensor = t.call_library("numpy.pad", [x, widths], {"constant_values": initial})
    return made


def continued(t: Core, name: str, made: Tensor, initial: Value) -> Tensor:
    """Return a reduction's result that began with a number."""
    if initial is None:
        return made
    first = cast(t, to_array(t, initial), made.dtype)
    joined: Tensor = elementwise(t, _REPEATED[name][0], made, first)
    return joined


def mean_of_selected(
    t: Core, x: Tensor, axis: Value, keepdims: Value, where: Value, *, numbers: bool
) -> Tensor:
    """Return the mean of the elements where a mask is true.

    Args:
        t: The interpreter.
        x: The array, of the result's type.
        axis: The axes, as the program gave them.
        keepdims: Whether they stay with size 1.
        where: The mask, or True.
        numbers: Whether NaN are left out.
    """
    there = _there(t, x, where, numbers=numbers)
    total = _sum(t, masked(t, x, there, 0), axis, keepdims)
    made: Tensor = elementwise(t, "divide", total, _count(t, x, there, axis, keepdims))
    return made


def variance_of_selected(
    t: Core, x: Tensor, axis: Value, keepdims: Value, where: Value, mean: Value, ddof: Value,
    *, numbers: bool,
) -> Tensor:  # fmt: skip
    """Return the variance of the elements where a mask is true, around a given mean if any.

    Args:
        t: The interpreter.
        x: The array, of the result's type.
        axis: The axes, as the program gave them.
        keepdims: Whether they stay with size 1.
        where: The mask, or True.
        mean: The mean, with all axes; None to compute it.
        ddof: The correction of the count.
        numbers: Whether NaN are left out.
    """
    there = _there(t, x, where, numbers=numbers)
    middle = (
        mean_of_selected(t, x, axis, True, where, numbers=numbers)
        if mean is None
        else cast(t, to_array(t, mean), x.dtype)
    )
    apart = masked(t, elementwise(t, "square", elementwise(t, "subtract", x, middle)), there, 0)
    count = elementwise(t, "subtract", _count(t, x, there, axis, keepdims), ddof)
    left = elementwise(t, "maximum", count, 0)
    found: Tensor = elementwise(t, "divide", _sum(t, apart, axis, keepdims), left)
    if not numbers:
        return found
    enough = elementwise(t, "greater", count, 0)
    return masked(t, found, enough, math.nan)


def _there(t: Core, x: Tensor, where: Value, *, numbers: bool) -> Value:
    if not numbers or x.dtype not in FLOATS:
        return where
    real = elementwise(t, "logical_not", elementwise(t, "isnan", x))
    return real if where is True else elementwise(t, "logical_and", real, where)


def _sum(t: Core, x: Tensor, axis: Value, keepdims: Value) -> Tensor:
    keywords = {"axis": axis, "dtype": _named(x.dtype), "keepdims": keepdims}
    made: Tensor = t.call_library("numpy.sum", [x], keywords)
    return made


def _count(t: Core, x: Tensor, there: Value, axis: Value, keepdims: Value) -> Tensor:
    ones = t.call_library("numpy.ones_like", [x])
    return _sum(t, ones if there is True else masked(t, ones, there, 0), axis, keepdims)


def _named(dtype: ir.DataType) -> str:
    return np.dtype(dtype.numpy()).name
