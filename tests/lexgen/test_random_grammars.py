"""Masks of random grammars beside a parser of all prefixes; each mended difference by name."""

from __future__ import annotations

import pytest

from hagane.lexgen import Grammar, TokenMask
from tests.lexgen.random_grammars import TOKENS, difference


@pytest.mark.parametrize("lark", [False, True], ids=["gbnf", "lark"])
def test_masks_of_random_grammars_are_those_of_a_parser_of_prefixes(lark: bool) -> None:
    assert [found for seed in range(40) if (found := difference(seed, lark))] == []


def test_masks_without_a_compiler_are_those_of_a_parser_too() -> None:
    assert [found for seed in range(8) if (found := difference(seed, True, native=False))] == []


@pytest.mark.parametrize(
    ("text", "taken"),
    [
        ('root ::= nothing root "b" | "a"\nnothing ::= ""\n', "abb"),
        ('root ::= "1"* root "b" | "a"\n', "11abb"),
        ('root ::= other*\nother ::= root "a" | "b"\n', "baba"),
        ('root ::= root root | "a" | ""\n', "aaaaaa"),
        ('root ::= (root "b" | [ab]){2,3}\n', "abbab"),
        ('root ::= "a"\nunused ::= unused? "b" | unused*\n', "a"),
    ],
)
def test_rules_that_call_themselves_behind_the_empty_text_are_turned_round(
    text: str, taken: str
) -> None:
    mask = TokenMask(Grammar(text), TOKENS)
    state = mask.start
    for letter in taken:
        state = mask.advance(state, TOKENS.index(letter))
    assert mask.accepts(state)


def test_text_to_ignore_may_come_before_the_first_terminal() -> None:
    mask = TokenMask(Grammar('start: A\nA: "a"\n%ignore "_"\n'), TOKENS)
    assert {TOKENS[token] for token in mask.mask(mask.start).tokens()} == {"_", "a", "_a", "a__"}
    alone = TokenMask(Grammar('A: "a"\n%ignore "_"\n', start="A"), TOKENS)
    assert {TOKENS[token] for token in alone.mask(alone.start).tokens()} == {"_", "a", "_a", "a__"}


def test_larks_notation_may_speak_of_gbnf_s_sign() -> None:
    grammar = Grammar('// a ::= b\nstart: "::=" | "a" // root ::= x\n')
    mask = TokenMask(grammar, [*TOKENS, ":", "="])
    assert mask.mask(mask.start).tokens().tolist() == [TOKENS.index("a"), len(TOKENS)]
