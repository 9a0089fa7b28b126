"""Depthwise convolutions of bytes, in blocks of quads and on planes, against the reference."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import helper

from hagane.graph import load, verify
from hagane.ops import infer_types
from hagane.passes import optimize
from hagane.passes.legalise import legalise
from tests.native.models import compiled, every_low_precision_level, model, refused, session
from tests.native.test_quads import (
    TYPES,
    Quantised,
    both,
    draw,
    draw_bytes,
    every_type,
    within_a_unit,
)

FEW = settings(max_examples=5)
MANY = settings(max_examples=120)
NAMES = ["x", "sx", "zx", "w", "sw", "zw", "sy", "zy", "b"]


def numbers(
    channels: int, kernel: tuple[int, ...], x: np.dtype[Any], w: np.dtype[Any], seed: int
) -> dict[str, np.ndarray]:
    """Return weights, scales and zero points of a depthwise QLinearConv."""
    random = np.random.default_rng(seed)
    taps = int(np.prod(kernel))
    return {
        "w": draw_bytes((channels, 1, *kernel), w, seed + 1),
        "sx": np.array(np.float32(0.02)), "zx": draw_bytes((), x, seed + 2),
        "sw": random.uniform(0.01, 0.1, channels).astype(np.float32),
        "zw": np.full(channels, 128 if w == np.uint8 else 0, w),
        "sy": np.array(np.float32(0.4 * taps**0.5)), "zy": draw_bytes((), x, seed + 3),
        "b": random.integers(-9999, 9999, channels).astype(np.int32),
    }  # fmt: skip


def check(level: str, dtype: np.dtype[Any], data: st.DataObject) -> None:
    def upto(most: int, least: int = 1) -> int:
        return int(data.draw(st.integers(least, most)))

    images, channels, seed = upto(2), upto(150, 2), upto(99, 0)
    axes = data.draw(st.sampled_from([2, 2, 2, 1]))
    kernel = tuple(upto(5) for _ in range(axes))
    strides, dilations = [upto(3) for _ in range(axes)], [upto(2) for _ in range(axes)]
    size = [upto(12) + (k - 1) * d for k, d in zip(kernel, dilations, strict=True)]
    weights = data.draw(st.sampled_from(TYPES))
    constants = numbers(channels, kernel, dtype, weights, seed)
    zeros = data.draw(st.sampled_from(["around", "near", "any", "apart"]))
    if zeros in ("any", "apart"):  # differences may exceed a byte
        shape = (channels,) if zeros == "apart" else ()
        constants["zw"] = np.broadcast_to(draw_bytes(shape, weights, seed + 4), (channels,)).copy()
    if zeros == "near":
        constants["w"] = (constants["w"] // 2).astype(weights)
    one_scale = data.draw(st.booleans())
    if one_scale:
        constants["sw"] = constants["sw"][0]
        if zeros != "apart":
            constants["zw"] = constants["zw"][0]
        else:
            constants["sw"] = np.full(channels, constants["sw"])
    names = NAMES
    if data.draw(st.booleans()):
        names = NAMES[:-1]
        constants.pop("b")
    node = helper.make_node(
        "QLinearConv", names, ["y"], group=channels, strides=strides, dilations=dilations,
        pads=[upto(2, 0) for _ in range(2 * axes)],
    )  # fmt: skip
    x = draw_bytes((images, channels, *size), dtype, seed)
    (got,), (want,) = both(model([node], {"x": x}, constants=constants), {"x": x}, level)
    within_a_unit(got, want)


@every_low_precision_level
@every_type
@FEW
@given(st.data())
def test_depthwise_convolutions_of_bytes_equal_the_reference(
    level: str, dtype: np.dtype[Any], data: st.DataObject
) -> None:
    check(level, dtype, data)


@pytest.mark.long
@every_low_precision_level
@every_type
@MANY
@given(st.data())
def test_many_depthwise_convolutions_of_bytes_equal_the_reference(
    level: str, dtype: np.dtype[Any], data: st.DataObject
) -> None:
    check(level, dtype, data)


@every_low_precision_level
@every_type
@pytest.mark.parametrize(
    ("channels", "size", "kernel", "stride"),
    [
        (24, (9, 13), (3, 3), 1), (70, (8, 7), (3, 3), 2), (129, (7, 9), (5, 5), 1),
        (40, (6, 11), (1, 7), 1), (17, (11, 3), (7, 2), 2), (64, (1, 1), (3, 3), 1),
    ],
)  # fmt: skip
def test_filters_of_bytes_of_many_sizes_equal_the_reference(
    level: str,
    dtype: np.dtype[Any],
    channels: int,
    size: tuple[int, int],
    kernel: tuple[int, int],
    stride: int,
) -> None:
    """Rows in pairs and alone, whole and partial vectors of pixels, four taps and fewer."""
    high, wide = (k // 2 for k in kernel)
    x = draw_bytes((2, channels, *size), dtype, 3)
    node = helper.make_node(
        "QLinearConv", NAMES, ["y"], group=channels, strides=[stride] * 2,
        pads=[high, wide, high, wide],
    )  # fmt: skip
    constants = numbers(channels, kernel, dtype, TYPES[1], 5)
    (got,), (want,) = both(model([node], {"x": x}, constants=constants), {"x": x}, level)
    within_a_unit(got, want)


@every_low_precision_level
def test_every_tap_of_a_short_row_is_added(level: str) -> None:
    """GCC 12 left one out where it unrolled the loop over the row into the one over taps."""
    x = np.ones((1, 2, 5), np.uint8)
    w = np.broadcast_to(np.uint8([1, 2, 4, 8]), (2, 1, 4)).copy()
    one, zero = np.array(np.float32(1)), np.uint8(0)
    constants = {"w": w, "s": one, "z": np.array(zero)}
    names = ["x", "s", "z", "w", "s", "z", "s", "z"]
    node = helper.make_node("QLinearConv", names, ["y"], group=2, pads=[2, 1])
    (got,), _ = both(model([node], {"x": x}, constants=constants), {"x": x}, level)
    np.testing.assert_array_equal(got, np.broadcast_to([12, 14, 15, 15, 7], (1, 2, 5)))


@every_low_precision_level
@every_type
def test_sums_past_the_range_of_whole_numbers_stay_at_the_largest_byte(
    level: str, dtype: np.dtype[Any]
) -> None:
    """Scaled, they lie outside of an int32."""
    x = draw_bytes((1, 20, 6, 6), dtype, 1)
    constants = numbers(20, (3, 3), dtype, TYPES[1], 2)
    constants["sx"] = np.array(np.float32(3e6))
    node = helper.make_node("QLinearConv", NAMES, ["y"], group=20, pads=[1] * 4)
    (got,), (want,) = both(model([node], {"x": x}, constants=constants), {"x": x}, level)
    info = np.iinfo(dtype)
    assert {info.min, info.max} <= set(want.reshape(-1).tolist())
    within_a_unit(got, want)


ACTIVATIONS = {
    "Relu": (None, None), "Clip": (0.0, 6.0), "low": (-1.5, None), "high": (None, 2.0),
    "neither": (None, None), "inside out": (3.0, 1.0),
}  # fmt: skip


def block(
    dtype: np.dtype[Any], kind: str, group: int
) -> tuple[Any, dict[str, np.ndarray], Quantised]:
    """Return a convolution in QDQ form, an activation, and another convolution of bytes."""
    made = Quantised(dtype)
    low = -128 if dtype == TYPES[1] else 0
    x = made.through_bytes("x", 0.05, low + 100)
    weight = made.weight("w", (24, 24 // group, 3, 3), 1)
    made.node("Conv", [x, weight], "c", group=group, pads=[1] * 4)
    if kind == "Relu":
        made.node("Relu", ["c"], "r")
    else:
        bounds = [
            ("" if v is None else name) for name, v in zip("lh", ACTIVATIONS[kind], strict=True)
        ]
        for name, value in zip("lh", ACTIVATIONS[kind], strict=True):
            if value is not None:
                made.constants[name] = np.array(np.float32(value))
        made.node("Clip", ["c", *bounds], "r")
    second = made.through_bytes("r", 0.037, low + 60)
    made.node("Conv", [second, made.weight("v", (8, 24, 1, 1), 2)], "d")
    made.through_bytes("d", 0.1, low + 128)
    feed = {"x": draw((1, 24, 9, 10))}
    outputs = ["r_q", "d_dq"]
    return model(made.nodes, feed, outputs, made.constants), feed, made


@every_low_precision_level
@every_type
@pytest.mark.parametrize("kind", ACTIVATIONS)
@pytest.mark.parametrize("group", [1, 24], ids=["dense", "depthwise"])
def test_clips_are_computed_on_bytes(
    level: str, dtype: np.dtype[Any], kind: str, group: int
) -> None:
    proto, feed, _ = block(dtype, kind, group)
    made = load(proto)
    legalise(made)
    optimize(made.graph, infer_types(made))
    verify(made)
    operators = [node.op_type for node in made.graph]
    assert operators.count("QLinearConv") == 2
    assert not {"Conv", "Relu", "Clip"} & set(operators)
    got, want = both(proto, feed, level)
    within_a_unit(got[0], want[0])
    np.testing.assert_allclose(got[1], want[1], atol=0.11)


@every_low_precision_level
def test_neighbours_of_a_depthwise_convolution_of_bytes_share_its_blocks(
    level: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    proto, _, _ = block(TYPES[0], "Clip", 24)
    if level not in ("amx", "avx512") or not _has_quads():
        pytest.skip("bytes lie in planes")
    for value in list(proto.graph.output)[:1]:
        proto.graph.output.remove(value)
    kernels = compiled(monkeypatch, lambda: session(proto, instructions=level))
    labels = [kernel.label.split(" ")[0] for kernel in kernels]
    assert labels[2:4] == ["QLinearConv+Max+Min", "QLinearConv"], labels


@every_low_precision_level
@pytest.mark.parametrize(
    ("channels", "kernel", "strides", "dilations"),
    [(17, (3, 3), [1, 1], [1, 1]), (33, (5, 2), [2, 1], [1, 2]), (70, (1, 5), [1, 3], [1, 1])],
)
def test_filters_of_bytes_slide_over_images_of_any_size(
    level: str, channels: int, kernel: tuple[int, int], strides: list[int], dilations: list[int]
) -> None:
    constants = numbers(channels, kernel, TYPES[0], TYPES[1], 5)
    node = helper.make_node(
        "QLinearConv", NAMES, ["y"], group=channels, strides=strides, dilations=dilations,
        pads=[1, 0, 0, 1],
    )  # fmt: skip
    shapes = {"x": ["n", channels, "h", "w"]}
    sizes = [(1, 7, 9), (2, 6, 40), (3, 12, 12), (1, 5, 11), (1, 8, 10)]
    feeds = [
        {"x": draw_bytes((n, channels, *size), TYPES[0], i)} for i, (n, *size) in enumerate(sizes)
    ]
    proto = model([node], feeds[0], constants=constants, shapes=shapes)
    made, reference = session(proto, instructions=level), session(proto, engine="reference")
    assert refused(made) == {}
    for feed in feeds:
        within_a_unit(made.run(None, feed)[0], reference.run(None, feed)[0])


def _has_quads() -> bool:
    from hagane.machine import level_named, multiplies_bytes

    return multiplies_bytes(level_named("avx512"))
