"""Grammars as automata that call each other: text and calls of rules, deterministic where they can.

``Rules`` takes the texts of rules (``parts.py``) and compiles each to an automaton of its own
(``units.py``); a push-down automaton runs them together. Rules that many grammars have are compiled
once (``Rules.shared``, ``Module``).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from hagane.errors import InvalidArgument
from hagane.lexgen.masks.rules.blocks import Block, compile_block, joined
from hagane.lexgen.masks.rules.parts import Call, Part
from hagane.lexgen.masks.rules.units import (
    ALL_BYTES,
    Called,
    Emitter,
    Unit,
    compile_units,
    keep_states,
    take_keys,
)

# Of all rules: some 100 bytes each; the schema of renovate's settings needs more than 200,000.
_MOST_TOGETHER = 2_000_000


@dataclass(frozen=True)
class Automata:
    """Compiled rules, all states numbered together.

    Attributes:
        first_span: Where the bytes of a state begin in the following, (states + 1,).
        spans: The first byte, the last one, the state after them, in order, (spans, 3).
        accepts: Whether the rule of a state may end there, (states,).
        starts: The first state of each rule; -1 where a rule matches no text.
        first_call: Where the calls of a state begin in the following, (states + 1,).
        calls: The rule called, the state after it, the least number of repetitions, the most (-1
            for no bound; one call is 1 to 1), (calls, 4).
        begins: Whether a text of a rule may begin with a byte, (rules, 256).
        nullable: Whether a rule matches the empty text.
        shared: A number that a state has in every grammar in which it and all that it calls stand,
            -1 for states of this grammar alone, (states,).
    """

    first_span: NDArray[np.int32]
    spans: NDArray[np.int32]
    accepts: NDArray[np.uint8]
    starts: NDArray[np.int32]
    first_call: NDArray[np.int32]
    calls: NDArray[np.int32]
    begins: NDArray[np.uint8]
    nullable: NDArray[np.uint8]
    shared: NDArray[np.int32]


class LeftRecursion(InvalidArgument):
    """A rule calls itself before any text.

    Attributes:
        rule: Its number.
    """

    def __init__(self, rule: int):
        super().__init__(f"rule {rule} calls itself before any text")
        self.rule = rule


class Rules:
    """Rules under construction."""

    def __init__(self) -> None:
        self.bodies: list[Part | Module | int | None] = []  # a number: of a module's first rule
        self._placed: dict[Hashable, int] = {}
        self._made: dict[tuple[frozenset[int], bool], Automata] = {}

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

    def shared(self, body: Part) -> Call:
        """Return a call of a rule that calls none, and is compiled once for all grammars."""
        return self.include(_alone(body), 0)

    def include(self, module: Module, rule: int) -> Call:
        """Return a call of a rule of some that are compiled once for all grammars."""
        if module not in self._placed:
            first = self._placed[module] = len(self.bodies)
            self.bodies += [module, *[first] * (module.size - 1)]
        return Call(self._placed[module] + rule)

    def compile(self, usable: frozenset[int] = ALL_BYTES, native: bool | None = None) -> Automata:
        """Return the automata of all rules.

        Args:
            usable: The bytes that texts may have.
            native: Work in C (True), without a compiler (False), or in C where there is one.

        Raises:
            InvalidArgument: They have too many states, or a rule calls itself before any text.
        """
        key = usable, native is not False
        if key not in self._made:
            self._made[key] = self._compiled(usable, native)
        return self._made[key]

    def _compiled(self, usable: frozenset[int], native: bool | None) -> Automata:
        emitter = Emitter(self.add, native is not False)
        own: dict[int, tuple[int, int]] = {}
        modules: list[tuple[int, Automata]] = []
        for rule, body in enumerate(self.bodies):  # grows: repeated parts become rules
            match body:
                case None:
                    raise ValueError(f"rule {rule} has no body")
                case Module():
                    modules.append((rule, body.compiled(usable, native is not False)))
                case int():
                    pass
                case _:
                    own[rule] = emitter.rule(body)
        nfa = emitter.written()
        facts = _Facts(len(self.bodies))
        for first, module in modules:
            facts.take(first, module)
        if native is not False:
            block = compile_block(nfa, own, facts, usable, native is True)
            if block is not None:
                return _assemble(block, modules, facts)
        made = compile_units(nfa, list(own.values()), usable)
        units = _without_dead(dict(zip(own, made, strict=True)), facts.ends)
        _find_beginnings(units, facts)
        return _assemble(joined(units, facts), modules, facts)


@dataclass(frozen=True, eq=False)
class Module:
    """Rules that call none but each other, compiled once for all grammars.

    Attributes:
        rules: The rules.
        size: Their number.
    """

    rules: Rules
    size: int
    _made: dict[tuple[frozenset[int], bool], Automata] = field(default_factory=dict, repr=False)

    def compiled(self, usable: frozenset[int], native: bool) -> Automata:
        """Return their automata, with numbers of their own for the states."""
        key = usable, native
        if key not in self._made:
            self._made[key] = self._compiled(usable, native)
        return self._made[key]

    def _compiled(self, usable: frozenset[int], native: bool) -> Automata:
        made = self.rules.compile(usable, None if native else False)
        states = len(made.accepts)
        first = take_keys(states)
        # Those of modules within, which have numbers already, keep them.
        keys = np.where(
            made.shared < 0, np.arange(first, first + states, dtype=np.int32), made.shared
        )
        return replace(made, shared=keys.astype(np.int32))


@lru_cache(2048)
def _alone(body: Part) -> Module:
    rules = Rules()
    rules.add(body)
    return Module(rules, 1)


class _Facts:
    """Facts of rules, by number: those of modules are known, others follow."""

    def __init__(self, rules: int):
        self.starts = [-1] * rules
        self.ends = np.zeros(rules, np.uint8)  # some text matches
        self.nullable = np.zeros(rules, np.uint8)
        self.begins = np.zeros((rules, 256), np.uint8)

    def take(self, first: int, module: Automata) -> None:
        """Note the rules of a module, of which ``first`` is the first."""
        last = first + len(module.starts)
        self.starts[first:last] = module.starts.tolist()
        self.ends[first:last] = module.starts >= 0
        self.nullable[first:last] = module.nullable
        self.begins[first:last] = module.begins


def _assemble(block: Block, modules: Sequence[tuple[int, Automata]], facts: _Facts) -> Automata:
    parts: list[tuple[Block | Automata, int, int]] = []  # the first rule, the first state
    states = 0
    for first, module in modules:
        for rule in range(first, first + len(module.starts)):
            facts.starts[rule] += states if facts.starts[rule] >= 0 else 0
        parts.append((module, first, states))
        states += len(module.accepts)
    for rule, start in block.starts.items():
        facts.starts[rule] = states + start if start >= 0 else -1
    parts.append((block, 0, states))
    states += len(block.accepts)
    if states > _MOST_TOGETHER:
        raise InvalidArgument(f"a grammar needs more than {_MOST_TOGETHER} states")
    accepts = np.empty(states, np.uint8)
    shared = np.full(states, -1, np.int32)
    first_span, first_call = np.zeros(states + 1, np.int32), np.zeros(states + 1, np.int32)
    spans: list[NDArray[np.int32]] = [np.zeros((0, 3), np.int32)]
    calls: list[NDArray[np.int32]] = [np.zeros((0, 4), np.int32)]
    read, called = 0, 0
    for part, first, at in parts:
        end = at + len(part.accepts)
        accepts[at:end] = part.accepts
        if isinstance(part, Automata):
            shared[at:end] = part.shared
        np.add(part.first_span[1:], read, out=first_span[at + 1 : end + 1])
        np.add(part.first_call[1:], called, out=first_call[at + 1 : end + 1])
        read, called = read + len(part.spans), called + len(part.calls)
        spans.append(part.spans + np.array([0, 0, at], np.int32))
        if len(part.calls):
            calls.append(part.calls + np.array([first, at, 0, 0], np.int32))
    return Automata(
        first_span,
        np.concatenate(spans),
        accepts,
        np.array(facts.starts, np.int32),
        first_call,
        np.concatenate(calls),
        block.begins,
        block.nullable,
        shared,
    )


def _without_dead(units: Mapping[int, Unit], ends: NDArray[np.uint8]) -> Mapping[int, Unit]:
    """Return units without the states that need rules that match no text; note those that match."""
    for rule, unit in units.items():
        ends[rule] = not unit.calls_by_state and not unit.empty
    changed = True
    while changed:
        changed = False
        for rule, unit in units.items():
            if not ends[rule] and not unit.empty and _leads_to_end(unit, ends)[0]:
                ends[rule] = changed = True
    if all(ends):
        return units
    found = {}
    for rule, unit in units.items():
        if unit.calls_by_state and not unit.empty:
            calls = [
                (state, (called, low, high if ends[called] else 0), to)
                for state, (called, low, high), to in unit.calls_by_state
                if ends[called] or low == 0
            ]
            kept = np.flatnonzero(_leads_to_end(unit, ends)).tolist()
            unit = keep_states(unit.delta, unit.accepts, calls, kept)
        found[rule] = unit
    return found


def _leads_to_end(unit: Unit, ends: NDArray[np.uint8]) -> Sequence[bool]:
    """Return whether each state leads to an end by calls of rules that end."""
    if all(ends[rule] or low == 0 for _, (rule, low, _), _ in unit.calls_by_state):
        return [True] * unit.states
    before: list[set[int]] = [set() for _ in range(unit.states)]
    at, byte = np.nonzero(unit.delta >= 0)
    for state, to in set(zip(at.tolist(), unit.delta[at, byte].tolist(), strict=True)):
        before[to].add(state)
    for state, (rule, low, _), to in unit.calls_by_state:
        if ends[rule] or low == 0:
            before[to].add(state)
    found: list[bool] = unit.accepts.astype(bool).tolist()
    stack = np.flatnonzero(unit.accepts).tolist()
    while stack:
        for state in before[stack.pop()]:
            if not found[state]:
                found[state] = True
                stack.append(state)
    return found


def _leading(unit: Unit, nullable: NDArray[np.uint8]) -> Iterator[tuple[int, list[Called]]]:
    """Yield the states that the first state becomes without text, and their calls."""
    by_state: dict[int, list[tuple[Called, int]]] = {}
    for state, call, to in unit.calls_by_state:
        by_state.setdefault(state, []).append((call, to))
    seen, stack = {0}, [0]
    while stack:
        state = stack.pop()
        calls = by_state.get(state, [])
        yield state, [call for call, _ in calls]
        for (rule, low, _), to in calls:
            if (low == 0 or nullable[rule]) and to not in seen:
                seen.add(to)
                stack.append(to)


def _find_beginnings(units: Mapping[int, Unit], facts: _Facts) -> None:
    """Note the first bytes of rules, and whether they match the empty text.

    Raises:
        LeftRecursion: A rule calls itself before any text.
    """
    nullable, begins = facts.nullable, facts.begins
    for rule, unit in units.items():
        nullable[rule] = not unit.empty and bool(unit.accepts[0])
    changed = True
    while changed:
        changed = False
        for rule, unit in units.items():
            if nullable[rule] or unit.empty or not unit.calls_by_state:
                continue
            if any(unit.accepts[state] for state, _ in _leading(unit, nullable)):
                nullable[rule] = changed = True
    leads: dict[int, set[int]] = {}
    for rule, unit in units.items():
        leads[rule] = set()
        if unit.empty:
            continue
        for state, calls in _leading(unit, nullable):
            begins[rule] |= unit.delta[state] >= 0
            leads[rule].update(called for called, _, high in calls if high != 0)
    for rule in _callees_first(leads):
        for called in leads[rule]:
            begins[rule] |= begins[called]


def _callees_first(leads: Mapping[int, set[int]]) -> list[int]:
    """Return rules behind those that they call before any text."""
    order: list[int] = []
    colour = dict.fromkeys(leads, 0)
    for root in leads:
        stack = [(root, iter(leads[root]))] if not colour[root] else []
        colour[root] = colour[root] or 1
        while stack:
            rule, rest = stack[-1]
            for called in rest:
                if colour.get(called) == 1:
                    raise LeftRecursion(called)
                if colour.get(called) == 0:
                    colour[called] = 1
                    stack.append((called, iter(leads[called])))
                    break
            else:
                colour[rule] = 2
                order.append(rule)
                stack.pop()
    return order
