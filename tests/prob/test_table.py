"""The classic programs of the benchmark, against their known answers."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest

from hagane.tools.prob import load_program, solve

_PATH = Path(__file__).parents[2] / "benchmarks" / "prob_programs.py"


def _programs() -> Any:
    spec = importlib.util.spec_from_file_location("prob_programs", _PATH)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module.PROGRAMS


PROGRAMS = _programs()


def test_there_are_thirty() -> None:
    assert len({program.name for program in PROGRAMS}) == 30


@pytest.mark.parametrize("program", PROGRAMS, ids=[program.name for program in PROGRAMS])
def test_a_classic_program_has_its_known_answer(program: Any) -> None:
    assert solve(load_program(program.text)).distribution[True] == program.answer()


def test_calls_that_meet_again_are_one_state() -> None:
    (program,) = (each for each in PROGRAMS if each.name == "retransmission")
    assert solve(load_program(program.text)).engine == "chain (calls that meet again, 194 states)"
