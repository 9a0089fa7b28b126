"""8-bit models: quads of bytes through register tiles, QDQ graphs as 8-bit operators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper

from hagane.graph import load, verify
from hagane.machine import cpu_features
from hagane.ops import infer_types
from hagane.passes import optimize
from hagane.passes.legalise import legalise
from tests.drawing import few
from tests.native.bodies import by_onnxruntime
from tests.native.models import compiled, every_low_precision_level, model, refused, session

TYPES = (np.dtype(np.uint8), np.dtype(np.int8))
every_type = pytest.mark.parametrize("dtype", TYPES, ids=["uint8", "int8"])
FEW = few(5)


def draw(shape: tuple[int, ...], seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def draw_bytes(shape: tuple[int, ...], dtype: np.dtype[Any], seed: int = 0) -> np.ndarray:
    info = np.iinfo(dtype)
    return np.random.default_rng(seed).integers(info.min, info.max, shape, dtype, endpoint=True)


def within_a_unit(got: np.ndarray, want: np.ndarray, units: int = 1) -> None:
    """Bytes may differ by one unit, or some, rarely: where a result lies in the middle of two."""
    assert got.dtype == want.dtype
    distance = np.abs(got.astype(np.int64) - want.astype(np.int64))
    assert distance.max(initial=0) <= units
    assert (distance > 0).mean() <= 0.01 if distance.size > 200 else True


def both(proto: onnx.ModelProto, feed: dict[str, np.ndarray], level: str) -> list[Any]:
    """Return the results of both engines; nothing may be left to the reference kernels."""
    made = session(proto, instructions=level)
    got = made.run(None, feed)
    assert refused(made) == {}
    return [got, session(proto, engine="reference").run(None, feed)]


@every_low_precision_level
@every_type
@FEW
@given(st.data())
def test_convolutions_around_zero_equal_the_reference(
    level: str, dtype: np.dtype[Any], data: st.DataObject
) -> None:
    channels, maps, high, wide = (data.draw(st.integers(1, most)) for most in (40, 50, 9, 9))
    side, stride, dilation = (data.draw(st.integers(1, most)) for most in (3, 2, 2))
    high, wide = high + (side - 1) * dilation, wide + (side - 1) * dilation
    pads = [data.draw(st.integers(0, 2)) for _ in range(4)]
    seed = data.draw(st.integers(0, 99))
    x = draw_bytes((2, channels, high, wide), dtype, seed)
    random = np.random.default_rng(seed)
    constants = {
        "w": draw_bytes((maps, channels, side, side), TYPES[1], seed + 1),
        "sx": np.float32(0.02), "zx": draw_bytes((), dtype, seed + 2),
        "sw": random.uniform(0.01, 0.1, maps).astype(np.float32), "zw": np.zeros(maps, np.int8),
        "sy": np.float32(3.3), "zy": draw_bytes((), dtype, seed + 3),
        "b": random.integers(-9999, 9999, maps).astype(np.int32),
    }  # fmt: skip
    names = ["x", "sx", "zx", "w", "sw", "zw", "sy", "zy", "b"]
    node = helper.make_node(
        "QLinearConv", names, ["y"], strides=[stride] * 2, dilations=[dilation] * 2, pads=pads
    )
    (got,), (want,) = both(model([node], {"x": x}, constants=constants), {"x": x}, level)
    within_a_unit(got, want)


@every_low_precision_level
@every_type
@pytest.mark.parametrize("channels", [3, 24, 70])
def test_images_of_floats_become_bytes_in_blocks_of_any_width(
    level: str, dtype: np.dtype[Any], channels: int
) -> None:
    """As MobileNetV2 has it: a convolution of floats between two of bytes, a sum behind."""
    x = draw((2, channels, 9, 8))
    constants = {
        "d": draw((channels, 1, 3, 3), 1), "s": np.float32(0.04), "z": np.array(9, dtype),
        "w": draw_bytes((channels, channels, 1, 1), TYPES[1], 2), "sw": np.float32(0.01),
        "zw": np.int8(0), "sy": np.float32(0.5),
    }  # fmt: skip
    nodes = [
        helper.make_node("Conv", ["x", "d"], ["a"], group=channels, pads=[1] * 4),
        helper.make_node("QuantizeLinear", ["a", "s", "z"], ["q"]),
        helper.make_node("QLinearConv", ["q", "s", "z", "w", "sw", "zw", "sy", "z"], ["c"]),
        helper.make_node("DequantizeLinear", ["c", "sy", "z"], ["e"]),
        helper.make_node("Add", ["e", "a"], ["f"]),
        helper.make_node("QuantizeLinear", ["f", "sy", "z"], ["y"]),
    ]
    proto = model(nodes, {"x": x}, constants=constants)
    (got,), (want,) = both(proto, {"x": x}, level)
    within_a_unit(got, want)


@every_low_precision_level
@every_type
@FEW
@given(st.integers(1, 20), st.integers(1, 150), st.integers(1, 80), st.booleans(), st.booleans())
def test_products_around_zero_equal_the_reference(
    level: str, dtype: np.dtype[Any], rows: int, k: int, n: int, dynamic: bool, late: bool
) -> None:
    a, zero = draw_bytes((rows, k), dtype, k), draw_bytes((), dtype, n)
    constants = {
        "b": draw_bytes((k, n), TYPES[1], 1), "zb": np.int8(0),
        "scale": np.abs(draw((n,), 2)) * np.float32(0.01), "row": draw((n,), 3),
        "sa": np.float32(0.02), "sb": np.full(n, 0.05, np.float32), "zq": np.zeros(n, np.int8),
        "sy": np.float32(1.1), "zy": draw_bytes((), dtype, 5), "za": zero,
    }  # fmt: skip
    feed = {"a": a}
    if late:  # the zero point comes at run time
        feed["zero"] = zero
    nodes = [
        helper.make_node("MatMulInteger", ["a", "b", "zero" if late else "za", "zb"], ["sums"]),
        helper.make_node("Cast", ["sums"], ["wide"], to=TensorProto.FLOAT),
        helper.make_node("Mul", ["wide", "scale"], ["scaled"]),
        helper.make_node("Add", ["scaled", "row"], ["y"]),
        helper.make_node("QLinearMatMul", ["a", "sa", "za", "b", "sb", "zq", "sy", "zy"], ["q"]),
    ]
    shapes = {"a": ["rows", k]} if dynamic else None
    proto = model(nodes, feed, ["y", "q"], constants, shapes)
    got, want = both(proto, feed, level)
    np.testing.assert_allclose(got[0], want[0], rtol=1e-5, atol=1e-5 * np.abs(want[0]).max())
    within_a_unit(got[1], want[1])


@every_low_precision_level
@every_type
@pytest.mark.parametrize("zero", [-128, -5, 0, 3, 127])
@pytest.mark.parametrize("late", [False, True])
def test_products_of_weights_around_any_point_equal_the_reference(
    level: str, dtype: np.dtype[Any], zero: int, late: bool
) -> None:
    """As models have them that were quantised without a calibration: nothing is symmetric."""
    a = draw_bytes((2, 7, 37), dtype, 1)
    point = np.array(zero - np.iinfo(np.int8).min + np.iinfo(dtype).min, dtype)
    constants = {"b": draw_bytes((37, 50), dtype, 2), "zb": point, "scale": np.float32(0.01)}
    feed = {"a": a, "za": draw_bytes((), dtype, 4)}
    if not late:
        constants["za"] = feed.pop("za")
    nodes = [
        helper.make_node("MatMulInteger", ["a", "b", "za", "zb"], ["sums"]),
        helper.make_node("Cast", ["sums"], ["wide"], to=TensorProto.FLOAT),
        helper.make_node("Mul", ["wide", "scale"], ["y"]),
        helper.make_node("QLinearMatMul", ["a", "sa", "zq", "b", "sb", "zb", "sy", "zy"], ["q"]),
    ]
    constants |= {"zq": point, "sa": np.float32(0.02), "sb": np.abs(draw((50,), 6)) * 0.1}
    constants |= {"sy": np.float32(0.9), "zy": draw_bytes((), dtype, 5)}
    shapes = {"a": ["batch", "rows", 37]} if late else None
    (got, sums, q), (want, right, wanted) = both(
        model(nodes, feed, ["y", "sums", "q"], constants, shapes), feed, level
    )
    within_a_unit(q, wanted)
    np.testing.assert_array_equal(sums, right)
    np.testing.assert_array_equal(got, want)


@pytest.mark.skipif("avx512_vnni" not in cpu_features(), reason="no products of quads of bytes")
def test_weights_around_any_point_are_multiplied_by_quads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tiles of another kind, which do without packed rows, take more than three times as long."""
    nodes = [
        helper.make_node("MatMulInteger", ["a", "b", "za", "zb"], ["y"]),
        helper.make_node("QLinearMatMul", ["a", "s", "za", "b", "s", "zb", "s", "za"], ["q"]),
    ]
    constants = {"b": draw_bytes((64, 64), TYPES[0], 2), "zb": np.uint8(119), "za": np.uint8(7)}
    constants["s"] = np.float32(0.02)
    proto = model(nodes, {"a": draw_bytes((40, 64), TYPES[0])}, ["y", "q"], constants)
    found = compiled(monkeypatch, lambda: session(proto, instructions="avx512"))
    assert not [kernel.label for kernel in found if "int8_tile" in kernel.code]
    assert [kernel.label for kernel in found if "vpdpbusd" in kernel.code]


