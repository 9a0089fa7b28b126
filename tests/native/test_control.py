"""Loops, scans and branches that the engine runs by itself, beside ONNX Runtime."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

import hagane
from hagane.errors import KernelError
from hagane.native.control import Loop
from tests.native.agreement import same
from tests.native.models import draw, model, refused, session
from tests.native.test_safety_forks import in_child

FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
FEW = settings(max_examples=6, derandomize=True)
MANY = settings(max_examples=300)


def info(name: str, kind: int = FLOAT, shape: Sequence[int | str] = ()) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, shape)


def graph(
    nodes: Sequence[onnx.NodeProto],
    inputs: Sequence[onnx.ValueInfoProto],
    outputs: Sequence[onnx.ValueInfoProto],
    constants: dict[str, np.ndarray] | None = None,
) -> onnx.GraphProto:
    kept = [numpy_helper.from_array(np.asarray(a), name) for name, a in (constants or {}).items()]
    return helper.make_graph(list(nodes), "body", list(inputs), list(outputs), kept)


def node(kind: str, inputs: str, outputs: str, **attributes: Any) -> onnx.NodeProto:
    read = ["" if name == "-" else name for name in inputs.split()]
    name = f"{kind} for {outputs}"
    return helper.make_node(kind, read, outputs.split(), name, **attributes)


def by_onnxruntime(proto: onnx.ModelProto, feed: dict[str, np.ndarray]) -> list[np.ndarray]:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    run = onnxruntime.InferenceSession(
        proto.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return list(run.run(None, feed))


def check(
    proto: onnx.ModelProto,
    feed: dict[str, np.ndarray],
    want: Sequence[np.ndarray] | None = None,
    *,
    length: int = 64,
    threads: int = 2,
) -> hagane.InferenceSession:
    """Compare with ONNX Runtime, or with what is wanted, twice; all has to be native."""
    made = session(proto, threads=threads)
    want = by_onnxruntime(proto, feed) if want is None else want
    for _ in range(2):
        names = [item.name for item in proto.graph.output]
        for name, left, right in zip(names, made.run(None, feed), want, strict=True):
            same(name, left, right, length=length)
    assert refused(made) == {}
    assert loops(made)
    return made


def loops(made: hagane.InferenceSession) -> list[Any]:
    """Return the loops and branches of the compiled parts of the main graph."""
    programs = [made._programs._general, *made._programs._by_shape.values()]
    steps = [step for program in programs if program is not None for step in program.steps]
    parts = [step.part for step in steps if hasattr(step, "part")]
    return [c for part in parts for c in part.segment.controls if c is not None]


# ---- any body ----

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
@settings(max_examples=100)
@given(st.data())
def test_many_scans_along_any_axes_in_any_direction(data: st.DataObject) -> None:
    check_any_scan(data)


# ---- single properties ----


def looped(
    nodes: Sequence[onnx.NodeProto],
    states: dict[str, str],
    scanned: Sequence[str] = (),
    constants: dict[str, np.ndarray] | None = None,
    shape: Sequence[int | str] = (3,),
    goes: str = "go",
) -> onnx.GraphProto:
    """Return the body of a loop over states of one shape."""
    return graph(
        nodes,
        [info("i", INT64), info("go", BOOL), *(info(name, shape=shape) for name in states)],
        [info(goes, BOOL), *(info(name, shape=shape) for name in (*states.values(), *scanned))],
        constants,
    )


def test_states_that_change_places_and_outputs_that_are_inputs_need_no_node() -> None:
    body = looped([], {"a": "b", "b": "a", "c": "a"}, ["c"])
    feed = {"n": np.array(3), "x": draw((3,)), "y": draw((3,), 1), "z": draw((3,), 2)}
    proto = model([node("Loop", "n - x y z", "p q r s", body=body)], feed, ["p", "q", "r", "s"])
    x, y, z = feed["x"], feed["y"], feed["z"]
    check(proto, feed, [y, x, x, np.stack([z, x, y])])


def test_outputs_of_a_body_may_be_constants_and_appear_twice() -> None:
    nodes = [node("Identity", "t", "u"), node("Identity", "k", "v"), node("Neg", "a", "m")]
    body = looped(nodes, {"a": "u"}, ["v", "own", "a", "m", "m"], {"own": draw((3,), 5)})
    feed = {"n": np.array(2), "x": draw((3,))}
    names = ["y", "p", "q", "r", "m1", "m2"]
    nodes = [node("Exp", "x", "t"), node("Loop", "n - x", " ".join(names), body=body)]
    proto = model(nodes, feed, names, {"k": draw((3,), 4)})
    x, e = feed["x"], np.exp(feed["x"])
    kept, turned = [np.stack([draw((3,), i)] * 2) for i in (4, 5)], np.stack([x, e])
    check(proto, feed, [e, *kept, turned, -turned, -turned])


def test_the_number_of_the_turn_may_be_a_result_as_it_is() -> None:
    body = looped([node("Neg", "a", "t"), node("Identity", "go", "goes")], {"a": "t"}, goes="goes")
    body.output.extend([info("i", INT64)])
    feed = {"n": np.array(3), "x": draw((3,))}
    proto = model([node("Loop", "n - x", "y all", body=body)], feed, ["y", "all"])
    check(proto, feed, [-feed["x"], np.arange(3)])


def test_a_declared_number_of_turns_is_not_believed() -> None:
    """A model may say of a result that it has five rows though the number of turns is fed."""
    nodes = [node("Neg", "a", "t"), node("Identity", "t", "u"), node("Identity", "go", "goes")]
    body = looped(nodes, {"a": "t"}, ["u"], goes="goes")
    feed = {"n": np.array(3), "x": draw((3,))}
    after = node("Exp", "all", "e")
    proto = model([node("Loop", "n - x", "y all", body=body), after], feed, ["e", "all"])
    proto.graph.value_info.append(info("all", shape=(5, 3)))
    made = session(proto)
    rows = np.stack([-feed["x"], feed["x"], -feed["x"]])
    for left, right in zip(made.run(None, feed), [np.exp(rows), rows], strict=True):
        same("all", left, right)


@pytest.mark.parametrize("dtype", ["float16", "float64", "int32", "bool", "uint8"])
def test_values_of_other_element_types_are_carried(dtype: str) -> None:
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    step = node("Not", "a", "t") if dtype == "bool" else node("Add", "a k", "t")
    body = graph(
        [step, node("Identity", "t", "u"), node("Identity", "go", "goes")],
        [info("i", INT64), info("go", BOOL), info("a", kind, (5,))],
        [info("goes", BOOL), info("t", kind, (5,)), info("u", kind, (5,))],
    )
    feed = {"n": np.array(3), "x": np.arange(5).astype(dtype), "k": np.full(5, 2).astype(dtype)}
    proto = model([node("Loop", "n - x", "y all", body=body)], feed, ["y", "all"])
    x, k = feed["x"], feed["k"]
    rows = [~x, x, ~x] if dtype == "bool" else [x + k, x + k + k, x + k + k + k]
    check(proto, feed, [rows[-1], np.stack(rows)])


def test_loops_in_loops_read_values_of_all_graphs_around_them() -> None:
    inner = graph(
        [node("Mul", "b t", "m"), node("Add", "m x", "nn"), node("Identity", "on", "on_")],
        [info("j", INT64), info("on", BOOL), info("b", shape=(3,))],
        [info("on_", BOOL), info("nn", shape=(3,)), info("m", shape=(3,))],
    )
    outer = looped(
        [
            node("Tanh", "a", "t"),
            node("Add", "i two", "more"),
            node("Loop", "two - t", "u all", body=inner),
            node("ReduceSum", "all first", "r", keepdims=0),
            node("Add", "u r", "o"),
            node("Identity", "r", "kept"),
            node("Identity", "go", "goes"),
        ],
        {"a": "o"}, ["kept"], goes="goes", constants={"two": np.array(2), "first": np.array([0])},
    )  # fmt: skip
    feed = {"n": np.array(4), "x": draw((3,))}
    check(model([node("Loop", "n - x", "y rows", body=outer)], feed, ["y", "rows"]), feed)


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_a_body_of_large_products_is_shared_by_threads_in_every_turn(threads: int) -> None:
    body = looped(
        [node("MatMul", "h w", "p"), node("Tanh", "p", "t"),
         node("ReduceSum", "t -", "s", keepdims=0), node("Less", "s bound", "goes")],
        {"h": "t"}, ["p"], {"w": draw((96, 96), 1) / 8, "bound": np.float32(1e9)},
        shape=(96, 96), goes="goes",
    )  # fmt: skip
    feed = {"n": np.array(11), "x": draw((96, 96))}
    proto = model([node("Loop", "n - x", "y all", body=body)], feed, ["y", "all"])
    made = check(proto, feed, length=96 * 40, threads=threads)
    (step,) = made._programs.general.steps
    assert step.part.segment.estimate.alone == frozenset()
    assert step.part.segment.threads_of_run() == threads
    for turns in (0, 1, 2, 3, 12, 5):
        fed = {**feed, "n": np.array(turns)}
        for left, right in zip(made.run(None, fed), by_onnxruntime(proto, fed), strict=True):
            same("y", left, right, length=96 * 40)


def test_a_branch_of_large_products_is_shared_by_threads() -> None:
    sides = [
        graph([node("MatMul", "h " + w, p), node("Relu", p, r)], [], [info(r, shape=(96, 96))])
        for w, p, r in (("w", "p", "r"), ("v", "q", "s"))
    ]
    choice = node("If", "odd", "t", then_branch=sides[0], else_branch=sides[1])
    nodes = [node("Cast", "i", "f", to=FLOAT), node("Sin", "f", "g"), node("Less", "g zero", "odd")]
    body = looped(
        [*nodes, choice, node("Identity", "go", "goes")],
        {"h": "t"}, (), {"zero": np.float32(0)}, (96, 96), "goes",
    )  # fmt: skip
    feed = {"n": np.array(9), "x": draw((96, 96))}
    weights = {"w": draw((96, 96), 1) / 8, "v": draw((96, 96), 2) / 8}
    proto = model([node("Loop", "n - x", "y", body=body)], feed, ["y"], weights)
    made = check(proto, feed, length=96 * 40)
    (step,) = made._programs.general.steps
    assert step.part.segment.estimate.alone == frozenset()


def test_named_sizes_are_the_same_in_every_turn() -> None:
    nodes = [node("Add", "a x", "t"), node("Identity", "t", "u"), node("Identity", "go", "goes")]
    body = looped(nodes, {"a": "t"}, ["u"], shape=("batch", 3), goes="goes")
    feed = {"n": np.array(3), "x": draw((2, 3))}
    proto = model(
        [node("Loop", "n - x", "y all", body=body)], feed, ["y", "all"], shapes={"x": ["batch", 3]}
    )
    made = check(proto, feed)
    larger = {**feed, "x": draw((7, 3))}
    for left, right in zip(made.run(None, larger), by_onnxruntime(proto, larger), strict=True):
        same("y", left, right)


def test_a_state_that_grows_runs_turn_by_turn_as_before() -> None:
    nodes = [node("Concat", "a x", "t", axis=0), node("Identity", "go", "goes")]
    body = looped(nodes, {"a": "t"}, shape=("rows",), goes="goes")
    feed = {"n": np.array(4), "x": draw((3,))}
    proto = model([node("Loop", "n - x", "y", body=body)], feed)
    made = session(proto)
    same("y", made.run(None, feed)[0], np.concatenate([feed["x"]] * 5))
    assert refused(made) == {"Loop": "'a' changes its shape from turn to turn"}


def test_an_endless_result_is_read_by_what_follows_the_loop() -> None:
    nodes = [node("Add", "a x", "t"), node("ReduceMax", "t - ", "m", keepdims=0)]
    nodes += [node("Less", "m bound", "goes"), node("Identity", "t", "u")]
    body = looped(nodes, {"a": "t"}, ["u"], {"bound": np.float32(40)}, goes="goes")
    feed = {"x": np.float32([1, 0.5, 0.25])}
    after = [node("ReduceSum", "all first", "s", keepdims=0), node("Mul", "s y", "z")]
    proto = model(
        [node("Loop", "- - x", "y all", body=body), *after], feed, ["z", "all"],
        {"first": np.array([0])},
    )  # fmt: skip
    check(proto, feed)


@pytest.mark.parametrize("engine", ["native", "reference"])
def test_no_turns_leave_results_of_no_rows(engine: str) -> None:
    nodes = [node("Add", "a x", "t"), node("Cast", "t", "u", to=INT64), node("Shape", "t", "v")]
    body = looped([*nodes, node("Identity", "go", "goes")], {"a": "t"}, (), goes="goes")
    body.output.extend([info("u", INT64, (3,)), info("v", INT64, (1,))])
    feed = {"n": np.array(0), "x": draw((3,))}
    names = ["y", "all", "sizes"]
    proto = model([node("Loop", "n - x", " ".join(names), body=body)], feed, names)
    got = session(proto, engine=engine).run(None, feed)
    for name, left, right in zip(names, got, by_onnxruntime(proto, feed), strict=True):
        same(name, left, right)


# ---- what goes wrong ----


def looking_up() -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    """Return a model that looks up row after row, and that the last row asks too much of."""
    body = looped(
        [node("Gather", "x i", "row"), node("Add", "a row", "t"), node("Identity", "go", "goes")],
        {"a": "t"}, goes="goes",
    )  # fmt: skip
    feed = {"n": np.array(5), "x": draw((5, 3)), "s": np.zeros(3, np.float32)}
    return model([node("Loop", "n - s", "y", body=body)], feed), feed


def test_an_index_out_of_range_ends_the_loop_and_names_node_and_index() -> None:
    proto, feed = looking_up()
    made = check(proto, feed)
    want = made.run(None, feed)[0]
    for turns in (6, 2**62):
        with pytest.raises(KernelError, match="Gather 'Gather for row' failed: index 5 is out of"):
            made.run(None, {**feed, "n": np.array(turns)})
        np.testing.assert_array_equal(made.run(None, feed)[0], want)


def test_an_endless_loop_ends_when_it_is_told_to() -> None:
    body = looped([node("Tanh", "a", "t"), node("Identity", "go", "goes")], {"a": "t"}, goes="goes")
    feed = {"x": draw((3,))}
    made = session(model([node("Loop", "- - x", "y", body=body)], feed))
    assert refused(made) == {}
    options = hagane.RunOptions()
    timer = threading.Timer(0.2, setattr, (options, "terminate", True))
    timer.start()
    with pytest.raises(KernelError, match=r"ended by RunOptions.terminate"):
        made.run(None, feed, options)
    timer.join()


def test_a_loop_that_takes_any_time_lets_other_threads_go_on() -> None:
    nodes = [node("Add", "a one", "t"), node("ReduceMax", "t -", "m", keepdims=0)]
    nodes.append(node("Less", "m bound", "goes"))
    constants = {"one": np.ones(3, np.float32), "bound": np.float32(4e6)}
    body = looped(nodes, {"a": "t"}, (), constants, goes="goes")
    feed = {"x": np.zeros(3, np.float32)}
    made = session(model([node("Loop", "- - x", "y", body=body)], feed))
    thread = threading.Thread(target=made.run, args=(None, feed))
    thread.start()
    turns = 0
    while thread.is_alive():
        turns += 1
        thread.join(0.001)
    assert turns > 2


def test_threads_that_share_a_session_have_turns_of_their_own() -> None:
    proto, feed = looking_up()
    made = session(proto)
    wrong: list[int] = []

    def work(turns: int) -> None:
        want = feed["x"][:turns].sum(0, dtype=np.float64)
        for _ in range(200):
            (got,) = made.run(None, {**feed, "n": np.array(turns)})
            if not np.allclose(got, want, atol=1e-5):
                wrong.append(turns)

    threads = [threading.Thread(target=work, args=(turns,)) for turns in (0, 1, 3, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def multiplying(rows: int | str, size: int = 96) -> tuple[onnx.ModelProto, np.ndarray]:
    """Return a loop of products, ended by a condition, and its weight."""
    weight = draw((size, size), 1) / 16
    nodes = [node("MatMul", "h w", "p"), node("Tanh", "p", "t"), node("Identity", "t", "u")]
    nodes.append(node("Less", "i last", "goes"))
    constants = {"w": weight, "last": np.array(3)}
    body = looped(nodes, {"h": "t"}, ["u"], constants, (rows, size), goes="goes")
    feed = {"n": np.array(9), "x": draw((2, size))}
    loop = node("Loop", "n - x", "y all", body=body)
    return model([loop], feed, ["y", "all"], shapes={"x": [rows, size]}), weight


def multiplied(x: np.ndarray, weight: np.ndarray, turns: int) -> list[np.ndarray]:
    rows = []
    for _ in range(turns):
        x = np.tanh(x @ weight)
        rows.append(x)
    return [x, np.stack(rows)]


@pytest.mark.parametrize("threads", [1, 3])
def test_one_set_of_tables_serves_shapes_that_change_from_run_to_run(threads: int) -> None:
    proto, weight = multiplying("rows")
    made = session(proto, threads=threads)
    for rows in (96, 1, 33, 2, 190, 7, 64, 200, 3, 96, 50, 190):
        x = draw((rows, 96), rows)
        got = made.run(None, {"n": np.array(9), "x": x})
        for left, right in zip(got, multiplied(x, weight, 4), strict=True):
            same("y", left, right, length=96 * 16)
    assert refused(made) == {}


def test_a_loop_goes_on_in_a_child_of_the_process() -> None:
    proto, _ = multiplying(96)
    made = session(proto, threads=2)
    feed = {"n": np.array(9), "x": draw((96, 96))}
    want = made.run(None, feed)

    def check_all() -> bool:
        return all(np.array_equal(made.run(None, feed)[1], want[1]) for _ in range(9))

    assert in_child(check_all) == 0
    assert check_all()


def test_the_memory_of_a_loop_is_known_before_it_runs() -> None:
    body = looped([node("Tanh", "a", "t"), node("Identity", "go", "goes")], {"a": "t"},
                  shape=(1024,), goes="goes")  # fmt: skip
    feed = {"n": np.array(5), "x": draw((1024,))}
    proto = model([node("Loop", "n - x", "y", body=body)], feed)
    made = check(proto, feed)
    # One place besides the result's: the two take turns.
    assert 4096 <= made.memory_plan().values < 2 * 4096 + 16384


def test_a_profile_counts_the_turns() -> None:
    proto, feed = looking_up()
    report = session(proto).profile(feed, runs=2)
    names = [kernel.name for kernel in report.kernels]
    assert names[0] == "Loop 'Loop for y'"
    (added,) = [kernel for kernel in report.kernels if "Add" in kernel.name]
    assert added.flops == 15
    assert all(kernel.seconds >= 0 for kernel in report.kernels)


def test_a_loop_that_no_turn_changes_carries_nothing() -> None:
    nodes = [node("Add", "a k", "t"), node("Identity", "k", "k_"), node("Identity", "go", "goes")]
    body = looped(nodes, {"a": "t", "k": "k_"}, goes="goes")
    feed = {"n": np.array(3), "x": draw((3,))}
    proto = model(
        [node("Loop", "n - x w", "y z", body=body)], feed, ["y", "z"], {"w": draw((3,), 2)}
    )
    made = check(proto, feed)
    (loop,) = [control for control in loops(made) if isinstance(control, Loop)]
    assert len(loop.carried) == 1
