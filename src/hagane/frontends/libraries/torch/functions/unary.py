"""Functions of PyTorch of one tensor, element by element; activations among them."""

from __future__ import annotations

from hagane.frontends.libraries.torch.functions.elementwise import apply_
from hagane.frontends.libraries.torch.operands import (
    as_float,
    category,
    need_float,
    need_tensor,
    real_dtype,
)
from hagane.frontends.libraries.torch.table import TORCH
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.values.values import Tensor, Value

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
# name -> operator; the element type stays.
_KEEPING = {
    "neg": "Neg", "negative": "Neg", "abs": "Abs", "absolute": "Abs", "floor": "Floor",
    "ceil": "Ceil", "sign": "Sign",
}  # fmt: skip
# name -> operator, and the arguments beside the input.
_ACTIVATIONS: dict[str, tuple[str, tuple[str, ...]]] = {
    "relu": ("Relu", ()), "selu": ("Selu", ()), "softsign": ("Softsign", ()),
    "hardswish": ("HardSwish", ()), "mish": ("Mish", ()), "logsigmoid": ("", ()),
    "softplus": ("Softplus", ("beta", "threshold")), "tanhshrink": ("", ()), "silu": ("", ()),
    "relu6": ("", ()), "hardsigmoid": ("", ()), "celu": ("", ("alpha",)),
    "elu": ("Elu", ("alpha",)),
    "gelu": ("Gelu", ("approximate",)), "hardtanh": ("", ("min_val", "max_val")),
    "hardshrink": ("", ("lambd",)), "softshrink": ("", ("lambd",)),
    "threshold": ("", ("threshold", "value")), "leaky_relu": ("LeakyRelu", ("negative_slope",)),
    "rrelu": ("", ("lower", "upper", "training")),
}  # fmt: skip
# Names that torch itself has, and those that work in place.
_AT_ROOT = ("relu", "selu", "celu", "rrelu", "threshold", "prelu", "hardshrink")
_IN_PLACE = ("relu", "selu", "celu", "elu", "hardtanh", "leaky_relu", "rrelu", "threshold")


def _unary(name: str, operator: str, real: bool) -> None:
    def function(t: Core, input: Value, *, eps: Value = None, out: Value = None) -> Tensor:
        x = need_tensor(t, input, "input")
        x = as_float(t, x) if real else x
        if operator in ("Floor", "Ceil") and category(x.dtype) == 1:
            return apply_(t, "", x)
        if operator == "Abs" and category(x.dtype) == 3:
            return t.emit.typed("Abs", [x], real_dtype(x.dtype), x.shape)
        return apply_(t, operator, x)

    in_place = [f"{name}_"] if name != "positive" else []
    TORCH.function(name, methods=() if "." in name else (name, *in_place))(function)


for _name, _operator in _REAL_FUNCTIONS.items():
    _unary(_name, _operator, real=True)
for _name in _REAL_COMPOSED:
    _unary(_name, "", real=True)
for _name, _operator in _KEEPING.items():
    _unary(_name, _operator, real=False)
for _name in ("trunc", "frac", "square", "positive", "fix", "sgn", "special.round"):
    _unary(_name, "", real=False)


@TORCH.function("round", methods=("round", "round_"))
def round_(t: Core, input: Value, *, decimals: Value = 0, out: Value = None) -> Tensor:
    """Return the nearest integers, or numbers with so many decimals."""
    x = need_tensor(t, input, "input")
    return apply_(t, "Round" if decimals == 0 and category(x.dtype) == 2 else "", x)


@TORCH.function("nan_to_num", methods=("nan_to_num", "nan_to_num_"))
def nan_to_num(
    t: Core, input: Value, nan: Value = 0.0, posinf: Value = None, neginf: Value = None
) -> Tensor:
    """Return the input with numbers instead of NaN and infinities."""
    return apply_(t, "", need_tensor(t, input, "input"))


@TORCH.function("polygamma", "special.polygamma")
def polygamma(t: Core, n: Value, input: Value) -> Tensor:
    """Return the n-th derivative of the digamma function."""
    return apply_(t, "", as_float(t, need_tensor(t, input, "input")))


@TORCH.method("polygamma", "mvlgamma")
def polygamma_method(t: Core, self: Value, n: Value) -> Tensor:
    """Return a gamma function with an integer parameter."""
    return apply_(t, "", as_float(t, self))


@TORCH.function("mvlgamma", "special.multigammaln")
def mvlgamma(t: Core, input: Value, p: Value) -> Tensor:
    """Return the multivariate log-gamma function."""
    return apply_(t, "", as_float(t, need_tensor(t, input, "input")))


@TORCH.function("conj", "resolve_conj", "conj_physical", methods=("conj", "resolve_conj"))
def conj(t: Core, input: Value) -> Tensor:
    """Return the conjugate."""
    x = need_tensor(t, input, "input")
    return t.emit.typed("Conj", [x], x.dtype, x.shape)


@TORCH.function("angle", methods=("angle",))
def angle(t: Core, input: Value) -> Tensor:
    """Return the angles of complex numbers, in radians."""
    x = as_float(t, need_tensor(t, input, "input"))
    return t.emit.typed("Angle", [x], real_dtype(x.dtype), x.shape)


@TORCH.function("real", "imag")
def real_part(t: Core, input: Value) -> Tensor:
    """Return the real or the imaginary part."""
    x = need_tensor(t, input, "input")
    return t.emit.typed("Real", [x], real_dtype(x.dtype), x.shape)


TORCH.attribute("real", "imag")(real_part)


def _activation(name: str, operator: str, settings: tuple[str, ...]) -> None:
    allowed = (*settings, "inplace")

    def function(t: Core, input: Value, *arguments: Value, **keywords: Value) -> Tensor:
        x = need_tensor(t, input, "input")
        wrong = [key for key in keywords if key not in allowed]
        twice = allowed[: len(arguments)]
        if wrong or len(arguments) > len(allowed) or any(key in twice for key in keywords):
            t.fail("call", f"{name}(input, {', '.join(allowed)}): got {len(arguments) + 1} "
                   f"arguments{' and ' + ', '.join(keywords) if keywords else ''}")  # fmt: skip
        if category(x.dtype) < 2 and name not in ("relu", "hardtanh", "threshold", "relu6"):
            need_float(t, x, "input")
        return apply_(t, operator if category(x.dtype) == 2 else "", x)

    names = [f"nn.functional.{name}", *([name] if name in _AT_ROOT else [])]
    if name in _IN_PLACE:
        names += [f"{shown}_" for shown in list(names)]
    TORCH.function(*names)(function)


def relu_method(t: Core, self: Value) -> Tensor:
    """Return max(0, x)."""
    return apply_(t, "Relu" if category(self.dtype) == 2 else "", self)


TORCH.method("relu", "relu_")(relu_method)
TORCH.method("hardshrink")(lambda t, self, lambd=0.5: apply_(t, "", self))

for _name, (_operator, _settings) in _ACTIVATIONS.items():
    _activation(_name, _operator, _settings)
TORCH.functions["torch.nn.functional.tanh"] = TORCH.functions["torch.tanh"]
TORCH.functions["torch.nn.functional.sigmoid"] = TORCH.functions["torch.sigmoid"]
