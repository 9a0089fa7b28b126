"""Trailing contexts in both forms against trying every pair of places with ``re``."""

from __future__ import annotations

import random
import re

import pytest

from hagane.lexgen import Lexer, Rule
from hagane.lexgen.expressions.characters import Flags
from hagane.lexgen.expressions.parse import parse
from hagane.lexgen.expressions.syntax import Branch, Node, Pattern
from hagane.lexgen.lexing.specification import Action
from tests.lexgen.test_lexer import needs_compiler

ATOMS = ["a", "b", "[ab]", ".", "c", r"\n", "é", "(a|bc)", r"\w", "-"]


def expression(rng: random.Random, length: int) -> str:
    repeats = ["", "", "*", "+", "?", "{1,2}"]
    return "".join(rng.choice(ATOMS) + rng.choice(repeats) for _ in range(length))


def random_parts(rng: random.Random) -> tuple[str, str]:
    body = rng.choice(["", "", "", "^", r"\b"]) + expression(rng, rng.randint(1, 3))
    if rng.random() < 0.3:
        body = f"(?:{body}|{rng.choice(['^', ''])}{expression(rng, 1)})"
    return body, rng.choice(["", "", "^", r"\b", r"\B"]) + expression(rng, rng.randint(1, 3))


def lexer_of(body: str, following: str) -> Lexer:
    def tree(source: str) -> Node:
        return parse(source, flags=Flags(multi_line=True)).branches[0].body

    pattern = Pattern(f"{body}/{following}", (Branch(tree(body), tree(following)),))
    return Lexer.from_rules([Rule(pattern, Action("R")), (None, "(?s:.)")])


def by_trying(body: str, following: str, text: str) -> list[tuple[int, int]]:
    """Tokens of the longest match with its context, and in it of the longest body."""

    def reaches(source: str, start: int, end: int) -> bool:
        pinned = rf"(?:{source})(?=(?s:.{{{len(text) - end}}})\Z)"
        return re.compile(pinned, re.MULTILINE).match(text, start) is not None

    found, start, size = [], 0, len(text)
    while start < size:
        cuts = [cut for cut in range(start + 1, size + 1) if reaches(body, start, cut)]
        pairs = [
            (end, cut)
            for cut in cuts
            for end in range(cut, size + 1)
            if reaches(following, cut, end)
        ]
        if pairs:
            found.append((start, max(pairs)[1]))
        start = found[-1][1] if pairs else start + 1
    return found


def compare(seed: int, lexers: int, native: bool) -> int:
    """Return for how many lexers the place varied with the match; all must find their tokens."""
    rng = random.Random(seed)
    varying = 0
    for _ in range(lexers):
        parts = random_parts(rng)
        lexer = lexer_of(*parts)
        varying += any(step.split for step in lexer.compiled.steps)
        for _ in range(12):
            text = "".join(rng.choices("aabbc-é\n", k=rng.randrange(10)))
            expected = by_trying(*parts, text)
            tokens = list(lexer.tokenize(text))
            assert [(t.start, t.end) for t in tokens] == expected, (parts, text)
            assert list(lexer.tokenize(iter(text))) == tokens, (parts, text)
            if native:
                _, starts, ends = lexer.tokenize_arrays(text.encode())
                found = list(zip(starts.tolist(), ends.tolist(), strict=True))
                assert found == [(t.byte_start, t.byte_end) for t in tokens], (parts, text)
    return varying


def test_a_context_starts_where_trying_every_place_finds_it() -> None:
    assert compare(seed=1, lexers=40, native=False) > 10


@needs_compiler
def test_the_c_form_cuts_contexts_of_any_length() -> None:
    assert compare(seed=2, lexers=8, native=True) > 2


@pytest.mark.long
@needs_compiler
def test_many_contexts_start_where_trying_every_place_finds_them() -> None:
    assert compare(seed=3, lexers=1000, native=False) > 300
    assert compare(seed=4, lexers=200, native=True) > 60


@needs_compiler
def test_a_rule_that_starts_with_a_boundary_of_words_has_a_c_form() -> None:
    lexer = Lexer.from_rules([("WORD", r"\bé+"), ("INSIDE", r"\Bb"), ("ANY", "(?s:.)")])
    text = "éé bé𝒳b-b 𝒳é"
    kinds, starts, ends = lexer.tokenize_arrays(text.encode())
    tokens = list(lexer.tokenize(text))
    assert [t.kind for t in tokens if t.text in "ébéé"] == [
        "WORD", "ANY", "ANY", "INSIDE", "ANY", "ANY",
    ]  # fmt: skip
    assert [lexer.kinds[kind] for kind in kinds] == [t.kind for t in tokens]
    assert starts.tolist() == [t.byte_start for t in tokens]
    assert ends.tolist() == [t.byte_end for t in tokens]
