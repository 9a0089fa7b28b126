"""Rules of other files, and rules that a grammar changes, in Lark's notation."""

from __future__ import annotations

from pathlib import Path

import pytest

from hagane.errors import InvalidArgument
from hagane.lexgen import Grammar, TokenMask

LETTERS = sorted(set("1234567890,bxyz()_- "))


def taken(grammar: Grammar, *texts: str) -> list[bool]:
    mask = TokenMask(grammar, [*LETTERS, "</s>"])
    found = []
    for text in texts:
        state = mask.start
        for letter in text:
            if not mask.mask(state)[LETTERS.index(letter)]:
                found.append(False)
                break
            state = mask.advance(state, LETTERS.index(letter))
        else:
            found.append(mask.accepts(state))
    return found


def test_rules_of_files_beside_a_grammar_are_imported_with_what_they_call(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner/numbers.lark").write_text(
        '%import common.INT\nnumber: INT | "-" INT | nested\nnested: "(" number ")"\n'
        'NAME: B "x"\nB: "b"\n%ignore " "\n'
    )
    outer = tmp_path / "outer.lark"
    outer.write_text(
        'start: number ("," WORD)*\nnested: "z"\n%import .inner.numbers (number)\n'
        '%import .inner.numbers.NAME -> WORD\n%ignore "_"\n'
    )
    texts = ("1,bx", "_(_(-1)_)_,_bx_", "( 1)", "1,b_x", "z", "1,bx,bx")
    assert taken(Grammar.read(outer), *texts) == [True, True, False, False, False, True]


def test_rules_are_extended_and_put_in_the_place_of_others(tmp_path: Path) -> None:
    (tmp_path / "m.lark").write_text('A: "x"\nB: "x"\n')
    text = 'start: A B\n%import .m (A, B)\n%extend A: "y"\n%override B: "z"'
    grammar = Grammar(text, folder=tmp_path)
    assert taken(grammar, "xz", "yz", "xx", "yx") == [True, True, False, False]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("start: A\n%import .m.A", "line 2: '%import m' is not covered: files are found beside"),
        ("start: A\n%import python.NAME", "line 2: '%import python' is not .*there is 'common'"),
        ("start: A\n%declare A", "line 2: '%declare' is not covered; a terminal that a program"),
        ('start: A\n%extend A: "x"', "line 2: the rule 'A' is not there yet"),
        ("start: /(?!ab)[a-z]+/", "line 1: .*look-ahead.*; write the texts without looking around"),
    ],
)
def test_what_is_not_covered_is_told_with_a_remedy(text: str, told: str) -> None:
    with pytest.raises(InvalidArgument, match=told):
        Grammar(text)


def test_faults_of_imported_files_name_the_file(tmp_path: Path) -> None:
    (tmp_path / "m.lark").write_text('A: "x\n')
    with pytest.raises(InvalidArgument, match="line 2: 'm.lark': grammar, line 1: unexpected"):
        Grammar("start: A\n%import .m.A", folder=tmp_path)
    (tmp_path / "m.lark").write_text("%import .m.A\n")
    with pytest.raises(InvalidArgument, match="imported more than 32 deep"):
        Grammar("start: A\n%import .m.A", folder=tmp_path)
    (tmp_path / "m.lark").write_text('B: "x"\n')
    with pytest.raises(InvalidArgument, match="there is no rule 'A' in .*m.lark'; there are: B"):
        Grammar("start: A\n%import .m.A", folder=tmp_path)
