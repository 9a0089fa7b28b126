"""Distributions whose densities are made of gamma functions, and Pareto's."""

from __future__ import annotations

from typing import Any

import numpy as np

from hagane.nn import functions as F
from hagane.nn.autograd.variable import as_variable
from hagane.nn.distributions.distribution import (
    Distribution,
    chosen,
    given,
    parameter,
    register_kl,
    spread,
)


def _log_beta(a: Any, b: Any) -> Any:
    return F.lgamma(a) + F.lgamma(b) - F.lgamma(a + b)


class Beta(Distribution):
    """The beta distribution of numbers from 0 to 1.

    Args:
        a: The first shape, positive.
        b: The second.
    """

    def __init__(self, a: Any, b: Any):
        self.a = parameter(a)
        self.b = parameter(b)

    @property
    def params(self) -> dict[str, Any]:
        """The parameters by name."""
        return {"a": self.a, "b": self.b}

    @property
    def batch_shape(self) -> tuple[int, ...]:
        """The sizes of the parameters."""
        return tuple(self.a.shape)

    @property
    def support(self) -> str:
        """From 0 to 1."""
        return "[0, 1]"

    def log_prob(self, x: Any) -> Any:
        """Return logarithms of densities."""
        x = given(x, self.a)
        found = (self.a - 1) * F.log(x) + (self.b - 1) * F.log(1 - x) - _log_beta(self.a, self.b)
        return chosen((x.array >= 0) & (x.array <= 1), found, -np.inf)

    @property
    def mean(self) -> Any:
        """The means."""
        return self.a / (self.a + self.b)

    @property
    def variance(self) -> Any:
        """The variances."""
        total = self.a + self.b
        return self.a * self.b / (total * total * (total + 1))

    @property
    def entropy(self) -> Any:
        """The entropies."""
        total = self.a + self.b
        parts = (self.a - 1) * F.digamma(self.a) + (self.b - 1) * F.digamma(self.b)
        return _log_beta(self.a, self.b) - parts + (total - 2) * F.digamma(total)

    def sample_n(self, n: int) -> Any:
        """Return ``n`` samples; no gradient flows through them."""
        drawn = np.random.beta(self.a.array, self.b.array, (n, *self.batch_shape))
        return as_variable(np.asarray(drawn, self.a.dtype))


class Gamma(Distribution):
    """The gamma distribution.

    Args:
        k: The shape, positive.
        theta: The scale.
    """

    def __init__(self, k: Any, theta: Any):
        self.k = parameter(k)
        self.theta = parameter(theta)

    @property
    def params(self) -> dict[str, Any]:
        """The parameters by name."""
        return {"k": self.k, "theta": self.theta}

    @property
    def batch_shape(self) -> tuple[int, ...]:
        """The sizes of the parameters."""
        return tuple(self.k.shape)

    @property
    def support(self) -> str:
        """Positive numbers."""
        return "positive"

    def log_prob(self, x: Any) -> Any:
        """Return logarithms of densities."""
        x = given(x, self.k)
        constant = F.lgamma(self.k) + self.k * F.log(self.theta)
        found = (self.k - 1) * F.log(x) - x / self.theta - constant
        return chosen(x.array >= 0, found, -np.inf)

    @property
    def mean(self) -> Any:
        """The means."""
        return self.k * self.theta

    @property
    def variance(self) -> Any:
        """The variances."""
        return self.k * self.theta * self.theta

    @property
    def entropy(self) -> Any:
        """The entropies."""
        return self.k + F.log(self.theta) + F.lgamma(self.k) + (1 - self.k) * F.digamma(self.k)

    def sample_n(self, n: int) -> Any:
        """Return ``n`` samples; gradients flow to the scale alone."""
        drawn = np.random.gamma(self.k.array, size=(n, *self.batch_shape))
        return spread(self.theta, n) * np.asarray(drawn, self.k.dtype)


class Chisquare(Gamma):
    """The chi-squared distribution, the gamma distribution of shape ``k / 2`` and scale 2.

    Args:
        k: The degrees of freedom.
    """

    def __init__(self, k: Any):
        degrees = parameter(k)
        super().__init__(degrees * 0.5, np.full_like(degrees.array, 2))
        self.degrees = degrees

    @property
    def params(self) -> dict[str, Any]:
        """The parameters by name."""
        return {"k": self.degrees}

    def sample_n(self, n: int) -> Any:
        """Return ``n`` samples; no gradient flows through them."""
        drawn = np.random.chisquare(self.degrees.array, (n, *self.batch_shape))
        return as_variable(np.asarray(drawn, self.degrees.dtype))


class Pareto(Distribution):
    """Pareto's distribution.

    Args:
        scale: The least value.
        alpha: The exponent of the density's fall, less one.
    """

    def __init__(self, scale: Any, alpha: Any):
        self.scale = parameter(scale)
        self.alpha = parameter(alpha)

    @property
    def params(self) -> dict[str, Any]:
        """The parameters by name."""
        return {"scale": self.scale, "alpha": self.alpha}

    @property
    def batch_shape(self) -> tuple[int, ...]:
        """The sizes of the parameters."""
        return tuple(self.scale.shape)

    @property
    def support(self) -> str:
        """From the least value on."""
        return "[scale, inf]"

    def log_prob(self, x: Any) -> Any:
        """Return logarithms of densities."""
        x = given(x, self.scale)
        found = F.log(self.alpha) + self.alpha * F.log(self.scale) - (self.alpha + 1) * F.log(x)
        return chosen(x.array >= self.scale.array, found, -np.inf)

    @property
    def mean(self) -> Any:
        """The means, infinite where ``alpha`` is at most 1."""
        found = self.alpha * self.scale / (self.alpha - 1)
        return chosen(self.alpha.array > 1, found, np.inf)

    @property
    def variance(self) -> Any:
        """The variances, infinite where ``alpha`` is at most 2."""
        less = self.alpha - 1
        found = self.scale * self.scale * self.alpha / (less * less * (self.alpha - 2))
        return chosen(self.alpha.array > 2, found, np.inf)

    @property
    def entropy(self) -> Any:
        """The entropies."""
        return F.log(self.scale) - F.log(self.alpha) + 1 / self.alpha + 1

    def sample_n(self, n: int) -> Any:
        """Return ``n`` samples; gradients flow to the least value alone."""
        drawn = np.random.pareto(self.alpha.array, (n, *self.batch_shape))
        return spread(self.scale, n) * (np.asarray(drawn, self.alpha.dtype) + 1)


@register_kl(Beta, Beta)
def _beta_beta(p: Beta, q: Beta) -> Any:
    of_p, of_q = p.a + p.b, q.a + q.b
    parts = (p.a - q.a) * F.digamma(p.a) + (p.b - q.b) * F.digamma(p.b)
    return _log_beta(q.a, q.b) - _log_beta(p.a, p.b) + parts + (of_q - of_p) * F.digamma(of_p)


@register_kl(Gamma, Gamma)
def _gamma_gamma(p: Gamma, q: Gamma) -> Any:
    shapes = (p.k - q.k) * F.digamma(p.k) + F.lgamma(q.k) - F.lgamma(p.k)
    return shapes + q.k * F.log(q.theta / p.theta) + p.k * (p.theta / q.theta - 1)


@register_kl(Pareto, Pareto)
def _pareto_pareto(p: Pareto, q: Pareto) -> Any:
    ratio = q.alpha / p.alpha
    found = q.alpha * F.log(p.scale / q.scale) - F.log(ratio) + ratio - 1
    return chosen(p.scale.array >= q.scale.array, found, np.inf)
