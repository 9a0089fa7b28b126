"""Elementwise functions, reductions and cumulative sums."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from hagane.nn.autograd import type_check
from hagane.nn.autograd.variable import Variable
from hagane.nn.functions.applying import array_of, constant_like, function, lift, require, shape_of
from hagane.nn.functions.arithmetic import absolute, add, mul, rdiv
from hagane.nn.functions.array import broadcast_to, reshape
from hagane.nn.functions.extremes import extreme, extreme_of_two
from hagane.ops.builder import op
from hagane.ops.functions.chainer import elementwise
from hagane.ops.values import array_dtype

__all__ = ["absolute", "add"]


def _elementwise(name: str, text: str, compute: Callable[[Any], Any]) -> Any:
    def define(x: Any) -> Any:
        require(name, "x", x, kind="f")
        return compute(x)

    define.__name__ = define.__qualname__ = name
    define.__doc__ = f"Return {text}, element by element."
    return function("x")(define)


def _operator(name: str) -> Callable[[Any], Any]:
    return lambda x: op(name, x)


def _over(x: Any, value: float) -> Any:
    return op("Div", constant_like(value, x), x)


def _scaled_log(x: Any, base: float) -> Any:
    if isinstance(x, Variable) and x.dtype == np.float16:  # rounded once, as by NumPy
        wide = op("Cast", x, to=array_dtype(np.empty(0, "f")))
        return op("Cast", _scaled_log(wide, base), to=array_dtype(x.array))
    return op("Mul", op("Log", x), constant_like(1 / np.log(base), x))


exp = _elementwise("exp", "``e ** x``", _operator("Exp"))
log = _elementwise("log", "the natural logarithm", _operator("Log"))
log2 = _elementwise("log2", "the logarithm to base 2", lambda x: _scaled_log(x, 2))
log10 = _elementwise("log10", "the logarithm to base 10", lambda x: _scaled_log(x, 10))
sqrt = _elementwise("sqrt", "the square root", _operator("Sqrt"))


@function("x", composed=True)
def rsqrt(x: Any) -> Any:
    """Return one over the square root, element by element."""
    require("rsqrt", "x", x, kind="f")
    return rdiv(sqrt(x), 1.0)


square = _elementwise("square", "the square", lambda x: op("Mul", x, x))
sin = _elementwise("sin", "the sine", _operator("Sin"))
cos = _elementwise("cos", "the cosine", _operator("Cos"))
tan = _elementwise("tan", "the tangent", _operator("Tan"))
arcsin = _elementwise("arcsin", "the inverse sine", _operator("Asin"))
arccos = _elementwise("arccos", "the inverse cosine", _operator("Acos"))
arctan = _elementwise("arctan", "the inverse tangent", _operator("Atan"))
sinh = _elementwise("sinh", "the hyperbolic sine", _operator("Sinh"))
cosh = _elementwise("cosh", "the hyperbolic cosine", _operator("Cosh"))
arctanh = _elementwise("arctanh", "the inverse hyperbolic tangent", _operator("Atanh"))
floor = _elementwise("floor", "the largest integer that is not above", _operator("Floor"))
ceil = _elementwise("ceil", "the least integer that is not below", _operator("Ceil"))
sign = _elementwise("sign", "-1, 0 or 1", _operator("Sign"))
erf = _elementwise("erf", "the error function", _operator("Erf"))


@function("x", composed=True)
def fix(x: Any) -> Any:
    """Return the nearest integer towards zero, element by element; no gradient flows through it."""
    require("fix", "x", x, kind="f")
    if isinstance(x, Variable):
        return lift(np.fix(x.array))
    low = op("Floor", x)
    return op("Where", op("Greater", constant_like(0, low), low), op("Ceil", x), low)


@function("x")
def clip(x: Any, x_min: Any, x_max: Any) -> Any:
    """Return elements brought between two bounds, None for none."""
    require("clip", "x", x, kind="f")
    if x_min is None and x_max is None:
        raise ValueError("clip: expected a bound, got x_min=None and x_max=None")
    if x_min is not None and x_max is not None and x_min > x_max:
        raise ValueError(f"clip: expected x_min <= x_max, got {x_min} > {x_max}")
    low = None if x_min is None else constant_like(x_min, x)
    high = None if x_max is None else constant_like(x_max, x)
    return op("Clip", x, low, high)


@function("x1", "x2")
def maximum(x1: Any, x2: Any) -> Any:
    """Return the larger of two arrays, element by element."""
    return extreme_of_two("Max", *_pair("maximum", x1, x2))


@function("x1", "x2")
def minimum(x1: Any, x2: Any) -> Any:
    """Return the smaller of two arrays, element by element."""
    return extreme_of_two("Min", *_pair("minimum", x1, x2))


def _pair(where: str, x1: Any, x2: Any) -> tuple[Any, Any]:
    if not isinstance(x1, Variable) and isinstance(x2, Variable):
        x1 = lift(constant_like(x1, x2))
    elif not isinstance(x2, Variable) and isinstance(x1, Variable):
        x2 = lift(constant_like(x2, x1))
    require(where, "x1", x1, kind="f")
    require(where, "x2", x2, dtype_as=("x1", x1))
    if isinstance(x1, Variable) and isinstance(x2, Variable):
        try:
            np.broadcast_shapes(x1.shape, x2.shape)
        except ValueError:
            raise type_check.refuse(
                where, "x1 and x2 to broadcast together", f"{x1.shape} and {x2.shape}"
            ) from None
    return x1, x2


@function("x", "divisor")
def fmod(x: Any, divisor: Any) -> Any:
    """Return the remainder of a division, of the sign of ``x``."""
    x, divisor = _pair("fmod", x, divisor)
    quotient = op("Div", x, divisor)
    whole = op(
        "Where",
        op("Greater", quotient, constant_like(0, x)),
        op("Floor", quotient),
        op("Ceil", quotient),
    )
    return op("Sub", x, op("Mul", whole, divisor))


@function("x1", "x2")
def arctan2(x1: Any, x2: Any) -> Any:
    """Return the angle of points ``(x2, x1)``, in radians."""
    require("arctan2", "x1", x1, kind="f")
    require("arctan2", "x2", x2, dtype_as=("x1", x1))
    from hagane.nn.functions.special import Arctan2

    return Arctan2().apply((x1, x2))[0]


@function("x1", "x2")
def squared_difference(x1: Any, x2: Any) -> Any:
    """Return ``(x1 - x2) ** 2``."""
    require("squared_difference", "x1", x1, kind="f")
    require("squared_difference", "x2", x2, dtype_as=("x1", x1), shape_as=("x1", x1))
    difference = op("Sub", x1, x2)
    return op("Mul", difference, difference)


@function("p", "x", "y")
def linear_interpolate(p: Any, x: Any, y: Any) -> Any:
    """Return ``p * x + (1 - p) * y``."""
    require("linear_interpolate", "p", p, kind="f")
    require("linear_interpolate", "x", x, dtype_as=("p", p), shape_as=("p", p))
    require("linear_interpolate", "y", y, dtype_as=("p", p), shape_as=("p", p))
    rest = op("Sub", constant_like(1, p), p)
    return op("Add", op("Mul", p, x), op("Mul", rest, y))


def axes_of(where: str, axis: Any, rank: int) -> list[int] | None:
    """Return reduced axes as non-negative numbers, None for all.

    Raises:
        TypeError: They are not ints.
        ValueError: One occurs twice.
        InvalidType: One is out of range.
    """
    if axis is None:
        return None
    given = (axis,) if isinstance(axis, int | np.integer) else axis
    if not isinstance(given, tuple) or not all(isinstance(a, int | np.integer) for a in given):
        raise TypeError(f"{where}: expected axis to be None, int or tuple of ints, got {axis!r}")
    found = []
    for one in given:
        if not -rank <= one < rank:
            raise type_check.refuse(where, f"{-rank} <= axis < {rank}", f"axis == {axis}")
        found.append(int(one) % rank)
    if len(set(given)) != len(given):
        raise ValueError(f"duplicate value in axis: {given}")
    if len(set(found)) != len(found):
        raise type_check.refuse(where, "axes to differ", f"axis == {axis}")
    return found


def reduced(name: str, x: Any, axes: list[int] | None, keepdims: bool) -> Any:
    """Return a reduction over axes."""
    if axes is not None and not axes:
        return op("Identity", x)
    given = None if axes is None else np.array(axes, np.int64)
    return op(name, x, given, keepdims=int(keepdims))


@function("x")
def sum(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """Return the sum over axes, by default over all."""
    require("sum", "x", x, kind="f")
    axes = axes_of("sum", axis, len(shape_of(x)))
    return reduced("ReduceSum", x, axes, keepdims)


@function("x")
def sum_to(x: Any, shape: Any) -> Any:
    """Return an array summed over the axes that make it larger than ``shape``."""
    found = tuple(shape_of(x))
    shape = tuple(shape)
    if found == shape:
        return x
    lead = len(found) - len(shape)
    if lead < 0:
        raise type_check.refuse("sum_to", f"x to have {shape} broadcast to it", f"{found}")
    axes = list(range(lead)) + [
        i + lead for i, n in enumerate(shape) if n == 1 and found[i + lead] != 1
    ]
    for i, n in enumerate(shape):
        if n != 1 and n != found[i + lead]:
            raise type_check.refuse("sum_to", f"{shape} to broadcast to x.shape", f"{found}")
    return reshape(reduced("ReduceSum", x, axes, True), shape)


@function("x")
def max(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """Return the largest element over axes."""
    require("max", "x", x, kind="f")
    return extreme("ReduceMax", x, axes_of("max", axis, len(shape_of(x))), keepdims)


@function("x")
def min(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """Return the smallest element over axes."""
    require("min", "x", x, kind="f")
    return extreme("ReduceMin", x, axes_of("min", axis, len(shape_of(x))), keepdims)


@function("x")
def prod(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """Return the product over axes."""
    require("prod", "x", x, kind="f")
    rank = len(shape_of(x))
    axes = axes_of("prod", axis, rank)
    from hagane.nn.functions.special import Product

    return Product(tuple(range(rank)) if axes is None else tuple(axes), keepdims).apply((x,))[0]


@function("x")
def argmax(x: Any, axis: Any = None) -> Any:
    """Return the place of the largest element, int32."""
    return _place("argmax", np.argmax, x, axis)


@function("x")
def argmin(x: Any, axis: Any = None) -> Any:
    """Return the place of the smallest element, int32."""
    return _place("argmin", np.argmin, x, axis)


def _place(where: str, find: Any, x: Any, axis: Any) -> Any:
    from hagane.nn.functions.special import Untracked

    require(where, "x", x, kind="f")
    if axis is not None and not isinstance(axis, int | np.integer):
        raise TypeError("axis must be None or int")
    axes_of(where, axis, x.ndim)
    along = None if axis is None else int(axis)
    written = partial(elementwise.place, axis=along, name="ArgM" + where[4:])
    return Untracked(where, lambda a: find(a, axis).astype(np.int32), written).apply((x,))[0]


@function("x", "weights")
def average(x: Any, axis: Any = None, weights: Any = None, keepdims: bool = False) -> Any:
    """Return the weighted mean over axes.

    Args:
        x: An array.
        axis: The axes, by default all.
        weights: One a element, or one a element of the axis; None for equal ones.
        keepdims: Whether the axes are kept with size one.
    """
    require("average", "x", x, kind="f")
    shape = tuple(shape_of(x))
    rank = len(shape)
    axes = axes_of("average", axis, rank)
    over = list(range(rank)) if axes is None else axes
    if weights is None:
        count = 1
        for i in over:
            count *= shape[i]
        # The divisor first: sums of float16 would overflow.
        return reduced(
            "ReduceSum",
            op("Mul", x, constant_like(1 / count if count else np.nan, x)),
            over,
            keepdims,
        )
    sizes = tuple(shape_of(weights))
    if sizes != shape:
        if len(over) != 1 or sizes != (shape[over[0]],):
            wanted = tuple(shape[i] for i in over)
            if sizes != wanted:
                raise type_check.refuse("average", f"weights.shape == {wanted}", f"{sizes}")
        weights = reshape(weights, tuple(n if i in over else 1 for i, n in enumerate(shape)))
        weights = op("Expand", weights, list(shape))
    total = reduced("ReduceSum", weights, over, keepdims)
    return op("Div", reduced("ReduceSum", op("Mul", x, weights), over, keepdims), total)


mean = average


@function("x")
def logsumexp(x: Any, axis: Any = None) -> Any:
    """Return the logarithm of the sum of exponentials over axes."""
    require("logsumexp", "x", x, kind="f")
    axes = axes_of("logsumexp", axis, len(shape_of(x)))
    return reduced("ReduceLogSumExp", x, axes, False)


@function("x")
def cumsum(x: Any, axis: int | None = None) -> Any:
    """Return the sums of elements up to each along an axis, or flat."""
    require("cumsum", "x", x, kind="f")
    if axis is None:
        x, axis = reshape(x, (-1,)), 0
    elif not isinstance(axis, int):
        raise TypeError("axis must be int or None")
    axes_of("cumsum", axis, len(shape_of(x)))
    return op("CumSum", x, np.array(axis, np.int64))


@function("x")
def cumprod(x: Any, axis: int | None = None) -> Any:
    """Return the products of elements up to each along an axis, or flat."""
    require("cumprod", "x", x, kind="f")
    if axis is None:
        x, axis = reshape(x, (-1,)), 0
    elif not isinstance(axis, int):
        raise TypeError("axis must be int or None")
    (place,) = axes_of("cumprod", axis, len(shape_of(x))) or (0,)
    from hagane.nn.functions.special import CumulativeProduct

    return CumulativeProduct(place).apply((x,))[0]


@function("x")
def batch_l2_norm_squared(x: Any) -> Any:
    """Return the sum of squares of each sample of a batch."""
    require("batch_l2_norm_squared", "x", x, kind="f", at_least=2)
    return op("ReduceSumSquare", x, list(range(1, len(shape_of(x)))), keepdims=0)


@function("x", "y", composed=True)
def bias(x: Any, y: Any, axis: int = 1) -> Any:
    """Return ``x + y``, ``y`` standing at the axes of ``x`` from ``axis`` on."""
    return add(x, _at_axes("bias", x, y, axis))


@function("x", "y", composed=True)
def scale(x: Any, y: Any, axis: int = 1) -> Any:
    """Return ``x * y``, ``y`` standing at the axes of ``x`` from ``axis`` on."""
    return mul(x, _at_axes("scale", x, y, axis))


def _at_axes(where: str, x: Any, y: Any, axis: int) -> Any:
    sizes, wanted = tuple(shape_of(y)), tuple(shape_of(x))
    if sizes != wanted[axis : axis + len(sizes)]:
        raise type_check.refuse(
            where, f"x.shape[{axis}:{axis + len(sizes)}] == y.shape", f"{wanted} and {sizes}"
        )
    after = len(wanted) - axis - len(sizes)
    return broadcast_to(reshape(y, (1,) * axis + sizes + (1,) * after), wanted)


def count_of(x: Any) -> int:
    """Return the number of elements."""
    return int(array_of(x).size)
