"""Gradients where a function has a kink, sizes of zero, and results that are their operands."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from hagane import Variable, functions, grad
from hagane.errors import KernelError
from hagane.utils.type_check import InvalidType


def _gradient(function: Callable[..., Any], x: Any) -> Any:
    variable = Variable(np.array(x, "f"))
    y = function(variable)
    y.grad = np.arange(1, y.size + 1, dtype="f").reshape(y.shape)
    y.backward()
    return variable.grad


@pytest.mark.parametrize(
    ("function", "x", "expected"),
    [
        (lambda x: functions.max(x, axis=1), [[2, 2, 1], [0, 0, 0]], [[1, 1, 0], [2, 2, 2]]),
        (lambda x: functions.min(x, axis=0), [[1, 2], [1, 0]], [[1, 0], [1, 2]]),
        (functions.max, [[2, 2], [2, 1]], [[1, 1], [1, 0]]),
        (lambda x: functions.max(x, axis=(), keepdims=True), [3, 3], [1, 2]),
        (lambda x: functions.maxout(x, 2), [[1, 1, 3, 2]], [[1, 1, 2, 0]]),
        (functions.leaky_relu, [0, 1, -1], [0.2, 2, 0.6]),
        (functions.relu6, [0, 6, 3, 7], [0, 0, 3, 0]),
        (lambda x: functions.clip(x, 0.0, 6.0), [0, 6, 3, 7], [1, 2, 3, 0]),
        (functions.relu, [0, 1], [0, 2]),
        (lambda x: functions.maximum(x, np.ones(2, "f")), [1, 0], [1, 0]),
        (lambda x: functions.maximum(np.ones(2, "f"), x), [1, 3], [0, 2]),
        (lambda x: functions.minimum(x, np.ones(2, "f")), [1, 3], [1, 0]),
        (lambda x: functions.minimum(x, np.ones((3, 1), "f")), [1, 3], [9, 0]),
    ],
)
def test_kinks_have_chainers_gradients(
    function: Callable[..., Any], x: list[Any], expected: list[Any]
) -> None:
    np.testing.assert_allclose(_gradient(function, x), np.array(expected, "f"), rtol=1e-6)


def test_the_first_of_equal_pixels_of_a_region_gets_the_gradient() -> None:
    region = np.array([[0, 0, 0, 1, 1]], "f")
    found = _gradient(
        lambda x: functions.roi_pooling_2d(x, region, 1, 1, 1.0), [[[[2, 2], [2, 0]]]]
    )
    np.testing.assert_array_equal(found, [[[[1, 0], [0, 0]]]])


def test_the_extreme_is_differentiated_twice() -> None:
    x = Variable(np.array([[1, 3, 3], [2, 0, 1]], "f"))
    (first,) = grad(
        [functions.sum(functions.max(x, axis=1) ** 3)], [x], enable_double_backprop=True
    )
    np.testing.assert_array_equal(first.array, [[0, 27, 27], [12, 0, 0]])
    (second,) = grad([functions.sum(first)], [x])
    np.testing.assert_array_equal(second.array, [[0, 36, 36], [12, 0, 0]])


def test_a_huber_loss_is_a_square_at_zero_and_at_its_bound() -> None:
    x = Variable(np.array([[0.5, 0, 2]], "d"))
    zero = np.zeros((1, 3))
    loss = functions.sum(functions.huber_loss(x, zero, 0.5))
    assert float(loss.array) == pytest.approx(0.125 + 0.875)
    (first,) = grad([loss], [x], enable_double_backprop=True)
    np.testing.assert_allclose(first.array, [[0.5, 0, 0.5]])
    (second,) = grad([functions.sum(first)], [x])
    np.testing.assert_array_equal(second.array, [[1, 1, 0]])


def test_arrays_of_equal_sizes_are_broadcast_to_variables_of_their_own() -> None:
    x, y = Variable(np.ones(2, "f")), Variable(np.ones(2, "f"))
    a, b = functions.broadcast(x, y)
    assert a is not x
    a.grad = np.full(2, 3, "f")
    functions.sum(a * 2 + b).backward()
    np.testing.assert_array_equal(x.grad, [2, 2])


def test_sums_of_more_than_two_arrays_broadcast() -> None:
    x, y, z = (Variable(np.ones(shape, "f")) for shape in ((), (2, 1), (3,)))
    total = functions.add(x, y, z)
    np.testing.assert_array_equal(total.array, np.full((2, 3), 3, "f"))
    functions.sum(total).backward()
    assert [float(v.grad.flat[0]) for v in (x, y, z)] == [6, 3, 2]
    with pytest.raises(InvalidType, match="x.dtype == x0.dtype"):
        functions.add(x, y, np.ones(3))


@pytest.mark.parametrize("name", ["log2", "log10"])
def test_logarithms_of_16_bits_are_rounded_once(name: str) -> None:
    x = np.linspace(0.1, 50, 500).astype(np.float16)
    found = getattr(functions, name)(x).array
    np.testing.assert_array_equal(found, getattr(np, name)(x))


@pytest.mark.parametrize("there", [True, False])
def test_a_truth_value_without_axes_takes_none(there: bool) -> None:
    x = Variable(np.array(3.0, "f"))
    y = x[np.array(there)]
    assert y.shape == (int(there),)
    functions.sum(y).backward()
    assert x.grad == float(there)


def test_rows_without_elements_are_looked_up() -> None:
    weight = Variable(np.zeros((4, 0), "f"))
    y = functions.embed_id(np.array([0, 3], "i"), weight)
    y.grad = np.zeros((2, 0), "f")
    y.backward()
    assert weight.grad.shape == (4, 0)


def test_a_kernel_that_refuses_content_raises_a_value_error() -> None:
    with pytest.raises(
        KernelError, match="Pad failed: ValueError: can't extend empty axis"
    ) as found:
        functions.pad(np.zeros((1, 0), "f"), 1, "edge")
    assert isinstance(found.value, ValueError)


def test_a_determinant_of_a_singular_matrix_has_no_gradient() -> None:
    x = Variable(np.zeros((1, 1), "d"))
    y = functions.det(x)
    with pytest.raises(ValueError, match="Singular matrix"):
        y.backward()


@pytest.mark.parametrize("name", ["floor", "ceil", "fix", "sign"])
def test_functions_of_steps_give_constants_as_chainers_do(name: str) -> None:
    x = Variable(np.array([-1.5, -0.0, 0.25, 2, np.nan], "f"))
    y = getattr(functions, name)(x)
    np.testing.assert_array_equal(y.array, getattr(np, name)(x.array))
    assert not y.requires_grad
    functions.sum(y * x).backward()
    np.testing.assert_array_equal(x.grad, y.array)
    assert y.grad is None


def test_windows_in_the_margins_alone_have_no_mean_but_their_neighbours_have() -> None:
    x = Variable(np.arange(1, 5, dtype="f").reshape(1, 1, 2, 2))
    y = functions.average_pooling_nd(x, 1, 1, 1, pad_value=None)
    assert np.isnan(y.array).sum() == 12
    np.testing.assert_array_equal(y.array[0, 0, 1:3, 1:3], x.array[0, 0])
    y.grad = np.ones_like(y.array)
    y.backward()
    np.testing.assert_array_equal(x.grad, np.ones_like(x.array))
    y = functions.average_pooling_2d(x, (1, 2), 1, (1, 0))
    np.testing.assert_array_equal(y.array[0, 0], [[0], [1.5], [3.5], [0]])
