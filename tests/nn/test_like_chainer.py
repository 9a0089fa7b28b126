"""Programs whose results Chainer 7.8.1 settles: random draws in its order, its promotions."""

from __future__ import annotations

import numpy as np
import pytest

import hagane as chainer
import hagane.functions as F  # noqa: N812
import hagane.links as L  # noqa: N812
from hagane.utils.type_check import InvalidType


def test_serial_iterators_shuffle_with_numpys_stream_as_chainers_do() -> None:
    np.random.seed(0)
    iterator = chainer.iterators.SerialIterator(np.arange(5), 5)
    chainer.iterators.SerialIterator(np.arange(5), 5, repeat=False, shuffle=False)
    assert next(iterator) == [2, 0, 1, 3, 4]
    np.random.seed(0)
    np.random.permutation(5), np.random.permutation(5)
    expected = np.random.rand()
    np.random.seed(0)
    next(chainer.iterators.SerialIterator(np.arange(5), 5))
    assert np.random.rand() == expected


def test_each_direction_of_a_recurrent_layer_drops_values_of_its_own() -> None:
    np.random.seed(0)
    link = L.NStepBiLSTM(2, 6, 5, 0.5)
    np.random.seed(1)
    link(None, None, [np.ones((n, 6), "f") for n in (3, 2)])
    found = np.random.rand()
    np.random.seed(1)
    np.random.rand(2 * (3 + 2) * 10)  # the second layer's inputs, for both directions
    assert found == np.random.rand()


@pytest.mark.parametrize("other", [np.ones(3), np.ones(3, "i"), np.ones((2, 3), np.float16)])
def test_arrays_beside_a_variable_take_its_element_type(other: np.ndarray) -> None:
    x = chainer.Variable(np.full(3, 2, "f"))
    for y in (x + other, other - x, x * other, other / x, x**other):
        assert y.dtype == np.float32
    np.testing.assert_array_equal((other - x).array, np.full(other.shape, -1))


def test_a_bias_of_another_element_type_is_refused() -> None:
    with pytest.raises(InvalidType, match=r"Expect: b.dtype == x.dtype\nActual: float32 != float"):
        L.Linear(3, 2)(np.ones((2, 3)))
    with pytest.raises(InvalidType, match=r"Expect: b.dtype == x.dtype"):
        L.Convolution2D(3, 2, 1)(np.ones((2, 3, 2, 2)))


def test_batch_normalization_of_one_sample_warns_and_names_the_place() -> None:
    with pytest.warns(UserWarning, match=r"result is beta; .* At: .*test_like_chainer.py:\d+"):
        L.BatchNormalization(3)(np.ones((1, 3), "f"))


def test_labels_of_ctc_are_checked() -> None:
    x = [chainer.Variable(np.ones((2, 3), "f"))] * 2
    with pytest.raises(InvalidType, match=r"Expect: t of shape \(2, labels\)"):
        F.connectionist_temporal_classification(x, np.array([[1]], "i"), 0)
    with pytest.raises(ValueError, match="expected labels from 0 to 2, the classes of x, got 1 to"):
        F.connectionist_temporal_classification(x, np.array([[1], [9]], "i"), 0)
