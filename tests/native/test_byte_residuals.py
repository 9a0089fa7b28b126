"""Residual blocks of bytes: a convolution, the branch beside it, and rounding, in one kernel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import ModelProto, helper, numpy_helper

from tests.drawing import few
from tests.native.models import compiled, every_low_precision_level, model, session
from tests.native.test_quads import TYPES, both, draw_bytes, every_type, within_a_unit

FEW = few(2)


def block(
    channels: int, size: tuple[int, int], dtype: np.dtype[Any], *,
    bounds: tuple[float, ...] = (), projected: bool = False, side: int = 1, seed: int = 0,
    fixed: bool = True,
) -> tuple[ModelProto, dict[str, np.ndarray]]:  # fmt: skip
    """Return a model whose convolution is added to its input, or to another convolution of it.

    ``bounds`` are none, or those of a Relu or a Clip behind the sum.
    """
    random = np.random.default_rng(seed)
    x = (3 * random.standard_normal((2, channels, *size))).astype(np.float32)
    weight = draw_bytes((channels, channels, side, side), TYPES[1], seed + 1)
    constants: dict[str, np.ndarray] = {
        "sx": np.array(np.float32(0.03)), "zx": draw_bytes((), dtype, seed + 2),
        "w": weight, "sw": random.uniform(0.001, 0.004, channels).astype(np.float32),
        "zw": np.zeros(channels, np.int8), "b": random.standard_normal(channels).astype(np.float32),
        "v": draw_bytes((channels, channels, 1, 1), TYPES[1], seed + 3),
        "sy": np.array(np.float32(0.11)), "zy": draw_bytes((), dtype, seed + 4),
        **{f"bound{i}": np.array(np.float32(bound)) for i, bound in enumerate(bounds)},
    }  # fmt: skip
    node = helper.make_node
    nodes = [
        # (Brings the image into blocks.)
        node("MaxPool", ["x"], ["pooled"], kernel_shape=[3, 3], pads=[1] * 4),
        node("QuantizeLinear", ["pooled", "sx", "zx"], ["p"]),
        node("DequantizeLinear", ["p", "sx", "zx"], ["d"]),
        node("DequantizeLinear", ["w", "sw", "zw"], ["wd"], axis=0),
        node("DequantizeLinear", ["v", "sw", "zw"], ["vd"], axis=0),
        node("Conv", ["d", "vd", "b"], ["beside"]),
        node("Conv", ["d", "wd", "b"], ["c"], pads=[side // 2] * 4),
        node("Add", ["c", "beside" if projected else "d"], ["sum"]),
    ]
    if bounds:
        operator = "Relu" if len(bounds) == 1 else "Clip"
        given_bounds = [] if len(bounds) == 1 else ["bound0", "bound1"]
        nodes.append(node(operator, ["sum", *given_bounds], ["bounded"]))
    nodes += [
        node("QuantizeLinear", ["bounded" if bounds else "sum", "sy", "zy"], ["q"]),
        node("DequantizeLinear", ["q", "sy", "zy"], ["next"]),
        node("Conv", ["next", "wd"], ["last"], pads=[side // 2] * 4),
        node("Add", ["last", "next"], ["y"]),
    ]
    shapes: dict[str, Sequence[int | str]] | None = None
    if not fixed:
        shapes = {"x": ["batch", channels, "high", "wide"]}
    if not projected:
        nodes = [each for each in nodes if "vd" not in (*each.input, *each.output)]
    return model(nodes, {"x": x}, ["q", "y"], constants, shapes), {"x": x}


@every_low_precision_level
@every_type
@FEW
@given(
    st.integers(1, 70), st.integers(1, 8), st.integers(1, 9), st.sampled_from([1, 3]),
    st.sampled_from([(), (0.0,), (0.0, 6.0), (-2.0, 3.0)]), st.booleans(), st.integers(0, 99),
)  # fmt: skip
def test_residual_blocks_equal_the_reference(
    level: str, dtype: np.dtype[Any], channels: int, high: int, wide: int, side: int,
    bounds: tuple[float, ...], projected: bool, seed: int,
) -> None:  # fmt: skip
    how = {"bounds": bounds, "projected": projected, "side": side, "seed": seed}
    proto, feed = block(channels, (high, wide), dtype, **how)  # type: ignore[arg-type]
    (bytes_, last), (bytes_wanted, last_wanted) = both(proto, feed, level)
    within_a_unit(bytes_, bytes_wanted)
    if np.array_equal(bytes_, bytes_wanted):
        np.testing.assert_allclose(last, last_wanted, rtol=1e-5, atol=1e-3)


@every_low_precision_level
@pytest.mark.parametrize("projected", [False, True])
def test_residual_blocks_of_open_sizes_equal_the_reference(level: str, projected: bool) -> None:
    how = {"bounds": (0.0,), "projected": projected}
    proto, feed = block(20, (7, 9), TYPES[0], fixed=False, **how)  # type: ignore[arg-type]
    made, wanted = session(proto, instructions=level), session(proto, engine="reference")
    for batch, high, wide in ((1, 3, 3), (3, 7, 20), (1, 1, 1)):
        x = np.random.default_rng(high).standard_normal((batch, 20, high, wide), np.float32)
        within_a_unit(made.run(["q"], {"x": x})[0], wanted.run(["q"], {"x": x})[0])
    assert feed["x"].shape[0] == 2


@pytest.mark.parametrize("level", ["amx", "avx512"])
def test_a_residual_block_is_rounded_by_the_kernel_of_its_convolution(
    level: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from hagane.machine import level_named, multiplies_bytes

    if level_named(level).name != level or not multiplies_bytes(level_named(level)):
        pytest.skip("no products of bytes here")
    proto, _ = block(64, (6, 7), TYPES[0], bounds=(0.0,))
    kernels = compiled(monkeypatch, lambda: session(proto, instructions=level))
    labels = [kernel.label.split(" ")[0] for kernel in kernels]
    assert any(label.endswith("Add+Relu+QuantizeLinear") for label in labels), labels
    assert labels.count("QuantizeLinear") == 1  # of the input


@every_low_precision_level
def test_residuals_far_outside_of_bytes_are_rounded_as_the_operator_says(level: str) -> None:
    """What is added comes from outside, and may be anything."""
    proto, feed = block(8, (4, 4), TYPES[0])
    beside = np.random.default_rng(0).standard_normal((2, 8, 4, 4)).astype(np.float32)
    beside.reshape(-1)[:5] = np.inf, -np.inf, 3e38, -3e38, 1e12
    node = helper.make_node
    behind = {"sum", "q", "next", "last", "y"}
    nodes = [each for each in proto.graph.node if each.output[0] not in behind]
    nodes += [
        node("Add", ["c", "beside"], ["sum"]),
        node("QuantizeLinear", ["sum", "sy", "zy"], ["y"]),
    ]
    constants = {item.name: numpy_helper.to_array(item) for item in proto.graph.initializer}
    made = model(nodes, {**feed, "beside": beside}, ["y"], constants)
    (got,), (want,) = both(made, {**feed, "beside": beside}, level)
    within_a_unit(got, want)
