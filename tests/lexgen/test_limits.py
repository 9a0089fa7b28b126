"""The most states of a grammar: of all its rules together, which may be many more than of one."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hagane.errors import InvalidArgument
from hagane.lexgen import Grammar, Regex, TokenMask, Vocabulary
from hagane.lexgen.masks.rules import rules, units


def test_the_states_of_all_rules_together_have_a_bound_of_their_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    vocabulary = Vocabulary.of([*(bytes([byte]) for byte in range(128)), b"</s>"])
    schema = {
        "type": "object",
        "properties": {
            f"p{place}": {"type": "string", "pattern": f"^x{place}[ab]{{3}}$"} for place in range(8)
        },
    }
    assert rules._MOST_TOGETHER > units.MOST_STATES
    mask = TokenMask(schema, vocabulary)
    assert mask.mask(mask.start)[ord("{")]
    monkeypatch.setattr(rules, "_MOST_TOGETHER", 20)
    with pytest.raises(InvalidArgument, match="a grammar needs more than 20 states"):
        TokenMask({**schema, "minProperties": 2}, vocabulary)


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: Regex("(?:" * 199 + "a" + ")*" * 199), "its groups lie in each other too deeply"),
        (
            lambda: Grammar("root ::= " + "(" * 1000 + '"a"' + ")" * 1000),
            "its groups lie in each other too deeply; make rules of some",
        ),
        (
            lambda: Grammar("root ::= " + '("a" ' * 400 + ")?" * 400),
            "its groups lie in each other too deeply; make rules of some",
        ),
    ],
)
def test_groups_that_lie_too_deeply_are_refused(make: Callable[[], object], told: str) -> None:
    with pytest.raises(InvalidArgument, match=told):
        make()
