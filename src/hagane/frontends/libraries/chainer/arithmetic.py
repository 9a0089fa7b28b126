"""Operators of Python on variables.

A number or an array takes the element type of the variable beside it; two variables have to have
one element type.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import onnx_ir as ir

from hagane.frontends.libraries.chainer.operands import (
    broadcast_shape,
    computed,
    floating,
    kind_of,
    same_dtype,
    same_shape,
    shape_of,
    variable,
)
from hagane.frontends.libraries.chainer.table import CHAINER, VARIABLE, function
from hagane.frontends.libraries.numpy.operands import FLOATS, is_number
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.report.findings import CheckError
from hagane.frontends.python.values.values import (
    Real,
    Tensor,
    Truth,
    Value,
)
from hagane.ops.builder import op
from hagane.ops.functions.chainer import elementwise as functions
from hagane.ops.functions.numbers.division import floor_quotient
from hagane.ops.functions.numbers.elementary import cast as cast_to
from hagane.ops.functions.numbers.elementary import unsqueeze
from hagane.symbolic import Expr, definitely_equal

_OPERATORS = {"add": "Add", "sub": "Sub", "mul": "Mul", "truediv": "Div", "pow": "Pow"}
_SIGNS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "mod": "%"}


def binary(t: Core, name: str, left: Value, right: Value) -> Tensor:
    """Return an arithmetic operator of a variable and a variable, an array or a number."""
    x = next(v for v in (left, right) if isinstance(v, Tensor) and v.kind == VARIABLE)
    a, b = _operand(t, left, x), _operand(t, right, x)
    same_dtype(t, a, b, "both variables")
    if name in ("truediv", "floordiv") and x.dtype not in FLOATS:
        return _integer_quotient(t, x, left, right)
    if name in ("pow", "floordiv") and isinstance(left, Tensor) and isinstance(right, Tensor):
        floating(t, a, "lhs")
    if name in _OPERATORS and a.dtype in FLOATS:
        found: Tensor = t.op(_OPERATORS[name], a, b, kind=VARIABLE)
        return found
    shape = broadcast_shape(t, a, b)
    if name in _OPERATORS:
        run = partial(op, _OPERATORS[name])
        return computed(t, (a.dtype, shape), run, a, b)
    return computed(t, (a.dtype, shape), floor_quotient, a, b)


def _integer_quotient(t: Core, x: Tensor, left: Value, right: Value) -> Tensor:
    """Return an integer variable over a number: times its reciprocal as an integer."""
    if not isinstance(right, int | float) or right == 0:
        floating(t, x, "lhs" if left is x else "rhs")
    return binary(t, "mul", x, int(1 / right))


def _operand(t: Core, value: Value, x: Tensor) -> Tensor:
    if isinstance(value, Tensor):
        if value.kind == VARIABLE:
            return variable(t, value)
        if value.dtype == x.dtype:
            return variable(t, value)
        made = computed(t, (x.dtype, value.shape), cast_to, value, x.dtype)
        made.origin = value.origin
        return made
    if not is_number(value):
        t.fail(
            "type",
            f"expected a number, an array or a Variable beside {t.show(x)}, got "
            f"{t.show(t.wrap(value))}",
            x,
        )
    return _scalar(t, value, x.dtype)


def _scalar(t: Core, value: Value, dtype: ir.DataType) -> Tensor:
    """Return a number as a variable without axes."""
    made: Tensor | None = None
    if isinstance(value, Real):
        made = t.emit.real_scalar(value)
    elif isinstance(value, Truth):
        made = t.emit.truth_scalar(value)
    elif isinstance(value, Expr):
        made = t.emit.constant(value, ir.DataType.INT64)
    else:
        return t.emit.constant(value, dtype).seen_as(VARIABLE)
    if made is None:
        return t.emit.new(dtype, (), kind=VARIABLE)
    return computed(t, (dtype, ()), cast_to, made, dtype)


def operator(t: Core, name: str, left: Value, right: Value) -> Value:
    """Return ``left op right``; ``+=`` and others make new variables."""
    if name.startswith("i") and name[1:] in (*_OPERATORS, "floordiv", "matmul"):
        name = name[1:]
    left, right = t.unwrap(left), t.unwrap(right)
    if name in _SIGNS:
        raise CheckError(
            "type",
            f"TypeError: Variables do not support the operator {_SIGNS[name]}",
            remedy="compare the arrays: x.array",
            tensors=tuple(v for v in (left, right) if isinstance(v, Tensor)),
        )
    if name == "matmul":
        return t.call_library("chainer.functions.matmul", [left, right])
    if name not in (*_OPERATORS, "floordiv"):
        raise CheckError("type", f"TypeError: Variables do not support the operator '{name}'")
    return binary(t, name, left, right)


def unary(t: Core, name: str, x: Tensor) -> Value:
    """Return an operator of Python on one variable."""
    if name == "invert":
        raise CheckError("type", "TypeError: Variables do not support the operator ~")
    operator_name = {"neg": "Neg", "abs": "Abs", "pos": "Identity"}[name]
    return computed(t, (x.dtype, shape_of(t, x)), lambda x: op(operator_name, x), variable(t, x))


CHAINER.operator = operator
CHAINER.unary = unary


@function("add")
def add(t: Core, *xs: Value) -> Tensor:
    """Return the sum of variables."""
    result = variable(t, xs[0]) if xs else t.fail("call", "add() takes at least one variable")
    for other in xs[1:]:
        result = binary(t, "add", result, other)
    return result


def _extreme(name: str, operator_name: str) -> None:
    def run(t: Core, x1: Value, x2: Value) -> Tensor:
        a, b = floating(t, x1, "x1"), floating(t, x2, "x2")
        same_dtype(t, a, b, "x1 and x2")
        shape = broadcast_shape(t, a, b)
        return computed(t, (a.dtype, shape), lambda a, b: op(operator_name, a, b), a, b)

    function(name)(run)


_extreme("maximum", "Max")
_extreme("minimum", "Min")


def _pairwise(name: str, run_: Callable[..., Any], *, one_shape: bool = False) -> None:
    """Register a function of two variables, which broadcast or are of one shape."""

    def run(t: Core, x1: Value, x2: Value) -> Tensor:
        a, b = floating(t, x1, "x1"), floating(t, x2, "x2")
        same_dtype(t, a, b, "x1 and x2")
        if one_shape:
            same_shape(t, a, b, "x1 and x2")
        return computed(t, (a.dtype, broadcast_shape(t, a, b)), run_, a, b)

    function(name)(run)


_pairwise("arctan2", functions.arctan2)
_pairwise("fmod", lambda x, y: op("Mod", x, y, fmod=1))
_pairwise("squared_difference", functions.squared_difference, one_shape=True)


@function("linear_interpolate")
def linear_interpolate(t: Core, p: Value, x: Value, y: Value) -> Tensor:
    """Return ``p * x + (1 - p) * y``; all have one shape."""
    found = [floating(t, v, n) for v, n in ((p, "p"), (x, "x"), (y, "y"))]
    for other in found[1:]:
        same_dtype(t, found[0], other, "p, x and y")
        same_shape(t, found[0], other, "p, x and y")
    return computed(t, found[0], functions.interpolated, *found)


@function("scale")
def scale(t: Core, x: Value, y: Value, axis: Value = 1) -> Tensor:
    """Return ``x * y`` with y placed at an axis of x."""
    return _placed(t, "mul", x, y, axis)


@function("bias")
def bias(t: Core, x: Value, y: Value, axis: Value = 1) -> Tensor:
    """Return ``x + y`` with y placed at an axis of x."""
    return _placed(t, "add", x, y, axis)


def _placed(t: Core, name: str, x: Value, y: Value, axis: Value) -> Tensor:
    a, b = variable(t, x, "x"), variable(t, y, "y")
    shape, own = shape_of(t, a), shape_of(t, b)
    start = axis if isinstance(axis, int) else 1
    if start < 0:
        t.fail("value", f"expected an axis of 0 or more, from which y is placed, got {start}", a, b)
    if len(shape) < start + len(own) or any(
        not definitely_equal(j, 1) and t.emit.differ(i, j)
        for i, j in zip(shape[start:], own, strict=False)
    ):
        t.fail(
            "shape-mismatch",
            f"expected the shape of {t.show(b)} in the axes of {t.show(a)} from axis {start}",
            a,
            b,
        )
    full = (*[1] * start, *own, *[1] * (len(shape) - start - len(own)))
    axes = [*range(start), *range(start + len(own), len(shape))]
    return binary(t, name, a, computed(t, (b.dtype, full), lambda b: unsqueeze(b, axes), b))


__all__ = ["binary", "kind_of", "operator", "unary"]
