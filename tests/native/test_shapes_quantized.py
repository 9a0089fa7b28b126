"""Quantised operators with every combination of signs, and sizes that fill no vector."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import onnxruntime
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import helper

from tests.drawing import few, many
from tests.native.agreement import agree
from tests.native.models import draw, every_low_precision_level, model, of_seven_bits, session

FEW = few(2)
MANY = many(150)
PAIRS = list(itertools.product(("int8", "uint8"), repeat=2))
signs = pytest.mark.parametrize(("left", "right"), PAIRS)


def numbers(random: np.random.Generator, dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    """Return numbers over the whole range of an element type."""
    info = np.iinfo(dtype)
    return random.integers(info.min, info.max, shape, endpoint=True).astype(dtype)


def check_bytes(level: str, left: str, right: str, data: st.DataObject) -> None:
    random = np.random.default_rng(data.draw(st.integers(0, 99)))
    m, k, n = (data.draw(st.integers(low, high)) for low, high in ((0, 20), (1, 90), (1, 60)))
    side = data.draw(st.integers(1, 9))
    groups = data.draw(st.sampled_from([1, 1, 2]))
    inside, outside = (groups * data.draw(st.integers(1, 20)) for _ in range(2))
    kernel = data.draw(st.integers(1, min(3, side)))
    a, b = numbers(random, left, (m, k)), numbers(random, right, (k, n))
    x = numbers(random, left, (2, inside, side, side))
    w = numbers(random, right, (outside, inside // groups, kernel, kernel))
    window: dict[str, Any] = {
        "pads": [data.draw(st.integers(0, kernel - 1)) for _ in range(4)],
        "strides": [data.draw(st.integers(1, 2)) for _ in range(2)],
        "group": groups,
    }
    nodes = [
        helper.make_node("MatMulInteger", ["a", "b", "za", "zb"], ["mi"]),
        helper.make_node("MatMulInteger", ["a", "bf", "za", "zb"], ["mf"]),
        helper.make_node("QLinearMatMul", ["a", "s", "za", "b", "s", "zb", "sy", "za"], ["qm"]),
        helper.make_node("ConvInteger", ["x", "w", "za", "zb"], ["ci"], **window),
        helper.make_node(
            "QLinearConv", ["x", "s", "za", "w", "s", "zb", "sy", "zr", "bias"], ["qc"], **window
        ),
        helper.make_node("DequantizeLinear", ["qc", "sy", "zr"], ["y"]),
        helper.make_node("QuantizeLinear", ["y", "sy", "za"], ["again"]),
    ]
    constants = {
        "b": b, "w": w, "za": numbers(random, left, ()), "zb": numbers(random, right, ()),
        "s": np.array(np.float32(0.04)), "sy": np.array(np.float32(0.9)),
        "zr": numbers(random, left, ()), "bias": random.integers(-999, 999, outside).astype("i4"),
    }  # fmt: skip
    agree(nodes, {"a": a, "bf": b, "x": x}, level, constants=constants)


@every_low_precision_level
@signs
@FEW
@given(st.data())
def test_products_of_bytes_of_any_sign(
    level: str, left: str, right: str, data: st.DataObject
) -> None:
    check_bytes(level, left, right, data)


@pytest.mark.long
@every_low_precision_level
@signs
@MANY
@given(st.data())
def test_many_products_of_bytes_of_any_sign(
    level: str, left: str, right: str, data: st.DataObject
) -> None:
    check_bytes(level, left, right, data)


@every_low_precision_level
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16"])
@pytest.mark.parametrize("axis", [-2, 0, 1])
def test_scales_of_any_axis_and_type(level: str, dtype: str, axis: int) -> None:
    x = draw((5, 6, 7)) * 40
    size = x.shape[axis]
    random = np.random.default_rng(0)
    zero = random.integers(0, 9, size).astype(dtype)
    constants = {"s": random.uniform(0.1, 2, size).astype(np.float32), "z": zero}
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"], axis=axis),
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["y"], axis=axis),
        helper.make_node("QuantizeLinear", ["x", "one"], ["bare"]),
    ]
    constants["one"] = np.array(np.float32(1.5))
    agree(nodes, {"x": x}, level, constants=constants)


@every_low_precision_level
@signs
def test_models_of_dequantised_weights_give_what_floats_give(
    level: str, left: str, right: str
) -> None:
    random = np.random.default_rng(1)
    x, w = draw((1, 8, 9, 9)), numbers(random, right, (12, 8, 3, 3))
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "sx", "zx"], ["xq"]),
        helper.make_node("DequantizeLinear", ["xq", "sx", "zx"], ["xd"]),
        helper.make_node("DequantizeLinear", ["w", "sw", "zw"], ["wd"], axis=0),
        helper.make_node("Conv", ["xd", "wd"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c"], ["y"]),
    ]
    constants = {
        "w": w, "sx": np.array(np.float32(0.03)), "zx": np.array(5, left),
        "sw": random.uniform(0.001, 0.01, 12).astype(np.float32), "zw": np.zeros(12, right),
    }  # fmt: skip
    agree(nodes, {"x": x}, level, constants=constants, outputs=["y"], length=400)


@every_low_precision_level
@pytest.mark.parametrize("fixed", [True, False])
def test_sums_are_rounded_as_onnx_runtime_rounds_them(level: str, fixed: bool) -> None:
    # (The result's scale is about 560 times that of sums, and many sums lie between two numbers.)
    random = np.random.default_rng(3)
    fed = {
        "x": numbers(random, "uint8", (1, 32, 40, 40)), "a": numbers(random, "uint8", (300, 128)),
    }  # fmt: skip
    weights = {"w": (32, 32, 1, 1), "own": (32, 1, 3, 3), "half": (32, 16, 1, 1), "b": (128, 96)}
    for name, shape in weights.items():
        fed[name] = of_seven_bits(numbers(random, "int8", shape))
    constants = {
        "s": np.array(np.float32(0.0271)), "zx": np.array(128, np.uint8),
        "zo": np.array(127, np.uint8),
        "sw": np.full(32, 0.0077, np.float32), "zw": np.zeros(32, np.int8),
        "sb": np.full(96, 0.0077, np.float32), "zb": np.zeros(96, np.int8),
        "sy": np.array(np.float32(0.0271 * 0.0077 * 560)), "s2": np.array(np.float32(0.0542)),
        "bias": random.integers(-3000, 3000, 32).astype("i4"),
        "r": random.integers(-3000, 3000, 96).astype("i4"),
    }  # fmt: skip
    if fixed:
        constants |= {name: fed.pop(name) for name in ("w", "own", "half", "b")}
    conv = ["s", "zx", "w", "sw", "zw", "sy", "zx"]
    nodes = [
        helper.make_node("QLinearConv", ["x", *conv], ["y"]),
        helper.make_node(
            "QLinearConv", ["x", *conv[:2], "own", *conv[3:], "bias"], ["each"],
            group=32, pads=[1, 1, 1, 1],
        ),
        helper.make_node(
            "QLinearConv", ["x", *conv[:2], "half", *conv[3:], "bias"], ["two"], group=2
        ),
        helper.make_node("QLinearMatMul", ["a", "s", "zx", "b", "sb", "zb", "sy", "zx"], ["m"]),
        *(
            helper.make_node(name, inputs, [name], domain="com.microsoft")
            for name, inputs in {
                "QGemm": ["a", "s", "zx", "b", "sb", "zb", "r", "sy", "zx"],
                "QLinearAdd": ["x", "s", "zx", "y", "s", "zo", "s2", "zo"],
                "QLinearMul": ["x", "s", "zx", "y", "s", "zo", "s", "zo"],
                "QLinearGlobalAveragePool": ["pixels", "s", "zo", "s2", "zo"],
            }.items()
        ),
    ]  # fmt: skip
    pooled = ["x", "s", "zo", "s2", "zo"]
    window = {"kernel_shape": [2, 2], "strides": [2, 2], "domain": "com.microsoft"}
    nodes.append(helper.make_node("QLinearAveragePool", pooled, ["pooled"], **window))
    fed["pixels"] = numbers(random, "uint8", (1, 400, 2, 2))
    names = [node.output[0] for node in nodes]
    proto = model(nodes, fed, names, constants)
    expected = onnxruntime.InferenceSession(proto.SerializeToString()).run(None, fed)
    for settings in ({"instructions": level}, {"engine": "reference"}):
        found = session(proto, **settings).run(None, fed)
        for name, one, other in zip(names, found, expected, strict=True):
            np.testing.assert_array_equal(one, other, err_msg=name)
