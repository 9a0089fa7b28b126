"""Programs for single shapes that other processes make, beside the runs of a session."""

from __future__ import annotations

import gc
import logging
import os
import weakref
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import hagane
from hagane.native.run.engine import load_engine
from hagane.runtime.chosen import can_repeat
from hagane.runtime.shapes import beside
from hagane.runtime.shapes.repeats import (
    LEASE,
    LONG_LEASE,
    MOST_PROGRAMS,
    MOST_SLOWER,
    RUNS,
    Past,
    Repeats,
)
from tests.native.agreement import same
from tests.native.models import draw, engine_bytes
from tests.runtime.test_specialize import pictures, reference

SHAPE = (2, 3, 17, 23)


@pytest.fixture(autouse=True)
def prompt(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the other process take its share of a busy machine."""
    monkeypatch.setattr(beside, "_NICE", 0)
    monkeypatch.setattr(beside, "_IDLE", False)
    monkeypatch.setattr(beside, "_PATIENCE", 300.0)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    found = tmp_path / "pictures.onnx"
    onnx.save(pictures(), found)
    os.utime(found, (1e9, 1e9))
    return found


def session_of(source: Any, **settings: Any) -> hagane.InferenceSession:
    return hagane.InferenceSession(
        source, hagane.SessionOptions(intra_op_num_threads=2, **settings)
    )


def repeats_of(session: hagane.InferenceSession) -> Repeats[Any]:
    """Return the programs for single shapes of a session that has read its model."""
    assert session._model is not None
    return session._programs.repeats


@pytest.mark.long
def test_a_session_of_bytes_has_programs_made_by_another_process() -> None:
    session, plain = session_of(pictures().SerializeToString()), reference()
    often, once = {"x": draw(SHAPE)}, {"x": draw((1, 3, 9, 31))}
    want, other = plain.run(None, often)[0], plain.run(None, once)[0]
    for _ in range(RUNS):
        same("y", session.run(None, often)[0], want, length=2000)
    repeats = repeats_of(session)
    repeats.wait()
    assert list(repeats) == [(SHAPE,)]
    (program,) = repeats.values()
    (part,) = program.parts()
    assert part.nodes[0].op_type == "Conv"
    for _ in range(RUNS):
        same("y", session.run(None, often)[0], want, length=2000)
        same("y", session.run(None, once)[0], other, length=2000)
    # The long way takes the same program.
    same("y", session.run(None, often, hagane.RunOptions())[0], want, length=2000)


@pytest.mark.long
def test_its_weights_are_those_of_the_session_where_they_are_equal() -> None:
    engine, session = load_engine(), session_of(pictures().SerializeToString())
    before = engine_bytes()
    for _ in range(RUNS):
        session.run(None, {"x": draw(SHAPE)})
    repeats = repeats_of(session)
    repeats.wait()
    ((part,),) = [list(program.parts()) for program in repeats.values()]
    loaded = part.segment  # type: ignore[attr-defined]
    assert loaded.buffers_elsewhere(), "the layers that take one form at all sizes"
    (general,) = session._programs.general.parts()
    store = general.segment.store  # type: ignore[attr-defined]
    assert loaded.store is store
    for buffer in loaded.buffers_elsewhere():
        address = loaded._addresses_of_weights[buffer]
        assert address in general.segment._addresses_of_weights.values()  # type: ignore[attr-defined]
    assert engine.allocated() - before <= loaded.memory({})[1] + (1 << 20)


def test_a_session_from_the_cache_specialises_without_reading_its_model(path: Path) -> None:
    want = reference().run(None, {"x": draw(SHAPE)})[0]
    session_of(path)
    session = session_of(path)
    assert session._model is None, "it comes from the cache"
    fit = session._call
    for _ in range(RUNS):
        same("y", session.run(None, {"x": draw(SHAPE)})[0], want, length=2000)
    assert session._repeats is not None
    session._repeats.wait()
    assert list(session._repeats) == [(SHAPE,)]
    for _ in range(3 * RUNS):
        same("y", session.run(None, {"x": draw(SHAPE)})[0], want, length=2000)
    assert session._model is None
    assert session._call is fit


def test_a_file_that_has_changed_is_not_compiled(path: Path) -> None:
    session_of(path)
    session = session_of(path)
    changed = pictures()
    changed.graph.initializer[0].raw_data = bytes(len(changed.graph.initializer[0].raw_data))
    want = session.run(None, {"x": draw(SHAPE)})[0]
    onnx.save(changed, path)
    for _ in range(3 * RUNS):
        np.testing.assert_array_equal(session.run(None, {"x": draw(SHAPE)})[0], want)
    assert session._repeats is not None
    session._repeats.wait()
    assert not list(session._repeats)


def test_a_process_that_fails_is_named_once_and_runs_go_on(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(beside, "_PROGRAM", "raise SystemExit('no room')")
    session = session_of(pictures().SerializeToString())
    want = session.run(None, {"x": draw(SHAPE)})[0]
    with caplog.at_level(logging.WARNING, "hagane.runtime"):
        for _ in range(3 * RUNS):
            np.testing.assert_array_equal(session.run(None, {"x": draw(SHAPE)})[0], want)
            repeats_of(session).wait()
    assert not list(repeats_of(session))
    (record,) = caplog.records
    assert record.exc_info is not None
    assert "a process that compiles ended with 1: no room" in str(record.exc_info[1])


def test_a_process_that_starves_is_given_up_for_one_that_does_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[float | None] = []

    def run(order: beside.Order, limit: float | None = None) -> tuple[int, str] | None:
        asked.append(limit)
        return None if order.idle else (beside.NOTHING, "")

    monkeypatch.setattr(beside, "_IDLE", True)
    monkeypatch.setattr(beside, "_run", run)
    session = session_of(pictures().SerializeToString())
    for _ in range(2 * RUNS):
        session.run(None, {"x": draw(SHAPE)})
        repeats_of(session).wait()
    assert asked == [300.0, None], "asked once: the shape is not tried again"


def test_a_process_ends_when_its_time_is_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(beside, "_PROGRAM", "import time; time.sleep(600)")
    assert beside._run(_order(), 0.2) is None


@pytest.mark.skipif(not hasattr(os, "SCHED_IDLE"), reason="this system has no such policy")
def test_a_process_steps_back_before_it_looks_for_modules(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    package = tmp_path / "hagane" / "runtime" / "shapes"
    package.mkdir(parents=True)
    for folder in (package.parent.parent, package.parent, package):
        (folder / "__init__.py").touch()
    (package / "making.py").write_text(
        "import os, sys\n"
        "def main():\n"
        "    sys.exit(f'{os.sched_getscheduler(0) == os.SCHED_IDLE} {os.nice(0)}')\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    order = replace(_order(), nice=3, idle=True)
    assert beside._run(order) == (1, f"True {max(os.nice(0), 3)}")


def _order() -> beside.Order:
    settings: Any = {}, {}, {}
    return beside.Order("", {}, settings, {}, (), (), "", os.getpid(), 0, False)


def test_operators_of_this_process_are_not_left_to_another(tmp_path: Path) -> None:
    assert can_repeat(hagane.SessionOptions())
    assert not can_repeat(hagane.SessionOptions(tune="fast"))
    assert session_of(pictures())._finds_beside(["x"])() is None, "what the caller may change"
    onnx.save(pictures(), tmp_path / "saved.onnx")
    assert session_of(tmp_path / "saved.onnx")._finds_beside(["x"])() is not None


# ---- which shapes, and whether it was worth it ----


def counted(**more: Any) -> tuple[Repeats[str], list[Any]]:
    asked: list[Any] = []

    def make(shapes: Any) -> tuple[str, int]:
        asked.append(shapes)
        return f"program {shapes[0][0]}", 1

    return Repeats(make, logging.getLogger("hagane.runtime"), **more), asked


def test_a_program_that_is_not_faster_is_let_go() -> None:
    repeats, asked = counted()
    for shape, own in (((1,),), 90), (((2,),), 100):
        assert repeats.find(shape, Past(RUNS, general=100)) is None
        repeats.wait()
        assert repeats.lease(shape) == LEASE, "it is judged soon"
        assert repeats.find(shape, Past(1, general=120)) == f"program {shape[0][0]}"
        found = repeats.find(shape, Past(LEASE, own=own))
        assert (found is None) == (own == 100)
        assert repeats.lease(shape) == LONG_LEASE
    for _ in range(9):
        assert repeats.find(((2,),), Past(RUNS, general=100)) is None
        repeats.wait()
    assert asked == [((1,),), ((2,),)], "none is made a second time"
    assert repeats.find(((1,),), Past(LEASE, own=500)) == "program 1", "judged once"


def test_after_some_that_are_not_faster_no_others_are_made() -> None:
    repeats, asked = counted()
    for size in range(MOST_SLOWER + 2):
        shape = ((size,),)
        repeats.find(shape, Past(RUNS, general=100))
        repeats.wait()
        repeats.find(shape, Past(LEASE, own=100))
    assert len(asked) == MOST_SLOWER
    assert not repeats.active
    assert repeats.lease(((99,),)) == LONG_LEASE


def test_programs_are_bounded_and_the_least_lately_used_go() -> None:
    repeats, _ = counted()
    for size in range(MOST_PROGRAMS + 2):
        repeats.find(((size,),), Past(RUNS))
        repeats.wait()
        repeats.find(((0,),), Past(1))
    assert len(list(repeats)) == MOST_PROGRAMS
    assert ((0,),) in repeats
    assert ((1,),) not in repeats


@pytest.mark.long
def test_a_session_is_freed_with_its_last_reference() -> None:
    session = session_of(pictures().SerializeToString())
    for _ in range(RUNS):
        session.run(None, {"x": draw(SHAPE)})
    repeats_of(session).wait()
    gone = weakref.ref(session._programs)
    del session
    gc.collect()
    assert gone() is None
