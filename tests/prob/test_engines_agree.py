"""Random programs get equal answers from engines that have nothing in common."""

from __future__ import annotations

import importlib.util
from typing import Any

import pytest
from hypothesis import given

from hagane.tools.prob.claims.checker import load_program
from hagane.tools.prob.engines.engines import ENGINES
from hagane.tools.prob.engines.ledger import Limits, main_unit
from hagane.tools.prob.language.source import PathError, TooLarge

from .programs import QUIET, programs


def answer(text: str, engine: str) -> Any:
    """Return all that an engine says, in a form that compares."""
    program = load_program(text)
    unit = main_unit(program)
    try:
        ledger = ENGINES[engine](program, unit, Limits(runs=20_000))
    except TooLarge:
        raise
    except PathError:
        return "a run goes wrong"
    tables = [ledger.tables.get(site, {}) for site in unit.sites]
    return ledger.result, tables


@pytest.mark.parametrize("engine", ["diagram", "enumerate", "storm"])
def test_random_programs_get_the_same_distribution_from_each_engine(engine: str) -> None:
    if engine == "storm" and importlib.util.find_spec("stormpy") is None:
        pytest.skip("stormpy is not installed")
    compared = 0

    @QUIET
    @given(programs())
    def compare(text: str) -> None:
        nonlocal compared
        try:
            expected = answer(text, engine)
        except TooLarge:
            return
        assert answer(text, "dynamic") == expected
        compared += 1

    compare()
    assert compared >= 200
