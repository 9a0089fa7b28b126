"""Grammars as automata that call each other: text and calls of rules, deterministic where they can.

Nodes describe texts; ``Rules`` compiles them over bytes. A push-down automaton runs them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import chain, pairwise

import numpy as np
from numpy.typing import NDArray

from hagane.errors import InvalidArgument
from hagane.lexgen.automata.utf8 import utf8_sequences
from hagane.lexgen.masks.texts import Texts

MOST_STATES = 200_000
_FEW_COPIES = 4


@dataclass(frozen=True)
class Bytes:
    """A text."""

    text: bytes


@dataclass(frozen=True, eq=False)
class OneOf:
    """A text of a set, each character written in one of some ways.

    Attributes:
        texts: The set.
        ways: Gives the sequences of byte ranges that write the code points of an interval.
    """

    texts: Texts
    ways: Callable[[int, int], Iterable[tuple[tuple[int, int], ...]]] = utf8_sequences


@dataclass(frozen=True)
class Seq:
    """Parts one after the other."""

    parts: tuple[Part, ...]


@dataclass(frozen=True)
class Alt:
    """One of some parts; none of them: no text at all."""

    parts: tuple[Part, ...]


@dataclass(frozen=True)
class Rep:
    """A part, again and again.

    Attributes:
        body: The part.
        low: The least number.
        high: The most; None for no bound.
    """

    body: Part
    low: int
    high: int | None


@dataclass(frozen=True)
class Call:
    """A rule, by its number."""

    rule: int


@dataclass(frozen=True)
class Net:
    """Parts between numbered places, from the start to the end.

    Attributes:
        edges: (place, part, next place).
        start: The first place.
        end: The last place.
    """

    edges: tuple[tuple[int, Part, int], ...]
    start: int
    end: int


Part = Bytes | OneOf | Seq | Alt | Rep | Call | Net
NO_TEXT = Seq(())


def seq(*parts: Part) -> Part:
    """Return parts one after the other."""
    return parts[0] if len(parts) == 1 else Seq(parts)


def alt(parts: Iterable[Part]) -> Part:
    """Return one of some parts."""
    found = tuple(parts)
    return found[0] if len(found) == 1 else Alt(found)


@dataclass
class _Nfa:
    """Edges by state: byte ranges, moves without text, calls of rules that may repeat."""

    bytes: list[list[tuple[int, int, int]]] = field(default_factory=list)
    free: list[list[int]] = field(default_factory=list)
    calls: list[list[tuple[tuple[int, int, int], int]]] = field(default_factory=list)

    def state(self) -> int:
        self.bytes.append([])
        self.free.append([])
        self.calls.append([])
        return len(self.bytes) - 1


@dataclass(frozen=True)
class Automata:
    """Compiled rules, all states numbered together.

    Attributes:
        delta: Next states by state and byte, (states, 256), -1 for none.
        accepts: Whether the rule of a state may end there, (states,).
        starts: The first state of each rule; -1 where a rule matches no text.
        first_call: Where the calls of a state begin in the following, (states + 1,).
        call_rule: The rules called.
        call_to: The states after them.
        call_low: The least number of repetitions.
        call_high: The most; -1 for no bound. One call is 1 to 1.
        begins: Whether a text of a rule may begin with a byte, (rules, 256).
        nullable: Whether a rule matches the empty text.
    """

    delta: NDArray[np.int32]
    accepts: NDArray[np.uint8]
    starts: NDArray[np.int32]
    first_call: NDArray[np.int32]
    call_rule: NDArray[np.int32]
    call_to: NDArray[np.int32]
    call_low: NDArray[np.int32]
    call_high: NDArray[np.int32]
    begins: NDArray[np.uint8]
    nullable: NDArray[np.uint8]


class Rules:
    """Rules under construction."""

    def __init__(self) -> None:
        self.bodies: list[Part | None] = []

    def reserve(self) -> int:
        """Return the number of a rule that is defined later."""
        self.bodies.append(None)
        return len(self.bodies) - 1

    def define(self, rule: int, body: Part) -> None:
        """Set the texts that a reserved rule matches."""
        self.bodies[rule] = body

    def add(self, body: Part) -> Call:
        """Return a call of a new rule."""
        rule = self.reserve()
        self.define(rule, body)
        return Call(rule)

    def compile(self, usable: frozenset[int] = frozenset(range(256))) -> Automata:
        """Return the automata of all rules.

        Args:
            usable: The bytes that texts may have.

        Raises:
            InvalidArgument: They have too many states, or a rule calls itself before any text.
        """
        parts: list[_Dfa] = []
        while len(parts) < len(self.bodies):  # repeated parts become rules meanwhile
            parts.append(self._dfa(len(parts)))
        if len(usable) < 256:
            for part in parts:
                part.rows = [{b: to for b, to in row.items() if b in usable} for row in part.rows]
        return _assemble(parts)

    def _dfa(self, rule: int) -> _Dfa:
        body = self.bodies[rule]
        if body is None:
            raise ValueError(f"rule {rule} has no body")
        nfa = _Nfa()
        start, end = nfa.state(), nfa.state()
        self._emit(nfa, body, start, end)
        return _determinise(nfa, start, end)

    def _emit(self, nfa: _Nfa, part: Part, start: int, end: int) -> None:
        match part:
            case Bytes(text):
                at = start
                for number, byte in enumerate(text):
                    to = end if number == len(text) - 1 else nfa.state()
                    nfa.bytes[at].append((byte, byte, to))
                    at = to
                if not text:
                    nfa.free[start].append(end)
            case OneOf():
                self._emit_texts(nfa, part, start, end)
            case Seq(parts):
                at = start
                for each in parts:
                    to = nfa.state()
                    self._emit(nfa, each, at, to)
                    at = to
                nfa.free[at].append(end)
            case Alt(parts):
                for each in parts:
                    self._emit(nfa, each, start, end)
            case Rep(body, low, high):
                self._emit_repeated(nfa, body, low, high, start, end)
            case Net(edges, first, last):
                places = {first: start, last: end}
                for place, each, to in edges:
                    for each_place in (place, to):
                        if each_place not in places:
                            places[each_place] = nfa.state()
                    self._emit(nfa, each, places[place], places[to])
            case Call(rule):
                nfa.calls[start].append(((rule, 1, 1), end))

    def _emit_texts(self, nfa: _Nfa, part: OneOf, start: int, end: int) -> None:
        texts = part.texts
        states = [nfa.state() for _ in texts.rows]
        nfa.free[start].append(states[0])
        for state, row in enumerate(states):
            if state in texts.accepts:
                nfa.free[row].append(end)
            for low, high, to in texts.edges(state):
                for sequence in part.ways(low, high):
                    at = row
                    for number, (least, most) in enumerate(sequence):
                        last = number == len(sequence) - 1
                        target = states[to] if last else nfa.state()
                        nfa.bytes[at].append((least, most, target))
                        at = target

    def _emit_repeated(
        self, nfa: _Nfa, body: Part, low: int, high: int | None, start: int, end: int
    ) -> None:
        if max(low, high or 0) > _FEW_COPIES:
            call = body if isinstance(body, Call) else self.add(body)
            nfa.calls[start].append(((call.rule, low, -1 if high is None else high), end))
            return
        at = start
        for _ in range(low):
            to = nfa.state()
            self._emit(nfa, body, at, to)
            at = to
        if high is None:
            loop = nfa.state()
            nfa.free[at].append(loop)
            self._emit(nfa, body, loop, loop)
            nfa.free[loop].append(end)
            return
        for _ in range(high - low):
            nfa.free[at].append(end)
            to = nfa.state()
            self._emit(nfa, body, at, to)
            at = to
        nfa.free[at].append(end)


@dataclass
class _Dfa:
    rows: list[dict[int, int]]
    calls: list[dict[tuple[int, int, int], int]]
    accepts: list[bool]


def _determinise(nfa: _Nfa, start: int, end: int) -> _Dfa:
    def closed(states: Iterable[int]) -> frozenset[int]:
        found = set(states)
        stack = list(found)
        while stack:
            for to in nfa.free[stack.pop()]:
                if to not in found:
                    found.add(to)
                    stack.append(to)
        return frozenset(s for s in found if nfa.bytes[s] or nfa.calls[s] or s == end)

    first = closed([start])
    numbers = {first: 0}
    order = [first]
    made = _Dfa([], [], [])
    single: dict[int, int] = {}  # of most steps, which lead to one state

    def number(states: set[int]) -> int:
        if len(states) > 1:
            return numbered(states)
        (only,) = states
        if only not in single:
            single[only] = numbered(states)
        return single[only]

    def numbered(states: Iterable[int]) -> int:
        key = closed(states)
        if key not in numbers:
            numbers[key] = len(order)
            order.append(key)
            if len(order) > MOST_STATES:
                raise InvalidArgument(f"a grammar needs more than {MOST_STATES} states in one rule")
        return numbers[key]

    for states in order:  # grows while it runs
        edges = [edge for state in states for edge in nfa.bytes[state]]
        cuts = sorted({low for low, _, _ in edges} | {high + 1 for _, high, _ in edges})
        row: dict[int, int] = {}
        for low, following in pairwise(cuts):
            targets = {to for least, most, to in edges if least <= low <= most}
            if targets:
                row.update(dict.fromkeys(range(low, following), number(targets)))
        calls: dict[tuple[int, int, int], set[int]] = {}
        for state in states:
            for called, to in nfa.calls[state]:
                calls.setdefault(called, set()).add(to)
        made.rows.append(row)
        made.calls.append({called: number(targets) for called, targets in calls.items()})
        made.accepts.append(end in states)
    return made


def _assemble(parts: list[_Dfa]) -> Automata:
    productive = _productive(parts)
    keep: list[dict[int, int]] = []
    total = 0
    for alive in productive:
        keep.append({state: total + number for number, state in enumerate(sorted(alive))})
        total += len(alive)
    if total > MOST_STATES:
        raise InvalidArgument(f"a grammar needs more than {MOST_STATES} states")
    delta = np.full((total, 256), -1, np.int32)
    accepts = np.zeros(total, np.uint8)
    first_call = np.zeros(total + 1, np.int32)
    calls: list[tuple[int, int, int, int]] = []
    starts = np.full(len(parts), -1, np.int32)
    for rule, (part, names) in enumerate(zip(parts, keep, strict=True)):
        starts[rule] = names.get(0, -1)
        _fill(delta, part, names)
        for state, name in names.items():
            accepts[name] = part.accepts[state]
            for (called, low, high), to in part.calls[state].items():
                if to in names and (0 in keep[called] or low == 0):
                    calls.append((called, names[to], low, high if 0 in keep[called] else 0))
            first_call[name + 1] = len(calls)
    table = np.array(calls, np.int32).reshape(-1, 4)
    made = Automata(
        delta,
        accepts,
        starts,
        first_call,
        call_rule=np.ascontiguousarray(table[:, 0]),
        call_to=np.ascontiguousarray(table[:, 1]),
        call_low=np.ascontiguousarray(table[:, 2]),
        call_high=np.ascontiguousarray(table[:, 3]),
        begins=np.zeros((len(parts), 256), np.uint8),
        nullable=np.zeros(len(parts), np.uint8),
    )
    _find_beginnings(made)
    return made


def _fill(delta: NDArray[np.int32], part: _Dfa, names: dict[int, int]) -> None:
    """Write the steps of a rule's states, under their new names."""
    if not names:
        return
    renamed = np.full(len(part.rows), -1, np.int32)
    renamed[list(names)] = list(names.values())
    rows = [part.rows[state] for state in names]
    places = np.repeat(list(names.values()), [len(row) for row in rows])
    read = np.fromiter(chain.from_iterable(rows), np.int64)
    to = np.fromiter(chain.from_iterable(row.values() for row in rows), np.int64)
    delta[places, read] = renamed[to]


