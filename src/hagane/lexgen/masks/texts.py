"""Sets of texts as complete automata over code points, closed under the set operations."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any

from hagane.errors import InvalidArgument
from hagane.lexgen.automata.determinise import determinise
from hagane.lexgen.automata.nfa import build_nfa
from hagane.lexgen.expressions import charset
from hagane.lexgen.expressions.characters import Flags
from hagane.lexgen.expressions.charset import END, MAX
from hagane.lexgen.expressions.parse import parse
from hagane.lexgen.expressions.syntax import (
    Alternate,
    Assertion,
    Branch,
    Chars,
    Concat,
    Look,
    Node,
    Repeat,
    concat,
)

MOST_STATES = 20_000

Row = tuple[tuple[int, int], ...]


@dataclass(frozen=True, eq=False)
class Texts:
    """A set of texts. Equal ones need not be one object.

    State 0 is the start. ``rows[state]`` lists the first code point of each interval and the next
    state of the code points from there to the next interval; -1 leads nowhere. ``accepts`` are the
    states in which a text of the set may end.
    """

    rows: tuple[Row, ...]
    accepts: frozenset[int]

    @property
    def empty(self) -> bool:
        """Whether there is no text in the set."""
        return not self.accepts

    def edges(self, state: int) -> Iterator[tuple[int, int, int]]:
        """Yield the first and the last code point and the next state of each interval."""
        for (low, to), (following, _) in pairwise((*self.rows[state], (END, -1))):
            if to >= 0:
                yield low, following - 1, to

    def __contains__(self, text: str) -> bool:
        if self is ANYTHING and text.isascii():
            return True
        state = 0
        for char in text:
            state = _next(self.rows[state], ord(char))
            if state < 0:
                return False
        return state in self.accepts

    def shortest(self) -> str | None:
        """Return a shortest text of the set, of letters where they serve; None if it is empty."""
        before: dict[int, tuple[int, str]] = {}
        queue = [0]
        for state in queue:
            if state in self.accepts:
                letters = []
                while state:
                    state, letter = before[state]
                    letters.append(letter)
                return "".join(reversed(letters))
            edges = list(self.edges(state))
            plain = [(c, to) for c in "abx0_" for low, high, to in edges if low <= ord(c) <= high]
            for letter, to in (*plain, *((chr(low), to) for low, _, to in edges)):
                if to and to not in before:
                    before[to] = state, letter
                    queue.append(to)
        return None

    def __and__(self, other: Texts) -> Texts:
        return _product(self, other, operator.and_)

    def __or__(self, other: Texts) -> Texts:
        return _product(self, other, operator.or_)

    def __sub__(self, other: Texts) -> Texts:
        return _contrary(other) if self is ANYTHING else _product(self, other, operator.gt)


def _next(row: Sequence[tuple[int, int]], code: int) -> int:
    found = -1
    for low, to in row:
        if low > code:
            break
        found = to
    return found


def _built(start: Any, step: Callable[[Any], tuple[dict[int, Any], bool]]) -> Texts:
    """Return the automaton that ``step`` describes, without states that lead to no text.

    Args:
        start: The first state, any hashable value.
        step: Gives the next states by the first code points of intervals (None: nowhere), and
            whether a text may end.
    """
    numbers = {start: 0}
    order = [start]
    rows: list[list[tuple[int, int]]] = []
    accepts = set()
    for number, state in enumerate(order):  # grows while it runs
        following, ends = step(state)
        if ends:
            accepts.add(number)
        row = []
        for low, to in sorted(following.items(), key=lambda item: item[0]):
            if to is not None and to not in numbers:
                numbers[to] = len(order)
                order.append(to)
                if len(order) > MOST_STATES:
                    raise InvalidArgument(
                        f"a set of texts needs more than {MOST_STATES} states; "
                        "bound lengths less, or use fewer patterns together"
                    )
            row.append((low, -1 if to is None else numbers[to]))
        rows.append(row)
    return _minimal(rows, accepts)


def _minimal(rows: list[list[tuple[int, int]]], accepts: set[int]) -> Texts:
    """Return the automaton with equal states joined and dead ones left out."""
    alive = set(accepts)
    before: dict[int, set[int]] = {}
    for state, row in enumerate(rows):
        for _, to in row:
            before.setdefault(to, set()).add(state)
    stack = list(alive)
    while stack:
        for state in before.get(stack.pop(), ()):
            if state not in alive:
                alive.add(state)
                stack.append(state)
    if 0 not in alive:
        return NOTHING
    block = _refined(rows, accepts, alive, before)
    numbers: dict[int, int] = {}
    order = [0]
    numbers[block[0]] = 0
    made: list[Row] = []
    for state in order:
        row = []
        for low, to in rows[state]:
            target = block.get(to, -1)
            if target >= 0 and target not in numbers:
                numbers[target] = len(order)
                order.append(to)
            row.append((low, numbers.get(target, -1)))
        made.append(_joined(row))
    ends = frozenset(number for number, state in enumerate(order) if state in accepts)
    return Texts(tuple(made), ends)


def _refined(
    rows: list[list[tuple[int, int]]],
    accepts: set[int],
    alive: set[int],
    before: dict[int, set[int]],
) -> dict[int, int]:
    """Return a number for each state, equal for states after which the same texts follow.

    Moore's refinement, but only for states with a successor whose number changed: all others of a
    block still agree. The largest part of a block keeps its number (Hopcroft, 1971), so a chain of
    n states takes n log n steps instead of n squared.
    """
    block = {state: int(state in accepts) for state in alive}
    members: list[set[int]] = [alive - accepts, alive & accepts]
    affected = set(alive)
    while affected:
        found: dict[int, dict[Any, list[int]]] = {}
        for state in affected:
            key: list[tuple[int, int]] = []  # the row with numbers of blocks, joined
            last = None
            for low, to in rows[state]:
                number = block.get(to, -1)
                if number != last:
                    key.append((low, number))
                    last = number
            found.setdefault(block[state], {}).setdefault(tuple(key), []).append(state)
        changed: list[int] = []
        for number, groups in found.items():
            parts = list(groups.values())
            others = len(members[number]) - sum(map(len, parts))
            if others > max(map(len, parts)):
                parts.append([])  # those that still agree keep the number
            elif others:
                parts.append(list(members[number].difference(*parts)))
                parts.sort(key=len)
            else:
                parts.sort(key=len)
            for part in parts[:-1]:
                members[number].difference_update(part)
                for state in part:
                    block[state] = len(members)
                members.append(set(part))
                changed += part
        affected = {state for each in changed for state in before.get(each, ()) if state in alive}
    return block


def _joined(row: Iterable[tuple[int, int]]) -> Row:
    joined: list[tuple[int, int]] = []
    for low, to in row:
        if not joined or joined[-1][1] != to:
            joined.append((low, to))
    return tuple(joined)


_NOWHERE: Row = ((0, -1),)


def _side_by_side(a: Row, b: Row) -> Iterator[tuple[int, tuple[int, int]]]:
    """Yield the first code points of the intervals of both rows, with the next state of each."""
    left = right = -1
    places, others = iter((*a, (END, -1))), iter((*b, (END, -1)))
    (low, to), (other, there) = next(places), next(others)
    while (at := min(low, other)) < END:
        if low == at:
            left = to
            low, to = next(places)
        if other == at:
            right = there
            other, there = next(others)
        yield at, (left, right)


@lru_cache(4096)
def _product(a: Texts, b: Texts, ends: Callable[[bool, bool], bool]) -> Texts:
    def step(state: Any) -> tuple[dict[int, Any], bool]:
        left, right = state
        rows = (
            a.rows[left] if left >= 0 else _NOWHERE,
            b.rows[right] if right >= 0 else _NOWHERE,
        )
        found = {low: None if to == (-1, -1) else to for low, to in _side_by_side(*rows)}
        return found, ends(left in a.accepts, right in b.accepts)

    return _built((0, 0), step)


NOTHING = Texts((((0, -1),),), frozenset())
# Surrogates are no characters.
_STEPS = ((0, 0), (0xD800, -1), (0xE000, 0))
ANYTHING = Texts((_STEPS,), frozenset({0}))


def _characters(row: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return a row without the code points that are no characters."""
    (_, _), (low, _), (high, _) = _STEPS
    if row[-1][0] < low:  # as most rows are
        return [*row, (low, -1), (high, row[-1][1])]
    return [
        *(step for step in row if step[0] < low),
        (low, -1),
        (high, _next(row, high)),
        *(step for step in row if high < step[0] <= MAX),
    ]


