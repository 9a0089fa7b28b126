"""Transpositions that undo each other, and reshapes in a row."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from tests.native.models import draw, model
from tests.passes.harness import applied, node

X = draw((2, 3, 4, 5))
TO, BACK = [0, 2, 3, 1], [0, 3, 1, 2]


def left(nodes: list[onnx.NodeProto], constants: dict[str, np.ndarray] | None = None) -> list[str]:
    used = {name for one in nodes for name in one.input}
    feed = {"x": X, **({"z": draw((2, 4, 5, 3), 2)} if "z" in used else {})}
    return applied(model(nodes, feed, constants=constants), feed)[1]


def test_two_that_undo_each_other_go() -> None:
    nodes = [
        node("Transpose", "x", "a", perm=TO),
        node("Transpose", "a", "b", perm=BACK),
        node("Exp", "b", "y"),
    ]
    assert left(nodes) == ["Exp"]
    assert left([*nodes[:1], node("Transpose", "a", "y", perm=BACK)]) == ["Identity"]


def test_two_become_one_even_if_the_first_is_read_by_others() -> None:
    nodes = [
        node("Transpose", "x", "a", perm=TO),
        node("Transpose", "a", "b", perm=TO),
        node("ReduceMax", "a", "m", keepdims=0),
        node("Add", "b m", "y"),
    ]
    assert left(nodes).count("Transpose") == 2
    assert applied(model(nodes, {"x": X}), {"x": X})[0]["cancel_transposes"] == 1


def test_the_default_order_is_the_reverse() -> None:
    nodes = [node("Transpose", "x", "a"), node("Transpose", "a", "b"), node("Exp", "b", "y")]
    assert left(nodes) == ["Exp"]


def test_they_meet_across_elementwise_nodes_and_constants() -> None:
    constants = {"row": draw((3,), 1), "two": np.array(2, np.float32), "full": draw((1, 4, 1, 3))}
    nodes = [
        node("Transpose", "x", "a", perm=TO),
        node("Mul", "a row", "b"),
        node("Relu", "b", "c"),
        node("Pow", "c two", "d"),
        node("Add", "full d", "e"),
        node("Transpose", "e", "f", perm=BACK),
        node("Exp", "f", "y"),
    ]
    assert left(nodes, constants) == ["Mul", "Relu", "Pow", "Add", "Exp"]


def test_two_branches_that_join_need_one_transposition_less() -> None:
    nodes = [
        node("Transpose", "x", "a", perm=TO),
        node("Sin", "a", "s"),
        node("Mul", "a s", "m"),
        node("Transpose", "m", "y", perm=BACK),
    ]
    assert left(nodes) == ["Sin", "Mul"]


REFUSED = {
    "an operand that is not transposed": [
        node("Transpose", "x", "a", perm=TO), node("Add", "a z", "b"),
        node("Transpose", "b", "y", perm=BACK),
    ],
    "a result that others read": [
        node("Transpose", "x", "a", perm=TO), node("Exp", "a", "b"),
        node("Transpose", "b", "c", perm=BACK), node("ReduceMax", "b", "m", keepdims=0),
        node("Add", "c m", "y"),
    ],
    "a node that is not elementwise": [
        node("Transpose", "x", "a", perm=TO), node("Softmax", "a", "b", axis=1),
        node("Transpose", "b", "y", perm=BACK),
    ],
    "one that others read and that does not cancel": [
        node("Transpose", "x", "a", perm=TO), node("Exp", "a", "b"),
        node("Transpose", "b", "c", perm=TO), node("ReduceMax", "a", "m", keepdims=0),
        node("Add", "c m", "y"),
    ],
}  # fmt: skip


@pytest.mark.parametrize("form", REFUSED)
def test_transpositions_stay_before(form: str) -> None:
    assert left(REFUSED[form]).count("Transpose") == 2


RESHAPES = {
    "two": ([node("Reshape", "x flat", "a"), node("Reshape", "a four", "b")], ["Reshape"]),
    "back": ([node("Reshape", "x flat", "a"), node("Reshape", "a own", "b")], []),
    "axes": ([node("Unsqueeze", "x axis", "a"), node("Squeeze", "a axis", "b")], []),
    "flattened": ([node("Flatten", "x", "a"), node("Reshape", "a four", "b")], ["Reshape"]),
    "copying": ([node("Reshape", "x flat", "a"), node("Reshape", "a copied", "b")],
                ["Reshape", "Reshape"]),
}  # fmt: skip


@pytest.mark.parametrize("form", RESHAPES)
def test_of_reshapes_in_a_row_the_last_counts(form: str) -> None:
    nodes, expected = RESHAPES[form]
    constants = {
        "flat": np.array([6, -1]), "four": np.array([4, -1]), "own": np.array([2, 3, 4, 5]),
        "axis": np.array([1]), "copied": np.array([0, 4, 5]),
    }  # fmt: skip
    assert left([*nodes, node("Exp", "b", "y")], constants) == [*expected, "Exp"]
