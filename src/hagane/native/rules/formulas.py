"""Elementwise operators as expressions over their operands."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from hagane.native.kernels.expression import (
    BOOL,
    FLOAT32,
    SMALL_TYPES,
    TINY_FLOATS,
    TINY_INTEGERS,
    WIDE_TYPES,
    Apply,
    Constant,
    Expression,
    Leaf,
    is_real,
)
from hagane.native.kernels.kernel import c_type
from hagane.native.lowering.facts import NotNative

Attributes = Mapping[str, Any]
Builder = Callable[[Attributes, Sequence[Expression], "np.dtype[Any]"], Expression]


FLOAT64 = np.dtype(np.float64)


def _is_float(dtype: np.dtype[Any]) -> bool:
    return dtype.kind == "f"


def _template(
    floats: str | None, integers: str | None = None, booleans: str | None = None
) -> Builder:
    """Return the builder of an operator whose text depends only on the kind of element."""

    def build(
        attributes: Attributes, arguments: Sequence[Expression], dtype: np.dtype[Any]
    ) -> Expression:
        kind = arguments[0].dtype
        text = floats if _is_float(kind) else booleans if kind == BOOL else integers
        if text is None:
            raise NotNative(f"element type {kind}")
        return Apply(text, tuple(arguments), dtype, vector=kind in (FLOAT32, BOOL))

    return build


def _folded(floats: str, integers: str) -> Builder:
    """Return the builder of an operator that takes any number of inputs, two at a time."""
    pair = _template(floats, integers)

    def build(
        attributes: Attributes, arguments: Sequence[Expression], dtype: np.dtype[Any]
    ) -> Expression:
        total = arguments[0]
        for argument in arguments[1:]:
            total = pair(attributes, (total, argument), dtype)
        return total

    return build


def _with_numbers(text: str, *names: str) -> Builder:
    """Return the builder of a float operator whose attributes are numbers in the text."""

    def build(
        attributes: Attributes, arguments: Sequence[Expression], dtype: np.dtype[Any]
    ) -> Expression:
        if not _is_float(dtype):
            raise NotNative(f"element type {dtype}")
        constants = tuple(Constant(float(attributes[name]), dtype) for name in names)
        return Apply(text, (arguments[0], *constants), dtype)

    return build


def _quotient(
    attributes: Attributes, arguments: Sequence[Expression], dtype: np.dtype[Any]
) -> Expression:
    unsigned = "_unsigned" if dtype.kind == "u" else ""
    return _template("{0} / {1}", f"hg_quotient{unsigned}({{0}}, {{1}})")(
        attributes, arguments, dtype
    )


def _power(
    attributes: Attributes, arguments: Sequence[Expression], dtype: np.dtype[Any]
) -> Expression:
    base, exponent = arguments
    if not _is_float(dtype):
        if exponent.dtype.kind in "iu":
            negative = "{1} < 0" if exponent.dtype.kind == "i" else "0"
            infinity = "INT64_MIN" if dtype.itemsize == 8 else "INT32_MIN"
            text = f"({c_type(dtype)})hg_power({{0}}, (uint64_t){{1}}, {negative}, {infinity})"
            return Apply(text, (base, exponent), dtype, vector=False)
        wide = Apply("pow((double){0}, (double){1})", (base, exponent), FLOAT64, vector=False)
        return _cast(attributes, (wide,), dtype)
    if isinstance(exponent, Constant):
        known = {
            2.0: "{0} * {0}",
            3.0: "{0} * {0} * {0}",
            1.0: "{0}",
            0.5: "v_sqrt({0})",
            -1.0: "v_reciprocal({0})",
            -0.5: "v_reciprocal(v_sqrt({0}))",
        }
        found = known.get(float(exponent.value))
        if found is not None:
            return Apply(found, (base,), dtype)
    if exponent.dtype != dtype:
        text = f"({c_type(dtype)})pow((double){{0}}, (double){{1}})"
        return Apply(text, (base, exponent), dtype, vector=False)
    return Apply("v_pow({0}, {1})", (base, exponent), dtype)


def _modulo(
    attributes: Attributes, arguments: Sequence[Expression], dtype: np.dtype[Any]
) -> Expression:
    if _is_float(dtype) and not attributes["fmod"]:
        return Apply("v_modulus({0}, {1})", tuple(arguments), dtype, vector=False)
    name = "hg_remainder" if attributes["fmod"] else "hg_modulus"
    if dtype.kind == "u":
        name = "hg_remainder_unsigned"
    return _template("v_fmod({0}, {1})", f"{name}({{0}}, {{1}})")(attributes, arguments, dtype)


def _clip(
    attributes: Attributes, arguments: Sequence[Expression], dtype: np.dtype[Any]
) -> Expression:
    result = arguments[0]
    names = (
        ("v_max({0}, {1})", "({0} > {1} ? {0} : {1})"),
        ("v_min({0}, {1})", "({0} < {1} ? {0} : {1})"),
    )
    for (floats, integers), bound in zip(names, arguments[1:], strict=False):
        if bound is not None:
            result = _template(floats, integers)(attributes, (result, bound), dtype)
    return result


def _gelu(
    attributes: Attributes, arguments: Sequence[Expression], dtype: np.dtype[Any]
) -> Expression:
    name = "v_gelu_tanh" if attributes["approximate"] == "tanh" else "v_gelu"
    return _template(f"{name}({{0}})")(attributes, arguments, dtype)


def _swish(
    attributes: Attributes, arguments: Sequence[Expression], dtype: np.dtype[Any]
) -> Expression:
    if attributes["alpha"] == 1.0:
        return _template("v_swish({0})")(attributes, arguments, dtype)
    return _with_numbers("{0} * v_sigmoid({1} * {0})", "alpha")(attributes, arguments, dtype)


def _where(
    attributes: Attributes, arguments: Sequence[Expression], dtype: np.dtype[Any]
) -> Expression:
    if dtype in (FLOAT32, np.dtype(np.float64)):
        return Apply("v_sel({0}, {1}, {2})", tuple(arguments), dtype, vector=dtype == FLOAT32)
    return Apply("({0} ? {1} : {2})", tuple(arguments), dtype, vector=False)


def _cast(
    attributes: Attributes, arguments: Sequence[Expression], dtype: np.dtype[Any]
) -> Expression:
    (source,) = arguments
    if source.dtype == dtype:
        return source
    if dtype == BOOL:
        if source.dtype == FLOAT32:
            return Apply("v_nonzero({0})", (source,), dtype)
        return Apply("({0} != 0)", (source,), dtype, vector=False)
    if source.dtype == BOOL and dtype == FLOAT32:
        return Apply("v_of_mask({0})", (source,), dtype)
    loaded_so = isinstance(source, Leaf) and source.dtype in WIDE_TYPES
    if (source.dtype in SMALL_TYPES or loaded_so) and dtype == FLOAT32:
        return Apply("{0}", (source,), dtype)
    return Apply(_converted(attributes, source.dtype, dtype), (source,), dtype, vector=False)


def _converted(attributes: Attributes, source: np.dtype[Any], to: np.dtype[Any]) -> str:
    """Return the C text of a conversion between numbers in registers."""
    if to in TINY_FLOATS:
        saturate = int(attributes.get("saturate", 1))
        if to.name == "float8_e8m0fnu":
            mode = str(attributes.get("round_mode", "up")).upper()
            return f"hg_round_e8m0((float){{0}}, {saturate}, HG_{mode})"
        return f"hg_round_{TINY_FLOATS[to]}((float){{0}}, {saturate})"
    if to in TINY_INTEGERS:
        number = "hg_to_i32({0})" if is_real(source) else "{0}"
        return f"s_load_{TINY_INTEGERS[to]}((uint8_t){number})"
    if is_real(source) and to.kind in "iu":
        if to.name == "uint32":
            below = "{0} >= -0x1p31 ? (uint32_t)(int32_t){0} : 0x80000000u"
            above = "{0} < 0x1p32 ? (uint32_t)(int64_t){0} : 0u"
            return f"({{0}} >= 0x1p31 ? ({above}) : {below})"
        if to.name not in ("int32", "int64"):
            through = "u64" if to.name == "uint64" else "i32"
            return f"({c_type(to)})hg_to_{through}({{0}})"
        # As the processor has it: numbers that do not fit become the smallest one.
        low, high = ("-0x1p63", "0x1p63") if to.name == "int64" else ("-0x1p31", "0x1p31")
        least = "INT64_MIN" if to.name == "int64" else "INT32_MIN"
        return f"({{0}} >= {low} && {{0}} < {high} ? ({c_type(to)}){{0}} : {least})"
    return f"({c_type(to)}){{0}}"


def _mean(
    attributes: Attributes, arguments: Sequence[Expression], dtype: np.dtype[Any]
) -> Expression:
    total = _folded("{0} + {1}", "{0} + {1}")(attributes, arguments, dtype)
    return Apply("{0} / {1}", (total, Constant(float(len(arguments)), dtype)), dtype)


def _compare(name: str, sign: str) -> Builder:
    def build(
        attributes: Attributes, arguments: Sequence[Expression], dtype: np.dtype[Any]
    ) -> Expression:
        kind = arguments[0].dtype
        if kind == BOOL:
            return _template(None, None, "v_not(v_xor({0}, {1}))")(attributes, arguments, dtype)
        if _is_float(kind):
            return Apply(f"v_{name}({{0}}, {{1}})", tuple(arguments), BOOL, vector=kind == FLOAT32)
        return Apply(f"({{0}} {sign} {{1}})", tuple(arguments), BOOL, vector=False)

    return build


def _shift(
    attributes: Attributes, arguments: Sequence[Expression], dtype: np.dtype[Any]
) -> Expression:
    bits = 8 * dtype.itemsize
    # C leaves shifts by the width and more, or by less than zero, undefined; here nothing is left
    # of the number but, to the right, copies of its sign.
    inside = f"((uint64_t){{1}} < {bits})"
    if attributes["direction"] == "LEFT":
        text = f"({inside} ? ({c_type(dtype)})((uint64_t){{0}} << {{1}}) : 0)"
    else:
        text = (
            f"({inside} ? {{0}} >> {{1}} : {f'{{0}} >> {bits - 1}' if dtype.kind == 'i' else '0'})"
        )
    return Apply(text, tuple(arguments), dtype, vector=False)


def _is_infinite(
    attributes: Attributes, arguments: Sequence[Expression], dtype: np.dtype[Any]
) -> Expression:
    below, above = bool(attributes["detect_negative"]), bool(attributes["detect_positive"])
    text = {
        (True, True): "v_isinf({0})",
        (True, False): "v_and(v_isinf({0}), v_lt({0}, v_num(0)))",
        (False, True): "v_and(v_isinf({0}), v_gt({0}, v_num(0)))",
        (False, False): "v_lt({0}, {0})",
    }[below, above]
    return _template(text)(attributes, arguments, dtype)


def _first(
    attributes: Attributes, arguments: Sequence[Expression], dtype: np.dtype[Any]
) -> Expression:
    return arguments[0]


_ABS = "({0} < 0 ? 0 - {0} : {0})"
_POSITIVE = "v_max({0}, v_num(0))"
_NEGATIVE = "v_min({0}, v_num(0))"
# A sum of both sides would make NaN of zero times a factor that is not finite.
_IF_NEGATIVE = "v_sel(v_lt({0}, v_num(0))"
BUILDERS: dict[str, Builder] = {
    "Abs": _template("v_abs({0})", _ABS),
    "Acos": _template("v_acos({0})"),
    "Acosh": _template("v_acosh({0})"),
    "Add": _template("{0} + {1}", "{0} + {1}"),
    "And": _template(None, None, "v_and({0}, {1})"),
    "Asin": _template("v_asin({0})"),
    "Asinh": _template("v_asinh({0})"),
    "Atan": _template("v_atan({0})"),
    "Atanh": _template("v_atanh({0})"),
    "BitShift": _shift,
    "BitwiseAnd": _template(None, "{0} & {1}"),
    "BitwiseNot": _template(None, "~{0}"),
    "BitwiseOr": _template(None, "{0} | {1}"),
    "BitwiseXor": _template(None, "{0} ^ {1}"),
    "Cast": _cast,
    "CastLike": lambda attributes, arguments, dtype: _cast(attributes, arguments[:1], dtype),
    "Ceil": _template("v_ceil({0})", "{0}"),
    "Celu": _with_numbers(f"{_POSITIVE} + {{1}} * v_expm1({_NEGATIVE} / {{1}})", "alpha"),
    "Clip": _clip,
    "Cos": _template("v_cos({0})"),
    "Cosh": _template("v_cosh({0})"),
    "Div": _quotient,
    "Dropout": _first,
    "Elu": _with_numbers(f"{_IF_NEGATIVE}, {{1}} * v_expm1({_NEGATIVE}), {{0}})", "alpha"),
    "Equal": _compare("eq", "=="),
    "Erf": _template("v_erf({0})"),
    "Exp": _template("v_exp({0})"),
    "Floor": _template("v_floor({0})", "{0}"),
    "Gelu": _gelu,
    "Greater": _compare("gt", ">"),
    "GreaterOrEqual": _compare("ge", ">="),
    "HardSigmoid": _with_numbers(
        "v_max(v_min({1} * {0} + {2}, v_num(1)), v_num(0))", "alpha", "beta"
    ),
    # Near -3 the sum is exact, where x / 6 + 1/2 would keep few digits.
    "HardSwish": _template(
        "{0} * (v_max(v_min({0} + v_num(3), v_num(6)), v_num(0)) * v_num(0.16666666666666666))"
    ),
    "Identity": _first,
    "IsInf": _is_infinite,
    "IsNaN": _template("v_isnan({0})"),
    "LeakyRelu": _with_numbers(f"{_IF_NEGATIVE}, {{1}} * {{0}}, {{0}})", "alpha"),
    "Less": _compare("lt", "<"),
    "LessOrEqual": _compare("le", "<="),
    "Log": _template("v_log({0})"),
    "Max": _folded("v_max({0}, {1})", "({0} > {1} ? {0} : {1})"),
    "Mean": _mean,
    "Min": _folded("v_min({0}, {1})", "({0} < {1} ? {0} : {1})"),
    "Mish": _template("v_mish({0})"),
    "Mod": _modulo,
    "Mul": _template("{0} * {1}", "{0} * {1}"),
    "Neg": _template("v_neg({0})", "0 - {0}"),
    "Not": _template(None, None, "v_not({0})"),
    "Or": _template(None, None, "v_or({0}, {1})"),
    "Pow": _power,
    # A sum of both sides would let an infinite slope spoil positive numbers.
    "PRelu": _template("v_sel(v_lt({0}, v_num(0)), {1} * {0}, {0})"),
    "Reciprocal": _template("v_reciprocal({0})"),
    "Relu": _template("v_relu({0})", "({0} > 0 ? {0} : 0)"),
    "Round": _template("v_round({0})"),
    "Selu": _with_numbers(
        f"{{2}} * v_sel(v_gt({{0}}, v_num(0)), {{0}}, {{1}} * v_expm1({_NEGATIVE}))",
        *("alpha", "gamma"),
    ),
    "Shrink": _with_numbers(
        "v_sel(v_lt({0}, v_neg({1})), {0} + {2}, v_sel(v_gt({0}, {1}), {0} - {2}, v_num(0)))",
        "lambd",
        "bias",
    ),
    "Sigmoid": _template("v_sigmoid({0})"),
    "Sign": _template("v_sign({0})", "(({0} > 0) - ({0} < 0))"),
    "Sin": _template("v_sin({0})"),
    "Sinh": _template("v_sinh({0})"),
    "Softplus": _template("v_softplus({0})"),
    "Softsign": _template("{0} / (v_num(1) + v_abs({0}))"),
    "Sqrt": _template("v_sqrt({0})"),
    "Sub": _template("{0} - {1}", "{0} - {1}"),
    "Sum": _folded("{0} + {1}", "{0} + {1}"),
    "Swish": _swish,
    "Tan": _template("v_tan({0})"),
    "Tanh": _template("v_tanh({0})"),
    "ThresholdedRelu": _with_numbers("v_sel(v_gt({0}, {1}), {0}, v_num(0))", "alpha"),
    "Where": _where,
    "Xor": _template(None, None, "v_xor({0}, {1})"),
}
