"""Distributions of integers and categories."""

from __future__ import annotations

from typing import Any

import numpy as np

from hagane.nn import functions as F
from hagane.nn.autograd.variable import as_variable
from hagane.nn.distributions.distribution import (
    Distribution,
    chosen,
    drawn_categories,
    given,
    parameter,
    register_kl,
    x_log_x,
)


class Bernoulli(Distribution):
    """Zero or one.

    Args:
        p: The probabilities of one.
        logit: Their logits instead.
        binary_check: Whether other values have probability zero.
    """

    def __init__(self, p: Any = None, logit: Any = None, binary_check: bool = False):
        if (p is None) == (logit is None):
            raise ValueError("Either `p` or `logit` (not both) must have a value.")
        if logit is None:
            self.p = parameter(p)
            self.logit = F.log(self.p) - F.log1p(-self.p)
        else:
            self.logit = parameter(logit)
            self.p = F.sigmoid(self.logit)
        self.binary_check = binary_check

    @property
    def params(self) -> dict[str, Any]:
        """The parameters by name."""
        return {"logit": self.logit}

    @property
    def batch_shape(self) -> tuple[int, ...]:
        """The sizes of the parameters."""
        return tuple(self.p.shape)

    @property
    def support(self) -> str:
        """Zero and one."""
        return "{0, 1}"

    def log_prob(self, x: Any) -> Any:
        """Return logarithms of probabilities."""
        array = given(x, self.p).array
        binary = (array == 0) | (array == 1)
        if not self.binary_check and not binary.all():
            return self._between(array.astype(self.logit.dtype))
        # Of two values, also where the logit is infinite.
        sign = (1 - 2 * array).astype(self.logit.dtype)
        return chosen(binary, -F.softplus(self.logit * sign), -np.inf)

    def _between(self, x: Any) -> Any:
        """Return the same formula for numbers other than zero and one."""
        infinite = np.isinf(self.logit.array)
        if not infinite.any():
            return x * self.logit - F.softplus(self.logit)
        logit = chosen(~infinite, self.logit, 0)
        with np.errstate(all="ignore"):
            limit = np.log(np.where(self.logit.array > 0, x, 1 - x))
        infinite, limit = np.broadcast_arrays(infinite, limit)
        return F.where(infinite, limit.astype(x.dtype), x * logit - F.softplus(logit))

    @property
    def mean(self) -> Any:
        """The means."""
        return self.p

    @property
    def mode(self) -> Any:
        """The more probable value."""
        return as_variable((self.p.array >= 0.5).astype(np.int32))

    @property
    def variance(self) -> Any:
        """The variances."""
        return self.p * (1 - self.p)

    @property
    def entropy(self) -> Any:
        """The entropies."""
        return -x_log_x(self.p) - x_log_x(1 - self.p)

    def sample_n(self, n: int) -> Any:
        """Return ``n`` samples, integers."""
        return as_variable(np.random.binomial(1, self.p.array, (n, *self.batch_shape)))


class Categorical(Distribution):
    """Categories.

    Args:
        p: Probabilities, along the last axis.
        kwargs: ``logit`` gives logarithms of weights instead.
    """

    def __init__(self, p: Any = None, **kwargs: Any):
        logit = kwargs.pop("logit", None)
        if kwargs:
            raise TypeError(f"unexpected arguments: {', '.join(kwargs)}")
        if (p is None) == (logit is None):
            raise ValueError("Either `p` or `logit` (not both) must have a value.")
        if logit is None:
            self.p = parameter(p)
            self.log_p = F.log(self.p)
        else:
            self.log_p = F.log_softmax(parameter(logit), axis=-1)
            self.p = F.exp(self.log_p)

    @property
    def params(self) -> dict[str, Any]:
        """The parameters by name."""
        return {"p": self.p}

    @property
    def batch_shape(self) -> tuple[int, ...]:
        """The sizes of the parameters but the last."""
        return tuple(self.p.shape[:-1])

    def log_prob(self, x: Any) -> Any:
        """Return logarithms of probabilities of categories."""
        array = given(x, self.p).array.astype(np.int64)
        shape = np.broadcast_shapes(array.shape, self.batch_shape)
        count = self.p.shape[-1]
        table = F.reshape(F.broadcast_to(self.log_p, (*shape, count)), (-1, count))
        chosen = np.broadcast_to(array, shape).reshape(-1).astype(np.int32)
        return F.reshape(F.select_item(table, chosen), shape)

    @property
    def mode(self) -> Any:
        """The most probable categories."""
        return F.argmax(self.p, axis=-1)

    @property
    def entropy(self) -> Any:
        """The entropies."""
        return -F.sum(self.p * self.log_p, axis=-1)

    def sample_n(self, n: int) -> Any:
        """Return ``n`` samples, integers."""
        return as_variable(drawn_categories(self.p.array, n))


class Geometric(Distribution):
    """The number of trials until the first success."""

    def __init__(self, p: Any):
        self.p = parameter(p)

    @property
    def params(self) -> dict[str, Any]:
        """The parameters by name."""
        return {"p": self.p}

    @property
    def batch_shape(self) -> tuple[int, ...]:
        """The sizes of the parameters."""
        return tuple(self.p.shape)

    @property
    def support(self) -> str:
        """Positive integers."""
        return "positive integer"

    def log_prob(self, x: Any) -> Any:
        """Return logarithms of probabilities."""
        trials = as_variable(given(x, self.p).array.astype(self.p.dtype))
        return (trials - 1) * F.log1p(-self.p) + F.log(self.p)

    @property
    def mean(self) -> Any:
        """The means."""
        return 1 / self.p

    @property
    def variance(self) -> Any:
        """The variances."""
        return (1 - self.p) / (self.p * self.p)

    def sample_n(self, n: int) -> Any:
        """Return ``n`` samples, of the element type of ``p``."""
        drawn = np.random.geometric(self.p.array, (n, *self.batch_shape))
        return as_variable(drawn.astype(self.p.dtype))


class Poisson(Distribution):
    """Counts of events of rate ``lam``."""

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
        """Non-negative integers."""
        return "non negative integer"

    def log_prob(self, x: Any) -> Any:
        """Return logarithms of probabilities."""
        count = as_variable(given(x, self.lam).array.astype(self.lam.dtype))
        return count * F.log(self.lam) - F.lgamma(count + 1) - self.lam

    @property
    def mean(self) -> Any:
        """The means."""
        return self.lam

    @property
    def variance(self) -> Any:
        """The variances."""
        return self.lam

    def sample_n(self, n: int) -> Any:
        """Return ``n`` samples."""
        drawn = np.random.poisson(self.lam.array, (n, *self.batch_shape))
        return as_variable(drawn.astype(self.lam.dtype))


@register_kl(Bernoulli, Bernoulli)
def _bernoulli_bernoulli(a: Bernoulli, b: Bernoulli) -> Any:
    return (a.logit - b.logit) * a.p + F.softplus(b.logit) - F.softplus(a.logit)


@register_kl(Categorical, Categorical)
def _categorical_categorical(a: Categorical, b: Categorical) -> Any:
    return F.sum(a.p * (a.log_p - b.log_p), axis=-1)


@register_kl(Geometric, Geometric)
def _geometric_geometric(a: Geometric, b: Geometric) -> Any:
    rest = F.log1p(-a.p) - F.log1p(-b.p)
    return (1 / a.p - 1) * rest + F.log(a.p) - F.log(b.p)


@register_kl(Poisson, Poisson)
def _poisson_poisson(a: Poisson, b: Poisson) -> Any:
    return a.lam * (F.log(a.lam) - F.log(b.lam)) - a.lam + b.lam
