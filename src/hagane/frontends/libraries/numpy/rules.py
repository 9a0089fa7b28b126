"""Universal functions as functions over the builder, by the kind of their operands."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import onnx_ir as ir

from hagane.ops.builder import dtype_of, op
from hagane.ops.functions.numbers import activations, division, integers, pairs
from hagane.ops.functions.numbers.elementary import cast, mul, where

Rule: TypeAlias = Callable[..., Any]


def _named(name: str) -> Rule:
    return partial(op, name)


def _not(rule: Rule) -> Rule:
    return lambda *operands: op("Not", rule(*operands))


def _byte(x: Any) -> Any:
    return cast(x, ir.DataType.UINT8)


def _never(x: Any) -> Any:
    """Return false for each element of integers or truth values."""
    return op("Not", op("Equal", x, x))


def _whole_inverse(x: Any) -> Any:
    """Return ``1 / x`` of integers, rounded toward zero."""
    return division.whole_quotient(np.array(1, dtype_of(x).numpy()), x)


def _truths(name: str) -> Rule:
    return lambda *operands: op(name, *(cast(x, ir.DataType.BOOL) for x in operands))


def _below_zero(x: Any) -> Any:
    """Return ``-x`` of unsigned integers, modulo the number of their values."""
    return op("Sub", np.zeros((), dtype_of(x).numpy()), x)


# By NumPy's kinds of elements: b truth values, i and u integers, f floats.
_ALL: dict[str, Rule] = {
    "equal": _named("Equal"), "not_equal": _not(_named("Equal")),
    "logical_and": _truths("And"), "logical_or": _truths("Or"),
    "logical_xor": _truths("Xor"), "logical_not": _truths("Not"),
    "conjugate": _named("Identity"),
}  # fmt: skip
_NUMBERS: dict[str, Rule] = {
    "less": _named("Less"), "less_equal": _named("LessOrEqual"),
    "greater": _named("Greater"), "greater_equal": _named("GreaterOrEqual"),
    "add": _named("Add"), "subtract": _named("Sub"), "multiply": _named("Mul"),
    "maximum": _named("Max"), "minimum": _named("Min"), "absolute": _named("Abs"),
    "positive": _named("Identity"), "sign": _named("Sign"), "square": lambda x: mul(x, x),
    "floor_divide": division.floor_quotient, "remainder": division.signed_remainder,
    "divmod": lambda x, y: (division.floor_quotient(x, y), division.signed_remainder(x, y)),
    "fmod": lambda x, y: op("Mod", x, y, fmod=1), "power": _named("Pow"),
}  # fmt: skip
_SIGNED: dict[str, Rule] = {"negative": _named("Neg"), "signbit": pairs.is_negative}
_INTEGERS: dict[str, Rule] = {
    "bitwise_and": _named("BitwiseAnd"), "bitwise_or": _named("BitwiseOr"),
    "bitwise_xor": _named("BitwiseXor"), "invert": _named("BitwiseNot"),
    "left_shift": integers.shift_left, "right_shift": integers.shift_right,
    "gcd": integers.greatest_divisor, "lcm": integers.least_multiple,
    "bitwise_count": integers.count_bits, "fmax": _named("Max"), "fmin": _named("Min"),
    "floor": _named("Identity"), "ceil": _named("Identity"), "trunc": _named("Identity"),
    "isnan": _never, "isinf": _never, "power": division.whole_power,
    "isfinite": lambda x: op("Not", _never(x)), "reciprocal": _whole_inverse,
}  # fmt: skip
_TRUTHS: dict[str, Rule] = {
    "bitwise_and": _named("And"), "bitwise_or": _named("Or"), "bitwise_xor": _named("Xor"),
    "invert": _named("Not"), "add": _named("Or"), "multiply": _named("And"),
    "maximum": _named("Or"), "minimum": _named("And"), "fmax": _named("Or"),
    "fmin": _named("And"), "absolute": _named("Identity"),
    "less": lambda x, y: op("Less", *map(_byte, (x, y))),
    "less_equal": lambda x, y: op("LessOrEqual", *map(_byte, (x, y))),
    "greater": lambda x, y: op("Greater", *map(_byte, (x, y))),
    "greater_equal": lambda x, y: op("GreaterOrEqual", *map(_byte, (x, y))),
    "floor": _named("Identity"), "ceil": _named("Identity"), "trunc": _named("Identity"),
    "isnan": _never, "isinf": _never,
    "isfinite": lambda x: op("Not", _never(x)),
}  # fmt: skip
_FLOATS: dict[str, Rule] = {
    "exp": _named("Exp"), "log": _named("Log"), "sqrt": _named("Sqrt"), "sin": _named("Sin"),
    "cos": _named("Cos"), "tan": _named("Tan"), "arcsin": _named("Asin"),
    "arccos": _named("Acos"), "arctan": _named("Atan"), "sinh": _named("Sinh"),
    "cosh": _named("Cosh"), "tanh": _named("Tanh"), "arcsinh": _named("Asinh"),
    "arccosh": _named("Acosh"), "arctanh": _named("Atanh"), "floor": _named("Floor"),
    "ceil": _named("Ceil"), "rint": _named("Round"), "reciprocal": _named("Reciprocal"),
    "divide": _named("Div"), "isnan": _named("IsNaN"), "isinf": _named("IsInf"),
    "isfinite": lambda x: op("Not", op("Or", op("IsNaN", x), op("IsInf", x))),
    "fabs": _named("Abs"), "trunc": activations.truncated, "expm1": activations.expm1,
    "log1p": activations.log1p, "exp2": activations.exp2,
    "log2": lambda x: activations.logarithm(x, 2.0),
    "log10": lambda x: activations.logarithm(x, 10.0),
    "hypot": division.hypotenuse, "logaddexp": division.log_add_exp,
    "logaddexp2": pairs.log_add_exp2, "arctan2": pairs.angle_of, "copysign": pairs.copy_sign,
    "heaviside": pairs.heaviside, "fmax": pairs.largest_number, "fmin": pairs.smallest_number,
    "float_power": _named("Pow"), "cbrt": pairs.cube_root, "modf": pairs.float_parts,
    "ldexp": pairs.scaled_by_two,
    "deg2rad": lambda x: mul(x, np.pi / 180), "radians": lambda x: mul(x, np.pi / 180),
    "rad2deg": lambda x: mul(x, 180 / np.pi), "degrees": lambda x: mul(x, 180 / np.pi),
}  # fmt: skip
_BY_KIND = {
    "b": {**_ALL, **_TRUTHS},
    "i": {**_ALL, **_NUMBERS, **_SIGNED, **_INTEGERS},
    "u": {**_ALL, **_NUMBERS, **_INTEGERS, "negative": _below_zero},
    "f": {**_ALL, **_NUMBERS, **_SIGNED, **_FLOATS},
}


_DIVIDING = frozenset(("floor_divide", "remainder", "divmod", "fmod"))


def rule_of(name: str, dtype: ir.DataType, *, by_zero: bool = False) -> Rule | None:
    """Return the function that computes a ufunc for elements of a type; None without one.

    Several names of one function have one rule.

    Args:
        name: Of the ufunc.
        dtype: The type of its operands' elements.
        by_zero: Whether a divisor may be 0, by which NumPy divides integers with the result 0.
    """
    own: str = getattr(np, name).__name__
    rule = _BY_KIND.get(dtype.numpy().kind, {}).get(own)
    return _none_by_zero(rule) if rule and by_zero and own in _DIVIDING else rule


def _none_by_zero(rule: Rule) -> Rule:
    def function(x: Any, y: Any) -> Any:
        none, one = (np.array(number, dtype_of(y).numpy()) for number in (0, 1))
        bad = op("Equal", y, none)
        found = rule(x, where(bad, one, y))
        several = found if isinstance(found, tuple) else (found,)
        parts = tuple(where(bad, none, part) for part in several)
        return parts if isinstance(found, tuple) else parts[0]

    return function


__all__ = ["Rule", "rule_of"]
