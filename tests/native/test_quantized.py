"""Quantised operators against the reference kernels, and an 8-bit model against ONNX Runtime."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import helper

from hagane.machine import usable_cores
from tests.drawing import few
from tests.native.models import (
    compare,
    compiled,
    every_low_precision_level,
    model,
    refused,
    session,
)

_TYPES = (np.int8, np.uint8)


def _bytes(random: np.random.Generator, dtype: type, shape: tuple[int, ...]) -> np.ndarray:
    info = np.iinfo(dtype)
    return random.integers(info.min, info.max, shape, endpoint=True).astype(dtype)


@every_low_precision_level
@pytest.mark.parametrize("dtype", _TYPES)
def test_numbers_go_to_bytes_and_back(level: str, dtype: type) -> None:
    random = np.random.default_rng(1)
    x = np.concatenate([random.normal(0, 9, 4000), [np.inf, -np.inf, np.nan, 0.5, 1.5, 2.5, -0.5]])
    x = np.resize(x, (5, 3, 67)).astype(np.float32)
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["y"]),
        helper.make_node("QuantizeLinear", ["x", "sc", "zc"], ["qc"], axis=1),
        helper.make_node("DequantizeLinear", ["qc", "sc", "zc"], ["yc"], axis=-2),
    ]
    constants = {
        "s": np.float32(0.07), "z": np.array(3, dtype),
        "sc": np.float32([0.1, 0.02, 1]), "zc": np.array([0, 5, 1], dtype),
    }  # fmt: skip
    proto = model(nodes, {"x": x}, ["q", "y", "qc", "yc"], constants)
    compare(proto, {"x": x}, level)
    assert refused(session(proto)) == {}


@every_low_precision_level
@few(7)
@given(st.data())
def test_products_of_bytes_are_exact(level: str, data: st.DataObject) -> None:
    rows, k, n = (data.draw(st.integers(1, high)) for high in (14, 70, 140))
    left, right = data.draw(st.sampled_from(_TYPES)), data.draw(st.sampled_from(_TYPES))
    random = np.random.default_rng(data.draw(st.integers(0, 99)))
    a, b = _bytes(random, left, (2, rows, k)), _bytes(random, right, (k, n))
    za, zb = _bytes(random, left, ()), _bytes(random, right, ())
    nodes = [
        helper.make_node("MatMulInteger", ["a", "b", "za", "zb"], ["y"]),
        helper.make_node("MatMulInteger", ["a", "b"], ["plain"]),
        helper.make_node("QLinearMatMul", ["a", "sa", "zc", "b", "sb", "zb", "sy", "zy"], ["q"]),
    ]
    constants = {
        "b": b, "zb": zb, "zc": za, "sa": np.float32(0.02),
        "sb": random.uniform(0.01, 0.1, n).astype(np.float32),
        "sy": np.float32(1.7), "zy": np.array(4, left),
    }  # fmt: skip
    proto = model(nodes, {"a": a, "za": za}, ["y", "plain", "q"], constants)
    compare(proto, {"a": a, "za": za}, level)


@every_low_precision_level
def test_more_products_of_bytes_are_compiled_than_files_of_c(level: str) -> None:
    random = np.random.default_rng(3)
    count = 2 * usable_cores() + 1
    a = _bytes(random, np.uint8, (4, 10))
    constants = {f"b{n}": _bytes(random, np.int8, (10, 5 + n)) for n in range(count)}
    nodes = [helper.make_node("MatMulInteger", ["a", f"b{n}"], [f"y{n}"]) for n in range(count)]
    proto = model(nodes, {"a": a}, [f"y{n}" for n in range(count)], constants)
    compare(proto, {"a": a}, level)


@every_low_precision_level
@few(6)
@given(st.data())
def test_convolutions_of_bytes_are_exact(level: str, data: st.DataObject) -> None:
    channels, maps, size = (data.draw(st.integers(1, high)) for high in (5, 70, 9))
    kernel, stride, dilation = (data.draw(st.integers(1, high)) for high in (3, 2, 2))
    pad = data.draw(st.integers(0, 2))
    size += (kernel - 1) * dilation
    left, right = data.draw(st.sampled_from(_TYPES)), data.draw(st.sampled_from(_TYPES))
    random = np.random.default_rng(data.draw(st.integers(0, 99)))
    x = _bytes(random, left, (2, channels, size, size + 1))
    w = _bytes(random, right, (maps, channels, kernel, kernel))
    attributes = {"strides": [stride] * 2, "dilations": [dilation] * 2, "pads": [pad] * 4}
    nodes = [
        helper.make_node("ConvInteger", ["x", "w", "zx", "zw"], ["y"], **attributes),
        helper.make_node(
            "QLinearConv", ["x", "sx", "zx", "w", "sw", "zw", "sy", "zy", "b"], ["q"], **attributes
        ),
    ]
    constants = {
        "w": w, "zx": _bytes(random, left, ()), "zw": _bytes(random, right, ()),
        "sx": np.float32(0.02), "sw": random.uniform(0.01, 0.1, maps).astype(np.float32),
        "sy": np.float32(2.5), "zy": np.array(1, left),
        "b": random.integers(-99, 99, maps).astype(np.int32),
    }  # fmt: skip
    proto = model(nodes, {"x": x}, ["y", "q"], constants)
    compare(proto, {"x": x}, level)
    assert refused(session(proto)) == {}


@every_low_precision_level
@pytest.mark.parametrize("group", [1, 12])
def test_convolutions_around_any_zero_point_need_no_matrix_of_windows(
    group: int, level: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    random = np.random.default_rng(0)
    x, w = _bytes(random, np.uint8, (2, 12, 9, 14)), _bytes(random, np.uint8, (12, 12, 3, 3))
    inputs = ["x", "sx", "zx", "w", "sw", "zw", "sy", "zy"]
    nodes = [helper.make_node("QLinearConv", inputs, ["y"], pads=[1] * 4, group=group)]
    constants = {
        "w": w[:, : 12 // group], "zx": np.uint8(3), "zw": np.uint8(117), "sx": np.float32(0.02),
        "sw": np.float32(0.01), "sy": np.float32(0.9), "zy": np.uint8(9),
    }  # fmt: skip
    proto = model(nodes, {"x": x}, ["y"], constants, {"x": ["n", 12, "h", "w"]})
    kernels = compiled(monkeypatch, lambda: compare(proto, {"x": x}, level))
    assert kernels
    assert not [each.label for each in kernels if "windows" in each.label]


@every_low_precision_level
def test_a_range_is_found_at_run_time(level: str) -> None:
    random = np.random.default_rng(3)
    for x in (random.normal(0, 3, (3, 50)), random.uniform(2, 9, (4, 7)), np.zeros((2, 2))):
        found = x.astype(np.float32)
        proto = model(
            [helper.make_node("DynamicQuantizeLinear", ["x"], ["y", "s", "z"])],
            {"x": found},
            ["y", "s", "z"],
        )
        compare(proto, {"x": found}, level)


@every_low_precision_level
def test_triangles_shifts_and_shrinking_equal_their_reference(level: str) -> None:
    x = np.random.default_rng(4).normal(0, 1, (2, 5, 8)).astype(np.float32)
    n = np.arange(40, dtype=np.uint32).reshape(5, 8)
    by = (np.arange(40, dtype=np.uint32) % 35).reshape(5, 8)
    nodes = [
        helper.make_node("Trilu", ["x"], ["up"]),
        helper.make_node("Trilu", ["x", "k"], ["low"], upper=0),
        helper.make_node("Shrink", ["x"], ["shrunk"], lambd=0.5, bias=0.25),
        helper.make_node("BitShift", ["n", "by"], ["left"], direction="LEFT"),
        helper.make_node("BitShift", ["n", "by"], ["right"], direction="RIGHT"),
    ]
    feeds = {"x": x, "n": n, "by": by}
    proto = model(
        nodes, feeds, ["up", "low", "shrunk", "left", "right"], {"k": np.int64(-1).reshape(())}
    )
    compare(proto, feeds, level)
    assert refused(session(proto)) == {}


@every_low_precision_level
def test_several_products_of_bytes_are_compiled_together(level: str) -> None:
    random = np.random.default_rng(5)
    a = _bytes(random, np.uint8, (5, 12))
    # More than there are files that are compiled side by side.
    constants = {f"b{n}": _bytes(random, np.uint8, (12, n)) for n in range(9, 21)}
    nodes = [
        helper.make_node("MatMulInteger", ["a", name, "", "z"], [f"y{name}"]) for name in constants
    ]
    outputs = [f"y{name}" for name in constants]
    proto = model(nodes, {"a": a}, outputs, {**constants, "z": np.array(7, np.uint8)})
    compare(proto, {"a": a}, level)