class Quantised:
    """Writes a QDQ model as quantisers do: dequantise, compute in floats, quantise."""

    def __init__(self, dtype: np.dtype[Any]):
        self.dtype = dtype
        self.nodes: list[onnx.NodeProto] = []
        self.constants: dict[str, np.ndarray] = {}

    def node(self, operator: str, inputs: Sequence[str], out: str, **attributes: Any) -> str:
        self.nodes.append(helper.make_node(operator, inputs, [out], name=out, **attributes))
        return out

    def through_bytes(self, value: str, scale: float, zero: int) -> str:
        self.constants |= {
            f"{value}_s": np.float32(scale), f"{value}_z": np.array(zero, self.dtype)
        }  # fmt: skip
        parameters = [f"{value}_s", f"{value}_z"]
        self.node("QuantizeLinear", [value, *parameters], f"{value}_q")
        return self.node("DequantizeLinear", [f"{value}_q", *parameters], f"{value}_dq")

    def weight(self, name: str, shape: tuple[int, ...], seed: int, axis: int = 0) -> str:
        scales = np.random.default_rng(seed).uniform(0.005, 0.02, shape[axis]).astype(np.float32)
        self.constants |= {
            name: draw_bytes(shape, TYPES[1], seed), f"{name}_s": scales,
            f"{name}_z": np.zeros(shape[axis], np.int8),
        }  # fmt: skip
        inputs = [name, f"{name}_s", f"{name}_z"]
        return self.node("DequantizeLinear", inputs, f"{name}_dq", axis=axis)


