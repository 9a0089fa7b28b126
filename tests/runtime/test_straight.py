"""Programs of several parts as functions: the same results and errors in every run."""

from __future__ import annotations

import signal
import threading
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import hagane
from hagane.errors import KernelError
from hagane.plugins import forget_operator, register_operator
from tests.native.models import model, session

FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL


def value(name: str, kind: int, shape: Any = None) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, shape)


def pieces(inner: bool, operator: str = "ConcatFromSequence", **attributes: Any) -> Any:
    """Return a loop that appends ``i + 1`` rows to a sequence, or one in another, and a reader.

    SequenceMap is not compiled, and what it reads stays a sequence.
    """
    node = helper.make_node
    rows = [
        node("Add", ["i", "one"], ["end"]),
        node("Unsqueeze", ["end", "zero"], ["ends"]),
        node("Slice", ["x", "zero", "ends"], ["rows"]),
        node("Tanh", ["rows"], ["item"]),
    ]

    def body(nodes: list[onnx.NodeProto], turn: str, before: str, after: str) -> onnx.GraphProto:
        return helper.make_graph(
            [*nodes, node("Identity", [f"go {turn}"], [f"goes {turn}"])],
            turn,
            [
                value(turn, INT64, []),
                value(f"go {turn}", BOOL, []),
                helper.make_tensor_sequence_value_info(before, FLOAT, None),
            ],
            [
                value(f"goes {turn}", BOOL, []),
                helper.make_tensor_sequence_value_info(after, FLOAT, None),
            ],
        )

    one = body([*rows, node("SequenceInsert", ["s", "item"], ["t"])], "i", "s", "t")
    if inner:
        one = body([node("Loop", ["n", "", "u"], ["v"], body=one)], "j", "u", "v")
    negated = helper.make_graph(
        [node("Neg", ["p"], ["q"])], "negated", [value("p", FLOAT)], [value("q", FLOAT)]
    )
    nodes = [
        node("SequenceEmpty", [], ["none"]),
        node("Loop", ["n", "", "none"], ["whole"], "turns", body=one),
        node("SequenceMap", ["whole"], ["all"], body=negated),
    ]
    read = ["all", "at"] if operator == "SequenceAt" else ["all"]
    nodes.append(node(operator, read, ["y"], "reader", **attributes))
    feed = {
        "x": np.random.default_rng(0).standard_normal((9, 5)).astype(np.float32),
        "n": np.array(4),
    }
    if operator == "SequenceAt":
        feed["at"] = np.array(-2)
    shapes = {"x": ["rows", "columns"]}
    constants = {"one": np.array(1), "zero": np.array([0])}
    return model(nodes, feed, ["y"], constants, shapes), feed


CASES = {
    "joined": lambda: pieces(False, axis=0),
    "nested": lambda: pieces(True, axis=0),
    "chosen": lambda: pieces(False, "SequenceAt"),
    "counted": lambda: pieces(False, "SequenceLength"),
}


@pytest.mark.parametrize("name", CASES)
def test_all_runs_of_a_program_with_sequences_give_the_same(name: str) -> None:
    proto, feed = CASES[name]()
    made, reference = session(proto), session(proto, engine="reference")
    for n in (4, 2, 4, 7):
        fed = feed | {"n": np.array(n)}
        (want,) = reference.run(None, fed)
        for _ in range(3):
            (got,) = made.run(None, fed)
            assert got.dtype == want.dtype
            np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-6)
            got[...] = 0  # the caller's own


def test_watched_runs_agree_with_others() -> None:
    proto, feed = pieces(True, axis=0)
    made = session(proto)
    results = [made.run(None, feed, options)[0] for options in (None, hagane.RunOptions(), None)]
    np.testing.assert_array_equal(results[0], results[1])
    np.testing.assert_array_equal(results[0], results[2])
    assert made.profile(feed, runs=2)


