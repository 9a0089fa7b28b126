"""Tables of bytes are looked up first, and dequantised afterwards."""

from __future__ import annotations

import numpy as np
import pytest

from tests.native.models import model
from tests.passes.harness import applied, node

TABLE = np.random.default_rng(0).integers(-128, 127, (300, 24)).astype(np.int8)
IDS = np.array([[3, 299, 0], [7, 7, 20]])
CONSTANTS = {
    "table": TABLE, "scale": np.array(0.03, np.float32), "zero": np.array(5, np.int8),
    "scales": np.linspace(0.01, 0.02, 24).astype(np.float32), "zeros": np.zeros(24, np.int8),
}  # fmt: skip


@pytest.mark.parametrize("axis", [0, 1])
def test_a_table_is_looked_up_before_it_is_dequantised(axis: int) -> None:
    nodes = [
        node("DequantizeLinear", "table scale zero", "w"),
        node("Gather", "w ids", "y", axis=axis),
    ]
    feed = {"ids": IDS % 24}
    counts, left = applied(model(nodes, feed, constants=CONSTANTS), feed)
    assert counts["gather_quantized"] == 1
    assert left == ["Gather", "DequantizeLinear"]


def test_a_scale_a_column_stays_with_its_columns() -> None:
    nodes = [
        node("DequantizeLinear", "table scales zeros", "w", axis=1),
        node("Gather", "w ids", "y"),
    ]
    counts, _ = applied(model(nodes, {"ids": IDS}, constants=CONSTANTS), {"ids": IDS})
    assert "gather_quantized" not in counts


def test_a_table_that_others_read_too_is_dequantised_once() -> None:
    nodes = [
        node("DequantizeLinear", "table scale zero", "w"),
        node("Gather", "w ids", "a"),
        node("ReduceSum", "w", "b", keepdims=0),
        node("Add", "a b", "y"),
    ]
    counts, _ = applied(model(nodes, {"ids": IDS}, constants=CONSTANTS), {"ids": IDS})
    assert "gather_quantized" not in counts
