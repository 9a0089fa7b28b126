from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import trim_mean

from hagane.cli import main
from hagane.tools.rl.curves import bootstrap, drawing, interquartile_mean, load_curves
from hagane.tools.rl.errors import InvalidLog


@given(st.lists(st.floats(-100, 100), min_size=1, max_size=10).filter(lambda x: x))
def test_the_middle_half_is_averaged(scores: list[float]) -> None:
    repeated = np.repeat(scores, 4)  # a multiple of four: nothing has to be weighed by shares
    assert interquartile_mean(repeated) == pytest.approx(trim_mean(repeated, 0.25), abs=1e-9)
    assert interquartile_mean(np.asarray(scores)) == pytest.approx(
        interquartile_mean(repeated), abs=1e-9
    )


def test_intervals_hold_the_estimate_and_narrow_with_more_runs() -> None:
    draw = np.random.default_rng(0)
    few, many = draw.normal(10, 1, 5), draw.normal(10, 1, 200)
    narrow, wide = bootstrap([many]), bootstrap([few])
    for found in (narrow, wide):
        assert found.low <= found.value <= found.high
    assert narrow.high - narrow.low < (wide.high - wide.low) / 2


def test_runs_are_drawn_within_their_task() -> None:
    found = bootstrap([np.full(3, 1.0), np.full(3, 5.0)])
    assert found.low == found.high == found.value == 3


def test_curves_are_listed_and_drawn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "curves.json"
    facts = {"environment": "E-v0", "steps": [10, 20], "returns": [[1, 5], [2, 6], [3, 7]]}
    path.write_text(json.dumps({"one <1>": facts}))
    with pytest.raises(SystemExit):
        main(["rl", "curves", str(path), "--json", "--page", str(tmp_path / "page.html")])
    shown = json.loads(capsys.readouterr().out)
    assert shown["one <1>"]["iqm"] == pytest.approx(6)
    page = (tmp_path / "page.html").read_text()
    assert "one &lt;1&gt; in E-v0, 3 seeds: 6.0" in page
    assert page == drawing(load_curves(path))


def test_one_seed_has_no_interval(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    facts = {"environment": "E-v0", "steps": [10], "returns": [[1]]}
    (tmp_path / "curves.json").write_text(json.dumps({"one": facts}))
    with pytest.raises(SystemExit):
        main(["rl", "curves", str(tmp_path / "curves.json")])
    assert "needs more" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "expected curves by name"),
        ('{"a": {"steps": [1]}}', "KeyError"),
        (
            '{"a": {"environment": "e", "steps": [1, 2], "returns": [[1]]}}',
            r"a: expected returns of shape \(seeds, 2\), got \[1, 1\]",
        ),
    ],
)
def test_files_that_hold_no_curves_are_named(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "curves.json").write_text(text)
    with pytest.raises(InvalidLog, match=words):
        load_curves(tmp_path / "curves.json")
    with pytest.raises(InvalidLog, match="cannot be read"):
        load_curves(tmp_path / "none.json")


def test_the_curves_that_ship_are_of_three_seeds(capsys: pytest.CaptureFixture[str]) -> None:
    path = Path(__file__).parents[3] / "examples" / "rl" / "agents" / "curves.json"
    shipped = {found.stem for found in path.parent.glob("*.onnx") if "early" not in found.stem}
    curves = load_curves(path)
    assert {curve.name for curve in curves} == shipped
    assert {len(curve.returns) for curve in curves} == {3}
    with pytest.raises(SystemExit):
        main(["rl", "curves", str(path)])
    shown = capsys.readouterr().out
    assert "ppo-pendulum" in shown
    assert "-132.5 to" in shown
    assert "needs more" not in shown
