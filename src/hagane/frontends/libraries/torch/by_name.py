"""Operators of PyTorch's tensors that programs call by the names of their methods.

Reflected ones are those of ``torch/_tensor.py`` in PyTorch's sources.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def _add(self: Any, other: Any, /) -> Any:
    return self + other


def _radd(self: Any, other: Any, /) -> Any:
    return other + self


def _sub(self: Any, other: Any, /) -> Any:
    return self - other


def _rsub(self: Any, other: Any, /) -> Any:
    return other - self


def _mul(self: Any, other: Any, /) -> Any:
    return self * other


def _rmul(self: Any, other: Any, /) -> Any:
    return other * self


def _truediv(self: Any, other: Any, /) -> Any:
    return self / other


def _rtruediv(self: Any, other: Any, /) -> Any:
    return self.reciprocal() * other


def _floordiv(self: Any, other: Any, /) -> Any:
    return self // other


def _rfloordiv(self: Any, other: Any, /) -> Any:
    return other // self


def _mod(self: Any, other: Any, /) -> Any:
    return self % other


def _rmod(self: Any, other: Any, /) -> Any:
    return other % self


def _pow(self: Any, other: Any, /) -> Any:
    return self**other


def _rpow(self: Any, other: Any, /) -> Any:
    return other**self


def _rmatmul(self: Any, other: Any, /) -> Any:
    return other @ self


def _and(self: Any, other: Any, /) -> Any:
    return self & other


def _rand(self: Any, other: Any, /) -> Any:
    return other & self


def _or(self: Any, other: Any, /) -> Any:
    return self | other


def _ror(self: Any, other: Any, /) -> Any:
    return other | self


def _xor(self: Any, other: Any, /) -> Any:
    return self ^ other


def _rxor(self: Any, other: Any, /) -> Any:
    return other ^ self


def _lshift(self: Any, other: Any, /) -> Any:
    return self << other


def _rlshift(self: Any, other: Any, /) -> Any:
    return other << self


def _rshift(self: Any, other: Any, /) -> Any:
    return self >> other


def _rrshift(self: Any, other: Any, /) -> Any:
    return other >> self


def _eq(self: Any, other: Any, /) -> Any:
    return self == other


def _ne(self: Any, other: Any, /) -> Any:
    return self != other


def _lt(self: Any, other: Any, /) -> Any:
    return self < other


def _le(self: Any, other: Any, /) -> Any:
    return self <= other


def _gt(self: Any, other: Any, /) -> Any:
    return self > other


def _ge(self: Any, other: Any, /) -> Any:
    return self >= other


def _iadd(self: Any, other: Any, /) -> Any:
    self += other
    return self


def _isub(self: Any, other: Any, /) -> Any:
    self -= other
    return self


def _imul(self: Any, other: Any, /) -> Any:
    self *= other
    return self


def _itruediv(self: Any, other: Any, /) -> Any:
    self /= other
    return self


def _neg(self: Any, /) -> Any:
    return -self


def _pos(self: Any, /) -> Any:
    return +self


def _abs(self: Any, /) -> Any:
    return abs(self)


def _invert(self: Any, /) -> Any:
    return ~self


def _len(self: Any, /) -> Any:
    return len(self)


def _getitem(self: Any, index: Any, /) -> Any:
    return self[index]


def _setitem(self: Any, index: Any, value: Any, /) -> None:
    self[index] = value


_FUNCTIONS = (
    _add, _radd, _sub, _rsub, _mul, _rmul, _truediv, _rtruediv, _floordiv, _rfloordiv, _mod, _rmod,
    _pow, _rpow, _rmatmul, _and, _rand, _or, _ror, _xor, _rxor, _lshift, _rlshift, _rshift,
    _rrshift, _eq, _ne, _lt, _le, _gt, _ge, _iadd, _isub, _imul, _itruediv, _neg, _pos, _abs,
    _invert, _len, _getitem, _setitem,
)  # fmt: skip
METHODS: dict[str, Callable[..., Any]] = {
    f"__{program.__name__[1:]}__": program for program in _FUNCTIONS
}
METHODS |= {"__div__": _truediv, "__rdiv__": _rtruediv}
