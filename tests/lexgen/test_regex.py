"""``Regex`` against ``re``."""

from __future__ import annotations

import random
import re
import warnings

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hagane.lexgen import Regex, RegexSyntaxError
from hagane.lexgen.expressions.syntax import Branch, Pattern, matches_empty, without_empty

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
REPEATS = ["*", "+", "?", "{2}", "{1,3}", "{0,2}", "{2,}"]
CHARACTERS = "abcA1 -\n_é"


def _grow(children: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        st.lists(children, min_size=2, max_size=4).map("".join),
        st.lists(children, min_size=2, max_size=3).map(lambda parts: f"(?:{'|'.join(parts)})"),
        st.tuples(children, st.sampled_from(REPEATS)).map(lambda p: f"(?:{p[0]}){p[1]}"),
        children.map(lambda part: f"(?i:{part})"),
    )


patterns = st.recursive(st.sampled_from(ATOMS), _grow, max_leaves=8)
texts = st.text(alphabet=CHARACTERS, max_size=7)


def random_pattern(rng: random.Random, leaves: int) -> str:
    """Return an expression of the kind that ``patterns`` draws, with so many atoms."""
    if leaves == 1:
        return rng.choice(ATOMS)
    cut = rng.randrange(1, leaves)
    left = random_pattern(rng, cut)
    right = random_pattern(rng, leaves - cut)
    kind = rng.randrange(6)
    if kind == 0:
        return f"(?:{left}|{right})"
    if kind == 1:
        return f"(?i:{left}){right}"
    if kind < 4:
        return f"(?:{left}){rng.choice(REPEATS)}{right}"
    return left + right


def longest_by_re(pattern: str, text: str) -> int | None:
    """The longest prefix that can match, by trying every end."""
    for end in range(len(text), -1, -1):
        # The rest of the text stays visible to look-ahead: the end is pinned by a count.
        if re.match(rf"(?:{pattern})(?=(?s:.{{{len(text) - end}}})\Z)", text):
            return end
    return None


def check(pattern: str, texts: list[str]) -> None:
    regex = Regex(pattern)
    for text in texts:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            full = re.fullmatch(pattern, text) is not None
            longest = longest_by_re(pattern, text)
        assert regex.fullmatch(text) == full, (pattern, text)
        assert regex.longest(text) == longest, (pattern, text)


def check_random_cases(cases: int, seed: int) -> None:
    """Check so many different pairs of an expression and a text."""
    rng = random.Random(seed)
    seen: set[tuple[str, str]] = set()
    while len(seen) < cases:
        pattern = random_pattern(rng, rng.randint(1, 8))
        drawn = {"".join(rng.choices(CHARACTERS, k=rng.randrange(8))) for _ in range(12)}
        new = sorted(text for text in drawn if (pattern, text) not in seen)
        check(pattern, new)
        seen.update((pattern, text) for text in new)


def test_an_expression_without_the_empty_text_matches_all_its_other_texts() -> None:
    rng = random.Random(5)
    compared = 0
    while compared < 1_000:
        regex = Regex(random_pattern(rng, rng.randint(1, 5)))
        body = regex.tree.branches[0].body
        if not matches_empty(body):
            continue
        shorter = Regex("")
        shorter.tree = Pattern(regex.tree.source, (Branch(without_empty(body)),))
        for text in {"".join(rng.choices(CHARACTERS, k=rng.randrange(7))) for _ in range(8)}:
            assert shorter.fullmatch(text) == (regex.fullmatch(text) and text != "")
            assert shorter.longest(text) == (regex.longest(text) or None)
            compared += 1


@settings(
    max_examples=200, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
@given(patterns, st.lists(texts, min_size=4, max_size=4))
def test_random_expressions_match_what_re_matches(pattern: str, inputs: list[str]) -> None:
    check(pattern, inputs)


def test_5_000_different_cases_match_what_re_matches() -> None:
    check_random_cases(5_000, seed=0)


@pytest.mark.long
@pytest.mark.parametrize("shard", range(1, 11))
def test_10_000_different_cases_of_a_shard_match_what_re_matches(shard: int) -> None:
    check_random_cases(10_000, seed=shard)


@pytest.mark.parametrize(
    ("pattern", "column", "problem"),
    [
        ("a(b", 2, "expected '\\)' to close the group"),
        ("a)", 2, "unbalanced"),
        ("[a", 1, "expected '\\]' to close the class"),
        ("*a", 1, "nothing to repeat"),
        (r"(a)\1", 4, "back reference"),
        ("(?<=a)b", 1, "look-behind"),
        ("(?)a", 3, "expected a flag"),
        ("(?i-)a", 5, "expected a flag"),
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


@pytest.mark.parametrize(
    ("pattern", "matching", "others"),
    [
        (r"[[:alpha:]_]+", ["ab_"], ["a1", ""]),
        (r"\p{Lu}\P{L}", ["A1", "É "], ["aB", "AB"]),
        (r"\x41\u{1F600}\u0042", ["A\U0001f600B"], ["AB"]),
        (r"a{2,3}b{,1}", ["aa", "aaab"], ["a", "aaaa", "aabb"]),
        (r"(?i)k", ["k", "K", "\u212a"], ["c"]),
        (r"(?s).\Z", ["\n"], ["", "ab"]),
        ("(?i)[^i]", ["K", "ſ"], ["i", "I", "İ", "ı"]),
        ("(?i)ΐﬅ", ["\u1fd3ﬆ"], ["ίﬆ"]),
        (r"(?a)é\bx\B", [], ["éx"]),
        (r"(?a:é\bx)\b", ["éx"], ["ée"]),
        (r"x(?a:\b)é\b", ["xé"], ["xx"]),
        ("(?x) a b # both\n c", ["abc"], ["a b c"]),
        ("(?x) a\u2028", ["a\u2028"], ["a"]),
        (r"(?P<year>\d{4})-\d\d", ["2024-05"], ["2024-5"]),
        (r"[^]a]", ["b"], ["]", "a"]),
        (r"[a\]-]+", ["a]-"], ["b"]),
        (r"a{x}|{", ["a{x}", "{"], ["a"]),
        (r"\N{EURO SIGN}", ["€"], ["E"]),
    ],
)
def test_each_construct_matches_its_texts(
    pattern: str, matching: list[str], others: list[str]
) -> None:
    regex = Regex(pattern)
    assert [regex.fullmatch(text) for text in matching] == [True] * len(matching)
    assert [regex.fullmatch(text) for text in others] == [False] * len(others)


def test_flex_strings_definitions_and_differences_of_classes() -> None:
    regex = Regex('"a*"[a-z]{-}[bc]+', "flex")
    assert regex.fullmatch("a*dd")
    assert not regex.fullmatch("a*db")
    assert not regex.fullmatch("aaad")


def test_look_ahead_decides_how_long_a_match_is() -> None:
    assert Regex("a+(?!b)").longest("aaab") == 2
    assert Regex("a+(?=b)").longest("aaab") == 3
    assert Regex("a+(?=b)").longest("aaa") is None
    assert Regex("a*/b+", "flex").longest("aabb") == 2
    assert Regex("a*(?=a*b)").longest("aaab") == 3


def test_a_lazy_repetition_matches_the_same_texts() -> None:
    assert Regex('".*?"').fullmatch('"a"')
