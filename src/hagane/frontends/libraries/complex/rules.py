"""Functions of complex numbers whose parts are two real tensors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import onnx_ir as ir

from hagane.frontends.libraries.complex import functions
from hagane.frontends.libraries.complex.functions import imaginary, magnitude, zeros
from hagane.frontends.python.report.findings import CheckError
from hagane.frontends.python.values.values import Tensor, Value
from hagane.ops.builder import op
from hagane.ops.functions.numbers.elementary import (
    add,
    neg,
    sub,
)
from hagane.ops.functions.sums import spectra
from hagane.ops.functions.sums.spectra import Pair
from hagane.ops.functions.tensors.shapes import expand_like, filled_like
from hagane.symbolic import Expr

# Functions that fill a new tensor.
FILLING = frozenset(
    f"{start}{name}{end}"
    for name in ("zeros", "ones", "empty")
    for start, end in (("", ""), ("", "_like"), ("new_", ""))
)
CONVERTING = ("to", "type", "astype", "type_as")
MAKING = frozenset(
    ("torch.complex", "torch.polar", "torch.view_as_complex", "torch.stft", "torch.Tensor.stft",
     "torch.istft", "torch.Tensor.istft", "torch.Tensor.cfloat", "torch.Tensor.cdouble")
)  # fmt: skip

_PRODUCTS = ("mul", "multiply")
_QUOTIENTS = ("div", "divide", "true_divide", "truediv")


def _sum(a: Pair, b: Pair) -> Pair:
    return _added(add, a, b, lambda x: x)


def _difference(a: Pair, b: Pair) -> Pair:
    return _added(sub, a, b, lambda x: -x if isinstance(x, int | float) else neg(x))


def _added(rule: Callable[..., Any], a: Pair, b: Pair, right: Callable[[Any], Any]) -> Pair:
    real = rule(a[0], b[0])
    if a[1] is None and b[1] is None:
        return real, None
    if a[1] is None or b[1] is None:
        one = right(b[1]) if a[1] is None else a[1]
        is_number = isinstance(one, int | float)
        return real, filled_like(real, one) if is_number else expand_like(one, real)
    return real, rule(a[1], b[1])


def _equal(a: Pair, b: Pair) -> Any:
    same = []
    for x, y in ((a[0], b[0]), (_imaginary_or_zero(a), _imaginary_or_zero(b))):
        both = [x, y] if hasattr(x, "dtype") else [y, x]
        if hasattr(both[1], "dtype") and both[0].dtype != both[1].dtype:
            both = [op("Cast", z, to=ir.DataType.DOUBLE) for z in both]
        same.append(op("Equal", *both))
    return op("And", *same)


def _imaginary_or_zero(x: Pair) -> Any:
    found = zeros(x[0]) if x[1] is None and hasattr(x[0], "dtype") else x[1]
    return 0.0 if found is None else found


def _either(name: str) -> Callable[[Pair], Any]:
    def rule(x: Pair) -> Any:
        return op("Or", op(name, x[0]), op(name, imaginary(x)))

    return rule


def _is_finite(x: Pair) -> Any:
    return op("Not", op("Or", _either("IsNaN")(x), _either("IsInf")(x)))


def _conjugate(x: Pair) -> Pair:
    return x[0], None if x[1] is None else neg(x[1])


def _joined(x: Pair) -> Any:
    rank = len(x[0].shape)
    both = [op("Unsqueeze", y, [rank]) for y in (x[0], imaginary(x))]
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
    **dict.fromkeys(("abs", "absolute"), magnitude),
    "real": lambda x: x[0],
    "imag": imaginary,
    "view_as_real": _joined,
    **dict.fromkeys(("conj", "conj_physical", "conjugate"), _conjugate),
    **dict.fromkeys(("resolve_conj", "resolve_neg"), lambda x: x),
    **functions.RULES,
    **dict.fromkeys(("eq", "equal"), _equal),
    **dict.fromkeys(("ne", "not_equal"), lambda a, b: op("Not", _equal(a, b))),
    "isnan": _either("IsNaN"), "isinf": _either("IsInf"), "isfinite": _is_finite,
    "square": lambda x: spectra.product(x, x),
    "reciprocal": lambda x: spectra.quotient((1.0, None), x),
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
