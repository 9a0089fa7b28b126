"""Distributions of PyTorch in captured programs and compiled steps."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

import torch
from torch import distributions as d
from torch import nn

import hagane
from hagane.errors import CaptureError

POSITIVE = nn.functional.softplus


def matrix(x: Any) -> Any:
    """Positive definite matrices (..., 3, 3) of vectors (..., 3)."""
    return torch.diag_embed(POSITIVE(x) + 1) + 0.1 * x[..., None] * x[..., None, :]


# For each, of unbounded parameters `a` (n, 3) and `b` (3,): the distribution, and a value of `x`.
MADE: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "Normal": (lambda a, b: d.Normal(a, POSITIVE(b)), lambda x: x),
    "LogNormal": (lambda a, b: d.LogNormal(a, POSITIVE(b)), torch.exp),
    "HalfNormal": (lambda a, b: d.HalfNormal(POSITIVE(a)), torch.abs),
    "Laplace": (lambda a, b: d.Laplace(a, POSITIVE(b)), lambda x: x),
    "Gumbel": (lambda a, b: d.Gumbel(a, POSITIVE(b) + 2), torch.tanh),
    "Cauchy": (lambda a, b: d.Cauchy(a, POSITIVE(b)), lambda x: x),
    "StudentT": (lambda a, b: d.StudentT(POSITIVE(a) + 1.5, a, POSITIVE(b)), lambda x: x),
    "Uniform": (lambda a, b: d.Uniform(a - 3, a + POSITIVE(b) + 3), torch.tanh),
    "Exponential": (lambda a, b: d.Exponential(POSITIVE(a + b)), torch.abs),
    "Gamma": (lambda a, b: d.Gamma(POSITIVE(a), POSITIVE(b)), torch.exp),
    "Beta": (lambda a, b: d.Beta(POSITIVE(a) + 0.2, POSITIVE(b) + 0.2), torch.sigmoid),
    "Dirichlet": (lambda a, b: d.Dirichlet(POSITIVE(a) + 0.1), lambda x: x.softmax(-1)),
    "Bernoulli": (lambda a, b: d.Bernoulli(logits=a), lambda x: (x > 0).float()),
    "Coin": (lambda a, b: d.Bernoulli(torch.sigmoid(a)), lambda x: (x > 0).float()),
    "Geometric": (lambda a, b: d.Geometric(torch.sigmoid(a)), lambda x: x.abs().floor()),
    "Poisson": (lambda a, b: d.Poisson(POSITIVE(a)), lambda x: x.abs().floor()),
    "Categorical": (lambda a, b: d.Categorical(logits=a), lambda x: x.argmax(-1)),
    "Shares": (lambda a, b: d.Categorical(POSITIVE(a)), lambda x: x.argmax(-1)),
    "OneHotCategorical": (
        lambda a, b: d.OneHotCategorical(POSITIVE(a)),
        lambda x: nn.functional.one_hot(x.argmax(-1), 3),
    ),
    "Independent": (lambda a, b: d.Independent(d.Normal(a, POSITIVE(b)), 1), lambda x: x),
}
MADE |= {
    "MultivariateNormal": (lambda a, b: d.MultivariateNormal(a, matrix(b)), lambda x: x),
    "Precision": (
        lambda a, b: d.MultivariateNormal(a, precision_matrix=matrix(b)), lambda x: x,
    ),
    "Triangle": (
        lambda a, b: d.MultivariateNormal(a[0], scale_tril=torch.tril(matrix(a))), lambda x: x,
    ),
}  # fmt: skip
NO_ENTROPY = {"Poisson"}
CUMULATIVE = {"Normal", "LogNormal", "HalfNormal", "Laplace", "Gumbel", "Cauchy", "Uniform",
              "Exponential"}  # fmt: skip
DIVERGING = {"Normal", "Laplace", "Exponential", "Gamma", "Beta", "Dirichlet", "Bernoulli",
             "Categorical", "OneHotCategorical", "Poisson", "Independent",
             "MultivariateNormal"}  # fmt: skip


@pytest.mark.parametrize("name", MADE)
def test_formulas_are_pytorchs(name: str) -> None:
    make, place = MADE[name]
    entropy, share, apart = name not in NO_ENTROPY, name in CUMULATIVE, name in DIVERGING

    def program(a: Any, b: Any, x: Any) -> Any:
        law = make(a, b)
        found = [law.log_prob(place(x)), law.mean, law.variance, law.stddev, law.mode]
        if entropy:
            found.append(law.entropy())
        if share:
            found.append(law.cdf(place(x)))
        if apart:
            found.append(d.kl_divergence(law, make(a * 0.5, b + 0.3)))
        return tuple(found)

    model = hagane.capture(program, "float32[n, 3]", "float32[3]", "float32[n, 3]")
    session = hagane.InferenceSession(model)
    names = [argument.name for argument in session.get_inputs()]
    for rows in (4, 1, 3):
        given = torch.randn(rows, 3), torch.randn(3), torch.randn(rows, 3)
        expected = program(*given)
        used = {n: v.numpy() for n, v in zip(("a", "b", "x"), given, strict=True) if n in names}
        for one, other in zip(session.run(None, used), expected, strict=True):
            assert one.shape == tuple(other.shape)
            assert one.dtype == other.numpy().dtype
            np.testing.assert_allclose(one, other, rtol=2e-4, atol=2e-5)


class Coder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encode, self.decode = nn.Linear(5, 4), nn.Linear(2, 5)


def evidence(net: Any, x: Any) -> Any:
    mean, spread = net.encode(x).chunk(2, -1)
    behind = d.Normal(mean, (spread / 2).exp())
    ahead = d.Normal(torch.zeros_like(mean), torch.ones_like(mean))
    shown = d.Independent(d.Normal(net.decode(behind.rsample()), 1.0), 1)
    return (d.kl_divergence(behind, ahead).sum(-1) - shown.log_prob(x)).mean()


def policy(net: Any, x: Any) -> Any:
    law = d.Categorical(logits=net.encode(x))
    chosen = x[:, :4].argmax(-1)
    return -(law.log_prob(chosen) * x[:, 4]).mean() - 0.01 * law.entropy().mean()


def mixed(net: Any, x: Any) -> Any:
    shares, place = net.encode(x).chunk(2, -1)
    parts = d.Independent(d.Normal(torch.stack([place, -place], -1), POSITIVE(place)[..., None]), 1)
    of_pairs = d.MixtureSameFamily(d.Categorical(logits=shares), parts)
    of_numbers = d.MixtureSameFamily(d.Categorical(shares.softmax(-1)), d.Laplace(place, 1.0))
    return -(of_pairs.log_prob(x[:, :2]) + of_numbers.log_prob(x[:, 2])).mean()


def drawn(net: Any, x: Any) -> Any:
    place, scale = net.encode(x).chunk(2, -1)
    scale = POSITIVE(scale)
    found = [
        d.Laplace(place, scale).rsample(), d.Gumbel(place, scale).rsample(),
        d.Uniform(place, place + scale).rsample((2,)).mean(0), d.LogNormal(place, scale).rsample(),
        d.HalfNormal(scale).rsample(), d.Normal(place, scale).sample(),
    ]  # fmt: skip
    return (net.decode(torch.stack(found).mean(0)) ** 2).mean()


def squashed(net: Any, x: Any) -> Any:
    place, scale = net.encode(x).chunk(2, -1)
    law = d.TransformedDistribution(d.Normal(place, scale.exp()), d.TanhTransform(cache_size=1))
    action = law.rsample()
    both = d.Independent(law, 1).log_prob(action.detach() * 0.9)
    return (law.log_prob(action).sum(-1) + both + net.decode(action).sum(-1)).mean()


def transformed(net: Any, x: Any) -> Any:
    place, scale = net.encode(x).chunk(2, -1)
    tilted = d.AffineTransform(place, scale.exp(), event_dim=1)
    made = [
        ([d.SigmoidTransform()], place.sigmoid()),
        ([d.AffineTransform(0.5, 2.0), d.SoftplusTransform()], place**2 + 0.1),
        ([d.ComposeTransform([d.TanhTransform(), d.ExpTransform()])], place.tanh().exp()),
        ([d.ExpTransform(), d.PowerTransform(2.0)], place**2 + 0.2),
        ([d.ExpTransform().inv.inv, d.ExpTransform().inv, tilted], place * 2),
    ]
    laws = [(d.TransformedDistribution(d.Normal(place, 1.0), list(ts)), v) for ts, v in made]
    found = [law.log_prob(v).mean() + 0.1 * law.rsample().mean() for law, v in laws]
    return torch.stack(found).sum()


@pytest.mark.parametrize("loss", [evidence, policy, mixed, drawn, squashed, transformed])
def test_steps_of_losses_with_distributions_are_pytorchs(loss: Callable[..., Any]) -> None:
    torch.manual_seed(0)
    plain = Coder()
    compiled = copy.deepcopy(plain)
    eager, made = (torch.optim.Adam(net.parameters(), lr=0.01) for net in (plain, compiled))
    step = hagane.compile(loss, made)
    for number, rows in enumerate((6, 3, 6)):
        x = torch.randn(rows, 5)
        torch.manual_seed(number)
        eager.zero_grad()
        wanted = loss(plain, x)
        wanted.backward()
        eager.step()
        torch.manual_seed(number)
        torch.testing.assert_close(step(compiled, x), wanted.detach(), rtol=1e-4, atol=1e-5)
    for one, other in zip(compiled.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-5)


def test_what_has_no_formula_is_refused_by_name() -> None:
    def far(a: Any) -> Any:
        return d.Weibull(a.exp(), 1.0).log_prob(a.exp())

    def between(a: Any) -> Any:
        return d.kl_divergence(d.Normal(a, 1.0), d.Laplace(a, 1.0))

    def counts(a: Any) -> Any:
        return d.Poisson(a.abs()).entropy()

    for program, text in (
        (far, "no formula of the density of 'torch.distributions.Weibull' is known"),
        (between, "the divergence of 'torch.distributions.Normal' and 'Laplace' cannot"),
        (counts, "no formula of the entropy of 'torch.distributions.Poisson' is known"),
    ):
        with pytest.raises(CaptureError, match=text):
            hagane.capture(program, "float32[n, 3]")
    with pytest.raises(CaptureError, match="it draws random numbers"):
        hagane.capture(lambda a: d.Normal(a, 1.0).rsample(), "float32[n, 3]")

    def gamma(net: Any, x: Any) -> Any:
        return d.Gamma(POSITIVE(net.encode(x)), 1.0).rsample().sum()

    class Cubed(d.Transform):
        pass

    def cubed(a: Any) -> Any:
        return d.TransformedDistribution(d.Normal(a, 1.0), [Cubed()]).log_prob(a)

    with pytest.raises(CaptureError, match="no formulas of the transform Cubed are known; apply"):
        hagane.capture(cubed, "float32[n, 3]")

    net = Coder()
    step = hagane.compile(gamma, torch.optim.SGD(net.parameters(), lr=0.1))
    with pytest.raises(CaptureError, match="draws of 'torch.distributions.Gamma' cannot be"):
        step(net, torch.ones(2, 5))


class Prior(Coder):
    """Distributions that are made once, as attributes."""

    def __init__(self) -> None:
        super().__init__()
        self.normal = d.Normal(torch.zeros(4), torch.ones(4))
        self.vectors = d.MultivariateNormal(torch.zeros(4), matrix(torch.ones(4)))
        self.kinds, self.coin = d.Categorical(torch.ones(4)), d.Bernoulli(logits=torch.ones(4))
        squares = d.AffineTransform(torch.zeros(4), 2 * torch.ones(4))
        uniform = d.Uniform(torch.zeros(4), torch.ones(4))
        self.logistic = d.TransformedDistribution(uniform, [d.SigmoidTransform().inv, squares])
        parts = d.Independent(d.Normal(torch.randn(3, 4), torch.ones(3, 4)), 1)
        self.mixture = d.MixtureSameFamily(d.Categorical(torch.ones(3)), parts)
        self.others = [d.Beta(torch.ones(4), 3.0), d.LogNormal(0.0, torch.ones(4))]
        self.low = d.LowRankMultivariateNormal(torch.zeros(4), torch.ones(4, 1), torch.ones(4))


def behind_priors(net: Any, x: Any) -> Any:
    y = net.encode(x)
    whole = net.vectors.log_prob(y) + net.mixture.log_prob(y) + net.low.log_prob(y)
    each = net.normal.log_prob(y) + net.logistic.log_prob(y) + net.kinds.logits
    each = each + net.coin.log_prob((y > 0).float())
    each = each + d.kl_divergence(d.Normal(y, 1.0), net.normal)
    each = each + sum(law.log_prob(y.sigmoid()) for law in net.others)
    return (each.sum(-1) + whole).mean() + net.vectors.entropy()


def test_distributions_of_modules_are_followed_as_they_change() -> None:
    torch.manual_seed(0)
    plain = Prior()
    torch.manual_seed(0)
    compiled = Prior()  # (a copy of an inverse has forgotten of what)
    eager, made = (torch.optim.Adam(net.parameters(), lr=0.01) for net in (plain, compiled))
    step = hagane.compile(behind_priors, made)
    for number, rows in enumerate((6, 3, 6, 4)):
        if number == 2:
            for net in (plain, compiled):
                net.normal = d.Normal(torch.ones(4), 2 * torch.ones(4))
        if number == 3:
            for net in (plain, compiled):
                net.normal.loc = torch.full((4,), 3.0)
                net.normal.scale.mul_(2)
        x = torch.randn(rows, 5)
        eager.zero_grad()
        wanted = behind_priors(plain, x)
        wanted.backward()
        eager.step()
        torch.testing.assert_close(step(compiled, x), wanted.detach(), rtol=1e-4, atol=1e-5)
    for one, other in zip(compiled.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-5)
