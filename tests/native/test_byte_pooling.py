"""MaxPool between convolutions of bytes, in their layouts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import ModelProto, helper

from tests.drawing import few
from tests.native.models import compiled, every_low_precision_level, model, session
from tests.native.test_quads import TYPES, both, draw_bytes, every_type, within_a_unit

FEW = few(2)
node = helper.make_node


def pooled(
    channels: int, size: tuple[int, int], dtype: np.dtype[Any], seed: int = 0, **pool: Any
) -> tuple[ModelProto, dict[str, np.ndarray]]:
    """Return a model that pools bytes between two convolutions of them."""
    x = np.random.default_rng(seed).standard_normal((2, 3, *size)).astype(np.float32)
    constants: dict[str, np.ndarray] = {
        "s": np.array(np.float32(0.04)), "z": draw_bytes((), dtype, seed + 1),
        "w": draw_bytes((channels, 3, 3, 3), TYPES[1], seed + 2), "zw": np.int8(0),
        "v": draw_bytes((6, channels, 3, 3), TYPES[1], seed + 3),
        "sw": np.array(np.float32(0.01)),
    }  # fmt: skip
    nodes = [
        node("QuantizeLinear", ["x", "s", "z"], ["q"]),
        node("DequantizeLinear", ["q", "s", "z"], ["a"]),
        node("DequantizeLinear", ["w", "sw", "zw"], ["wd"]),
        node("Conv", ["a", "wd"], ["c"], pads=[1] * 4),
        node("QuantizeLinear", ["c", "s", "z"], ["cq"]),
        node("DequantizeLinear", ["cq", "s", "z"], ["d"]),
        node("MaxPool", ["d"], ["p0"], **pool),
        # (Two in one file of C.)
        node("MaxPool", ["p0"], ["p"], kernel_shape=[1, 1]),
        node("QuantizeLinear", ["p", "s", "z"], ["pq"]),
        node("DequantizeLinear", ["pq", "s", "z"], ["e"]),
        node("DequantizeLinear", ["v", "sw", "zw"], ["vd"]),
        node("Conv", ["e", "vd"], ["f"], pads=[1] * 4),
        node("QuantizeLinear", ["f", "s", "z"], ["y"]),
    ]
    return model(nodes, {"x": x}, ["pq", "y"], constants), {"x": x}


@every_low_precision_level
@every_type
@FEW
@given(
    st.integers(1, 70), st.integers(5, 11), st.integers(5, 9), st.integers(1, 3),
    st.integers(1, 3), st.booleans(), st.integers(0, 99),
)  # fmt: skip
def test_pools_of_bytes_equal_the_reference(
    level: str, dtype: np.dtype[Any], channels: int, high: int, wide: int, side: int, stride: int,
    padded: bool, seed: int,
) -> None:  # fmt: skip
    pads = [int(padded and side > 1)] * 4
    pool = {"kernel_shape": [side, 2], "strides": [stride, 2], "pads": pads}
    proto, feed = pooled(channels, (high, wide), dtype, seed, **pool)
    (found, last), (wanted, last_wanted) = both(proto, feed, level)
    within_a_unit(found, wanted)
    if np.array_equal(found, wanted):
        within_a_unit(last, last_wanted)


@pytest.mark.parametrize("level", ["avx512", "avx2"])
def test_bytes_stay_in_blocks_between_convolutions(
    level: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from hagane.machine import level_named

    if level_named(level).name != level:
        pytest.skip(f"this processor has no {level}")
    proto, _ = pooled(64, (8, 8), TYPES[0], kernel_shape=[2, 2], strides=[2, 2])
    del proto.graph.output[0]
    kernels = compiled(monkeypatch, lambda: session(proto, instructions=level))
    labels = [kernel.label.split(" ")[0] for kernel in kernels]
    assert "DequantizeLinear" not in labels
    assert labels.count("QuantizeLinear") == 1  # of the input
    assert labels[labels.index("MaxPool") + 1 :] == ["QLinearConv"] or "from" in labels


@every_low_precision_level
def test_windows_that_lie_in_padding_whole_are_the_least_byte(level: str) -> None:
    pool = {"kernel_shape": [2, 2], "dilations": [4, 4], "pads": [1] * 4}
    proto, feed = pooled(16, (3, 3), TYPES[1], **pool)
    (found, _), (wanted, _) = both(proto, feed, level)
    np.testing.assert_array_equal(found, wanted)
    assert np.unique(wanted).tolist() == [-128]
