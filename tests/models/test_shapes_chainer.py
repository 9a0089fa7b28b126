"""The models in Chainer's style check, their mistakes are found, and the shapes are Chainer's."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hagane.checking import Request, check_source

from .case import Case, draw_sizes
from .catalogue_chainer import CHAINER
from .comparing import disagreements
from .mistakes_chainer import MISTAKES, Mistake
from .tracing import TracedValue

CASES = {case.name: case for case in CHAINER}
ORACLE = Path(__file__).parents[1] / "outside" / "chainer_oracle.py"
PYTHON = os.environ.get("HAGANE_CHAINER_PYTHON", "")


def name(mistake: Mistake) -> str:
    return f"{mistake.case}-{mistake.new}".replace("\n", " ")


@pytest.mark.parametrize("case", CHAINER, ids=lambda case: case.name)
def test_a_model_checks_from_its_source_without_an_error_or_an_unknown(case: Case) -> None:
    report = check_source(Request(case.path, case.target, case.inputs, case.make))
    assert report.errors == []
    assert report.unknown == []
    assert report.checked
    assert report.returned is not None


def test_a_pooled_size_prints_as_a_formula_of_the_image() -> None:
    case = CASES["chainer-document"]
    sizes = {"bsize": 2, "height": 227, "width": 227}
    report = check_source(Request(case.path, case.target, case.inputs, case.make, sizes))
    (line,) = (
        number
        for number, text in enumerate(case.path.read_text().splitlines(), 1)
        if text.strip().startswith("h = F.max_pooling_2d")
    )
    types = {t.type for t in report.types if t.place.line == line and t.expression == "h"}
    assert types == {
        "chainer.Variable(dtype=float32, shape=(2 (bsize), 64, "
        "57 (((height - 1) // 2 + 1) // 2), 57 (((width - 1) // 2 + 1) // 2)))"
    }


def test_average_pooling_of_a_size_nobody_knows_gives_one_nobody_knows(tmp_path: Path) -> None:
    file = tmp_path / "pooled.py"
    file.write_text(
        "import chainer.functions as F\n\n\n"
        "def pooled(x):\n    return F.average_pooling_2d(x, ksize=3, stride=2)\n"
    )
    report = check_source(Request(file, "pooled", {"x": "float32[2, 3, 227, None]"}))
    assert report.returned == "chainer.Variable(dtype=float32, shape=(2, 3, 113, None))"


@pytest.mark.parametrize("mistake", MISTAKES, ids=name)
def test_a_mistake_is_reported_at_its_line(mistake: Mistake, tmp_path: Path) -> None:
    case = CASES[mistake.case]
    source = mistake.apply(case.path.read_text())
    file = tmp_path / case.path.name
    file.write_text(source)
    report = check_source(Request(file, case.target, case.inputs, case.make))
    lines = {problem.place.line for problem in report.errors}
    assert mistake.line_number(source) in lines, report.errors


@pytest.fixture(scope="module")
def oracle() -> Iterator[subprocess.Popen[str]]:
    if not PYTHON:
        pytest.skip(
            "HAGANE_CHAINER_PYTHON names no Python with Chainer: tests/outside/chainer_oracle.py "
            "says how to make one"
        )
    command = [PYTHON, str(ORACLE), "serve"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        yield process


def traced(oracle: subprocess.Popen[str], case: Case, sizes: dict[str, int]) -> list[TracedValue]:
    """Return what Chainer computes, value by value."""
    assert oracle.stdin is not None
    assert oracle.stdout is not None
    oracle.stdin.write(json.dumps({"case": case.name, "sizes": sizes}) + "\n")
    oracle.stdin.flush()
    answer: dict[str, Any] = json.loads(oracle.stdout.readline())
    assert "error" not in answer, answer
    return [
        TracedValue(value["line"], value["name"], tuple(value["shape"]), value["dtype"])
        for value in answer["values"]
    ]


@pytest.mark.long
@pytest.mark.parametrize("case", CHAINER, ids=lambda case: case.name)
def test_inferred_shapes_are_those_that_chainer_computes(
    case: Case, oracle: subprocess.Popen[str]
) -> None:
    source = case.path.read_text()
    for seed in range(3):
        sizes = draw_sizes(case, seed)
        report = check_source(Request(case.path, case.target, case.inputs, case.make, sizes))
        assert report.errors == []
        assert disagreements(traced(oracle, case, sizes), report, source) == []
