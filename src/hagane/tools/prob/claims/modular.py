"""Consequences of the types of the functions that a unit calls.

A call of a function with a refined result is opaque: the caller knows the values that it may give
and that their distribution obeys the type. For any distribution that an adversary picks there, anew
at each call, a claim has to hold; the extreme of a linear claim is found backwards through the
Markov chain of the unit, with one linear programme at each opaque call.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

from hagane.tools.prob.claims.judge import terms_of
from hagane.tools.prob.claims.linear import (
    All,
    Linear,
    NotLinear,
    Requirement,
    Some,
    Sure,
    requirement,
)
from hagane.tools.prob.claims.simplex import Constraint, maximise
from hagane.tools.prob.engines.chains.machine import Chain, State, explore
from hagane.tools.prob.engines.engines import run_unit
from hagane.tools.prob.engines.ledger import Limits, Unit, function_unit
from hagane.tools.prob.language.program import (
    VALUE,
    Apply,
    Claim,
    Function,
    Program,
    Site,
    shown,
    walk,
)
from hagane.tools.prob.language.source import EndlessRecursion, TooLarge
from hagane.tools.prob.language.syntax import Binary, Expression, Observe, Probability, Value

Range: TypeAlias = "tuple[Fraction, Fraction] | None"
Reward: TypeAlias = Callable[[Mapping[str, Any]], Fraction]
# Gives the least and the greatest expected reward.
Extremes: TypeAlias = Callable[[Reward], tuple[Fraction, Fraction]]


@dataclass(frozen=True, slots=True)
class ByTypes:
    """A claim judged by the types of the called functions.

    Attributes:
        holds: Whether it holds for all that the types admit; None where that is not linear.
        ranges: The bounds of each Prob and E, where they are linear.
    """

    holds: bool | None
    ranges: tuple[Range, ...]


def calls_opaque(unit: Unit) -> bool:
    """Tell whether a unit calls a function that it knows by its type only."""
    seen: set[Function] = set()
    waiting = [unit.expression]
    while waiting:
        for node in walk(waiting.pop()):
            if isinstance(node, Apply) and node.function is not unit.function:
                if _is_opaque(node.function):
                    return True
                if node.function not in seen:
                    seen.add(node.function)
                    waiting.append(node.function.definition)
    return False


def _is_opaque(function: Function) -> bool:
    """Tell whether a call is known by its type: it has one, and rejects no run inside."""
    return function.is_opaque and not _observes(function, set())


def _observes(function: Function, seen: set[Function]) -> bool:
    seen.add(function)
    return any(
        isinstance(node, Observe)
        or (
            isinstance(node, Apply) and node.function not in seen and _observes(node.function, seen)
        )
        for node in walk(function.definition)
    )


class Modular:
    """Decides claims of units from the types of the functions that they call."""

    def __init__(self, program: Program, limits: Limits):
        self.program = program
        self.limits = limits
        self._supports: dict[tuple[Function, tuple[Value, ...]], list[Value]] = {}
        self._menus: dict[tuple[Function, tuple[Value, ...]], list[Menu]] = {}

    def decide(self, unit: Unit) -> dict[tuple[Site, tuple[Any, ...]], ByTypes]:
        """Return for each claim of a unit, and each value of its fixed variables, the consequences.

        Raises:
            TooLarge: The chain of the unit is beyond the limits, or runs in circles.
        """
        try:
            chain = explore(self.program, unit, self.limits, self._choices)
        except EndlessRecursion as error:
            raise TooLarge("recursion without a bound", error.source, error.span) from None
        order = _backwards(chain)
        groups: dict[tuple[Site, tuple[Any, ...]], None] = {}
        for state in chain.states:
            if state.site is not None:
                groups[state.site, state.key[: len(state.site.claim.fixed)]] = None
        return {group: self._group(unit, chain, order, *group) for group in groups}

    def _choices(self, function: Function, inputs: tuple[Value, ...]) -> list[Value] | None:
        if not _is_opaque(function):
            return None
        key = (function, inputs)
        if key not in self._supports:
            unit = function_unit(function, inputs)
            ledger = run_unit(self.program, unit, limits=self.limits).ledger
            if ledger.holds_means:
                raise TooLarge(
                    f"the values of '{shown(function.name)}' have no bound",
                    self.program.source,
                    function.span,
                )
            self._supports[key] = sorted(ledger.result, key=repr)
        return self._supports[key]

    def _group(
        self, unit: Unit, chain: Chain, order: Sequence[int], site: Site, fixed: tuple[Any, ...]
    ) -> ByTypes:
        claim = site.claim
        if claim.formula is None:
            return ByTypes(True, ())
        given = {**unit.values, **dict(zip(claim.fixed, fixed, strict=True))}
        names = (*claim.variables, VALUE)

        def extremes(reward: Reward) -> tuple[Fraction, Fraction]:
            def gain(state: State) -> Fraction | None:
                if state.site is not site:
                    return None
                if state.key[: len(fixed)] != fixed:
                    return Fraction(0)
                return reward({**unit.values, **dict(zip(names, state.key, strict=True))})

            low = -self._best(chain, order, lambda s: _negative(gain(s)))
            return low, self._best(chain, order, gain)

        try:
            wanted = requirement(claim.formula, given)
            holds: bool | None = follows(wanted, extremes)
        except NotLinear:
            holds = None
        return ByTypes(holds, ranges_of(claim, extremes))

    def _best(
        self, chain: Chain, order: Sequence[int], gain: Callable[[State], Fraction | None]
    ) -> Fraction:
        """Return the greatest expected gain from the first state."""
        values: dict[int, Fraction] = {}
        for index in order:
            state = chain.states[index]
            own = gain(state)
            if own is not None:
                values[index] = own
            elif state.kind == "call":
                values[index] = self._adversary(state, [values[n] for _, n in state.options])
            else:
                total = Fraction(0)
                for share, target in state.options:
                    total += share * values[target]
                values[index] = total
        return values[0]

    def _adversary(self, state: State, gains: Sequence[Fraction]) -> Fraction:
        if all(gain == gains[0] for gain in gains):
            return gains[0]
        assert isinstance(state.node, Apply)
        best: Fraction | None = None
        for menu in self._menu(state.node.function, state.key, [v for v, _ in state.options]):
            found = maximise([gains[i] for i in menu.kept], menu.constraints)
            if found is not None and (best is None or found > best):
                best = found
        # A type that admits nothing is refuted at the function itself.
        return max(gains) if best is None else best

    def _menu(
        self, function: Function, inputs: tuple[Value, ...], options: Sequence[Value]
    ) -> list[Menu]:
        key = (function, inputs)
        if key not in self._menus:
            given = dict(zip(function.inputs, inputs, strict=True))
            outcomes = [{**given, VALUE: value} for value in options]
            self._menus[key] = menus(function.result, given, outcomes)
        return self._menus[key]


def follows(wanted: Requirement, extremes: Extremes) -> bool:
    """Tell whether a requirement is met, given the least and greatest gain of any reward."""
    match wanted:
        case Sure():
            bad = extremes(lambda values: Fraction(int(not wanted.admits(values))))
            return bad[1] == 0
        case Linear():
            return _compare(*extremes(wanted.gain), wanted.operator)
        case All(parts=parts):
            return all(follows(part, extremes) for part in parts)
        case Some(parts=parts):
            return any(follows(part, extremes) for part in parts)


def ranges_of(claim: Claim, extremes: Extremes) -> tuple[Range, ...]:
    """Return the bounds of each Prob and E of a claim, where they are linear."""
    assert claim.formula is not None
    reached = extremes(lambda values: Fraction(1))
    ranges: list[Range] = []
    for term in terms_of(claim.formula):
        if term.condition is not None or reached[0] != reached[1] or not reached[0]:
            ranges.append(None)
            continue
        subject = term.event if isinstance(term, Probability) else term.term
        form = Linear(((term, Fraction(1)),), Fraction(0), "=", None)
        assert subject is not None
        low, high = extremes(form.gain)
        ranges.append((low / reached[0], high / reached[0]))
    return tuple(ranges)


def _negative(value: Fraction | None) -> Fraction | None:
    return None if value is None else -value


def _compare(low: Fraction, high: Fraction, operator: str) -> bool:
    match operator:
        case "<":
            return high < 0
        case "<=":
            return high <= 0
        case ">":
            return low > 0
        case ">=":
            return low >= 0
        case "=":
            return low == high == 0
    return high < 0 or low > 0


def _backwards(chain: Chain) -> list[int]:
    """Return the states, each after all that may follow it."""
    order: list[int] = []
    done = [False] * len(chain.states)
    stack = [(0, False)]
    while stack:
        index, finished = stack.pop()
        if finished:
            order.append(index)
        elif not done[index]:
            done[index] = True
            stack.append((index, True))
            stack += [(n, False) for _, n in chain.states[index].options if not done[n]]
    return order


@dataclass(frozen=True, slots=True)
class Menu:
    """One way to meet a type: outcomes that may be, and constraints on their probabilities."""

    kept: tuple[int, ...]
    constraints: tuple[Constraint, ...]


def menus(
    claim: Claim, given: Mapping[str, Any], outcomes: Sequence[Mapping[str, Any]]
) -> list[Menu]:
    """Return all ways in which a distribution over outcomes may meet a claim.

    A part of the claim that is not linear is left out, which admits more and so stays sound.
    """
    everything = tuple(range(len(outcomes)))
    parts: list[Requirement] = []
    for conjunct in conjuncts(claim.formula):
        with suppress(NotLinear):
            parts.append(requirement(conjunct, given))
    found = []
    for chosen in _alternatives(All(tuple(parts))):
        sure = [part for part in chosen if isinstance(part, Sure)]
        linear = [part for part in chosen if isinstance(part, Linear) and part.operator != "!="]
        kept = tuple(i for i in everything if all(part.admits(outcomes[i]) for part in sure))
        constraints = tuple(
            Constraint(
                tuple(part.gain(outcomes[i]) for i in kept),
                {"<": "<=", ">": ">="}.get(part.operator, part.operator),
            )
            for part in linear
        )
        found.append(Menu(kept, constraints))
    return found


def conjuncts(formula: Expression | None) -> list[Expression]:
    """Return the parts of a conjunction."""
    if formula is None:
        return []
    if isinstance(formula, Binary) and formula.operator == "/\\":
        return [*conjuncts(formula.left), *conjuncts(formula.right)]
    return [formula]


def _alternatives(wanted: Requirement) -> list[list[Sure | Linear]]:
    match wanted:
        case Sure() | Linear():
            return [[wanted]]
        case Some(parts=parts):
            return [found for part in parts for found in _alternatives(part)]
        case All(parts=parts):
            combined: list[list[Sure | Linear]] = [[]]
            for part in parts:
                combined = [[*a, *b] for a in combined for b in _alternatives(part)]
            return combined
