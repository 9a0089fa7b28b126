"""Sessions whose layers oneDNN computes: choices, notices, memory, threads, forks."""

from __future__ import annotations

import ctypes
import gc
import json
import logging
import os
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper

import hagane
from hagane.errors import MissingExtra
from hagane.machine import LEVELS, best_level, processor_name
from hagane.native import Choice, Target
from hagane.native.rules.onednn import binding
from hagane.native.run.loaded import Loaded
from tests.native.models import draw, model, only_part, session
from tests.native.test_onednn import (
    PRECISIONS,
    compiled,
    needs_library,
)
from tests.native.test_safety_forks import in_child
from tests.native.test_safety_sessions import resident_bytes, resources
from tests.native.test_tuning import _Always


def small() -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    """Return a product that the tuning cache of ``cached`` names."""
    feed = {"x": draw((64, 96))}
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"], name="product")]
    return model(nodes, feed, constants={"w": draw((96, 128), 1)}), feed


def cached(path: Path, proto: onnx.ModelProto, **options: object) -> hagane.InferenceSession:
    """Return a session whose tuning cache says that oneDNN is the fastest."""
    key = f"product 64x96x128 fp32 {best_level().name} threads 2"
    content = {"format": 1, "processors": {processor_name(): {key: {"library": "onednn"}}}}
    path.write_text(json.dumps(content))
    chosen = hagane.SessionOptions(tune="fast", tune_cache=str(path), intra_op_num_threads=2)
    for name, value in options.items():
        chosen.add_session_config_entry(name, str(value))
    return hagane.InferenceSession(proto, chosen)


def calls_of(made: hagane.InferenceSession) -> int:
    """Return how many of a session's kernels call oneDNN."""
    (part,) = made._programs.general.parts("native")
    return sum(kernel.label.endswith("(oneDNN)") for kernel in part.segment.kernels)


@needs_library
def test_a_choice_of_the_cache_is_followed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    proto, feed = small()
    with caplog.at_level(logging.WARNING, logger="hagane"):
        made = cached(tmp_path / "choices.json", proto)
    assert caplog.text == ""
    assert calls_of(made) == 1
    assert "MatMul (oneDNN) 'product'" in str(made.profile(feed, runs=1))
    (want,) = session(proto, engine="reference").run(None, feed)
    np.testing.assert_allclose(made.run(None, feed)[0], want, rtol=1e-5, atol=1e-5)
    # Without tuning no cache is asked, and nothing calls the library.
    assert calls_of(session(proto)) == 0


