from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hagane.symbolic import (
    Dim,
    ceildiv,
    definitely_different,
    definitely_equal,
    evaluate,
    floordiv,
    line_in,
    lower_bound,
    maximum,
    minimum,
    number_of,
    parse_dim,
    python_text,
    symbol,
    symbols_of,
)
from tests.strategies import dims, sizes

n, h, w = symbol("n"), symbol("h"), symbol("w")


@given(dims, dims, sizes)
def test_arithmetic_agrees_with_integers(a: Dim, b: Dim, at: dict[str, int]) -> None:
    x, y = evaluate(a, at), evaluate(b, at)
    assert isinstance(x, int)
    assert isinstance(y, int)
    assert evaluate(a + b, at) == x + y
    assert evaluate(a - b, at) == x - y
    assert evaluate(a * b, at) == x * y
    assert evaluate(minimum(a, b), at) == min(x, y)
    assert evaluate(maximum(a, b), at) == max(x, y)


@given(dims, st.integers(-9, 9).filter(bool), sizes)
def test_division_agrees_with_integers(a: Dim, d: int, at: dict[str, int]) -> None:
    x = evaluate(a, at)
    assert isinstance(x, int)
    assert evaluate(a // d, at) == x // d
    assert evaluate(a % d, at) == x % d
    assert evaluate(ceildiv(a, d), at) == -(-x // d)


@given(dims, dims, st.integers(-3, 3).filter(bool), sizes)
def test_division_by_sizes_agrees_with_integers(
    a: Dim, b: Dim, times: int, at: dict[str, int]
) -> None:
    for top, bottom in ((a, b), (a * b, b * times), (a * times, b), (b, b * times)):
        x, y = evaluate(top, at), evaluate(bottom, at)
        assert isinstance(x, int)
        assert isinstance(y, int)
        if y:
            assert evaluate(top // bottom, at) == x // y
            assert evaluate(top % bottom, at) == x % y
            assert evaluate(ceildiv(top, bottom), at) == -(-x // y)


def test_a_part_of_a_divisor_is_its_own_remainder() -> None:
    assert [n % (2 * n), (3 * n) % (2 * n), (4 * n) % (2 * n)] == [n, n, 0]


@given(dims, sizes)
def test_the_number_of_a_value_is_what_it_evaluates_to(a: Dim, at: dict[str, int]) -> None:
    assert number_of(a, at) == evaluate(a, at)
    names = {name: f"at[{name!r}]" for name in at}
    assert eval(python_text(a, names), {"at": at}) == evaluate(a, at)
    assert number_of(maximum(a, 3) % 7, at) == evaluate(maximum(a, 3) % 7, at)
    for name in symbols_of(a):
        with pytest.raises(KeyError, match=name):
            number_of(a, {key: size for key, size in at.items() if key != name})


@given(dims)
def test_what_is_printed_is_parsed_back(a: Dim) -> None:
    assert parse_dim(str(a)) == a


def test_a_negated_quotient_is_printed_in_parentheses() -> None:
    quotient = -floordiv(symbol("batch"), 2)
    assert str(quotient) == "-(batch//2)"
    assert parse_dim(str(quotient)) == quotient


@given(dims, dims, sizes)
def test_equal_and_different_are_never_wrong(a: Dim, b: Dim, at: dict[str, int]) -> None:
    same = evaluate(a, at) == evaluate(b, at)
    assert not (definitely_equal(a, b) and not same)
    assert not (definitely_different(a, b) and same)


@given(dims, dims, st.integers(1, 9), sizes)
def test_no_value_lies_below_its_bound(a: Dim, b: Dim, d: int, at: dict[str, int]) -> None:
    p, q, length = symbol("batch"), symbol("height"), 4 * ((a * a + 3) // 4) + 1
    at = {name: size + 1 for name, size in at.items()}
    for value in (
        a - b // d, length - b % length, length - minimum(a, b), p * q - a % (p + q), p - a % p,
        p - minimum(p, a % q) - b // d,
    ):  # fmt: skip
        lowest, found = lower_bound(value), evaluate(value, at)
        assert lowest is None or found >= lowest


@given(dims, sizes)
def test_symbols_are_all_that_a_value_depends_on(a: Dim, at: dict[str, int]) -> None:
    used = {name: at[name] for name in symbols_of(a)}
    assert evaluate(a, used) == evaluate(a, at)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ((h + 2 - 3) // 2 + 1, "(h + 1)//2"),
        ((4 * n + 3) // 4, "n"),
        (n // 2 // 3, "n//6"),
        (h - h % 32, "32*(h//32)"),
        (n * h // n, "h"),
        ((n * h * w) // (n * h), "w"),
        (-n + 5, "5 - n"),
        (maximum(n, 0), "n"),
        (minimum(h, h + 2), "h"),
        (maximum(minimum(h, 512), h), "h"),
        (minimum(h, maximum(n, h)), "h"),
        (minimum(-2 % n, n), "-2 % n"),
        (maximum(n - 2 % n, 0) + 2 % n, "n"),
        (maximum(h - h // 2, 0) + h // 2, "h"),
        (maximum(n - minimum(n, h), 0) + minimum(n, h), "n"),
    ],
)
def test_normal_forms(value: Dim, text: str) -> None:
    assert str(value) == text


def test_a_name_that_is_no_expression_stays_one_name() -> None:
    assert str(parse_dim("batch.1")) == "batch.1"
    assert symbols_of(parse_dim("unk__3 ?")) == {"unk__3 ?"}


def test_division_by_zero_is_refused() -> None:
    with pytest.raises(ZeroDivisionError):
        _ = n // 0


def test_a_symbol_is_no_number() -> None:
    with pytest.raises(TypeError, match="the size 'n' is not a known number"):
        int(n)


@pytest.mark.parametrize(
    ("value", "line"),
    [
        (n, (1, 0)),
        (2 * n + 3, (2, 3)),
        (5 * n - 4, (5, -4)),
        (n * h, None),
        (n // 2, None),
        (h // n, None),
        (-n + 7, None),
        (n * n, None),
        (h + 1, None),
        (maximum(n, h), None),
    ],
)
def test_a_line_in_a_name_tells_it(value: Dim, line: tuple[int, int] | None) -> None:
    assert line_in(value, "n") == line
