"""Signs of Lark's notation that other grammars use: escapes, ranges, modifiers, extensions."""

import pytest

from hagane.errors import InvalidArgument
from hagane.lexgen import Grammar
from tests.lexgen.test_templates import taken


def test_a_backslash_before_another_sign_stays_in_lark_s_texts() -> None:
    assert taken(r'start: "a\ b"', "a b", r"a\ b") == [False, True]
    assert taken(r'start: "\b\0"', "\b\0", r"\b\0") == [False, True]
    assert taken(r'start: "\"\\\n\x41"', '"\\\nA') == [True]
    assert taken(r'root ::= "\"\b"', '"\b') == [True]


def test_ranges_hold_signs_of_expressions() -> None:
    assert taken('start: "^".."a"', "^", "a", "_", "b", "-") == [True, True, True, False, False]
    assert taken(r'start: "]".."^" "\\".."]"', r"]\\"[:2], "^]", "-]") == [True, True, False]
    for wrong in ('"b".."a"', '"ab".."c"'):
        with pytest.raises(InvalidArgument, match="line 1: expected two characters in order"):
            Grammar(f"start: {wrong}")


def test_modifiers_and_lines_that_go_on() -> None:
    grammar = '!?start: ab \\\n  "c"\n?!ab: "a" "b"?\n'
    assert taken(grammar, "ac", "abc", "ab") == [True, True, False]


def test_inner_terminals_of_common() -> None:
    grammar = '%import common (_EXP, _STRING_ESC_INNER)\nstart: "\'" _STRING_ESC_INNER "\'" _EXP\n'
    assert taken(grammar, r"'a\'b'e-3", r"'a\\'E2", "'a\\'e3", "'a'e") == [True, True, False, False]


@pytest.mark.parametrize(
    ("grammar", "told"),
    [
        ('start: %json {"type": "object"}', r"unexpected '%json'; give TokenMask the schema"),
        ("start[lazy]: /a/", r"expected ':' after 'start', got '\['; attributes of rules are not"),
        ("b[lazy] ::= [a]\nroot ::= b", r"expected '::=' after 'b', got '\[lazy\]'; attributes"),
        ("start: @other", "unexpected '@'; grammars within others are not covered"),
        ("start: <|tool|>", "unexpected '<'; tokens by name are not covered: write their texts"),
        ('start: a::1\na::_: "x"', "unexpected ':'; parameters of rules are not covered"),
        ('root ::= "a" (= "b")', "unexpected '='; look-ahead is not covered"),
    ],
)
def test_extensions_are_refused_with_a_remedy(grammar: str, told: str) -> None:
    with pytest.raises(InvalidArgument, match="grammar, line 1: " + told):
        Grammar(grammar)
