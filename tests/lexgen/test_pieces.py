"""Texts in pieces: the same tokens as of whole texts, and no character is scanned again."""

import random

import pytest

from hagane.lexgen import Lexer
from tests.lexgen.test_languages import LANGUAGES, changed, lexer_of

RULES = [
    ("TEXT", r'"(?:[^"\\]|\\.)*"'),
    ("NUMBER", r"[0-9]+(?:\.[0-9]+)?"),
    ("CALL", r"[a-z]+(?=\()"),
    ("NAME", r"[a-z]+"),
    ("HEAD", r"^#+"),
    (None, r"\s+"),
]


class Counting(list[int]):
    reads = 0

    def __getitem__(self, at: int) -> int:  # type: ignore[override]
        self.reads += 1
        return super().__getitem__(at)


@pytest.mark.parametrize("text", ['"' + "a" * 30_000 + '"', "a" * 30_000, "?" * 30_000 + "1"])
def test_a_long_token_in_pieces_is_scanned_once(text: str) -> None:
    lexer = Lexer.from_rules(RULES)
    whole = [tuple(token) for token in lexer.tokenize(text)]
    table = lexer.machine.automaton
    table.delta = Counting(table.delta)
    found = lexer.tokenize(text[at : at + 50] for at in range(0, len(text), 50))
    assert [tuple(token) for token in found] == whole
    assert table.delta.reads < 4 * len(text)


def test_pieces_cut_anywhere_give_the_tokens_of_the_whole() -> None:
    draw = random.Random(5)
    lexer = Lexer.from_rules(RULES)
    texts = ["".join(draw.choices('a1.("\\ #\n?é', k=20)) for _ in range(150)]
    cases = [(lexer, text) for text in texts]
    for name, (_, text, _) in LANGUAGES.items():
        one = lexer_of(name)
        cases += [(one, each) for each in (text, *(changed(text, draw) for _ in range(5)))]
    for one, text in cases:
        cuts = sorted(draw.choices(range(len(text) + 1), k=4))
        pieces = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
        whole = [(*token, token.byte_start) for token in one.tokenize(text)]
        assert [(*token, token.byte_start) for token in one.tokenize(pieces)] == whole
        assert [(*token, token.byte_start) for token in one.tokenize(iter(text))] == whole
