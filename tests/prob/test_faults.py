from __future__ import annotations

import pytest

from hagane.tools.prob import Limits, check, load_program
from hagane.tools.prob.language.source import (
    BadDistribution,
    DivisionByZero,
    ImpossibleCondition,
    PathError,
    ProgramTypeError,
    TooLarge,
    UnboundedRecursion,
)

ENGINES = ("dynamic", "diagram", "enumerate")


def fault(text: str, engine: str = "dynamic") -> PathError:
    with pytest.raises(PathError) as caught:
        check(load_program(text, "p.pml"), engine)
    return caught.value


@pytest.mark.parametrize("engine", ENGINES)
def test_division_by_zero_on_a_possible_path_names_values(engine: str) -> None:
    error = fault("let x = rand(0, 3) in\n10 / (x - 2)", engine)
    assert isinstance(error, DivisionByZero)
    assert isinstance(error, ZeroDivisionError)
    assert (error.line, error.column) == (2, 1)
    assert "'(x - 2)' is 0 with x = 2" in str(error)


@pytest.mark.parametrize("engine", ENGINES)
def test_division_by_zero_names_the_run(engine: str) -> None:
    error = fault("let a = rand(0, 2) in\nlet b = flip(1/2) in\nif b then 1 % a else 0", engine)
    assert "a run that gets there: rand(0, 2) = 0 (line 1), flip(1/2) = true (line 2)" in str(error)


@pytest.mark.parametrize("engine", ENGINES)
def test_division_by_zero_inside_a_function_names_the_run(engine: str) -> None:
    text = """letfun f(n: int) : {y:int | Prob(y = 0) <= 1/2} = 10 / (rand(0, n) - 1) in
              (f(2)) : {z:int | z >= 0 - 100}"""
    message = str(fault(text, engine))
    assert "'(rand(0, n) - 1)' is 0" in message
    assert "a run that gets there: rand(0, n) = 1 (line 1)" in message


@pytest.mark.parametrize("engine", ENGINES)
def test_division_by_zero_on_an_impossible_path_is_no_error(engine: str) -> None:
    text = "let x = rand(0, 3) in observe x > 0; (10 / x : {y:int | y >= 3})"
    assert check(load_program(text), engine).holds
    text = "let x = rand(0, 3) in ((if x > 0 then 10 / x else 3) : {y:int | y >= 3})"
    assert check(load_program(text), engine).holds


@pytest.mark.parametrize("engine", ENGINES)
def test_unbounded_recursion_is_named(engine: str) -> None:
    error = fault("letfun f(x:int) : int = if flip(1/2) then 0 else f(x) in f(3)", engine)
    assert isinstance(error, UnboundedRecursion)
    assert "f(3) is reached again from itself" in str(error)


def test_a_cycle_through_several_arguments_is_found() -> None:
    error = fault("letfun f(x:int) : int = if x = 9 then 0 else f((x + 1) % 3) in f(rand(0, 1))")
    assert "unbounded recursion" in str(error)


def test_recursion_that_only_grows_ends_at_the_limit() -> None:
    error = fault("letfun f(x:int) : int = if flip(1/2) then 0 else f(x + 1) in f(0)")
    assert "5000 calls deep, the limit, and calls f(5000)" in str(error)


def test_declared_depth_bounds_recursion() -> None:
    text = "letfun f(x:int) : int depth {} = if x = 0 then 0 else f(x - 1) in f(10)"
    assert check(load_program(text.format(11))).holds
    assert "10 calls deep, its declared depth" in str(fault(text.format(10)))


