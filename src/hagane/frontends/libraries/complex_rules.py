"""Functions of complex numbers whose parts are two real tensors."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import onnx_ir as ir

from hagane.frontends.python.report.findings import CheckError
from hagane.frontends.python.values.values import Tensor, Value
from hagane.ops.builder import op
from hagane.ops.functions.chainer.elementwise import arctan2
from hagane.ops.functions.numbers.elementary import (
    add,
    div,
    exp,
    log,
    mul,
    neg,
    sqrt,
    sub,
)
from hagane.ops.functions.numbers.pairs import copy_sign
from hagane.ops.functions.sums import spectra
from hagane.ops.functions.sums.spectra import Pair
from hagane.symbolic import Expr

# Linear over the reals, or applied to both parts: the function of both.
LINEAR = frozenset({
    "view", "reshape", "flatten", "unflatten", "unsqueeze", "squeeze", "transpose", "permute",
    "movedim", "moveaxis", "swapaxes", "swapdims", "t", "mT", "T", "ravel", "contiguous", "clone",
    "copy", "detach", "expand", "expand_as", "expand_dims", "broadcast_to", "repeat", "tile",
    "repeat_interleave", "roll", "flip", "cat", "concat", "concatenate", "stack", "hstack",
    "vstack", "split", "tensor_split", "chunk", "unbind", "select", "narrow", "index_select",
    "gather", "take_along_dim", "sum", "mean", "cumsum", "diff", "tril", "triu", "diagonal",
    "where", "neg", "negative", "positive", "item", "trace", "diag", "rot90", "fliplr", "flipud",
    "array", "asarray", "take", "compress", "atleast_1d", "atleast_2d", "atleast_3d", "round",
    "around", "rint", "nan_to_num",
})  # fmt: skip
# Functions that fill a new tensor.
FILLING = frozenset(
    f"{start}{name}{end}"
    for name in ("zeros", "ones", "empty")
    for start, end in (("", ""), ("", "_like"), ("new_", ""))
)
# Of these, real operands count as complex ones.
JOINING = frozenset(
    {"array", "asarray", "cat", "concat", "concatenate", "stack", "hstack", "vstack", "where"}
)
MATRIX_PRODUCTS = frozenset(
    {"matmul", "bmm", "mm", "dot", "einsum", "outer", "inner", "kron", "tensordot", "mv"}
)
OF_NUMBERS = ("where", "array", "asarray")  # of these, numbers among the items too
CONVERTING = ("to", "type", "astype", "type_as")
MAKING = frozenset(
    ("torch.complex", "torch.polar", "torch.view_as_complex", "torch.stft", "torch.Tensor.stft",
     "torch.istft", "torch.Tensor.istft", "torch.Tensor.cfloat", "torch.Tensor.cdouble")
)  # fmt: skip

_PRODUCTS = ("mul", "multiply")
_QUOTIENTS = ("div", "divide", "true_divide", "truediv")


def _zeros(x: Any) -> Any:
    return mul(x, 0)


def _sum(a: Pair, b: Pair) -> Pair:
    return _added(add, a, b, lambda x: x)


def _difference(a: Pair, b: Pair) -> Pair:
    return _added(sub, a, b, neg)


def _added(rule: Callable[..., Any], a: Pair, b: Pair, right: Callable[[Any], Any]) -> Pair:
    real = rule(a[0], b[0])
    if a[1] is None and b[1] is None:
        return real, None
    if a[1] is None or b[1] is None:
        one = right(b[1]) if a[1] is None else a[1]
        return real, add(one, mul(real, 0))  # of the shape of both
    return real, rule(a[1], b[1])


def _magnitude(x: Pair) -> Any:
    if x[1] is None:
        return op("Abs", x[0])
    return sqrt(add(mul(x[0], x[0]), mul(x[1], x[1])))


def _imaginary(x: Pair) -> Any:
    return _zeros(x[0]) if x[1] is None else x[1]


def _exponential(x: Pair) -> Pair:
    size = exp(x[0])
    return mul(size, op("Cos", _imaginary(x))), mul(size, op("Sin", _imaginary(x)))


def _angle(x: Pair, deg: Pair = (False, None)) -> Any:
    found = arctan2(_imaginary(x), x[0])
    return mul(found, 180 / math.pi) if deg[0] else found


def _power(x: Pair, exponent: Pair) -> Pair:
    count = exponent[0]
    if exponent[1] is not None:
        raise CheckError("capture", "a complex power; write exp(w * log(z))")
    if not isinstance(count, int) or not 0 < abs(count) <= 64:
        size, angle = op("Pow", _magnitude(x), count), mul(_angle(x), count)
        return mul(size, op("Cos", angle)), mul(size, op("Sin", angle))
    found, left = None, abs(count)
    while left:  # by squares
        if left % 2:
            found = x if found is None else spectra.product(found, x)
        left //= 2
        x = spectra.product(x, x) if left else x
    assert found is not None
    return spectra.quotient((1.0, None), found) if count < 0 else found


def _root(x: Pair) -> Pair:
    real, imaginary = x[0], _imaginary(x)
    half = sqrt(mul(add(_magnitude(x), op("Abs", real)), 0.5))
    other = op("Where", op("Equal", half, 0), half, div(op("Abs", imaginary), mul(half, 2)))
    is_right = op("GreaterOrEqual", real, 0)
    size = op("Where", is_right, other, half)
    return op("Where", is_right, half, other), copy_sign(size, imaginary)


def _waves(x: Pair) -> tuple[Any, ...]:
    """Return sine and cosine of the real part, hyperbolic ones of the imaginary part."""
    imaginary = _imaginary(x)
    return tuple(op(name, y) for name, y in (
        ("Sin", x[0]), ("Cos", x[0]), ("Sinh", imaginary), ("Cosh", imaginary)
    ))  # fmt: skip


def _sine(x: Pair) -> Pair:
    sin, cos, sinh, cosh = _waves(x)
    return mul(sin, cosh), mul(cos, sinh)


def _cosine(x: Pair) -> Pair:
    sin, cos, sinh, cosh = _waves(x)
    return mul(cos, cosh), neg(mul(sin, sinh))


def _turned(x: Pair) -> Pair:
    return neg(_imaginary(x)), x[0]


def _hyperbolic_sine(x: Pair) -> Pair:
    real, imaginary = _sine(_turned(x))  # sinh z = -i sin iz
    return imaginary, neg(real)


def _logarithm(x: Pair) -> Pair:
    return log(_magnitude(x)), _angle(x)


def _scaled_logarithm(base: float) -> Callable[[Pair], Pair]:
    def rule(x: Pair) -> Pair:
        real, imaginary = _logarithm(x)
        return mul(real, 1 / math.log(base)), mul(imaginary, 1 / math.log(base))

    return rule


def _equal(a: Pair, b: Pair) -> Any:
    same = []
    for x, y in ((a[0], b[0]), (_imaginary_or_zero(a), _imaginary_or_zero(b))):
        both = [x, y] if hasattr(x, "dtype") else [y, x]
        if hasattr(both[1], "dtype") and both[0].dtype != both[1].dtype:
            both = [op("Cast", z, to=ir.DataType.DOUBLE) for z in both]
        same.append(op("Equal", *both))
    return op("And", *same)


def _imaginary_or_zero(x: Pair) -> Any:
    found = _zeros(x[0]) if x[1] is None and hasattr(x[0], "dtype") else x[1]
    return 0.0 if found is None else found


def _either(name: str) -> Callable[[Pair], Any]:
    def rule(x: Pair) -> Any:
        return op("Or", op(name, x[0]), op(name, _imaginary(x)))

    return rule


def _is_finite(x: Pair) -> Any:
    return op("Not", op("Or", _either("IsNaN")(x), _either("IsInf")(x)))


def _conjugate(x: Pair) -> Pair:
    return x[0], None if x[1] is None else neg(x[1])


def _joined(x: Pair) -> Any:
    rank = len(x[0].shape)
    both = [op("Unsqueeze", y, [rank]) for y in (x[0], _imaginary(x))]
    return op("Concat", *both, axis=rank)


def cast(x: Any, to: ir.DataType) -> Any:
    """Return a tensor in an element type, and a number as it is."""
    is_other = isinstance(x, Expr) or (isinstance(x, Tensor) and x.dtype != to)
    return op("Cast", x, to=to) if is_other else x


# By the last part of the name of a function, method, attribute or operator.
RULES: dict[str, Callable[..., Any]] = {
    **dict.fromkeys(_PRODUCTS, spectra.product),
    **dict.fromkeys(_QUOTIENTS, spectra.quotient),
    "add": _sum,
    **dict.fromkeys(("sub", "subtract"), _difference),
    **dict.fromkeys(("abs", "absolute"), _magnitude),
    "angle": _angle,
    "real": lambda x: x[0],
    "imag": _imaginary,
    "view_as_real": _joined,
    **dict.fromkeys(("conj", "conj_physical", "conjugate"), _conjugate),
    **dict.fromkeys(("resolve_conj", "resolve_neg"), lambda x: x),
    "exp": _exponential,
    "log": _logarithm, "log2": _scaled_logarithm(2), "log10": _scaled_logarithm(10),
    "sqrt": _root, "sin": _sine, "cos": _cosine,
    "sinh": _hyperbolic_sine, "cosh": lambda x: _cosine(_turned(x)),
    **dict.fromkeys(("eq", "equal"), _equal),
    **dict.fromkeys(("ne", "not_equal"), lambda a, b: op("Not", _equal(a, b))),
    "isnan": _either("IsNaN"), "isinf": _either("IsInf"), "isfinite": _is_finite,
    "square": lambda x: spectra.product(x, x),
    "reciprocal": lambda x: spectra.quotient((1.0, None), x),
    **dict.fromkeys(("pow", "power", "float_power"), _power),
}  # fmt: skip

_OPERANDS = ("other", "exponent", "deg")


def operands(name: str, keywords: Mapping[str, Value]) -> list[Value]:
    """Return the operands that are given by name to a function that has a formula here.

    Raises:
        CheckError: The formula does not know an argument.
    """
    for key, value in keywords.items():
        neutral = value is None or (key == "alpha" and isinstance(value, int) and value == 1)
        if key not in _OPERANDS and not neutral:
            raise CheckError(
                "capture",
                f"'{name}' of complex tensors with '{key}' cannot be captured yet; compute that "
                "apart, or leave it out",
            )
    return [keywords[key] for key in _OPERANDS if key in keywords]
