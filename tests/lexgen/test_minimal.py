"""Each stage of the pipeline, and minimal automata against Brzozowski's construction."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hagane.lexgen import Regex
from hagane.lexgen.automata.alphabet import partition
from hagane.lexgen.automata.determinise import determinise
from hagane.lexgen.automata.nfa import Nfa, build_nfa
from hagane.lexgen.automata.utf8 import byte_dfa, byte_rows, utf8_sequences
from hagane.lexgen.expressions.charset import (
    END,
    MAX,
    complement,
    contains,
    intersect,
    ranges,
    union,
)
from hagane.lexgen.expressions.parse import parse

ATOMS = ["a", "b", "c", "[ab]", "[^a]", ".", "ab", "[a-z]", r"\d", "x"]
WRITTEN = [
    "(a|b)*abb",
    "(a|b)*a(a|b){6}",
    "a*b*c*",
    "(ab|ba)*",
    "a{3,7}",
    "(aa|aaa)*",
    r"/\*([^*]|\*+[^*/])*\*+/",
    r'"([^"\\]|\\.)*"',
    r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?",
    "if|else|while|for|[a-z]+",
    r"(?i:select|from|where)",
    r"\w+@\w+\.\w+",
]


def _patterns() -> list[str]:
    random.seed(11)

    def grow(depth: int) -> str:
        if depth == 0:
            return random.choice(ATOMS)
        kind = random.randrange(4)
        if kind == 0:
            return grow(depth - 1) + grow(depth - 1)
        if kind == 1:
            return f"(?:{grow(depth - 1)}|{grow(depth - 1)})"
        if kind == 2:
            return f"(?:{grow(depth - 1)}){random.choice(['*', '+', '?', '{2}', '{1,3}'])}"
        return grow(depth - 1)

    return [*WRITTEN, *(grow(random.randint(1, 4)) for _ in range(200 - len(WRITTEN)))]


def brzozowski(nfa: Nfa) -> int:
    """Count the states of the minimal automaton by determinising the reversal twice."""
    letters = [
        pairs[0][0]
        for pairs in partition(symbols for edges in nfa.chars for symbols, _ in edges).members()
    ]
    moves: list[tuple[int, int, int]] = [
        (source, letter, to)
        for source, edges in enumerate(nfa.chars)
        for symbols, to in edges
        for letter in letters
        if contains(symbols, letter)
    ]
    moves += [(source, -1, to) for source, targets in enumerate(nfa.empty) for to in targets]
    first, last = set(nfa.starts), set(nfa.accepts)
    for _ in range(2):
        moves, first, last = determinised_reversal(moves, first, last)
    return len({s for s, _, _ in moves} | {t for _, _, t in moves} | first)


def determinised_reversal(
    moves: list[tuple[int, int, int]], first: set[int], last: set[int]
) -> tuple[list[tuple[int, int, int]], set[int], set[int]]:
    backward: dict[tuple[int, int], set[int]] = {}
    for source, letter, to in moves:
        backward.setdefault((to, letter), set()).add(source)
    letters = {letter for _, letter, _ in moves if letter >= 0}

    def closed(states: set[int]) -> frozenset[int]:
        seen, stack = set(states), list(states)
        while stack:
            for source in backward.get((stack.pop(), -1), ()):
                if source not in seen:
                    seen.add(source)
                    stack.append(source)
        return frozenset(seen)

    numbers = {closed(last): 0}
    order = list(numbers)
    made = []
    for states in order:  # grows while it runs
        for letter in letters:
            after = closed({s for state in states for s in backward.get((state, letter), ())})
            if after:
                if after not in numbers:
                    numbers[after] = len(numbers)
                    order.append(after)
                made.append((numbers[states], letter, numbers[after]))
    return made, {0}, {number for states, number in numbers.items() if states & first}


def test_automata_of_200_expressions_are_as_small_as_brzozowskis() -> None:
    patterns = _patterns()
    assert len(patterns) == 200
    for pattern in patterns:
        nfa = build_nfa([parse(pattern).branches])
        assert Regex(pattern).dfa.n_states == brzozowski(nfa), pattern
        assert Regex(pattern).dfa.minimized


def test_thompsons_automaton_has_a_start_and_an_accept_for_each_rule() -> None:
    nfa = build_nfa([parse("ab").branches, parse("c*").branches])
    assert len(nfa.starts) == 1
    assert sorted(accept.rule for accept in nfa.accepts.values()) == [0, 1]


def test_subset_construction_lists_all_rules_that_a_state_accepts() -> None:
    dfa = determinise(build_nfa([parse("if").branches, parse("[a-z]+").branches]))
    assert (0, 1) in {tuple(accept.rule for accept in accepts) for accepts in dfa.accepts}


sets = st.lists(st.tuples(st.integers(0, 300), st.integers(0, 40)), max_size=5).map(
    lambda pairs: ranges((low, low + more) for low, more in pairs)
)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(sets, sets)
def test_sets_of_symbols_behave_like_sets(a: tuple[tuple[int, int], ...], b: tuple) -> None:
    for symbol in (0, 1, 50, 299, 341, MAX):
        in_a, in_b = contains(a, symbol), contains(b, symbol)
        assert contains(union(a, b), symbol) == (in_a or in_b)
        assert contains(intersect(a, b), symbol) == (in_a and in_b)
        assert contains(complement(a), symbol) != in_a
    assert not contains(complement(a), END)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.integers(0, MAX), st.integers(0, MAX), st.lists(st.integers(0, MAX), max_size=10))
def test_byte_ranges_of_a_range_match_exactly_its_characters(
    low: int, high: int, codes: list[int]
) -> None:
    low, high = sorted((low, high))
    sequences = list(utf8_sequences(low, high))
    for code in (*codes, low, high, (low + high) // 2, max(low - 1, 0), min(high + 1, MAX)):
        if 0xD800 <= code <= 0xDFFF:
            continue
        data = chr(code).encode()
        matched = sum(
            len(s) == len(data) and all(a <= x <= b for (a, b), x in zip(s, data, strict=True))
            for s in sequences
        )
        assert matched == (low <= code <= high)


@pytest.mark.parametrize("pattern", ["[^a]+", r"\w*é", "日本|語.", r"(?i)straße"])
def test_a_byte_automaton_matches_the_encoded_texts(pattern: str) -> None:
    regex = Regex(pattern)
    dfa = byte_dfa(regex.dfa)
    rows = byte_rows(dfa)
    for text in (
        "b",
        "a",
        "é",
        "aé",
        "日本",
        "語x",
        "STRASSE",
        "straße",
        "STRAẞE",
        "bc日é",
        "",
        "\U0001f600",
    ):
        state = dfa.starts[0][0]
        for byte in text.encode():
            state = rows[state][byte] if state >= 0 else -1
        assert (state >= 0 and bool(dfa.accepts[state])) == regex.fullmatch(text), text
