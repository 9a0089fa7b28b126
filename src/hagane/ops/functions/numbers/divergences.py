"""Divergences of Kullback and Leibler between distributions of one kind, as PyTorch has them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from hagane.ops.builder import op
from hagane.ops.functions.numbers.densities import (
    Parameters,
    number_like,
    pair_of,
    soft_plus,
    total,
)
from hagane.ops.functions.numbers.elementary import add, div, exp, log, mul, neg, square, sub, where
from hagane.ops.functions.numbers.special import digamma, log_gamma


def _between_normals(p: Parameters, q: Parameters) -> Any:
    ratio = square(div(p["scale"], q["scale"]))
    apart = square(div(sub(p["loc"], q["loc"]), q["scale"]))
    return mul(sub(sub(add(ratio, apart), 1), log(ratio)), 0.5)


def _between_kinds(p: Parameters, q: Parameters) -> Any:
    zero = number_like(0, p["probs"])
    terms = mul(p["probs"], sub(p["logits"], q["logits"]))
    terms = where(op("Equal", q["probs"], zero), number_like(np.inf, terms), terms)
    return total(where(op("Equal", p["probs"], zero), zero, terms))


def _between_coins(p: Parameters, q: Parameters) -> Any:
    zero, one = number_like(0, p["probs"]), number_like(1, p["probs"])
    ones = mul(p["probs"], sub(soft_plus(neg(q["logits"])), soft_plus(neg(p["logits"]))))
    ones = where(op("Equal", q["probs"], zero), number_like(np.inf, ones), ones)
    ones = where(op("Equal", p["probs"], zero), zero, ones)
    zeros = mul(sub(1, p["probs"]), sub(soft_plus(q["logits"]), soft_plus(p["logits"])))
    zeros = where(op("Equal", q["probs"], one), number_like(np.inf, zeros), zeros)
    return add(ones, where(op("Equal", p["probs"], one), zero, zeros))


def _between_laplaces(p: Parameters, q: Parameters) -> Any:
    ratio = div(p["scale"], q["scale"])
    apart = op("Abs", sub(p["loc"], q["loc"]))
    near = mul(ratio, exp(neg(div(apart, p["scale"]))))
    return sub(add(neg(log(ratio)), div(apart, q["scale"]), near), 1)


def _between_exponentials(p: Parameters, q: Parameters) -> Any:
    ratio = div(q["rate"], p["rate"])
    return sub(sub(ratio, log(ratio)), 1)


def _between_gammas(p: Parameters, q: Parameters) -> Any:
    a, b = p["concentration"], q["concentration"]
    found = add(mul(b, log(div(p["rate"], q["rate"]))), sub(log_gamma(b), log_gamma(a)))
    found = add(found, mul(sub(a, b), digamma(a)))
    return add(found, mul(sub(q["rate"], p["rate"]), div(a, p["rate"])))


def _between_dirichlets(p: Parameters, q: Parameters) -> Any:
    a, b = p["concentration"], q["concentration"]
    whole = total(a)
    found = sub(log_gamma(whole), log_gamma(total(b)))
    found = sub(found, total(sub(log_gamma(a), log_gamma(b))))
    spread = sub(digamma(a), op("Unsqueeze", digamma(whole), [-1]))
    return add(found, total(mul(sub(a, b), spread)))


def _between_poissons(p: Parameters, q: Parameters) -> Any:
    return sub(mul(p["rate"], sub(log(p["rate"]), log(q["rate"]))), sub(p["rate"], q["rate"]))


def _between_uniforms(p: Parameters, q: Parameters) -> Any:
    found = log(div(sub(q["high"], q["low"]), sub(p["high"], p["low"])))
    outside = op("Or", op("Greater", q["low"], p["low"]), op("Less", q["high"], p["high"]))
    return where(outside, number_like(np.inf, found), found)


DIVERGENCES: dict[str, Callable[[Parameters, Parameters], Any]] = {
    "Normal": _between_normals,
    "LogNormal": _between_normals,
    "Bernoulli": _between_coins,
    "Categorical": _between_kinds,
    "OneHotCategorical": _between_kinds,
    "Laplace": _between_laplaces,
    "Exponential": _between_exponentials,
    "Gamma": _between_gammas,
    "Beta": lambda p, q: _between_dirichlets(pair_of(p), pair_of(q)),
    "Dirichlet": _between_dirichlets,
    "Poisson": _between_poissons,
    "Uniform": _between_uniforms,
}
