"""Softmax of older opsets is that of the last axis where it took only that."""

from __future__ import annotations

import pytest

from tests.native.models import draw, model
from tests.passes.harness import applied, node

X = draw((2, 3, 4, 5))


@pytest.mark.parametrize("operator", ["Softmax", "LogSoftmax", "Hardmax"])
@pytest.mark.parametrize("named", [True, False])
def test_the_last_axis_needs_no_flattening(operator: str, named: bool) -> None:
    shapes = {"x": ["n", 3, "l", 5]} if named else None
    # Loading tells the axis by itself where the model declares the rank.
    nodes = [node("Exp", "x", "e"), node(operator, "e", "y", axis=3)]
    counts, left = applied(model(nodes, {"x": X}, shapes=shapes, opset=11), {"x": X})
    assert left == ["Exp", operator]
    assert counts["restore_softmax"] == 1


def test_axes_that_are_taken_together_stay_flat() -> None:
    nodes = [node("Exp", "x", "e"), node("Softmax", "e", "y", axis=2)]
    counts, left = applied(model(nodes, {"x": X}, opset=11), {"x": X})
    assert "restore_softmax" not in counts
    assert "Softmax" in left
    assert len(left) == 4


def test_the_other_axis_of_the_matrix_stays() -> None:
    nodes = [
        node("Flatten", "x", "a", axis=3),
        node("Softmax", "a", "b", axis=0),
        node("Shape", "x", "s"),
        node("Reshape", "b s", "y"),
    ]
    assert "restore_softmax" not in applied(model(nodes, {"x": X}), {"x": X})[0]
