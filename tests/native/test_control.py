"""Loops, scans and branches that the engine runs by itself, beside ONNX Runtime."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import numpy as np
import onnx
import pytest
from onnx import helper

import hagane
from hagane.errors import KernelError
from hagane.native.kernels.control import Loop
from tests.native.agreement import same
from tests.native.bodies import (
    BOOL,
    FLOAT,
    INT64,
    by_onnxruntime,
    check,
    graph,
    info,
    looped,
    loops,
    node,
)
from tests.native.models import draw, model, refused, session
from tests.native.test_safety_forks import in_child


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
    assert step.part.segment.measured({}).alone == frozenset()
    assert step.part.segment.measured({}).threads == threads
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
    assert step.part.segment.measured({}).alone == frozenset()


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


def ending_early(limit: int, shape: Sequence[int | str] = (3,)) -> onnx.GraphProto:
    """Return a graph's parts: a loop that ends early, and results that are read and returned."""
    nodes = [node("Add", "a x", "t"), node("ReduceMax", "t - ", "m", keepdims=0)]
    nodes += [node("Less", "m bound", "goes"), node("Identity", "t", "u")]
    return looped(nodes, {"a": "t"}, ["u"], {"bound": np.float32(limit)}, goes="goes", shape=shape)


@pytest.mark.parametrize("most", [0, 3, 60])
def test_rows_of_a_loop_with_a_known_limit_are_read_in_the_same_program(most: int) -> None:
    after = [node("ReduceSum", "all first", "s", keepdims=0), node("Exp", "all", "e")]
    made = [node("Loop", "n - x", "y all", body=ending_early(9)), *after]
    feed = {"x": np.float32([1, 0.5, 0.25])}
    constants = {"first": np.array([0]), "n": np.array(most)}
    opened = check(model(made, feed, ["s", "all", "e"], constants), feed)
    assert opened._programs.whole() is not None
    for x in ([3, 0, 0], [0.5, 2, 1]):
        feed = {"x": np.float32(x)}
        want = by_onnxruntime(model(made, feed, ["s", "all", "e"], constants), feed)
        for left, right in zip(opened.run(None, feed), want, strict=True):
            same("all", left, right)


def test_rows_of_named_sizes_are_read_in_the_same_program_up_to_a_named_limit() -> None:
    nodes = [node("Shape", "x", "n", start=1, end=2), node("Squeeze", "n", "limit")]
    nodes += [node("Loop", "limit - x", "y all", body=ending_early(7, ("b", "w")))]
    nodes += [node("Neg", "all", "z")]
    feed = {"x": np.float32([[1, 0.5, 0.25, 2, 0.5]])}
    named = model(nodes, feed, ["z", "y"])
    named.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "b"
    named.graph.input[0].type.tensor_type.shape.dim[1].dim_param = "w"
    opened = check(named, feed)
    assert opened._programs.whole() is not None
    for shape in ((1, 1), (3, 2), (2, 9)):
        feed = {"x": np.abs(draw(shape))}
        for left, right in zip(opened.run(None, feed), by_onnxruntime(named, feed), strict=True):
            same("z", left, right)


def test_a_loop_that_ends_early_lies_in_a_loop() -> None:
    inner = [node("Loop", "few - a", "b all", body=ending_early(9))]
    inner += [node("ReduceMax", "all first", "t", keepdims=0), node("Identity", "t", "u")]
    body = looped(inner, {"a": "t"}, ["u"], {"first": np.array([0]), "few": np.array(4)})
    feed = {"n": np.array(3), "x": np.float32([1, 0.5, 0.25])}
    check(model([node("Loop", "n - x", "y us", body=body)], feed, ["y", "us"]), feed)


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


def test_small_kernels_of_a_body_are_one_function() -> None:
    nodes = [node("MatMul", "a w", "m"), node("Tanh", "m", "t"), node("ReduceMax", "t", "top")]
    nodes += [node("Mul", "t top", "u"), node("Identity", "u", "v"), node("Gather", "u at", "g")]
    nodes += [node("Neg", "g", "low"), node("Exp", "low", "e"), node("ReduceSum", "e", "total")]
    nodes += [node("Add", "u total", "b")]
    body = looped(nodes, {"a": "b"}, ["v"], {"w": draw((3, 3), 9), "at": np.array([2, 0])})
    feed = {"n": np.array(4), "x": draw((3,))}
    made = check(model([node("Loop", "n - x", "y all", body=body)], feed, ["y", "all"]), feed)
    (part,) = made._programs.general.parts()
    labels = [kernel.label for kernel in part.segment.kernels if kernel.symbol]
    assert [label.partition(" ")[0].count("+") > 1 for label in labels] == [True, False, True]
    assert labels[0].endswith("'MatMul for m'")  # named by the first; the lookup may fail, alone


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
