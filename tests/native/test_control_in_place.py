"""States of loops that iterations write a part of, where they lie, beside ONNX Runtime."""

from __future__ import annotations

import random

import numpy as np
import onnx
import onnx_ir as ir
import pytest

import hagane
from hagane.native.rules.control.in_place import is_written_in_place
from tests.native.bodies import BOOL, INT64, by_onnxruntime, check, graph, info, looped, node
from tests.native.models import compare, model

SIZE = 5
FEED = {"n": np.array(7, np.int64), "s": np.arange(SIZE, dtype=np.float32) + 1}
FIVE = {
    "five": np.array([SIZE], np.int64),
    "one": np.array([1], np.int64),
    "unit": np.array(1.0, np.float32),
    "zero": np.array([0], np.int64),
    "three": np.array([3], np.int64),
}


def nodes_of(text: str) -> list[onnx.NodeProto]:
    """Return nodes, written as ``result = Operator inputs`` between semicolons."""
    made = []
    for line in text.split(";"):
        result, _, call = line.partition("=")
        kind, _, inputs = call.strip().partition(" ")
        attributes = {"to": BOOL} if kind == "Cast" else {}
        made.append(node(kind, inputs, result.strip(), **attributes))
    return made


# The place that an iteration writes.
PLACE = nodes_of("i1 = Reshape i one; at = Mod i1 five; tuple = Unsqueeze at one")
READ = "old = Gather s at; item = Add old unit; "
WRITE = "s1 = ScatterND s tuple item"


def in_place(proto: onnx.ModelProto) -> list[bool]:
    """Return which states of the loop are written where they lie."""
    loops = [n for n in ir.from_proto(proto).graph if n.op_type == "Loop"]
    body = loops[0].attributes["body"].as_graph()
    pairs = zip(body.inputs[2:], body.outputs[1:], strict=False)
    return [is_written_in_place(body, before, after) for before, after in pairs]


def one_state(nodes: list[onnx.NodeProto], seen: str = "") -> onnx.ModelProto:
    scanned = [seen] if seen else []
    body = graph(
        [*PLACE, *nodes],
        [info("i", INT64), info("go", BOOL), info("s", shape=[SIZE])],
        [info("go", BOOL), info("s1", shape=[SIZE])]
        + [info(name, shape=[1 if name == "last" else SIZE]) for name in scanned],
        FIVE,
    )
    loop = node("Loop", "n - s", " ".join(("end", *scanned)), body=body)
    return model([loop], FEED, ["end", *scanned])


@pytest.mark.parametrize(
    ("text", "seen", "kept"),
    [
        (READ + WRITE, "", True),
        # The old state is read behind the write: by a product, a view, a chain that is held back.
        (READ + WRITE + "; seen = Mul s unit", "seen", False),
        (READ + "seen = Identity s; " + WRITE, "seen", False),
        (READ + "m = Mul s unit; " + WRITE + "; seen = Add m s1", "seen", False),
        (READ + "part = Slice s zero three; " + WRITE + "; last = ReduceSum part", "last", False),
        # A part of the state itself is written.
        ("item = Slice s zero one; " + WRITE, "", False),
        # Two places, one after the other: they are exchanged.
        (
            "next = Add i1 one; to = Mod next five; pair = Unsqueeze to one; a = Gather s at; "
            "b = Gather s to; mid = ScatterND s tuple b; s1 = ScatterND mid pair a",
            "",
            True,
        ),
        (
            "a = Gather s at; b = Gather s zero; first = Unsqueeze zero one; "
            "mid = ScatterND s tuple b; s1 = ScatterND mid first a",
            "",
            False,
        ),
        (
            READ + "mid = ScatterND s tuple item; last = ReduceSum mid; "
            "s1 = ScatterND mid tuple old",
            "last",
            True,
        ),
        (
            READ + "mid = ScatterND s tuple item; s1 = ScatterND mid tuple old; "
            "seen = Mul mid unit",
            "seen",
            False,
        ),
    ],
)
def test_a_state_is_written_where_it_lies_if_nothing_reads_it_later(
    text: str, seen: str, kept: bool
) -> None:
    proto = one_state(nodes_of(text), seen)
    check(proto, FEED)
    check(proto, {**FEED, "n": np.array(0, np.int64)})
    assert in_place(proto) == [kept]


