"""One rule of a grammar as an automaton over bytes, which calls those of other rules."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hagane.errors import InvalidArgument
from hagane.lexgen.masks.library import steps
from hagane.lexgen.masks.rules.parts import NO_TEXT, Alt, Bytes, Call, Net, OneOf, Part, Rep, Seq

MOST_STATES = 200_000
_FEW_COPIES = 4
_FEW_SPANS = 150
ALL_BYTES = frozenset(range(256))

# A call: the rule, the least number of repetitions, the most (-1: no bound).
Called = tuple[int, int, int]


@dataclass(frozen=True, slots=True, eq=False)
class Unit:
    """A rule's automaton; state 0 is the first.

    Every state is reached, and leads to an end if the called rules match some text.

    Attributes:
        delta: Next states by state and byte, (states, 256), -1 for none.
        accepts: Whether the rule may end in a state, (states,).
        calls_by_state: The state, the call and the state behind it, in order of the first.
        calls: The same calls as ``Automata`` has them, (calls, 4).
        first_call: Where the calls of a state begin, (states + 1,).
        empty: No text matches.
    """

    delta: NDArray[np.int32]
    accepts: NDArray[np.uint8]
    calls_by_state: tuple[tuple[int, Called, int], ...]
    calls: NDArray[np.int32]
    first_call: NDArray[np.int32]
    empty: bool = False

    @property
    def states(self) -> int:
        """The number of states."""
        return len(self.accepts)


@dataclass(slots=True)
class Nfa:
    """Rules as edges between states: byte ranges, moves without text, calls.

    Attributes:
        states: Their number.
        bytes: The state, the first and the last byte, the next state, one after the other.
        free: The state and the next one.
        calls: The state, the rule, the least and the most repetitions, the next state.
    """

    states: int = 0
    bytes: list[int] = field(default_factory=list)
    free: list[int] = field(default_factory=list)
    calls: list[int] = field(default_factory=list)

    def state(self) -> int:
        """Return a new state."""
        self.states += 1
        return self.states - 1

    def chain(self, text: Sequence[int], start: int, end: int) -> None:
        """Write the edges of a text."""
        if len(text) == 1:
            self.bytes += (start, text[0], text[0], end)
            return
        if not text:
            self.free += (start, end)
            return
        first, last = self.states, self.states + len(text) - 1
        self.states = last
        befores, afters = chain((start,), range(first, last)), chain(range(first, last), (end,))
        self.bytes += chain.from_iterable(zip(befores, text, text, afters, strict=True))


class Emitter:
    """Writes the edges of rules, in C where there is a compiler.

    Args:
        add: Makes a rule of a part that is repeated too often to be copied.
        native: Whether C may be used.
    """

    def __init__(self, add: Callable[[Part], Call], native: bool):
        nfa = self._nfa = Nfa()
        self._add = add
        self._module = steps() if native else None

        def other(part: Part, start: int, end: int, states: int) -> int:
            nfa.states = states
            _emit(nfa, part, start, end, add)
            return nfa.states

        if self._module is not None:
            self._edges = self._module.edges((Bytes, Call, Seq, Alt, Net), other)

    def rule(self, body: Part) -> tuple[int, int]:
        """Write the edges of a rule; return its first and its last state."""
        if self._module is not None:
            ends: tuple[int, int] = self._module.rule(self._edges, body)
            return ends
        start, end = self._nfa.state(), self._nfa.state()
        _emit(self._nfa, body, start, end, self._add)
        return start, end

    def written(self) -> Nfa:
        """Return the edges of all rules, once."""
        if self._module is None:
            return self._nfa
        states, *written = self._module.written(self._edges)
        lists: list[Any] = []
        for numbers, others in zip(
            written, (self._nfa.bytes, self._nfa.free, self._nfa.calls), strict=True
        ):
            made = array("i", numbers)
            made.extend(others)
            lists.append(made)
        return Nfa(states, *lists)


_taken = 0


def take_keys(states: int) -> int:
    """Return the first of so many numbers that nothing has yet."""
    global _taken
    first = _taken
    _taken += states
    return first


def _emit(nfa: Nfa, part: Part, start: int, end: int, add: Callable[[Part], Call]) -> None:
    # By the type itself: patterns of `match` take three times as long, and grammars have thousands.
    kind = type(part)
    if kind is Bytes:
        nfa.chain(part.text, start, end)  # type: ignore[union-attr]
    elif kind is Call:
        nfa.calls += (start, part.rule, 1, 1, end)  # type: ignore[union-attr]
    elif kind is Seq:
        _emit_sequence(nfa, part.parts, start, end, add)  # type: ignore[union-attr]
    elif kind is Alt:
        for each in part.parts:  # type: ignore[union-attr]
            if each is NO_TEXT:
                nfa.free += (start, end)
            else:
                _emit(nfa, each, start, end, add)
    elif isinstance(part, Net):
        _emit_net(nfa, part, start, end, add)
    elif isinstance(part, OneOf):
        _emit_texts(nfa, part, start, end, add)
    elif isinstance(part, Rep):
        _emit_repeated(nfa, part.body, part.low, part.high, start, end, add)


def _emit_sequence(
    nfa: Nfa, parts: Sequence[Part], start: int, end: int, add: Callable[[Part], Call]
) -> None:
    if not parts:
        nfa.free += (start, end)
        return
    at, last = start, len(parts) - 1
    for place, each in enumerate(parts):
        if place == last:
            to = end
        else:
            to = nfa.states
            nfa.states += 1
        kind = type(each)
        if kind is Call:
            nfa.calls += (at, each.rule, 1, 1, to)  # type: ignore[union-attr]
        elif kind is Bytes:
            nfa.chain(each.text, at, to)  # type: ignore[union-attr]
        else:
            _emit(nfa, each, at, to, add)
        at = to


def _emit_net(nfa: Nfa, net: Net, start: int, end: int, add: Callable[[Part], Call]) -> None:
    places = {net.start: start, net.end: end}
    for place, each, to in net.edges:
        before = places.get(place)
        if before is None:
            before = places[place] = nfa.state()
        after = places.get(to)
        if after is None:
            after = places[to] = nfa.state()
        if each is NO_TEXT:
            nfa.free += (before, after)
        else:
            _emit(nfa, each, before, after, add)


def _emit_texts(nfa: Nfa, part: OneOf, start: int, end: int, add: Callable[[Part], Call]) -> None:
    texts = part.texts
    first = nfa.states
    nfa.states += len(texts.rows)
    nfa.free += (start, first)
    # What is left of a character behind its first bytes, and the state behind it: the same for
    # all characters that end so.
    within: dict[tuple[tuple[tuple[int, int], ...], int], int] = {}

    def rest(sequence: tuple[tuple[int, int], ...], to: int) -> int:
        if not sequence:
            return to
        state = within.get((sequence, to))
        if state is None:
            state = within[sequence, to] = nfa.state()
            nfa.bytes += (state, *sequence[0], rest(sequence[1:], to))
        return state

    for state in range(len(texts.rows)):
        row = first + state
        if state in texts.accepts:
            nfa.free += (row, end)
        for low, high, to in texts.edges(state):
            for sequence in part.ways(low, high):
                nfa.bytes += (row, *sequence[0], rest(sequence[1:], first + to))
    for state, tail in part.tails:
        _emit(nfa, tail, first + state, end, add)


def _emit_repeated(
    nfa: Nfa,
    body: Part,
    low: int,
    high: int | None,
    start: int,
    end: int,
    add: Callable[[Part], Call],
) -> None:
    if max(low, high or 0) > _FEW_COPIES:
        call = body if isinstance(body, Call) else add(body)
        nfa.calls += (start, call.rule, low, -1 if high is None else high, end)
        return
    at = start
    for _ in range(low):
        to = nfa.state()
        _emit(nfa, body, at, to, add)
        at = to
    if high is None:
        loop = nfa.state()
        nfa.free += (at, loop)
        _emit(nfa, body, loop, loop, add)
        nfa.free += (loop, end)
        return
    for _ in range(high - low):
        nfa.free += (at, end)
        to = nfa.state()
        _emit(nfa, body, at, to, add)
        at = to
    nfa.free += (at, end)


class _Edges:
    """The edges of rules by state."""

    def __init__(self, nfa: Nfa):
        self.bytes: list[list[tuple[int, int, int]]] = [[] for _ in range(nfa.states)]
        self.free: list[list[int]] = [[] for _ in range(nfa.states)]
        self.calls: list[list[tuple[Called, int]]] = [[] for _ in range(nfa.states)]
        for state, low, high, to in _groups(nfa.bytes, 4):
            self.bytes[state].append((low, high, to))
        for state, to in _groups(nfa.free, 2):
            self.free[state].append(to)
        for state, rule, low, high, to in _groups(nfa.calls, 5):
            self.calls[state].append(((rule, low, high), to))


def _groups(numbers: list[int], size: int) -> Iterator[tuple[int, ...]]:
    return zip(*[iter(numbers)] * size, strict=True)


def compile_units(nfa: Nfa, rules: Sequence[tuple[int, int]], usable: frozenset[int]) -> list[Unit]:
    """Return the automata of rules, of which the first and last states are given.

    Raises:
        InvalidArgument: One has too many states.
    """
    edges = _Edges(nfa)
    return [_determinise(edges, start, end, usable) for start, end in rules]


class _Subsets:
    """The sets of states of an automaton that texts reach, numbered as they are met."""

    def __init__(self, nfa: _Edges, start: int, end: int):
        self._free = nfa.free
        self._edges = nfa
        self._end = end
        self.order: list[tuple[int, ...]] = []
        self._numbers: dict[tuple[int, ...], int] = {}
        self._single: dict[int, int] = {}  # of most steps, which lead to one state
        self.of((start,))

    def of(self, states: Iterable[int]) -> int:
        """Return the number of the closure of some states."""
        found = tuple(states)
        if len(found) == 1:
            known = self._single.get(found[0])
            if known is None:
                known = self._single[found[0]] = self._numbered(found)
            return known
        return self._numbered(found)

    def _matters(self, state: int) -> bool:
        return state == self._end or bool(self._edges.bytes[state] or self._edges.calls[state])

    def _numbered(self, states: tuple[int, ...]) -> int:
        if len(states) > 1 or self._free[states[0]]:
            found = dict.fromkeys(states)
            stack = list(states)
            while stack:
                for to in self._free[stack.pop()]:
                    if to not in found:
                        found[to] = None
                        stack.append(to)
            states = tuple(sorted(state for state in found if self._matters(state)))
        number = self._numbers.get(states)
        if number is None:
            number = self._numbers[states] = len(self.order)
            self.order.append(states)
            if number >= MOST_STATES:
                raise InvalidArgument(f"a grammar needs more than {MOST_STATES} states in one rule")
        return number


def _determinise(nfa: _Edges, start: int, end: int, usable: frozenset[int]) -> Unit:
    subsets = _Subsets(nfa, start, end)
    spans: list[tuple[int, int, int, int]] = []  # state, first and last byte, next state
    calls: list[tuple[int, Called, int]] = []
    accepts: list[bool] = []
    for number, states in enumerate(subsets.order):  # grows while it runs
        accepts.append(end in states)
        if len(states) == 1:
            edges = nfa.bytes[states[0]]
        else:
            edges = [edge for state in states for edge in nfa.bytes[state]]
        if len(edges) == 1:
            low, high, to = edges[0]
            spans.append((number, low, high, subsets.of((to,))))
        elif edges:
            cuts = sorted({low for low, _, _ in edges} | {high + 1 for _, high, _ in edges})
            for low, following in pairwise(cuts):
                targets = {to for least, most, to in edges if least <= low <= most}
                if targets:
                    spans.append((number, low, following - 1, subsets.of(sorted(targets))))
        called: dict[Called, set[int]] = {}
        for state in states:
            for call, to in nfa.calls[state]:
                called.setdefault(call, set()).add(to)
        calls += [(number, call, subsets.of(sorted(to))) for call, to in called.items()]
    return _made(spans, calls, accepts, usable)


def _made(
    spans: list[tuple[int, int, int, int]],
    calls: list[tuple[int, Called, int]],
    accepts: list[bool],
    usable: frozenset[int],
) -> Unit:
    """Return the unit without states that cannot end even if every called rule matches a text."""
    states = len(accepts)
    delta = np.full((states, 256), -1, np.int32)
    if len(spans) < _FEW_SPANS:
        flat = delta.ravel()
        for state, low, high, to in spans:
            flat[state * 256 + low : state * 256 + high + 1] = to
    else:
        state, low, high, to = np.array(spans, np.int64).T
        sizes = high - low + 1
        ends = np.cumsum(sizes)
        places = np.repeat(state * 256 + low - (ends - sizes), sizes) + np.arange(ends[-1])
        delta.ravel()[places] = np.repeat(to, sizes)
    if len(usable) < 256:
        delta[:, sorted(ALL_BYTES - usable)] = -1
        spans = [
            (state, low, high, to)
            for state, low, high, to in spans
            if any(byte in usable for byte in range(low, high + 1))
        ]
    edges = [(state, to) for state, _, _, to in spans] + [(state, to) for state, _, to in calls]
    edges.sort(reverse=True)
    return _alive(delta, np.array(accepts, np.uint8), calls, edges)


def _alive(
    delta: NDArray[np.int32],
    accepts: NDArray[np.uint8],
    calls: list[tuple[int, Called, int]],
    edges: list[tuple[int, int]],
) -> Unit:
    alive = bytearray(accepts.tobytes())
    changed = True
    while changed:  # most edges lead to later states, so that two rounds are usual
        changed = False
        for state, to in edges:
            if alive[to] and not alive[state]:
                alive[state] = changed = True
    if all(alive):
        return _placed(delta, accepts, calls)
    return keep_states(delta, accepts, calls, [n for n, lives in enumerate(alive) if lives])


def keep_states(
    delta: NDArray[np.int32],
    accepts: NDArray[np.uint8],
    calls: Iterable[tuple[int, Called, int]],
    kept: list[int],
) -> Unit:
    """Return a unit of some states alone; it is empty if the first is not among them."""
    if not kept or kept[0] != 0:
        none = np.full((1, 256), -1, np.int32)
        return _placed(none, np.zeros(1, np.uint8), [], empty=True)
    names = np.full(len(accepts) + 1, -1, np.int32)  # the last one for -1
    names[kept] = np.arange(len(kept))
    moved = [
        (int(names[state]), call, int(names[to]))
        for state, call, to in calls
        if names[state] >= 0 and names[to] >= 0
    ]
    return _placed(np.ascontiguousarray(names[delta[kept]]), accepts[kept], moved)


def _placed(
    delta: NDArray[np.int32],
    accepts: NDArray[np.uint8],
    calls: list[tuple[int, Called, int]],
    empty: bool = False,
) -> Unit:
    first = np.zeros(len(accepts) + 1, np.int32)
    if calls:
        np.cumsum(
            np.bincount([state for state, _, _ in calls], minlength=len(accepts)), out=first[1:]
        )
    table = np.array([(rule, to, low, high) for _, (rule, low, high), to in calls], np.int32)
    return Unit(delta, accepts, tuple(calls), table.reshape(-1, 4), first, empty)
