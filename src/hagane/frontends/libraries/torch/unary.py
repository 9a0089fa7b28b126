"""Functions of PyTorch of one tensor, element by element; activations among them."""

from __future__ import annotations

from hagane.frontends.libraries.torch.elementwise import apply_
from hagane.frontends.libraries.torch.operands import as_float, category, need_tensor, real_dtype
from hagane.frontends.libraries.torch.table import TORCH
from hagane.frontends.python.core import Core
from hagane.frontends.python.values import Tensor, Value

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
_ACTIVATIONS = {
    "relu": "Relu", "selu": "Selu", "softsign": "Softsign", "hardswish": "HardSwish",
    "mish": "Mish", "softplus": "Softplus", "logsigmoid": "", "tanhshrink": "", "silu": "",
    "relu6": "", "hardsigmoid": "", "celu": "", "elu": "Elu", "gelu": "Gelu", "hardtanh": "",
    "hardshrink": "", "softshrink": "", "threshold": "", "leaky_relu": "LeakyRelu", "rrelu": "",
}  # fmt: skip


def _unary(name: str, operator: str, real: bool) -> None:
    def function(t: Core, input: Value, *, eps: Value = None, out: Value = None) -> Tensor:
        x = need_tensor(t, input, "input")
        x = as_float(t, x) if real else x
        if operator in ("Floor", "Ceil") and category(x.dtype) == 1:
            return apply_(t, "", x)
        if operator == "Abs" and category(x.dtype) == 3:
            return t.emit.typed("Abs", [x], real_dtype(x.dtype), x.shape)
        return apply_(t, operator, x)

    TORCH.function(name, methods=() if "." in name else (name, f"{name}_"))(function)


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


def _activation(name: str, operator: str) -> None:
    def function(
        t: Core, input: Value, *arguments: Value, inplace: Value = False, **keywords: Value
    ) -> Tensor:
        x = need_tensor(t, input, "input")
        if category(x.dtype) < 2 and name not in ("relu", "hardtanh", "threshold", "relu6"):
            t.fail(
                "dtype-mismatch",
                f"expected a floating-point tensor as 'input', got {t.show(x)}",
                x,
                remedy="convert it with .float()",
            )
        return apply_(t, operator if category(x.dtype) == 2 else "", x)

    names = [f"nn.functional.{name}", f"nn.functional.{name}_", name, f"{name}_"]
    methods = (name, f"{name}_") if name in ("relu", "selu", "sigmoid") else ()
    TORCH.function(*names, methods=methods)(function)


for _name, _operator in _ACTIVATIONS.items():
    _activation(_name, _operator)
TORCH.functions["torch.nn.functional.tanh"] = TORCH.functions["torch.tanh"]
TORCH.functions["torch.nn.functional.sigmoid"] = TORCH.functions["torch.sigmoid"]
