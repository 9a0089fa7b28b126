"""Recurrent nets: every direction, lengths of their own, weights fixed or fed."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import helper

from tests.drawing import few, many
from tests.native.agreement import agree
from tests.native.models import draw, every_level, model, session
from tests.oracle import run_onnxruntime

FEW = few(3)
MANY = many(300)
GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}


def check_recurrent(level: str, data: st.DataObject) -> None:
    operator = data.draw(st.sampled_from(["LSTM", "LSTM", "GRU", "GRU", "RNN"]))
    direction = data.draw(st.sampled_from(["forward", "reverse", "bidirectional"]))
    directions = 2 if direction == "bidirectional" else 1
    steps, batch = data.draw(st.integers(0, 6)), data.draw(st.integers(1, 4))
    depth, hidden = data.draw(st.integers(1, 20)), data.draw(st.integers(1, 35))
    rows = GATES[operator] * hidden
    scale = np.float32(1 / np.sqrt(hidden + depth))
    tensors = {
        "w": draw((directions, rows, depth), 1) * scale,
        "r": draw((directions, rows, hidden), 2) * scale,
        "b": draw((directions, 2 * rows), 3),
        "lens": np.random.default_rng(4).integers(0, steps + 1, batch).astype(np.int32),
        "h": draw((directions, batch, hidden), 5),
        "c": draw((directions, batch, hidden), 6),
        "p": draw((directions, 3 * hidden), 7),
    }
    wanted = ["w", "r"]
    for name in ("b", "lens", "h", *(("c", "p") if operator == "LSTM" else ())):
        wanted.append(name if data.draw(st.booleans()) else "")
    while not wanted[-1]:
        wanted.pop()
    used = {name: tensors[name] for name in wanted if name}
    constants, feed = {}, {"x": draw((steps, batch, depth))}
    fixed = data.draw(st.sampled_from([True, True, False]))
    for name, array in used.items():
        (constants if fixed and name in "wrbp" else feed)[name] = array
    attributes: dict[str, object] = {"hidden_size": hidden, "direction": direction}
    if operator == "GRU":
        attributes["linear_before_reset"] = data.draw(st.integers(0, 1))
    if data.draw(st.integers(0, 5)) == 0:
        attributes["clip"] = 0.5
    outputs = ["y", "yh", "yc"] if operator == "LSTM" else ["y", "yh"]
    named = [name if data.draw(st.integers(0, 3)) else "" for name in outputs]
    named = named if any(named) else outputs
    nodes = [helper.make_node(operator, ["x", *wanted], named, **attributes)]
    agree(nodes, feed, level, constants=constants, length=64)


@every_level
@FEW
@given(st.data())
def test_recurrent_nets_of_every_form(level: str, data: st.DataObject) -> None:
    check_recurrent(level, data)


@pytest.mark.long
@every_level
@MANY
@given(st.data())
def test_many_recurrent_nets_of_every_form(level: str, data: st.DataObject) -> None:
    check_recurrent(level, data)


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("operator", GATES)
def test_a_sequence_without_elements_ends_in_zeros(operator: str, direction: str) -> None:
    count, rows = 2 if direction == "bidirectional" else 1, GATES[operator] * 3
    states = ["h", "c"] if operator == "LSTM" else ["h"]
    feed = {
        "x": draw((3, 2, 2)), "w": draw((count, rows, 2)), "r": draw((count, rows, 3)),
        "lens": np.array([2, 0], np.int32), **{s: draw((count, 2, 3)) for s in states},
    }  # fmt: skip
    outputs = ["y", *(f"y_{state}" for state in states)]
    node = helper.make_node(
        operator, ["x", "w", "r", "", "lens", *states], outputs, direction=direction, hidden_size=3
    )
    made = model([node], feed, outputs, opset=14)
    wanted = run_onnxruntime(made, feed)
    for engine in ("native", "reference"):
        found = session(made, engine=engine).run(None, feed)
        for left, right in zip(found, wanted, strict=True):
            np.testing.assert_allclose(left, right, rtol=1e-5, atol=1e-6)
