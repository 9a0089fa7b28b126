"""Distributions, differentiable by their parameters."""

from hagane.nn.distributions.continuous import (
    Cauchy,
    Exponential,
    Gumbel,
    Laplace,
    LogNormal,
    Normal,
    Uniform,
)
from hagane.nn.distributions.discrete import Bernoulli, Categorical, Geometric, Poisson
from hagane.nn.distributions.distribution import (
    Distribution,
    cross_entropy,
    kl_divergence,
    register_kl,
)

__all__ = [
    "Bernoulli",
    "Categorical",
    "Cauchy",
    "Distribution",
    "Exponential",
    "Geometric",
    "Gumbel",
    "Laplace",
    "LogNormal",
    "Normal",
    "Poisson",
    "Uniform",
    "cross_entropy",
    "kl_divergence",
    "register_kl",
]
