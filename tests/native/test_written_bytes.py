"""Products and convolutions of bytes whose weights and zero points come with the data."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

from tests.native.models import compiled, every_level, model, refused, session
from tests.native.written import natively, opened

TYPES = [np.dtype(name) for name in ("int8", "uint8")]


def numbers(random: np.random.Generator, dtype: np.dtype[Any], *shape: int) -> np.ndarray:
    """Return bytes of the whole range."""
    limits = np.iinfo(dtype)
    return random.integers(limits.min, limits.max + 1, shape).astype(dtype)


def agree(
    nodes: list[onnx.NodeProto],
    feed: dict[str, np.ndarray],
    level: str,
    fixed: tuple[str, ...] = (),
) -> None:
    """Compare a node of open sizes with the reference kernel, exactly."""
    proto = model(nodes, feed, shapes=opened(feed, fixed))
    made = session(proto, instructions=level)
    assert refused(made) == {}
    with natively():
        (got,) = made.run(None, feed)
    (want,) = session(proto, engine="reference").run(None, feed)
    assert got.dtype == want.dtype
    np.testing.assert_array_equal(got, want)


@every_level
@pytest.mark.parametrize("seed", range(6))
def test_convolutions_with_weights_of_the_run_are_those_of_the_reference(
    seed: int, level: str
) -> None:
    random = np.random.default_rng(seed)
    rank, groups = int(random.integers(1, 4)), int(random.choice([1, 1, 2, 3]))
    channels, maps = groups * int(random.integers(1, 6)), groups * int(random.integers(1, 12))
    sizes = random.integers(5, 12, rank)
    kernel = random.integers(1, 4, rank)
    of_x, of_w = random.choice(2, 2)
    feed = {
        "x": numbers(random, TYPES[of_x], int(random.integers(1, 4)), channels, *map(int, sizes)),
        "w": numbers(random, TYPES[of_w], maps, channels // groups, *map(int, kernel)),
        "a": numbers(random, TYPES[of_x], *(() if seed % 2 else (1,))),
        "b": numbers(random, TYPES[of_w], *(() if seed % 2 else (maps,))),
    }
    window: dict[str, Any] = {"group": groups, "strides": random.integers(1, 3, rank).tolist()}
    if seed % 3:
        window["pads"] = random.integers(0, 3, 2 * rank).tolist()
        window["dilations"] = random.integers(1, 3, rank).tolist()
    else:
        window["auto_pad"] = "SAME_UPPER"
    node = helper.make_node("ConvInteger", list(feed), ["y"], "node", **window)
    agree([node], feed, level, ("a", "b", "w"))


@every_level
@pytest.mark.parametrize("biased", [False, True])
def test_quantised_convolutions_with_weights_of_the_run(biased: bool, level: str) -> None:
    random = np.random.default_rng(7)
    feed = {
        "x": numbers(random, TYPES[1], 2, 6, 9, 11),
        "xs": np.float32(0.02),
        "xz": np.array(120, np.uint8),
        "w": numbers(random, TYPES[0], 70, 6, 3, 3),
        "ws": random.random(70).astype(np.float32) / 50,
        "wz": np.zeros(70, np.int8),
        "ys": np.float32(0.1),
        "yz": np.array(100, np.uint8),
    }
    if biased:
        feed["b"] = random.integers(-5000, 5000, 70).astype(np.int32)
    node = helper.make_node("QLinearConv", list(feed), ["y"], "node", pads=[1, 1, 1, 1])
    agree([node], feed, level, tuple(name for name in feed if name != "x"))


@every_level
@pytest.mark.parametrize(
    ("left", "right"),
    [
        ((3, 70), (70, 130)),
        ((1, 5), (5, 64)),
        ((2, 1, 7, 33), (3, 33, 65)),
        ((300, 9), (9, 3)),
        ((6,), (2, 6, 5)),
        ((4, 6), (6,)),
        ((0, 6), (6, 2)),
    ],
)
def test_products_of_bytes_of_any_shape(
    left: tuple[int, ...], right: tuple[int, ...], level: str
) -> None:
    random = np.random.default_rng(len(left) + left[0])
    for of_a, of_b in ((0, 0), (0, 1), (1, 0), (1, 1)):
        feed = {
            "a": numbers(random, TYPES[of_a], *left),
            "b": numbers(random, TYPES[of_b], *right),
            "az": numbers(random, TYPES[of_a]),
            "bz": numbers(random, TYPES[of_b]),
        }
        node = helper.make_node("MatMulInteger", list(feed), ["y"], "node")
        agree([node], feed, level, ("a:1",) if len(left) == 4 else ())


@every_level
@pytest.mark.parametrize("constant", [False, True])
def test_sums_of_long_rows_of_bytes_do_not_wrap_around(level: str, constant: bool) -> None:
    k, one = 70001, np.uint8(255)
    a = np.full((7, k), one)
    a[1:] -= np.arange(6, dtype=np.uint8)[:, None]
    feed = {"a": a, "b": np.full((k, 3), one)}
    feed["b"][:, 2] = 0
    scales = {"s": np.float32(1), "z": np.uint8(0), "r": np.float32(2**25)}
    node = helper.make_node(
        "QLinearMatMul", ["a", "s", "z", "b", "s", "z", "r", "z"], ["y"], "node"
    )
    if constant:
        scales["b"] = feed.pop("b")
    proto = model([node], feed, constants=scales, shapes=opened(feed, ("a:1",)))
    made = session(proto, instructions=level)
    assert refused(made) == {}
    with natively():
        (got,) = made.run(None, feed)
    want = a.astype(np.int64).sum(1) * 255 / 2**25
    np.testing.assert_allclose(got[:, 0], want, atol=0.51)
    np.testing.assert_array_equal(got[:, 2], 0)


@every_level
def test_zero_points_may_differ_by_row_and_column(level: str) -> None:
    random = np.random.default_rng(3)
    feed = {
        "a": numbers(random, TYPES[1], 9, 40),
        "b": numbers(random, TYPES[0], 40, 67),
        "az": numbers(random, TYPES[1], 9),
        "bz": numbers(random, TYPES[0], 67),
    }
    node = helper.make_node("MatMulInteger", list(feed), ["y"], "node")
    agree([node], feed, level, ("az", "bz", "a:0", "b:1"))


@every_level
@pytest.mark.parametrize("dtype", ["int16", "uint16"])
@pytest.mark.parametrize("scale", [0.37, 2.0**-14, 3e-30])
def test_quantisation_to_16_bits_rounds_and_keeps_within_limits_as_the_reference_does(
    dtype: str, scale: float, level: str
) -> None:
    """Floats, of which one is no number and some are far beyond, and back."""
    limits, random = np.iinfo(dtype), np.random.default_rng(5)
    near = random.integers(limits.min, limits.max, (3, 4, 5, 3)) + random.choice([0, 0.5, 0.3])
    x = (near * scale).astype(np.float32)
    x.reshape(-1)[:6] = np.nan, np.inf, -np.inf, 2.0**24 * scale, -(2.0**24) * scale, 1e30
    for zero in (limits.min, 7, limits.max):
        feed = {"x": x, "s": np.float32(scale), "z": np.array(zero, dtype)}
        agree([helper.make_node("QuantizeLinear", list(feed), ["y"])], feed, level)
        feed["x"] = numbers(random, np.dtype(dtype), 3, 4, 5, 3)
        agree([helper.make_node("DequantizeLinear", list(feed), ["y"])], feed, level)


def test_one_scale_for_all_is_applied_along_the_whole_tensor(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """By rows of a small image, shorter than a vector, it took five times as long."""
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["y"]),
    ]
    proto = model(
        nodes, {"x": np.ones((2, 3, 8, 8), np.float32)}, ["y", "q"],
        {"s": np.float32(0.1), "z": np.uint16(9)}, {"x": ["n", 3, "h", "w"]},
    )  # fmt: skip
    found = compiled(monkeypatch, lambda: session(proto))
    codes = [kernel.code for kernel in found if "QuantizeLinear" in kernel.label]
    codes += [kernel.code for kernel in found if "DequantizeLinear" in kernel.label]
    assert codes
    assert not [code for code in codes if "row" in code or "double" in code]
