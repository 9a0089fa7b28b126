"""``Regex`` against ``re``."""

from __future__ import annotations

import re
import warnings

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hagane.lexgen import Regex, RegexSyntaxError

ATOMS = [
    "a",
    "b",
    "c",
    ".",
    "[ab]",
    "[^a]",
    r"\w",
    r"\d",
    r"\s",
    "-",
    r"\n",
    "^",
    "$",
    r"\b",
    "[a-c]",
]


def _grow(children: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        st.lists(children, min_size=2, max_size=4).map("".join),
        st.lists(children, min_size=2, max_size=3).map(lambda parts: f"(?:{'|'.join(parts)})"),
        st.tuples(children, st.sampled_from(["*", "+", "?", "{2}", "{1,3}", "{0,2}", "{2,}"])).map(
            lambda p: f"(?:{p[0]}){p[1]}"
        ),
        children.map(lambda part: f"(?i:{part})"),
    )


patterns = st.recursive(st.sampled_from(ATOMS), _grow, max_leaves=8)
texts = st.text(alphabet="abcA1 -\n_é", max_size=7)


def longest_by_re(pattern: str, text: str) -> int | None:
    """The longest prefix that can match, by trying every end."""
    found = None
    for end in range(len(text) + 1):
        # The rest of the text stays visible to look-ahead: the end is pinned by a count.
        if re.match(rf"(?:{pattern})(?=(?s:.{{{len(text) - end}}})\Z)", text):
            found = end
    return found


def check(pattern: str, text: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        full = re.fullmatch(pattern, text) is not None
        longest = longest_by_re(pattern, text)
    regex = Regex(pattern)
    assert regex.fullmatch(text) == full, (pattern, text)
    assert regex.longest(text) == longest, (pattern, text)


@settings(
    max_examples=1500, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
@given(patterns, st.lists(texts, min_size=4, max_size=4))
def test_random_expressions_match_what_re_matches(pattern: str, inputs: list[str]) -> None:
    for text in inputs:
        check(pattern, text)


@pytest.mark.parametrize(
    ("pattern", "column", "problem"),
    [
        ("a(b", 2, "expected '\\)' to close the group"),
        ("a)", 2, "unbalanced"),
        ("[a", 1, "expected '\\]' to close the class"),
        ("*a", 1, "nothing to repeat"),
        (r"(a)\1", 4, "back reference"),
        ("(?<=a)b", 1, "look-behind"),
        ("a{3,2}", 2, "upper bound"),
        ("[z-a]", 2, "runs backwards"),
        (r"\p{Zq}", 1, "Unicode category"),
    ],
)
def test_a_malformed_expression_is_refused_with_its_column(
    pattern: str, column: int, problem: str
) -> None:
    with pytest.raises(RegexSyntaxError, match=problem) as caught:
        Regex(pattern)
    assert caught.value.column == column
