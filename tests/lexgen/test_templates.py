"""Templates, priorities and expressions of several lines in Lark's notation."""

import pytest

from hagane.errors import InvalidArgument
from hagane.lexgen import Grammar, TokenMask, Vocabulary

BYTES = Vocabulary.of([*(bytes([n]) for n in range(128)), b"</s>"], 128)


def taken(grammar: str, *texts: str) -> list[bool]:
    mask = TokenMask(Grammar(grammar), BYTES)

    def accepts(text: str) -> bool:
        state = mask.start
        for byte in text.encode():
            if not mask.mask(state)[byte]:
                return False
            state = mask.advance(state, byte)
        return mask.accepts(state)

    return [accepts(text) for text in texts]


LISTS = """
start: list | pairs
list: "[" _separated{item, ","} "]"
pairs: "{" _separated{_pair{item, (":" | "=")},
                      ","} "}"
_separated{x, sep}: x (sep x)*
_pair{a, sign}: a sign a
item: /[0-9]/ | list
%ignore " "
"""


def test_templates_are_written_out_for_their_arguments() -> None:
    good = ("[1]", "[1, 2,[3]]", "{1:2}", "{1 = [2,3], 4:5}")
    bad = ("[]", "[1,]", "{1}", "{1:2;3:4}", "[1:2]")
    assert taken(LISTS, *good, *bad) == [True] * len(good) + [False] * len(bad)


def test_templates_may_use_themselves() -> None:
    nested = 'start: _in{"a"} | _in{"b"}\n_in{x}: x | "(" _in{x} ")"\n'
    assert taken(nested, "((a))", "(b)", "(ab)", "((a)") == [True, True, False, False]
    for more in ("(x x)", '("b" x)'):
        grows = f'start: _in{{"a"}}\n_in{{x}}: x | _in{{{more}}}\n'
        with pytest.raises(InvalidArgument, match="line 2: the arguments of the rule '_in' are"):
            Grammar(grows)


def test_wrong_arguments_are_named() -> None:
    with pytest.raises(InvalidArgument, match="line 1: the rule '_in' takes 1 arguments, got 2"):
        Grammar('start: _in{"a", "b"}\n_in{x}: x\n')
    with pytest.raises(InvalidArgument, match="the rule '_in' takes 1 arguments, got none"):
        Grammar("start: _in\n_in{x}: x\n")
    with pytest.raises(InvalidArgument, match="the rule 'a' takes no arguments, got 1"):
        Grammar('start: a{"x"}\na: "a"\n')
    with pytest.raises(InvalidArgument, match="expected the name of a parameter, got '\"x\"'"):
        Grammar('start: "a"\nb{"x"}: "a"\n')


def test_priorities_and_expressions_of_several_lines_are_read() -> None:
    grammar = 'start.-1: WORD "!"\nWORD.2: /[a-z]   # letters\n  +/x\n'
    assert taken(grammar, "ab!", "ab", "#!") == [True, False, False]
