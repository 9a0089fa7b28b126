"""Storm, a program that is not ours, in exact arithmetic; these tests run where it is installed."""

from __future__ import annotations

import json
import sys
import tempfile
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given

from hagane.cli import main
from hagane.tools.prob import check, export_prism, load_program
from hagane.tools.prob.claims.export import PrismModel
from hagane.tools.prob.engines.chains.storm import NoStorm
from hagane.tools.prob.language.program import Program
from hagane.tools.prob.language.source import PathError, ProgramTypeError, TooLarge

from .prism_reader import Ask, broken, measured, read_model
from .programs import QUIET, programs
from .test_examples import PROGRAMS, load
from .test_export import SHIFT, values_of


def storm() -> Any:
    return pytest.importorskip("stormpy", reason="stormpy is not installed")


def asker(stormpy: Any, exported: PrismModel) -> Ask:
    """Return what answers properties of a model by Storm, from the start that each names."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "program.pm"
        path.write_text(exported.text, encoding="utf-8")
        program = stormpy.parse_prism_program(str(path))
    queries = [line for line in exported.properties.splitlines() if not line.startswith("//")]
    properties = stormpy.parse_properties("\n".join(queries), program)
    # Storm's Python interface builds the labels of formulas only, not those of filters.
    starts = [name for name in read_model(exported.text).labels if name.startswith("unit")]
    marks = stormpy.parse_properties(";".join(f'P=? [ F "{name}" ]' for name in starts), program)
    model = stormpy.build_model[stormpy.Rational](program, [*properties, *marks])
    answers = {}
    for query, each in zip(queries, properties, strict=True):
        results = stormpy.model_checking(model, each)
        start = model.initial_states[0]
        if query.startswith("filter"):
            name = query.split('"')[-2]
            start = next(s for s in model.initial_states if name in model.get_labels_of_state(s))
        answers[query] = Fraction(str(results.get_value(start)))
    return answers.__getitem__


def agree(stormpy: Any, program: Program) -> None:
    exported = export_prism(program)
    ask = asker(stormpy, exported)
    assert list(measured(exported, ask)) == values_of(program)
    assert list(broken(exported, ask)) == list(broken(exported, read_model(exported.text).ask))


def verdicts(program: Program, engine: str) -> list[tuple[Any, ...]]:
    return [
        (v.line, v.column, v.type, v.holds, v.probabilities, v.ranges, v.cases, v.circumstances)
        for v in check(program, engine).verdicts
    ]


def test_storm_answers_the_exported_functions_and_types() -> None:
    agree(storm(), load_program(SHIFT))


def test_storm_answers_exported_random_programs_with_types_as_enumeration_does() -> None:
    stormpy = storm()
    compared = 0

    @QUIET
    @given(programs(typed=True))
    def compare(text: str) -> None:
        nonlocal compared
        program = load_program(text)
        try:
            values_of(program)
        except (PathError, TooLarge):
            return
        agree(stormpy, program)
        compared += 1

    compare()
    assert compared >= 100


def test_storm_gives_random_programs_with_types_the_same_verdicts() -> None:
    storm()
    compared = 0

    @QUIET
    @given(programs(typed=True))
    def compare(text: str) -> None:
        nonlocal compared
        program = load_program(text)
        try:
            expected = verdicts(program, "dynamic")
        except (PathError, TooLarge, ProgramTypeError):  # the last: a type that nothing reaches
            return
        assert verdicts(program, "storm") == expected
        compared += 1

    compare()
    assert compared >= 100


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_storm_gives_the_examples_the_same_verdicts(path: Path) -> None:
    storm()
    assert verdicts(load(path), "storm") == verdicts(load(path), "auto")


def test_the_command_asks_storm(capsys: pytest.CaptureFixture[str]) -> None:
    storm()
    path = next(path for path in PROGRAMS if path.stem == "retries")
    with pytest.raises(SystemExit) as caught:
        main(["prob", "check", str(path), "--engine", "storm", "--json"])
    assert caught.value.code == 0
    found = json.loads(capsys.readouterr().out)["verdicts"]
    assert {verdict["engine"] for verdict in found} == {"storm"}
    (whole,) = [v for v in found if v["role"] == "annotation"]
    assert whole["probabilities"][0]["value"] == "9749376/9765625"


def test_without_storm_the_engine_names_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "stormpy", None)
    program = load_program("flip(1/2) : bool")
    wanted = "needs stormpy 2.0 or later, which is not installed: pip install --upgrade stormpy"
    with pytest.raises(NoStorm, match=wanted):
        check(program, "storm")
    monkeypatch.setitem(sys.modules, "stormpy", SimpleNamespace(__version__="1.8.0"))
    with pytest.raises(NoStorm, match=r"needs stormpy 2.0 or later, found 1.8.0: pip install"):
        check(program, "storm")
