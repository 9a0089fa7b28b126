"""Chainer's functions of elements: activations, mathematics, gates of recurrent cells."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import onnx_ir as ir

from hagane.ops.builder import op, rank_of, shape_of
from hagane.ops.functions.numbers import activations
from hagane.ops.functions.numbers.activations import number_like
from hagane.ops.functions.numbers.elementary import (
    add,
    cast,
    div,
    mul,
    square,
    squeeze,
    sub,
    unsqueeze,
    where,
)
from hagane.ops.functions.tensors.parts import flat


def clipped_relu(x: Any, z: float) -> Any:
    """Return ``min(max(x, 0), z)``."""
    return op("Clip", x, number_like(0, x), number_like(z, x))


def softplus(x: Any, beta: float) -> Any:
    """Return ``log(1 + exp(beta x)) / beta``."""
    return op("Softplus", x) if beta == 1 else div(op("Softplus", mul(x, beta)), beta)


def at_axes(y: Any, like: Any, axis: int) -> Any:
    """Return ``y`` as it stands at the axes of another value from ``axis`` on."""
    rank, own = rank_of(like), rank_of(y)
    return unsqueeze(y, [*range(axis), *range(axis + own, rank)])


def swish(x: Any, beta: Any) -> Any:
    """Return ``x sigmoid(beta x)``; beta has the first sizes of a sample."""
    return mul(x, op("Sigmoid", mul(x, at_axes(beta, x, 1))))


def prelu(x: Any, slope: Any) -> Any:
    """Return ``max(0, x) + slope min(0, x)``; the slope has the first sizes of a sample."""
    return activations.prelu(x, at_axes(slope, x, 1))


def crelu(x: Any, axis: int) -> Any:
    """Return the positive and the negative part, joined along an axis (Shang et al., 2016)."""
    return op("Relu", op("Concat", x, op("Neg", x), axis=axis))


def maxout(x: Any, pool_size: int, axis: int) -> Any:
    """Return the largest of each ``pool_size`` elements along an axis (Goodfellow et al., 2013)."""
    shape = list(shape_of(x))
    shape[axis : axis + 1] = [-1 if shape[axis] != 0 else 0, pool_size]
    return op("ReduceMax", op("Reshape", x, shape, allowzero=1), [axis + 1], keepdims=0)


def fix(x: Any) -> Any:
    """Return the nearest integer towards zero."""
    return where(op("Greater", x, number_like(0, x)), op("Floor", x), op("Ceil", x))


def erfc(x: Any) -> Any:
    """Return one minus the error function."""
    return sub(number_like(1, x), op("Erf", x))


def ndtr(x: Any) -> Any:
    """Return the cumulative distribution function of the normal distribution."""
    return mul(erfc(mul(x, -math.sqrt(0.5))), 0.5)


def arctan2(y: Any, x: Any) -> Any:
    """Return the angle of the points (x, y), in radians."""
    zero = number_like(0, x)
    right = op("Atan", div(y, where(op("Equal", x, zero), number_like(1, x), x)))
    # (The inverse tells zeros of different signs apart.)
    below = op("Or", op("Less", y, zero), op("Less", div(number_like(1, y), y), zero))
    turn = where(below, number_like(-math.pi, x), number_like(math.pi, x))
    upright = mul(op("Sign", y), math.pi / 2)
    aside = where(op("Less", x, zero), add(right, turn), right)
    return where(op("Equal", x, zero), upright, aside)


def interpolated(p: Any, x: Any, y: Any) -> Any:
    """Return ``p x + (1 - p) y``."""
    return add(mul(p, x), mul(sub(number_like(1, p), p), y))


def squared_difference(x: Any, y: Any) -> Any:
    """Return ``(x - y) ** 2``."""
    return square(sub(x, y))


def cumulative_sum(x: Any, axis: int | None) -> Any:
    """Return running sums along an axis; of all elements in order if None."""
    return op("CumSum", flat(x), 0) if axis is None else op("CumSum", x, axis)


def cumulative_product(x: Any, axis: int | None) -> Any:
    """Return running products along an axis; of all elements in order if None.

    Element i is the product of a row in which those after i are 1: time and memory grow with the
    square of the axis.
    """
    if axis is None:
        x, axis = flat(x), 0
    rank, size = rank_of(x), shape_of(x)[axis]
    places = op("Range", 0, size, 1)
    before = op("LessOrEqual", unsqueeze(places, [0]), unsqueeze(places, [1]))
    around = [*range(axis), *range(axis + 2, rank + 1)]
    rows = where(unsqueeze(before, around), unsqueeze(x, [axis]), number_like(1, x))
    return op("ReduceProd", rows, [axis + 1], keepdims=0)


def place(x: Any, axis: int | None, name: str) -> Any:
    """Return where the largest (``ArgMax``) or smallest element (``ArgMin``) is, int32."""
    found = op(name, flat(x) if axis is None else x, axis=axis or 0, keepdims=0)
    return cast(found, ir.DataType.INT32)


def weighted_mean(x: Any, weights: Any, axes: Sequence[int], keepdims: bool) -> Any:
    """Return the weighted mean over axes; weights have the shape of ``x`` or of its one axis."""
    if rank_of(weights) != rank_of(x):
        weights = at_axes(weights, x, axes[0])
    kept = int(keepdims)
    total = op("ReduceSum", op("Expand", weights, op("Shape", x)), list(axes), keepdims=kept)
    return div(op("ReduceSum", mul(x, weights), list(axes), keepdims=kept), total)


# Gates of recurrent cells.


def gates(x: Any, count: int, units: Any = -1) -> list[Any]:
    """Return the gates that lie interleaved along axis 1: (batch, count * units, ...)."""
    batch, _, *rest = shape_of(x)
    rows = op("Reshape", x, [batch, units, count, *rest])
    found = op("Split", rows, axis=2, num_outputs=count, outputs=count)
    return [squeeze(one, [2]) for one in found]


def lstm(cell: Any, x: Any) -> tuple[Any, Any]:
    """Return the next cell and the output of an LSTM (Zaremba et al., 2014).

    Args:
        cell: (batch, units, ...).
        x: Cell input, input gate, forget gate and output gate, interleaved in this order:
            (batch, 4 * units, ...).
    """
    a, i, f, o = gates(x, 4, shape_of(cell)[1])
    new = add(mul(op("Tanh", a), op("Sigmoid", i)), mul(op("Sigmoid", f), cell))
    return new, mul(op("Sigmoid", o), op("Tanh", new))


def slstm(first: Any, second: Any, x: Any, y: Any) -> tuple[Any, Any]:
    """Return the next cell and the output of an S-LSTM, which joins two (Zhu et al., 2015)."""
    (a, i, f, o), (b, j, g, p) = gates(x, 4), gates(y, 4)
    new = add(mul(op("Tanh", a), op("Sigmoid", i)), mul(op("Tanh", b), op("Sigmoid", j)))
    new = add(add(new, mul(op("Sigmoid", f), first)), mul(op("Sigmoid", g), second))
    return new, mul(op("Sigmoid", add(o, p)), op("Tanh", new))


def tree_lstm(cells: Sequence[Any], x: Any) -> tuple[Any, Any]:
    """Return the next cell and the output of a tree LSTM (Tai et al., 2015).

    Args:
        cells: Those of the children, (batch, units) each.
        x: Cell input, input gate, output gate and a forget gate for each child, one after another:
            (batch, (3 + children) * units).
    """
    count = 3 + len(cells)
    a, i, o, *forgets = op("Split", x, axis=1, num_outputs=count, outputs=count)
    new = mul(op("Tanh", a), op("Sigmoid", i))
    for forget, cell in zip(forgets, cells, strict=True):
        new = add(new, mul(op("Sigmoid", forget), cell))
    return new, mul(op("Sigmoid", o), op("Tanh", new))


def _operator(name: str) -> Callable[[Any], Any]:
    return lambda x: op(name, x)


# Functions of one value, by Chainer's names.
OF_ONE: dict[str, Callable[[Any], Any]] = {
    name: _operator(operator)
    for name, operator in {
        "relu": "Relu", "sigmoid": "Sigmoid", "tanh": "Tanh", "exp": "Exp", "log": "Log",
        "sqrt": "Sqrt", "sin": "Sin", "cos": "Cos", "tan": "Tan", "arcsin": "Asin",
        "arccos": "Acos", "arctan": "Atan", "sinh": "Sinh", "cosh": "Cosh", "arctanh": "Atanh",
        "erf": "Erf", "floor": "Floor", "ceil": "Ceil", "absolute": "Abs", "sign": "Sign",
    }.items()
}  # fmt: skip
OF_ONE |= {
    "relu6": lambda x: clipped_relu(x, 6.0),
    "hard_sigmoid": lambda x: op("HardSigmoid", x, alpha=0.2, beta=0.5),
    "expm1": activations.expm1,
    "log1p": activations.log1p,
    "log2": lambda x: activations.logarithm(x, 2),
    "log10": lambda x: activations.logarithm(x, 10),
    "square": square,
    "rsqrt": activations.rsqrt,
    "erfc": erfc,
    "fix": fix,
    "ndtr": ndtr,
}