@pytest.mark.parametrize("kept", [True, False])
def test_one_side_of_a_branch_writes_a_state(kept: bool) -> None:
    sides = [nodes_of(READ + "changed = ScatterND s tuple item"), nodes_of("same = Identity s")]
    then, other = (graph(nodes, [], [info(nodes[-1].output[0], shape=[SIZE])]) for nodes in sides)
    nodes = nodes_of("odd = Cast at; is = Squeeze odd")
    nodes.append(node("If", "is", "s1", then_branch=then, else_branch=other))
    if not kept:
        nodes += nodes_of("seen = Mul s unit")
    proto = one_state(nodes, "" if kept else "seen")
    check(proto, FEED)
    assert in_place(proto) == [kept]


# A loop within the iteration, over states that begin as `s`, and the place that it writes.
SPOT = nodes_of("j1 = Reshape j one; here = Mod j1 five; spot = Unsqueeze here one")


@pytest.mark.parametrize(
    ("before", "text", "ends", "kept"),
    [
        ("", "x = Gather a here; y = Add x unit; w = ScatterND a spot y", ["w"], True),
        # Iterations read the value that came in, beside the state that they write.
        ("", "y = ReduceSum s; w = ScatterND a spot y", ["w"], False),
        ("part = Slice s zero three", "y = ReduceSum part; w = ScatterND a spot y", ["w"], False),
        ("m = Mul s unit", "y = ReduceSum m; w = ScatterND a spot y", ["w"], True),
        # A second state of the same origin: changed, or the same in all iterations.
        ("", "w = ScatterND a spot one_f; v = Add b unit", ["w", "v"], False),
        ("", "y = ReduceSum b; w = ScatterND a spot y; v = Identity b", ["w", "v"], False),
    ],
)
def test_loops_within_an_iteration_write_what_they_alone_read(
    before: str, text: str, ends: list[str], kept: bool
) -> None:
    states = "ab"[: len(ends)]
    body = graph(
        [*SPOT, *nodes_of(text)],
        [info("j", INT64), info("on", BOOL), *(info(name, shape=[SIZE]) for name in states)],
        [info("on", BOOL), *(info(name, shape=[SIZE]) for name in ends)],
        {"one_f": np.array([1], np.float32)},
    )
    outputs = ["s1", "other"][: len(ends)]
    inputs = " ".join(["three_times -", *["s"] * len(ends)])
    nodes = nodes_of("three_times = Squeeze three")
    nodes += nodes_of(before) if before else []
    nodes.append(node("Loop", inputs, " ".join(outputs), body=body))
    proto = one_state(nodes, "" if len(ends) == 1 else "other")
    check(proto, FEED)
    assert in_place(proto) == [kept]


def test_a_state_that_a_loop_hands_on_is_the_value_that_came_in() -> None:
    body = looped(
        nodes_of("k1 = Identity k; q1 = Add q unit"), {"k": "k1", "q": "q1"}, (),
        {"unit": FIVE["unit"]}, (SIZE,),
    )  # fmt: skip
    nodes = nodes_of("three_times = Squeeze three")
    nodes.append(node("Loop", "three_times - s s", "kept other", body=body))
    nodes += nodes_of(READ + WRITE + "; last = ReduceSum kept")
    proto = one_state(nodes, "last")
    check(proto, FEED)
    assert in_place(proto) == [False]


@pytest.mark.parametrize("early", [True, False])
def test_a_branch_reads_a_view_from_outside_of_the_state_that_it_writes(early: bool) -> None:
    read, write = nodes_of("y = ReduceSum part"), nodes_of(READ + "w = ScatterND s tuple item")
    then = graph(
        [*read, *write] if early else [*write, *read], [],
        [info("w", shape=[SIZE]), info("y", shape=[1])],
    )  # fmt: skip
    other = graph(
        nodes_of("same = Identity s; z = ReduceMax s"), [],
        [info("same", shape=[SIZE]), info("z", shape=[1])],
    )  # fmt: skip
    nodes = nodes_of("part = Slice s zero three; odd = Cast at; is = Squeeze odd")
    nodes.append(node("If", "is", "s1 last", then_branch=then, else_branch=other))
    proto = one_state(nodes, "last")
    check(proto, FEED)
    assert in_place(proto) == [False]


def test_the_value_before_the_loop_stays_as_it_was() -> None:
    body = graph(
        [*PLACE, *nodes_of(READ + WRITE)],
        [info("i", INT64), info("go", BOOL), info("s", shape=[SIZE])],
        [info("go", BOOL), info("s1", shape=[SIZE])],
        FIVE,
    )
    nodes = [
        node("Mul", "x unit", "start"), node("Loop", "n - start", "end", body=body),
        node("Sub", "end start", "gap"), node("Sub", "end x", "more"),
    ]  # fmt: skip
    feed = {"n": FEED["n"], "x": FEED["s"]}
    check(model(nodes, feed, ["gap", "more", "end"], {"unit": FIVE["unit"]}), feed)


