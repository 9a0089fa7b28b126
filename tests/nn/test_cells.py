"""Functions in one piece beside the operators that they stand for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import hagane as chainer
import hagane.functions as F  # noqa: N812
from hagane import gradient_check
from hagane.nn.functions import classes


def draw(*shape: int, seed: int = 0, dtype: Any = np.float64) -> Any:
    return np.random.RandomState(seed).standard_normal(shape).astype(dtype)


@pytest.mark.parametrize("shape", [(3, 5), (2, 3, 4)])
@pytest.mark.parametrize("used", ["both", "cell", "output"])
def test_an_lstm_has_the_values_and_gradients_of_torch(shape: Any, used: str) -> None:
    n, units, *more = shape
    cell, x = draw(*shape), draw(n, 4 * units, *more, seed=1)
    c, gates = chainer.Variable(cell), chainer.Variable(x)
    new, h = F.lstm(c, gates)
    tensors = [torch.tensor(array, requires_grad=True) for array in (cell, x)]
    a, i, f, o = tensors[1].reshape(n, units, 4, *more).unbind(2)
    wanted_cell = torch.tanh(a) * torch.sigmoid(i) + torch.sigmoid(f) * tensors[0]
    wanted = torch.sigmoid(o) * torch.tanh(wanted_cell)
    np.testing.assert_allclose(new.array, wanted_cell.detach().numpy(), rtol=1e-12)
    np.testing.assert_allclose(h.array, wanted.detach().numpy(), rtol=1e-12)
    weights = draw(*shape, seed=2)
    ours: Any = {"both": new + h * weights, "cell": new * weights, "output": h * weights}[used]
    w = torch.tensor(weights)
    theirs = {"both": wanted_cell + wanted * w, "cell": wanted_cell * w, "output": wanted * w}[used]
    F.sum(ours).backward()
    theirs.sum().backward()
    for ours_, tensor in zip((c, gates), tensors, strict=True):
        np.testing.assert_allclose(ours_.grad, tensor.grad.numpy(), rtol=1e-10, atol=1e-12)


def test_an_lstm_can_be_differentiated_twice() -> None:
    cell, x = draw(2, 3), draw(2, 12, seed=1)
    gradient_check.check_double_backward(
        F.lstm, (cell, x), (draw(2, 3, seed=2), draw(2, 3, seed=3)),
        (draw(2, 3, seed=4), draw(2, 12, seed=5)), dtype=np.float64, atol=1e-5, rtol=1e-4,
    )  # fmt: skip


@pytest.mark.parametrize("name", ["Exp", "Identity", "Sin", "Cos", "Tan", "Neg", "Mul", "Div"])
def test_classes_of_functions_are_their_functions(name: str) -> None:
    kind = getattr(classes, name)
    count = 2 if name in ("Mul", "Div") else 1
    inputs = tuple(0.3 * draw(3, 2, seed=seed) + 3 for seed in range(count))
    gradient_check.check_backward(
        lambda *xs: kind().apply(xs), inputs, draw(3, 2, seed=7), dtype=np.float64, atol=1e-6
    )
    gradient_check.check_double_backward(
        lambda *xs: kind().apply(xs), inputs, draw(3, 2, seed=7),
        tuple(draw(3, 2, seed=9) for _ in inputs), dtype=np.float64, atol=1e-5, rtol=1e-4,
    )  # fmt: skip


def test_a_dropout_of_a_class_keeps_its_mask() -> None:
    function = classes.Dropout(0.5)
    x = draw(10, 10)
    first, second = function.apply((x,))[0], function.apply((x,))[0]
    np.testing.assert_array_equal(first.array, second.array)
    np.testing.assert_array_equal(first.array, x * function.mask)
    assert set(np.unique(function.mask)) == {0.0, 2.0}


def test_what_a_function_drew_is_found_in_it() -> None:
    x = chainer.Variable(draw(4, 3, dtype="f"))
    y = F.dropout(x, 0.5)
    np.testing.assert_array_equal(y.array, x.array * y.creator.mask)
    t = np.array([0, 2, 1, 0])
    scores = F.softmax_cross_entropy(x, t).creator.y
    np.testing.assert_allclose(scores, F.softmax(x).array, rtol=1e-6)
    assert F.softmax_cross_entropy(x, t, cache_score=False).creator.y is None
    with pytest.raises(AttributeError, match="has no attribute 'other'"):
        y.creator.other  # noqa: B018


def test_weights_of_classes_do_not_count_for_probabilities() -> None:
    # As in Chainer, whose loss of probabilities is computed before the weights are looked at.
    x = np.random.default_rng(0).normal(size=(3, 4)).astype("f")
    soft = np.full((3, 4), 0.25, "f")
    weights = np.array([1, 2, 3, 4], "f")
    weighted = F.softmax_cross_entropy(x, soft, class_weight=weights, reduce="no")
    np.testing.assert_array_equal(
        weighted.array, F.softmax_cross_entropy(x, soft, reduce="no").array
    )


def test_variables_are_not_compared() -> None:
    x = chainer.Variable(draw(2))
    with pytest.raises(TypeError, match="compare their arrays: x.array == y.array"):
        x == x  # noqa: B015
    with pytest.raises(TypeError, match="has no truth value"):
        bool(x)
    with pytest.raises(TypeError, match="unhashable"):
        hash(x)


def test_integers_and_truth_values_get_no_gradient_through_a_cast() -> None:
    for array in (np.array([1, 2], "i"), np.array([True, False])):
        given = chainer.Variable(array)
        weights = chainer.Variable(draw(2))
        F.sum(F.cast(given, weights.dtype) * weights).backward()
        assert given.grad is None
        np.testing.assert_array_equal(weights.grad, array)