def test_a_missing_extra_is_named_where_it_was_chosen(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing() -> binding.OneDnn:
        raise MissingExtra("the library oneDNN", "onednn")

    monkeypatch.setattr(binding, "load", missing)
    proto, feed = small()
    with caplog.at_level(logging.WARNING, logger="hagane"):
        made = cached(tmp_path / "choices.json", proto)
    (record,) = caplog.records
    assert record.getMessage() == (
        "oneDNN was measured to be fastest for 1 layers, which are computed by other kernels now: "
        "the library oneDNN needs the extra 'onednn', which is not installed: "
        "pip install 'hagane[onednn]'"
    )
    assert calls_of(made) == 0
    (want,) = session(proto, engine="reference").run(None, feed)
    np.testing.assert_allclose(made.run(None, feed)[0], want, rtol=1e-5, atol=1e-5)


def test_a_missing_extra_that_no_layer_needs_is_no_notice(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(binding, "PACKAGE", "a-package-that-is-not-installed")
    binding.load.cache_clear()
    try:
        assert "pip install 'hagane[onednn]'" in str(binding.obstacle())
        x = draw((8, 16))
        nodes = [helper.make_node("MatMul", ["x", "w"], ["y"])]
        other = model(nodes, {"x": x}, constants={"w": draw((16, 8), 1)})
        with caplog.at_level(logging.WARNING, logger="hagane"):
            made = cached(tmp_path / "choices.json", other)
        assert caplog.text == ""
        np.testing.assert_allclose(made.run(None, {"x": x})[0], x @ draw((16, 8), 1), rtol=1e-4)
    finally:
        binding.load.cache_clear()


def test_a_library_that_cannot_be_loaded_is_named(tmp_path: Path) -> None:
    broken = tmp_path / "libdnnl.so.3"
    broken.write_text("no library")
    with pytest.raises(binding.OneDnnError, match=r"cannot be loaded: .*libdnnl.* libgomp\.so\.1"):
        binding.OneDnn(str(broken))


@needs_library
def test_instructions_that_were_not_allowed_are_not_used() -> None:
    lower = [level for level in LEVELS if level != best_level()]
    proto, _ = small()
    part = only_part(proto, Target(lower[-1], choices=_Always(Choice(library="onednn"))))
    assert not any("(oneDNN)" in kernel.label for kernel in part.segment.kernels)


@needs_library
def test_layers_are_measured_with_the_library_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hagane.native.tuning.measure._QUIET", 0.0)
    seen: list[Choice] = []

    def measured(segments: dict[Choice, Loaded], *_: object) -> dict[Choice, float]:
        seen.extend(segments)
        return {form: 1.0 if form.library and form.order == "pixels" else 2.0 for form in segments}

    monkeypatch.setattr("hagane.native.tuning.measure._measure", measured)
    path = tmp_path / "choices.json"
    x = draw((1, 32, 16, 16))
    nodes = [
        helper.make_node("Conv", ["x", "w1"], ["c"], pads=[1] * 4),
        helper.make_node("MatMul", ["c", "w2"], ["y"]),
    ]
    constants = {"w1": draw((32, 32, 3, 3), 1), "w2": draw((16, 256), 2)}
    proto = model(nodes, {"x": x}, constants=constants)
    chosen = hagane.SessionOptions(tune="fast", tune_cache=str(path))
    made = hagane.InferenceSession(proto, chosen)
    assert seen.count(Choice(library="onednn", order="pixels")) == 2
    kept = json.loads(path.read_text())["processors"][processor_name()]
    assert list(kept.values()) == [{"library": "onednn", "order": "pixels"}] * 2
    assert calls_of(made) == 2
    (want,) = session(proto, engine="reference").run(None, {"x": x})
    np.testing.assert_allclose(made.run(None, {"x": x})[0], want, rtol=1e-4, atol=1e-3)


@needs_library
def test_packed_weights_and_scratch_memory_are_in_the_plan(tmp_path: Path) -> None:
    proto, _ = small()
    plan = cached(tmp_path / "choices.json", proto).memory_plan({})
    assert plan.weights >= 96 * 128 * 4
    segment, _ = compiled(proto, half=False, threads=2, choice=Choice(library="onednn"))
    assert segment.memory({})[0] == plan.weights


@needs_library
def test_the_callers_setting_of_openmp_stays(tmp_path: Path) -> None:
    openmp = ctypes.CDLL("libgomp.so.1")
    before = openmp.omp_get_max_threads()
    openmp.omp_set_num_threads(5)
    try:
        proto, feed = small()
        cached(tmp_path / "choices.json", proto).run(None, feed)
        assert openmp.omp_get_max_threads() == 5
    finally:
        openmp.omp_set_num_threads(before)


@needs_library
@pytest.mark.parametrize("half", PRECISIONS)
def test_threads_share_a_session_and_children_run_it(half: bool) -> None:
    nodes = [
        helper.make_node("Conv", ["x", "w1"], ["c"], pads=[1] * 4),
        helper.make_node("MatMul", ["c", "w2"], ["y"]),
    ]
    feed = {"x": draw((1, 32, 16, 24))}
    constants = {"w1": draw((48, 32, 3, 3), 1), "w2": draw((24, 256), 2)}
    proto = model(nodes, feed, constants=constants)
    segment, calls = compiled(proto, half=half, threads=2, choice=Choice(library="onednn"))
    assert calls == 2
    (want,) = segment.run([feed["x"]])

    def work(_: int) -> bool:
        return all(np.array_equal(segment.run([feed["x"]])[0], want) for _ in range(20))

    with ThreadPoolExecutor(6) as pool:
        running = [pool.submit(work, number) for number in range(12)]
        children = [in_child(lambda: work(0)) for _ in range(3)]

        def anew() -> bool:
            # Other sizes, so that the child makes primitives of its own.
            x = draw((17, 33))
            node = helper.make_node("MatMul", ["x", "w"], ["y"])
            other = model([node], {"x": x}, constants={"w": draw((33, 65), 1)})
            own, _ = compiled(other, half=half, threads=2, choice=Choice(library="onednn"))
            return bool(np.allclose(own.run([x])[0], x @ draw((33, 65), 1), rtol=0.1, atol=0.5))

        children.append(in_child(anew))
        assert all(future.result() for future in running)
    assert children == [0] * 4


def come_and_go(count: int) -> None:
    nodes = [
        helper.make_node("Conv", ["x", "w1"], ["c"], pads=[1] * 4),
        helper.make_node("MatMul", ["c", "w2"], ["y"]),
    ]
    x = draw((1, 16, 8, 8))
    constants = {"w1": draw((16, 16, 3, 3), 1), "w2": draw((8, 40), 2)}
    proto = model(nodes, {"x": x}, constants=constants)

    def once() -> None:
        segment, calls = compiled(proto, half=False, threads=2, choice=Choice(library="onednn"))
        assert calls == 2
        for _ in range(20):
            segment.run([x])

    for _ in range(20):
        once()
    before = resources()
    marks: list[int] = []
    for _ in range(5):
        for _ in range(count // 5):
            once()
        gc.collect()
        marks.append(resident_bytes())
    # (Sessions of earlier tests may end meanwhile.)
    assert all(now <= then for now, then in zip(resources(), before, strict=True))
    # The allocator takes and returns memory now and then; what is lost is lost all the time.
    # AddressSanitizer keeps what is freed for a while.
    grown = min(later - sooner for sooner, later in pairwise(marks))
    assert grown < 256 << 10 or "HAGANE_SANITIZE" in os.environ, f"resident bytes: {marks}"


@pytest.mark.long
@needs_library
def test_fifteen_models_leave_nothing_behind() -> None:
    come_and_go(15)


@needs_library
@pytest.mark.long
def test_a_thousand_models_leave_nothing_behind() -> None:
    come_and_go(1000)
