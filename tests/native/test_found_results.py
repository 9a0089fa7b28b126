"""Results of sizes that kernels find: the caller has the memory in which they were made."""

from __future__ import annotations

import gc

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import TensorProto, helper

from hagane.graph import load
from hagane.ops import infer_types
from tests.native.bodies import node
from tests.native.models import draw, model, refused, session


def expanding(outputs: tuple[str, ...] = ("y",)) -> onnx.ModelProto:
    nodes = [helper.make_node("Expand", ["x", "s"], ["y"])]
    if "z" in outputs:
        nodes.append(helper.make_node("Identity", ["y"], ["z"]))
    feed = {"x": draw((1, 64)), "s": np.array([1, 64])}
    return model(nodes, feed, outputs, shapes={"x": ["n", 64]})


def test_results_that_are_kept_stay_as_they_are() -> None:
    """Larger and smaller ones follow, some are let go, and their memory serves again."""
    made, kept, want = session(expanding()), [], []
    for turn in range(40):
        x = draw((1, 64), turn)
        rows = (300, 5, 1000, 301)[turn % 4]
        (y,) = made.run(None, {"x": x, "s": np.array([rows, 64])})
        assert y.flags.writeable
        assert y.flags.aligned
        assert y.flags.c_contiguous
        if turn % 3:
            kept.append(y)
            want.append(np.broadcast_to(x, (rows, 64)))
    for y, expected in zip(kept, want, strict=True):
        np.testing.assert_array_equal(y, expected)


def test_a_result_outlives_its_session() -> None:
    made, x = session(expanding()), draw((1, 64))
    feed = {"x": x, "s": np.array([2000, 64])}
    results = [made.run(None, feed)[0] for _ in range(2)]
    del made
    gc.collect()
    for y in results:
        np.testing.assert_array_equal(y, np.broadcast_to(x, (2000, 64)))


def test_sizes_of_a_result_may_be_found_one_after_the_other() -> None:
    """As those of a picture are, whose height and width are products of floats."""
    nodes = [
        helper.make_node("Range", ["zero", "a", "one"], ["rows"]),
        helper.make_node("Range", ["zero", "b", "one"], ["columns"]),
        helper.make_node("Unsqueeze", ["rows", "axes"], ["standing"]),
        helper.make_node("Mul", ["standing", "columns"], ["table"]),
        helper.make_node("Add", ["table", "columns"], ["y"]),
    ]
    numbers = {"zero": np.float32(0), "one": np.float32(1)}
    constants = {name: np.asarray(number) for name, number in numbers.items()}
    constants["axes"] = np.array([1])
    sizes = [(3, 5), (70, 90), (1, 1), (0, 4), (4, 0), (90, 70), (3, 5)]
    feeds = [{"a": np.asarray(np.float32(a)), "b": np.asarray(np.float32(b))} for a, b in sizes]
    made = session(model(nodes, feeds[0], ("y", "rows"), constants))
    assert refused(made) == {}
    for feed, (a, b) in zip(feeds, sizes, strict=True):
        y, rows = made.run(None, feed)
        np.testing.assert_array_equal(rows, np.arange(a, dtype=np.float32))
        np.testing.assert_array_equal(y, np.arange(1.0, a + 1)[:, None] * np.arange(b))


def test_two_names_of_one_result_are_two_arrays() -> None:
    made, x = session(expanding(("y", "z"))), draw((1, 64))
    for _ in range(3):
        y, z = made.run(None, {"x": x, "s": np.array([2000, 64])})
        y[:] = 0
        np.testing.assert_array_equal(z, np.broadcast_to(x, (2000, 64)))


def test_memory_is_used_again_once_a_result_is_let_go() -> None:
    made, feed = session(expanding()), {"x": draw((1, 64)), "s": np.array([2000, 64])}
    places = {made.run(None, feed)[0].ctypes.data for _ in range(50)}
    assert len(places) <= 4, places


