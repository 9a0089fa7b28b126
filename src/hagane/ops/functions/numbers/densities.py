"""Densities, entropies and moments of distributions by their parameters, as PyTorch names them.

The formulas are those of the documentation of ``torch.distributions``. Parameters have the shape of
the batch, with the axes of one event behind it; all functions are over the builder.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
import onnx_ir as ir

from hagane.ops.builder import dtype_of, op
from hagane.ops.functions.numbers.activations import expm1, log1p
from hagane.ops.functions.numbers.elementary import (
    add,
    cast,
    div,
    exp,
    log,
    mask_like,
    mul,
    neg,
    square,
    sub,
    where,
)
from hagane.ops.functions.numbers.special import digamma, log_gamma

Parameters = Mapping[str, Any]
_EULER = 0.57721566490153286060
_HALF_LOG_2PI = 0.5 * math.log(2 * math.pi)


@dataclass(frozen=True, slots=True)
class Law:
    """A distribution.

    Attributes:
        density: The logarithm of the density at a value.
        mean: The mean.
        variance: The variance.
        mode: The most likely value.
        entropy: The entropy of each; None where PyTorch has none.
        cumulative: The cumulative distribution at a value; None where PyTorch has none.
        noise: The function that draws the numbers which ``draw`` takes, "" for none.
        draw: A draw, which gradients go through, of such numbers.
        event: The number of axes of one draw.
    """

    density: Callable[[Parameters, Any], Any]
    mean: Callable[[Parameters], Any]
    variance: Callable[[Parameters], Any]
    mode: Callable[[Parameters], Any]
    entropy: Callable[[Parameters], Any] | None = None
    cumulative: Callable[[Parameters, Any], Any] | None = None
    noise: str = ""
    draw: Callable[[Parameters, Any], Any] | None = None
    event: int = 0

    def stddev(self, p: Parameters) -> Any:
        """Return the standard deviation."""
        return op("Sqrt", self.variance(p))


def number_like(value: float, like: Any) -> Any:
    """Return a number in the element type of a value."""
    return np.array(value, dtype_of(like).numpy())


def _everywhere(value: float, like: Any) -> Any:
    """Return a number in a tensor's shape."""
    return op("Expand", number_like(value, like), op("Shape", like))


def _x_log_y(x: Any, y: Any) -> Any:
    """Return ``x * log(y)``, 0 where ``x`` is."""
    zero = op("Equal", x, number_like(0, x))
    return where(zero, number_like(0, x), mul(x, log(where(zero, number_like(1, y), y))))


def total(x: Any) -> Any:
    """Return sums over the last axis."""
    return op("ReduceSum", x, np.array([-1]), keepdims=0)


def soft_plus(x: Any) -> Any:
    """Return ``log(1 + exp(x))``."""
    return op("Softplus", x)


# Of a place and a scale.


def _standard(p: Parameters, x: Any) -> Any:
    return div(sub(x, p["loc"]), p["scale"])


def _normal(p: Parameters, x: Any) -> Any:
    return sub(mul(square(_standard(p, x)), -0.5), add(log(p["scale"]), _HALF_LOG_2PI))


def _normal_share(z: Any) -> Any:
    return mul(add(op("Erf", mul(z, math.sqrt(0.5))), 1), 0.5)


def _normal_entropy(p: Parameters) -> Any:
    return add(log(p["scale"]), 0.5 + _HALF_LOG_2PI)


def _placed(p: Parameters, e: Any) -> Any:
    return add(p["loc"], mul(p["scale"], e))


def _log_normal_variance(p: Parameters) -> Any:
    spread = square(p["scale"])
    return mul(expm1(spread), exp(add(mul(p["loc"], 2), spread)))


def _laplace_share(p: Parameters, x: Any) -> Any:
    z = _standard(p, x)
    return sub(0.5, mul(op("Sign", z), expm1(neg(op("Abs", z))), 0.5))


def _laplace_draw(p: Parameters, u: Any) -> Any:
    # PyTorch draws between the machine's precision above -1 and 1.
    low = float(ml_dtypes.finfo(dtype_of(u).numpy()).eps) - 1
    u = add(mul(u, 1 - low), low)
    return sub(p["loc"], mul(p["scale"], op("Sign", u), log1p(neg(op("Abs", u)))))


def _gumbel_draw(p: Parameters, u: Any) -> Any:
    kind = ml_dtypes.finfo(dtype_of(u).numpy())
    low, high = float(kind.tiny), float(1 - kind.eps)
    u = add(mul(u, high - low), low)
    return sub(p["loc"], mul(p["scale"], log(neg(log(u)))))


def _gumbel(p: Parameters, x: Any) -> Any:
    y = neg(_standard(p, x))
    return sub(sub(y, exp(y)), log(p["scale"]))