def test_errors_name_the_node_in_every_run() -> None:
    proto, feed = pieces(False, "SequenceAt")
    made = session(proto)
    texts = set()
    for at in (9, -2, 9, -2, 9):
        fed = feed | {"at": np.array(at)}
        if at < 0:
            made.run(None, fed)
            continue
        with pytest.raises(KernelError, match="SequenceAt 'reader' failed: IndexError: .* 9 ") as e:
            made.run(None, fed)
        texts.add(str(e.value))
    assert len(texts) == 1


def test_errors_in_a_body_name_its_node_in_every_run() -> None:
    proto, feed = pieces(False, axis=1)
    made = session(proto)
    for _ in range(3):
        with pytest.raises(KernelError, match="ConcatFromSequence 'reader' failed"):
            made.run(None, feed)  # of other numbers of rows


def branches() -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    """Return an If of sequences behind a sum that may broadcast."""
    node = helper.make_node
    sides = [
        helper.make_graph(
            [node("SequenceConstruct", read, [name])],
            name,
            [],
            [helper.make_tensor_sequence_value_info(name, FLOAT, None)],
        )
        for name, read in (("two", ["a", "s"]), ("three", ["s", "a", "s"]))
    ]
    nodes = [
        node("Add", ["a", "b"], ["s"]),
        node("If", ["c"], ["q"], then_branch=sides[0], else_branch=sides[1]),
        node("ConcatFromSequence", ["q"], ["y"], axis=0),
    ]
    feed = {
        "a": np.arange(3, dtype=np.float32),
        "b": np.ones(3, np.float32),
        "c": np.array(True),
    }
    return model(nodes, feed, ["y"], shapes={"a": ["n"], "b": ["m"]}), feed


def test_shapes_that_a_part_was_not_made_for_are_computed_in_every_run() -> None:
    proto, feed = branches()
    made, reference = session(proto), session(proto, engine="reference")
    for wide, flag in ((3, True), (1, False), (3, False), (1, True), (1, False)):
        fed = feed | {"b": np.full(wide, 2, np.float32), "c": np.array(flag)}
        np.testing.assert_array_equal(made.run(None, fed)[0], reference.run(None, fed)[0])
    for _ in range(2):
        with pytest.raises(KernelError, match="Add"):
            made.run(None, feed | {"b": np.ones(2, np.float32)})
        made.run(None, feed)


def test_threads_run_one_program_at_once() -> None:
    proto, feed = pieces(True, axis=0)
    made = session(proto, threads=1)
    (want,) = session(proto, engine="reference").run(None, feed)
    wrong: list[str] = []

    def work() -> None:
        for _ in range(20):
            (got,) = made.run(None, feed)
            if not np.allclose(got, want, rtol=1e-6, atol=1e-6):
                wrong.append("differs")

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_errors_that_the_handler_of_a_signal_raises_stay_what_they_are() -> None:
    class Late(Exception):
        pass

    def late(*_: object) -> None:
        raise Late

    def wait(x: np.ndarray) -> np.ndarray:
        signal.raise_signal(signal.SIGALRM)
        return x

    register_operator(
        "Wait", domain="mine", signature="x:T -> y:T", types={"T": "float"}, infer="same",
        reference=wait,
    )  # fmt: skip
    before = signal.signal(signal.SIGALRM, late)
    try:
        node = helper.make_node("Wait", ["x"], ["y"], domain="mine")
        given = np.ones(3, np.float32)
        proto = model([node], {"x": given})
        proto.opset_import.append(helper.make_opsetid("mine", 1))
        one = session(proto)
        for _ in range(3):
            with pytest.raises(Late):
                one.run(None, {"x": given})
        signal.signal(signal.SIGALRM, signal.SIG_IGN)
        np.testing.assert_array_equal(one.run(None, {"x": given})[0], given)
    finally:
        signal.signal(signal.SIGALRM, before)
        forget_operator("Wait", domain="mine")
