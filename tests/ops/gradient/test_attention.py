"""Gradients of attention and its relatives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hagane.ops.builder import op
from hagane.ops.registry import operators
from tests.ops.gradient.differences import check_operator

RNG = np.random.default_rng(29)


def draw(*shape: int) -> np.ndarray:
    return np.asarray(RNG.uniform(-1, 1, shape))


# Operators that ONNX defines for no doubles.
NARROW: dict[str, Any] = {"step": 1e-2, "tolerance": 2e-3, "second": False}


def check_narrow(name: str, *inputs: Any, outputs: int = 1, attributes: dict[str, Any]) -> None:
    narrow = [x.astype(np.float32) if x is not None and x.dtype == float else x for x in inputs]
    wanted = [i for i, x in enumerate(narrow) if x is not None and x.dtype == np.float32]
    options = {"outputs": outputs, "attributes": attributes, "wanted": wanted}
    check_operator(name, *narrow, **options, **NARROW)


def agree(name: str, *inputs: Any, outputs: int, attributes: dict[str, Any]) -> None:
    """Compare what an operator is composed of with its reference kernel."""
    composed = operators()["", name].compose
    assert composed is not None
    got = composed(*inputs, n_outputs=outputs, **attributes)
    want = op(name, *inputs, outputs=outputs, **attributes)
    for x, y in zip(got, want if outputs > 1 else (want,), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-6, atol=1e-6)


MASK = np.array([[True, False, True], [False, False, False], [True, True, True]])
CASES: list[tuple[dict[str, Any], list[Any]]] = [
    ({}, []),
    ({"is_causal": 1, "softcap": 1.5}, []),
    ({"scale": 0.3}, [draw(3, 3)]),
    ({}, [MASK]),
    ({}, [draw(2, 1, 3, 2)]),
    ({"is_causal": 1}, [None, draw(2, 2, 4, 2), draw(2, 2, 4, 2)]),
    ({"left_window_size": 1, "right_window_size": 0}, []),
    ({"is_causal": 1}, [None, None, None, np.array([3, 1])]),
]


@pytest.mark.parametrize(("attributes", "rest"), CASES, ids=range(len(CASES)))
def test_attention(attributes: dict[str, Any], rest: list[Any]) -> None:
    inputs = [draw(2, 4, 3, 2), draw(2, 2, 3, 2), draw(2, 2, 3, 2), *rest]
    for mode in (0, 2, 3):
        more = {**attributes, "qk_matmul_output_mode": mode}
        agree("Attention", *inputs, outputs=4, attributes=more)
    check_operator("Attention", *inputs, attributes=attributes)


@pytest.mark.parametrize("queries", [0, 3])
def test_attention_to_no_keys(queries: int) -> None:
    """Kernels in C, and the operators that a pass makes Attention of, have zeros."""
    none, few = np.zeros((2, 4, 0, 2)), np.zeros((2, 2, 0, 2))
    for rest in ([], [None, none, none]):
        agree("Attention", draw(2, 4, queries, 2), none, none, *rest, outputs=4, attributes={})
    attributes = {"q_num_heads": 2, "kv_num_heads": 2}
    packed = draw(2, queries, 4), np.zeros((2, 0, 4)), np.zeros((2, 0, 6))
    agree("Attention", *packed, outputs=4, attributes=attributes)
    found = op("Attention", draw(2, 4, queries, 2), few, few, outputs=4)
    assert [x.shape for x in found] == [
        (2, 4, queries, 2),
        few.shape,
        few.shape,
        (2, 4, queries, 0),
    ]
    assert not found[0].any()


def test_attention_on_packed_heads() -> None:
    attributes = {"q_num_heads": 4, "kv_num_heads": 2, "is_causal": 1}
    inputs = draw(2, 3, 8), draw(2, 3, 4), draw(2, 3, 6)
    agree("Attention", *inputs, outputs=4, attributes=attributes)
    check_operator("Attention", *inputs, outputs=3, attributes=attributes, second=False)


@pytest.mark.parametrize("interleaved", [0, 1])
def test_positions(interleaved: int) -> None:
    positions = np.array([[0, 3, 1], [2, 2, 4]])
    attributes = {"interleaved": interleaved}
    for ids in (None, positions):
        caches = [draw(*((2, 3, 2) if ids is None else (5, 2))) for _ in range(2)]
        check_narrow("RotaryEmbedding", draw(2, 2, 3, 4), *caches, ids, attributes=attributes)
        packed = {**attributes, "num_heads": 2, "rotary_embedding_dim": 4}
        check_narrow("RotaryEmbedding", draw(2, 3, 12), *caches, ids, attributes=packed)


def test_causal_convolutions() -> None:
    shapes = (2, 3, 5), (3, 1, 3), (3,), (2, 3, 2)
    inputs = [draw(*shape).astype(np.float32) for shape in shapes]
    for activation in ("none", "silu"):
        attributes = {"activation": activation}
        agree("CausalConvWithState", *inputs, outputs=2, attributes=attributes)
        check_narrow("CausalConvWithState", *inputs, outputs=2, attributes=attributes)
        check_narrow("CausalConvWithState", *inputs[:2], outputs=2, attributes=attributes)


@pytest.mark.parametrize("rule", ["linear", "gated", "delta", "gated_delta"])
def test_linear_attention(rule: str) -> None:
    inputs: list[Any] = [draw(2, 3, 8), draw(2, 3, 4), draw(2, 3, 6), draw(2, 2, 2, 3)]
    inputs.append(-np.abs(draw(2, 3, 4)) if "gated" in rule else None)
    inputs.append(np.abs(draw(2, 3, 2)) if "delta" in rule else None)
    narrow = [None if x is None else x.astype(np.float32) for x in inputs]
    attributes = {"q_num_heads": 4, "kv_num_heads": 2, "update_rule": rule}
    agree("LinearAttention", *narrow, outputs=2, attributes=attributes)
    check_narrow("LinearAttention", *narrow, outputs=2, attributes=attributes)
