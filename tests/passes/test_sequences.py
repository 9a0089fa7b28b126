"""Sequences of pieces become the pieces where all is known."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from tests.native.models import draw, model
from tests.passes.harness import applied, node

X = draw((2, 3, 8))
CONSTANTS = {
    "each": np.array(3), "sizes": np.array([5, 1, 2]), "first": np.array(0), "last": np.array(-1),
    "middle": np.array(1),
}  # fmt: skip


def taken(split: str, **attributes: int) -> list[onnx.NodeProto]:
    return [
        node("SplitToSequence", f"x {split}", "s", axis=-1, **attributes),
        node("SequenceAt", "s first", "a"),
        node("SequenceAt", "s last", "b"),
        node("SequenceAt", "s first", "c"),
        node("Concat", "a b c", "y", axis=-1),
    ]


@pytest.mark.parametrize("split", ["each", "sizes"])
def test_pieces_that_are_taken_one_by_one_are_split(split: str) -> None:
    proto = model(taken(split), {"x": X}, constants=CONSTANTS)
    counts, left = applied(proto, {"x": X})
    assert counts["unroll_sequences"] == 1
    assert left == ["Split", "Concat"]


def test_pieces_without_their_axis_are_rows_and_those_of_an_unknown_position_stay() -> None:
    x = X[..., :3]
    nodes = [
        node("SplitToSequence", "x", "s", axis=-1, keepdims=0),
        node("SequenceAt", "s first", "y"),
    ]
    counts, left = applied(model(nodes, {"x": x}, constants=CONSTANTS), {"x": x})
    assert (counts, left) == ({"stack_sequences": 1}, ["Transpose", "Gather"])
    feed = {"x": X, "i": np.array(1)}
    nodes = [node("SplitToSequence", "x each", "s", axis=-1), node("SequenceAt", "s i", "y")]
    assert applied(model(nodes, feed, constants=CONSTANTS), feed)[0] == {}


def test_a_sequence_that_others_read_stays() -> None:
    nodes = [
        node("SplitToSequence", "x each", "s", axis=-1),
        node("SequenceAt", "s first", "a"),
        node("ConcatFromSequence", "s", "b", axis=-1),
        node("Concat", "a b", "y", axis=-1),
    ]
    assert applied(model(nodes, {"x": X}, constants=CONSTANTS), {"x": X})[0] == {}


def test_a_length_known_only_at_run_time_stays() -> None:
    proto = model(taken("each"), {"x": X}, constants=CONSTANTS, shapes={"x": [2, 3, "n"]})
    assert "unroll_sequences" not in applied(proto, {"x": X})[0]