def test_bits_read_as_another_type_are_those_before_the_write() -> None:
    proto = onnx.parser.parse_model("""
      <ir_version: 10, opset_import: ["": 26]>
      bits (int64 n, float[5] s) => (float[5] end, int32[rows, 1] seen)
      <int64[1] zero = {0}, int64[1] one = {1}, float[1] unit = {7}> {
        end, seen = Loop (n, "", s) <body = body (int64 i, bool go, float[5] s0)
            => (bool on, float[5] s1, int32[1] part) {
          on = Identity (go)
          whole = BitCast <to = 6> (s0)
          part0 = Slice (whole, zero, one)
          tuple = Unsqueeze (zero, zero)
          old = Gather (s0, zero)
          item = Add (old, unit)
          s1 = ScatterND (s0, tuple, item)
          part = Abs (part0)
        }>
      }""")
    compare(proto, FEED, "avx2")
    assert in_place(proto) == [False]


def drawn(rng: random.Random) -> onnx.ModelProto:
    """Return a loop over two states of one shape, which it writes and reads in any order."""
    names, single, nodes = ["s", "t"], ["unit1"], [*PLACE, node("Reshape", "unit one", "unit1")]
    now = {"s": "s", "t": "t"}
    for number in range(rng.randint(3, 9)):
        made = f"v{number}"
        kind = rng.choice(["write", "write", "read", "add", "view", "sum", "branch"])
        state = rng.choice("st")
        if kind == "write":
            nodes.append(node("ScatterND", f"{now[state]} tuple {rng.choice(single)}", made))
            now[state] = made
            names.append(made)
        elif kind == "branch":
            inner = [node("ScatterND", f"{now[state]} tuple {rng.choice(single)}", f"w{number}")]
            other = rng.choice([now[state], rng.choice(names)])
            sides = [
                graph(inner, [], [info(f"w{number}", shape=[SIZE])]),
                graph(
                    [node("Identity", other, f"k{number}")], [], [info(f"k{number}", shape=[SIZE])]
                ),
            ]
            nodes += nodes_of(f"c{number} = Cast at; q{number} = Squeeze c{number}")
            nodes.append(node("If", f"q{number}", made, then_branch=sides[0], else_branch=sides[1]))
            now[state] = made
            names.append(made)
        elif kind == "read":
            nodes.append(node("Gather", f"{rng.choice(names)} at", made))
            single.append(made)
        elif kind == "add":
            pool = rng.choice([names, single])
            nodes.append(node("Add", f"{rng.choice(pool)} {rng.choice(pool)}", made))
            pool.append(made)
        elif kind == "view":
            if rng.random() < 0.5:
                nodes.append(node("Slice", f"{rng.choice(names)} zero one", made))
                single.append(made)
            else:
                nodes.append(node("Identity", rng.choice(names), made))
                names.append(made)
        else:
            nodes.append(node("ReduceSum", rng.choice(names), made, keepdims=1))
            single.append(made)
    halves = [node("Mul", f"{value} half", f"{name}1") for name, value in now.items()]
    whole = [node("Identity", value, f"{name}1") for name, value in now.items()]
    nodes += [rng.choice(pair) for pair in zip(halves, whole, strict=True)]
    nodes.append(node("Identity", rng.choice(names), "seen"))
    constants = {**FIVE, "half": np.array(0.5, np.float32)}
    body = looped(nodes, {"s": "s1", "t": "t1"}, ["seen"], constants, shape=(SIZE,))
    loop = node("Loop", "n - s t", "a b c", body=body)
    return model([loop], {**FEED, "t": FEED["s"]}, ["a", "b", "c"])


@pytest.mark.parametrize(
    "seed", [*range(12), *(pytest.param(seed, marks=pytest.mark.long) for seed in range(12, 300))]
)
def test_drawn_loops_that_write_their_states(seed: int) -> None:
    proto = drawn(random.Random(seed))
    feed = {**FEED, "t": -FEED["s"]}
    want = by_onnxruntime(proto, feed)
    found = hagane.InferenceSession(proto).run(None, feed)
    for left, right in zip(found, want, strict=True):
        scale = max(1.0, float(np.abs(right).max(initial=0.0)))
        assert np.allclose(left / scale, right / scale, atol=1e-4)
