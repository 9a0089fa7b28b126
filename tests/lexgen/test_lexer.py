"""Lexers in all their forms against a naive one on ``re``."""

from __future__ import annotations

import types
import warnings
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hagane.lexgen import Lexer, Rule, SpecificationError, Token, rule
from hagane.lexgen.expressions.parse import parse
from hagane.lexgen.lexing.specification import Action
from hagane.machine import NoCompiler, find_compiler
from tests.lexgen.test_regex import longest_by_re

try:
    find_compiler()
    no_compiler = False
except NoCompiler:
    no_compiler = True
needs_compiler = pytest.mark.skipif(no_compiler, reason="there is no C compiler")

PIECES = [
    "a", "b", "ab", "aba", "[ab]+", "[a-c]", "a*b", "b+c", r"\w+", r"\s+", "if", "ifa", "[^a-z]",
    r'"[^"]*"', r"/\*([^*]|\*+[^*/])*\*+/", "(a|b)*c", "é+", r"[0-9]+(\.[0-9]+)?", r"\n",
    "(ab|ba)*a", "[ab]*c[ab]*", "(a\n|b)+", "[\U00010000-\U0001ffff é]+", r"-+(\.-)?",
]  # fmt: skip
LOOKING = ["^a+", "a$", "b(?=c)", r"a+(?!b)", r"\bif\b", "c+(?=a|$)", "(?i:AB)", r"a*(?=b+c)",
           r"(?a)[é1]\b", r"\B[bé]"]  # fmt: skip
rule_lists = st.lists(
    st.tuples(st.sampled_from(["A", "B", "C", "D", None]), st.sampled_from(PIECES)),
    min_size=1,
    max_size=6,
)
texts = st.text(alphabet='abcfi1. \n"/*é-\U00010400', max_size=24)


def naive(rules: list[tuple[str | None, str]], text: str) -> Iterator[tuple[str, int, int]]:
    """Tokens by trying every rule and every length."""
    position, error = 0, -1
    while position < len(text):
        found = [
            (longest_by_re(pattern, text[position:]) or 0, -number)
            for number, (_, pattern) in enumerate(rules)
        ]
        length, number = max(found)
        if length == 0:
            error = position if error < 0 else error
            position += 1
            continue
        if error >= 0:
            yield "ERROR", error, position
            error = -1
        kind = rules[-number][0]
        if kind is not None:
            yield kind, position, position + length
        position += length
    if error >= 0:
        yield "ERROR", error, position


def spans(tokens: Iterator[Token]) -> list[tuple[str, int, int]]:
    return [(token.kind, token.start, token.end) for token in tokens]


def module_of(lexer: Lexer, native: bool = False) -> types.ModuleType:
    module = types.ModuleType("generated")
    exec(compile(lexer.python_source(native), "generated", "exec"), module.__dict__)
    return module


