"""Images whose number only a run knows: one program for all, which compiles nothing later."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import helper

from tests.drawing import few
from tests.native.agreement import agree_over
from tests.native.models import compiled, draw, every_level, model, session
from tests.native.test_shapes_convolution import channels, windows

FEW = few(3)
BATCHES = (1, 3, 2, 7)


def images(shape: Sequence[int], batches: Sequence[int] = BATCHES) -> list[dict[str, np.ndarray]]:
    return [{"x": draw((n, *shape), n)} for n in batches]


@every_level
@FEW
@given(windows(), channels())
def test_convolutions_take_any_number_of_images(
    level: str, window: Any, drawn: tuple[int, int, int]
) -> None:
    attributes, size = window
    groups, inside, outside = drawn
    w = draw((outside, inside // groups, *attributes["kernel_shape"]), 1)
    nodes = [
        helper.make_node("Conv", ["x", "w", "b"], ["c"], group=groups, **attributes),
        helper.make_node("Relu", ["c"], ["y"]),
    ]
    constants = {"w": w, "b": draw((outside,), 2)}
    shapes = {"x": ["n", inside, *size]}
    feeds = images((inside, *size))
    agree_over(nodes, feeds, level, shapes, constants=constants, length=w[0].size * 16)


@every_level
@FEW
@given(windows(2), st.booleans(), st.booleans())
def test_pools_take_any_number_of_images(
    level: str, window: Any, ceil_mode: bool, whole: bool
) -> None:
    attributes, size = window
    dilations = attributes.pop("dilations")
    size = [n + 4 for n in size]
    nodes = [
        helper.make_node("MaxPool", ["x"], ["y"], ceil_mode=ceil_mode, dilations=dilations,
                         **attributes),
        helper.make_node("AveragePool", ["x"], ["z"], ceil_mode=ceil_mode,
                         count_include_pad=whole, **attributes),
        helper.make_node("GlobalAveragePool", ["x"], ["m"]),
        helper.make_node("GlobalMaxPool", ["y"], ["l"]),
    ]  # fmt: skip
    agree_over(nodes, images((19, *size)), level, {"x": ["n", 19, *size]}, length=100)


def small_network() -> tuple[list[onnx.NodeProto], dict[str, np.ndarray]]:
    """Return a network of a stem, residual, depthwise and pooled layers, and its weights."""

    def conv(name: str, x: str, **more: Any) -> onnx.NodeProto:
        return helper.make_node("Conv", [x, f"w{name}", f"b{name}"], [f"c{name}"], name, **more)

    nodes = [
        conv("0", "x", strides=[2, 2], pads=[3, 3, 3, 3]),
        helper.make_node("Relu", ["c0"], ["r0"]),
        helper.make_node("MaxPool", ["r0"], ["p0"], kernel_shape=[3, 3], strides=[2, 2],
                         pads=[1, 1, 1, 1]),
        conv("1", "p0", pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c1"], ["r1"]),
        conv("2", "r1"),
        helper.make_node("Add", ["c2", "p0"], ["a"]),
        helper.make_node("Relu", ["a"], ["r2"]),
        conv("3", "r2", group=64, strides=[2, 2], pads=[1, 1, 1, 1]),
        helper.make_node("Clip", ["c3", "zero", "six"], ["r3"]),
        conv("4", "r3"),
        helper.make_node("HardSwish", ["c4"], ["h"]),
        helper.make_node("GlobalAveragePool", ["h"], ["g"]),
        helper.make_node("Flatten", ["g"], ["f"]),
        helper.make_node("Gemm", ["f", "wf", "bf"], ["y"]),
    ]  # fmt: skip
    weights = {"0": (64, 3, 7, 7), "1": (64, 64, 3, 3), "2": (64, 64, 1, 1), "3": (64, 1, 3, 3),
               "4": (96, 64, 1, 1)}  # fmt: skip
    constants = {
        "wf": draw((96, 10)),
        "bf": draw((10,)),
        "zero": np.array(0, np.float32),
        "six": np.array(6, np.float32),
    }
    for i, (name, shape) in enumerate(weights.items()):
        constants[f"w{name}"] = draw(shape, i) / np.float32(np.sqrt(np.prod(shape[1:])))
        constants[f"b{name}"] = draw(shape[:1], i)
    return nodes, constants


@every_level
def test_a_network_of_an_open_batch_compiles_once(level: str) -> None:
    nodes, constants = small_network()
    feeds = images((3, 45, 37), (2, 1, 5, 0, 4))
    shapes = {"x": ["n", 3, 45, 37]}
    agree_over(nodes, feeds, level, shapes, outputs=["y"], constants=constants, length=3000)


@every_level
def test_products_of_computed_matrices_begin_with_the_row_that_is_added(
    level: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = helper.make_node("Gemm", ["x", "w", "b"], ["y"], transB=1)
    shapes = {"x": ["n", "k"], "w": ["m", "k"], "b": ["m"]}
    # Whole tiles and the rest of them, over one depth of packed rows and several.
    sizes = ((1, 1, 1), (3, 300, 31), (14, 256, 32), (15, 257, 65), (30, 513, 1))
    feeds = [{"x": draw((n, k), 1), "w": draw((m, k), 2), "b": draw((m,), 3)} for n, k, m in sizes]
    proto = model([node], feeds[0], ["y"], None, shapes)
    kernels = compiled(monkeypatch, lambda: session(proto, instructions=level))
    assert len(kernels) == 1, "the row is added in a pass of its own"
    agree_over([node], feeds, level, shapes, length=513)
