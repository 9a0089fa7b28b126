"""Programs of their own for shapes that come again and again, built beside the runs."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

import hagane
from hagane.errors import InvalidArgument
from hagane.native.run.engine import load_engine
from hagane.runtime.shapes import repeats
from tests.native.agreement import no_compilation, same
from tests.native.models import draw, engine_bytes, model

CHANNELS = 64


def pictures() -> onnx.ModelProto:
    """Return a network of a product and three convolutions over pictures of any size."""
    nodes = [
        helper.make_node("Conv", ["x", "w0", "b"], ["a"], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["a"], ["r"]),
        helper.make_node("Conv", ["r", "w1"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("Add", ["c", "r"], ["s"]),
        helper.make_node("Conv", ["s", "w2"], ["d"]),
        helper.make_node("GlobalAveragePool", ["d"], ["g"]),
        helper.make_node("Flatten", ["g"], ["f"]),
        helper.make_node("MatMul", ["f", "m"], ["y"]),
    ]
    constants = {
        "w0": draw((CHANNELS, 3, 3, 3)) / np.float32(5),
        "w1": draw((CHANNELS, CHANNELS, 3, 3), 1) / np.float32(24),
        "w2": draw((CHANNELS, CHANNELS, 1, 1), 2) / np.float32(8),
        "b": draw((CHANNELS,), 3),
        "m": draw((CHANNELS, 7), 4),
    }
    shapes: dict[str, Any] = {"x": ["n", 3, "h", "w"]}
    return model(nodes, {"x": draw((1, 3, 8, 8))}, constants=constants, shapes=shapes)


def made(**settings: Any) -> hagane.InferenceSession:
    options = hagane.SessionOptions()
    options.intra_op_num_threads = 2
    for name, value in settings.items():
        setattr(options, name, value)
    return hagane.InferenceSession(pictures(), options)


def reference() -> hagane.InferenceSession:
    options = hagane.SessionOptions()
    options.add_session_config_entry("hagane.engine", "reference")
    return hagane.InferenceSession(pictures(), options)


def test_a_shape_that_comes_again_and_again_has_a_program_of_its_own() -> None:
    session, plain = made(), reference()
    often, once = {"x": draw((2, 3, 17, 23))}, {"x": draw((1, 3, 9, 31))}
    want, other = plain.run(None, often)[0], plain.run(None, once)[0]
    programs = session._programs
    with no_compilation():
        for _ in range(repeats.RUNS - 1):
            same("y", session.run(None, often)[0], want, length=2000)
    assert not list(programs.repeats)
    session.run(None, often)
    programs.wait()
    assert list(programs.repeats) == [((2, 3, 17, 23),)]
    with no_compilation():
        for _ in range(3):
            same("y", session.run(None, often)[0], want, length=2000)
            same("y", session.run(None, once)[0], other, length=2000)
    assert programs.for_shapes(["x"], [often["x"]]) is not programs.general
    assert programs.for_shapes(["x"], [once["x"]]) is programs.general


def test_no_shape_has_a_program_of_its_own_where_that_is_switched_off() -> None:
    session = made(specialize=False)
    feed = {"x": draw((1, 3, 12, 12))}
    with no_compilation():
        for _ in range(2 * repeats.RUNS):
            session.run(None, feed)
        session.prepare({"x": (1, 3, 12, 12)})
    session._programs.wait()
    assert not list(session._programs.repeats)


def test_a_program_for_one_shape_reads_the_weights_of_the_others() -> None:
    engine = load_engine()
    session = made()
    before = engine_bytes()
    session.prepare({"x": (1, 3, 12, 12)})
    gc.collect()
    grown = engine.allocated() - before
    (own,) = session._programs.repeats.values()
    weights = sum(part.memory({}).weights for part in own.parts())
    options = hagane.SessionOptions()
    for name, size in (("n", 1), ("h", 12), ("w", 12)):
        options.add_free_dimension_override_by_name(name, size)
    alone = hagane.InferenceSession(pictures(), options)
    # The second layer takes another form at these sizes; the third one's weights are shared.
    assert weights <= alone.memory_plan().weights - 4 * CHANNELS * CHANNELS
    assert grown <= weights + (1 << 16)


def test_programs_that_were_not_used_for_longest_go_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(repeats, "MOST_PROGRAMS", 2)
    session = made()
    for side in (5, 6):
        session.prepare({"x": (1, 3, side, side)})
    session.run(None, {"x": draw((1, 3, 5, 5))})
    session.prepare({"x": (1, 3, 7, 7)})
    assert [shape[-1] for (shape,) in session._programs.repeats] == [5, 7]
    monkeypatch.setattr(repeats, "MOST_BYTES", 1)
    session.prepare({"x": (1, 3, 8, 8)})
    assert [shape[-1] for (shape,) in session._programs.repeats] == [8]


def test_a_plan_of_memory_covers_a_range() -> None:
    session = made()
    with no_compilation():
        whole = session.memory_plan({"x": (1, 3, 32, (16, 64))})
        for width in (16, 31, 64):
            one = session.memory_plan({"x": (1, 3, 32, width)})
            assert one.values <= whole.values
            assert one.weights == whole.weights
        assert session.memory_plan({"x": (1, 3, 32, 64)}).values == whole.values
        assert session.memory_plan({"x": ((1, 4), 3, (8, 900), (8, 900))}).values > whole.values
        with pytest.raises(InvalidArgument, match="the least and the largest"):
            session.memory_plan({"x": (1, 3, 32, (64, 16))})
        with pytest.raises(InvalidArgument, match="input 'x': expected the sizes of float32"):
            session.memory_plan()
        with pytest.raises(InvalidArgument, match="one number for each size"):
            session.prepare({"x": (1, 3, 32, (16, 64))})


def test_memory_stays_flat_over_many_shapes() -> None:
    engine = load_engine()
    session = made()
    taken: list[int] = []
    with no_compilation():
        for number in range(300):
            session.run(None, {"x": np.zeros((1, 3, 8, 8 + number * 7 % 40), np.float32)})
            taken.append(engine.allocated())
    assert max(taken) <= 1.05 * max(taken[:40])


@pytest.mark.long
def test_programs_that_wait_lend_their_memory_for_values() -> None:
    engine, session, plain = load_engine(), made(), reference()
    feeds = [{"x": draw((1, 3, rows, 100))} for rows in (64, 72, 80)]
    wanted = [plain.run(None, feed)[0] for feed in feeds]
    for feed in feeds[1:]:
        session.prepare({"x": feed["x"].shape})
    parts = [part for own in session._programs.repeats.values() for part in own.parts()]
    values = [part.memory({}).values for part in parts]
    assert len(values) == 2
    assert min(values) > 8 << 20
    before = engine_bytes()
    for feed, want in [*zip(feeds, wanted, strict=True)] * 2:
        for _ in range(repeats.RUNS):  # by its own program from then on
            same("y", session.run(None, feed)[0], want, length=2000)
    assert engine.allocated() - before <= max(values) + (5 << 20)
