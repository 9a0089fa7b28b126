"""Functions of Python's ``math`` on numbers that the data decide."""

from __future__ import annotations

import ast
import math
import sys
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from hagane.ops.builder import op
from hagane.ops.functions.numbers import activations, division, pairs
from hagane.ops.functions.numbers.elementary import div, mul

# Those that are one operator.
OPERATORS: Mapping[str, str] = MappingProxyType({
    "sqrt": "Sqrt", "exp": "Exp", "log": "Log", "sin": "Sin", "cos": "Cos", "tan": "Tan",
    "tanh": "Tanh", "sinh": "Sinh", "cosh": "Cosh", "asin": "Asin", "acos": "Acos",
    "atan": "Atan", "asinh": "Asinh", "acosh": "Acosh", "atanh": "Atanh",
    "fabs": "Abs", "isnan": "IsNaN", "isinf": "IsInf", "erf": "Erf",
})  # fmt: skip
# Those that are several, by name and number of arguments.
FUNCTIONS: Mapping[tuple[str, int], Callable[..., Any]] = MappingProxyType({
    ("fmod", 2): lambda x, y: op("Mod", x, y, fmod=1),
    ("copysign", 2): pairs.copy_sign,
    ("atan2", 2): pairs.angle_of,
    ("expm1", 1): activations.expm1,
    ("log1p", 1): activations.log1p,
    ("exp2", 1): activations.exp2,
    ("log2", 1): lambda x: activations.logarithm(x, 2),
    ("log10", 1): lambda x: activations.logarithm(x, 10),
    ("cbrt", 1): pairs.cube_root,
    ("hypot", 1): lambda x: op("Abs", x),
    ("hypot", 2): division.hypotenuse,
    ("ldexp", 2): pairs.scaled_by_two,
    ("degrees", 1): lambda x: mul(x, np.array(180 / math.pi)),
    ("radians", 1): lambda x: mul(x, np.array(math.pi / 180)),
    ("log", 2): lambda x, base: div(op("Log", x), op("Log", base)),
    ("isfinite", 1): lambda x: op("Not", op("Or", op("IsNaN", x), op("IsInf", x))),
})  # fmt: skip
# Arguments for which Python raises a ValueError, by operators and bounds, and those for which the
# result is too large.
DOMAINS: Mapping[str, tuple[tuple[type[ast.cmpop], float], ...]] = MappingProxyType({
    "sqrt": ((ast.Lt, 0.0),),
    "log": ((ast.LtE, 0.0),), "log2": ((ast.LtE, 0.0),), "log10": ((ast.LtE, 0.0),),
    "log1p": ((ast.LtE, -1.0),), "acosh": ((ast.Lt, 1.0),),
    "asin": ((ast.Lt, -1.0), (ast.Gt, 1.0)), "acos": ((ast.Lt, -1.0), (ast.Gt, 1.0)),
    "atanh": ((ast.LtE, -1.0), (ast.GtE, 1.0)),
})  # fmt: skip
_LOG_MOST = math.log(sys.float_info.max)
RANGES: Mapping[str, tuple[tuple[type[ast.cmpop], float], ...]] = MappingProxyType({
    "exp": ((ast.Gt, _LOG_MOST),), "expm1": ((ast.Gt, _LOG_MOST),), "exp2": ((ast.GtE, 1024.0),),
    "cosh": ((ast.Lt, -_LOG_MOST - math.log(2)), (ast.Gt, _LOG_MOST + math.log(2))),
    "sinh": ((ast.Lt, -_LOG_MOST - math.log(2)), (ast.Gt, _LOG_MOST + math.log(2))),
})  # fmt: skip
TRUTHS = frozenset(("isnan", "isinf", "isfinite"))

__all__ = ["DOMAINS", "FUNCTIONS", "OPERATORS", "RANGES", "TRUTHS"]
