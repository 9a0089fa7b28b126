"""Programs with control flow and their graphs agree on every path."""

from __future__ import annotations

import inspect

import pytest

from .control import (
    numpy_dynamic,
    numpy_graphs,
    numpy_numbers,
    numpy_sorting,
    torch_containers,
    torch_decoding,
    torch_recurrent,
)
from .control.program import Program
from .control.running import compare, lines_not_run

pytestmark = pytest.mark.filterwarnings("ignore")
MODULES = (
    numpy_sorting, numpy_dynamic, numpy_graphs, numpy_numbers, torch_decoding, torch_recurrent,
    torch_containers,
)  # fmt: skip
PROGRAMS = [program for module in MODULES for program in module.PROGRAMS]


def test_there_are_at_least_eighty_programs() -> None:
    assert len(PROGRAMS) >= 80
    assert len({program.name for program in PROGRAMS}) == len(PROGRAMS)


@pytest.mark.parametrize("program", PROGRAMS[::4], ids=lambda program: program.name)
def test_a_program_and_its_graph_agree(program: Program) -> None:
    assert compare(program, program.cases) == ""


@pytest.mark.long
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_a_program_and_its_compiled_graph_agree(program: Program) -> None:
    assert compare(program, program.cases, engine=True) == ""


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_the_cases_of_a_program_run_all_its_lines(program: Program) -> None:
    first = inspect.unwrap(program.code).__code__.co_firstlineno
    assert {line - first for line in lines_not_run(program)} == set()
