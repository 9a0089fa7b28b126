"""Distributions beside PyTorch's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import hagane as chainer
import hagane.functions as F  # noqa: N812
from hagane import distributions as D  # noqa: N812

T = torch.distributions


def positive(*shape: int, seed: int = 0) -> Any:
    return np.random.RandomState(seed).uniform(0.5, 3.0, shape)


def simplex(*shape: int, seed: int = 0) -> Any:
    drawn = positive(*shape, seed=seed)
    return drawn / drawn.sum(-1, keepdims=True)


def triangular(*shape: int, seed: int = 0) -> Any:
    return np.tril(positive(*shape, shape[-1], seed=seed))


# Ours, PyTorch's, and the arguments of both.
Case = tuple[Callable[..., Any], Callable[..., Any], tuple[Any, ...]]


def cases(seed: int = 0) -> dict[str, Case]:
    def draw(*shape: int) -> Any:
        return positive(*shape, seed=seed)

    def normal(loc: Any, scale: Any) -> Any:
        return D.MultivariateNormal(loc, scale_tril=scale)

    def joint(loc: Any, scale: Any) -> Any:
        return D.Independent(D.Normal(loc, scale), 2)

    return {
        "Beta": (D.Beta, T.Beta, (draw(3, 2), draw(3, 2) + 0.3)),
        "Gamma": (D.Gamma, lambda k, s: T.Gamma(k, 1 / s), (draw(3, 2), draw(3, 2) + 0.3)),
        "Chisquare": (D.Chisquare, T.Chi2, (draw(3) * 2,)),
        "Pareto": (D.Pareto, T.Pareto, (draw(3, 2), draw(3, 2) + 2)),
        "Dirichlet": (D.Dirichlet, T.Dirichlet, (draw(3, 2, 4),)),
        "OneHotCategorical": (
            D.OneHotCategorical, T.OneHotCategorical, (simplex(3, 4, seed=seed),),
        ),
        "LogNormal": (D.LogNormal, T.LogNormal, (draw(3, 2), draw(3, 2) * 0.3)),
        "Gumbel": (D.Gumbel, T.Gumbel, (draw(3, 2), draw(3, 2))),
        "MultivariateNormal": (
            normal,
            lambda loc, scale: T.MultivariateNormal(loc, scale_tril=scale),
            (draw(3, 2, 3), triangular(3, 2, 3, seed=seed)),
        ),
        "Independent": (
            joint, lambda a, b: T.Independent(T.Normal(a, b), 2), (draw(5, 3, 2), draw(5, 3, 2)),
        ),
    }  # fmt: skip


NAMES = sorted(cases())


def both(name: str, seed: int = 0) -> tuple[Any, Any, list[Any], list[Any]]:
    ours, theirs, arguments = cases(seed)[name]
    variables = [chainer.Variable(argument) for argument in arguments]
    tensors = [torch.tensor(argument, requires_grad=True) for argument in arguments]
    return ours(*variables), theirs(*tensors), variables, tensors


@pytest.mark.parametrize("name", NAMES)
def test_densities_moments_and_gradients_are_those_of_torch(name: str) -> None:
    ours, theirs, variables, tensors = both(name)
    assert ours.batch_shape == tuple(theirs.batch_shape)
    assert ours.event_shape == tuple(theirs.event_shape)
    torch.manual_seed(0)
    x = theirs.sample((4,))
    found, wanted = [ours.log_prob(x.numpy())], [theirs.log_prob(x)]
    found.append(ours.mean), wanted.append(theirs.mean)
    found.append(ours.prob(x.numpy())), wanted.append(theirs.log_prob(x).exp())
    if name != "MultivariateNormal":
        found.append(ours.variance), wanted.append(theirs.variance)
        found.append(ours.stddev), wanted.append(theirs.stddev)
    if name != "OneHotCategorical":
        found.append(ours.entropy), wanted.append(theirs.entropy())
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(a.array, b.detach().numpy(), rtol=1e-6)
    F.sum(F.concat([F.reshape(one, (-1,)) for one in found], 0)).backward()
    sum(one.sum() for one in wanted).backward()
    for variable, tensor in zip(variables, tensors, strict=True):
        gradient = tensor.grad.numpy()
        if name == "OneHotCategorical":  # PyTorch scales the probabilities to a sum of one
            variable.grad -= (variable.grad * variable.array).sum(-1, keepdims=True)
        if variable.ndim == 4:  # what lies above the diagonal is no parameter
            gradient = np.tril(gradient)
        np.testing.assert_allclose(variable.grad, gradient, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("name", [name for name in NAMES if name != "Chisquare"])
def test_divergences_are_those_of_torch(name: str) -> None:
    ours, theirs, *_ = both(name)
    other, their_other, *_ = both(name, seed=1)
    found = chainer.kl_divergence(ours, other).array
    np.testing.assert_allclose(
        found, T.kl_divergence(theirs, their_other).detach().numpy(), rtol=1e-6
    )


@pytest.mark.parametrize("name", NAMES)
def test_samples_have_the_moments_and_sizes_of_the_distribution(name: str) -> None:
    ours, theirs, *_ = both(name)
    np.random.seed(0)
    shape = (*ours.batch_shape, *ours.event_shape)
    drawn = ours.sample((200, 100))
    assert drawn.shape == (200, 100, *shape)
    variance = theirs.variance.detach().numpy()
    np.testing.assert_allclose(
        drawn.array.reshape(-1, *shape).mean(0),
        theirs.mean.detach().numpy(),
        atol=5 * np.sqrt(variance.max() / 20000),
    )


def test_gradients_flow_through_samples_where_the_parameters_move_them() -> None:
    np.random.seed(0)
    scale = chainer.Variable(np.array([1.0, 2.0], "f"))
    drawn = D.Gamma(np.array([3.0, 1.0], "f"), scale).sample_n(3)
    F.sum(drawn).backward()
    np.testing.assert_allclose(scale.grad, drawn.array.sum(0) / scale.array, rtol=1e-5)


def test_values_outside_have_no_probability_and_heavy_tails_no_moments() -> None:
    assert D.Beta(2.0, 3.0).log_prob(np.array(1.5, "f")).array == -np.inf
    assert D.Gamma(2.0, 3.0).log_prob(np.array(-1, "f")).array == -np.inf
    assert D.Pareto(2.0, 3.0).log_prob(np.array(1.9, "f")).array == -np.inf
    heavy = D.Pareto(np.ones(3, "f"), np.array([0.5, 1.5, 3], "f"))
    np.testing.assert_allclose(heavy.mean.array, [np.inf, 3, 1.5])
    np.testing.assert_allclose(heavy.variance.array, [np.inf, np.inf, 0.75])


def test_certain_events_have_probability_one_and_no_entropy() -> None:
    certain = D.Bernoulli(logit=np.array([np.inf, -np.inf], "f"))
    np.testing.assert_array_equal(certain.log_prob(np.array([1, 0])).array, [0, 0])
    np.testing.assert_array_equal(certain.log_prob(np.array([0, 1])).array, [-np.inf, -np.inf])
    np.testing.assert_array_equal(certain.entropy.array, [0, 0])


def test_covariances_of_independent_vectors_lie_in_blocks() -> None:
    scale = triangular(2, 3, 2)
    inner = D.MultivariateNormal(positive(2, 3, 2), scale_tril=scale)
    found = D.Independent(inner, 1).covariance.array
    assert found.shape == (2, 6, 6)
    wanted = np.zeros((2, 6, 6))
    for i in range(2):
        for j in range(3):
            place = slice(2 * j, 2 * j + 2)
            wanted[i, place, place] = scale[i, j] @ scale[i, j].T
    np.testing.assert_allclose(found, wanted, rtol=1e-6)
    np.testing.assert_allclose(inner.covariance.array, scale @ scale.swapaxes(-1, -2), rtol=1e-6)


def test_a_cauchy_distribution_warns_that_it_has_no_moments() -> None:
    cauchy = D.Cauchy(np.zeros(2, "f"), np.ones(2, "f"))
    with pytest.warns(RuntimeWarning, match="Mean of the cauchy distribution is undefined"):
        assert np.isnan(cauchy.mean.array).all()
    with pytest.warns(RuntimeWarning, match="Variance of the cauchy distribution is undefined"):
        assert np.isnan(cauchy.variance.array).all()


@pytest.mark.parametrize("number", [0.5, np.float64(0.5), np.array(0.5)])
def test_numbers_are_as_good_as_arrays(number: Any) -> None:
    one, half = np.ones((), np.float64), np.full((), 0.5)
    made = [
        D.Normal(one, half), D.Laplace(one, half), D.Cauchy(one, half), D.Gumbel(one, half),
        D.Uniform(low=np.zeros(()), high=one), D.Exponential(one), D.LogNormal(one, half),
        D.Beta(one, half), D.Gamma(one, half), D.Chisquare(one), D.Pareto(half, half),
    ]  # fmt: skip
    for distribution in made:
        for name in ("log_prob", "cdf", "icdf"):
            if type(distribution).__dict__.get(name) is not None:
                function = getattr(distribution, name)
                found = function(number)
                assert found.dtype == np.float64
                assert found.array == function(half).array
    assert D.Bernoulli(half).log_prob(1).array == np.log(0.5)
    assert D.Geometric(half).log_prob(2).array == np.log(0.25)
    assert np.isclose(D.Poisson(one).log_prob(0).array, -1)
    assert D.Categorical(np.array([0.25, 0.75])).log_prob(1).array == np.log(0.75)


def test_mistakes_are_told_of() -> None:
    normal = D.Normal(np.zeros((2, 3), "f"), np.ones((2, 3), "f"))
    with pytest.raises(ValueError, match="expected at most 2, got 3"):
        D.Independent(normal, 3)
    joint = D.Independent(normal)
    assert joint.event_shape == (3,)
    with pytest.raises(RuntimeError, match="is not invertible"):
        joint.icdf(np.ones((2, 3), "f"))
    with pytest.raises(ValueError, match=r"Event shapes do not match: \(3,\) and \(2, 3\)"):
        chainer.kl_divergence(joint, D.Independent(normal, 2))
    with pytest.raises(ValueError, match="`scale_tril` must have a value"):
        D.MultivariateNormal(np.zeros(3, "f"))
    with pytest.raises(KeyError, match="^no divergence is registered for Normal and Independent"):
        chainer.kl_divergence(normal, joint)


def test_the_divergence_of_a_class_goes_before_that_of_its_base() -> None:
    class Mine(D.Normal):
        pass

    class Other(Mine):
        pass

    @chainer.register_kl(Mine, D.Normal)
    def rule(p: Any, q: Any) -> Any:
        return F.mean(p.loc + 7)

    base, mine, other = (one(np.zeros(2, "f"), np.ones(2, "f")) for one in (D.Normal, Mine, Other))
    assert [float(chainer.kl_divergence(p, base).array.sum()) for p in (base, mine, other)] == [
        0.0, 7.0, 7.0,
    ]  # fmt: skip


def test_a_uniform_distribution_lists_the_parameters_that_it_was_given() -> None:
    loc, scale = chainer.Variable(np.ones(2, "f")), chainer.Variable(np.full(2, 4, "f"))
    moved = D.Uniform(loc=loc, scale=scale)
    assert moved.params == {"loc": loc, "scale": scale}
    F.sum(moved.log_prob(np.array([2, 3], "f"))).backward()
    np.testing.assert_array_equal(scale.grad, np.full(2, -0.25, "f"))
    assert sorted(D.Uniform(low=loc, high=scale).params) == ["high", "low"]


# The last four of six samples that Chainer 7.8.1 draws after ``seed(9)``, and the sum of all.
DRAWN_BY_CHAINER: dict[str, tuple[list[float], float]] = {
    "Bernoulli": ([0.0, 1.0, 0.0, 0.0], 14.0),
    "Beta": ([0.24178, 0.994478, 0.962786, 0.263755], 14.2062),
    "Categorical": ([0.0, 0.0, 1.0, 1.0], 4.0),
    "Cauchy": ([8.468128, 0.741814, 3.273561, -13.331506], 114.06966),
    "Chisquare": ([2.8e-05, 1.445505, 11.698282, 0.57674], 36.33078),
    "Dirichlet": ([0.163336, 0.836664, 0.786965, 0.213035], 12.0),
    "Exponential": ([1.628459, 0.988004, 0.696892, 0.895341], 32.72834),
    "Gamma": ([0.156539, 0.897738, 2.870876, 0.250555], 43.32062),
    "Geometric": ([3.0, 1.0, 2.0, 3.0], 68.0),
    "Gumbel": ([0.801437, 1.131899, 1.445185, 1.213948], 43.12104),
    "Laplace": ([0.119725, 1.396983, 4.493256, 0.621752], 25.48614),
    "LogNormal": ([2.165583, 3.362831, 69.719302, 3.060445], 572.11488),
    "MultivariateNormal": ([0.131524, 0.029965, 0.745124, 4.322322], 1.99937),
    "Normal": ([0.77269, 1.212783, 4.244477, 1.11856], 33.72754),
    "OneHotCategorical": ([0.0, 1.0, 0.0, 1.0], 12.0),
    "Pareto": ([0.602865, 23.25066, 6.254202, 1.237493], 123.31328),
    "Poisson": ([1.0, 2.0, 0.0, 0.0], 31.0),
    "Uniform": ([0.570534, 1.477775, 4.067254, 1.212235], 40.20874),
}


@pytest.mark.parametrize("name", DRAWN_BY_CHAINER)
def test_samples_are_those_of_chainer_from_the_same_seed(name: str) -> None:
    a, b = np.array([[0.3, 1.2], [2.5, 0.7]]), np.array([[0.7, 0.4], [1.9, 1.1]])
    p = a / a.sum(1, keepdims=True)
    if name == "Uniform":
        one: Any = D.Uniform(low=a, high=a + b)
    elif name == "MultivariateNormal":
        one = D.MultivariateNormal(a[0], scale_tril=np.tril(b))
    else:
        kind = getattr(D, name)
        probable = ("Bernoulli", "Categorical", "Geometric", "OneHotCategorical")
        single = ("Chisquare", "Dirichlet", "Exponential", "Poisson")
        one = kind(p) if name in probable else kind(a) if name in single else kind(a, b)
    np.random.seed(9)
    drawn = one.sample((2, 3)).array.reshape(-1)
    last, whole = DRAWN_BY_CHAINER[name]
    np.testing.assert_allclose(drawn[-4:], last, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(drawn.sum(), whole, rtol=1e-6, atol=1e-5)
