"""Distributions of real numbers."""

from __future__ import annotations

import math
import warnings
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

_EULER = 0.57721566490153286060651209008240243104215933593992


class _LocScale(Distribution):
    """A distribution that is moved by ``loc`` and stretched by ``scale``."""

    def __init__(self, loc: Any, scale: Any):
        self.loc = parameter(loc)
        self.scale = parameter(scale)

    @property
    def params(self) -> dict[str, Any]:
        """The parameters by name."""
        return {"loc": self.loc, "scale": self.scale}

    @property
    def batch_shape(self) -> tuple[int, ...]:
        """The sizes of the parameters."""
        return tuple(self.loc.shape)

    @property
    def support(self) -> str:
        """All numbers."""
        return "real"

    def _standard(self, x: Any) -> Any:
        return (given(x, self.loc) - self.loc) / self.scale

    def _drawn(self, noise: Any, n: int) -> Any:
        made = noise.astype(self.loc.dtype)
        return spread(self.loc, n) + spread(self.scale, n) * made


class Normal(_LocScale):
    """The normal distribution.

    Args:
        loc: The means.
        scale: The deviations.
        kwargs: ``log_scale`` gives their logarithms instead.
    """

    def __init__(self, loc: Any, scale: Any = None, **kwargs: Any):
        log_scale = kwargs.pop("log_scale", None)
        if kwargs:
            raise TypeError(f"unexpected arguments: {', '.join(kwargs)}")
        if (scale is None) == (log_scale is None):
            raise ValueError("Either `scale` or `log_scale` (not both) must have a value.")
        self.log_scale: Any = None if log_scale is None else parameter(log_scale)
        super().__init__(loc, F.exp(self.log_scale) if scale is None else scale)
        if self.log_scale is None:
            self.log_scale = F.log(self.scale)

    def log_prob(self, x: Any) -> Any:
        """Return logarithms of densities."""
        z = self._standard(x)
        return z * z * -0.5 - self.log_scale - 0.5 * math.log(2 * math.pi)

    def cdf(self, x: Any) -> Any:
        """Return probabilities of values up to ``x``."""
        return F.ndtr(self._standard(x))

    def log_cdf(self, x: Any) -> Any:
        """Return their logarithms."""
        return F.log_ndtr(self._standard(x))

    def survival_function(self, x: Any) -> Any:
        """Return probabilities of values above ``x``."""
        return F.ndtr(-self._standard(x))

    def log_survival_function(self, x: Any) -> Any:
        """Return their logarithms."""
        return F.log_ndtr(-self._standard(x))

    def icdf(self, x: Any) -> Any:
        """Return quantiles."""
        return self.loc + self.scale * F.ndtri(given(x, self.loc))

    @property
    def mean(self) -> Any:
        """The means."""
        return self.loc

    @property
    def mode(self) -> Any:
        """The means."""
        return self.loc

    @property
    def variance(self) -> Any:
        """The variances."""
        return self.scale * self.scale

    @property
    def stddev(self) -> Any:
        """The deviations."""
        return self.scale

    @property
    def entropy(self) -> Any:
        """The entropies."""
        return self.log_scale + 0.5 * math.log(2 * math.pi * math.e)

    def sample_n(self, n: int) -> Any:
        """Return ``n`` samples."""
        return self._drawn(np.random.standard_normal((n, *self.batch_shape)), n)


class Laplace(_LocScale):
    """The Laplace distribution."""

    def log_prob(self, x: Any) -> Any:
        """Return logarithms of densities."""
        return -F.absolute(self._standard(x)) - F.log(self.scale * 2)

    def cdf(self, x: Any) -> Any:
        """Return probabilities of values up to ``x``."""
        z = self._standard(x)
        return 0.5 - 0.5 * F.sign(z) * (F.exp(-F.absolute(z)) - 1)

    def icdf(self, x: Any) -> Any:
        """Return quantiles."""
        q = given(x, self.loc) - 0.5
        return self.loc - self.scale * F.sign(q) * F.log1p(F.absolute(q) * -2)

    @property
    def mean(self) -> Any:
        """The means."""
        return self.loc

    @property
    def mode(self) -> Any:
        """The means."""
        return self.loc

    @property
    def variance(self) -> Any:
        """The variances."""
        return self.scale * self.scale * 2

    @property
    def stddev(self) -> Any:
        """The deviations."""
        return self.scale * math.sqrt(2)

    @property
    def entropy(self) -> Any:
        """The entropies."""
        return 1 + F.log(self.scale * 2)

    def sample_n(self, n: int) -> Any:
        """Return ``n`` samples."""
        return self._drawn(np.random.laplace(size=(n, *self.batch_shape)), n)


