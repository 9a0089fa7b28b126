"""Sums of images of bytes, and quantising by products in the place of divisions."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import helper

from tests.native.models import (
    compare,
    compiled,
    every_low_precision_level,
    model,
    of_seven_bits,
    refused,
    session,
)
from tests.native.test_quads import TYPES, both, draw_bytes, every_type, within_a_unit

FEW = settings(max_examples=5)


def residual(
    channels: int, size: tuple[int, int], dtype: np.dtype[Any], scales: tuple[float, float, float],
    *, rectified: bool = False, seed: int = 0,
) -> tuple[Any, dict[str, np.ndarray]]:  # fmt: skip
    """Return a model that adds two convolutions of bytes, and convolves the sum."""
    x = draw_bytes((2, 5, *size), dtype, seed)
    constants: dict[str, np.ndarray] = {
        "sx": np.array(np.float32(0.02)), "zx": draw_bytes((), dtype, seed + 1),
        "sw": np.array(np.float32(0.01)), "zw": np.int8(0), "zy": draw_bytes((), dtype, seed + 2),
        "last": draw_bytes((4, channels, 3, 3), TYPES[1], seed + 3),
    }  # fmt: skip
    nodes = []
    for i, name in enumerate("ab"):
        constants |= {
            f"w{name}": draw_bytes((channels, 5, 1, 1), TYPES[1], seed + 4 + i),
            f"s{name}": np.array(np.float32(scales[i])),
            f"z{name}": draw_bytes((), dtype, seed + 6 + i),
        }
        made = ["x", "sx", "zx", f"w{name}", "sw", "zw", f"s{name}", f"z{name}"]
        nodes += [
            helper.make_node("QLinearConv", made, [f"{name}q"]),
            helper.make_node("DequantizeLinear", [f"{name}q", f"s{name}", f"z{name}"], [name]),
        ]
    constants["sy"] = np.array(np.float32(scales[2]))
    nodes.append(helper.make_node("Add", ["a", "b"], ["sum"]))
    if rectified:
        nodes.append(helper.make_node("Relu", ["sum"], ["kept"]))
    nodes += [
        helper.make_node("QuantizeLinear", ["kept" if rectified else "sum", "sy", "zy"], ["q"]),
        helper.make_node(
            "QLinearConv", ["q", "sy", "zy", "last", "sw", "zw", "sx", "zx"], ["y"], pads=[1] * 4
        ),
    ]
    return model(nodes, {"x": x}, ["q", "y"], constants), {"x": x}


@every_low_precision_level
@every_type
@FEW
@given(st.integers(1, 150), st.integers(1, 9), st.integers(1, 9), st.booleans(), st.integers(0, 99))
def test_sums_of_bytes_equal_the_reference(
    level: str, dtype: np.dtype[Any], channels: int, high: int, wide: int, relu: bool, seed: int
) -> None:
    random = np.random.default_rng(seed)
    scales = tuple(float(n) for n in random.uniform(0.02, 0.2, 3))
    proto, feed = residual(
        channels,
        (high, wide),
        dtype,
        scales,
        rectified=relu,
        seed=seed,  # type: ignore[arg-type]
    )
    (sums, last), (sums_wanted, last_wanted) = both(proto, feed, level)
    # A unit of a convolution, which is rounded by itself, may be more of the sum.
    within_a_unit(sums, sums_wanted, int(np.ceil(max(scales[:2]) / scales[2])))
    # A sum that is rounded the other way counts as often as the filter's weights say.
    if np.array_equal(sums, sums_wanted):
        within_a_unit(last, last_wanted)


@every_low_precision_level
@pytest.mark.parametrize("scales", [(0.25, 0.5, 0.125), (0.5, 1.0, 1e-9), (1e-30, 3e-30, 2e-30)])
def test_sums_of_bytes_stay_within_a_byte_whatever_the_scales(
    level: str, scales: tuple[float, float, float]
) -> None:
    proto, feed = residual(24, (6, 7), TYPES[0], scales)
    got, want = both(proto, feed, level)
    within_a_unit(got[0], want[0])


@pytest.mark.parametrize("level", ["amx", "avx512"])
def test_a_sum_of_bytes_is_one_kernel_of_bytes(level: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from hagane.machine import level_named, multiplies_bytes

    if level_named(level).name != level or not multiplies_bytes(level_named(level)):
        pytest.skip("no products of bytes here")
    proto, _ = residual(24, (6, 7), TYPES[0], (0.1, 0.2, 0.15), rectified=True)
    del proto.graph.output[0]
    kernels = compiled(monkeypatch, lambda: session(proto, instructions=level))
    (code,) = (k.code for k in kernels if "Add" in k.label)
    assert "hg_bytes_in_rows" in code


@every_low_precision_level
@pytest.mark.parametrize("scale", [1e-30, 3e-7, 0.1, 1 / 3, 1.0, 7e4, 1e30])
def test_quotients_are_rounded_as_divisions_are(level: str, scale: float) -> None:
    """Halves too, which come out even, and what is too large or no number."""
    random = np.random.default_rng(0)
    step = np.float32(scale)
    x = (random.uniform(-140, 270, 6000).astype(np.float32) * step).astype(np.float32)
    halves = (np.arange(-140, 270, dtype=np.float32) + np.float32(0.5)) * step
    far = np.float32([0.0, -0.0, np.inf, -np.inf, np.nan, 3e38, -3e38, 1e-40])
    x = np.concatenate([x, halves, far])
    nodes = [helper.make_node("QuantizeLinear", ["x", "s", "z"], ["y"])]
    constants = {"s": np.array(step), "z": np.array(7, np.int8)}
    compare(model(nodes, {"x": x}, ["y"], constants), {"x": x}, level, rtol=0, atol=0)


@every_low_precision_level
@every_type
@pytest.mark.parametrize("channels", [(16, 32, 19), (20, 16, 8)])
def test_joined_images_of_bytes_equal_the_reference(
    level: str, dtype: np.dtype[Any], channels: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    x = draw_bytes((2, 5, 6, 7), dtype, 0)
    constants: dict[str, np.ndarray] = {
        "sx": np.array(np.float32(0.02)), "zx": draw_bytes((), dtype, 1),
        "sw": np.array(np.float32(0.01)), "zw": np.int8(0), "zy": draw_bytes((), dtype, 2),
        "sy": np.array(np.float32(0.3)),
    }  # fmt: skip
    nodes = []
    for i, (name, count) in enumerate(zip("abc", channels, strict=True)):
        constants |= {
            f"w{name}": draw_bytes((count, 5, 1, 1), TYPES[1], 3 + i),
            f"s{name}": np.array(np.float32(0.2 + 0.1 * i)),
            f"z{name}": draw_bytes((), dtype, 6 + i),
        }
        made = ["x", "sx", "zx", f"w{name}", "sw", "zw", f"s{name}", f"z{name}"]
        nodes += [
            helper.make_node("QLinearConv", made, [f"{name}q"]),
            helper.make_node("DequantizeLinear", [f"{name}q", f"s{name}", f"z{name}"], [name]),
        ]
    nodes += [
        helper.make_node("Concat", ["a", "b", "c"], ["joined"], axis=1),
        helper.make_node("QuantizeLinear", ["joined", "sy", "zy"], ["q"]),
    ]
    proto, feed = model(nodes, {"x": x}, ["q"], constants), {"x": x}
    ((found,), (wanted,)) = both(proto, feed, level)
    within_a_unit(found, wanted)
    if level in ("amx", "avx512") and all(count % 16 == 0 for count in channels[:-1]):
        kernels = compiled(monkeypatch, lambda: session(proto, instructions=level))
        operators = [kernel.label.split(" ")[0] for kernel in kernels]
        assert operators.count("DequantizeLinear+Concat") >= 3, operators
        assert "copy" not in operators


@every_low_precision_level
@every_type
@pytest.mark.parametrize("channels", [16, 24])
def test_means_of_images_are_rounded_after_the_zero_point(
    level: str, dtype: np.dtype[Any], channels: int
) -> None:
    # (Half of all means lie between two numbers, and the zero point is odd.)
    one = np.array(np.float32(0.25))
    first, second = (
        of_seven_bits(draw_bytes((channels, channels, 3, 3), TYPES[1], i)) for i in (1, 2)
    )
    constants = {
        "s": one, "s2": 2 * one, "small": np.array(np.float32(0.01)), "z": np.int8(0),
        "odd": np.array(13, dtype), "w": first, "v": second,
    }  # fmt: skip
    after = ["small", "z", "s", "odd"]
    nodes = [
        helper.make_node("QLinearConv", ["x", "s", "odd", "w", *after], ["y"], pads=[1] * 4),
        helper.make_node(
            "QLinearAdd", ["y", "s", "odd", "x", "s", "odd", "s2", "odd"], ["mean"],
            domain="com.microsoft",
        ),
        helper.make_node("QLinearConv", ["mean", "s2", "odd", "v", *after], ["last"], pads=[1] * 4),
    ]  # fmt: skip
    feed = {"x": draw_bytes((1, channels, 9, 7), dtype, 3)}
    proto = model(nodes, feed, ["mean", "last"], constants)
    expected = onnxruntime.InferenceSession(proto.SerializeToString()).run(None, feed)
    for left, right in zip(
        session(proto, instructions=level).run(None, feed), expected, strict=True
    ):
        np.testing.assert_array_equal(left, right)


@every_low_precision_level
@pytest.mark.parametrize("between", [True, False])
@pytest.mark.parametrize("scales", [(0.05, 0.7, 0.02), (0.1, 0.05, 0.02)])
def test_products_and_sums_of_bytes_are_rounded_one_after_the_other(
    level: str, between: bool, scales: tuple[float, float, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HAGANE_CFLAGS", "-O2")  # (from which on compilers make one step of two)
    # (Many results lie between two numbers, where a product and a sum in one step do not.)
    small, zero = np.array(np.float32(0.01)), np.int8(0)
    constants = {
        "small": small,
        "none": zero,
        "w": of_seven_bits(draw_bytes((24, 24, 1, 1), TYPES[1], 1)),
    }
    points = {"a": 3, "b": 128, "c": 78}
    for name, scale in zip("abc", scales, strict=True):
        constants |= {f"s{name}": np.array(np.float32(scale)), f"z{name}": np.uint8(points[name])}
    feed = {name: draw_bytes((1, 24, 9, 7), TYPES[0], i) for i, name in enumerate("xy")}
    of = {"a": "x", "b": "y"}
    nodes = []
    if between:
        of = {"a": "xq", "b": "yq"}
        nodes += [
            helper.make_node(
                "QLinearConv", [x, "small", "za", "w", "small", "none", f"s{name}", f"z{name}"],
                [of[name]],
            )
            for x, name in zip("xy", "ab", strict=True)
        ]  # fmt: skip
    nodes += [
        helper.make_node("DequantizeLinear", [of[name], f"s{name}", f"z{name}"], [name])
        for name in "ab"
    ]
    for operator in ("Add", "Sub", "Mul"):
        nodes += [
            helper.make_node(operator, ["a", "b"], [f"{operator}_real"]),
            helper.make_node("QuantizeLinear", [f"{operator}_real", "sc", "zc"], [operator]),
        ]
    both_sides = [of["a"], "sa", "za", of["b"], "sb", "zb", "sc", "zc"]
    nodes.append(helper.make_node("QLinearMul", both_sides, ["QLinearMul"], domain="com.microsoft"))
    names = ["Add", "Sub", "Mul", "QLinearMul"]
    proto = model(nodes, feed, names, constants)
    plain = onnxruntime.SessionOptions()
    plain.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    expected = onnxruntime.InferenceSession(proto.SerializeToString(), plain).run(None, feed)
    made = session(proto, instructions=level)
    for name, left, right in zip(names, made.run(None, feed), expected, strict=True):
        np.testing.assert_array_equal(left, right, err_msg=name)
    assert refused(made) == {}
