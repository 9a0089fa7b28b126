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
from hagane.nn.distributions.gamma import Beta, Chisquare, Gamma, Pareto
from hagane.nn.distributions.independent import Independent
from hagane.nn.distributions.vectors import Dirichlet, MultivariateNormal, OneHotCategorical

__all__ = [
    "Bernoulli",
    "Beta",
    "Categorical",
    "Cauchy",
    "Chisquare",
    "Dirichlet",
    "Distribution",
    "Exponential",
    "Gamma",
    "Geometric",
    "Gumbel",
    "Independent",
    "Laplace",
    "LogNormal",
    "MultivariateNormal",
    "Normal",
    "OneHotCategorical",
    "Pareto",
    "Poisson",
    "Uniform",
    "cross_entropy",
    "kl_divergence",
    "register_kl",
]