@settings(
    max_examples=200, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
@given(rule_lists, st.lists(texts, min_size=3, max_size=3))
def test_tokens_are_the_longest_matches_of_the_first_rules(
    rules: list[tuple[str | None, str]], inputs: list[str]
) -> None:
    lexer = Lexer.from_rules(rules)
    for text in inputs:
        expected = list(naive(rules, text))
        assert spans(lexer.tokenize(text)) == expected, (rules, text)
        assert spans(lexer.tokenize(iter(text))) == expected, (rules, text)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(
    st.lists(st.sampled_from(PIECES + LOOKING), min_size=1, max_size=5),
    texts,
    st.integers(0, 24),
)
def test_a_text_in_pieces_gives_the_tokens_of_the_whole(
    patterns: list[str], text: str, cut: int
) -> None:
    lexer = Lexer.from_rules([(f"R{k}", pattern) for k, pattern in enumerate(patterns)])
    whole = list(lexer.tokenize(text))
    pieces = list(lexer.tokenize([text[:cut], "", text[cut:]]))
    assert pieces == whole
    assert [t.byte_end for t in pieces] == [t.byte_end for t in whole]
    assert [t.byte_start for t in pieces] == [len(text[: t.start].encode()) for t in whole]


@pytest.mark.long
@needs_compiler
@settings(
    max_examples=40, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
@given(
    st.lists(st.sampled_from(PIECES + LOOKING), min_size=1, max_size=6),
    st.lists(texts, min_size=12, max_size=12),
)
def test_compiled_lexers_find_the_tokens_of_the_python_form(
    patterns: list[str], inputs: list[str]
) -> None:
    kinds = ["A", "B", None, "C", "D", "E"]
    lexer = Lexer.from_rules(list(zip(kinds, patterns, strict=False)))
    native = lexer.native
    for text in inputs:
        arrays = native.tokenize(text.encode())
        found = [
            (lexer.kinds[k], s, e) for k, s, e in zip(*(a.tolist() for a in arrays), strict=True)
        ]
        expected = [(t.kind, t.byte_start, t.byte_end) for t in lexer.tokenize(text)]
        assert found == expected, (patterns, text)


@needs_compiler
def test_zero_bytes_and_bytes_that_are_no_utf8_are_errors_not_ends() -> None:
    lexer = Lexer.from_rules([("A", "a+"), ("ANY", "[^a-z]")])
    kinds, starts, ends = lexer.tokenize_arrays(b"a\0aa\xff\xfea")
    assert [lexer.kinds[k] for k in kinds] == ["A", "ANY", "A", "ERROR", "A"]
    assert starts.tolist() == [0, 1, 2, 4, 6]
    assert ends.tolist() == [1, 2, 4, 6, 7]
    assert kinds.dtype == np.uint8


@needs_compiler
def test_a_generated_module_has_both_functions() -> None:
    lexer = Lexer.from_rules([("WORD", r"\w+"), (None, " +"), ("ARROW", "->")])
    module = module_of(lexer, native=True)
    text = "so -> é !"
    tokens = list(module.tokenize(text))
    assert [tuple(t) for t in tokens] == [tuple(t) for t in lexer.tokenize(text)]
    kinds, starts, ends = module.tokenize_arrays(text.encode())
    assert [module.KINDS[k] for k in kinds] == [t.kind for t in tokens]
    assert list(zip(starts, ends, strict=True)) == [(t.byte_start, t.byte_end) for t in tokens]


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.lists(st.sampled_from(PIECES + LOOKING), min_size=1, max_size=5), texts)
def test_generated_modules_find_the_tokens_of_the_lexer(patterns: list[str], text: str) -> None:
    lexer = Lexer.from_rules([(f"R{k}", pattern) for k, pattern in enumerate(patterns)])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        module = module_of(lexer)
    assert [tuple(t) for t in module.tokenize(text)] == [tuple(t) for t in lexer.tokenize(text)]


def test_tokens_carry_text_offsets_line_and_column() -> None:
    lexer = Lexer.from_rules([("WORD", r"\w+"), (None, r"\s+")])
    tokens = list(lexer.tokenize("ab\n  é c"))
    assert tokens[1] == Token("WORD", "é", 5, 6, 2, 3)
    assert tokens[2] == Token("WORD", "c", 7, 8, 2, 5)
    assert (tokens[2].byte_start, tokens[2].byte_end) == (8, 9)


def test_an_error_reaches_to_the_next_place_where_a_rule_matches() -> None:
    lexer = Lexer.from_rules([("A", "a"), (None, " ")])
    assert spans(lexer.tokenize("a?? !a")) == [
        ("A", 0, 1), ("ERROR", 1, 3), ("ERROR", 4, 5), ("A", 5, 6),
    ]  # fmt: skip


def test_trailing_context_takes_the_longest_body() -> None:
    lexer = Lexer.from_rules([Rule(parse("a*/ab*c", "flex"), Action("BODY")), ("REST", "[abc]")])
    assert spans(lexer.tokenize("aaabc"))[0] == ("BODY", 0, 2)


@needs_compiler
def test_a_match_of_no_characters_gives_way_to_the_next_rule() -> None:
    rules = [Rule(parse("a*/b", "flex"), Action("A")), ("B", "b*"), ("C", "(^|c)(?=b|$)")]
    lexer = Lexer.from_rules(rules)
    assert spans(lexer.tokenize("aabcb")) == [("A", 0, 2), ("B", 2, 3), ("C", 3, 4), ("B", 4, 5)]
    kinds, _, ends = lexer.tokenize_arrays(b"aabcb")
    assert [lexer.kinds[k] for k in kinds] == ["A", "B", "C", "B"]
    assert ends.tolist() == [2, 3, 4, 5]


def test_what_a_condition_at_the_end_of_a_rule_looks_at_is_not_part_of_the_token() -> None:
    lexer = Lexer.from_rules([("GAP", r"\s\b"), ("NUMBER", r"\d+")])
    assert spans(lexer.tokenize("1 0\n2")) == [
        ("NUMBER", 0, 1), ("GAP", 1, 2), ("NUMBER", 2, 3), ("GAP", 3, 4), ("NUMBER", 4, 5),
    ]  # fmt: skip


@needs_compiler
def test_words_of_ascii_end_where_other_letters_begin() -> None:
    lexer = Lexer.from_rules([("A", r"(?a)\bx"), ("B", r"\bx"), ("C", ".")])
    assert [token.kind for token in lexer.tokenize("éx xx")] == ["C", "A", "C", "A", "C"]
    kinds, _, _ = lexer.tokenize_arrays("éx xx".encode())
    assert [lexer.kinds[kind] for kind in kinds] == ["C", "A", "C", "A", "C"]


def test_a_rule_for_a_slash_or_a_quote_is_what_re_says() -> None:
    lexer = Lexer.from_rules([("DIV", "/"), ("STRING", '"[^"]*"'), ("BRACE", "{")])
    assert [t.kind for t in lexer.tokenize('/"x"{')] == ["DIV", "STRING", "BRACE"]


class Counting(Lexer):
    """Counts words, in a lexer written as a class."""

    def __init__(self) -> None:
        super().__init__()
        self.seen = 0

    @rule("[a-z]+", "WORD")
    def word(self, scanner: object, text: str) -> str | None:
        self.seen += 1
        return "LONG" if len(text) > 3 else "WORD"

    @rule("<", push="TAG")
    def opening(self, scanner: object, text: str) -> None:
        return None

    @rule(">", conditions=("TAG",), pop=True)
    def closing(self, scanner: object, text: str) -> str:
        return "TAG"

    @rule("[^>]", conditions=("TAG",))
    @rule(r"\s+")
    def nothing(self, scanner: object, text: str) -> None:
        return None


def test_decorated_methods_are_rules() -> None:
    lexer = Counting()
    assert [t.kind for t in lexer.tokenize("ab cdef <x y> gh")] == ["WORD", "LONG", "TAG", "WORD"]
    assert lexer.seen == 3


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ([], "expected at least one rule, got none"),
        ([("A",)], r"rule 1: expected a pair \(kind, regular expression\), got \('A',\)"),
        ([("A", 3)], "rule 1: expected a pair"),
        ([("A", "a*?b")], "lazy repetition"),
    ],
)
def test_rules_that_cannot_be_used_are_refused(rules: list, message: str) -> None:
    with pytest.raises(SpecificationError, match=message):
        Lexer.from_rules(rules)