def network(dtype: np.dtype[Any]) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    """Return a small residual network in QDQ form."""
    made = Quantised(dtype)
    low = -100 if dtype == TYPES[1] else 0
    x = made.through_bytes("x", 0.03, low + 117)
    made.constants["b1"] = draw((24,), 7)
    made.node("Conv", [x, made.weight("w1", (24, 5, 3, 3), 1), "b1"], "c1", pads=[1] * 4)
    made.node("Relu", ["c1"], "r1")
    first = made.through_bytes("r1", 0.05, low)
    made.node("Conv", [first, made.weight("w2", (24, 24, 3, 3), 2)], "c2", pads=[1] * 4)
    second = made.through_bytes("c2", 0.2, low + 128)
    made.node("Add", [first, second], "sum")
    made.node("Relu", ["sum"], "r2")
    third = made.through_bytes("r2", 0.15, low)
    made.node("Conv", [third, made.weight("w3", (24, 1, 3, 3), 3)], "c3", group=24, pads=[1] * 4)
    fourth = made.through_bytes("c3", 0.3, low + 120)
    made.node("GlobalAveragePool", [fourth], "g")
    fifth = made.through_bytes(made.node("Flatten", ["g"], "f"), 0.05, low + 128)
    made.constants["b4"] = draw((10,), 8)
    made.node("Gemm", [fifth, made.weight("w4", (10, 24), 4), "b4"], "y", transB=1)
    feed = {"x": draw((1, 5, 12, 13))}
    return model(made.nodes, feed, ["y"], made.constants), feed


