"""Sizes that do not fit each other are refused, whatever else an operator finds in its data."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import helper

from hagane.errors import KernelError
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
        ("AffineGrid", {"t": draw((5, 2, 2))}, {"n": np.array([5, 2, 4, 4])}),
        ("AffineGrid", {"t": draw((5, 1, 3))}, {"n": np.array([5, 2, 4, 4])}),
        ("GridSample", {"x": draw((1, 1, 4, 4)), "g": draw((1, 3, 3, 1))}, {}),
    ],
)
def test_operands_that_do_not_fit_are_refused(
    operator: str, feed: dict[str, np.ndarray], constants: dict[str, np.ndarray]
) -> None:
    with pytest.raises(KernelError, match=f"{operator} 'it' failed"):
        run(operator, feed, constants)


@pytest.mark.parametrize("blocks", ["DepthToSpace", "SpaceToDepth"])
def test_blocks_divide_sizes(blocks: str) -> None:
    with pytest.raises(KernelError, match=f"{blocks} 'it' failed"):
        run(blocks, {"x": draw((1, 9, 3, 3))}, blocksize=2)


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


def test_a_loss_takes_one_label_a_score() -> None:
    feed = {"x": draw((2, 6)), "labels": LABELS}
    with pytest.raises(KernelError, match="failed"):
        run("SoftmaxCrossEntropyLoss", feed, reduction="none")
