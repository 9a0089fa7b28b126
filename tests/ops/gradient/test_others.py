"""Gradients of signals, sequences, quantised weights and operators of com.microsoft."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from hagane.errors import NotDifferentiable
from hagane.ops.builder import op
from hagane.ops.gradient import pull_back
from tests.ops.gradient.differences import check, check_operator

RNG = np.random.default_rng(37)


def draw(*shape: int) -> np.ndarray:
    return np.asarray(RNG.uniform(-1, 1, shape))


@pytest.mark.parametrize("inverse", [0, 1])
@pytest.mark.parametrize("length", [None, 3, 4, 7])
def test_fourier_transforms(inverse: int, length: int | None) -> None:
    size = None if length is None else np.array(length)
    for parts in (1, 2):
        check_operator("DFT", draw(2, 5, parts), size, attributes={"inverse": inverse})
    axis = np.array(0)
    check_operator("DFT", draw(4, 3, 2), size, axis, attributes={"inverse": inverse})
    parts = 2 if inverse else 1
    attributes = {"inverse": inverse, "onesided": 1}
    check_operator("DFT", draw(2, 4, parts), size, attributes=attributes)


def test_short_time_transforms() -> None:
    for onesided in (0, 1):
        attributes = {"onesided": onesided}
        step, size = np.array(2), np.array(4)
        check_operator("STFT", draw(2, 9, 1), step, draw(4), attributes=attributes)
        check_operator("STFT", draw(2, 9), step, None, size, attributes=attributes)


def test_sequences() -> None:
    def one(*xs: Any) -> Sequence[Any]:
        sequence = op("SequenceConstruct", *xs)
        sequence = op("SequenceInsert", sequence, op("Mul", xs[0], 2), -1)
        sequence = op("SequenceErase", sequence, 0)
        joined = op("ConcatFromSequence", sequence, axis=0)
        stacked = op(
            "ConcatFromSequence", op("SequenceConstruct", xs[0], xs[0]), axis=1, new_axis=1
        )
        parts = op("SplitToSequence", op("Mul", joined, joined), axis=0, keepdims=0)
        return [op("SequenceAt", parts, -2), op("SequenceAt", sequence, 1), joined, stacked]

    check(one, draw(2, 3), draw(1, 3), draw(2, 3), second=False)
    split = lambda x: [  # noqa: E731
        op("SequenceAt", op("SplitToSequence", x, np.array([1, 3])), 1)
    ]
    check(split, draw(4, 2), second=False)
    kept = lambda x: [op("OptionalGetElement", op("Optional", x))]  # noqa: E731
    check(kept, draw(2))


def test_scales_of_quantised_weights() -> None:
    x = RNG.integers(-100, 100, (3, 4)).astype(np.int8)
    narrow = {"step": 1e-2, "tolerance": 1e-3, "second": False}
    for scale, zero, attributes in (
        (draw(), np.array(3, np.int8), {}),
        (draw(4), None, {}),
        (draw(3), np.array([1, 2, 3], np.int8), {"axis": 0}),
        (draw(2, 4), None, {"axis": 0, "block_size": 2}),
    ):
        given = np.asarray(scale, np.float32)
        options = {"wanted": [1], "attributes": attributes, **narrow}
        check_operator("DequantizeLinear", x, given, zero, **options)


def test_regions_of_whole_pixels() -> None:
    rois = np.array([[0, 0, 0, 2, 3], [1, 1, 2, 4, 3], [0, 3, 3, 3, 3]], np.float64)
    attributes = {"pooled_shape": [2, 2]}
    x = draw(2, 2, 5, 5)
    from hagane.ops.convolution.unpool import composed_max_roi_pool

    want = op("MaxRoiPool", x, rois, **attributes)
    made = composed_max_roi_pool(x, rois, pooled_shape=[2, 2], spatial_scale=1.0)
    np.testing.assert_array_equal(made, want)
    check_operator("MaxRoiPool", x, rois, attributes=attributes, wanted=[0])


# What these are composed of knows no doubles.
NO_DOUBLES = ("Attention", "MultiHeadAttention", "RotaryEmbedding")
MICROSOFT: list[tuple[str, list[Any], int, dict[str, Any]]] = [
    ("BiasAdd", [draw(2, 3), draw(3), draw(2, 3)], 1, {}),
    ("BiasGelu", [draw(2, 3), draw(3)], 1, {}),
    ("BiasSplitGelu", [draw(2, 4), draw(4)], 1, {}),
    ("CDist", [draw(3, 2), draw(4, 2)], 1, {"metric": "euclidean"}),
    ("ExpandDims", [draw(2, 3), np.array(1, np.int32)], 1, {}),
    ("FastGelu", [draw(2, 3), draw(3)], 1, {}),
    ("FusedConv", [draw(1, 2, 5), draw(3, 2, 2), draw(3)], 1, {"activation": "Tanh"}),
    ("FusedGemm", [draw(2, 3), draw(4, 3), draw(4)], 1, {"transB": 1, "activation": "Sigmoid"}),
    ("FusedMatMul", [draw(2, 3, 4), draw(2, 3, 5)], 1, {"transA": 1, "alpha": 0.5}),
    ("FusedMatMul", [draw(3, 2, 4), draw(2, 4, 5)], 1, {"transBatchA": 1}),
    ("Gelu", [draw(2, 3)], 1, {}),
    ("Inverse", [draw(2, 3, 3) + 2 * np.eye(3)], 1, {}),
    (
        "NhwcMaxPool",
        [RNG.permutation(np.arange(40.0)).reshape(1, 4, 5, 2)],
        1,
        {"kernel_shape": [2, 2]},
    ),
    ("QuickGelu", [draw(2, 3)], 1, {}),
    ("SkipLayerNormalization", [draw(2, 2, 4), draw(2, 2, 4), draw(4), draw(4)], 1, {}),
    ("SkipSimplifiedLayerNormalization", [draw(2, 2, 4), draw(2, 2, 4), draw(4)], 1, {}),
    ("RotaryEmbedding", [draw(1, 3, 8), np.array([[1, 0, 2]]), draw(4, 2), draw(4, 2)], 1, {}),
    ("RotaryEmbedding", [draw(2, 2, 3, 4), np.array([1]), draw(4, 2), draw(4, 2)], 1, {}),
    (
        "Attention",
        [draw(2, 3, 4), draw(4, 12), draw(12), np.array([3, 2], np.int32)],
        2,
        {"num_heads": 2, "unidirectional": 1},
    ),
    (
        "MultiHeadAttention",
        [draw(2, 3, 4), draw(2, 5, 4), draw(2, 5, 4), draw(12), np.ones((2, 5), np.int32)],
        3,
        {"num_heads": 2, "scale": 0.7},
    ),
    ("MultiHeadAttention", [draw(2, 3, 2, 3, 2)], 1, {"num_heads": 2}),
]


@pytest.mark.parametrize(
    ("name", "inputs", "outputs", "attributes"),
    MICROSOFT,
    ids=lambda item: item if isinstance(item, str) else "",
)
def test_fused_operators(
    name: str, inputs: list[Any], outputs: int, attributes: dict[str, Any]
) -> None:
    options: dict[str, Any] = {"outputs": outputs, "attributes": attributes, "second": False}
    if name in NO_DOUBLES:
        inputs = [x.astype(np.float32) if x.dtype == np.float64 else x for x in inputs]
        wanted = [i for i, x in enumerate(inputs) if x.dtype == np.float32]
        options |= {"step": 1e-2, "tolerance": 2e-3, "wanted": wanted}
    check_operator(name, *inputs, domain="com.microsoft", **options)


def test_embeddings() -> None:
    ids, segments = np.array([[0, 2, 1]], np.int32), np.array([[0, 0, 1]], np.int32)
    tables = [draw(4, 4), draw(5, 4), draw(2, 4), draw(4), draw(4)]
    options = {"domain": "com.microsoft", "outputs": 2, "second": False}
    check_operator("EmbedLayerNormalization", ids, segments, *tables, **options)


def test_operators_without_gradient_say_why() -> None:
    scale, zero = np.float32(0.1), np.uint8(0)
    whole = lambda x: [  # noqa: E731
        op("Cast", op("Bernoulli", x), to=1),
    ]
    _, pull = pull_back(whole, draw(2).astype(np.float32))
    with pytest.raises(NotDifferentiable, match="Bernoulli has no gradient: its result is drawn"):
        pull([np.ones(2, np.float32)])
    rounded = lambda x: [  # noqa: E731
        op("DequantizeLinear", op("QuantizeLinear", x, scale, zero), scale, zero)
    ]
    _, pull = pull_back(rounded, draw(2).astype(np.float32))
    assert pull([np.ones(2, np.float32)]) == [None]