@every_low_precision_level
@every_type
def test_a_qdq_network_equals_onnx_runtime(level: str, dtype: np.dtype[Any]) -> None:
    proto, feed = network(dtype)
    (got,), (want,) = both(proto, feed, level)
    (other,) = by_onnxruntime(proto, feed)
    scale = np.abs(want).max()
    # A byte that differs by one moves the result by about its scale.
    np.testing.assert_allclose(got, want, atol=0.02 * scale)
    np.testing.assert_allclose(got, other, atol=0.02 * scale)


@every_type
def test_a_qdq_graph_becomes_8_bit_operators(dtype: np.dtype[Any]) -> None:
    proto, _ = network(dtype)
    made = load(proto)
    legalise(made)
    types = infer_types(made)
    counts = {change.name: change.count for change in optimize(made.graph, types)}
    verify(made)
    operators = [node.op_type for node in made.graph]
    assert counts["fuse_quantized"] == 4
    assert operators.count("QLinearConv") == 3
    assert operators.count("MatMulInteger") == 1
    assert operators.count("Conv") == 0
    assert all(change.count == 0 for change in optimize(made.graph, infer_types(made)))


@pytest.mark.parametrize("why", ["per-channel input", "late scale", "read twice", "block scales"])
def test_what_8_bit_operators_cannot_say_stays(why: str) -> None:
    made = Quantised(TYPES[0])
    x = made.through_bytes("x", 0.1, 3)
    weight = made.weight("w", (8, 4, 1, 1), 1)
    feed = {"x": draw((1, 4, 5, 5))}
    outputs = ["y_dq"]
    if why == "per-channel input":
        made.constants["x_s"], made.constants["x_z"] = np.ones(4, np.float32), np.zeros(4, np.uint8)
    if why == "late scale":
        made.constants.pop("x_s")
        feed["x_s"] = np.float32(0.1)
    if why == "read twice":
        outputs.append("y")
    if why == "block scales":
        made.nodes[-1].attribute.append(helper.make_attribute("block_size", 2))
        made.constants["w_s"] = np.full((8, 2, 1, 1), 0.1, np.float32)
        made.constants["w_z"] = np.zeros((8, 2, 1, 1), np.int8)
        made.nodes[-1].attribute[0].i = 1
    made.node("Conv", [x, weight], "y")
    made.through_bytes("y", 0.5, 1)
    proto = model(made.nodes, feed, outputs, made.constants)
    found = load(proto)
    legalise(found)
    optimize(found.graph, infer_types(found))
    assert "QLinearConv" not in [node.op_type for node in found.graph]


@every_low_precision_level
@every_type
@pytest.mark.parametrize("bias", [True, False])
def test_grouped_8_bit_convolutions_run_on_kernels_of_floats(
    level: str, dtype: np.dtype[Any], bias: bool
) -> None:
    x = draw_bytes((2, 12, 9, 10), dtype)
    random = np.random.default_rng(1)
    constants = {
        "w": draw_bytes((24, 3, 3, 3), TYPES[1], 1), "sx": np.float32(0.02),
        "zx": np.array(5, dtype), "sw": random.uniform(0.01, 0.1, 24).astype(np.float32),
        "zw": np.zeros(24, np.int8), "sy": np.float32(1.3), "zy": np.array(9, dtype),
    }  # fmt: skip
    names = ["x", "sx", "zx", "w", "sw", "zw", "sy", "zy"]
    if bias:
        constants["b"] = random.integers(-9999, 9999, 24).astype(np.int32)
        names.append("b")
    node = helper.make_node("QLinearConv", names, ["y"], group=4, pads=[1] * 4, name="grouped")
    (got,), (want,) = both(model([node], {"x": x}, constants=constants), {"x": x}, level)
    within_a_unit(got, want)