def _cauchy(p: Parameters, x: Any) -> Any:
    return sub(neg(log1p(square(_standard(p, x)))), add(log(p["scale"]), math.log(math.pi)))


def _half(p: Parameters) -> Parameters:
    return {"loc": number_like(0, p["scale"]), "scale": p["scale"]}


def _half_normal(p: Parameters, x: Any) -> Any:
    found = add(_normal(_half(p), x), math.log(2))
    return where(op("Less", x, number_like(0, x)), number_like(-np.inf, found), found)


def _student(p: Parameters, x: Any) -> Any:
    df = p["df"]
    half = mul(df, 0.5)
    whole = add(half, 0.5)
    constant = add(
        log(p["scale"]), mul(log(df), 0.5), 0.5 * math.log(math.pi),
        sub(log_gamma(half), log_gamma(whole)),
    )  # fmt: skip
    return sub(neg(mul(whole, log1p(div(square(_standard(p, x)), df)))), constant)


def _student_mean(p: Parameters) -> Any:
    return where(
        op("LessOrEqual", p["df"], number_like(1, p["df"])), number_like(np.nan, p["loc"]), p["loc"]
    )


def _student_variance(p: Parameters) -> Any:
    df = p["df"]
    wide = op("Greater", df, number_like(2, df))
    found = div(mul(square(p["scale"]), df), sub(where(wide, df, number_like(3, df)), 2))
    other = where(
        op("Greater", df, number_like(1, df)), number_like(np.inf, df), number_like(np.nan, df)
    )
    return where(wide, found, other)


def _student_entropy(p: Parameters) -> Any:
    half = mul(p["df"], 0.5)
    whole = add(half, 0.5)
    beta = add(log_gamma(half), sub(0.5 * math.log(math.pi), log_gamma(whole)))
    return add(
        log(p["scale"]), mul(whole, sub(digamma(whole), digamma(half))),
        mul(log(p["df"]), 0.5), beta,
    )  # fmt: skip


# Of numbers within bounds.


def _uniform(p: Parameters, x: Any) -> Any:
    inside = op("And", op("LessOrEqual", p["low"], x), op("Greater", p["high"], x))
    return sub(log(mask_like(inside, x)), log(sub(p["high"], p["low"])))


def _uniform_share(p: Parameters, x: Any) -> Any:
    share = div(sub(x, p["low"]), sub(p["high"], p["low"]))
    return op("Clip", share, number_like(0, share), number_like(1, share))


def _gamma(p: Parameters, x: Any) -> Any:
    c, r = p["concentration"], p["rate"]
    found = add(_x_log_y(c, r), _x_log_y(sub(c, 1), x))
    return sub(sub(found, mul(r, x)), log_gamma(c))


def _gamma_entropy(p: Parameters) -> Any:
    c = p["concentration"]
    return add(sub(c, log(p["rate"])), log_gamma(c), mul(sub(1, c), digamma(c)))


def _positive(x: Any) -> Any:
    return op("Max", x, number_like(0, x))


def pair_of(p: Parameters) -> Parameters:
    """Return a beta distribution's parameters as those of a Dirichlet distribution."""
    both = [op("Unsqueeze", p[f"concentration{i}"], [-1]) for i in (1, 0)]
    return {"concentration": op("Concat", *both, axis=-1)}


def _beta(p: Parameters, x: Any) -> Any:
    shares = op("Concat", *(op("Unsqueeze", s, [-1]) for s in (x, sub(1, x))), axis=-1)
    return _dirichlet(pair_of(p), shares)


def _beta_variance(p: Parameters) -> Any:
    a, b = p["concentration1"], p["concentration0"]
    whole = add(a, b)
    return div(mul(a, b), mul(square(whole), add(whole, 1)))


def _dirichlet(p: Parameters, x: Any) -> Any:
    c = p["concentration"]
    found = add(total(_x_log_y(sub(c, 1), x)), log_gamma(total(c)))
    return sub(found, total(log_gamma(c)))


def _dirichlet_mean(p: Parameters) -> Any:
    c = p["concentration"]
    return div(c, op("ReduceSum", c, np.array([-1]), keepdims=1))


def _dirichlet_variance(p: Parameters) -> Any:
    c = p["concentration"]
    whole = op("ReduceSum", c, np.array([-1]), keepdims=1)
    return div(mul(c, sub(whole, c)), mul(square(whole), add(whole, 1)))


def _dirichlet_mode(p: Parameters) -> Any:
    c = p["concentration"]
    above = _positive(sub(c, 1))
    mode = div(above, op("ReduceSum", above, np.array([-1]), keepdims=1))
    low = op("Less", op("ReduceMax", c, np.array([-1]), keepdims=1), number_like(1, c))
    return where(low, _hot(mode, c), mode)


