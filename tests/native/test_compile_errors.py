"""What is said where the engine's own C does not compile."""

from __future__ import annotations

import logging
import threading
from functools import cache

import numpy as np
import pytest
from onnx import helper

import hagane
from hagane.machine import best_level
from hagane.machine import cache as kept
from hagane.native.ready import caller, extension
from hagane.native.run import context, engine
from tests.native.agreement import same
from tests.native.models import draw, model, refused, session


@pytest.mark.wrong_c
def test_a_module_that_does_not_compile_is_told_of_and_runs_go_the_longer_way(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("hagane.machine.notices._given", set())
    monkeypatch.setattr(extension, "c_source", lambda *_: "int broken = of_no_value;")
    kept._module.cache_clear()
    for module in (caller, context):
        monkeypatch.setattr(module, "load_extension", extension.load_extension)
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    proto = model([helper.make_node("Relu", ["x"], ["y"])], {"x": x}, shapes={"x": ["n", 3]})
    try:
        with caplog.at_level(logging.WARNING, "hagane.machine"):
            (y,) = hagane.InferenceSession(proto).run(None, {"x": x})
    finally:
        kept._module.cache_clear()
    np.testing.assert_array_equal(y, x)
    (said,) = (record.getMessage() for record in caplog.records)
    assert said.startswith("calls take longer than they could: the module 'call' cannot be made")
    assert "of_no_value" in said


def test_a_failure_ahead_of_a_session_is_left_to_the_session(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    called = []

    def load_engine() -> None:
        called.append("engine")
        raise OSError("no room on the device")

    monkeypatch.setattr(engine, "load_engine", load_engine)
    monkeypatch.setattr(engine, "_compiled_engine", cache(lambda compiler: None))
    engine.begin_engine(best_level(), [lambda: called.append("another")])
    for thread in threading.enumerate():
        if thread.name == "hagane-engine":
            thread.join()
    assert sorted(called) == ["another", "engine"]


def test_kernels_of_many_sizes_compile_with_few_optimisations(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Sums of many products in two rows of open sizes need most of the registers for addresses.
    monkeypatch.setenv("HAGANE_CFLAGS", "-O1")
    x, w = draw((1, 36, 9, 9)), draw((22, 36, 5, 5), 1)
    proto = model(
        [helper.make_node("Conv", ["x", "w"], ["y"], pads=[4] * 4, dilations=[2, 2])],
        {"x": x}, constants={"w": w}, shapes={"x": ["n", 36, "h", "v"]},
    )  # fmt: skip
    made = session(proto)
    assert refused(made) == {}
    (got,) = made.run(None, {"x": x})
    (want,) = session(proto, engine="reference").run(None, {"x": x})
    same("y", got, want, length=900)