class Gumbel(_LocScale):
    """The Gumbel distribution."""

    def log_prob(self, x: Any) -> Any:
        """Return logarithms of densities."""
        z = self._standard(x)
        return -F.exp(-z) - z - F.log(self.scale)

    @property
    def mean(self) -> Any:
        """The means."""
        return self.loc + self.scale * _EULER

    @property
    def mode(self) -> Any:
        """The most probable values."""
        return self.loc

    @property
    def variance(self) -> Any:
        """The variances."""
        return self.scale * self.scale * (math.pi**2 / 6)

    @property
    def entropy(self) -> Any:
        """The entropies."""
        return F.log(self.scale) + (_EULER + 1)

    def sample_n(self, n: int) -> Any:
        """Return ``n`` samples."""
        return self._drawn(np.random.gumbel(size=(n, *self.batch_shape)), n)


class Cauchy(_LocScale):
    """The Cauchy distribution, which has no mean."""

    def log_prob(self, x: Any) -> Any:
        """Return logarithms of densities."""
        z = self._standard(x)
        return -F.log1p(z * z) - F.log(self.scale) - math.log(math.pi)

    def cdf(self, x: Any) -> Any:
        """Return probabilities of values up to ``x``."""
        return F.arctan(self._standard(x)) * (1 / math.pi) + 0.5

    def icdf(self, x: Any) -> Any:
        """Return quantiles."""
        return self.loc + self.scale * F.tan((given(x, self.loc) - 0.5) * math.pi)

    @property
    def mean(self) -> Any:
        """NaN, with a warning."""
        return self._undefined("Mean")

    def _undefined(self, name: str) -> Any:
        warnings.warn(
            f"{name} of the cauchy distribution is undefined.", RuntimeWarning, stacklevel=3
        )
        return as_variable(np.full_like(self.loc.array, np.nan))

    @property
    def mode(self) -> Any:
        """The most probable values."""
        return self.loc

    @property
    def variance(self) -> Any:
        """NaN, with a warning."""
        return self._undefined("Variance")

    @property
    def entropy(self) -> Any:
        """The entropies."""
        return F.log(self.scale * (4 * math.pi))

    def sample_n(self, n: int) -> Any:
        """Return ``n`` samples."""
        return self._drawn(np.random.standard_cauchy((n, *self.batch_shape)), n)


class Uniform(Distribution):
    """The uniform distribution.

    Args:
        kwargs: ``low`` and ``high``, or ``loc`` and ``scale``.
    """

    def __init__(self, **kwargs: Any):
        low, high = kwargs.pop("low", None), kwargs.pop("high", None)
        loc, scale = kwargs.pop("loc", None), kwargs.pop("scale", None)
        if kwargs:
            raise TypeError(f"unexpected arguments: {', '.join(kwargs)}")
        if (low is None or high is None) == (loc is None or scale is None):
            raise ValueError("Either `low, high` or `loc, scale` (not both) must have a value.")
        if low is None:
            self.loc, self.scale = parameter(loc), parameter(scale)
            self.low, self.high = self.loc, self.loc + self.scale
            self._given = ("loc", "scale")
        else:
            self.low, self.high = parameter(low), parameter(high)
            self.loc, self.scale = self.low, self.high - self.low
            self._given = ("low", "high")

    @property
    def params(self) -> dict[str, Any]:
        """The parameters by name: the two that were given."""
        return {name: getattr(self, name) for name in self._given}

    @property
    def batch_shape(self) -> tuple[int, ...]:
        """The sizes of the parameters."""
        return tuple(self.low.shape)

    @property
    def support(self) -> str:
        """Between both."""
        return "[low, high]"

    def log_prob(self, x: Any) -> Any:
        """Return logarithms of densities."""
        x = given(x, self.low)
        inside = (x.array >= self.low.array) & (x.array <= self.high.array)
        log_p = -F.log(self.scale) + x * 0
        return chosen(inside, log_p, -np.inf)

    def cdf(self, x: Any) -> Any:
        """Return probabilities of values up to ``x``."""
        return F.clip((given(x, self.low) - self.low) / self.scale, 0.0, 1.0)

    def icdf(self, x: Any) -> Any:
        """Return quantiles."""
        return given(x, self.low) * self.scale + self.low

    @property
    def mean(self) -> Any:
        """The means."""
        return (self.low + self.high) * 0.5

    @property
    def mode(self) -> Any:
        """NaN: all values are as probable."""
        return as_variable(np.full_like(self.low.array, np.nan))

    @property
    def variance(self) -> Any:
        """The variances."""
        return self.scale * self.scale * (1 / 12)

    @property
    def entropy(self) -> Any:
        """The entropies."""
        return F.log(self.scale)

    def sample_n(self, n: int) -> Any:
        """Return ``n`` samples."""
        drawn = np.random.uniform(0, 1, (n, *self.batch_shape)).astype(self.low.dtype)
        return spread(self.low, n) + spread(self.scale, n) * drawn


