"""Functions that write their result into their operand: ``x.add_(y)``, ``torch.relu_(x)``."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from hagane.frontends.libraries.torch.functions.numbers.storing import stored
from hagane.frontends.libraries.torch.table import TORCH
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.values.values import Value

# Methods of tensors without their last underscore; torch has those in _AT_ROOT as functions too.
_AT_ROOT = (
    "abs", "acos", "acosh", "arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctanh", "asin",
    "asinh", "atan", "atanh", "ceil", "clamp", "clamp_max", "clamp_min", "clip", "conj_physical",
    "cos", "cosh", "deg2rad", "erf", "erfc", "exp", "exp2", "expm1", "fill", "fix", "floor",
    "frac", "gcd", "i0", "index_put", "lcm", "ldexp", "log", "log10", "log1p", "log2", "logit",
    "nan_to_num", "neg", "negative", "rad2deg", "reciprocal", "relu", "round", "rsqrt", "sigmoid",
    "sin", "sinc", "sinh", "sqrt", "square", "tan", "tanh", "trunc", "xlogy", "zero", "addmv",
)  # fmt: skip
_METHODS = (
    *_AT_ROOT,
    "absolute", "addbmm", "addcdiv", "addcmul", "addmm", "addr", "arctan2", "atan2", "baddbmm",
    "bitwise_and", "bitwise_left_shift", "bitwise_not", "bitwise_or", "bitwise_right_shift",
    "bitwise_xor", "copysign", "cumprod", "cumsum", "digamma", "eq", "erfinv",
    "float_power", "ge", "greater", "greater_equal", "gt", "heaviside", "hypot", "igamma",
    "igammac", "index_add", "index_copy", "index_fill", "index_reduce", "le", "lerp", "less",
    "less_equal", "lgamma", "logical_and", "logical_not", "logical_or", "logical_xor", "lt",
    "masked_fill", "masked_scatter", "mvlgamma", "ne", "nextafter", "not_equal", "polygamma",
    "put", "renorm", "scatter", "scatter_add", "scatter_reduce", "sgn", "sign", "tril", "triu",
)  # fmt: skip


def _written(plain: Callable[..., Value]) -> Callable[..., Value]:
    @wraps(plain)
    def function(t: Core, input: Value, *arguments: Any, **keywords: Any) -> Value:
        return stored(t, input, plain(t, input, *arguments, **keywords))

    return function


def enter() -> None:
    """Enter them beside the functions that compute their results, once these are all there."""
    methods = TORCH.methods[TORCH.tensor]
    for name in _METHODS:
        if name in methods:
            methods[f"{name}_"] = _written(methods[name])
    for name in _AT_ROOT:
        if f"{name}_" in methods:
            TORCH.function(f"{name}_")(methods[f"{name}_"])
    for name in _EACH:
        for method in (name, f"{name}_"):
            if method in methods:
                TORCH.function(f"_foreach_{method}")(_each(method))


# Functions of lists of tensors, one behind the other: ``torch._foreach_mul_(averages, 0.99)``.
_EACH = (
    "abs", "acos", "add", "addcdiv", "addcmul", "asin", "atan", "ceil", "clamp_max", "clamp_min",
    "copy", "cos", "cosh", "div", "erf", "erfc", "exp", "expm1", "floor", "frac", "lerp", "lgamma",
    "log", "log10", "log1p", "log2", "max", "maximum", "minimum", "mul", "neg", "norm", "pow",
    "reciprocal", "round", "rsqrt", "sigmoid", "sign", "sin", "sinh", "sqrt", "sub", "tan", "tanh",
    "trunc", "zero",
)  # fmt: skip


def _each(method: str) -> Callable[..., Value]:
    """Return the function that calls a method of each tensor of a list."""

    def function(t: Core, input: Value, *arguments: Value, **keywords: Value) -> Value:
        made = []
        for place, x in enumerate(input):
            given = [a[place] if isinstance(a, list | tuple) else a for a in arguments]
            made.append(t.tables.call_method(t, f"{TORCH.tensor}.{method}", [x, *given], keywords))
        return None if method.endswith("_") else t.new_list(made)

    return function


__all__ = ["enter"]