def _loop(state: int) -> Row:
    """Return the row of a state that every character leads to itself."""
    return tuple((low, to if to < 0 else state) for low, to in _STEPS)


@lru_cache(4096)
def _contrary(texts: Texts) -> Texts:
    """Return the texts that are not in a set: as its states are kept apart, so are they here."""
    if texts.empty:
        return ANYTHING
    beyond = len(texts.rows)  # behind characters that no text of the set has there
    rows: list[Row] = []
    for row in texts.rows:
        steps = [(low, beyond if to < 0 else to) for low, to in row]
        if steps[0][0] > 0:
            steps.insert(0, (0, beyond))
        rows.append(_joined(_characters(steps)))
    whole = (*rows, _loop(beyond))
    accepts = frozenset(range(beyond + 1)) - texts.accepts
    if any(rows[state] == _loop(state) for state in texts.accepts):  # nothing follows there now
        return _minimal([list(row) for row in whole], set(accepts))
    return Texts(whole, accepts)


def literals(texts: Iterable[str]) -> Texts:
    """Return the set of some texts."""
    return _literals(tuple(sorted(set(texts))))


@lru_cache(4096)
def _literals(wanted: tuple[str, ...]) -> Texts:
    if not wanted:
        return NOTHING
    # States are what may follow, so that equal ones are one.
    numbers = {wanted: 0}
    order = [wanted]
    rows: list[Row] = []
    for rests in order:  # grows while it runs
        following: dict[int, list[str]] = {}
        for rest in rests:  # in order, and so are their first characters
            if rest:
                following.setdefault(ord(rest[0]), []).append(rest[1:])
        row = [(0, -1)]
        for code, more in following.items():
            key = tuple(more)
            if key not in numbers:
                numbers[key] = len(order)
                order.append(key)
            if row[-1][0] == code:
                row.pop()
            row += [(code, numbers[key]), (code + 1, -1)]
        rows.append(_joined(row))
    return Texts(tuple(rows), frozenset(n for n, rests in enumerate(order) if not rests[0]))