class Exponential(Distribution):
    """The exponential distribution of rate ``lam``."""

    def __init__(self, lam: Any):
        self.lam = parameter(lam)

    @property
    def params(self) -> dict[str, Any]:
        """The parameters by name."""
        return {"lam": self.lam}

    @property
    def batch_shape(self) -> tuple[int, ...]:
        """The sizes of the parameters."""
        return tuple(self.lam.shape)

    @property
    def support(self) -> str:
        """Positive numbers."""
        return "positive"

    def log_prob(self, x: Any) -> Any:
        """Return logarithms of densities."""
        x = given(x, self.lam)
        log_p = F.log(self.lam) - self.lam * x
        return chosen(x.array >= 0, log_p, -np.inf)

    def cdf(self, x: Any) -> Any:
        """Return probabilities of values up to ``x``."""
        return -F.expm1(-self.lam * given(x, self.lam))

    def icdf(self, x: Any) -> Any:
        """Return quantiles."""
        return -F.log1p(-given(x, self.lam)) / self.lam

    @property
    def mean(self) -> Any:
        """The means."""
        return 1 / self.lam

    @property
    def mode(self) -> Any:
        """Zeros."""
        return as_variable(np.zeros_like(self.lam.array))

    @property
    def variance(self) -> Any:
        """The variances."""
        return 1 / (self.lam * self.lam)

    @property
    def entropy(self) -> Any:
        """The entropies."""
        return 1 - F.log(self.lam)

    def sample_n(self, n: int) -> Any:
        """Return ``n`` samples."""
        drawn = np.random.standard_exponential((n, *self.batch_shape)).astype(self.lam.dtype)
        return as_variable(drawn) / spread(self.lam, n)


class LogNormal(Distribution):
    """The distribution of numbers whose logarithms are normal."""

    def __init__(self, mu: Any, sigma: Any):
        self.mu = parameter(mu)
        self.sigma = parameter(sigma)

    @property
    def params(self) -> dict[str, Any]:
        """The parameters by name."""
        return {"mu": self.mu, "sigma": self.sigma}

    @property
    def batch_shape(self) -> tuple[int, ...]:
        """The sizes of the parameters."""
        return tuple(self.mu.shape)

    @property
    def support(self) -> str:
        """Positive numbers."""
        return "positive"

    def log_prob(self, x: Any) -> Any:
        """Return logarithms of densities."""
        log_x = F.log(given(x, self.mu))
        z = (log_x - self.mu) / self.sigma
        return z * z * -0.5 - log_x - F.log(self.sigma) - 0.5 * math.log(2 * math.pi)

    @property
    def mean(self) -> Any:
        """The means."""
        return F.exp(self.mu + self.sigma * self.sigma * 0.5)

    @property
    def variance(self) -> Any:
        """The variances."""
        square = self.sigma * self.sigma
        return F.exp(self.mu * 2 + square) * F.expm1(square)

    @property
    def entropy(self) -> Any:
        """The entropies."""
        return F.log(self.sigma) + self.mu + 0.5 * math.log(2 * math.pi * math.e)

    def sample_n(self, n: int) -> Any:
        """Return ``n`` samples."""
        noise = np.random.standard_normal((n, *self.batch_shape)).astype(self.mu.dtype)
        return F.exp(spread(self.mu, n) + spread(self.sigma, n) * noise)


@register_kl(Normal, Normal)
def _normal_normal(p: Normal, q: Normal) -> Any:
    ratio = p.variance / q.variance
    distance = p.loc - q.loc
    return q.log_scale - p.log_scale + (ratio + distance * distance / q.variance - 1) * 0.5


@register_kl(LogNormal, LogNormal)
def _log_normal_log_normal(p: LogNormal, q: LogNormal) -> Any:
    return _normal_normal(Normal(p.mu, p.sigma), Normal(q.mu, q.sigma))


@register_kl(Gumbel, Gumbel)
def _gumbel_gumbel(p: Gumbel, q: Gumbel) -> Any:
    ratio = p.scale / q.scale
    distance = (p.loc - q.loc) / q.scale
    tail = F.exp(F.lgamma(ratio + 1) - distance)
    return distance - F.log(ratio) + _EULER * (ratio - 1) + tail - 1


@register_kl(Laplace, Laplace)
def _laplace_laplace(p: Laplace, q: Laplace) -> Any:
    distance = F.absolute(p.loc - q.loc)
    ratio = p.scale / q.scale
    return distance / q.scale + ratio * F.exp(-distance / p.scale) - F.log(ratio) - 1


@register_kl(Exponential, Exponential)
def _exponential_exponential(p: Exponential, q: Exponential) -> Any:
    ratio = q.lam / p.lam
    return ratio - F.log(ratio) - 1


@register_kl(Uniform, Uniform)
def _uniform_uniform(p: Uniform, q: Uniform) -> Any:
    inside = (p.low.array >= q.low.array) & (p.high.array <= q.high.array)
    found = F.log(q.scale) - F.log(p.scale)
    return chosen(inside, found, np.inf)
