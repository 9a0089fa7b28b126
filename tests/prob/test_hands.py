"""Hands of cards: of five dealt from fifty-two, a function looks at some things alone."""

from __future__ import annotations

import ast
import enum
import itertools
import math
import random
import textwrap
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import pytest

from hagane.tools.prob import typed
from hagane.tools.prob.capture.python_function import read_function
from hagane.tools.prob.draws import deciding
from hagane.tools.prob.replay import marked
from hagane.tools.prob.replay.glimpsed import glimpsed
from hagane.tools.prob.replay.unordered import unordered
from hagane.tools.prob.replay.unseen import Group, Pool, Unseen, _ways, shown

CARDS = [(rank, suit) for rank in range(13) for suit in "CDHS"]


class Suit(enum.Enum):
    CLUBS = 1
    HEARTS = 2
    SPADES = 3


@dataclass(frozen=True)
class Card:
    rank: int
    suit: Suit


FEW = [Card(rank, suit) for rank in range(4) for suit in Suit]


def flush() -> bool:
    hand = random.sample(CARDS, 5)
    return len({suit for _, suit in hand}) == 1


def lottery() -> bool:
    mine = {3, 11, 19, 27, 35, 43}
    drawn = random.sample(range(1, 50), 6)
    return sum(number in mine for number in drawn) == 3


def flush_by_turns() -> bool:
    deck = [f"{rank}{suit}" for rank in "23456789TJQKA" for suit in "cdhs"]
    random.shuffle(deck)
    suits = set()
    for card in deck[:5]:
        suits.add(card[1])
    return len(suits) == 1


