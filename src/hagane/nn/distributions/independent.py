"""Independent distributions as one of more axes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from hagane.nn import functions as F
from hagane.nn.distributions.distribution import Distribution, kl_divergence, register_kl


class Independent(Distribution):
    """The joint distribution of independent ones.

    Args:
        distribution: Distributions in a batch.
        reinterpreted_batch_ndims: How many of the last axes of the batch are axes of a sample; all
            but the first if None.

    Raises:
        ValueError: There are not so many axes.
    """

    def __init__(self, distribution: Distribution, reinterpreted_batch_ndims: int | None = None):
        axes = len(distribution.batch_shape)
        count = reinterpreted_batch_ndims
        if count is None:
            count = max(0, axes - 1)
        if count > axes:
            raise ValueError(
                "reinterpreted_batch_ndims must be less than or equal to the number of dimensions "
                f"of distribution.batch_shape: expected at most {axes}, got {count}"
            )
        self.distribution = distribution
        self.reinterpreted_batch_ndims = count

    @property
    def batch_shape(self) -> tuple[int, ...]:
        """The sizes of the axes that are left to the batch."""
        shape = self.distribution.batch_shape
        return shape[: len(shape) - self.reinterpreted_batch_ndims]

    @property
    def event_shape(self) -> tuple[int, ...]:
        """The sizes of one sample."""
        return self._joined + self.distribution.event_shape

    @property
    def _joined(self) -> tuple[int, ...]:
        shape = self.distribution.batch_shape
        return shape[len(shape) - self.reinterpreted_batch_ndims :]

    def _reduced(self, reduce: Any, values: Any) -> Any:
        return reduce(values, axis=tuple(range(-self.reinterpreted_batch_ndims, 0)))

    @property
    def params(self) -> dict[str, Any]:
        """The parameters by name."""
        return self.distribution.params

    @property
    def support(self) -> str:
        """Where samples lie."""
        return self.distribution.support

    @property
    def xp(self) -> Any:
        """NumPy."""
        return self.distribution.xp

    @property
    def mean(self) -> Any:
        """The means."""
        return self.distribution.mean

    @property
    def mode(self) -> Any:
        """The most probable values."""
        return self.distribution.mode

    @property
    def variance(self) -> Any:
        """The variances of each element."""
        return self.distribution.variance

    @property
    def stddev(self) -> Any:
        """The standard deviations of each element."""
        return self.distribution.stddev

    @property
    def covariance(self) -> Any:
        """The covariances, in blocks: (*batch, size, size) with all elements of a sample in a row.

        They are those of the distribution, which has to know its own.
        """
        count = math.prod(self._joined)
        size = math.prod(self.distribution.event_shape)
        shape = (*self.batch_shape, 1, count, size, size)
        own = F.reshape(self.distribution.covariance, shape)
        # Row i of blocks holds the i-th covariance in column i, and zeros elsewhere.
        own = F.broadcast_to(own, (*self.batch_shape, count, count, size, size))
        places = np.eye(count, dtype=own.dtype)[:, :, None, None]
        axes = tuple(range(len(self.batch_shape)))
        last = len(axes)
        blocks = F.transpose(own * places, (*axes, last, last + 2, last + 1, last + 3))
        return F.reshape(blocks, (*self.batch_shape, count * size, count * size))

    @property
    def entropy(self) -> Any:
        """The entropies."""
        return self._reduced(F.sum, self.distribution.entropy)

    def cdf(self, x: Any) -> Any:
        """Return probabilities of values up to ``x`` in every element."""
        return self._reduced(F.prod, self.distribution.cdf(x))

    def icdf(self, x: Any) -> Any:
        """Refuse: several values have one probability.

        Raises:
            RuntimeError: Always.
        """
        raise RuntimeError(
            "Cumulative distribution function for multivariate variable is not invertible."
        )

    def log_cdf(self, x: Any) -> Any:
        """Return their logarithms."""
        return self._reduced(F.sum, self.distribution.log_cdf(x))

    def log_prob(self, x: Any) -> Any:
        """Return logarithms of densities or probabilities."""
        return self._reduced(F.sum, self.distribution.log_prob(x))

    def prob(self, x: Any) -> Any:
        """Return densities or probabilities."""
        return self._reduced(F.prod, self.distribution.prob(x))

    def perplexity(self, x: Any) -> Any:
        """Return the exponential of the negative log-likelihood."""
        return self._reduced(F.prod, self.distribution.perplexity(x))

    def survival_function(self, x: Any) -> Any:
        """Return probabilities of values above ``x`` in every element."""
        return self._reduced(F.prod, self.distribution.survival_function(x))

    def log_survival_function(self, x: Any) -> Any:
        """Return their logarithms."""
        return self._reduced(F.sum, self.distribution.log_survival_function(x))

    def sample_n(self, n: int) -> Any:
        """Return ``n`` samples."""
        return self.distribution.sample_n(n)


@register_kl(Independent, Independent)
def _independent_independent(p: Independent, q: Independent) -> Any:
    if p.event_shape != q.event_shape:
        raise ValueError(f"Event shapes do not match: {p.event_shape} and {q.event_shape}.")
    if p.distribution.event_shape != q.distribution.event_shape:
        raise NotImplementedError(
            "KL between Independents with different event shapes not supported: "
            f"{p.distribution.event_shape} and {q.distribution.event_shape}."
        )
    return p._reduced(F.sum, kl_divergence(p.distribution, q.distribution))
