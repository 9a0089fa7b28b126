from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from hagane.tools.prob import check, load_program
from hagane.tools.prob.engines.engines import run_unit
from hagane.tools.prob.engines.ledger import main_unit
from hagane.tools.prob.language.source import (
    ProgramError,
    ProgramSyntaxError,
    ProgramTypeError,
)


def distribution(text: str, engine: str = "auto") -> dict[Any, Fraction]:
    program = load_program(text)
    return run_unit(program, main_unit(program), engine).ledger.result


def value(text: str) -> Any:
    (only,) = distribution(text)
    return only


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2 + 3 * 4 - 1", 13),
        ("-7 / 2", -4),
        ("-7 % 2", 1),
        ("7 / -2", -4),
        ("7 % -2", -1),
        ("10 - 2 - 3", 5),
        ("1 + 1 = 2", True),
        ("1 == 2", False),
        ("1 != 2", True),
        ("1 <> 1", False),
        ("not 1 = 2", True),
        ("not false /\\ false", False),
        ("true \\/ false /\\ false", True),
        ("false => false => false", True),
        ("1 < 2 <= 2", True),
        ("1 < 3 <= 2", False),
        ("if 1 < 2 then 3 else 4 + 5", 3),
        ("(if true then 3 else 4) + 5", 8),
        ("let x = 3 in let x = x + 1 in x * x", 16),
        ("(let x = 2 in x) + (let x = 5 in x)", 7),
        ("let x = 1 in (let x = 2 in x) + x", 3),
        ("let (a, b) = (1, (true, 7)) in if b.0 then b.1 else a", 7),
        ("let t = ((1, 2), 3) in t.0.1", 2),
        ("(1, true) = (1, true)", True),
        ("letfun f(x: int, y: int) : int = x - y in f(5, f(3, 1))", 3),
        ("letfun fact(n: int) : int = if n = 0 then 1 else n * fact(n - 1) in fact(10)", 3628800),
        ("let k = 3 in letfun f(x: int) : int = x * k in let k = 100 in f(2)", 6),
        ("letfun f(x:int) : int = letfun g(y:int) : int = x + y in g(10) in f(1)", 11),
        ("letfun pair() : (int, bool) = (1, true) in pair().0", 1),
        ("letfun pair() : int * bool = (1, true) in let (a, _) = pair() in a", 1),
        ("1 // a comment\n + 1 # another\n (* and (a) third *) + 1", 3),
        ("observe true; 4", 4),
        ("let _ = observe(1 < 2) in 4", 4),
        ("observe 1 < 2 in 4", 4),
        ("observe (1 < 2) /\\ true in 4", 4),
        ("if observe(true) then 1 else 2", 1),
        ("choose {1: 5}", 5),
        ("if true then observe(true); 1 else 2", 1),
    ],
)
def test_expressions_mean_what_the_manual_says(text: str, expected: object) -> None:
    assert value(text) == expected
    assert type(value(text)) is type(expected)


def test_draws_have_their_distributions() -> None:
    assert distribution("rand(3, 5)") == dict.fromkeys((3, 4, 5), Fraction(1, 3))
    assert distribution("flip(0.1)") == {True: Fraction(1, 10), False: Fraction(9, 10)}
    assert distribution("choose {1/2: 1, 1/3: 2, 1/6: 1}") == {1: Fraction(2, 3), 2: Fraction(1, 3)}
    assert distribution("let n = rand(1, 2) in rand(0, n)") == {
        0: Fraction(5, 12),
        1: Fraction(5, 12),
        2: Fraction(1, 6),
    }
    assert distribution("let n = rand(1, 3) in flip(n / 4)")[True] == Fraction(1, 2)


def test_both_operands_of_a_connective_are_evaluated() -> None:
    with pytest.raises(ProgramError, match="division by zero"):
        distribution("false /\\ 1 / 0 = 1")
    assert distribution("if false then 1 / 0 else 2") == {2: 1}


def test_observation_conditions_what_follows() -> None:
    text = """
        let a = rand(1, 6) in
        let b = rand(1, 6) in
        observe a + b >= 10 in
        a : {x:int | Prob(x = 6) = 1/2 /\\ E[x] = 16/3}
    """
    (verdict,) = check(load_program(text)).verdicts
    assert verdict.holds, verdict.probabilities


def test_claims_speak_of_other_variables_and_of_conditions() -> None:
    text = """
        let a = rand(1, 6) in
        let b = rand(1, 6) in
        (a + b : {s:int | Prob(s = 7 | a = 3) = 1/6 /\\ Prob(s > a) = 1 /\\ s >= 2
                          /\\ E[s | b = 1] = 9/2})
    """
    (verdict,) = check(load_program(text)).verdicts
    assert verdict.holds
    assert [str(m.value) for m in verdict.probabilities] == ["1/6", "1", "9/2"]


def test_a_variable_outside_prob_is_claimed_for_each_of_its_values() -> None:
    text = "let n = rand(1, 3) in rand(1, n) : {x:int | Prob(x = 1) = 1/n}"
    (verdict,) = check(load_program(text)).verdicts
    assert verdict.holds
    assert verdict.cases == 3


def test_tuples_are_claimed_about_by_pattern_and_by_part() -> None:
    text = """
        ((rand(0, 1), flip(1/4)) : {(n, b):(int, bool) | Prob(n = 1 /\\ b) = 1/8})
        : ({x:int | x >= 0}, {y:bool | Prob(y) = 1/4})
    """
    assert all(verdict.holds for verdict in check(load_program(text)).verdicts)


