"""What ``docs/prob.md`` shows is what happens."""

from __future__ import annotations

import importlib.util
import re
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from hagane.cli import main
from hagane.tools.prob import check

from .test_examples import PROGRAMS, load

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "prob.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", TEXT, flags=re.MULTILINE | re.DOTALL)
SHOWN = [
    (program, console)
    for (kind, program), (next_kind, console) in pairwise(BLOCKS)
    if (kind, next_kind) == ("pml", "console")
]


def test_each_program_is_followed_by_its_check() -> None:
    kinds = [kind for kind, _ in BLOCKS]
    assert kinds.count("pml") == kinds.count("console") == len(SHOWN) == 8


@pytest.mark.parametrize(
    ("program", "console"), SHOWN, ids=[console.split()[4] for _, console in SHOWN]
)
def test_a_program_in_the_document_gets_the_verdicts_shown(
    program: str,
    console: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    command, _, expected = console.partition("\n")
    words = command.removeprefix("$ hagane ").split()
    if words[-1].startswith("examples/"):
        monkeypatch.chdir(ROOT)
        text = Path(words[-1]).read_text(encoding="utf-8")
        code = "\n".join(line for line in text.splitlines() if not line.startswith("//")) + "\n"
        assert code == program
    else:
        monkeypatch.chdir(tmp_path)
        Path(words[-1]).write_text(program, encoding="utf-8")
    with pytest.raises(SystemExit) as caught:
        main(words)
    assert capsys.readouterr().out == expected
    assert caught.value.code == ("FAILS" in expected)


def imported(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_answers_and_plots_of_the_examples_are_those_of_today(path: Path) -> None:
    (row,) = (line for line in TEXT.splitlines() if line.startswith(f"| [{path.stem}]"))
    answers = [Fraction(number) for number in re.findall(r"\d+/\d+", row.split(" | ")[2])]
    verdict = check(load(path)).verdicts[-1]
    exact = [item.value for item in verdict.probabilities]
    assert set(answers) <= set(exact)
    assert answers or f"{float(exact[-1]):.3f}" in row
    plot = imported(ROOT / "examples" / "prob" / "plot.py")
    drawn = plot.draw_program(path)
    assert (ROOT / "docs" / "images" / "prob" / f"{path.stem}.svg").read_text() == drawn


def test_the_python_programs_of_the_document_hold(tmp_path: Path) -> None:
    text = "\n".join(text for kind, text in BLOCKS if kind == "python")
    path = tmp_path / "of_the_document.py"
    path.write_text(text, encoding="utf-8")
    module = imported(path)
    assert str(module.alarm.report.verdicts[-1].probabilities[0].value) == "35/396"
    assert module.coupons.report.verdicts[0].engine == "replay"
