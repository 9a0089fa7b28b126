"""Rules that call themselves before any text, turned round."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from hagane.lexgen.masks.rules.parts import (
    NO_TEXT,
    Alt,
    Bytes,
    Call,
    Net,
    OneOf,
    Part,
    Rep,
    Seq,
    alt,
    seq,
)
from hagane.lexgen.masks.texts import literals


def turned_round(bodies: list[Part]) -> list[Part]:
    """Return rules of which none begins with a call of itself, further rules behind them.

    Rules that begin with calls of each other are linear from the left, as states of an automaton
    are: ``A: A x | B y | z`` says that a text of A is one of A and x, one of B and y, or z. So
    their texts are those of a net with a place for each of these rules, which is reached where a
    text of the rule ends. Rules that match the empty text are parted into it and their other texts,
    since what stands behind the empty text begins the rule as well.
    """
    made = list(bodies)
    leads = _leading(made)
    reached = [_reached(leads, rule) for rule in range(len(made))]
    circles = {
        rule: tuple(sorted(other for other in found if rule in reached[other]))
        for rule, found in enumerate(reached)
        if rule in found
    }
    return _Turned(made, circles).rules if circles else made


@dataclass(frozen=True)
class _Ways:
    """The texts of a part that are not empty.

    Attributes:
        calls: Rules of a circle that the part begins with, and the part behind each.
        other: Texts that begin otherwise.
    """

    calls: tuple[tuple[int, Part], ...] = ()
    other: tuple[Part, ...] = ()

    def before(self, part: Part) -> _Ways:
        """Return them with a part behind."""
        return _Ways(
            tuple((rule, seq(rest, part)) for rule, rest in self.calls),
            tuple(seq(each, part) for each in self.other),
        )

    def __add__(self, more: _Ways) -> _Ways:
        return _Ways(self.calls + more.calls, self.other + more.other)


class _Turned:
    """Rules under change.

    Args:
        bodies: The rules.
        circles: For the rules that are to be turned round, all with which they begin in a circle.
    """

    def __init__(self, bodies: list[Part], circles: dict[int, tuple[int, ...]]):
        self._bodies = bodies
        self._circles = circles
        self._empty = _empty_rules(bodies)
        self._others: dict[int, Call] = {}  # the rules for the texts that are not empty
        self.rules: list[Part] = list(bodies)
        for rule in circles:
            call = self._without_empty(rule)
            self.rules[rule] = Rep(call, 0, 1) if rule in self._empty else call

    def _without_empty(self, rule: int) -> Call:
        """Return a call for the texts of a rule that are not empty."""
        if rule not in self._circles and rule not in self._empty:
            return Call(rule)
        if rule not in self._others:
            self._others[rule] = Call(len(self.rules))
            self.rules.append(NO_TEXT)
            self.rules[self._others[rule].rule] = (
                self._net(rule)
                if rule in self._circles
                else alt(self._ways(self._bodies[rule], ()).other)
            )
        return self._others[rule]

    def _net(self, rule: int) -> Part:
        circle = self._circles[rule]
        edges: list[tuple[int, Part, int]] = []
        for other in circle:
            ways = self._ways(self._bodies[other], circle)
            edges += [(len(self._bodies), each, other) for each in ways.other]
            edges += [(first, rest, other) for first, rest in ways.calls]
        end = len(self._bodies) + 1
        return Net((*edges, (rule, NO_TEXT, end)), len(self._bodies), end)

    def _ways(self, part: Part, circle: tuple[int, ...]) -> _Ways:
        """Return the texts of a part, but for the empty one, by the rules of a circle in front."""
        match part:
            case Bytes(text):
                return _Ways(other=(part,)) if text else _Ways()
            case OneOf(texts):
                return _Ways(other=(replace(part, texts=texts - literals(("",))),))
            case Call(rule) if rule in circle:
                return _Ways(calls=((rule, NO_TEXT),))
            case Call(rule):
                return _Ways(other=(self._without_empty(rule),))
            case Seq(parts):
                found = _Ways()
                for number, each in enumerate(parts):
                    found += self._ways(each, circle).before(Seq(parts[number + 1 :]))
                    if not _may_be_empty(each, self._empty):
                        break
                return found
            case Alt(parts):
                return sum((self._ways(each, circle) for each in parts), _Ways())
            case Rep(_, _, 0):
                return _Ways()
            case Rep(body, low, high):
                low = 0 if _may_be_empty(body, self._empty) else max(low - 1, 0)
                more = Rep(body, low, None if high is None else high - 1)
                return self._ways(body, circle).before(more)
        raise TypeError(f"expected a part of a grammar, got {type(part).__name__}")


def _empty_rules(bodies: list[Part]) -> set[int]:
    """Return the rules that match the empty text."""
    empty: set[int] = set()
    while True:
        more = {number for number, body in enumerate(bodies) if _may_be_empty(body, empty)}
        if more == empty:
            return empty
        empty = more


def _leading(bodies: list[Part]) -> list[set[int]]:
    """Return for each rule the rules that it may call before any text."""
    empty = _empty_rules(bodies)

    def heads(part: Part) -> Iterator[int]:
        match part:
            case Call(rule):
                yield rule
            case Seq(parts):
                for each in parts:
                    yield from heads(each)
                    if not _may_be_empty(each, empty):
                        break
            case Alt(parts):
                for each in parts:
                    yield from heads(each)
            case Rep(body):
                yield from heads(body)

    return [set(heads(body)) for body in bodies]


def _may_be_empty(part: Part, empty: set[int]) -> bool:
    inner: Callable[[Part], bool] = lambda each: _may_be_empty(each, empty)  # noqa: E731
    match part:
        case Bytes(text):
            return not text
        case OneOf(texts):
            return "" in texts
        case Seq(parts):
            return all(map(inner, parts))
        case Alt(parts):
            return any(map(inner, parts))
        case Rep(body, low):
            return low == 0 or inner(body)
        case Call(rule):
            return rule in empty
    return False


def _reached(leads: list[set[int]], rule: int) -> set[int]:
    found: set[int] = set()
    stack = list(leads[rule])
    while stack:
        at = stack.pop()
        if at not in found:
            found.add(at)
            stack += leads[at]
    return found