def aces() -> bool:
    deck = list(range(52))
    random.shuffle(deck)
    hand = deck[:3]
    return sum(card // 4 == 12 for card in hand) == 2


@pytest.mark.parametrize(
    ("function", "chance"),
    [
        (flush, Fraction(33, 16660)),
        (flush_by_turns, Fraction(33, 16660)),
        (lottery, Fraction(math.comb(6, 3) * math.comb(43, 3), math.comb(49, 6))),
        (aces, Fraction(math.comb(4, 2) * 48, math.comb(52, 3))),
    ],
)
def test_hands_from_a_whole_deck_are_exact(function: Callable[[], bool], chance: Fraction) -> None:
    typed(f"{{x:bool | Prob(x) = {chance}}}")(function)


def three_of_a_rank() -> int:
    hand = random.sample(FEW, 3)
    ranks = [card.rank for card in hand]
    return max(Counter(ranks).values())


def same_suit() -> bool:
    hand = random.sample(FEW, 3)
    return all(card.suit is hand[0].suit for card in hand)


def run_of_ranks() -> bool:
    hand = random.sample(FEW, 3)
    ranks = sorted(card.rank for card in hand)
    return ranks == [ranks[0], ranks[0] + 1, ranks[0] + 2]


def run_in_a_suit() -> bool:
    hand = random.sample(FEW, 3)
    return len({card.suit for card in hand}) == 1 and max(card.rank for card in hand) == 2


def against_another() -> int:
    deck = list(FEW)
    random.shuffle(deck)
    mine, yours = deck.pop(), deck.pop()
    return (mine.rank > yours.rank) + (mine.suit is yours.suit)


def points() -> int:
    hand = random.sample(range(12), 3)
    return sum(2 * (card % 4) for card in hand) + (5 in hand)


def most_frequent() -> int:
    hand = random.sample(FEW, 3)
    return Counter(card.rank for card in hand).most_common(1)[0][0]


def lowest() -> int:
    hand = random.sample(FEW, 3)
    if len({card.suit for card in hand}) == 1:
        return 0
    return min(hand, key=lambda card: card.rank).suit.value


def without_a_name() -> int:
    ranks = set()
    for card in random.sample(FEW, 3):
        ranks.add(card.rank)
    return len(ranks)


def members() -> bool:
    hand = random.sample(range(12), 3)
    low = hand[0] not in range(4, 12)
    return low and any(card in {1, 5, hand[2]} for card in hand[:2])


def later_looked_at() -> int:
    deck = list(range(10))
    random.shuffle(deck)
    hand = deck[:3]
    many = sum(card < 5 for card in hand)
    return many * 10 + sum(1 for card in hand if card % 2)


@pytest.mark.parametrize(
    "function",
    [
        three_of_a_rank,
        same_suit,
        run_of_ranks,
        run_in_a_suit,
        against_another,
        points,
        most_frequent,
        lowest,
        without_a_name,
        members,
        later_looked_at,
    ],
)
def test_what_is_looked_at_has_the_distribution_of_all_hands(function: Callable[[], Any]) -> None:
    found = glimpsed(marked(function, read_function(function).tree), [], counts=False, most=10**6)
    assert found is not None
    assert dict(found.weights) == all_hands(function)


def all_hands(function: Callable[[], Any]) -> dict[Any, Fraction]:
    """Return the distribution of a function of the first three cards of a sample or a deck."""
    results: Counter[Any] = Counter()
    before = random.sample, random.shuffle
    size = 12 if function is not later_looked_at else 10
    for places in itertools.permutations(range(size), 3):

        def sample(cards: Any, count: int, places: Any = places) -> Any:
            return [cards[place] for place in places]

        def shuffle(cards: Any, places: Any = places) -> None:
            top = [cards[place] for place in places]
            rest = [card for card in cards if card not in top]
            # Read from the front, or from the back by ``pop``.
            cards[:] = [*top, *rest] if function is later_looked_at else [*rest, *top]

        random.sample, random.shuffle = sample, shuffle
        try:
            results[function()] += 1
        finally:
            random.sample, random.shuffle = before
    return {value: Fraction(count, results.total()) for value, count in results.items()}


def of_a_type() -> bool:
    hand = random.sample(range(20), 3)
    return type(hand[0]) is int


def in_order() -> bool:
    hand = random.sample(range(30), 3)
    return " ".join(map(str, (card % 2 for card in hand))) == "1 1 1"


def joined() -> bool:
    hand = random.sample(["a", "b", "c", "d"], 2)
    return "".join(hand) == "ab"


@pytest.mark.parametrize("function", [of_a_type, joined])
def test_questions_that_no_item_is_asked_are_noticed(function: Callable[[], bool]) -> None:
    assert (
        glimpsed(marked(function, read_function(function).tree), [], counts=False, most=9) is None
    )


def test_a_function_that_no_stand_in_serves_is_followed_with_whole_items() -> None:
    typed("{x:bool | Prob(x) = 1/12}")(joined)
    typed("{x:bool | Prob(x) = 13/116}")(in_order)


def hands_of(body: str) -> list[str]:
    tree = ast.parse("def f():\n" + textwrap.indent(body, "    ")).body[0]
    assert isinstance(tree, ast.FunctionDef)
    return [ast.unparse(hand) for hand in unordered(tree)]


@pytest.mark.parametrize(
    ("body", "free"),
    [
        ("h = random.sample(d, 5)\nreturn len(set(h))", True),
        ("h = sample(d, 5)\nreturn sorted(c[0] for c in h)[0] + (3 in h)", True),
        ("h = sample(d, 5)\nr = [c[0] for c in h]\nreturn max(r)", True),
        ("h = sample(d, 5)\nr = [c[0] for c in h]\nreturn r[0]", False),
        ("h = sample(d, 5)\nreturn h[0] == 1 and len(h)", False),
        ("h = sample(d, 5)\nh = h[1:]\nreturn len(set(h))", False),
        ("h = sample(d, 5)\nn = 0\nfor c in h:\n    n += c\nreturn n", True),
        ("h = sample(d, 5)\nn = 0\nfor c in h:\n    n = 2 * n + c\nreturn n", False),
        ("random.shuffle(d)\nh = d[:5]\nreturn sum(h)", True),
        ("random.shuffle(d)\nh = d[:5]\nreturn sum(h) + d[0]", False),
        ("h = d[:5]\nreturn sum(h)", False),
        ("h = sample(d, 5)\nreturn next(c for c in h)", False),
        ("return len({c.suit for c in sample(d, 5)})", True),
        ("for c in sample(d, 5):\n    s.add(c)\nreturn len(s)", True),
        ("return sample(d, 5)[0]", False),
        ("n = Counter(c[0] for c in sample(d, 5))\nreturn max(n.values()) + n[1]", True),
        ("n = Counter(c[0] for c in sample(d, 5))\nreturn n.most_common(1)[0][0]", False),
        ("return next(iter(set(sample(d, 5))))", False),
        ("return [c for c in set(sample(d, 5))][0]", False),
        ("h = sample(d, 5)\nreturn max(h, key=f)", False),
        ("h = sample(d, 5)\nn = {}\nfor c in h:\n    n[c] += 1\nreturn n.get(3)", True),
        ("h = sample(d, 5)\nn = {}\nfor c in h:\n    n[c] += 1\nreturn list(n)[0]", False),
        ("h = sample(d, 5)\nn = ''\nfor c in h:\n    n += c\nreturn n", False),
        ("h = sample(d, 5)\nn = 0\nfor c in h:\n    n += n * c\nreturn n", False),
        ("mine = {1}\nh = sample(d, 5)\nreturn len(mine & set(h)) == 3", True),
    ],
)
def test_hands_whose_order_makes_no_difference_are_known(body: str, free: bool) -> None:
    assert len(hands_of(body)) == free


def test_ways_of_taking_different_items_are_counted() -> None:
    chance = random.Random(4)
    for _ in range(40):
        masks = tuple(sorted(chance.randrange(1, 64) for _ in range(chance.randrange(1, 5))))
        sets = [[n for n in range(6) if mask >> n & 1] for mask in masks]
        ways = sum(len(set(taken)) == len(taken) for taken in itertools.product(*sets))
        assert _ways(masks) == ways


class Counting:
    """Decides questions by what is asked, and counts them."""

    def __init__(self) -> None:
        self.shares: list[list[Fraction]] = []

    def look(self, shares: list[Fraction]) -> int:
        self.shares.append(list(shares))
        return next(place for place, share in enumerate(shares) if share)


@pytest.fixture
def asked() -> Iterator[Counting]:
    counting: Any = Counting()
    token = deciding.set(counting)
    yield counting
    deciding.reset(token)


def test_an_item_is_drawn_no_further_than_it_is_looked_at(asked: Counting) -> None:
    pool = Pool(CARDS, 2)
    first, second = pool.views()
    rank, suit = first
    assert not asked.shares
    assert rank == 0
    assert asked.shares == [[Fraction(1, 13), Fraction(12, 13)]]
    assert second[0] == 0
    assert asked.shares[1] == [Fraction(3, 51), Fraction(48, 51)]
    assert type(suit) is Unseen
    assert shown(first) == (0, "C")
    assert len(asked.shares) == 3


def test_of_items_in_any_order_the_answers_ascend(asked: Counting) -> None:
    pool = Pool(range(6), 2)
    Group(pool.slots)
    first, second = pool.views()
    assert first % 3 == 0
    assert second % 3 == 0
    # Of the 15 pairs, 9 have the least rest and one has it twice.
    assert asked.shares[0][0] == Fraction(9, 15)
    assert asked.shares[1][0] == Fraction(1, 9)
