"""Bytes are pooled first, and dequantised afterwards."""

from __future__ import annotations

import numpy as np
import pytest

from tests.native.models import model
from tests.passes.harness import applied, node

FEED = {"x": np.random.default_rng(0).integers(-128, 127, (2, 5, 9, 8), np.int8)}
CONSTANTS = {
    "scale": np.array(0.03, np.float32), "zero": np.array(5, np.int8),
    "other": np.array(0.05, np.float32), "scales": np.linspace(0.01, 0.02, 5).astype(np.float32),
    "zeros": np.zeros(5, np.int8), "below": np.array(-0.03, np.float32),
}  # fmt: skip
POOL = node("MaxPool", "f", "p", kernel_shape=[3, 2], strides=[2, 2], pads=[1, 1, 0, 1])


def test_the_largest_byte_is_that_of_the_largest_number() -> None:
    nodes = [node("DequantizeLinear", "x scale zero", "f"), POOL, node("Neg", "p", "y")]
    counts, left = applied(model(nodes, FEED, constants=CONSTANTS), FEED)
    assert counts["pool_quantized"] == 1
    assert left == ["MaxPool", "DequantizeLinear", "Neg"]


@pytest.mark.parametrize(("again", "left"), [("scale", []), ("other", ["QuantizeLinear"])])
def test_quantising_the_same_way_again_goes(again: str, left: list[str]) -> None:
    nodes = [
        node("DequantizeLinear", "x scale zero", "f"),
        POOL,
        node("QuantizeLinear", f"p {again} zero", "y"),
    ]
    counts, found = applied(model(nodes, FEED, constants=CONSTANTS), FEED)
    assert counts["pool_quantized"] == 1
    assert [name for name in found if name == "QuantizeLinear"] == left


@pytest.mark.parametrize("how", [{"axis": 1, "names": "x scales zeros"}, {"names": "x below zero"}])
def test_scales_of_channels_and_those_below_nought_stay(how: dict[str, object]) -> None:
    along = {"axis": how["axis"]} if "axis" in how else {}
    nodes = [
        node("DequantizeLinear", str(how["names"]), "f", **along), POOL, node("Neg", "p", "y")
    ]  # fmt: skip
    counts, _ = applied(model(nodes, FEED, constants=CONSTANTS), FEED)
    assert "pool_quantized" not in counts
