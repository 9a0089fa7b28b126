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


LAST = draw((2, 6, 7, 3))
FILTERS = draw((3, 3, 3, 3), 4)


def with_channels_last(nodes: list[onnx.NodeProto], **constants: np.ndarray) -> list[str]:
    """Return the operators that are left of nodes between `a` and `b`, before and behind a Conv."""
    around = [
        node("Transpose", "x", "t", perm=BACK),
        node("Conv", "t f", "c", pads=[1] * 4),
        node("Transpose", "c", "a", perm=TO),
        *nodes,
        node("Transpose", "b", "u", perm=BACK),
        node("Conv", "u f", "d", pads=[1] * 4),
        node("ReduceMax", "d", "y", keepdims=0),
    ]
    feed = {"x": LAST}
    return applied(model(around, feed, constants={"f": FILTERS, **constants}), feed)[1]


def test_nodes_that_are_read_twice_are_turned_with_all_that_read_them() -> None:
    nodes = [
        node("Mul", "a scale", "s"),
        node("Sigmoid", "s", "g"),
        node("Mul", "s g", "w"),
        node("ReduceMean", "w axes", "m", keepdims=1),
        node("Exp", "m", "e"),
        node("Mul", "w e", "b"),
    ]
    left = with_channels_last(nodes, scale=draw((3,), 5), axes=np.array([1, -2]))
    assert left.count("Transpose") == 1


def test_pads_and_joins_are_turned() -> None:
    nodes = [
        node("Relu", "a", "r"),
        node("Pad", "r pads", "p"),
        node("Pad", "a two zero axes", "q"),
        node("Concat", "p q", "j", axis=-1),
        node("ReduceSum", "j channel", "s", keepdims=1),
        node("Concat", "s s s", "b", axis=3),
    ]
    left = with_channels_last(
        nodes,
        pads=np.array([0, 1, 0, 0, 0, 0, 2, 0]),
        two=np.array([1, 0, 0, 2]),
        zero=np.float32(0.5),
        axes=np.array([1, 2]),
        channel=np.array([3]),
    )
    assert left.count("Transpose") == 1


@pytest.mark.parametrize("axes", [[1, 2], [1], [2, 3]])
def test_only_means_over_whole_images_read_them_turned(axes: list[int]) -> None:
    nodes = [node("Relu", "a", "b"), node("ReduceMean", "b axes", "m", keepdims=0)]
    nodes += [node("Transpose", "b", "u", perm=BACK), node("Conv", "u f", "d", pads=[1] * 4)]
    nodes += [node("ReduceMax", "d", "n", keepdims=0), node("Add", "m n", "y")]
    nodes = [
        node("Transpose", "x", "t", perm=BACK),
        node("Conv", "t f", "c", pads=[1] * 4),
        node("Transpose", "c", "a", perm=TO),
        *nodes,
    ]
    feed = {"x": LAST}
    constants = {"f": FILTERS, "axes": np.array(axes)}
    _, left = applied(model(nodes, feed, constants=constants), feed)
    assert left.count("Transpose") == (1 if axes == [1, 2] else 2)


def test_a_region_stays_where_turning_it_saves_nothing() -> None:
    nodes = [
        node("Transpose", "x", "t", perm=BACK),
        node("Conv", "t f", "c", pads=[1] * 4),
        node("Transpose", "c", "a", perm=TO),
        node("Relu", "a", "r"),
        node("Softmax", "r", "y"),
    ]
    feed = {"x": LAST}
    counts, _ = applied(model(nodes, feed, constants={"f": FILTERS}), feed)
    assert "turn_regions" not in counts


def test_results_and_other_readers_have_values_as_they_were() -> None:
    nodes = [
        node("Transpose", "x", "t", perm=BACK),
        node("Conv", "t f", "c", pads=[1] * 4),
        node("Transpose", "c", "a", perm=TO),
        node("Mul", "a x", "r"),
        node("Sigmoid", "r", "s"),
        node("Mul", "r s", "y"),
        node("MatMul", "s m", "z"),
        node("Transpose", "y", "u", perm=BACK),
        node("Conv", "u f", "d"),
        node("Transpose", "s", "v", perm=BACK),
        node("Conv", "v f", "e"),
        node("Transpose", "r", "w", perm=BACK),
        node("Conv", "w f", "g"),
    ]
    feed = {"x": LAST}
    proto = model(nodes, feed, ["y", "z", "d", "e", "g"], {"f": FILTERS, "m": draw((3, 2), 6)})
    counts, _ = applied(proto, feed)
    assert counts["turn_regions"] == 3
