"""Nodes behind a branch that leaves a rank open follow the one that fits them, or both."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
import onnx_ir as ir
import pytest

from hagane.errors import HaganeError, TypeInferenceError
from hagane.graph import load
from hagane.graph.types import TensorType
from hagane.ops import infer_types
from hagane.ops.inference import infer_given
from hagane.runtime import execute
from tests.native.agreement import same
from tests.native.bodies import by_onnxruntime, graph, info, node
from tests.native.models import draw, model, refused, session
from tests.passes.harness import applied


def squeezed(
    behind: Sequence[onnx.NodeProto], x: np.ndarray, axis: int = 2
) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    """Return ``x`` without an axis if its size is one, and nodes from ``z`` to ``y``."""
    then = graph([node("Squeeze", "x axes", "a")], [], [info("a")])
    other = graph([node("Identity", "x", "b")], [], [info("b")])
    for each in (then, other):
        each.output[0].type.tensor_type.ClearField("shape")
    nodes = [
        node("Shape", "x", "sizes"),
        node("Gather", "sizes axes", "size"),
        node("Equal", "size one", "is"),
        node("If", "is", "z", then_branch=then, else_branch=other),
        *behind,
    ]
    constants = {
        "axes": np.array([axis]), "one": np.array([1]),
        "w": draw((5, 4, 3), 1), "v": draw((7, 6), 2),
    }  # fmt: skip
    feed = {"x": x}
    return model(nodes, feed, constants=constants, shapes={"x": ("b", 4, "h", 7)}), feed


def check(proto: onnx.ModelProto, x: np.ndarray) -> None:
    feed = {"x": x}
    (got,), (want,) = session(proto).run(None, feed), by_onnxruntime(proto, feed)
    same("y", got, want)


def test_a_convolution_behind_a_squeeze_is_native() -> None:
    behind = [node("Conv", "z w", "c", pads=[1, 1]), node("Relu", "c", "y")]
    proto, feed = squeezed(behind, draw((3, 4, 1, 7)))
    counts, left = applied(proto, feed)
    assert counts["follow_branches"] == 1
    assert "If" not in left
    made = session(proto)
    same("y", made.run(None, feed)[0], by_onnxruntime(proto, feed)[0])
    assert refused(made) == {}
    with pytest.raises(HaganeError):
        made.run(None, {"x": draw((3, 4, 2, 7))})


def test_products_behind_a_squeeze_are_in_both_branches() -> None:
    behind = [node("MatMul", "z v", "m"), node("Softmax", "m", "s"), node("ReduceSum", "s", "y")]
    proto, feed = squeezed(behind, draw((3, 4, 1, 7)))
    for reduce in proto.graph.node[-1:]:
        reduce.attribute.add(name="keepdims", i=0, type=onnx.AttributeProto.INT)
    counts, left = applied(proto, feed)
    assert counts["follow_branches"] == 1
    assert left[-1] == "If"
    assert refused(session(proto)) == {}
    for h in (1, 2, 1):
        check(proto, draw((3, 4, h, 7)))


def test_a_rank_that_results_keep_open_is_found_by_each_run() -> None:
    proto, feed = squeezed([node("Sigmoid", "z", "s"), node("Mul", "s z", "y")], draw((3, 4, 1, 7)))
    counts, _ = applied(proto, feed)
    assert (counts["follow_branches"], counts["flatten_branches"]) == (1, 1)
    for h in (1, 3):
        check(proto, draw((2, 4, h, 7)))


def test_a_rank_that_only_the_data_tell_is_computed_in_one_call() -> None:
    sides = [
        graph([node("ReduceMax", "x axes", "a", keepdims=0)], [], [info("a")]),
        graph([node("Mul", "x x", "b"), node("Neg", "x", "c")], [], [info("b")]),
    ]
    for each in sides:
        each.output[0].type.tensor_type.ClearField("shape")
    nodes = [node("If", "is", "z", then_branch=sides[0], else_branch=sides[1])]
    behind = [node("Exp", "z", "y"), node("ReduceSum", "z", "n", keepdims=0)]
    feed = {"x": draw((3, 4, 5)), "is": np.array(True)}
    constants, shapes = {"axes": np.array([1])}, {"x": ("a", "b", "c")}
    proto = model([*nodes, *behind], feed, ("y", "z", "n"), constants, shapes)
    made = session(proto)
    assert refused(made).keys() == {"Reshape"}
    for sizes in ((3, 4, 5), (1, 1, 2), (2, 0, 3)[::-1]):
        for way in (True, False):
            given = {"x": draw(sizes), "is": np.array(way)}
            assert made._call is not None
            found = made._call(given, None)
            assert found is not None
            for name, got, want in zip("yzn", found, by_onnxruntime(proto, given), strict=True):
                same(name, got, want)
                assert got.flags.writeable
            assert not np.shares_memory(found[0], found[1])


def test_a_branch_compares_only_its_own_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    proto, feed = squeezed([node("Sigmoid", "z", "y")], draw((3, 4, 2, 7)))
    made = session(proto)
    monkeypatch.setattr(execute, "_fall_back", None)  # what reference kernels would be run by
    same("y", made.run(None, feed)[0], by_onnxruntime(proto, feed)[0])


def test_constants_that_passes_added_tell_whether_nodes_fit_other_types() -> None:
    summed, constants = node("ReduceSum", "x axes", "y"), {"axes": np.array([2])}
    proto = model([summed], {"x": draw((3, 4, 5))}, ("y",), constants)
    read = load(proto)
    types = infer_types(read)
    (x,), axes = read.graph.inputs, read.graph.initializers["axes"]
    types.types.pop(axes, None)  # as of one that is new
    types.values.pop(axes, None)
    given = TensorType(ir.DataType.FLOAT, (3, 4))
    with pytest.raises(TypeInferenceError, match="axis=2 is out of range"):
        infer_given(list(read.graph), types, {x: given})


@pytest.mark.parametrize("fits", [True, False])
def test_a_branch_that_nothing_can_follow_fails(fits: bool) -> None:
    """As in KNNImputer of skl2onnx: one branch has an axis more than what follows can take."""
    flat = graph([node("Compress", "x keep", "a", axis=0)], [], [info("a")])
    deep = graph([node("Unsqueeze", "x axis", "b")], [], [info("b")])
    for each in (flat, deep):
        each.output[0].type.tensor_type.ClearField("shape")
    then, other = (flat, deep) if fits else (deep, flat)
    nodes = [node("If", "go", "z", then_branch=then, else_branch=other),
             node("Conv", "z w", "y")]  # fmt: skip
    shapes = {"x": ("b", 4, "h"), "keep": ("b",), "go": ()}
    feed = {"x": draw((3, 4, 7)), "keep": np.array([True, False, True]), "go": np.array(fits)}
    constants = {"axis": np.array([1]), "w": draw((5, 4, 3), 1)}
    proto = model(nodes, feed, constants=constants, shapes=shapes)
    assert applied(proto, feed)[0]["follow_branches"] == 1
    made = session(proto)
    assert refused(made) == {}
    same("y", made.run(None, feed)[0], by_onnxruntime(proto, feed)[0])
    with pytest.raises(HaganeError, match="If for z, of whose results z has a rank that none can"):
        made.run(None, feed | {"go": np.array(not fits)})
    same("y", made.run(None, feed)[0], by_onnxruntime(proto, feed)[0])