@lru_cache(256)
def of_length(low: int, high: int | None) -> Texts:
    """Return the texts of at least ``low`` and at most ``high`` characters (None: any number)."""
    last = low if high is None else high

    def step(state: Any) -> tuple[dict[int, Any], bool]:
        count = int(state)
        more = count + 1 if count < last else (count if high is None else None)
        return {0: more, 0xD800: None, 0xE000: more}, count >= low

    return _built(0, step) if high is None or low <= high else NOTHING


_ECMA = Flags(ascii=True, ecma=True)


@lru_cache(4096)
def matching(source: str, whole: bool = False, flags: Flags = _ECMA) -> Texts:
    r"""Return the texts in which an expression matches somewhere.

    Args:
        source: The expression; ``$`` is the end of the text alone.
        whole: It must match the whole text.
        flags: As ECMA-262 has it if nothing is given: ``\d`` is ``[0-9]``.

    Raises:
        RegexSyntaxError: It is malformed, or looks back.
    """
    tree = parse(source, flags=flags)
    around = [] if whole else [Repeat(Chars(charset.ANY), 0, None)]
    branches = []
    for branch in tree.branches:
        body = _at_text_end(branch.body)
        if branch.following is None:
            branches.append(Branch(concat(*around, body, *around, Chars(charset.AT_END))))
        else:
            follow = concat(_at_text_end(branch.following), *around)
            branches.append(Branch(concat(*around, body), concat(follow, Chars(charset.AT_END))))
    if any(branch.following is not None for branch in branches):
        raise InvalidArgument("look-ahead is not covered but at the start of a schema's pattern")
    dfa = determinise(build_nfa([tuple(branches)])).winners_only()
    first = dfa.starts[0][0] if dfa.starts else -1
    if first < 0:
        return NOTHING
    alphabet = dfa.alphabet
    classes = _characters(list(zip(alphabet.starts, alphabet.ids, strict=True)))
    order = [first, *(state for state in range(len(dfa.delta)) if state != first)]
    names = {state: name for name, state in enumerate(order)}
    names[-1] = -1
    rows = [
        [(low, -1 if id < 0 else names[dfa.delta[state][id]]) for low, id in classes]
        for state in order
    ]
    end = alphabet.end_class
    return _minimal(rows, {name for name, state in enumerate(order) if dfa.delta[state][end] >= 0})


def _at_text_end(node: Node) -> Node:
    """Return an expression whose ``$`` is the end of the text, not also before a last newline."""
    match node:
        case Assertion(Look.LAST_LINE_END):
            return Assertion(Look.TEXT_END)
        case Concat(parts):
            return Concat(tuple(map(_at_text_end, parts)))
        case Alternate(parts):
            return Alternate(tuple(map(_at_text_end, parts)))
        case Repeat(body, low, high):
            return Repeat(_at_text_end(body), low, high)
        case _:
            return node


def multiples(numerator: int, digits: int) -> Texts:
    """Return the unsigned decimals of at most some digits after the point that divide evenly.

    Args:
        numerator: The factor of which the number times 10 to the ``digits`` is a multiple.
        digits: How many digits may stand after the point.
    """

    def step(state: Any) -> tuple[dict[int, Any], bool]:
        place, rest = state
        found: dict[int, Any] = {0: None}
        if place == "start":
            for digit in range(10):
                found[48 + digit] = ("zero" if digit == 0 else "whole", digit % numerator)
            found[58] = None
            return found, False
        if place == "whole" or isinstance(place, int):
            after = place + 1 if isinstance(place, int) else "whole"
            for digit in range(10):
                full = isinstance(place, int) and place >= digits
                found[48 + digit] = None if full else (after, (rest * 10 + digit) % numerator)
            found[58] = None
        if not isinstance(place, int) and digits:
            found[46] = (0, rest)
            found.setdefault(47, None)
        count = place if isinstance(place, int) else 0
        scaled = rest * pow(10, digits - count, numerator) % numerator
        return found, scaled == 0 and place != 0

    return _built(("start", 0), step)


def after(prefix: str, texts: Texts) -> Texts:
    """Return the texts of a set, each behind a prefix."""

    def step(state: Any) -> tuple[dict[int, Any], bool]:
        place, at = state
        if place == "prefix":
            code = ord(prefix[at])
            to = ("texts", 0) if at == len(prefix) - 1 else ("prefix", at + 1)
            return {0: None, code: to, code + 1: None}, False
        row = {low: None if to < 0 else ("texts", to) for low, to in texts.rows[at]}
        return dict(row), at in texts.accepts

    return texts if not prefix else _built(("prefix", 0), step)