def _dirichlet_entropy(p: Parameters) -> Any:
    c = p["concentration"]
    count = cast(op("Squeeze", op("Shape", c, start=-1), [0]), dtype_of(c))
    whole = total(c)
    found = sub(total(log_gamma(c)), log_gamma(whole))
    found = sub(found, mul(sub(count, whole), digamma(whole)))
    return sub(found, total(mul(sub(c, 1), digamma(c))))


# Of counts and kinds.


def _hot(of: Any, like: Any) -> Any:
    """Return 1 at the largest element of the last axis and 0 elsewhere."""
    depth = op("Shape", of, start=-1)
    values = np.array([0, 1], dtype_of(like).numpy())
    return op("OneHot", op("ArgMax", of, axis=-1, keepdims=0), depth, values, axis=-1)


def _bernoulli(p: Parameters, x: Any) -> Any:
    return sub(mul(x, p["logits"]), soft_plus(p["logits"]))


def _bernoulli_entropy(p: Parameters) -> Any:
    return neg(_bernoulli(p, p["probs"]))


def _bernoulli_mode(p: Parameters) -> Any:
    shares = p["probs"]
    half = number_like(0.5, shares)
    mode = mask_like(op("GreaterOrEqual", shares, half), shares)
    return where(op("Equal", shares, half), number_like(np.nan, shares), mode)


def _geometric(p: Parameters, x: Any) -> Any:
    shares = p["probs"]
    sure = op("And", op("Equal", shares, number_like(1, shares)), op("Equal", x, number_like(0, x)))
    rest = where(sure, number_like(0, shares), shares)
    return add(mul(x, log1p(neg(rest))), log(shares))


def _poisson(p: Parameters, x: Any) -> Any:
    return sub(sub(_x_log_y(x, p["rate"]), p["rate"]), log_gamma(add(x, 1)))


def _category(p: Parameters, x: Any) -> Any:
    places = op("Unsqueeze", cast(x, ir.DataType.INT64), [-1])
    batch = op("Slice", op("Shape", p["logits"]), [0], [-1], [0])
    count = op("Shape", p["logits"], start=-1)
    shape = op("Concat", op("Shape", op("Expand", x, batch)), count, axis=0)
    wide = op("Expand", p["logits"], shape)
    places = op("Expand", places, op("Concat", op("Shape", op("Expand", x, batch)), [1], axis=0))
    return op("Squeeze", op("GatherElements", wide, places, axis=-1), [-1])


def _category_entropy(p: Parameters) -> Any:
    least = number_like(float(ml_dtypes.finfo(dtype_of(p["logits"]).numpy()).min), p["logits"])
    return neg(total(mul(op("Max", p["logits"], least), p["probs"])))


def _squares(p: Parameters) -> Any:
    return mul(p["probs"], sub(1, p["probs"]))


