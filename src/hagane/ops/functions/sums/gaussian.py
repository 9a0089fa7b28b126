"""The normal distribution of vectors, by its mean (..., n) and a triangular factor (..., n, n).

The formulas are those of the documentation of ``torch.distributions.MultivariateNormal``.
"""

from __future__ import annotations

import math
from typing import Any

from hagane.ops.builder import dtype_of, op, shape_of
from hagane.ops.functions.numbers.densities import Law, Parameters
from hagane.ops.functions.numbers.elementary import (
    add,
    cast,
    log,
    mul,
    neg,
    square,
    sub,
    sum_over,
    unsqueeze,
)
from hagane.ops.functions.sums.factors import wide_identity
from hagane.ops.functions.sums.linalg import solved_any, triangle_of
from hagane.ops.functions.sums.products import matrix_product


def _factor(p: Parameters) -> Any:
    return triangle_of(p["scale_tril"], upper=False)


def _total(x: Any, axes: int = 1) -> Any:
    return sum_over(x, range(-axes, 0), keepdims=False)


def _half_logarithm(p: Parameters) -> Any:
    """Return half the logarithm of the determinant of the covariance."""
    factor = _factor(p)
    return _total(log(_total(mul(factor, wide_identity(factor)))))


def _length(p: Parameters, share: float) -> Any:
    """Return the number of elements of an event, times a number."""
    n = shape_of(p["loc"])[-1]
    return mul(cast(n, dtype_of(p["loc"])), share) if not isinstance(n, int) else n * share


def _distance(p: Parameters, x: Any) -> Any:
    """Return the square of Mahalanobis' distance to the mean."""
    apart = unsqueeze(sub(x, p["loc"]), [-1])
    return _total(square(solved_any(_factor(p), apart)), 2)


def _density(p: Parameters, x: Any) -> Any:
    whole = add(mul(_distance(p, x), 0.5), _length(p, 0.5 * math.log(2 * math.pi)))
    return neg(add(whole, _half_logarithm(p)))


def _variance(p: Parameters) -> Any:
    return _total(square(_factor(p)))


def _entropy(p: Parameters) -> Any:
    return add(_half_logarithm(p), _length(p, 0.5 * (1 + math.log(2 * math.pi))))


def _draw(p: Parameters, noise: Any) -> Any:
    turned = matrix_product(_factor(p), unsqueeze(noise, [-1]))
    return add(p["loc"], op("Squeeze", turned, [-1]))


def _mean(p: Parameters) -> Any:
    return p["loc"]


MULTIVARIATE_NORMAL = Law(
    _density, _mean, _variance, _mean, _entropy, noise="randn", draw=_draw, event=1
)


def between_gaussians(p: Parameters, q: Parameters) -> Any:
    """Return the divergence of two of them."""
    inner = _total(square(solved_any(_factor(q), _factor(p))), 2)
    whole = sub(add(inner, _distance(q, p["loc"])), _length(p, 1.0))
    return add(mul(whole, 0.5), sub(_half_logarithm(q), _half_logarithm(p)))


__all__ = ["MULTIVARIATE_NORMAL", "between_gaussians"]
