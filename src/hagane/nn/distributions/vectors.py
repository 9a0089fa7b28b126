"""Distributions of vectors."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from hagane.nn import functions as F
from hagane.nn.autograd.variable import as_variable
from hagane.nn.distributions.distribution import (
    Distribution,
    drawn_categories,
    given,
    parameter,
    register_kl,
)


class Dirichlet(Distribution):
    """Dirichlet's distribution of vectors of probabilities.

    Args:
        alpha: Concentrations, along the last axis.
    """

    def __init__(self, alpha: Any):
        self.alpha = parameter(alpha)
        self.alpha0 = F.sum(self.alpha, axis=-1)

    @property
    def params(self) -> dict[str, Any]:
        """The parameters by name."""
        return {"alpha": self.alpha}

    @property
    def batch_shape(self) -> tuple[int, ...]:
        """The sizes of the parameters but the last."""
        return tuple(self.alpha.shape[:-1])

    @property
    def event_shape(self) -> tuple[int, ...]:
        """The number of categories."""
        return tuple(self.alpha.shape[-1:])

    @property
    def support(self) -> str:
        """From 0 to 1."""
        return "[0, 1]"

    @property
    def log_normalizer(self) -> Any:
        """Logarithms of the multivariate beta function."""
        return F.sum(F.lgamma(self.alpha), axis=-1) - F.lgamma(self.alpha0)

    def log_prob(self, x: Any) -> Any:
        """Return logarithms of densities."""
        found = F.sum((self.alpha - 1) * F.log(given(x, self.alpha)), axis=-1)
        return found - F.broadcast_to(self.log_normalizer, found.shape)

    @property
    def mean(self) -> Any:
        """The means."""
        return self.alpha / F.expand_dims(self.alpha0, -1)

    @property
    def variance(self) -> Any:
        """The variances of each element."""
        mean = self.mean
        return mean * (1 - mean) / (F.expand_dims(self.alpha0, -1) + 1)

    @property
    def entropy(self) -> Any:
        """The entropies."""
        parts = F.sum((self.alpha - 1) * F.digamma(self.alpha), axis=-1)
        whole = (self.alpha0 - self.event_shape[0]) * F.digamma(self.alpha0)
        return self.log_normalizer + whole - parts

    def sample_n(self, n: int) -> Any:
        """Return ``n`` samples; no gradient flows through them."""
        rows = self.alpha.array.reshape(-1, *self.event_shape)
        drawn = np.stack([np.random.dirichlet(row, n) for row in rows], axis=1)
        return as_variable(drawn.reshape(n, *self.alpha.shape).astype(self.alpha.dtype))


class OneHotCategorical(Distribution):
    """Categories, as vectors that are one in one place and zero elsewhere.

    Args:
        p: Probabilities, along the last axis.
    """

    def __init__(self, p: Any):
        self.p = parameter(p)
        self.log_p = F.log(self.p)

    @property
    def params(self) -> dict[str, Any]:
        """The parameters by name."""
        return {"p": self.p}

    @property
    def batch_shape(self) -> tuple[int, ...]:
        """The sizes of the parameters but the last."""
        return tuple(self.p.shape[:-1])

    @property
    def event_shape(self) -> tuple[int, ...]:
        """The number of categories."""
        return tuple(self.p.shape[-1:])

    def log_prob(self, x: Any) -> Any:
        """Return logarithms of probabilities."""
        return F.sum(self.log_p * F.cast(given(x, self.p), self.p.dtype), axis=-1)

    @property
    def mean(self) -> Any:
        """The probabilities."""
        return self.p

    @property
    def variance(self) -> Any:
        """The variances of each element."""
        return self.p * (1 - self.p)

    def sample_n(self, n: int) -> Any:
        """Return ``n`` samples."""
        places = drawn_categories(self.p.array, n)
        return as_variable(np.eye(self.event_shape[0], dtype=self.p.dtype)[places])


class MultivariateNormal(Distribution):
    """The normal distribution of vectors.

    Args:
        loc: The means, (*batch, size).
        kwargs: ``scale_tril`` is the lower triangular root of the covariance, (*batch, size, size).
    """

    def __init__(self, loc: Any, **kwargs: Any):
        scale_tril = kwargs.pop("scale_tril", None)
        if kwargs:
            raise TypeError(f"unexpected arguments: {', '.join(kwargs)}")
        if scale_tril is None:
            raise ValueError("`scale_tril` must have a value.")
        self.loc = parameter(loc)
        self.scale_tril = parameter(scale_tril)

    @property
    def params(self) -> dict[str, Any]:
        """The parameters by name."""
        return {"loc": self.loc, "scale_tril": self.scale_tril}

    @property
    def d(self) -> int:
        """The number of elements of a vector."""
        return int(self.scale_tril.shape[-1])

    @property
    def batch_shape(self) -> tuple[int, ...]:
        """The sizes of the means but the last."""
        return tuple(self.loc.shape[:-1])

    @property
    def event_shape(self) -> tuple[int, ...]:
        """The number of elements."""
        return tuple(self.loc.shape[-1:])

    @property
    def support(self) -> str:
        """All numbers."""
        return "real"

    @property
    def log_scale(self) -> Any:
        """Logarithms of the determinants of the roots."""
        return F.sum(F.log(F.absolute(F.diagonal(self.scale_tril, 0, -2, -1))), axis=-1)

    def inverse_scale(self) -> Any:
        """Return the inverses of the roots, (batches, size, size); the part above is not read."""
        below = np.tril(np.ones((self.d, self.d), self.scale_tril.dtype))
        count = math.prod(self.scale_tril.shape[:-2])
        return F.batch_inv(F.reshape(self.scale_tril, (count, self.d, self.d)) * below)

    def log_prob(self, x: Any) -> Any:
        """Return logarithms of densities."""
        x = given(x, self.loc)
        inverse = F.reshape(self.inverse_scale(), (*self.batch_shape, self.d, self.d))
        inverse = F.broadcast_to(inverse, (*x.shape, self.d))
        z = F.matmul(inverse, F.expand_dims(x - F.broadcast_to(self.loc, x.shape), -1))
        distance = F.sum(z * z, axis=(-2, -1))
        constant = F.broadcast_to(self.log_scale, distance.shape)
        return distance * -0.5 - constant - 0.5 * math.log(2 * math.pi) * self.d

    @property
    def mean(self) -> Any:
        """The means."""
        return self.loc

    @property
    def covariance(self) -> Any:
        """The covariances, (*batch, size, size)."""
        return F.matmul(self.scale_tril, F.swapaxes(self.scale_tril, -1, -2))

    @property
    def entropy(self) -> Any:
        """The entropies."""
        return self.log_scale + 0.5 * math.log(2 * math.pi * math.e) * self.d

    def sample_n(self, n: int) -> Any:
        """Return ``n`` samples."""
        noise = np.random.standard_normal((n, *self.loc.shape, 1)).astype(self.loc.dtype)
        scale = F.broadcast_to(self.scale_tril, (n, *self.scale_tril.shape))
        moved = F.squeeze(F.matmul(scale, noise), axis=-1)
        return F.broadcast_to(self.loc, moved.shape) + moved


@register_kl(Dirichlet, Dirichlet)
def _dirichlet_dirichlet(p: Dirichlet, q: Dirichlet) -> Any:
    expected = F.digamma(p.alpha) - F.expand_dims(F.digamma(p.alpha0), -1)
    parts = F.sum((p.alpha - q.alpha) * expected, axis=-1)
    return q.log_normalizer - p.log_normalizer + parts


@register_kl(OneHotCategorical, OneHotCategorical)
def _one_hot_one_hot(p: OneHotCategorical, q: OneHotCategorical) -> Any:
    return F.sum(p.p * (p.log_p - q.log_p), axis=-1)


@register_kl(MultivariateNormal, MultivariateNormal)
def _normal_normal(p: MultivariateNormal, q: MultivariateNormal) -> Any:
    inverse = q.inverse_scale()
    ratio = F.matmul(inverse, F.reshape(p.scale_tril, (-1, p.d, p.d)))
    moved = F.matmul(inverse, F.reshape(p.loc - q.loc, (-1, p.d, 1)))
    total = F.sum(ratio * ratio, axis=(-1, -2)) + F.sum(moved * moved, axis=(-1, -2))
    return q.log_scale - p.log_scale + F.reshape(total, p.batch_shape) * 0.5 - 0.5 * p.d