def test_kernels_between_two_finds_have_memory_for_the_first_ones_size() -> None:
    nodes = []
    for k in "ab":
        nodes += [
            helper.make_node("NonZero", [f"mask_{k}"], [f"z_{k}"]),
            helper.make_node("Squeeze", [f"z_{k}", "zero"], [f"places_{k}"]),
            helper.make_node("Gather", ["x", f"places_{k}"], [f"v_{k}"]),
            helper.make_node("Shape", [f"v_{k}"], [f"s_{k}"]),
            helper.make_node("Min", [f"s_{k}", "most"], [f"k_{k}"]),
            helper.make_node("TopK", [f"v_{k}", f"k_{k}"], [f"y_{k}", f"i_{k}"]),
        ]
    x = draw((20000,))
    feed = {"x": x, "mask_a": x > -1, "mask_b": x > 1}
    constants = {"zero": np.array([0]), "most": np.array([300])}
    shapes = {name: ["n"] for name in feed}
    made = session(model(nodes, feed, ("y_a", "y_b"), constants, shapes))
    for count in (10, 20000, 300, 7000):
        part = {name: array[:count] for name, array in feed.items()}
        for key, y in zip("ab", made.run(["y_a", "y_b"], part), strict=True):
            best = np.sort(part["x"][part[f"mask_{key}"]])[::-1][:300]
            np.testing.assert_array_equal(y, best)


def test_names_that_a_file_gives_to_one_size_do_not_part_it() -> None:
    nodes = [
        node("NonZero", "x", "places"),
        node("Transpose", "places", "t", perm=[1, 0]),
        node("GatherND", "x t", "y"),
    ]
    proto = model(nodes, {"x": draw((3, 4))}, ("t", "y"), shapes={"x": ("a", "b")})
    for value, shape in zip(proto.graph.output, (["t_0", 2], ["y_0"]), strict=True):
        kind = TensorProto.FLOAT if len(shape) == 1 else TensorProto.INT64
        value.CopyFrom(helper.make_tensor_value_info(value.name, kind, shape))
    made = session(proto)
    assert refused(made) == {}
    assert [each.shape for each in made.get_outputs()] == [["t_0", 2], ["y_0"]]
    x = np.maximum(draw((5, 7)), 0)
    t, y = made.run(None, {"x": x})
    np.testing.assert_array_equal(t, np.argwhere(x))
    np.testing.assert_array_equal(y, x[x > 0])


@pytest.mark.parametrize(
    ("op", "feed", "declared", "shape"),
    [
        ("Resize", {"x": draw((1, 1, 2, 2)), "s": np.array([1, 1, 7, 8])}, [1, 1, 2, 8],
         (1, 1, 7, 8)),
        ("ConstantOfShape", {"s": np.array([5])}, [3], (5,)),
        ("Range", {"a": np.array(0), "b": np.array(5), "c": np.array(1)}, [3], (5,)),
    ],
)  # fmt: skip
def test_sizes_that_data_tell_go_before_those_that_the_file_declares(
    op: str, feed: dict[str, np.ndarray], declared: list[int], shape: tuple[int, ...]
) -> None:
    names = ["x", "", "", "s"] if op == "Resize" else list(feed)
    attributes = {"mode": "nearest"} if op == "Resize" else {}
    made = model([helper.make_node(op, names, ["y"], **attributes)], feed, ("y",))
    dims = made.graph.output[0].type.tensor_type
    dims.elem_type = onnx.TensorProto.INT64 if op == "Range" else onnx.TensorProto.FLOAT
    for size in declared:
        dims.shape.dim.add().dim_value = size
    assert session(made).run(None, feed)[0].shape == shape


def test_places_that_names_of_sizes_tell_are_known() -> None:
    """NonZero names its count; its content, where it is known, has a shape without names."""
    text = """
    <ir_version: 10, opset_import: ["" : 21]>
    f (float[n, 8] x, bool c) => (float[a, b] y, int64[k] unequal) {
      y, unequal = If (c) <
        then_branch = t () => (float[d, e] z, int64[f] places) {
          shape = Shape (x)
          same = Equal (shape, shape)
          differs = Not (same)
          listed = NonZero (differs)
          zero = Constant <value = int64[1] {0}> ()
          places = Squeeze (listed, zero)
          z = ReduceSum <noop_with_empty_axes = 1> (x, places)
        },
        else_branch = e () => (float[g, h] w, int64[i] none) {
          w = Relu (x)
          none = Constant <value = int64[1] {5}> ()
        }
      >
    }
    """
    parsed = onnx.parser.parse_model(text)
    types = infer_types(load(parsed))
    assert {
        value.name: str(found) for value, found in types.types.items() if value.name == "listed"
    } == {"listed": "int64[1, 0]"}
    made = session(parsed)
    for rows in (3, 1):
        x = draw((rows, 8))
        y, places = made.run(None, {"x": x, "c": np.array(True)})
        np.testing.assert_array_equal(y, x)
        assert places.shape == (0,)
        np.testing.assert_array_equal(
            made.run(["y"], {"x": x, "c": np.array(False)})[0], np.maximum(x, 0)
        )
