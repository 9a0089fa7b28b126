"""Sequences of pieces become the pieces where all is known."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
import pytest

from hagane.errors import KernelError
from tests.native.models import draw, model, session
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


def test_pieces_without_their_axis_are_rows() -> None:
    x = X[..., :3]
    nodes = [
        node("SplitToSequence", "x", "s", axis=-1, keepdims=0),
        node("SequenceAt", "s first", "y"),
    ]
    counts, left = applied(model(nodes, {"x": x}, constants=CONSTANTS), {"x": x})
    assert (counts, left) == ({"stack_sequences": 1}, ["Transpose", "Gather"])


def test_a_sequence_that_others_read_stays() -> None:
    nodes = [
        node("SplitToSequence", "x each", "s", axis=-1),
        node("SequenceErase", "s first", "t"),
        node("SequenceAt", "s first", "a"),
        node("ConcatFromSequence", "t", "b", axis=-1),
        node("Concat", "a b", "y", axis=-1),
    ]
    assert applied(model(nodes, {"x": X}, constants=CONSTANTS), {"x": X})[0] == {}


@pytest.mark.parametrize("split", ["p", "each", "sizes"])
@pytest.mark.parametrize("at", [-1, 0, 1])
def test_pieces_at_a_place_that_a_run_tells_are_slices(split: str, at: int) -> None:
    feed = {"x": X, "i": np.array(at, np.int32), "p": np.array([2, 5, 1], np.int32)}
    nodes = [
        node("SplitToSequence", f"x {split}", "s", axis=2),
        node("SequenceAt", "s i", "a"),
        node("SequenceLength", "s", "n"),
        node("ConcatFromSequence", "s", "b", axis=2),
    ]
    shapes = {"x": ["a", "b", "c"]}
    proto = model(nodes, feed, ["a", "n", "b"], constants=CONSTANTS, shapes=shapes)
    assert applied(proto, feed)[0]["slice_sequences"] == 1


@pytest.mark.parametrize("size", [8, 6, 2])
@pytest.mark.parametrize(("axis", "new"), [(0, 0), (1, 0), (-1, 1), (0, 1)])
def test_pieces_of_one_length_lie_side_by_side(size: int, axis: int, new: int) -> None:
    feed = {"x": draw((2, 3, size))}
    nodes = [
        node("SplitToSequence", "x two", "s", axis=2),
        node("ConcatFromSequence", "s", "y", axis=axis, new_axis=new),
    ]
    shapes, constants = {"x": ["a", "b", "c"]}, {"two": np.array(2)}
    proto = model(nodes, feed, shapes=shapes, constants=constants)
    assert applied(proto, feed)[0]["slice_sequences"] == 1


@pytest.mark.parametrize(
    ("x", "p", "i"), [((2, 8), [3, 4], 0), ((2, 8), [3, 5], 2), ((2, 8), 3, -4), ((2, 8), 0, 0)]
)
def test_pieces_that_are_not_there_are_refused(x: Sequence[int], p: int, i: int) -> None:
    feed = {"x": draw(x), "p": np.array(p), "i": np.array(i)}
    nodes = [
        node("SplitToSequence", "x p", "s", axis=1), node("SequenceAt", "s i", "y"),
    ]  # fmt: skip
    made = session(model(nodes, feed, shapes={"x": ["a", "b"]}))
    with pytest.raises(KernelError):
        made.run(None, feed)


def test_pieces_of_two_lengths_are_not_laid_side_by_side() -> None:
    feed, constants = {"x": draw((2, 7))}, {"two": np.array(2)}
    nodes = [
        node("SplitToSequence", "x two", "s", axis=1), node("ConcatFromSequence", "s", "y", axis=0),
    ]  # fmt: skip
    made = session(model(nodes, feed, shapes={"x": ["a", "b"]}, constants=constants))
    with pytest.raises(KernelError, match="Reshape"):
        made.run(None, feed)


def test_a_length_known_only_at_run_time_is_no_split() -> None:
    proto = model(taken("each"), {"x": X}, constants=CONSTANTS, shapes={"x": [2, 3, "n"]})
    counts = applied(proto, {"x": X})[0]
    assert "unroll_sequences" not in counts
    assert counts["slice_sequences"] == 1
