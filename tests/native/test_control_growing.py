"""Loops whose carried values grow, run by the engine, beside ONNX Runtime."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hagane.errors import KernelError
from tests.native.agreement import same
from tests.native.bodies import BOOL, FLOAT, INT64, by_onnxruntime, check, graph, info, node
from tests.native.models import draw, model, refused, session

Shape = Sequence[int | str]
State = tuple[str, Shape]


def growing(
    nodes: Sequence[onnx.NodeProto],
    states: dict[str, State],
    scanned: dict[str, Shape] | None = None,
    constants: dict[str, np.ndarray] | None = None,
    goes: str = "goes",
) -> onnx.GraphProto:
    """Return a body that carries states on, each named with its successor and shape."""
    if goes == "goes":
        nodes = [*nodes, node("Identity", "go", "goes")]
    inputs = [info(name, shape=shape) for name, (_, shape) in states.items()]
    outputs = [info(after, shape=shape) for after, shape in states.values()]
    outputs += [info(name, shape=shape) for name, shape in (scanned or {}).items()]
    return graph(
        nodes, [info("i", INT64), info("go", BOOL), *inputs], [info(goes, BOOL), *outputs],
        constants,
    )  # fmt: skip


HEADS, DEPTH = 2, 8
WIDTH = HEADS * DEPTH


def decoder(batch: int | str = 1) -> onnx.GraphProto:
    """Return a layer that attends to the keys of all turns before, under a mask that grows too."""
    nodes = []
    for name in ("query", "key"):
        nodes += [
            node("MatMul", f"s w_{name}", f"{name}_row"),
            node("Reshape", f"{name}_row heads", f"{name}_heads"),
            node("Transpose", f"{name}_heads", f"{name}_new", perm=[0, 2, 1, 3]),
        ]
    nodes += [
        node("Concat", "keys key_new", "keys_now", axis=2),
        node("Concat", "mask more", "mask_now", axis=0),
        node("Transpose", "keys_now", "turned", perm=[0, 1, 3, 2]),
        node("MatMul", "query_new turned", "products"),
        node("Add", "products mask", "scores"),
        node("Softmax", "scores", "shares", axis=-1),
        node("MatMul", "shares keys_now", "mixed"),
        node("Transpose", "mixed", "mixed_row", perm=[0, 2, 1, 3]),
        node("Reshape", "mixed_row flat", "left"),
        node("Add", "left s", "sum"),
        node("Tanh", "sum", "t"),
        node("Identity", "t", "kept"),
    ]
    one = (batch, 1, WIDTH)
    states: dict[str, State] = {
        "s": ("t", one),
        "keys": ("keys_now", (batch, HEADS, "past", DEPTH)),
        "mask": ("mask_now", ("masked",)),
    }
    constants = {
        "w_query": draw((WIDTH, WIDTH), 1) / 4,
        "w_key": draw((WIDTH, WIDTH), 2) / 4,
        "heads": np.array([0, 1, HEADS, DEPTH]),
        "flat": np.array([0, 1, WIDTH]),
        "more": np.float32([0.25]),
    }
    return growing(nodes, states, {"kept": one}, constants)


def decoding(past: int, turns: int, batch: int = 1) -> dict[str, np.ndarray]:
    return {
        "n": np.array(turns),
        "x": draw((batch, 1, WIDTH)),
        "k": draw((batch, HEADS, past, DEPTH), 3),
        "m": draw((past + 1,), 4),
    }


NAMES = ["y", "keys", "masks", "all"]


@pytest.mark.parametrize("past", [0, 1, 5])
@pytest.mark.parametrize("fixed", [True, False])
def test_keys_of_all_turns_before_are_attended_to(past: int, fixed: bool) -> None:
    """The mask is one longer than the keys in every turn, which no shape says."""
    feed = decoding(past, 9)
    constants = {"n": feed.pop("n")} if fixed else {}
    loop = node("Loop", "n - x k m", " ".join(NAMES), body=decoder())
    made = check(model([loop], feed, NAMES, constants), feed, length=WIDTH)
    for turns in () if fixed else (0, 1, 2, 40, 0, 3):
        fed = {**feed, "n": np.array(turns)}
        want = by_onnxruntime(model([loop], fed, NAMES), fed)
        for name, left, right in zip(NAMES, made.run(None, fed), want, strict=True):
            same(name, left, right, length=WIDTH)


def test_the_length_of_the_past_may_be_named_and_the_batch_too() -> None:
    feed = decoding(4, 6, batch=3)
    loop = node("Loop", "n - x k m", " ".join(NAMES), body=decoder("batch"))
    shapes: dict[str, Shape] = {
        "x": ["batch", 1, WIDTH], "k": ["batch", HEADS, "past", DEPTH], "m": ["past + 1"],
    }  # fmt: skip
    proto = model([loop], feed, NAMES, shapes=shapes)
    made = check(proto, feed, length=WIDTH)
    for past, turns, batch in ((0, 5, 1), (9, 1, 2), (2, 30, 4), (4, 6, 3)):
        fed = decoding(past, turns, batch)
        for name, left, right in zip(
            NAMES, made.run(None, fed), by_onnxruntime(proto, fed), strict=True
        ):
            same(name, left, right, length=WIDTH)


def test_what_a_loop_leaves_is_read_by_what_follows() -> None:
    feed = decoding(2, 5)
    loop = node("Loop", "n - x k m", " ".join(NAMES), body=decoder())
    after = [
        node("ReduceSum", "keys axes", "sums", keepdims=0),
        node("Exp", "masks", "e"),
        node("Shape", "keys", "size"),
    ]
    constants = {"axes": np.array([2])}
    check(model([loop, *after], feed, ["sums", "e", "size", "keys"], constants), feed)


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_tasks_that_grow_are_shared_by_threads(threads: int) -> None:
    """Blocks of rows are added, so that products have more tasks in each turn."""
    nodes = [
        node("MatMul", "s w", "p"),
        node("Tanh", "p", "q"),
        node("ReduceMean", "q -", "mean", keepdims=0),
        node("Add", "block mean", "added"),
        node("Concat", "q added", "t", axis=0),
    ]
    inner = growing(nodes, {"s": ("t", ("rows", 96))}, {"mean": ()}, {"w": draw((96, 96), 1) / 8})
    feed = {"n": np.array(9), "x": draw((3, 96)), "block": draw((40, 96), 2)}
    proto = model([node("Loop", "n - x", "y all", body=inner)], feed, ["y", "all"])
    made = check(proto, feed, length=96 * 40, threads=threads)
    parts = [step.part for step in made._programs.general.steps]
    assert parts[0].segment.measured({}).alone == frozenset()
    for turns in (1, 0, 12, 2):
        fed = {**feed, "n": np.array(turns)}
        for left, right in zip(made.run(None, fed), by_onnxruntime(proto, fed), strict=True):
            same("y", left, right, length=96 * 40)


def test_a_loop_of_little_work_is_run_by_one_thread() -> None:
    """Open sizes are taken for large elsewhere; what begins with nothing stays small for long."""
    feed = decoding(0, 9)
    loop = node("Loop", "n - x k m", " ".join(NAMES), body=decoder())
    made = check(model([loop], feed, NAMES), feed, length=WIDTH)
    assert made._programs.general.steps[0].part.segment.measured({}).alone == {0}


def test_a_condition_may_depend_on_a_size_and_branches_may_read_what_grows() -> None:
    largest = graph([node("ReduceMax", "s -", "a", keepdims=0)], [], [info("a")])
    smallest = graph([node("ReduceMin", "s -", "b", keepdims=0)], [], [info("b")])
    nodes = [
        node("Mod", "i two", "odd"),
        node("Equal", "odd two", "never"),
        node("If", "never", "c", then_branch=largest, else_branch=smallest),
        node("Unsqueeze", "c first", "item"),
        node("Concat", "s item", "t", axis=0),
        node("Size", "s", "size"),
        node("Less", "size last", "goes_on"),
    ]
    constants = {"two": np.array(2), "first": np.array([0]), "last": np.array(11)}
    inner = growing(nodes, {"s": ("t", ("rows",))}, None, constants, "goes_on")
    feed = {"x": draw((3,))}
    check(model([node("Loop", "- - x", "y", body=inner)], feed), feed)


def test_a_slice_at_the_end_moves_with_it() -> None:
    nodes = [
        node("Slice", "s from to", "last"),
        node("Slice", "table from_here to_there", "row"),
        node("Tanh", "last", "u"),
        node("Add", "u row", "item"),
        node("Concat", "s item", "t", axis=0),
        node("Shape", "s", "from_here", start=0, end=1),
        node("Add", "from_here one", "to_there"),
    ]
    order = [0, 5, 6, 1, 2, 3, 4]
    constants = {
        "from": np.array([-1]), "to": np.array([2**62]), "one": np.array([1]),
        "table": draw((40, 3), 5),
    }  # fmt: skip
    inner = growing([nodes[i] for i in order], {"s": ("t", ("rows", 3))}, None, constants)
    feed = {"n": np.array(20), "x": draw((2, 3))}
    proto = model([node("Loop", "n - x", "y", body=inner)], feed)
    made = session(proto)
    same("y", made.run(None, feed)[0], by_onnxruntime(proto, feed)[0])


@pytest.mark.parametrize("start", [1, 4])
def test_the_last_place_of_what_grows_is_one_in_all_turns(start: int) -> None:
    """A slice at the end has one element of any that is not empty, and its axis may go."""
    nodes = [
        node("Slice", "seen from to axes", "end"),
        node("Squeeze", "end axes", "last"),
        node("Add", "last one", "next"),
        node("Unsqueeze", "next axes", "column"),
        node("Concat", "seen column", "seen_now", axis=1),
    ]
    constants = {
        "from": np.array([-1]), "to": np.array([2**63 - 1]), "axes": np.array([1]),
        "one": np.float32(1.5),
    }  # fmt: skip
    body = growing(nodes, {"seen": ("seen_now", (3, "length"))}, {"next": (3,)}, constants)
    loop = node("Loop", "n - x", "y all", body=body)
    feed = {"n": np.array(7), "x": draw((3, start))}
    check(model([loop], feed, ["y", "all"]), feed)


def test_a_value_may_grow_by_a_named_size() -> None:
    nodes = [node("Tanh", "s", "u"), node("Concat", "u block", "t", axis=0)]
    inner = growing(nodes, {"s": ("t", ("rows", 3))})
    feed = {"n": np.array(4), "x": draw((2, 3)), "block": draw((5, 3), 1)}
    proto = model(
        [node("Loop", "n - x", "y", body=inner)], feed, shapes={"block": ["some", 3]}
    )  # fmt: skip
    made = check(proto, feed)
    for some, turns in ((1, 7), (0, 3), (9, 2), (5, 0)):
        fed = {**feed, "n": np.array(turns), "block": draw((some, 3), 2)}
        same("y", made.run(None, fed)[0], by_onnxruntime(proto, fed)[0])


@pytest.mark.parametrize("turns", [0, 1, 3])
def test_initial_values_that_a_loop_leaves_as_they_were_outlive_their_memory(turns: int) -> None:
    """Kernels behind a loop without iterations take the memory of the sums it began with."""
    shape = (64, 3)
    ends = {"start": np.array([0]), "end": np.array([-1])}
    body = growing(
        [node("Slice", "s start end", "less")], {"s": ("less", ("rows", 3))}, constants=ends
    )
    names = ["first", "second", "third"]
    nodes = [node("Add", "x x", "sum"), node("Loop", "n - sum", "first", body=body)]
    for before, name in (("x", "second"), ("second_sum", "third")):
        nodes += [
            node("Mul", f"{before} y", f"{name}_sum"),
            node("Loop", f"n - {name}_sum", name, body=body),
        ]
    feed = {"n": np.array(turns), "x": draw(shape), "y": draw(shape, 1)}
    check(model(nodes, feed, names), feed)


def test_a_value_may_double() -> None:
    inner = growing([node("Concat", "s s", "t", axis=0)], {"s": ("t", ("rows",))})
    feed = {"n": np.array(4), "x": draw((3,))}
    made = check(model([node("Loop", "n - x", "y", body=inner)], feed), feed)
    for turns in (0, 6, 1):
        (got,) = made.run(None, {**feed, "n": np.array(turns)})
        same("y", got, np.tile(feed["x"], 2**turns))


@pytest.mark.parametrize("start", [0, 3, 9])
def test_windows_that_slide_grow_until_they_are_full(start: int) -> None:
    """Both are of one size in every turn, so that they can be added."""
    nodes = [
        node("Slice", "s from to", "u"),
        node("Slice", "r from to", "v"),
        node("Add", "s r", "w"),
        node("ReduceSum", "w axes", "item"),
        node("Concat", "u item", "t", axis=0),
        node("Concat", "v x", "q", axis=0),
    ]
    constants = {"from": np.array([-5]), "to": np.array([2**62]), "axes": np.array([0])}
    states: dict[str, State] = {"s": ("t", ("some", 3)), "r": ("q", ("more", 3))}
    inner = growing(nodes, states, None, constants)
    feed = {"n": np.array(9), "a": draw((start, 3)), "b": draw((start, 3), 1), "x": draw((1, 3), 2)}
    proto = model([node("Loop", "n - a b", "y z", body=inner)], feed, ["y", "z"])
    made = check(proto, feed)
    for turns in (0, 2, 20):
        fed = {**feed, "n": np.array(turns)}
        for left, right in zip(made.run(None, fed), by_onnxruntime(proto, fed), strict=True):
            same("y", left, right, length=64)


def test_a_value_may_shrink() -> None:
    nodes = [node("Slice", "s from to", "u"), node("Tanh", "u", "t")]
    inner = growing(
        nodes, {"s": ("t", ("rows", 3))}, None, {"from": np.array([1]), "to": np.array([2**62])}
    )  # fmt: skip
    feed = {"n": np.array(4), "x": draw((6, 3))}
    proto = model([node("Loop", "n - x", "y", body=inner)], feed)
    for turns in (0, 4, 6, 8):
        fed = {**feed, "n": np.array(turns)}
        same("y", session(proto).run(None, fed)[0], by_onnxruntime(proto, fed)[0])


# ---- any body ----


def check_any(data: st.DataObject) -> None:
    """States that grow along any axis by any number, read by operators of several families."""
    rank = data.draw(st.integers(1, 3))
    shape = [data.draw(st.integers(1, 4)) for _ in range(rank)]
    axis = data.draw(st.integers(0, rank - 1))
    states: dict[str, State] = {}
    nodes = [node("Cast", "i", "f", to=FLOAT)]
    feed: dict[str, np.ndarray] = {"k": draw((), 9)}
    count = data.draw(st.integers(1, 3))
    for number in range(count):
        name, start, item = f"s{number}", list(shape), list(shape)
        start[axis], item[axis] = data.draw(st.integers(0, 3)), data.draw(st.integers(1, 3))
        feed[f"x{number}"], feed[f"b{number}"] = draw(start, number), draw(item, 5 + number)
        open_: list[int | str] = list(shape)
        open_[axis] = f"rows{number}"
        states[name] = f"t{number}", open_
        kind = data.draw(st.sampled_from(["sum", "softmax", "product", "none", "turned"]))
        nodes.append(node("Add", f"b{number} f", f"item{number}"))
        last = f"item{number}"
        if kind == "sum":
            nodes += [node("ReduceSum", f"{name} -", f"r{number}", keepdims=0),
                      node("Add", f"{last} r{number}", f"c{number}")]  # fmt: skip
            last = f"c{number}"
        if kind == "softmax":
            nodes += [node("Softmax", name, f"r{number}", axis=axis),
                      node("ReduceSum", f"r{number} -", f"q{number}", keepdims=0),
                      node("Add", f"{last} q{number}", f"c{number}")]  # fmt: skip
            last = f"c{number}"
        if kind == "turned":
            nodes += [node("Transpose", name, f"r{number}"),
                      node("Tanh", f"r{number}", f"q{number}"),
                      node("Transpose", f"q{number}", f"c{number}")]  # fmt: skip
            name = f"c{number}"
        if kind == "product" and rank == 2:
            nodes += [node("Transpose", name, f"r{number}"),
                      node("MatMul", f"{name} r{number}", f"q{number}"),
                      node("ReduceMax" if axis else "ReduceSum", f"q{number} -", f"m{number}",
                           keepdims=0),
                      node("Tanh", f"m{number}", f"d{number}"),
                      node("Add", f"{last} d{number}", f"c{number}")]  # fmt: skip
            last = f"c{number}"
        if data.draw(st.booleans()):  # of a window, or all of it
            nodes.append(node("Slice", f"{name} from to along", f"window{number}"))
            name = f"window{number}"
        order = f"{name} {last}" if data.draw(st.booleans()) else f"{last} {name}"
        nodes.append(node("Concat", order, f"t{number}", axis=axis))
    nodes += [node("ReduceSum", "s0 -", "total", keepdims=0), node("Add", "total k", "kept")]
    mode = data.draw(st.sampled_from(["passed", "counted"]))
    if mode == "counted":
        nodes.append(node("Less", "i last", "on"))
    inner = growing(
        nodes, states, {"kept": ()},
        {"last": np.array(3), "from": np.array([data.draw(st.sampled_from([-4, -1, 1]))]),
         "to": np.array([2**62]), "along": np.array([axis])},
        "on" if mode == "counted" else "goes",
    )  # fmt: skip
    turns = np.array(data.draw(st.sampled_from([0, 1, 2, 7])))
    names = [*(f"y{i}" for i in range(count)), "all"]
    constants = {}
    if data.draw(st.booleans()):
        constants["n"] = turns
    else:
        feed["n"] = turns
    shapes: dict[str, Shape] = {}
    if data.draw(st.booleans()):
        shapes["x0"] = [f"d{i}" if i == axis else size for i, size in enumerate(shape)]
    starts = " ".join(f"x{i}" for i in range(count))
    loop = node("Loop", f"n - {starts}", " ".join(names), body=inner)
    proto = model([loop], feed, names, constants, shapes)
    made = session(proto, threads=data.draw(st.sampled_from([1, 2])))
    want = by_onnxruntime(proto, feed)
    for _ in range(2):
        for name, left, right in zip(names, made.run(None, feed), want, strict=True):
            same(name, left, right, length=256)
    assert "Loop" not in refused(made)


@settings(max_examples=8, derandomize=True)
@given(st.data())
def test_values_that_grow_along_any_axis(data: st.DataObject) -> None:
    check_any(data)


@pytest.mark.long
@settings(max_examples=300)
@given(st.data())
def test_many_values_that_grow_along_any_axis(data: st.DataObject) -> None:
    check_any(data)


def test_what_grows_by_a_number_that_the_data_decides_is_compiled() -> None:
    nodes = [node("NonZero", "b", "found"), node("Cast", "found", "items", to=FLOAT),
             node("Mul", "s f", "c"), node("Cast", "i", "f", to=FLOAT),
             node("Concat", "c items", "t", axis=1)]  # fmt: skip
    inner = growing([nodes[3], *nodes[:3], nodes[4]], {"s": ("t", (1, "rows"))})
    feed = {"n": np.array(3), "x": draw((1, 2)), "b": np.float32([1, 0, 2])}
    proto = model([node("Loop", "n - x", "y", body=inner)], feed)
    made = check(proto, feed)
    for flags in ([0, 0, 0], [1, 1, 1], [0, 0, 5]):
        feed["b"] = np.float32(flags)
        same("y", made.run(None, feed)[0], by_onnxruntime(proto, feed)[0])


# ---- what goes wrong ----


def test_sizes_that_are_equal_in_the_first_turn_alone_are_an_error_in_the_second() -> None:
    nodes = [node("Add", "s table", "sum"), node("ReduceMax", "sum axes", "item"),
             node("Concat", "s item", "t", axis=0)]  # fmt: skip
    inner = growing(nodes, {"s": ("t", ("rows", 3))}, None, {"axes": np.array([0])})
    feed = {"n": np.array(1), "x": draw((5, 3)), "table": draw((5, 3), 1)}
    proto = model([node("Loop", "n - x", "y", body=inner)], feed)
    made = session(proto)
    same("y", made.run(None, feed)[0], by_onnxruntime(proto, feed)[0])
    with pytest.raises(KernelError, match="Add"):
        made.run(None, {**feed, "n": np.array(2)})


def test_an_error_in_a_late_turn_names_the_size_that_it_met() -> None:
    nodes = [node("Gather", "s i", "row"), node("Unsqueeze", "row first", "item"),
             node("Gather", "s at", "other"), node("Add", "item other", "both"),
             node("Concat", "s both", "t", axis=0)]  # fmt: skip
    constants = {"first": np.array([0])}
    inner = growing(nodes, {"s": ("t", ("rows", 3))}, None, constants)
    feed = {"n": np.array(6), "x": draw((2, 3)), "at": np.array([0])}
    proto = model([node("Loop", "n - x", "y", body=inner)], feed)
    made = check(proto, feed)
    with pytest.raises(KernelError, match=r"Gather.* failed: index -5 is out of .*2"):
        made.run(None, {**feed, "at": np.array([-5])})
    same("y", made.run(None, feed)[0], by_onnxruntime(proto, feed)[0])


def test_a_loop_in_a_loop_may_grow() -> None:
    inner = graph(
        [node("Concat", "b row", "nn", axis=0), node("ReduceSum", "b -", "u", keepdims=0),
         node("Add", "c u", "cc"), node("Identity", "on", "on_")],
        [info("j", INT64), info("on", BOOL), info("b", shape=("more", 3)), info("c")],
        [info("on_", BOOL), info("nn", shape=("more", 3)), info("cc")],
    )  # fmt: skip
    nodes = [node("Mul", "x s", "row"), node("Loop", "three - x s", "grown t", body=inner),
             node("ReduceMax", "grown -", "kept", keepdims=0)]  # fmt: skip
    outer = growing(nodes, {"s": ("t", ())}, {"kept": ()}, {"three": np.array(3)})
    feed = {"n": np.array(4), "x": draw((1, 3)), "z": np.array(0.5, np.float32)}
    proto = model([node("Loop", "n - z", "y all", body=outer)], feed, ["y", "all"])
    made = session(proto)
    for left, right in zip(made.run(None, feed), by_onnxruntime(proto, feed), strict=True):
        same("y", left, right)
    assert refused(made) == {}


def test_results_of_as_many_turns_as_an_input_is_long_are_read_by_the_same_program() -> None:
    inner = growing(
        [node("Gather", "xs i", "x"), node("Add", "s0 x", "t0"), node("Neg", "t0", "kept")],
        {"s0": ("t0", (3,))}, {"kept": (3,)},
    )  # fmt: skip
    nodes = [node("Shape", "xs", "n1", end=1), node("Squeeze", "n1", "n"),
             node("Loop", "n - x0", "y all", body=inner), node("Exp", "all", "z")]  # fmt: skip
    feed = {"xs": draw((4, 3)), "x0": draw((3,), 1)}
    proto = model(nodes, feed, ["y", "z"], shapes={"xs": ["turns", 3]})
    made = session(proto)
    for turns in (4, 0, 9):
        feed["xs"] = draw((turns, 3), turns)
        for left, right in zip(made.run(None, feed), by_onnxruntime(proto, feed), strict=True):
            same("y", left, right)
    assert refused(made) == {}
    assert len(made._programs.general.steps) == 1
