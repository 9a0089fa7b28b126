"""Sessions on compiled models: memory known ahead, threads, forks, caches, missing compilers."""

from __future__ import annotations

import gc
import logging
import os
import threading

import numpy as np
import onnx
import pytest
from onnx import helper

from hagane.errors import InvalidArgument
from hagane.machine import NoCompiler
from hagane.native.run.engine import load_engine
from tests.native.models import draw, engine_bytes, model, session


def network(*, symbolic: bool = False) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    """Return a model with convolutions, a pool and a product, large enough for two threads."""
    x = draw((1, 16, 40, 40))
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("Conv", ["b", "w"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("Add", ["c", "b"], ["d"]),
        helper.make_node("GlobalAveragePool", ["d"], ["e"]),
        helper.make_node("Flatten", ["e"], ["f"]),
        helper.make_node("MatMul", ["f", "m"], ["y"]),
    ]
    constants = {"w": draw((16, 16, 3, 3), 1) / np.float32(12), "m": draw((16, 7), 2)}
    shapes = {"x": ["n", 16, "h", "w"]} if symbolic else None
    return model(nodes, {"x": x}, constants=constants, shapes=shapes), {"x": x}


def test_the_memory_plan_is_what_a_run_takes() -> None:
    engine = load_engine()
    before = engine_bytes()
    proto, feed = network()
    made = session(proto)
    plan = made.memory_plan()
    made.run(["y"], feed)
    used = engine.allocated() - before
    # The session keeps tables for the short call and for the long one.
    assert used in (plan.peak, plan.peak + plan.values)
    assert plan.weights > 16 * 16 * 9 * 4


def test_the_memory_plan_needs_all_sizes() -> None:
    proto, feed = network(symbolic=True)
    made = session(proto)
    with pytest.raises(InvalidArgument, match="input 'x': expected the sizes of float32"):
        made.memory_plan()
    small = made.memory_plan({"x": (1, 16, 20, 20)})
    assert made.memory_plan({"x": (1, 16, 40, 40)}).values > small.values
    made.prepare({"x": feed["x"].shape})
    assert made.run(["y"], feed)[0].size


def test_a_growing_cache_is_served_by_one_compiled_program() -> None:
    new, past = draw((1, 2, 1, 8)), draw((1, 2, 3, 8), 1)
    nodes = [
        helper.make_node("Concat", ["past", "new"], ["k"], axis=2),
        helper.make_node("Transpose", ["k"], ["t"], perm=[0, 1, 3, 2]),
        helper.make_node("MatMul", ["new", "t"], ["scores"]),
        helper.make_node("Softmax", ["scores"], ["weights"]),
        helper.make_node("MatMul", ["weights", "k"], ["y"]),
    ]
    feed = {"new": new, "past": past}
    proto = model(nodes, feed, ["y", "k"], shapes={"past": [1, 2, "steps", 8]})
    made, reference = session(proto), session(proto, engine="reference")
    for _ in range(5):
        got, want = made.run(None, feed), reference.run(None, feed)
        for left, right in zip(got, want, strict=True):
            np.testing.assert_allclose(left, right, rtol=1e-5, atol=1e-6)
        feed = {"new": new, "past": got[1]}
    assert not made._programs.repeats.values()
    assert sum(1 for _ in made._programs.general.parts("native")) == 1


def test_sessions_come_and_go_without_leaving_memory() -> None:
    proto, feed = network()
    session(proto).run(None, feed)
    before = engine_bytes()
    for _ in range(50):
        session(proto).run(None, feed)
    gc.collect()
    assert load_engine().allocated() == before


def test_one_session_serves_several_threads() -> None:
    proto, _ = network()
    made = session(proto)
    feeds = [{"x": draw((1, 16, 40, 40), seed)} for seed in range(4)]
    wanted = [made.run(None, feed)[0] for feed in feeds]
    wrong: list[int] = []

    def work(number: int) -> None:
        for _ in range(30):
            if not np.array_equal(made.run(None, feeds[number])[0], wanted[number]):
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_a_session_works_on_both_sides_of_a_fork() -> None:
    proto, feed = network()
    made = session(proto)
    want = made.run(None, feed)[0]
    child = os.fork()
    if child == 0:
        os._exit(0 if np.array_equal(made.run(None, feed)[0], want) else 1)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    np.testing.assert_array_equal(made.run(None, feed)[0], want)


def test_a_feed_that_does_not_fit_is_explained_as_ever() -> None:
    proto, feed = network()
    made = session(proto)
    with pytest.raises(InvalidArgument, match="expected float32"):
        made.run(None, {"x": feed["x"].astype(np.float64)})
    with pytest.raises(InvalidArgument, match="x"):
        made.run(None, {})
    strided = np.asfortranarray(feed["x"])
    np.testing.assert_array_equal(made.run(None, {"x": strided})[0], made.run(None, feed)[0])


def test_without_a_compiler_the_reference_engine_runs(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse() -> None:
        raise NoCompiler("no C compiler was found: pip install hagane[compiler]")

    proto, feed = network()
    want = session(proto).run(None, feed)[0]
    monkeypatch.setattr("hagane.native.run.engine.find_compiler", refuse)
    with caplog.at_level(logging.WARNING):
        got = session(proto).run(None, feed)[0]
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
    assert "runs on the slow reference kernels: no C compiler was found" in caplog.text
    assert "hagane[compiler]" in caplog.text