def _productive(parts: list[_Dfa]) -> list[set[int]]:
    """Return the states of each rule that can be reached and from which the rule can end."""
    alive: list[set[int]] = [set() for _ in parts]
    before: list[dict[int, set[int]]] = [{} for _ in parts]
    # Steps over a called rule, which count once that rule can end.
    waiting: list[list[tuple[int, int, int]]] = [[] for _ in parts]
    found: list[tuple[int, int]] = []
    for rule, part in enumerate(parts):
        for state, row in enumerate(part.rows):
            for to in set(row.values()):
                before[rule].setdefault(to, set()).add(state)
            for (called, low, _), to in part.calls[state].items():
                if low == 0:
                    before[rule].setdefault(to, set()).add(state)
                else:
                    waiting[called].append((rule, state, to))
            if part.accepts[state]:
                found.append((rule, state))
    while found:
        rule, state = found.pop()
        if state in alive[rule]:
            continue
        alive[rule].add(state)
        found += [(rule, each) for each in before[rule].get(state, ())]
        if state == 0:
            for caller, at, to in waiting[rule]:
                before[caller].setdefault(to, set()).add(at)
                if to in alive[caller]:
                    found.append((caller, at))
    return alive


def _find_beginnings(made: Automata) -> None:
    """Fill the first bytes and the emptiness of rules; refuse calls of itself before any text."""
    rules = len(made.starts)
    leads: list[set[int]] = [set() for _ in range(rules)]
    changed = True
    while changed:
        changed = False
        for rule in range(rules):
            if made.starts[rule] < 0:
                continue
            begins, nullable = made.begins[rule].copy(), False
            seen = set()
            stack = [int(made.starts[rule])]
            while stack:
                state = stack.pop()
                if state in seen:
                    continue
                seen.add(state)
                begins |= (made.delta[state] >= 0).astype(np.uint8)
                nullable |= bool(made.accepts[state])
                for call in range(made.first_call[state], made.first_call[state + 1]):
                    called = int(made.call_rule[call])
                    if made.call_high[call] != 0:
                        begins |= made.begins[called]
                        leads[rule].add(called)
                    if made.call_low[call] == 0 or made.nullable[called]:
                        stack.append(int(made.call_to[call]))
            if nullable != made.nullable[rule] or (begins != made.begins[rule]).any():
                changed = True
                made.begins[rule], made.nullable[rule] = begins, nullable
    _refuse_left_recursion(leads)


def _refuse_left_recursion(leads: list[set[int]]) -> None:
    """Refuse rules that call themselves before any text."""
    colour = [0] * len(leads)
    for root in range(len(leads)):
        stack = [(root, iter(leads[root]))] if not colour[root] else []
        colour[root] = colour[root] or 1
        while stack:
            rule, rest = stack[-1]
            for called in rest:
                if colour[called] == 1:
                    raise LeftRecursion(called)
                if colour[called] == 0:
                    colour[called] = 1
                    stack.append((called, iter(leads[called])))
                    break
            else:
                colour[rule] = 2
                stack.pop()


class LeftRecursion(InvalidArgument):
    """A rule calls itself before any text.

    Attributes:
        rule: Its number.
    """

    def __init__(self, rule: int):
        super().__init__(f"rule {rule} calls itself before any text")
        self.rule = rule
