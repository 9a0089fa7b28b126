"""Loops whose bodies find the next sizes of states in the data, beside ONNX Runtime."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import hagane
from hagane.ship import build_model
from tests.native.agreement import same
from tests.native.bodies import BOOL, FLOAT, INT64, by_onnxruntime, check, graph, info, node
from tests.native.models import draw, model, session
from tests.native.test_control_growing import State, growing

# What makes the next value of a state: of itself, of another, of a row of numbers.
_WAYS = {
    "kept": [node("Greater", "A half", "N_mask"), node("Compress", "A N_mask", "N", axis=0)],
    "others": [node("Less", "B half", "N_mask"), node("Compress", "B N_mask", "N", axis=0)],
    "exchanged": [node("Identity", "B", "N")],
    "cut": [
        node("Greater", "A half", "N_mask"),
        node("Cast", "N_mask", "N_ones", to=INT64),
        node("ReduceSum", "N_ones", "N_count", keepdims=1),
        node("Slice", "A N_count most", "N"),
    ],
    "joined": [
        node("Greater", "B half", "N_mask"),
        node("Compress", "B N_mask", "N_more", axis=0),
        node("Concat", "A N_more", "N", axis=0),
    ],
    "longer": [node("Concat", "A row", "N", axis=0)],
    "mixed": [
        node("NonZero", "A", "N_where"),
        node("Reshape", "N_where flat", "N_at"),
        node("Gather", "A N_at", "N_part"),
        node("Mul", "N_part shrink", "N"),
    ],
}


def _named(nodes: list[onnx.NodeProto], names: dict[str, str]) -> list[onnx.NodeProto]:
    """Return nodes whose values A, B and N have other names, N as a prefix too."""
    made = []
    for each in nodes:
        copy = onnx.NodeProto()
        copy.CopyFrom(each)
        for values in (copy.input, copy.output):
            values[:] = [
                names["N"] + value[1:] if value.startswith("N") else names.get(value, value)
                for value in values
            ]
        copy.name = f"{copy.op_type} for {copy.output[0]}"
        made.append(copy)
    return made


def check_any(data: st.DataObject) -> None:
    """Check states that shrink, grow and are exchanged as the data tell, and what reads them."""
    count = data.draw(st.integers(1, 3))
    nodes: list[onnx.NodeProto] = [
        node("Cast", "i", "row_", to=FLOAT),
        node("Unsqueeze", "row_ at", "row"),
    ]
    states: dict[str, State] = {}
    feed = {"n": np.array(data.draw(st.sampled_from([0, 1, 2, 5])))}
    for k in range(count):
        way = data.draw(st.sampled_from(sorted(_WAYS)))
        other = data.draw(st.integers(0, count - 1))
        nodes += _named(_WAYS[way], {"A": f"s{k}", "B": f"s{other}", "N": f"t{k}"})
        states[f"s{k}"] = f"t{k}", (f"rows{k}",)
        length = data.draw(st.sampled_from([0, 1, 3, 40]))
        feed[f"x{k}"] = draw((length,), data.draw(st.integers(0, 9)))
    nodes += [node("ReduceSumSquare", "s0", "total", keepdims=0), node("Size", "t0", "left"),
              node("Greater", "left none", "more")]  # fmt: skip
    goes = data.draw(st.sampled_from(["goes", "more"]))
    constants = {
        "half": np.float32(0.2), "most": np.array([2**62]), "none": np.array(0),
        "shrink": np.float32(0.75), "at": np.array([0]),
        "flat": np.array([-1]),
    }  # fmt: skip
    inner = growing(nodes, states, {"total": ()}, constants, goes)
    starts = " ".join(f"x{k}" for k in range(count))
    names = [f"y{k}" for k in range(count)]
    after = [node("Exp", "y0", "e"), node("ReduceSum", "e", "sum", keepdims=0)]
    proto = model(
        [node("Loop", f"n - {starts}", " ".join([*names, "totals"]), body=inner), *after],
        feed,
        [*data.draw(st.permutations(names)), "totals", "sum"],
        shapes={f"x{k}": [f"d{k}"] for k in range(count)},
    )
    check(proto, feed, threads=data.draw(st.sampled_from([1, 2])))


@settings(max_examples=6, derandomize=True, phases=[Phase.explicit, Phase.generate])
@given(st.data())
def test_states_that_the_data_shrink_and_join(data: st.DataObject) -> None:
    check_any(data)


@pytest.mark.long
@settings(max_examples=150)
@given(st.data())
def test_many_states_that_the_data_shrink_and_join(data: st.DataObject) -> None:
    check_any(data)


def _halving() -> onnx.GraphProto:
    """Return a body that keeps the rows whose sum is above the mean of all, while there are two."""
    nodes = [
        node("ReduceSum", "s last", "sums", keepdims=0),
        node("ReduceMean", "sums", "mean", keepdims=0),
        node("GreaterOrEqual", "sums mean", "mask"), node("Compress", "s mask", "t", axis=0),
        node("Shape", "t", "size", end=1), node("Squeeze", "size", "rows"),
        node("Greater", "rows one", "more"),
    ]  # fmt: skip
    constants = {"last": np.array([1]), "one": np.array(1)}
    made = growing(nodes, {"s": ("t", ("before", 3))}, None, constants, "more")
    made.output[1].type.tensor_type.shape.dim[0].dim_param = "after"
    return made


def test_rows_that_stay_are_read_behind_the_loop_at_every_size() -> None:
    nodes = [node("Loop", "n - x", "y", body=_halving()), node("MatMul", "y w", "z")]
    feed = {"n": np.array(20), "x": draw((30, 3)), "w": draw((3, 4), 1)}
    proto = model(nodes, feed, ["y", "z"], shapes={"x": ["rows", 3]})
    made = check(proto, feed)
    for rows, turns in ((1, 20), (700, 20), (700, 1), (5, 0), (64, 2)):
        fed = {**feed, "n": np.array(turns), "x": draw((rows, 3), rows)}
        for left, right in zip(made.run(None, fed), by_onnxruntime(proto, fed), strict=True):
            same("z", left, right)


def test_a_loop_in_a_loop_finds_its_sizes_anew() -> None:
    outer = graph(
        [node("Add", "x acc", "moved"), node("Loop", "n go moved", "y", body=_halving()),
         node("ReduceMax", "y", "top", keepdims=0), node("Mul", "top half", "next"),
         node("Identity", "go", "goes_on")],
        [info("j", INT64), info("go", BOOL), info("acc")],
        [info("goes_on", BOOL), info("next"), info("top")],
        {"half": np.float32(0.5)},
    )  # fmt: skip
    feed = {"k": np.array(4), "n": np.array(6), "x": draw((9, 3)), "z": np.array(0.5, np.float32)}
    proto = model(
        [node("Loop", "k - z", "last tops", body=outer)], feed, ["last", "tops"],
        shapes={"x": ["rows", 3]},
    )  # fmt: skip
    check(proto, feed)


@pytest.mark.parametrize("way", ["a slice", "a mask"])
def test_no_iterations_leave_a_state_with_the_length_that_was_found(way: str) -> None:
    start = {
        "a slice": [node("Slice", "x k most", "begin")],
        "a mask": [node("Greater", "v zero", "mask"), node("Compress", "x mask", "begin", axis=0)],
    }[way]
    body = graph(
        [node("Identity", "go", "on"), node("Identity", "x", "after")],
        [info("i", INT64), info("go", BOOL), info("before", FLOAT, ["some", 3])],
        [info("on", BOOL), info("after", FLOAT, ["rows", 3])],
    )
    feed = {"n": np.array(0), "x": draw((7, 3)), "k": np.array([2]), "v": draw((7,), 2)}
    proto = model(
        [*start, node("Loop", "n - begin", "y", body=body)], feed, ["y"],
        {"most": np.array([2**60]), "zero": np.array(0, np.float32)},
        {"x": ["rows", 3], "v": ["rows"]},
    )  # fmt: skip
    made = check(proto, feed)
    for size, first, turns in ((7, 2, 1), (9, 3, 0), (1, 0, 2), (1, 0, 0), (7, 2, 0)):
        fed = {**feed, "x": draw((size, 3), size), "v": draw((size,), 3)}
        fed |= {"n": np.array(turns), "k": np.array([first])}
        for left, right in zip(made.run(None, fed), by_onnxruntime(proto, fed), strict=True):
            same("y", left, right)


def _parts(name: str) -> list[onnx.GraphProto]:
    """Return branches that give other parts of x."""
    outputs = [info(name, FLOAT, ["some", 3])]
    twice, once = node("Concat", "x x", name, axis=0), node("Identity", "x", name)
    return [graph([each], [], outputs) for each in (twice, once)]


# Bodies that find how long their result is: from a place, under a mask, on one side of a branch.
_LONG = {
    "a slice": [node("Slice", "x k most", "part")],
    "a mask": [node("Greater", "v zero", "mask"), node("Compress", "x mask", "part", axis=0)],
    "a branch": [
        node("Equal", "k one", "is"),
        node("If", "is", "part", then_branch=_parts("p")[0], else_branch=_parts("q")[1]),
    ],
    "a branch that is always taken": [
        node("Slice", "x k most", "rest"),
        node("If", "go", "part",
             then_branch=graph([node("Slice", "rest k most", "p")], [],
                               [info("p", FLOAT, ["some", 3])]),
             else_branch=_parts("q")[1]),
    ],
}  # fmt: skip


@pytest.mark.parametrize("way", sorted(_LONG))
def test_results_of_iterations_have_the_length_that_the_body_finds(way: str) -> None:
    constants = {"most": np.array([2**60]), "one": np.array([1]), "zero": np.array(0, np.float32)}
    nodes, rows = _LONG[way], [info("part", FLOAT, ["length", 3])]
    looped = graph(
        [*nodes, node("Identity", "go", "on")],
        [info("i", INT64), info("go", BOOL)], [info("on", BOOL), *rows], constants,
    )  # fmt: skip
    scanned = graph(nodes, [info("row", FLOAT, [3])], rows, {**constants, "go": np.array(True)})
    loops = [
        node("Loop", "n -", "y", body=looped),
        node("Scan", "x", "z", body=scanned, num_scan_inputs=1),
    ]
    feed = {"n": np.array(5), "x": draw((5, 3)), "k": np.array([1]), "v": draw((5,), 2)}
    proto = model(loops, feed, ["y", "z"], shapes={"x": ["rows", 3], "v": ["rows"]})
    made = session(proto)
    for size, first in ((5, 1), (9, 2), (1, 0), (5, 0), (5, 1)):
        fed = {**feed, "x": draw((size, 3), size), "k": np.array([first]), "v": draw((size,), 3)}
        for left, right in zip(made.run(None, fed), by_onnxruntime(proto, fed), strict=True):
            same("y", left, right)


def test_a_model_whose_loop_finds_sizes_is_built(tmp_path: Path) -> None:
    feed = {"n": np.array(20), "x": draw((30, 3))}
    proto = model([node("Loop", "n - x", "y", body=_halving())], feed, shapes={"x": ["rows", 3]})
    onnx.save(proto, tmp_path / "halving.onnx")
    build_model(tmp_path / "halving.onnx", tmp_path / "built")
    built = hagane.load_built(tmp_path / "built")
    for rows, turns in ((30, 20), (1, 20), (200, 1), (5, 0)):
        fed = {"n": np.array(turns), "x": draw((rows, 3), rows)}
        np.testing.assert_array_equal(built.run(None, fed)[0], by_onnxruntime(proto, fed)[0])
