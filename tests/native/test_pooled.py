"""Pooling computed with the convolution before it; images that lie in planes with a border."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import helper

from tests.drawing import few
from tests.native.models import RUNNABLE, compare, compiled, draw, every_level, model, session

LEVELS = [name for name in RUNNABLE if name != "amx"]


def pooled(
    shape: tuple[int, ...],
    maps: int,
    kernel: tuple[int, ...],
    window: tuple[int, ...],
    *,
    pool: str = "MaxPool",
    **attributes: object,
) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    """Return Conv, Relu, pooling and another Conv of the result."""
    shapes = {"v": (maps, shape[1], *kernel), "w": (5, maps, *[3] * len(kernel))}
    weights = {
        name: draw(each, i) / np.float32(np.sqrt(np.prod(each[1:])))
        for i, (name, each) in enumerate(shapes.items(), 1)
    }
    weights["b"] = draw((maps,), 3)
    pads = [k // 2 for k in kernel] * 2
    nodes = [
        helper.make_node("Conv", ["x", "v", "b"], ["a"], pads=pads, **attributes),
        helper.make_node("Relu", ["a"], ["r"]),
        helper.make_node(pool, ["r"], ["p"], kernel_shape=window, strides=window),
        helper.make_node("Conv", ["p", "w"], ["y"], pads=[1] * len(pads)),
    ]
    x = draw(shape)
    return model(nodes, {"x": x}, constants=weights), {"x": x}


@few(6)
@given(
    st.sampled_from(LEVELS), st.integers(1, 2), st.integers(1, 20), st.integers(1, 40),
    st.integers(7, 40), st.integers(7, 40), st.tuples(st.integers(1, 3), st.integers(1, 3)),
    st.sampled_from(["MaxPool", "AveragePool"]), st.integers(1, 2),
)  # fmt: skip
def test_pooled_convolutions_equal_the_reference(
    level: str, images: int, channels: int, maps: int, high: int, wide: int,
    window: tuple[int, int], pool: str, stride: int,
) -> None:  # fmt: skip
    proto, feed = pooled(
        (images, channels, high, wide), maps, (5, 3), window, pool=pool, strides=[stride] * 2
    )
    compare(proto, feed, level, rtol=1e-4, atol=1e-4)


@every_level
@pytest.mark.parametrize("maps", [3, 8, 17, 50])
def test_pooling_of_one_axis_and_of_small_networks(level: str, maps: int) -> None:
    compare(*pooled((2, 3, 90), maps, (7,), (3,)), level, rtol=1e-4, atol=1e-4)
    compare(*pooled((1, 1, 28, 28), maps, (5, 5), (2, 2)), level, rtol=1e-4, atol=1e-4)


def labels(proto: onnx.ModelProto, feed: dict[str, np.ndarray], patch: pytest.MonkeyPatch) -> str:
    found = compiled(patch, lambda: session(proto, instructions=LEVELS[0]).run(None, feed))
    return " ".join(kernel.label for kernel in found)


@pytest.mark.parametrize("maps", [8, 20])
def test_side_by_side_windows_leave_no_kernel_of_their_own(
    maps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    proto, feed = pooled((1, 1, 28, 28), maps, (5, 5), (2, 2))
    assert "Conv+Relu+MaxPool" in labels(proto, feed, monkeypatch)


@pytest.mark.parametrize(
    "changed",
    [{"strides": [1, 1]}, {"pads": [1, 1, 0, 0]}, {"dilations": [2, 2]}, {"ceil_mode": 1}],
)
def test_other_windows_have_a_kernel_of_their_own(
    changed: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    proto, feed = pooled((1, 2, 29, 29), 8, (5, 5), (2, 2))
    attributes = {"kernel_shape": [2, 2], "strides": [2, 2], **changed}
    proto.graph.node[2].CopyFrom(helper.make_node("MaxPool", ["r"], ["p"], **attributes))
    assert "+MaxPool" not in labels(proto, feed, monkeypatch)
    compare(proto, feed, LEVELS[0], rtol=1e-4, atol=1e-4)


@every_level
def test_planes_with_a_border_may_be_read_by_others_too(level: str) -> None:
    """A narrow convolution's result lies in planes; a sum, an output and convolutions read them."""
    x = draw((2, 3, 30, 34))
    weights = {
        "v": draw((6, 3, 3, 3), 1), "w": draw((20, 6, 5, 5), 2), "u": draw((4, 6, 3, 3), 3),
        "t": draw((6, 6, 1, 1), 4),
    }  # fmt: skip
    nodes = [
        helper.make_node("Conv", ["x", "v"], ["a"], pads=[1] * 4),
        helper.make_node("Conv", ["a", "w"], ["b"], pads=[2] * 4),
        helper.make_node("Conv", ["a", "u"], ["c"], pads=[1, 0, 1, 2], strides=[1, 2]),
        helper.make_node("Conv", ["a", "t"], ["d"]),
        helper.make_node("Add", ["a", "d"], ["e"]),
        helper.make_node("Transpose", ["a"], ["f"], perm=[0, 2, 3, 1]),
    ]
    proto = model(nodes, {"x": x}, outputs=("b", "c", "e", "f"), constants=weights)
    compare(proto, {"x": x}, level, rtol=1e-4, atol=1e-4)
