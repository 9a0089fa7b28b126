"""Functions of PyTorch of one tensor, element by element; activations among them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import onnx_ir as ir

from hagane.frontends.libraries.computing import computed
from hagane.frontends.libraries.torch.functions.numbers.elementwise import apply_
from hagane.frontends.libraries.torch.operands import (
    BOOL,
    INT64,
    as_float,
    at_least,
    cast,
    category,
    need_float,
    need_tensor,
    own_axis,
    real_dtype,
    shape_of,
)
from hagane.frontends.libraries.torch.table import TORCH
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.values.values import Tensor, Value
from hagane.ops.builder import op
from hagane.ops.functions.numbers import activations, pairs, special
from hagane.ops.functions.numbers.elementary import mul, square, sub
from hagane.symbolic import floordiv

# name -> operator; integers become float32 first.
_REAL_FUNCTIONS = {
    "exp": "Exp", "log": "Log", "sqrt": "Sqrt", "sin": "Sin", "cos": "Cos", "tan": "Tan",
    "asin": "Asin", "acos": "Acos", "atan": "Atan", "sinh": "Sinh", "cosh": "Cosh",
    "tanh": "Tanh", "asinh": "Asinh", "acosh": "Acosh", "atanh": "Atanh", "erf": "Erf",
    "sigmoid": "Sigmoid", "reciprocal": "Reciprocal", "arcsin": "Asin", "arccos": "Acos",
    "arctan": "Atan", "arctanh": "Atanh", "special.expit": "Sigmoid", "special.erf": "Erf",
}  # fmt: skip
# The same for functions that no single operator has; the type is all that matters here.
_REAL_COMPOSED = (
    "rsqrt", "expm1", "log1p", "log2", "log10", "exp2", "erfc", "erfinv", "lgamma", "digamma",
    "logit", "sinc", "deg2rad", "rad2deg", "i0", "arcsinh", "arccosh",
    *(f"special.{name}" for name in (
        "expm1", "log1p", "gammaln", "erfc", "erfinv", "erfcx", "logit", "digamma", "psi", "ndtr",
        "ndtri", "log_ndtr", "i0", "i0e", "i1", "i1e", "entr", "exp2", "sinc", "bessel_j0",
        "bessel_j1",
    )),
)  # fmt: skip
# Some of them over the builder; the rest have only types.
_COMPUTED: dict[str, Callable[[Any], Any]] = {
    "rsqrt": activations.rsqrt, "expm1": activations.expm1, "special.expm1": activations.expm1,
    "log1p": activations.log1p, "special.log1p": activations.log1p,
    "log2": lambda x: activations.logarithm(x, 2), "log10": lambda x: activations.logarithm(x, 10),
    "exp2": activations.exp2, "special.exp2": activations.exp2,
    "erfc": special.error_tail, "special.erfc": special.error_tail,
    "deg2rad": lambda x: mul(x, math.pi / 180), "rad2deg": lambda x: mul(x, 180 / math.pi),
    "arcsinh": lambda x: op("Asinh", x), "arccosh": lambda x: op("Acosh", x),
    "logit": activations.logit, "special.logit": activations.logit,
    "square": square, "trunc": activations.truncated, "fix": activations.truncated,
    "frac": lambda x: sub(x, activations.truncated(x)), "positive": lambda x: op("Identity", x),
    "sgn": activations.signs, "sign": activations.signs,
    "erfinv": special.inverse_error, "special.erfinv": special.inverse_error,
    "lgamma": special.log_gamma, "special.gammaln": special.log_gamma,
    "digamma": special.digamma, "special.digamma": special.digamma,
    "special.psi": special.digamma, "sinc": special.sinc, "special.sinc": special.sinc,
    "i0": special.bessel_i0, "special.i0": special.bessel_i0, "special.i0e": special.bessel_i0e,
    "special.i1": special.bessel_i1, "special.i1e": special.bessel_i1e,
    "special.erfcx": special.scaled_error_tail, "special.ndtr": special.normal_share,
    "special.ndtri": special.normal_place, "special.log_ndtr": special.log_normal_share,
    "special.entr": special.entropy_part,
}  # fmt: skip
# name -> operator; the element type stays.
_KEEPING = {
    "neg": "Neg", "negative": "Neg", "abs": "Abs", "absolute": "Abs", "floor": "Floor",
    "ceil": "Ceil", "sign": "Sign",
}  # fmt: skip
_SIGNED = (INT64, ir.DataType.INT32, ir.DataType.INT16, ir.DataType.INT8)
_WHOLE = ("floor", "ceil", "trunc", "fix")  # which leave integers as they are
# name -> the arguments beside the input with their defaults, and the function over the builder.
_ACTIVATIONS: dict[str, tuple[dict[str, Value], Callable[..., Any] | None]] = {
    "relu": ({}, lambda x: op("Relu", x)), "selu": ({}, activations.selu),
    "softsign": ({}, lambda x: op("Softsign", x)), "hardswish": ({}, lambda x: op("HardSwish", x)),
    "mish": ({}, lambda x: op("Mish", x)), "logsigmoid": ({}, activations.log_sigmoid),
    "softplus": ({"beta": 1, "threshold": 20}, activations.softplus),
    "tanhshrink": ({}, activations.tanh_shrink), "silu": ({}, activations.silu),
    "relu6": ({}, lambda x: activations.clip(x, 0, 6)),
    "hardsigmoid": ({}, activations.hard_sigmoid), "celu": ({"alpha": 1.0}, activations.celu),
    "elu": ({"alpha": 1.0}, lambda x, alpha: op("Elu", x, alpha=float(alpha))),
    "gelu": ({"approximate": "none"}, activations.gelu),
    "hardtanh": ({"min_val": -1.0, "max_val": 1.0}, activations.clip),
    "hardshrink": ({"lambd": 0.5}, activations.hard_shrink),
    "softshrink": ({"lambd": 0.5}, activations.soft_shrink),
    "threshold": ({"threshold": None, "value": None}, activations.threshold),
    "leaky_relu": (
        {"negative_slope": 0.01},
        lambda x, slope: op("LeakyRelu", x, alpha=float(slope)),
    ),
    "rrelu": (
        {"lower": 1 / 8, "upper": 1 / 3, "training": False},
        lambda x, low, high, training: op("LeakyRelu", x, alpha=(low + high) / 2),
    ),
}  # fmt: skip
# Names that torch itself has, and names of functions in place.
_AT_ROOT = ("relu", "selu", "celu", "rrelu", "threshold", "prelu", "hardshrink")
_IN_PLACE = ("relu", "selu", "celu", "elu", "hardtanh", "leaky_relu", "rrelu", "threshold")


_NO_TRUTH = ("neg", "negative", "abs", "absolute", "ceil", "floor", "round", "trunc", "fix", "frac",
             "positive")  # fmt: skip


def _unary(name: str, operator: str, real: bool) -> None:
    def function(t: Core, input: Value, *, out: Value = None) -> Tensor:
        x = need_tensor(t, input, "input")
        x = as_float(t, x) if real else x
        if x.dtype == BOOL and name in _NO_TRUTH:
            t.fail("dtype-mismatch", f"{name} takes no bool tensors, got {t.show(x)}", x,
                   remedy="convert it with .float()")  # fmt: skip
        if x.dtype == BOOL and name == "square":  # a product of integers, as of ``x ** 2``
            x = cast(t, x, INT64)
        if name in _WHOLE and category(x.dtype) == 1:
            return computed(t, x, lambda x: op("Identity", x), x)
        if name in ("sign", "sgn") and category(x.dtype) == 0:
            return computed(t, x, lambda x: op("Identity", x), x)
        if operator == "Neg" and x.dtype == ir.DataType.UINT8:  # (ONNX has none of these)
            return computed(t, x, lambda x: op("Sub", activations.number_like(0, x), x), x)
        if operator == "Abs" and category(x.dtype) == 3:
            return t.emit.typed("Abs", [x], real_dtype(x.dtype), x.shape)
        made = apply_(t, operator, x)
        function_of = _COMPUTED.get(name)
        if function_of is None or category(x.dtype) not in (1, 2):
            return made
        return computed(t, made, function_of, x)

    in_place = [f"{name}_"] if name != "positive" else []

    def clipped(t: Core, input: Value, eps: Value = None, *, out: Value = None) -> Tensor:
        x = need_tensor(t, input, "input")
        if eps is not None:
            x = t.call_library("torch.clamp", [as_float(t, x), eps, 1 - eps])
        return function(t, x)

    methods = () if "." in name else (name, *in_place)
    TORCH.function(name, methods=methods)(clipped if name.endswith("logit") else function)


for _name, _operator in _REAL_FUNCTIONS.items():
    _unary(_name, _operator, real=True)
for _name in _REAL_COMPOSED:
    _unary(_name, "", real=True)
for _name, _operator in _KEEPING.items():
    _unary(_name, _operator, real=False)
for _name in ("trunc", "frac", "square", "positive", "fix", "sgn"):
    _unary(_name, "", real=False)


@TORCH.function("round", "special.round", methods=("round", "round_"))
def round_(t: Core, input: Value, *, decimals: Value = 0, out: Value = None) -> Tensor:
    """Return the nearest integers, or numbers with so many decimals."""
    x = need_tensor(t, input, "input")
    if not isinstance(decimals, int) or category(x.dtype) not in (1, 2):
        return apply_(t, "", x)
    if category(x.dtype) == 1:
        return computed(t, x, lambda x: op("Identity", x), x)
    return computed(t, x, pairs.rounded, x, decimals)


@TORCH.function("nan_to_num", methods=("nan_to_num", "nan_to_num_"))
def nan_to_num(
    t: Core, input: Value, nan: Value = 0.0, posinf: Value = None, neginf: Value = None
) -> Tensor:
    """Return the input with numbers instead of NaN and infinities."""
    x = need_tensor(t, input, "input")
    if category(x.dtype) < 2:
        return computed(t, x, lambda x: op("Identity", x), x)
    numbers = [0.0 if nan is None else nan, posinf, neginf]
    if category(x.dtype) != 2 or not all(_is_setting(n) for n in numbers if n is not None):
        return apply_(t, "", x)
    most = _MOST[x.dtype]
    numbers[1] = most if posinf is None else posinf
    numbers[2] = -most if neginf is None else neginf
    return computed(t, x, pairs.with_numbers, x, *numbers)


_MOST = {
    ir.DataType.FLOAT16: 65504.0, ir.DataType.BFLOAT16: 3.3895313892515355e38,
    ir.DataType.FLOAT: 3.4028234663852886e38, ir.DataType.DOUBLE: 1.7976931348623157e308,
}  # fmt: skip


@TORCH.function("polygamma", "special.polygamma")
def polygamma(t: Core, n: Value, input: Value) -> Tensor:
    """Return the n-th derivative of the digamma function."""
    return _with_number(t, input, n, special.polygamma)


def _with_number(t: Core, input: Value, n: Value, function: Callable[..., Any]) -> Tensor:
    x = as_float(t, need_tensor(t, input, "input"))
    if not isinstance(n, int):
        return apply_(t, "", x)
    return computed(t, x, function, x, n)


@TORCH.method("polygamma")
def polygamma_method(t: Core, self: Value, n: Value) -> Tensor:
    """Return the n-th derivative of the digamma function."""
    return polygamma(t, n, self)


@TORCH.function("mvlgamma", "special.multigammaln", methods=("mvlgamma",))
def mvlgamma(t: Core, input: Value, p: Value) -> Tensor:
    """Return the multivariate log-gamma function."""
    return _with_number(t, input, p, special.log_multigamma)


@TORCH.function(
    *(_CONJUGATES := ("conj", "resolve_conj", "conj_physical", "resolve_neg")), methods=_CONJUGATES
)
def conj(t: Core, input: Value) -> Tensor:
    """Return the conjugate."""
    x = need_tensor(t, input, "input")
    return x if category(x.dtype) < 3 else computed(t, x, lambda x: op("Identity", x), x)


@TORCH.function("angle", methods=("angle",))
def angle(t: Core, input: Value) -> Tensor:
    """Return the angles of complex numbers, in radians."""
    x = as_float(t, need_tensor(t, input, "input"))
    if category(x.dtype) == 3:
        return t.emit.typed("Angle", [x], real_dtype(x.dtype), x.shape)
    return computed(t, x, special.angle_of_reals, x)


@TORCH.function("real")
def real_part(t: Core, input: Value) -> Tensor:
    """Return the real part."""
    x = need_tensor(t, input, "input")
    if category(x.dtype) != 3:
        return x
    return t.emit.typed("Real", [x], real_dtype(x.dtype), x.shape)


@TORCH.function("imag")
def imaginary_part(t: Core, input: Value) -> Tensor:
    """Return the imaginary part, which complex tensors alone have."""
    x = need_tensor(t, input, "input")
    if category(x.dtype) != 3:
        t.fail("dtype-mismatch", f"imag is the part of a complex tensor, got {t.show(x)}", x)
    return real_part(t, x)


TORCH.attribute("imag")(imaginary_part)


@TORCH.attribute("real")
def real_of(t: Core, x: Tensor) -> Tensor:
    """Return the real part; real numbers themselves."""
    if category(x.dtype) == 3:
        return real_part(t, x)
    return computed(t, x, lambda x: op("Identity", x), x)


def _activation(
    name: str, settings: Mapping[str, Value], function_of: Callable[..., Any] | None
) -> None:
    allowed = (*settings, "inplace")

    def function(t: Core, input: Value, *arguments: Value, **keywords: Value) -> Tensor:
        x = need_tensor(t, input, "input")
        wrong = [key for key in keywords if key not in allowed]
        twice = allowed[: len(arguments)]
        if wrong or len(arguments) > len(allowed) or any(key in twice for key in keywords):
            t.fail("call", f"{name}(input, {', '.join(allowed)}): got {len(arguments) + 1} "
                   f"arguments{' and ' + ', '.join(keywords) if keywords else ''}")  # fmt: skip
        if name in ("softsign", "tanhshrink"):  # which divide, and subtract floats
            x = as_float(t, x)
        if category(x.dtype) < 2 and name not in ("relu", "hardtanh", "threshold", "relu6"):
            need_float(t, x, "input")
        made = apply_(t, "", x)
        given = {**settings, **dict(zip(allowed, arguments, strict=False)), **keywords}
        passed = [given[key] for key in settings]
        _need_settings(t, name, given)
        wide = category(x.dtype) == 2 or (x.dtype in _SIGNED and name in ("relu", "relu6"))
        if function_of is None or not wide or not all(_is_setting(item) for item in passed):
            return made
        if given.get("training") is True:  # slopes are drawn
            return made
        chosen = function_of
        if name in ("relu6", "hardtanh") and t.emit.training is not None and category(x.dtype) == 2:
            chosen = activations.between  # Max and Min share the gradient of elements on a bound
            passed = passed or [0.0, 6.0]
        return computed(t, made, chosen, x, *passed)

    names = [f"nn.functional.{name}", *([name] if name in _AT_ROOT else [])]
    if name in _IN_PLACE:
        names += [f"{shown}_" for shown in list(names)]
    TORCH.function(*names)(function)


def _need_settings(t: Core, name: str, given: Mapping[str, Value]) -> None:
    """Fail if settings of an activation are not such that it takes."""
    order = {"rrelu": ("lower", "upper"), "hardtanh": ("min_val", "max_val")}.get(name)
    if order is not None:
        low, high = (given[key] for key in order)
        if isinstance(low, int | float) and isinstance(high, int | float) and low > high:
            t.fail("value", f"expected {order[0]} to be at most {order[1]}, got {low} and {high}")
    if name == "softshrink":
        at_least(t, given["lambd"], 0, "lambd")
    form = given.get("approximate")
    if isinstance(form, str) and form not in ("none", "tanh"):
        t.fail("value", f"expected approximate to be none or tanh, got {form}")


def _is_setting(value: Value) -> bool:
    return isinstance(value, int | float | str)


def relu_method(t: Core, self: Value) -> Tensor:
    """Return max(0, x)."""
    plain = category(self.dtype) == 2 or self.dtype in _SIGNED
    return apply_(t, "Relu" if plain else "", self)


TORCH.method("relu", "relu_")(relu_method)
for _name, (_settings, _function) in _ACTIVATIONS.items():
    _activation(_name, _settings, _function)
TORCH.method("hardshrink")(TORCH.functions["torch.hardshrink"])
TORCH.functions["torch.nn.functional.tanh"] = TORCH.functions["torch.tanh"]
TORCH.functions["torch.nn.functional.sigmoid"] = TORCH.functions["torch.sigmoid"]


@TORCH.function("nn.functional.glu")
def glu(t: Core, input: Value, dim: Value = -1) -> Tensor:
    """Return one half of an axis gated by the other."""
    x = need_tensor(t, input, "input")
    shape = list(shape_of(t, x))
    place = own_axis(t, dim, x)
    half = floordiv(shape[place], 2)
    if t.emit.indivisible(shape[place], 2, f"axis {place}, which glu halves"):
        t.fail("shape-mismatch", f"glu halves axis {place}, which is odd: {t.show(x)}", x)
    shape[place] = half
    made = t.emit.typed("Glu", [x], x.dtype, tuple(shape))
    return computed(t, made, activations.glu, x, place)
