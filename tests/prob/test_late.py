from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given

from hagane.tools.prob import Limits, check, export_prism, load_program
from hagane.tools.prob.engines.enumeration import run_enumeration
from hagane.tools.prob.engines.late import late
from hagane.tools.prob.engines.ledger import Unit, main_unit
from hagane.tools.prob.language.program import walk
from hagane.tools.prob.language.source import PathError, TooLarge
from hagane.tools.prob.language.syntax import Let

from .programs import QUIET, programs


def dice(count: int) -> str:
    lets = "".join(f"let d{index} = rand(1, 6) in\n" for index in range(count))
    total = " + ".join(f"d{index}" for index in range(count))
    return f"{lets}({total}) : {{s:int | Prob(s = {count}) > 0}}"


def lets_of(text: str) -> list[str]:
    moved = late(load_program(text).main)
    return [node.name for node in walk(moved) if isinstance(node, Let)]


def test_dice_drawn_one_after_the_other_need_their_partial_sums_only() -> None:
    program = load_program(dice(30))
    (verdict,) = check(program, "dynamic", Limits(states=1_000)).verdicts
    assert verdict.probabilities[0].value == Fraction(1, 6**30)


def test_the_chain_of_seven_dice_has_hundreds_of_states_and_no_hundred_thousands() -> None:
    steps = export_prism(load_program(dice(7))).text.count("  [] s=")
    # Partial sums: 1 + 6 + 11 + 16 + 21 + 26 + 31 draws, 36 sums claimed and 36 ends.
    assert steps == 1 + 6 + 11 + 16 + 21 + 26 + 31 + 36 + 36


@pytest.mark.parametrize(
    "text",
    [
        "let d = rand(1, 6) in d + d",
        "let d = rand(1, 6) in (flip(1/2) : {b:bool | Prob(b /\\ d > 3) = 1/4})",
        "let n = rand(1, 3) in flip(n / 4)",
        "let n = rand(1, 3) in choose {n / 4: 1, 1 - n / 4: 2}",
        "let k = rand(1, 3) in letfun f(x: int) : int = x + k in f(1)",
        "letfun f(x: int) : int = x in let d = f(rand(1, 3)) in d + 1",
        "let d = observe(flip(1/2)) in if d then 1 else 2",
        "let d = 10 / rand(1, 3) in d + 1",
        "let n = rand(1, 3) in let d = rand(n, 3) in d + n",
        "let d = (rand(1, 3) : {x:int | Prob(x = 1) = 1/3}) in d + 1",
    ],
)
def test_what_is_used_twice_or_may_fail_or_is_spoken_of_stays(text: str) -> None:
    assert lets_of(text)


def test_what_is_used_once_moves_and_takes_what_it_holds_along() -> None:
    text = "let a = rand(1, 6) in let b = (a + flip(1/2).x, 3) in b.0"
    text = text.replace("flip(1/2).x", "(if flip(1/2) then 7 / 2 else 0)")
    assert not lets_of(text)


def test_a_moved_draw_that_an_error_needs_is_told_by_its_name() -> None:
    text = "let a = rand(0, 2) in\nlet b = flip(1/2) in\nif b then 1 % a else 0"
    for engine in ("dynamic", "enumerate"):
        with pytest.raises(PathError, match="'a' is 0 with a = 0, b = true"):
            check(load_program(text), engine)
    with pytest.raises(PathError, match="'a' is 0 with a = 0"):
        export_prism(load_program(text))


def test_random_programs_mean_the_same_with_draws_moved() -> None:
    compared = moved = 0

    @QUIET
    @given(programs())
    def compare(text: str) -> None:
        nonlocal compared, moved
        program = load_program(text)
        limits = Limits(runs=20_000)
        try:
            expected = run_enumeration(program, main_unit(program), limits)
            changed = late(program.main)
            found = run_enumeration(program, Unit(changed), limits)
        except TooLarge:
            return
        except PathError:
            with pytest.raises(PathError):
                run_enumeration(program, Unit(late(program.main)), limits)
            return
        assert found.result == expected.result
        assert found.tables == expected.tables
        compared += 1
        moved += sum(1 for _ in walk(changed)) < sum(1 for _ in walk(program.main))

    compare()
    assert compared >= 100
    assert moved >= 30


COUNT = "(if flip(1/3) then 1 else 0)"


@pytest.mark.parametrize(
    ("step", "rows"),
    [
        (f"{COUNT} + x", 130),
        (f"x + {COUNT}", 130),
        (f"{COUNT} - x", 130),
        (f"{COUNT} + (2 * x) % 7", 28),
        (f"1 - ({COUNT} + 3 * x) % 5", 20),
    ],
)
def test_a_chain_keeps_its_partial_result_whatever_the_side_of_its_draws(
    step: str, rows: int
) -> None:
    lets = "".join(f"let x{i + 1} = {step.replace('x', f'x{i}')} in " for i in range(60))
    (verdict,) = check(
        load_program(f"(let x0 = 0 in {lets}x60) : {{v:int | Prob(v = v) = 1}}"),
        "dynamic",
        Limits(states=rows),
    ).verdicts
    assert verdict.holds


@pytest.mark.parametrize("operator", ["+", "-", "*", "<", "<=", ">", ">=", "=", "!="])
def test_operands_that_change_places_mean_the_same(operator: str) -> None:
    program = load_program(f"rand(-1, 2) {operator} (rand(1, 2) * (rand(0, 2) - rand(0, 1)))")
    turned = late(program.main)
    assert turned != program.main
    limits = Limits()
    plain = run_enumeration(program, Unit(program.main), limits)
    assert run_enumeration(program, Unit(turned), limits).result == plain.result
