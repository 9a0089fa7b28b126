"""Convolutions and products of bytes whose results stay floats, and images of 16-bit numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import helper

from tests.drawing import few
from tests.native.models import compare, compiled, every_low_precision_level, model, session

_ZEROS = {np.uint8: 113, np.int8: -9}


def _layer(
    random: np.random.Generator, name: str, x: str, shape: tuple[int, ...], dtype: Any, **kept: Any
) -> tuple[list[Any], dict[str, Any]]:
    """Return the nodes of a convolution in QDQ form that writes a float, and their constants."""
    constants = {
        f"{name}_s": np.float32(0.03), f"{name}_z": np.array(_ZEROS[dtype], dtype),
        f"{name}_w": random.integers(-127, 128, shape).astype(np.int8),
        f"{name}_ws": random.uniform(0.001, 0.02, shape[0]).astype(np.float32),
        f"{name}_wz": np.zeros(shape[0], np.int8),
        f"{name}_b": random.standard_normal(shape[0]).astype(np.float32),
    }  # fmt: skip
    q = [f"{name}_s", f"{name}_z"]
    w = [f"{name}_w", f"{name}_ws", f"{name}_wz"]
    nodes = [
        helper.make_node("QuantizeLinear", [x, *q], [f"{name}_q"]),
        helper.make_node("DequantizeLinear", [f"{name}_q", *q], [f"{name}_x"]),
        helper.make_node("DequantizeLinear", w, [f"{name}_wf"], axis=0),
        helper.make_node(
            "Conv", [f"{name}_x", f"{name}_wf", f"{name}_b"], [name], name=name, **kept
        ),
    ]
    return nodes, constants


@pytest.mark.long
@every_low_precision_level
@few(5)
@given(st.data())
def test_convolutions_of_bytes_add_images_of_floats(level: str, data: st.DataObject) -> None:
    draw, whole = data.draw, st.integers
    depthwise, dtype = draw(st.booleans()), draw(st.sampled_from([np.uint8, np.int8]))
    channels, maps = draw(whole(2, 37)), draw(whole(1, 37))
    maps = channels if depthwise else maps
    kernel = draw(st.sampled_from([(1, 1), (3, 3), (2, 5), (3, 1)]))
    pads = [draw(whole(0, 2)) for _ in range(4)]
    strides, dilations = draw(st.sampled_from([(1, 1), (2, 2), (2, 1)])), [draw(whole(1, 2))] * 2
    random = np.random.default_rng(draw(whole(0, 99)))
    x = random.standard_normal((draw(whole(1, 2)), channels, 9, 11)).astype(np.float32)
    shape = (maps, 1 if depthwise else channels, *kernel)
    kept = {"pads": pads, "strides": strides, "dilations": dilations}
    nodes, constants = _layer(
        random, "c", "x", shape, dtype, group=channels if depthwise else 1, **kept
    )
    rows, columns = (
        (n + pads[i] + pads[i + 2] - dilations[i] * (kernel[i] - 1) - 1) // strides[i] + 1
        for i, n in enumerate((9, 11))
    )
    r = random.standard_normal((len(x), maps, rows, columns)).astype(np.float32)
    nodes += [
        helper.make_node("Relu", ["r"], ["skip"]),
        helper.make_node("Add", ["c", "skip"], ["sum"]),
        helper.make_node("Clip", ["sum", "low", "high"], ["y"]),
    ]
    # The next layer reads the sum as bytes, and is depthwise or has one group.
    more, added = _layer(random, "d", "y", (5, maps, 1, 1), dtype)
    constants |= {"low": np.float32(-0.5), "high": np.float32(6), **added}
    feed = {"x": x, "r": r}
    compare(model([*nodes, *more], feed, ["y", "d"], constants), feed, level, atol=0.4)


@every_low_precision_level
def test_sums_of_convolutions_of_bytes_are_exact_floats(
    level: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    random = np.random.default_rng(2)
    x = random.standard_normal((2, 20, 6, 7)).astype(np.float32)
    nodes, constants = _layer(random, "c", "x", (19, 20, 3, 3), np.uint8, pads=[1, 1, 1, 1])
    proto = model(nodes, {"x": x}, ["c"], constants)
    compare(proto, {"x": x}, level, atol=1e-4)
    kernels = compiled(monkeypatch, lambda: session(proto, instructions=level))
    labels = [kernel.label for kernel in kernels]
    # One kernel with all that follows: there are no sums of 32 bits in memory.
    assert "ConvInteger+Cast+Mul+Add 'c'" in labels, labels


@every_low_precision_level
@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
def test_convolutions_of_bytes_run_at_sizes_that_only_a_run_knows(level: str, dtype: Any) -> None:
    random = np.random.default_rng(3)
    first, constants = _layer(random, "c", "x", (12, 3, 3, 3), dtype, pads=[1, 1, 1, 1])
    second, more = _layer(random, "d", "c", (12, 1, 3, 3), dtype, pads=[1, 1, 1, 1], group=12)
    third, last = _layer(random, "e", "d", (33, 12, 1, 1), dtype)
    constants |= more | last
    nodes = [*first, *second, *third]
    for n, high, wide in ((1, 8, 5), (3, 1, 1), (2, 5, 40)):
        x = random.standard_normal((n, 3, high, wide)).astype(np.float32)
        proto = model(nodes, {"x": x}, ["e"], constants)
        for axis, name in ((0, "n"), (2, "h"), (3, "w")):
            proto.graph.input[0].type.tensor_type.shape.dim[axis].dim_param = name
        compare(proto, {"x": x}, level, atol=0.3)


@every_low_precision_level
def test_products_of_bytes_take_rows_whose_zero_point_a_run_finds(level: str) -> None:
    random = np.random.default_rng(4)
    for rows, k, n in ((1, 7, 33), (13, 64, 16), (97, 35, 50)):
        x = random.standard_normal((1, rows, k)).astype(np.float32)
        constants = {
            "w": random.integers(-127, 128, (k, n)).astype(np.int8),
            "s": random.uniform(0.01, 0.1, n).astype(np.float32),
            "b": random.standard_normal(n).astype(np.float32),
        }
        nodes = [
            helper.make_node("DynamicQuantizeLinear", ["x"], ["q", "qs", "qz"]),
            helper.make_node("MatMulInteger", ["q", "w", "qz"], ["i"]),
            helper.make_node("Cast", ["i"], ["f"], to=1),
            helper.make_node("Mul", ["f", "s"], ["m"]),
            helper.make_node("Add", ["m", "b"], ["a"]),
            helper.make_node("Mul", ["a", "qs"], ["y"]),
        ]
        compare(model(nodes, {"x": x}, ["y"], constants), {"x": x}, level)
