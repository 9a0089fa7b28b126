"""Sizes that do not fit each other are refused, whatever else an operator finds in its data."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import helper

from hagane.errors import InvalidFeed, KernelError, TypeInferenceError
from tests.native.models import draw, model, session

LABELS = np.array([0, 1, 1])


def run(
    operator: str,
    feed: dict[str, np.ndarray],
    constants: dict[str, np.ndarray] | None = None,
    opset: int = 22,
    **attributes: Any,
) -> np.ndarray:
    """Run an operator on inputs whose sizes are open."""
    names = [*feed, *(constants or {})]
    shapes = {name: [f"{name}{i}" for i in range(a.ndim)] for name, a in feed.items()}
    node = helper.make_node(operator, names, ["y"], "it", **attributes)
    made = session(model([node], feed, ["y"], constants, shapes, opset))
    (first,) = made.run(None, feed)
    assert isinstance(first, np.ndarray)
    return first


@pytest.mark.parametrize(
    ("operator", "feed", "constants"),
    [
        ("NonMaxSuppression", {"b": draw((1, 6, 2)), "s": draw((1, 1, 6))}, {"k": np.array([3])}),
        ("NonMaxSuppression", {"b": draw((1, 3, 4)), "s": draw((1, 1, 6))}, {"k": np.array([3])}),
        ("NonMaxSuppression", {"b": draw((1, 9, 4)), "s": draw((1, 1, 6))}, {"k": np.array([3])}),
        ("RoiAlign", {"x": draw((2, 1, 4, 4)), "r": draw((1, 4))}, {"b": np.array([-1])}),
        ("RoiAlign", {"x": draw((2, 1, 4, 4)), "r": draw((3, 4)), "b": np.array([0])}, {}),
        (
            "RotaryEmbedding",
            {"x": draw((1, 2, 3, 4)), "c": draw((5, 2)), "s": draw((5, 2))},
            {"p": np.array([[0, 1, -1]])},
        ),
        ("AffineGrid", {"t": draw((1, 2, 3))}, {"n": np.array([2, 2, 4, 4])}),
        ("AffineGrid", {"t": draw((5, 2, 2))}, {"n": np.array([5, 2, 4, 4])}),
        ("AffineGrid", {"t": draw((5, 1, 3))}, {"n": np.array([5, 2, 4, 4])}),
        ("GridSample", {"x": draw((1, 1, 4, 4)), "g": draw((1, 3, 3, 1))}, {}),
    ],
)
def test_operands_that_do_not_fit_are_refused(
    operator: str, feed: dict[str, np.ndarray], constants: dict[str, np.ndarray]
) -> None:
    opset = 23 if operator == "RotaryEmbedding" else 22
    with pytest.raises(KernelError, match=f"{operator} 'it' failed"):
        run(operator, feed, constants, opset)


def test_places_of_maxima_are_not_before_the_first() -> None:
    feed = {"x": draw((1, 1, 4)), "i": np.array([[[-1, 3, 4, 6]]])}
    with pytest.raises(KernelError, match="MaxUnpool 'it' failed.*places from 0 on"):
        run("MaxUnpool", feed, kernel_shape=[2], strides=[2])


@pytest.mark.parametrize("mode", ["linear", "circular"])
def test_caches_are_not_written_before_their_start(mode: str) -> None:
    feed = {"c": draw((1, 4, 2)), "u": draw((1, 1, 2)), "s": np.array([-2])}
    with pytest.raises(KernelError, match="TensorScatter 'it' failed"):
        run("TensorScatter", feed, opset=24, mode=mode)


@pytest.mark.parametrize("blocks", ["DepthToSpace", "SpaceToDepth"])
def test_blocks_divide_sizes(blocks: str) -> None:
    with pytest.raises(KernelError, match=f"{blocks} 'it' failed"):
        run(blocks, {"x": draw((1, 9, 3, 3))}, blocksize=2)


@pytest.mark.parametrize(
    ("operator", "feed"),
    [
        ("ConstantOfShape", {"s": np.array([1 << 30, 1 << 28])}),
        ("Expand", {"x": draw((1, 1)), "s": np.array([1 << 30, 1 << 28])}),
        ("Tile", {"x": draw((1, 1)), "s": np.array([1 << 30, 1 << 28])}),
    ],
)
def test_sizes_beyond_memory_are_told_in_bytes(operator: str, feed: dict[str, np.ndarray]) -> None:
    with pytest.raises(KernelError, match=f"{operator} 'it' failed: .* {1 << 60:,} bytes"):
        run(operator, feed)


def test_groups_of_a_transposed_convolution_divide_channels() -> None:
    with pytest.raises(KernelError, match="ConvTranspose 'it' failed"):
        run("ConvTranspose", {"x": draw((1, 5, 3, 3)), "w": draw((5, 1, 3, 3))}, group=2)


@pytest.mark.parametrize(("heads", "keys"), [(10, 17), (4, 33), (5, 2)])
def test_heads_of_queries_are_a_multiple_of_those_of_keys(heads: int, keys: int) -> None:
    feed = {
        "q": draw((2, heads, 4, 8)),
        "k": draw((2, keys, 6, 8)),
        "v": draw((2, keys, 6, 8)),
    }
    with pytest.raises(KernelError, match="failed"):
        run("Attention", feed, opset=23)


@pytest.mark.parametrize("scales", [3, 9])
@pytest.mark.parametrize("operator", ["QuantizeLinear", "DequantizeLinear"])
def test_scales_of_blocks_cover_an_axis(operator: str, scales: int) -> None:
    x = draw((3, 16)) if operator == "QuantizeLinear" else np.ones((3, 16), np.uint8)
    feed = {"x": x, "scales": np.ones((3, scales), np.float32)}
    with pytest.raises(KernelError, match=f"{operator} 'it' failed"):
        run(operator, feed, axis=1, block_size=2)


def test_places_of_a_scattered_cache_are_as_many_as_its_rows() -> None:
    feed = {"c": draw((5, 4, 5)), "u": draw((5, 2, 5)), "i": np.zeros(3, np.int64)}
    with pytest.raises(KernelError, match="TensorScatter 'it' failed"):
        run("TensorScatter", feed, opset=24, axis=1)


def test_halves_of_heads_are_turned() -> None:
    feed = {"x": draw((2, 4, 3, 8)), "c": draw((2, 3, 2)), "s": draw((2, 3, 2))}
    with pytest.raises(KernelError, match="failed"):
        run("RotaryEmbedding", feed, opset=23)


def test_a_size_that_has_fewer_parts_is_split_as_by_the_reference() -> None:
    node = helper.make_node("Split", ["x"], ["a", "b", "c", "d"], num_outputs=4)
    proto = model([node], {"x": draw((2,))}, ["a", "b", "c", "d"], shapes={"x": ["n"]})
    made, reference = session(proto), session(proto, engine="reference")
    for size in (8, 2, 5, 3, 8):
        feed = {"x": draw((size,))}
        for left, right in zip(made.run(None, feed), reference.run(None, feed), strict=True):
            np.testing.assert_array_equal(left, right)


def test_lengths_of_parts_are_not_negative() -> None:
    """Of 4 and n - 4 numbers there are none of 3."""
    nodes = [
        helper.make_node("Shape", ["x"], ["n"]),
        helper.make_node("Sub", ["n", "four"], ["rest"]),
        helper.make_node("Concat", ["four", "rest"], ["lengths"], axis=0),
        helper.make_node("Split", ["x", "lengths"], ["a", "b"], "it"),
    ]
    four = {"four": np.array([4])}
    made = session(model(nodes, {"x": draw((9,))}, ["a", "b"], four, {"x": ["n"]}))
    assert [len(part) for part in made.run(None, {"x": draw((9,))})] == [4, 5]
    with pytest.raises(KernelError, match="lengths that are not negative"):
        made.run(None, {"x": draw((3,))})


def test_tuples_of_indices_are_of_the_batch() -> None:
    feed = {"x": draw((4, 5)), "i": np.zeros((3, 1), np.int64)}
    with pytest.raises(KernelError, match="equal sizes on 1 batch axes"):
        run("GatherND", feed, batch_dims=1)


def test_a_mask_mentions_no_more_keys_than_there_are() -> None:
    feed = {name: draw((1, 2, 4, 8)) for name in "qkv"} | {"m": draw((4, 9))}
    with pytest.raises(KernelError, match="failed"):
        run("Attention", feed, opset=23)


_QUERY = {"q": (1, 1, 64), "k": (1, 1, 32), "v": (1, 1, 32)}
_CACHES = {"past_k": (1, 2, 5, 16), "past_v": (1, 2, 5, 16)}
_BIAS = {"bias": (1, 4, 1, 6)}


@pytest.mark.parametrize(
    "wrong",
    [{"q": (1, 1, 48)}, {"k": (1, 1, 8)}, {"v": (1, 3, 32)}, {"past_k": (1, 7, 5, 16)},
     {"past_v": (1, 2, 5, 3)}, {"bias": (1, 3, 1, 6)},
     {"bias": (1, 4, 1, 5)}],
)  # fmt: skip
def test_operands_of_cached_attention_fit_the_query(wrong: dict[str, tuple[int, ...]]) -> None:
    given = _QUERY | _CACHES | wrong
    feed = {name: draw(shape) for name, shape in given.items() if name != "bias"}
    feed |= {"fill": np.array([5], np.int32), "total": np.array(6, np.int32)}
    feed["bias"] = draw((_BIAS | wrong)["bias"])
    names = [*feed][:-1] + [""] * 3 + ["bias"]
    node = helper.make_node(
        "GroupQueryAttention", names, ["y", "k2", "v2"], "it", domain="com.microsoft",
        num_heads=4, kv_num_heads=2,
    )  # fmt: skip
    shapes = {name: [f"{name}{i}" for i in range(a.ndim)] for name, a in feed.items()}
    proto = model([node], feed, ["y"], shapes=shapes)
    proto.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    # Of sizes of inputs alone the session tells before the run.
    told = r"GroupQueryAttention 'it'( failed|: expected inputs for which)"
    with pytest.raises((KernelError, InvalidFeed), match=told):
        session(proto).run(None, feed)


@pytest.mark.parametrize(
    ("number", "shape"),
    [(1, (1, 24, 5)), (2, (1, 20, 6)), (3, (1, 24)), (5, (1, 3, 6)), (6, (1, 2, 5)), (7, (1, 9))],
)
def test_operands_of_a_recurrent_layer_fit_it(number: int, shape: tuple[int, ...]) -> None:
    sizes = [(3, 2, 4), (1, 24, 4), (1, 24, 6), (1, 48), (2,), (1, 2, 6), (1, 2, 6), (1, 18)]
    sizes[number] = shape
    feed = {f"x{i}": draw(size) for i, size in enumerate(sizes)}
    feed["x4"] = np.array([3, 2], np.int32)
    with pytest.raises(KernelError, match="LSTM 'it' failed"):
        run("LSTM", feed, hidden_size=6)


def test_an_axis_that_is_named_twice_is_folded_once() -> None:
    node = helper.make_node("ReduceSum", ["x", "axes"], ["y"], keepdims=0)
    x, axes = draw((2, 3, 4)), {"axes": np.array([0, 2, -3])}
    proto = model([node], {"x": x}, constants=axes, shapes={"x": ["a", "b", "c"]})
    for engine in ("native", "reference"):
        (y,) = session(proto, engine=engine).run(None, {"x": x})
        np.testing.assert_allclose(y, x.sum(axis=(0, 2)), rtol=1e-5)


@pytest.mark.parametrize("kind", ["int64", "int32"])
def test_a_loss_takes_one_label_a_score(kind: str) -> None:
    feed = {"x": draw((3, 6)), "labels": LABELS.astype(kind)}
    found = run("NegativeLogLikelihoodLoss", feed, reduction="none")
    np.testing.assert_array_equal(found, -feed["x"][np.arange(3), LABELS])
    feed["x"] = draw((2, 6))
    with pytest.raises(KernelError, match="failed"):
        run("NegativeLogLikelihoodLoss", feed, reduction="none")
    feed["x"] = draw((4, 6))
    with pytest.raises(KernelError, match="equal sizes on 1 batch axes"):
        run("NegativeLogLikelihoodLoss", feed, reduction="none")


def test_a_cross_entropy_takes_one_label_a_score() -> None:
    feed = {"x": draw((2, 6)), "labels": LABELS}
    with pytest.raises(KernelError, match="failed"):
        run("SoftmaxCrossEntropyLoss", feed, reduction="none")


def test_a_causal_convolution_continues_the_steps_that_it_reaches() -> None:
    shapes = {"x": ["b", 5, "n"], "w": [5, 1, 5], "s": ["b", 5, 0]}
    feed = {"x": draw((2, 5, 8)), "w": draw((5, 1, 5)), "s": draw((2, 5, 0))}
    inputs, outputs = ["x", "w", "", "s"], ["y", "state"]
    node = helper.make_node("CausalConvWithState", inputs, outputs, "it")
    with pytest.raises(TypeInferenceError, match="reaches back as 'past_state'"):
        session(model([node], feed, shapes=shapes, opset=27))


@pytest.mark.parametrize("wrong", ["o", "m", "b"])
def test_taps_that_move_have_an_offset_and_a_share_each(wrong: str) -> None:
    shapes = {"x": (1, 2, 3, 3), "w": (2, 2, 2, 2), "o": (1, 8, 2, 2), "b": (2,), "m": (1, 4, 2, 2)}
    shapes[wrong] = (1,) if wrong == "b" else (1, 2, 2, 2)
    feed = {name: draw(shape) for name, shape in shapes.items()}
    names = {"o": "offset", "m": "mask", "b": "B"}
    made = helper.make_node("DeformConv", [*feed], ["y"], "it", kernel_shape=[2, 2])
    with pytest.raises(TypeInferenceError, match=f"expected '{names[wrong]}' of the shape"):
        session(model([made], feed, ["y"], opset=22))
    open_sizes = {name: [f"{name}{i}" for i in range(a.ndim)] for name, a in feed.items()}
    with pytest.raises((InvalidFeed, KernelError)):
        session(model([made], feed, ["y"], {}, open_sizes, 22)).run(None, feed)
