"""Attention, rotations of positions, and blocks of transformers."""

from __future__ import annotations

import numpy as np
import pytest

import hagane
import hagane.functions as F  # noqa: N812
import hagane.links as L  # noqa: N812
from hagane.gradient_check import check_backward
from hagane.utils.type_check import InvalidType

N = np.random.default_rng(0)


def attended(q: np.ndarray, k: np.ndarray, v: np.ndarray, seen: np.ndarray) -> np.ndarray:
    scores = np.where(seen, q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1]), -np.inf)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True) @ v


def test_attention_is_the_mean_of_values_by_softmax_of_scaled_products() -> None:
    q, k, v = N.normal(size=(3, 2, 5, 4)), N.normal(size=(3, 2, 7, 4)), N.normal(size=(3, 2, 7, 6))
    seen = N.random((5, 7)) > 0.3
    seen[:, 0] = True
    found = F.scaled_dot_product_attention(q, k, v, seen)
    np.testing.assert_allclose(found.array, attended(q, k, v, seen), rtol=1e-10)
    causal = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    np.testing.assert_allclose(
        causal.array, attended(q, k, v, np.tri(5, 7, dtype=bool)), rtol=1e-10
    )


def test_gradients_of_attention_and_rotations_are_those_of_differences() -> None:
    x = N.normal(size=(2, 3, 4))
    check_backward(
        lambda q, k, v: F.scaled_dot_product_attention(F.rotary(q), F.rotary(k), v, is_causal=True),
        (x, N.normal(size=(2, 3, 4)), N.normal(size=(2, 3, 2))),
        N.normal(size=(2, 3, 2)),
        eps=1e-5,
    )


def test_products_of_rotated_vectors_depend_on_the_distance_of_positions() -> None:
    q, k = N.normal(size=(1, 6)), N.normal(size=(1, 6))
    near = F.rotary(q, np.array([2])).array @ F.rotary(k, np.array([5])).array.T
    far = F.rotary(q, np.array([40])).array @ F.rotary(k, np.array([43])).array.T
    np.testing.assert_allclose(near, far, rtol=1e-10)


def test_keys_of_other_features_than_queries_are_refused() -> None:
    with pytest.raises(InvalidType, match=r"key: \(…, keys, 4\)"):
        F.scaled_dot_product_attention(np.ones((2, 4)), np.ones((3, 5)), np.ones((3, 5)))
    with pytest.raises(InvalidType, match="an even number of features"):
        F.rotary(np.ones((2, 3)))


@pytest.mark.parametrize("heads", [None, 1, 2])
def test_a_causal_block_does_not_look_ahead_and_trains(heads: int | None) -> None:
    np.random.seed(0)
    attention = L.MultiHeadAttention(8, 4, kv_heads=heads, rotary=True)
    x = N.normal(size=(3, 5, 8)).astype("f")
    y = attention(x, is_causal=True)
    changed = x.copy()
    changed[:, 3:] += 1
    again = attention(changed, is_causal=True)
    np.testing.assert_allclose(y.array[:, :3], again.array[:, :3], atol=1e-6)
    assert abs(y.array[:, 3:] - again.array[:, 3:]).max() > 1e-3
    block = L.TransformerBlock(8, 2, dropout=0.1)
    optimizer = hagane.optimizers.Adam(alpha=0.01).setup(block)
    losses = []
    for _ in range(12):
        loss = F.mean_squared_error(block(x, is_causal=True), np.zeros_like(x))
        block.cleargrads()
        loss.backward()
        optimizer.update()
        losses.append(float(loss.array))
    assert losses[-1] < losses[0] * 0.8


def test_a_block_without_cross_attention_refuses_a_memory() -> None:
    block = L.TransformerBlock(4, 2)
    x = np.ones((1, 2, 4), "f")
    with pytest.raises(ValueError, match="cross=True"):
        block(x, x)
    assert L.TransformerBlock(4, 2, cross=True)(x, np.ones((1, 5, 4), "f")).shape == (1, 2, 4)
    with pytest.raises(ValueError, match="got 6 units, 4 heads"):
        L.MultiHeadAttention(6, 4)
