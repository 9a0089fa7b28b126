"""Operators of Python on variables.

A number or an array takes the element type of the variable beside it; two variables have to have
one element type.
"""

from __future__ import annotations

from hagane.frontends.libraries.chainer.operands import (
    broadcast_shape,
    floating,
    kind_of,
    made,
    same_dtype,
    shape_of,
    variable,
)
from hagane.frontends.libraries.chainer.table import CHAINER, VARIABLE, function
from hagane.frontends.libraries.numpy.operands import FLOATS, is_number
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.report.findings import CheckError
from hagane.frontends.python.values.values import Tensor, Value

_OPERATORS = {"add": "Add", "sub": "Sub", "mul": "Mul", "truediv": "Div", "pow": "Pow"}
_SIGNS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "mod": "%"}


def binary(t: Core, name: str, left: Value, right: Value) -> Tensor:
    """Return an arithmetic operator of a variable and a variable, an array or a number."""
    x = next(v for v in (left, right) if isinstance(v, Tensor) and v.kind == VARIABLE)
    a, b = _operand(t, left, x), _operand(t, right, x)
    same_dtype(t, a, b, "both variables")
    if name in ("pow", "floordiv") and isinstance(left, Tensor) and isinstance(right, Tensor):
        floating(t, a, "lhs")
    if name in _OPERATORS and a.dtype in FLOATS:
        found: Tensor = t.op(_OPERATORS[name], a, b, kind=VARIABLE)
        return found
    return made(t, name, [a, b], a.dtype, broadcast_shape(t, a, b))


def _operand(t: Core, value: Value, x: Tensor) -> Tensor:
    if isinstance(value, Tensor):
        if value.kind == VARIABLE:
            return variable(t, value)
        return variable(t, value if value.dtype == x.dtype else t.emit.like(value, x.dtype))
    if not is_number(value):
        t.fail(
            "type",
            f"expected a number, an array or a Variable beside {t.show(x)}, got "
            f"{t.show(t.wrap(value))}",
            x,
        )
    return t.emit.new(x.dtype, (), kind=VARIABLE)


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
    if name == "neg" and x.dtype in FLOATS:
        return t.op("Neg", variable(t, x))
    if name == "invert":
        raise CheckError("type", "TypeError: Variables do not support the operator ~")
    return made(t, name, [x], x.dtype, shape_of(t, x))


CHAINER.operator = operator
CHAINER.unary = unary


@function("add")
def add(t: Core, *xs: Value) -> Tensor:
    """Return the sum of variables."""
    result = variable(t, xs[0]) if xs else t.fail("call", "add() takes at least one variable")
    for other in xs[1:]:
        result = binary(t, "add", result, other)
    return result


def _two(name: str, operator_name: str) -> None:
    def run(t: Core, lhs: Value, rhs: Value) -> Tensor:
        return binary(t, operator_name, variable(t, lhs, "lhs"), rhs)

    function(name)(run)


for _name, _operator in (("sub", "sub"), ("mul", "mul"), ("div", "truediv"), ("pow", "pow")):
    _two(_name, _operator)


@function("maximum", "minimum")
def maximum(t: Core, x1: Value, x2: Value) -> Tensor:
    """Return the larger (or the smaller) elements of two variables."""
    a, b = floating(t, x1, "x1"), floating(t, x2, "x2")
    same_dtype(t, a, b, "x1 and x2")
    return made(t, "Max", [a, b], a.dtype, broadcast_shape(t, a, b))


@function("arctan2", "fmod")
def arctan2(t: Core, x1: Value, x2: Value) -> Tensor:
    """Return a function of two variables of one shape."""
    from hagane.frontends.libraries.chainer.operands import same_shape

    a, b = floating(t, x1, "x1"), floating(t, x2, "x2")
    same_dtype(t, a, b, "x1 and x2")
    same_shape(t, a, b, "x1 and x2")
    return made(t, "ArcTan2", [a, b], a.dtype, a.shape)


@function("squared_difference")
def squared_difference(t: Core, x1: Value, x2: Value) -> Tensor:
    """Return the square of the difference, element by element."""
    return arctan2(t, x1, x2)


@function("linear_interpolate")
def linear_interpolate(t: Core, p: Value, x: Value, y: Value) -> Tensor:
    """Return ``p * x + (1 - p) * y``; all have one shape."""
    from hagane.frontends.libraries.chainer.operands import same_shape

    found = [floating(t, v, n) for v, n in ((p, "p"), (x, "x"), (y, "y"))]
    for other in found[1:]:
        same_dtype(t, found[0], other, "p, x and y")
        same_shape(t, found[0], other, "p, x and y")
    return made(t, "Interpolate", found, found[0].dtype, found[0].shape)


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
    if len(shape) < start + len(own) or any(
        t.emit.differ(i, j) for i, j in zip(shape[start:], own, strict=False)
    ):
        t.fail(
            "shape-mismatch",
            f"expected the shape of {t.show(b)} in the axes of {t.show(a)} from axis {start}",
            a,
            b,
        )
    full = (*[1] * start, *own, *[1] * (len(shape) - start - len(own)))
    return binary(t, name, a, made(t, "Reshape", [b], b.dtype, full))


__all__ = ["binary", "kind_of", "operator", "unary"]
