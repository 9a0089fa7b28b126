"""The exported model, read back from its text, says what the checker says."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given

from hagane.tools.prob import Limits, check, export_prism, load_program
from hagane.tools.prob.claims.judge import judge
from hagane.tools.prob.claims.units import visit_units
from hagane.tools.prob.engines.enumeration import run_enumeration
from hagane.tools.prob.engines.ledger import Ledger, Unit
from hagane.tools.prob.language.program import Program
from hagane.tools.prob.language.source import DivisionByZero, PathError, TooLarge

from .prism_reader import broken, measured, read_model
from .programs import QUIET, programs
from .test_examples import PROGRAMS, load

SHIFT = """letfun shift(n: {n:int | 0 <= n <= 2}) : {y:int | E[y] = 0 - n} = rand(-2, 2) - n in
let n = rand(1, 2) in
observe n + rand(0, 3) > 1;
((shift(n) - 3) : {x:int | E[x | x != -4] <= n /\\ Prob(x <= -4) >= 1/7 /\\ x < -3})
"""


def values_of(program: Program) -> list[Fraction]:
    """Return what each Prob and E of each unit is by enumeration."""
    found: list[Fraction] = []

    def visit(unit: Unit, exhaustive: bool) -> Ledger:
        ledger = run_enumeration(program, unit, Limits(runs=20_000))
        for site in unit.sites:
            for judgement in judge(
                program.source, site.claim, ledger.tables.get(site, {}), unit.values
            ):
                found.extend(item.value for item in judgement.measured)
        return ledger

    visit_units(program, visit)
    return found


def measures(program: Program) -> list[Fraction]:
    exported = export_prism(program)
    return list(measured(exported, read_model(exported.text).ask))


def test_the_main_expression_alone_begins_in_state_0() -> None:
    model = export_prism(load_program("rand(0, 5) : {x:int | Prob(x % 2 = 0) = 1/2}"))
    assert "s : [0..12] init 0;" in model.text
    assert model.properties.splitlines() == [
        '// the main expression: from label "unit0"',
        "// line 1: 'rand(0, 5)' : {x:int | Prob(x % 2 = 0) = 1/2}",
        "// Prob(x % 2 = 0) is the first over the second",
        'P=? [ F "claim0_event0" ];',
        'P=? [ F "claim0_given0" ];',
    ]


def test_functions_are_parts_for_each_argument_with_properties_of_their_own() -> None:
    model = export_prism(load_program(SHIFT))
    assert "endmodule\n\ninit s=0 | s=" in model.text
    for n in range(3):
        assert f"// 'shift' with n = {n}: from label \"unit{n + 1}\"" in model.properties
    assert 'filter(min, R{"claim3_gain0"}=? [ F "end" | "rejected" ], "unit1");' in (
        model.properties
    )


def test_values_of_functions_expectations_and_conditions_are_those_of_the_checker() -> None:
    program = load_program(SHIFT)
    assert measures(program) == values_of(program)
    assert measures(program)[-3:] == [0, -1, -2]


def test_what_is_claimed_of_single_values_is_a_label_to_be_avoided() -> None:
    exported = export_prism(load_program("rand(0, 5) : {x:int | x >= 1 /\\ x < 9}"))
    model = read_model(exported.text)
    assert list(broken(exported, model.ask)) == [Fraction(1, 6), 0]


def test_claims_are_asked_for_each_value_of_the_variables_they_fix() -> None:
    program = load_program("let n = rand(1, 3) in rand(1, n) : {x:int | Prob(x = 1) = 1/n}")
    assert measures(program) == [1, Fraction(1, 2), Fraction(1, 3)]


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_exported_examples_have_the_values_of_their_verdicts(path: Path) -> None:
    program = load(path)
    exported = export_prism(program)
    model = read_model(exported.text)
    assert set(model.steps) == set(range(len(model.steps)))
    verdict = check(program).verdicts[-1]
    values = list(measured(exported, model.ask))
    count = len(verdict.probabilities)
    assert values[:count] == [item.value for item in verdict.probabilities]


@pytest.mark.long
def test_exported_random_programs_have_the_values_of_enumeration() -> None:
    compared = 0

    @QUIET
    @given(programs(typed=True))
    def compare(text: str) -> None:
        nonlocal compared
        program = load_program(text)
        try:
            expected = values_of(program)
        except (PathError, TooLarge):
            return
        exported = export_prism(program)
        assert list(measured(exported, read_model(exported.text).ask)) == expected
        compared += 1

    compare()
    assert compared >= 100


def test_a_claim_that_divides_by_zero_is_an_error_of_the_export_too() -> None:
    program = load_program("let n = rand(0, 1) in 3 : {x:int | Prob(x / n = 3) > 0}")
    with pytest.raises(DivisionByZero, match="'n' is 0 where n = 0, the value = 3"):
        export_prism(program)


def test_a_program_with_too_many_states_is_refused_with_a_remedy() -> None:
    program = load_program(SHIFT)
    with pytest.raises(TooLarge, match="'shift' with n = 1 is one of many; bound the parameters"):
        export_prism(program, Limits(states=45))
