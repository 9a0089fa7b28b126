from __future__ import annotations

import json
from pathlib import Path

import pytest

from hagane.cli import main
from hagane.tools.prob.engines.histogram import draw_histogram

GPS = r"""(let a = rand(-10, 10) in
let b = a + rand(0, 10) in
 not (b - a >= 10) /\ ((b + rand(0, 5)) - (a + rand(0, 5)) >= 10))
 : {x:bool | Prob(x) <= 1/10}
"""


def run(*words: object) -> int:
    with pytest.raises(SystemExit) as caught:
        main(["prob", *map(str, words)])
    return int(caught.value.code or 0)


@pytest.fixture
def gps(tmp_path: Path) -> Path:
    path = tmp_path / "gps.pml"
    path.write_text(GPS, encoding="utf-8")
    return path


def test_check_prints_verdicts_and_exits_0(gps: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("check", gps) == 0
    shown = capsys.readouterr().out
    assert "gps.pml:4:4: holds: {x:bool | Prob(x) <= 1/10}" in shown
    assert "Prob(x) = 35/396 = 0.08838383838" in shown
    assert "engine: dynamic (up to 8316 runs" in shown


def test_check_exits_1_and_names_the_outcome_and_a_run(
    gps: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    gps.write_text(GPS.replace("1/10}", "1/20}"), encoding="utf-8")
    assert run("check", gps) == 1
    shown = capsys.readouterr().out
    assert "FAILS" in shown
    assert "contributing most: value = true, probability 35/396" in shown
    assert "for instance rand(-10, 10) = " in shown


@pytest.mark.parametrize("engine", ["auto", "dynamic", "diagram", "enumerate"])
def test_json_has_the_promised_keys(
    gps: Path, capsys: pytest.CaptureFixture[str], engine: str
) -> None:
    assert run("check", gps, "--json", "--engine", engine) == 0
    (verdict,) = json.loads(capsys.readouterr().out)["verdicts"]
    assert (verdict["line"], verdict["column"]) == (4, 4)
    assert verdict["type"] == "{x:bool | Prob(x) <= 1/10}"
    assert verdict["holds"] is True
    (probability,) = verdict["probabilities"]
    assert probability["event"] == "x"
    assert probability["value"] == "35/396"
    assert probability["decimal"] == pytest.approx(35 / 396)
    assert verdict["engine"] == ("dynamic" if engine == "auto" else engine)


def test_errors_exit_2_without_a_traceback(gps: Path, capsys: pytest.CaptureFixture[str]) -> None:
    gps.write_text("let x = in 3", encoding="utf-8")
    assert run("check", gps, "--json") == 2
    shown = capsys.readouterr()
    assert "gps.pml:1:9: expected an expression, got 'in'" in shown.err
    assert "Traceback" not in shown.err
    error = json.loads(shown.out)["error"]
    assert (error["line"], error["column"], error["kind"]) == (1, 9, "ProgramSyntaxError")


def test_a_missing_file_and_an_unknown_engine_are_named(
    gps: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("check", tmp_path / "none.pml") == 2
    assert "there is no file" in capsys.readouterr().err
    assert run("check", gps, "--engine", "magic") == 2
    assert (
        "expected one of auto, dynamic, diagram, enumerate, chain, storm" in capsys.readouterr().err
    )


def test_run_draws_a_histogram_that_its_seed_repeats(
    gps: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("run", gps, "-n", 2000, "--seed", 1) == 0
    first = capsys.readouterr().out
    assert "true | " in first
    assert "2000 runs" in first
    assert run("run", gps, "-n", 2000, "--seed", 1) == 0
    assert capsys.readouterr().out == first
    assert run("run", gps, "-n", 100, "--seed", 1, "--json") == 0
    counts = json.loads(capsys.readouterr().out)
    assert sum(entry["count"] for entry in counts["histogram"]) == counts["runs"] == 100


def test_many_values_are_drawn_in_ranges(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "p.pml"
    path.write_text("rand(1, 1000)", encoding="utf-8")
    assert run("run", path, "-n", 3000, "--seed", 1) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 41
    assert lines[0].split(" | ")[0].strip() == "1..25"


def test_export_writes_a_chain_for_prism(gps: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("export", gps, "--prism") == 0
    shown = capsys.readouterr().out
    assert "\ndtmc\n" in shown
    assert "[] s=0 -> 1/21:(s'=1)" in shown
    assert 'label "claim0_event0" = ' in shown
    assert '// P=? [ F "claim0_event0" ];' in shown
    assert "// Prob(x) is the first over the second\n" in shown


def test_lines_of_long_programs_fit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    steps = "".join(f"let x{i} = flip(1/2) in\n" for i in range(1500))
    path = tmp_path / "long.pml"
    path.write_text(steps + " /\\ ".join(f"x{i}" for i in range(200)) + " : {x:bool | Prob(x) < 1}")
    for command in ("check", "solve"):
        assert run(command, path) == 0
        assert "up to 10^451 runs" in capsys.readouterr().out


def test_bars_are_as_long_as_a_line_leaves_room() -> None:
    counts = {1: 10, 2000: 5}
    for width in (40, 60, 200):
        lines = draw_histogram(counts, width)
        assert max(map(len, lines)) <= width
        assert 0 < lines[1].count("#") < lines[0].count("#") <= 50
    assert draw_histogram(counts, 200) == draw_histogram(counts)