LAWS: dict[str, Law] = {
    "Normal": Law(
        _normal, lambda p: p["loc"], lambda p: square(p["scale"]), lambda p: p["loc"],
        _normal_entropy, lambda p, x: _normal_share(_standard(p, x)), "randn", _placed,
    ),
    "LogNormal": Law(
        lambda p, x: sub(_normal(p, log(x)), log(x)),
        lambda p: exp(add(p["loc"], mul(square(p["scale"]), 0.5))), _log_normal_variance,
        lambda p: exp(sub(p["loc"], square(p["scale"]))),
        lambda p: add(_normal_entropy(p), p["loc"]),
        lambda p, x: _normal_share(_standard(p, log(x))), "randn",
        lambda p, e: exp(_placed(p, e)),
    ),
    "HalfNormal": Law(
        _half_normal, lambda p: mul(p["scale"], math.sqrt(2 / math.pi)),
        lambda p: mul(square(p["scale"]), 1 - 2 / math.pi), lambda p: _everywhere(0, p["scale"]),
        lambda p: sub(_normal_entropy(p), math.log(2)),
        lambda p, x: sub(mul(_normal_share(div(x, p["scale"])), 2), 1), "randn",
        lambda p, e: op("Abs", mul(p["scale"], e)),
    ),
    "Laplace": Law(
        lambda p, x: sub(neg(log(mul(p["scale"], 2))), op("Abs", _standard(p, x))),
        lambda p: p["loc"], lambda p: mul(square(p["scale"]), 2), lambda p: p["loc"],
        lambda p: add(log(mul(p["scale"], 2)), 1), _laplace_share, "rand", _laplace_draw,
    ),
    "Gumbel": Law(
        _gumbel, lambda p: add(p["loc"], mul(p["scale"], _EULER)),
        lambda p: mul(square(p["scale"]), math.pi**2 / 6), lambda p: p["loc"],
        lambda p: add(log(p["scale"]), 1 + _EULER),
        lambda p, x: exp(neg(exp(neg(_standard(p, x))))), "rand", _gumbel_draw,
    ),
    "Cauchy": Law(
        _cauchy, lambda p: _everywhere(np.nan, p["loc"]), lambda p: _everywhere(np.inf, p["loc"]),
        lambda p: p["loc"], lambda p: add(log(p["scale"]), math.log(4 * math.pi)),
        lambda p, x: add(div(op("Atan", _standard(p, x)), math.pi), 0.5),
    ),
    "StudentT": Law(
        _student, _student_mean, _student_variance, lambda p: p["loc"], _student_entropy,
    ),
    "Uniform": Law(
        _uniform, lambda p: mul(add(p["high"], p["low"]), 0.5),
        lambda p: div(square(sub(p["high"], p["low"])), 12),
        lambda p: _everywhere(np.nan, p["high"]), lambda p: log(sub(p["high"], p["low"])),
        _uniform_share, "rand", lambda p, u: add(p["low"], mul(u, sub(p["high"], p["low"]))),
    ),
    "Exponential": Law(
        lambda p, x: sub(log(p["rate"]), mul(p["rate"], x)), lambda p: op("Reciprocal", p["rate"]),
        lambda p: op("Reciprocal", square(p["rate"])), lambda p: _everywhere(0, p["rate"]),
        lambda p: sub(1, log(p["rate"])), lambda p, x: neg(expm1(neg(mul(p["rate"], x)))),
    ),
    "Gamma": Law(
        _gamma, lambda p: div(p["concentration"], p["rate"]),
        lambda p: div(p["concentration"], square(p["rate"])),
        lambda p: _positive(div(sub(p["concentration"], 1), p["rate"])), _gamma_entropy,
    ),
    "Beta": Law(
        _beta, lambda p: div(p["concentration1"], add(p["concentration1"], p["concentration0"])),
        _beta_variance,
        lambda p: op("Gather", _dirichlet_mode(pair_of(p)), np.array(0), axis=-1),
        lambda p: _dirichlet_entropy(pair_of(p)),
    ),
    "Dirichlet": Law(
        _dirichlet, _dirichlet_mean, _dirichlet_variance, _dirichlet_mode, _dirichlet_entropy,
        event=1,
    ),
    "Bernoulli": Law(
        _bernoulli, lambda p: p["probs"], _squares, _bernoulli_mode, _bernoulli_entropy,
        noise="rand", draw=lambda p, u: mask_like(op("Less", u, p["probs"]), u),
    ),
    "Geometric": Law(
        _geometric, lambda p: sub(op("Reciprocal", p["probs"]), 1),
        lambda p: div(sub(op("Reciprocal", p["probs"]), 1), p["probs"]),
        lambda p: _everywhere(0, p["probs"]),
        lambda p: div(_bernoulli_entropy(p), p["probs"]),
    ),
    "Poisson": Law(
        _poisson, lambda p: p["rate"], lambda p: p["rate"], lambda p: op("Floor", p["rate"]),
    ),
    "Categorical": Law(
        _category, lambda p: _everywhere(np.nan, total(p["probs"])),
        lambda p: _everywhere(np.nan, total(p["probs"])),
        lambda p: op("ArgMax", p["probs"], axis=-1, keepdims=0), _category_entropy,
    ),
    "OneHotCategorical": Law(
        lambda p, x: _category(p, op("ArgMax", x, axis=-1, keepdims=0)), lambda p: p["probs"],
        _squares, lambda p: _hot(p["probs"], p["probs"]), _category_entropy, event=1,
    ),
}  # fmt: skip


def both_forms(name: str, key: str, x: Any) -> tuple[Any, Any]:
    """Return probabilities and their logits, of one of these.

    Args:
        name: The distribution.
        key: ``probs`` or ``logits``.
        x: It.
    """
    kinds = name in ("Categorical", "OneHotCategorical")
    if key == "logits":
        if not kinds:
            return op("Sigmoid", x), x
        return op("Softmax", x, axis=-1), op("LogSoftmax", x, axis=-1)
    if kinds:
        x = div(x, op("ReduceSum", x, np.array([-1]), keepdims=1))
    eps = float(ml_dtypes.finfo(dtype_of(x).numpy()).eps)
    within = op("Clip", x, number_like(eps, x), number_like(1 - eps, x))
    return x, log(within) if kinds else sub(log(within), log1p(neg(within)))


__all__ = [
    "LAWS",
    "Law",
    "Parameters",
    "both_forms",
    "number_like",
    "pair_of",
    "soft_plus",
    "total",
]
