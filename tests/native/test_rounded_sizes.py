"""Sizes that floats compute are rounded as floats are, whatever the size."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from onnx import NodeProto, helper

from tests.native.models import draw, model, session

ROWS = (10, 90, 1, 45, 300, 13)


def resized() -> Sequence[NodeProto]:
    return [helper.make_node("Resize", ["x", "", "scales"], ["y"], mode="nearest")]


def expanded(operator: str) -> Sequence[NodeProto]:
    """Nodes as exporters write them for a size times a number."""
    return [
        helper.make_node("Shape", ["x"], ["shape"]),
        helper.make_node("Cast", ["shape"], ["floats"], to=1),
        helper.make_node(operator, ["floats", "scales"], ["product"]),
        helper.make_node("Cast", ["product"], ["sizes"], to=7),
        helper.make_node("Expand", ["one", "sizes"], ["y"]),
    ]


@pytest.mark.parametrize("scale", [0.7, 1.3, 2.1, 2.5])
@pytest.mark.parametrize("form", ["Resize", "Mul", "Div"])
def test_products_of_sizes_are_rounded_before_they_are_cut(form: str, scale: float) -> None:
    """10 * 0.7 is 7, though 0.7 is less in float32; 90 * 1.3 is 116 there."""
    factor = np.float32(scale)
    nodes = resized() if form == "Resize" else expanded(form)
    constants = {"scales": np.array([factor, 1], np.float32)}
    if form != "Resize":
        constants["one"] = np.ones((1, 1), np.float32)
    made = session(model(nodes, {"x": draw((1, 4))}, constants=constants, shapes={"x": ["n", 4]}))
    for rows in ROWS:
        (y,) = made.run(None, {"x": draw((rows, 4))})
        number = np.float32(rows) / factor if form == "Div" else np.float32(rows) * factor
        assert y.shape == (int(number), 4), f"{rows} rows"
