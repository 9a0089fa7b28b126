"""Loops and scans of any body, beside ONNX Runtime."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import helper, numpy_helper

from tests.drawing import few, many
from tests.native.bodies import (
    BOOL,
    FLOAT,
    INT64,
    check,
    graph,
    info,
    node,
)
from tests.native.models import draw, model

FEW = few(6)
MANY = many(300)
SHAPES: list[tuple[int, ...]] = [(), (3,), (2, 3)]


class Drawn:
    """A body under construction: values by shape, nodes that make more of them."""

    def __init__(self, data: st.DataObject, prefix: str):
        self.data, self.prefix = data, prefix
        self.nodes: list[onnx.NodeProto] = []
        self.values: dict[tuple[int, ...], list[str]] = {shape: [] for shape in SHAPES}

    def fresh(self) -> str:
        return f"{self.prefix}{len(self.nodes)}"

    def any(self, shape: tuple[int, ...]) -> str:
        return self.data.draw(st.sampled_from(self.values[shape]))

    def grow(self, count: int) -> None:
        for _ in range(count):
            shape = self.data.draw(st.sampled_from(SHAPES))
            kind = self.data.draw(st.sampled_from(["Add", "Sub", "Min", "Tanh", "Neg", "Identity"]))
            unary = kind in ("Tanh", "Neg", "Identity")
            inputs = self.any(shape) if unary else f"{self.any(shape)} {self.any(shape)}"
            name = self.fresh()
            self.nodes.append(node(kind, inputs, name))
            self.values[shape].append(name)

    def branch(self) -> None:
        """Add an If over a comparison, whose branches read what there is."""
        shape = self.data.draw(st.sampled_from(SHAPES))
        flag, name = f"{self.fresh()}_flag", f"{self.fresh()}_if"
        left, right = self.any(()), self.any(())
        branches = []
        for side in ("t", "e"):
            inner = Drawn(self.data, f"{name}_{side}")
            inner.values = {key: list(found) for key, found in self.values.items()}
            inner.grow(self.data.draw(st.integers(0, 2)))
            result = f"{name}_{side}_out"
            inner.nodes.append(node("Identity", inner.any(shape), result))
            branches.append(graph(inner.nodes, [], [info(result, shape=shape)]))
        self.nodes.append(node("Less", f"{left} {right}", flag))
        self.nodes.append(node("If", flag, name, then_branch=branches[0], else_branch=branches[1]))
        self.values[shape].append(name)


def check_any_loop(data: st.DataObject) -> None:
    body = Drawn(data, "v")
    states = data.draw(st.lists(st.sampled_from(SHAPES), min_size=1, max_size=4))
    feed: dict[str, np.ndarray] = {f"s{i}": draw(shape, i) for i, shape in enumerate(states)}
    feed |= {f"x{i}": draw(shape, 7 + i) for i, shape in enumerate(SHAPES)}
    constants = {f"c{i}": draw(shape, 17 + i) for i, shape in enumerate(SHAPES)}
    inner = {f"k{i}": draw(shape, 27 + i) for i, shape in enumerate(SHAPES)}
    for i, shape in enumerate(SHAPES):
        body.values[shape] += [f"x{i}", f"c{i}", f"k{i}"]
    for i, shape in enumerate(states):
        body.values[shape].append(f"in{i}")
    body.nodes.append(node("Cast", "turn", "turned", to=FLOAT))
    body.values[()].append("turned")
    body.grow(data.draw(st.integers(1, 5)))
    if data.draw(st.booleans()):
        body.branch()
    # An output is a value of the body, or a copy: ONNX Runtime takes no value from outside, and
    # none twice.
    own = {*(f"in{i}" for i in range(len(states))), *(n for e in body.nodes for n in e.output)}
    results: list[tuple[str, tuple[int, ...]]] = []
    scanned = data.draw(st.lists(st.sampled_from(SHAPES), max_size=2))
    for shape in (*states, *scanned):
        name = body.any(shape)
        if name not in own or name in [n for n, _ in results]:
            name, source = body.fresh(), name
            body.nodes.append(node("Identity", source, name))
        results.append((name, shape))
    mode = data.draw(st.sampled_from(["passed", "counted", "constant", "compared"]))
    condition = {
        "passed": node("Identity", "go", "goes"),
        "counted": node("Less", "turn last", "goes"),
        "constant": helper.make_node(
            "Constant", [], ["goes"], value=numpy_helper.from_array(np.array(True))
        ),
        "compared": node("Less", f"{body.any(())} {body.any(())}", "goes"),
    }[mode]
    body.nodes.append(condition)
    inner["last"] = np.array(data.draw(st.integers(-1, 4)))
    loop_body = graph(
        body.nodes,
        [
            info("turn", INT64), info("go", BOOL),
            *(info(f"in{i}", shape=s) for i, s in enumerate(states)),
        ],
        [info("goes", BOOL), *(info(name, shape=shape) for name, shape in results)],
        inner,
    )  # fmt: skip
    limit = data.draw(st.sampled_from(["fixed", "fed", "fed"]))
    if limit == "fed" and mode == "counted" and data.draw(st.booleans()):
        limit = "absent"
    count = np.array(data.draw(st.sampled_from([0, 1, 2, 3, 6])))
    begin = data.draw(st.sampled_from(["absent", "fed", "fixed"]))
    going = np.array(data.draw(st.sampled_from([True, True, True, False])))
    (constants if limit == "fixed" else feed)["limit"] = count
    (constants if begin == "fixed" else feed)["begin"] = going
    feed = {k: a for k, a in feed.items() if k != {"absent": "limit"}.get(limit)}
    feed = {k: a for k, a in feed.items() if k != {"absent": "begin"}.get(begin)}
    names = [f"y{i}" for i in range(len(results))]
    inputs = ["" if limit == "absent" else "limit", "" if begin == "absent" else "begin"]
    nodes = [helper.make_node("Loop", [*inputs, *(f"s{i}" for i in range(len(states)))],
                              names, "the loop", body=loop_body)]  # fmt: skip
    if data.draw(st.booleans()):
        nodes.append(node("Neg", "y0", "after"))
        names.append("after")
    check(model(nodes, feed, names, constants), feed)


@FEW
@given(st.data())
def test_loops_of_any_body_give_what_onnxruntime_gives(data: st.DataObject) -> None:
    check_any_loop(data)


@pytest.mark.long
@MANY
@given(st.data())
def test_many_loops_of_any_body_give_what_onnxruntime_gives(data: st.DataObject) -> None:
    check_any_loop(data)


# ---- scans ----


def check_any_scan(data: st.DataObject) -> None:
    """Two inputs and two results along any axes in any direction, sizes fixed or named."""
    steps, rows, columns = data.draw(st.integers(1, 5)), data.draw(st.integers(1, 4)), 5
    axes = [data.draw(st.integers(-3, 2)), data.draw(st.integers(0, 1))]
    both = (rows, columns)
    out_axes = [data.draw(st.integers(0, 2)), data.draw(st.integers(0, 1))]
    flags = st.integers(0, 1)
    ways, out_ways = [[data.draw(flags), data.draw(flags)] for _ in range(2)]
    body = graph(
        [
            node("MatMul", "h w", "p"),
            node("Add", "p a", "q"),
            node("Tanh", "q", "t"),
            node("Identity", "t", "kept"),
            node("ReduceSum", "t axes", "r", keepdims=0),
            node("Add", "r b", "summed"),
        ],
        [info("h", shape=both), info("a", shape=both), info("b", shape=(rows,))],
        [info("t", shape=both), info("kept", shape=both), info("summed", shape=(rows,))],
        {"w": draw((columns, columns), 3), "axes": np.array([1])},
    )  # fmt: skip
    feed = {"h0": draw((rows, columns)), "xs": draw((steps, rows, columns), 1)}
    feed["bs"] = draw((steps, rows), 2)
    feed["xs"] = np.ascontiguousarray(np.moveaxis(feed["xs"], 0, axes[0]))
    feed["bs"] = np.ascontiguousarray(np.moveaxis(feed["bs"], 0, axes[1]))
    shapes: dict[str, Sequence[int | str]] = {}
    if data.draw(st.booleans()):
        lengths: dict[int, str] = {axes[0] % 3: "steps"}
        shapes["xs"] = [lengths.get(i, n) for i, n in enumerate(feed["xs"].shape)]
        shapes["bs"] = ["steps" if i == axes[1] else n for i, n in enumerate(feed["bs"].shape)]
    scan = node(
        "Scan", "h0 xs bs", "y all sums", body=body, num_scan_inputs=2,
        scan_input_axes=axes, scan_input_directions=ways,
        scan_output_axes=out_axes, scan_output_directions=out_ways,
    )  # fmt: skip
    check(model([scan], feed, ["y", "all", "sums"], shapes=shapes), feed, length=256)


@FEW
@given(st.data())
def test_scans_along_any_axes_in_any_direction(data: st.DataObject) -> None:
    check_any_scan(data)


@pytest.mark.long
@many(100)
@given(st.data())
def test_many_scans_along_any_axes_in_any_direction(data: st.DataObject) -> None:
    check_any_scan(data)


# ---- single properties ----
