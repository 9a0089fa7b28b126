"""Arithmetic on variables."""

from __future__ import annotations

from typing import Any

import numpy as np

from hagane.nn.autograd import type_check
from hagane.nn.autograd.variable import Variable
from hagane.nn.functions.applying import constant_like, function, lift, require
from hagane.ops.builder import op


def _operands(where: str, a: Any, b: Any) -> tuple[Any, Any]:
    """Return two operands of one element type; numbers and arrays take that of the variable."""
    first, second = isinstance(a, Variable), isinstance(b, Variable)
    if first and isinstance(b, np.ndarray) and b.ndim:
        b, second = lift(b.astype(a.dtype, copy=False)), True
    elif second and isinstance(a, np.ndarray) and a.ndim:
        a, first = lift(a.astype(b.dtype, copy=False)), True
    if first and second:
        if a.dtype != b.dtype:
            raise type_check.refuse(where, "lhs.dtype == rhs.dtype", f"{a.dtype} != {b.dtype}")
        if a.shape != b.shape:
            try:
                np.broadcast_shapes(a.shape, b.shape)
            except ValueError:
                raise type_check.refuse(
                    where, "lhs and rhs to broadcast together", f"{a.shape} and {b.shape}"
                ) from None
        return a, b
    if first:
        return a, _plain(where, b, a)
    if second:
        return _plain(where, a, b), b
    return a, b


def _plain(where: str, value: Any, beside: Any) -> Any:
    if isinstance(value, bool | int | float | np.generic) or (
        isinstance(value, np.ndarray) and value.ndim == 0
    ):
        return constant_like(value, beside)
    if value is None or isinstance(value, str | list | tuple | dict):
        raise TypeError(
            f"{where}: expected a number, an array or a Variable, got {type(value).__name__}"
        )
    return value


@function("self")
def neg(self: Any) -> Any:
    """Return ``-x``."""
    return op("Neg", self)


@function("self")
def absolute(self: Any) -> Any:
    """Return ``|x|``, element by element."""
    return op("Abs", self)


@function()
def add(*xs: Any) -> Any:
    """Return the sum of arrays, which broadcast; of two, one may be a number."""
    if not xs:
        raise type_check.refuse("add", "one or more arguments", "0")
    if len(xs) > 2:
        xs = tuple(lift(x) for x in xs)
    total, *rest = lift(xs[0]), *xs[1:]
    for x in rest:
        if len(xs) > 2:
            require("add", "x", x, dtype_as=("x0", xs[0]))
        total = op("Add", *_operands("_ + _", total, x))
    return total


@function("a")
def sub(a: Any, b: Any) -> Any:
    """Return ``a - b``."""
    return op("Sub", *_operands("_ - _", a, b))


@function("a")
def rsub(a: Any, b: Any) -> Any:
    """Return ``b - a``."""
    return op("Sub", *_operands("_ - _", b, a))


@function("a")
def mul(a: Any, b: Any) -> Any:
    """Return ``a * b``."""
    return op("Mul", *_operands("_ * _", a, b))


def _is_integer_over_number(a: Any, b: Any) -> bool:
    """Whether Chainer multiplies by the reciprocal as an integer, which is 0 but for 1 and -1."""
    return isinstance(a, Variable) and a.dtype.kind in "iu" and isinstance(b, int | float)


@function("a")
def div(a: Any, b: Any) -> Any:
    """Return ``a / b``."""
    if _is_integer_over_number(a, b):
        return mul(a, int(1 / b))
    return op("Div", *_operands("_ / _", a, b))


@function("a")
def rdiv(a: Any, b: Any) -> Any:
    """Return ``b / a``."""
    return op("Div", *_operands("_ / _", b, a))


@function("a")
def floordiv(a: Any, b: Any) -> Any:
    """Return ``floor(a / b)``."""
    if _is_integer_over_number(a, b):
        return mul(a, int(1 / b))
    return op("Floor", op("Div", *_operands("_ // _", a, b)))


@function("a")
def rfloordiv(a: Any, b: Any) -> Any:
    """Return ``floor(b / a)``."""
    return op("Floor", op("Div", *_operands("_ // _", b, a)))


@function("a")
def pow(a: Any, b: Any) -> Any:
    """Return ``a ** b``."""
    if isinstance(b, int | float) and b == 2:
        return op("Mul", a, a)
    return op("Pow", *_operands("_ ** _", a, b))


@function("a")
def rpow(a: Any, b: Any) -> Any:
    """Return ``b ** a``."""
    return op("Pow", *_operands("_ ** _", b, a))


@function("a", "b")
def multiply_matrices(a: Any, b: Any) -> Any:
    """Return the product of matrices."""
    from hagane.nn.functions.products import matmul as product

    return product(a, b)


@function("a", "b")
def multiply_matrices_reversed(a: Any, b: Any) -> Any:
    """Return the product of matrices in reverse order."""
    from hagane.nn.functions.products import matmul as product

    return product(b, a)
