"""The base of distributions, and divergences between them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from hagane.errors import HaganeError
from hagane.nn import functions as F
from hagane.nn.autograd.variable import Variable, as_variable

_DIVERGENCES: dict[tuple[type, type], Callable[[Any, Any], Any]] = {}


class Distribution:
    """Base of distributions; parameters are variables, to which gradients flow."""

    def _copy_to(self, other: Any) -> Any:
        return other

    @property
    def batch_shape(self) -> tuple[int, ...]:
        """The sizes of the parameters that stand for one distribution each."""
        raise NotImplementedError

    @property
    def event_shape(self) -> tuple[int, ...]:
        """The sizes of one sample."""
        return ()

    @property
    def support(self) -> str:
        """Where samples lie."""
        raise NotImplementedError

    @property
    def mean(self) -> Any:
        """The means."""
        raise NotImplementedError

    @property
    def variance(self) -> Any:
        """The variances."""
        raise NotImplementedError

    @property
    def stddev(self) -> Any:
        """The standard deviations."""
        return F.sqrt(self.variance)

    @property
    def covariance(self) -> Any:
        """The covariances."""
        raise NotImplementedError

    @property
    def mode(self) -> Any:
        """The most probable values."""
        raise NotImplementedError

    @property
    def entropy(self) -> Any:
        """The entropies."""
        raise NotImplementedError

    @property
    def params(self) -> dict[str, Any]:
        """The parameters by name."""
        raise NotImplementedError

    @property
    def xp(self) -> Any:
        """NumPy."""
        return np

    def log_prob(self, x: Any) -> Any:
        """Return logarithms of densities or probabilities."""
        raise NotImplementedError

    def prob(self, x: Any) -> Any:
        """Return densities or probabilities."""
        return F.exp(self.log_prob(x))

    def cdf(self, x: Any) -> Any:
        """Return probabilities of values up to ``x``."""
        raise NotImplementedError

    def log_cdf(self, x: Any) -> Any:
        """Return their logarithms."""
        return F.log(self.cdf(x))

    def survival_function(self, x: Any) -> Any:
        """Return probabilities of values above ``x``."""
        return 1 - self.cdf(x)

    def log_survival_function(self, x: Any) -> Any:
        """Return their logarithms."""
        return F.log(self.survival_function(x))

    def icdf(self, x: Any) -> Any:
        """Return quantiles."""
        raise NotImplementedError

    def perplexity(self, x: Any) -> Any:
        """Return the exponential of the negative log-likelihood."""
        return F.exp(-self.log_prob(x))

    def sample(self, sample_shape: Any = ()) -> Any:
        """Return samples, (*sample_shape, *batch_shape, *event_shape)."""
        shape = (sample_shape,) if isinstance(sample_shape, int) else tuple(sample_shape)
        count = int(np.prod(shape, dtype=np.int64))
        drawn = self.sample_n(count)
        return F.reshape(drawn, (*shape, *self.batch_shape, *self.event_shape))

    def sample_n(self, n: int) -> Any:
        """Return ``n`` samples, (n, *batch_shape, *event_shape)."""
        raise NotImplementedError


def register_kl(Dist1: type, Dist2: type) -> Callable[[Any], Any]:
    """Return a decorator that registers the divergence of two classes of distributions."""

    def register(function: Any) -> Any:
        _DIVERGENCES[Dist1, Dist2] = function
        return function

    return register


class NoDivergence(HaganeError, NotImplementedError, KeyError):
    """No divergence is registered for two classes; a ``KeyError`` too, as programs expect it."""

    __str__ = Exception.__str__


def kl_divergence(dist1: Distribution, dist2: Distribution) -> Any:
    """Return the Kullback–Leibler divergence by the rule of the classes, or of their nearest bases.

    Raises:
        NoDivergence: None is registered for the classes.
    """
    for first in type(dist1).__mro__:
        for second in type(dist2).__mro__:
            if (first, second) in _DIVERGENCES:
                return _DIVERGENCES[first, second](dist1, dist2)
    raise NoDivergence(
        f"no divergence is registered for {type(dist1).__name__} and {type(dist2).__name__}: "
        "use register_kl"
    )


def cross_entropy(dist1: Distribution, dist2: Distribution) -> Any:
    """Return the cross entropy."""
    return dist1.entropy + kl_divergence(dist1, dist2)


def parameter(value: Any) -> Any:
    """Return a parameter as a variable."""
    if isinstance(value, Variable | np.ndarray):
        return as_variable(value)
    return as_variable(np.asarray(value, dtype=np.float32))


def given(value: Any, beside: Any) -> Any:
    """Return a value as a variable; numbers of Python have the element type of a parameter."""
    if isinstance(value, Variable | np.ndarray):
        return as_variable(value)
    return as_variable(np.asarray(value, None if isinstance(value, np.generic) else beside.dtype))


def spread(value: Any, n: int) -> Any:
    """Return a parameter repeated along a new first axis."""
    return F.broadcast_to(value, (n, *value.shape))


def chosen(condition: Any, value: Any, other: float) -> Any:
    """Return a variable where a condition holds, and a number elsewhere."""
    held = np.broadcast_to(condition, value.shape).copy()
    return F.where(held, value, np.full(value.shape, other, value.dtype))


def drawn_categories(p: Any, n: int) -> Any:
    """Return ``n`` categories of each row of probabilities, (n, *batch); drawn row by row."""
    size = p.shape[-1]
    rows = p.reshape(-1, size).astype(np.float64)
    drawn = [np.random.choice(size, n, p=row / row.sum()) for row in rows]
    return np.stack(drawn, axis=1).reshape(n, *p.shape[:-1])


def x_log_x(x: Any) -> Any:
    """Return ``x log x``, which is 0 at 0, as its gradient there."""
    x = as_variable(x)
    return x * F.log(chosen(x.array > 0, x, 1))
