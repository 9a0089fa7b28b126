"""Sets of texts: equal states are joined, in automata of any form."""

from __future__ import annotations

import random
import re
import unicodedata

import pytest

from hagane.lexgen.expressions.unicode_sets import category, digits
from hagane.lexgen.masks.schemas.keywords import pattern_texts
from hagane.lexgen.masks.texts import ANYTHING, NOTHING, Texts, _built, literals, of_length


def by_rounds(texts: Texts) -> int:
    """Return how many states differ, by Moore's rounds over all of them."""
    block = {state: int(state in texts.accepts) for state in range(len(texts.rows))}
    count = 0
    while len(set(block.values())) != count:
        count = len(set(block.values()))
        keys = {
            state: (block[state], tuple((a, b, block[to]) for a, b, to in texts.edges(state)))
            for state in block
        }
        # Intervals side by side with one block are one interval.
        for state, (own, edges) in keys.items():
            joined: list[tuple[int, int, int]] = []
            for low, high, to in edges:
                if joined and joined[-1][1] == low - 1 and joined[-1][2] == to:
                    joined[-1] = (joined[-1][0], high, to)
                else:
                    joined.append((low, high, to))
            keys[state] = (own, tuple(joined))
        numbers = {key: number for number, key in enumerate(dict.fromkeys(keys.values()))}
        block = {state: numbers[key] for state, key in keys.items()}
    return count


def test_a_long_chain_keeps_all_of_its_states() -> None:
    assert len(of_length(0, 3_000).rows) == 3_001
    assert len(of_length(1_500, None).rows) == 1_501


def test_random_automata_have_no_two_equal_states() -> None:
    chance = random.Random(5)
    for _ in range(60):
        size = chance.randint(1, 14)
        steps = [
            {low: chance.choice([None, *range(size)]) for low in (0, 97, 98, 99)}
            for _ in range(size)
        ]
        ends = [chance.random() < 0.3 for _ in range(size)]
        made = _built(0, lambda state, steps=steps, ends=ends: (steps[state], ends[state]))
        if made is NOTHING:
            continue
        assert by_rounds(made) == len(made.rows)
        for _ in range(60):
            text = "".join(chance.choices("abcz", k=chance.randint(0, 7)))
            state: int | None = 0
            for char in text:
                if state is not None:
                    low = max(each for each in (0, 97, 98, 99) if each <= ord(char))
                    state = steps[state][low]
            assert (text in made) == (state is not None and ends[state])


def test_products_are_minimal_too() -> None:
    made = (of_length(2, 40) & ANYTHING) - literals(["abc", "abd", "zz"])
    assert by_rounds(made) == len(made.rows)
    assert "abc" not in made
    assert "abe" in made


def test_contraries_and_literals_are_minimal_and_take_what_they_should() -> None:
    chance = random.Random(6)
    for _ in range(60):
        words = {
            "".join(chance.choices("abé\ud7ff\ue000😀", k=chance.randint(0, 4))) for _ in "abcd"
        }
        made = literals(words)
        assert by_rounds(made) == len(made.rows)
        contrary = ANYTHING - made
        assert by_rounds(contrary) == len(contrary.rows)
        both = ANYTHING - contrary
        assert len(both.rows) == len(made.rows)
        for _ in range(80):
            text = "".join(chance.choices("abé\ud7ff\ue000😀x", k=chance.randint(0, 5)))
            assert (text in made) == (text in words) == (text not in contrary) == (text in both)
        assert "\ud800" not in contrary  # which is no character
    assert (ANYTHING - (ANYTHING - NOTHING)).empty
    some = ANYTHING - literals(["a"])
    assert (ANYTHING - (some | literals(["a"]))).empty


@pytest.mark.parametrize(
    "pattern",
    [
        r"^(?!aws:)[a-d:sw]+$",
        r"^(?!aw)(?!ab)[a-z:]{1,12}$",
        r"^(?=ab)(?!abc)[a-c]*$",
        r"^(?!a$)a+$|^b(c|d)$",
        r"x|^(?!xa)[^|(]b",
        r"^(?![\])])[)a\]]+$",
        r"^(?!a|bc).*$",
        r"^(?!\(a)\(.$",
        r"^(?!)a",
        r"^(?=a)",
        r"^(?!(?:a|b(?:c)))[abc]+$",
    ],
)
def test_a_pattern_looks_ahead_at_the_start_of_the_text_as_re_does(pattern: str) -> None:
    texts = pattern_texts(pattern, "#")
    drawn = random.Random(5)
    for _ in range(400):
        text = "".join(drawn.choices("abcd:x|()]aws", k=drawn.randint(0, 6)))
        found = re.search(pattern.replace("$", r"\Z"), text) is not None
        assert (text in texts) == found, text


def test_tables_of_characters_agree_with_python_where_planes_are_skipped() -> None:
    for name in ("Nd", "Cn", "Co", "Zs"):
        code_points = {code for low, high in category(name) or () for code in range(low, high + 1)}
        for code in (
            *range(0, 0x3000, 7),
            *range(0x3FF00, 0x40100),
            *range(0xDFF00, 0x110000, 911),
        ):
            assert (code in code_points) == (unicodedata.category(chr(code)) == name), hex(code)
    assert digits(ascii_only=False) == category("Nd")
