"""Forms of kernels: all compute the same; the fastest is found, kept and used again."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import helper

import hagane
from hagane.errors import InvalidArgument
from hagane.machine import LEVELS, processor_name
from hagane.native import Choice, Target
from hagane.native.lowering.choices import from_json, to_json
from tests.drawing import few
from tests.native.models import draw, every_level, model, only_part, session

CHOICES = st.builds(
    Choice,
    st.sampled_from([None, 0, 2, 4]),
    st.sampled_from([None, 1, 2, 3, 4]),
    st.sampled_from([None, "groups", "pixels"]),
    st.sampled_from([None, "direct", "packed"]),
)


class _Always(dict[str, Choice]):
    """The same choice for every layer."""

    def __init__(self, choice: Choice):
        super().__init__()
        self._choice = choice

    def __bool__(self) -> bool:
        return True

    def get(self, key: str, default: Any = None) -> Any:
        return self._choice


def network() -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    nodes = [
        helper.make_node("Conv", ["x", "w1", "b1"], ["c1"], pads=[1] * 4, name="first"),
        helper.make_node("Relu", ["c1"], ["r1"]),
        helper.make_node("Conv", ["r1", "w2"], ["c2"], name="second"),
        helper.make_node("GlobalAveragePool", ["c2"], ["g"]),
        helper.make_node("Flatten", ["g"], ["f"]),
        helper.make_node("MatMul", ["f", "m"], ["y"], name="third"),
    ]
    constants = {
        "w1": draw((40, 24, 3, 3), 1), "b1": draw((40,), 2), "w2": draw((72, 40, 1, 1), 3),
        "m": draw((72, 50), 4),
    }  # fmt: skip
    feed = {"x": draw((1, 24, 30, 31))}
    return model(nodes, feed, constants=constants), feed


@every_level
@few(6)
@given(CHOICES)
def test_every_form_computes_the_same(level: str, choice: Choice) -> None:
    proto, feed = network()
    (found,) = (one for one in LEVELS if one.name == level)
    part = only_part(proto, Target(found, choices=_Always(choice)))
    (got,) = part.segment.run([feed["x"]])
    (want,) = session(proto, engine="reference").run(None, feed)
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-3)


@given(CHOICES)
def test_choices_survive_the_file(choice: Choice) -> None:
    assert from_json(json.loads(json.dumps(to_json(choice)))) == choice


@pytest.mark.parametrize("wrong", [[], {"winograd": 3}, {"turns": 2}, "pixels", {"order": 1}])
def test_what_is_no_choice_is_refused(wrong: Any) -> None:
    with pytest.raises(ValueError, match="expected the choices winograd, blocks, order, rows"):
        from_json(wrong)


def tuned(path: Path, **options: Any) -> hagane.InferenceSession:
    chosen = hagane.SessionOptions(tune="fast", tune_cache=str(path), intra_op_num_threads=1)
    for name, value in options.items():
        setattr(chosen, name, value)
    return hagane.InferenceSession(network()[0], chosen)


def test_layers_are_measured_once_and_results_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Whether something else runs is not for this test.
    monkeypatch.setattr("hagane.native.tuning.measure._QUIET", 0.0)
    path = tmp_path / "choices.json"
    proto, feed = network()
    (got,) = tuned(path).run(None, feed)
    (want,) = session(proto, engine="reference").run(None, feed)
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)
    kept = json.loads(path.read_text())
    assert kept["format"] == 1
    layers = kept["processors"][processor_name()]
    assert sorted(key.split()[0] for key in layers) == ["conv", "conv"]  # the product is small
    monkeypatch.setattr("hagane.native.tuning.measure._measure", None)  # nothing is measured again
    np.testing.assert_array_equal(tuned(path).run(None, feed)[0], got)


def test_choices_of_another_processor_are_kept_and_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hagane.native.tuning.measure._QUIET", 0.0)
    path = tmp_path / "choices.json"
    other = {"format": 1, "processors": {"Another CPU": {"conv x": {"winograd": 4}}}}
    path.write_text(json.dumps(other))
    tuned(path)
    kept = json.loads(path.read_text())["processors"]
    assert kept["Another CPU"] == {"conv x": {"winograd": 4}}
    assert len(kept[processor_name()]) == 2


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("{", "cannot be read"),
        ('{"format": 7, "processors": {}}', "expected format 1"),
        ('{"format": 1, "processors": 5}', "expected a table of processors"),
        ('{"format": 1, "processors": {"P": {"conv": {"winograd": 9}}}}', "entry 'conv'"),
    ],
)
def test_a_cache_that_does_not_fit_is_a_notice(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, content: str, reason: str
) -> None:
    path = tmp_path / "choices.json"
    path.write_text(content.replace('P"', f'{processor_name()}"').replace('""', '"'))
    with caplog.at_level(logging.WARNING, logger="hagane"):
        made = tuned(path)
    assert f"the tuning cache '{path}' is not usable as it is" in caplog.text
    assert reason in caplog.text
    assert made.run(None, network()[1])


def test_a_cache_that_cannot_be_written_is_a_notice(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hagane.native.tuning.measure._QUIET", 0.0)
    (tmp_path / "file").write_text("")
    with caplog.at_level(logging.WARNING, logger="hagane"):
        made = tuned(tmp_path / "file" / "choices.json")
    assert "what was measured is not kept" in caplog.text
    assert made.run(None, network()[1])


def test_layers_without_time_are_decided_by_rule(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, logger="hagane"):
        made = tuned(tmp_path / "choices.json", tune_seconds=1e-9)
    assert "there was no time to measure 2 layers; set SessionOptions.tune_seconds" in caplog.text
    assert made.run(None, network()[1])


def test_choices_of_a_busy_machine_are_not_kept(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hagane.native.tuning.measure._QUIET", 1e9)
    path = tmp_path / "choices.json"
    with caplog.at_level(logging.WARNING, logger="hagane"):
        tuned(path)
    assert "something else was running while 2 of 2 layers were measured" in caplog.text
    assert not path.exists()


def test_settings_that_mean_nothing_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match=r"tune: expected 'off', 'fast' or 'full', got 'on'"):
        tuned(tmp_path / "c.json", tune="on")
    with pytest.raises(InvalidArgument, match=r"tune_seconds: expected a positive number, got -1"):
        tuned(tmp_path / "c.json", tune_seconds=-1)


def test_a_product_that_is_not_native_is_not_measured(tmp_path: Path) -> None:
    x = draw((128, 64))
    proto = model(
        [helper.make_node("Gemm", ["x", "w"], ["y"], transA=1)], {"x": x},
        constants={"w": draw((128, 128), 1)},
    )  # fmt: skip
    chosen = hagane.SessionOptions(tune="fast", tune_cache=str(tmp_path / "choices.json"))
    (got,) = hagane.InferenceSession(proto, chosen).run(None, {"x": x})
    np.testing.assert_allclose(got, x.T @ draw((128, 128), 1), rtol=1e-4, atol=1e-4)
