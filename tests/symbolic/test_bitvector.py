from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hagane.symbolic import bitvector as bv
from hagane.symbolic import logic
from hagane.symbolic.concolic import Concolic
from hagane.symbolic.interpret import Substitution, compile_terms, evaluate
from hagane.symbolic.path import PathCondition, Verdict, prove
from hagane.symbolic.smt import Solver
from hagane.symbolic.term import BOOL, FALSE, INT, TRUE, Term, bits, const, variable

z3 = pytest.importorskip("z3", reason="z3-solver is not installed (extra 'check')")

Operation = Callable[..., Term]
WIDTH = 6
NAMES = ("a", "b", "c")


def _unsigned(operation: Operation, **more: bool) -> Operation:
    return lambda a, b: operation(a, b, signed=False, **more)


def _signed(operation: Operation, **more: bool) -> Operation:
    return lambda a, b: operation(a, b, signed=True, **more)


BINARY: list[Operation] = [
    bv.add, bv.subtract, bv.multiply, bv.bit_and, bv.bit_or, bv.bit_xor, bv.shift_left,
    *(wrap(op) for op in (bv.shift_right, bv.divide, bv.remainder)
      for wrap in (_signed, _unsigned)),
]  # fmt: skip


def random_term(seed: int) -> Term:
    """Return a term of ``WIDTH`` bits over ``NAMES``."""
    draw = random.Random(seed)

    def number(depth: int) -> Term:
        kind = draw.randrange(7) if depth else draw.randrange(2)
        if kind == 0:
            return variable(draw.choice(NAMES), bits(WIDTH))
        if kind == 1:
            return bv.value(draw.getrandbits(WIDTH), WIDTH)
        a, b, at = number(depth - 1), number(depth - 1), draw.randrange(1, WIDTH)
        if kind == 2:
            return bv.concat((bv.extract(a, at - 1, 0), bv.extract(b, WIDTH - 1, at)))
        if kind == 3:
            return bv.resize(bv.extract(a, at - 1, 0), WIDTH, signed=draw.random() < 0.5)
        if kind == 4:
            return logic.choose(decision(depth - 1), a, b)
        return bv.invert(a) if kind == 5 else draw.choice(BINARY)(a, b)

    def decision(depth: int) -> Term:
        kind = draw.randrange(5) if depth else draw.randrange(2)
        if kind == 0:
            return logic.equal(number(depth), number(depth))
        if kind == 1:
            signed, strict = draw.random() < 0.5, draw.random() < 0.5
            return logic.less(number(depth), number(depth), signed=signed, strict=strict)
        a, b = decision(depth - 1), decision(depth - 1)
        return (logic.negate(a), logic.both(a, b), logic.either(a, b))[kind - 2]

    return number(4)


seeds = st.integers(0, 2**32)
numbers = st.fixed_dictionaries({name: st.integers(0, 2**WIDTH - 1) for name in NAMES})


@settings(max_examples=150, deadline=None)
@given(seeds, numbers)
def test_evaluation_compilation_and_z3_agree_on_random_terms(
    seed: int, assignment: dict[str, int]
) -> None:
    term = random_term(seed)
    expected = evaluate(term, assignment)
    assert compile_terms([term])(assignment) == (expected,)
    solver = Solver()
    for name, number in assignment.items():
        solver.add(logic.equal(variable(name, bits(WIDTH)), bv.value(number, WIDTH)))
    claim = logic.equal(term, bv.value(expected, WIDTH))
    assert prove(solver, PathCondition(), claim).verdict is Verdict.PROVED


@settings(max_examples=150, deadline=None)
@given(seeds, numbers)
def test_substituting_numbers_is_evaluating(seed: int, assignment: dict[str, int]) -> None:
    term = random_term(seed)
    terms = {variable(n, bits(WIDTH)): bv.value(v, WIDTH) for n, v in assignment.items()}
    assert Substitution(terms)(term) is bv.value(evaluate(term, assignment), WIDTH)


def test_equal_terms_are_one_object() -> None:
    a, b = variable("a", bits(8)), variable("b", bits(8))
    assert bv.add(a, b) is bv.add(a, b)
    assert logic.both(TRUE, logic.equal(a, b)) is logic.equal(a, b)
    assert logic.both(logic.equal(a, bv.value(3, 8)), logic.equal(a, bv.value(4, 8))) is FALSE
    joined = bv.concat((bv.extract(a, 7, 4), bv.extract(a, 3, 0)))
    assert joined is a


def test_a_vector_has_at_least_one_bit() -> None:
    with pytest.raises(ValueError, match="at least one bit, got a width of 0"):
        bits(0)


def test_integers_and_bits_get_the_three_answers() -> None:
    n, m = variable("n", INT), variable("m", INT)
    path = PathCondition().taking(logic.less(const(0, INT), n)).taking(logic.equal(m, n))
    solver = Solver()
    above = logic.less(const(0, INT), m)
    assert prove(solver, path, above).verdict is Verdict.PROVED
    refuted = prove(solver, path, logic.less(m, const(5, INT)))
    assert refuted.verdict is Verdict.REFUTED
    assert refuted.counterexample["n"] == refuted.counterexample["m"] >= 5


def test_a_question_beyond_the_time_limit_is_unknown() -> None:
    a, b = variable("x", bits(64)), variable("y", bits(64))
    product = bv.multiply(a, b)
    claim = logic.negate(logic.equal(product, bv.value(0xDEADBEEFCAFEF00D, 64)))
    hard = logic.both(
        logic.less(bv.value(3, 64), a), logic.less(bv.value(3, 64), b),
        logic.less(a, bv.value(1 << 32, 64)), logic.less(b, bv.value(1 << 32, 64)),
    )  # fmt: skip
    finding = prove(Solver(), PathCondition((hard,)), claim, seconds=0.05)
    assert finding.verdict is Verdict.UNKNOWN
    assert finding.reason


def test_a_path_is_recorded_and_turned() -> None:
    x = Concolic.unknown("x", bits(8), 7)
    is_seven = logic.equal(x.term, bv.value(7, 8))
    taken, path = Concolic.run(is_seven, {"x": 7}).decide(PathCondition())
    assert taken
    assert path.term is is_seven
    assert path.turning(0).term is logic.negate(is_seven)
    with pytest.raises(ValueError, match="needs a number to decide"):
        Concolic(variable("p", BOOL)).decide(path)