@pytest.mark.parametrize("engine", ENGINES)
def test_a_measure_has_to_fall(engine: str) -> None:
    text = "letfun f(x:int) : int measure x = if x <= 0 then 0 else f(x {}) in f(3)"
    assert check(load_program(text.format("- 1")), engine).holds
    error = fault(text.format("+ 0"), engine)
    assert "the measure 'x' of 'f' does not fall: it is 3, and 3 in the call f(3)" in str(error)
    error = fault(text.format("- 2"), engine)
    assert "becomes negative: it is 1, and -1 in the call f(-1)" in str(error)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("let n = rand(0, 2) in rand(1, n)", "rand(1, 0) is empty"),
        ("choose {1/2: 1, 1/3: 2}", "the probabilities sum to 5/6, expected 1"),
        ("choose {3/2: 1, -1/2: 2}", "the probability '-1/2' is -1/2, below 0"),
        ("let n = rand(0, 3) in flip(n / 2)", "flip(3/2): a probability lies between 0 and 1"),
    ],
)
@pytest.mark.parametrize("engine", ENGINES)
def test_distributions_that_are_none_are_named(engine: str, text: str, message: str) -> None:
    error = fault(text, engine)
    assert isinstance(error, BadDistribution)
    assert message in str(error)


def test_conditioning_on_the_impossible_names_a_witness() -> None:
    error = fault("rand(0, 5) : {y:int | Prob(y = 3 | y > 5) = 1/3}")
    assert isinstance(error, ImpossibleCondition)
    assert "the condition 'y > 5' has probability zero" in str(error)
    assert "for instance where the value = 0 (probability 1/6)" in str(error)


def test_the_only_outcome_is_named_as_such() -> None:
    error = fault("let n = 3 in n : {y:int | Prob(y = 3 | y > n) = 1}")
    assert "it is false in the only outcome, where n = 3, the value = 3 (probability 1)" in str(
        error
    )


@pytest.mark.parametrize("engine", ENGINES)
def test_an_observation_that_never_holds_names_a_rejected_run(engine: str) -> None:
    error = fault("let x = rand(0, 5) in observe x > 7 in x : {y:int | y = 8}", engine)
    assert isinstance(error, ImpossibleCondition)
    assert "no run meets 'x > 7'" in str(error)
    assert "a run that is rejected: rand(0, 5) = 0 (line 1)" in str(error)


def test_a_verdict_that_would_be_vacuous_is_an_error() -> None:
    text = "if 1 < 2 then 3 else (4 : {x:int | Prob(x = 5) = 1})"
    with pytest.raises(ProgramTypeError, match="no run reaches '4'"):
        check(load_program(text))
    text = "letfun f(n:int) : {x:int | x >= n} = n in 3"
    with pytest.raises(ProgramTypeError, match="its parameters have no bounds"):
        check(load_program(text))


def test_each_engine_says_when_it_is_beyond_its_limits() -> None:
    text = "let a = rand(1, 100) in let b = rand(1, 100) in let c = rand(1, 9) in a * b * c + a - b"
    program = load_program(text)
    for engine in ENGINES:
        with pytest.raises(TooLarge, match="needs more than"):
            check(program, engine, Limits(states=1000, nodes=1000, runs=1000))


def test_a_range_of_a_billion_is_refused_at_once() -> None:
    text = "let x = rand(0, 1000000000) in x % 2 : {y:int | Prob(y = 0) <= 1}"
    with pytest.raises(TooLarge, match="shorten ranges, or keep fewer variables alive"):
        check(load_program(text))


def test_the_engine_is_chosen_by_size_and_said() -> None:
    assert check(load_program("flip(1/2) : bool")).verdicts[0].engine == "enumerate"
    (verdict,) = check(load_program("rand(1, 1000) + rand(1, 1000) : int")).verdicts
    assert verdict.engine == "dynamic"
    assert "up to 1000000 runs" in verdict.reason
    # Sixteen independent pairs, all used twice and alive at once: 4^16 rows, but a small diagram.
    lets = "\n".join(f"let a{i} = flip(1/3) in let b{i} = flip(1/3) in" for i in range(16))
    event = " /\\ ".join(f"(a{i} \\/ b{i}) /\\ not (a{i} /\\ b{i})" for i in range(16))
    text = f"{lets} ({event}) : {{x:bool | Prob(x) <= 1/100}}"
    (verdict,) = check(load_program(text), limits=Limits(states=10_000)).verdicts
    assert verdict.engine == "diagram"
    assert "dynamic programming needs more than 10,000 rows" in verdict.reason
    from fractions import Fraction

    assert verdict.probabilities[0].value == Fraction(4, 9) ** 16
