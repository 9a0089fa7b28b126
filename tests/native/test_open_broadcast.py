"""Sizes that only a run knows, one of which turns out to be 1 beside another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import onnx
import pytest
from onnx import helper

from tests.native.agreement import agree_over
from tests.native.models import draw, every_level, model, session
from tests.native.written import natively

# Pairs that fit: equal, or one of them 1.
PAIRS = ((3, 3), (1, 5), (4, 1), (1, 1), (0, 0), (40, 40), (1, 130), (130, 1))
Shapes = Mapping[str, Sequence[int | str]]


def _feed(shapes: Shapes, dtype: str = "float32", **sizes: int) -> dict[str, np.ndarray]:
    return {
        name: (4 * draw(tuple(sizes[d] if isinstance(d, str) else d for d in shape), i)).astype(
            dtype
        )
        for i, (name, shape) in enumerate(shapes.items())
    }


def _agree(
    nodes: Sequence[onnx.NodeProto],
    level: str,
    shapes: Shapes,
    *,
    dtype: str = "float32",
    length: int = 4,
    pairs: Sequence[tuple[int, int]] = PAIRS,
) -> None:
    feeds = [_feed(shapes, dtype, n=n, m=m) for n, m in pairs]
    with natively():
        agree_over(nodes, feeds, level, shapes, length=length)


@every_level
@pytest.mark.parametrize(
    "shapes",
    [
        {"x": ["n", 4], "z": ["m", 4]},
        {"x": [4, "n"], "z": [4, "m"]},
        {"x": ["n", 300], "z": ["m", 300]},
        {"x": ["n"], "z": [3, "m"]},
        {"x": ["n", "m"], "z": ["m", "n"]},
        {"x": [2, "n", 7, "m"], "z": ["m", 1, "n"]},
    ],
)
def test_axes_repeat_where_a_run_finds_them_to_be_one(level: str, shapes: Shapes) -> None:
    # (Their roots, computed with the sum, and a result that two nodes read.)
    nodes = [
        helper.make_node("Abs", ["x"], ["a"]),
        helper.make_node("Add", ["a", "z"], ["b"]),
        helper.make_node("Tanh", ["b"], ["c"]),
        helper.make_node("Mul", ["c", "x"], ["y"]),
        helper.make_node("Sub", ["b", "z"], ["d"]),
    ]
    _agree(nodes, level, shapes)


@pytest.mark.parametrize("dtype", ["float64", "float16", "int8", "int64", "bool"])
def test_axes_of_any_element_type_repeat(dtype: str) -> None:
    name = "Xor" if dtype == "bool" else "Max"
    shapes = {"x": [2, "n", 5], "z": ["m", 5]}
    _agree([helper.make_node(name, ["x", "z"], ["y"])], "portable", shapes, dtype=dtype)


def test_three_open_sizes_meet() -> None:
    nodes = [
        helper.make_node("Greater", ["x", "z"], ["c"]),
        helper.make_node("Where", ["c", "x", "w"], ["y"]),
    ]
    shapes = {"x": ["n", 3], "z": ["m", 3], "w": ["k", 3]}
    sizes = [(5, 5, 1), (1, 5, 5), (1, 1, 7), (7, 1, 1), (1, 6, 1), (4, 4, 4)]
    feeds = [_feed(shapes, n=n, m=m, k=k) for n, m, k in sizes]
    with natively():
        agree_over(nodes, feeds, "portable", shapes, outputs=["y"])


@every_level
def test_an_open_size_repeats_beside_a_number(level: str) -> None:
    nodes = [helper.make_node("Add", ["x", "z"], ["y"])]
    feeds = [_feed({"x": ["n", 6], "z": [5, 6]}, n=n) for n in (5, 1)]
    with natively():
        agree_over(nodes, feeds, level, {"x": ["n", 6], "z": [5, 6]})


@every_level
def test_stacks_of_matrices_repeat(level: str) -> None:
    nodes = [helper.make_node("MatMul", ["x", "z"], ["y"])]
    _agree(nodes, level, {"x": ["n", 2, 3, 17], "z": ["m", 2, 17, 33]}, length=17)


@pytest.mark.parametrize("dtype", ["float64", "float16", "int32"])
def test_stacks_of_matrices_of_other_numbers_repeat(dtype: str) -> None:
    nodes = [helper.make_node("MatMul", ["x", "z"], ["y"])]
    shapes = {"x": [2, "n", 3, 9], "z": ["m", 9, 5]}
    _agree(nodes, "portable", shapes, dtype=dtype, length=9)


@every_level
def test_images_repeat_beside_the_sums_of_a_convolution(level: str) -> None:
    w = draw((17, 3, 3, 3), 3)
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("Add", ["c", "z"], ["s"]),
        helper.make_node("Relu", ["s"], ["r"]),
        helper.make_node("Conv", ["r", "v"], ["y"], pads=[1, 1, 1, 1]),
    ]
    shapes = {"x": [1, 3, "h", "w"], "z": [1, 17, "n", "m"]}
    sizes = [(9, 7, 9, 7), (9, 7, 1, 1), (9, 7, 1, 7), (1, 1, 9, 7), (4, 20, 4, 20)]
    feeds = [_feed(shapes, h=h, w=w_, n=n, m=m) for h, w_, n, m in sizes]
    constants = {"w": w, "v": draw((5, 17, 3, 3), 4)}
    with natively():
        agree_over(nodes, feeds, level, shapes, outputs=["y"], constants=constants, length=200)


def test_expanding_to_a_size_of_another_input_repeats_what_is_one() -> None:
    nodes = [
        helper.make_node("Shape", ["z"], ["s"]),
        helper.make_node("Expand", ["x", "s"], ["e"]),
        helper.make_node("Neg", ["e"], ["y"]),
    ]
    shapes = {"x": ["n", 1], "z": ["m", 6]}
    feeds = [_feed(shapes, n=n, m=m) for n, m in PAIRS]
    with natively():
        agree_over(nodes, feeds, "portable", shapes, outputs=["y"])


def test_a_loop_adds_values_of_which_one_repeats() -> None:
    body = helper.make_graph(
        [
            helper.make_node("Add", ["before", "z"], ["after"]),
            helper.make_node("Identity", ["going"], ["goes"]),
        ],
        "body",
        [
            helper.make_tensor_value_info("i", onnx.TensorProto.INT64, []),
            helper.make_tensor_value_info("going", onnx.TensorProto.BOOL, []),
            helper.make_tensor_value_info("before", onnx.TensorProto.FLOAT, ["n", 4]),
        ],
        [
            helper.make_tensor_value_info("goes", onnx.TensorProto.BOOL, []),
            helper.make_tensor_value_info("after", onnx.TensorProto.FLOAT, ["n", 4]),
        ],
    )
    nodes = [helper.make_node("Loop", ["count", "", "x"], ["y"], body=body)]
    shapes = {"x": ["n", 4], "z": ["m", 4]}
    feeds = [_feed(shapes, n=n, m=m) for n, m in ((3, 3), (5, 1), (1, 1))]
    proto = model(nodes, feeds[0], ["y"], {"count": np.array(3)}, dict(shapes))
    made, reference = session(proto), session(proto, engine="reference")
    for feed in feeds:
        np.testing.assert_allclose(
            made.run(None, feed)[0], reference.run(None, feed)[0], rtol=1e-5, atol=1e-5
        )


@pytest.mark.parametrize("sizes", [(3, 5), (0, 4), (4, 0)])
def test_sizes_that_do_not_fit_are_refused(sizes: tuple[int, int]) -> None:
    nodes = [helper.make_node("Add", ["x", "z"], ["y"])]
    shapes = {"x": ["n", 4], "z": ["m", 4]}
    proto = model(nodes, _feed(shapes, n=3, m=3), ["y"], None, dict(shapes))
    with pytest.raises(Exception, match="broadcast"):
        session(proto).run(None, _feed(shapes, n=sizes[0], m=sizes[1]))


@pytest.mark.parametrize("sizes", [(1, 0), (0, 1)])
def test_nothing_beside_one_is_nothing(sizes: tuple[int, int]) -> None:
    nodes = [helper.make_node("Add", ["x", "z"], ["y"])]
    shapes = {"x": ["n", 4], "z": ["m", 4]}
    proto = model(nodes, _feed(shapes, n=3, m=3), ["y"], None, dict(shapes))
    (found,) = session(proto).run(None, _feed(shapes, n=sizes[0], m=sizes[1]))
    assert found.shape == (0, 4)