def test_sum_annotation_takes_the_whole_sum() -> None:
    text = "rand(1, 6) + rand(1, 6) : {x:int | Prob(x = 7) = 1/6}"
    report = check(load_program(text))
    assert report.holds
    assert not report.notices


@pytest.mark.parametrize(
    ("text", "binds_to"),
    [
        ("true /\\ flip(1/2) : {x:bool | Prob(x) = 1/2}", "conjunct 'flip(1/2)'"),
        ("true \\/ flip(1/2) : {x:bool | Prob(x) = 1/2}", "disjunct 'flip(1/2)'"),
        ("true => flip(1/2) : {x:bool | Prob(x) = 1/2}", "consequence 'flip(1/2)'"),
        ("if true then 1 else 2 : {x:int | x = 2}", "branch '2'"),
    ],
)
def test_annotations_that_bind_to_the_last_part_get_a_notice(text: str, binds_to: str) -> None:
    (notice,) = load_program(text).notices
    assert binds_to in notice.message


def test_parentheses_silence_the_notice() -> None:
    assert not load_program("true /\\ (flip(1/2) : {x:bool | Prob(x) = 1/2})").notices


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("let x = in x", "1:9", "expected an expression, got 'in'"),
        ("let x = 3", "1:10", "expected 'in', got the end of the text"),
        ("rand(1)", "1:1", "expected rand(lo, hi), got 1 argument"),
        ("1 +\n  * 2", "2:3", "expected an expression, got '*'"),
        ("1 $ 2", "1:3", "no token begins with '$'"),
        ("1 (* open", "1:3", "this comment is not closed by *)"),
        ("3 : {x:int | x = }", "1:18", "expected an expression, got '}'"),
        ("3 : float", "1:5", "expected a type"),
        ("true \\ false", "1:6", "begins no operator"),
        ("(1, 2", "1:6", "expected ',' or ')'"),
        ("letfun f(x) : int = x in f(1)", "1:11", "expected ':' and the type of 'x'"),
        ("choose {1/2 1}", "1:13", "expected ':' and what is chosen"),
        ("1 2", "1:3", "expected the end of the program or an operator, got '2'"),
    ],
)
def test_syntax_errors_point_at_the_word(text: str, place: str, message: str) -> None:
    with pytest.raises(ProgramSyntaxError) as caught:
        load_program(text, "p.pml")
    shown = str(caught.value)
    assert shown.startswith(f"p.pml:{place}: ")
    assert message in shown
    source, carets = shown.split("\n")[1:]
    column = int(place.partition(":")[2])
    assert carets.split("| ", 1)[1].index("^") == column - 1
    assert text.split("\n")[int(place[0]) - 1] in source


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("x + 1", "1:1", "'x' is not defined here"),
        ("let x = true in x + 1", "1:17", "'+': expected int, got bool"),
        ("if 1 then 2 else 3", "1:4", "the condition of 'if': expected bool, got int"),
        ("if true then 2 else false", "1:21", "the branches of 'if' differ: int and bool"),
        ("1 = true", "1:1", "compares values of one kind, got int and bool"),
        ("3 : bool", "1:5", "the annotation says bool, the expression '3' is int"),
        ("0.5 + 1", "1:1", "got a decimal"),
        ("f(3)", "1:1", "there is no function 'f' here"),
        ("letfun f(x:int) : int = x in f(1, 2)", "1:30", "'f' takes 1 argument, got 2"),
        ("letfun f(x:int) : int = x in f(true)", "1:32", "the argument 'x' of 'f': expected int"),
        ("letfun f(x:int) : bool = x in f(1)", "1:26", "'f' is to return bool"),
        ("letfun f(x:int) : int = x in f", "1:30", "'f' is a function and no value"),
        ("3 : {x:int | Prob(x)}", "1:19", "the event of Prob(…): expected bool, got int"),
        ("3 : {x:int | x + 1}", "1:14", "a claim: expected bool, got int"),
        ("3 : {x:int | Prob(rand(0, 1) = x) = 1}", "1:19", "draws nothing"),
        ("Prob(true) = 1", "1:1", "Prob(…) stands in types only"),
        ("(1, 2).2", "1:1", "it has 2 items, counted from 0"),
        ("let (a, b) = 3 in a", "1:14", "takes a tuple of 2, got int"),
        ("choose {1/2: 1, 1/2: true}", "1:22", "the branches of 'choose' differ"),
    ],
)
def test_type_errors_point_at_the_expression(text: str, place: str, message: str) -> None:
    with pytest.raises(ProgramTypeError) as caught:
        load_program(text, "p.pml")
    assert str(caught.value).startswith(f"p.pml:{place}: ")
    assert message in str(caught.value)


@pytest.mark.long
def test_a_long_program_of_a_thousand_lets_is_read_and_checked() -> None:
    lines = ["let s0 = 0 in"]
    lines += [f"let s{i + 1} = (s{i} + rand(0, 1)) % 7 in" for i in range(1000)]
    result = distribution("\n".join(lines) + "\ns1000")
    assert sum(result.values()) == 1
    assert len(result) == 7


def test_a_chain_of_comparisons_in_a_claim_is_a_conjunction() -> None:
    report = check(load_program("rand(1, 4) : {n:int | 1/5 <= Prob(n = 1) < 3/10 <= 1}"))
    assert report.holds
