"""Functions that take functions."""

from __future__ import annotations

from fractions import Fraction

import pytest

from hagane import prob
from hagane.tools.prob.language.source import ProgramTypeError

TWICE = "letfun twice(f: (x: int) -> int, n: int) : int = f(f(n)) in "
STEP = "letfun step(n: int) : int = n + rand(0, 1) in "


def distribution(text: str) -> dict[object, object]:
    return dict(prob.solve(prob.load_program(text)).distribution)


def test_a_function_is_made_for_each_function_that_it_is_given() -> None:
    text = TWICE + STEP + "letfun same(n: int) : int = n in (twice(step, 3), twice(same, 3))"
    assert distribution(text) == {
        (3, 3): Fraction(1, 4),
        (4, 3): Fraction(1, 2),
        (5, 3): Fraction(1, 4),
    }


def test_functions_are_handed_on_and_call_themselves() -> None:
    text = (
        STEP + "letfun times(f: (x: int) -> int, k: int, n: int) : int ="
        " if k = 0 then n else times(f, k - 1, f(n)) in"
        " letfun thrice(g: (x: int) -> int, n: int) : int = times(g, 3, n) in thrice(step, 0)"
    )
    assert distribution(text) == {n: Fraction((1, 3, 3, 1)[n], 8) for n in range(4)}


def test_a_claim_is_made_of_the_result() -> None:
    text = TWICE + STEP + "twice(step, 0) : {n:int | Prob(n = 1) = 1/2}"
    assert prob.check(prob.load_program(text)).holds


def test_what_a_function_takes_from_around_it_goes_along() -> None:
    text = TWICE + "let k = rand(1, 2) in letfun add(n: int) : int = n + k in twice(add, 0)"
    assert distribution(text) == {2: Fraction(1, 2), 4: Fraction(1, 2)}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (TWICE + "twice(3, 4)", "expected the name of a function"),
        (TWICE + "twice(twice, 4)", "one that takes no functions"),
        (TWICE + "letfun odd(n: int) : bool = n % 2 = 1 in twice(odd, 1)", r"is \(int\) -> bool"),
        (TWICE + STEP + "twice(step)", "takes 2 arguments, got 1"),
        (
            "letfun f(g: (x: {n:int | n > 0}) -> int) : int = g(1) in"
            " letfun h(n: int) : int = n in f(h)",
            "has bare types",
        ),
    ],
)
def test_what_is_no_function_of_the_kind_is_named(text: str, message: str) -> None:
    with pytest.raises(ProgramTypeError, match=message):
        prob.load_program(text)
