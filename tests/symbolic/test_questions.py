"""Questions about sizes: proved, refuted with a counterexample, unknown."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hagane.symbolic import (
    Dim,
    Expr,
    absolute,
    ceildiv,
    evaluate,
    floordiv,
    maximum,
    minimum,
    mod,
    parse_dim,
    symbol,
    written_form,
)
from hagane.symbolic.interpret import compile_terms
from hagane.symbolic.path import PathCondition, Verdict
from hagane.symbolic.questions import Joined, Knowledge

H, W, N, M = map(symbol, "hwnm")


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (H * W, W * H),
        ((H + 1) // 2 - 1, (H - 1) // 2),
        ((H // 2) // 3, H // 6),
        (minimum(H, W) + maximum(H, W), H + W),
        (ceildiv(H, 2), (H + 1) // 2),
        (mod(H, 4), H - 4 * (H // 4)),
        (absolute(H - W), maximum(H, W) - minimum(H, W)),
    ],
)
def test_equal_formulas_are_proved(left: Dim, right: Dim) -> None:
    assert Knowledge().same(left, right).verdict is Verdict.PROVED


@pytest.mark.parametrize(
    ("left", "right"),
    [(N, M), (H // 2 * 2, H), (H, 5), (H * W, H + W), ((H + 3) // 4, H // 4 + 1)],
)
def test_formulas_that_differ_somewhere_are_refuted_with_sizes(left: Dim, right: Dim) -> None:
    found = Knowledge(sample={"n": 4, "m": 4, "h": 8, "w": 8}).same(left, right)
    assert found.verdict is Verdict.REFUTED
    assert evaluate(left, found.counterexample) != evaluate(right, found.counterexample)


def test_what_no_input_determines_is_neither_proved_nor_refuted() -> None:
    knowledge = Knowledge(invented={"n"})
    assert knowledge.same(N, 5).verdict is Verdict.UNKNOWN
    assert knowledge.same(N + 1, N).verdict is Verdict.REFUTED


def test_a_path_decides_what_holds_on_it_only() -> None:
    knowledge = Knowledge()
    even = knowledge.equal(mod(H, 2), 0)
    with knowledge.along(PathCondition().taking(even)):
        assert knowledge.same(H // 2 * 2, H).verdict is Verdict.PROVED
    assert knowledge.same(H // 2 * 2, H).verdict is Verdict.REFUTED


def test_a_joined_size_is_one_of_two() -> None:
    knowledge = Knowledge(sample={"h": 8})
    knowledge.joined["j"] = Joined(knowledge.less(4, H), H // 2, H)
    assert knowledge.ask(knowledge.less(symbol("j"), H, strict=False)).verdict is Verdict.PROVED
    assert knowledge.same(symbol("j"), H).verdict is Verdict.REFUTED
    assert knowledge.value_of(symbol("j")) == 4
    assert knowledge.value_of(symbol("j") + N) is None


def test_hard_questions_go_to_the_solver_and_come_back_in_time() -> None:
    knowledge = Knowledge(seconds=1.0)
    found = knowledge.same(H * H * H + W * W * W, 33 * N * N * N)
    assert found.verdict in (Verdict.REFUTED, Verdict.UNKNOWN)


_SIZES = st.fixed_dictionaries({name: st.integers(1, 40) for name in "hw"})


@st.composite
def _formulas(draw: st.DrawFn, depth: int = 3) -> Dim:
    if depth == 0 or draw(st.booleans()):
        return draw(st.sampled_from([H, W, 1, 2, 3, 7]))
    left, right = draw(_formulas(depth - 1)), draw(_formulas(depth - 1))
    number = draw(st.integers(1, 6))
    return draw(
        st.sampled_from(
            [left + right, left * right, left - right, floordiv(left, number),
             ceildiv(left, number), mod(left, number), minimum(left, right), maximum(left, right)]
        )
    )  # fmt: skip


@settings(max_examples=200, deadline=None)
@given(_formulas(), _SIZES)
def test_terms_and_printed_forms_keep_the_number(formula: Dim, sizes: dict[str, int]) -> None:
    expected = evaluate(formula, sizes)
    assert compile_terms((Knowledge().term(formula),))(sizes)[0] == expected
    assert evaluate(parse_dim(str(formula)), sizes) == expected
    if isinstance(formula, Expr):
        text = written_form(formula)
        assert eval(_python(text), {"ceil": lambda x: -int(-x // 1), **sizes}) in (
            expected,
            pytest.approx(expected),
        )


def _python(text: str) -> str:
    return text.replace("max(", "max(").replace("min(", "min(")


@settings(max_examples=150, deadline=None)
@given(_formulas(), _formulas())
def test_answers_are_right_on_all_small_sizes(left: Dim, right: Dim) -> None:
    found = Knowledge(seconds=0.5).same(left, right)
    cases = [{"h": h, "w": w} for h in range(1, 9) for w in range(1, 9)]
    equal = [evaluate(left, case) == evaluate(right, case) for case in cases]
    if found.verdict is Verdict.PROVED:
        assert all(equal)
    if found.verdict is Verdict.REFUTED and found.counterexample:
        sizes = {"h": 1, "w": 1, **found.counterexample}
        assert evaluate(left, sizes) != evaluate(right, sizes)
