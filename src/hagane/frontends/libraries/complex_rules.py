"""Functions of complex numbers whose parts are two real tensors."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.frontends.python.report.findings import CheckError
from hagane.frontends.python.values.values import Value
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
from hagane.ops.functions.sums import spectra
from hagane.ops.functions.sums.spectra import Pair
from hagane.symbolic import Dim

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
    if exponent[1] is not None or not isinstance(count, int) or not 1 <= count <= 8:
        raise CheckError("capture", f"a complex number to the power {count}; write products")
    found = x
    for _ in range(count - 1):
        found = spectra.product(found, x)
    return found


def _conjugate(x: Pair) -> Pair:
    return x[0], None if x[1] is None else neg(x[1])


def _joined(x: Pair) -> Any:
    rank = len(x[0].shape)
    both = [op("Unsqueeze", y, [rank]) for y in (x[0], _imaginary(x))]
    return op("Concat", *both, axis=rank)


def transform_axes(
    dim: Value, n: Value, count: str, rank: int
) -> tuple[list[int], list[Dim | None]]:
    """Return the axes of a transform and its lengths."""
    lengths: list[Any] = list(n) if isinstance(n, list | tuple) else []
    if not count:
        return [(-1 if dim is None else dim) % rank], [n]
    if dim is None:
        kept = 2 if count == "2" else len(lengths) or rank
        dim = range(rank - kept, rank)
    axes = [axis % rank for axis in ((dim,) if isinstance(dim, int) else dim)]
    return axes, [None if x == -1 else x for x in lengths] or [None] * len(axes)


def normalised(
    pair: Pair, norm: Value, inverse: bool, sizes: Sequence[Dim], to: ir.DataType
) -> Pair:
    """Return a transform in the norm of PyTorch and NumPy: backward, ortho or forward."""
    if norm in (None, "backward"):
        return pair
    if norm not in ("ortho", "forward"):
        raise CheckError("capture", f"a transform with norm={norm!r}")
    count: Dim = 1
    for size in sizes:
        count = count * size
    number: Any = (
        np.array(count, to.numpy())
        if isinstance(count, int)
        else op("Cast", op("Squeeze", [count], [0]), to=to)
    )
    factor = sqrt(number) if norm == "ortho" else number
    rule = mul if inverse else div
    return rule(pair[0], factor), None if pair[1] is None else rule(pair[1], factor)


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
    "log": lambda x: (log(_magnitude(x)), _angle(x)),
    "square": lambda x: spectra.product(x, x),
    "reciprocal": lambda x: spectra.quotient((1.0, None), x),
    "pow": _power,
}

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
