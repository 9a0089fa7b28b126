"""Exact probabilities of recursion that may run for ever: the equations of its Markov chain.

A call in tail position leaves nothing to do, so it needs no frame, and a function that calls itself
so has as many states as its arguments have values. Sums that grow for ever (``1 + f()``, or an
argument that only counts) are kept out of the states as rewards of the transitions; then means
are known, and nothing else of them.
"""

from __future__ import annotations

import heapq
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from typing import Any

from hagane.tools.prob.engines.chains.absorbing import TooMuchWork, Transition, Visits, visits
from hagane.tools.prob.engines.chains.endless import Endless
from hagane.tools.prob.engines.chains.machine import Chain, Control, State
from hagane.tools.prob.engines.chains.short import Short
from hagane.tools.prob.engines.chains.walks import folded
from hagane.tools.prob.engines.faults import unbounded_work
from hagane.tools.prob.engines.ledger import DEFAULT_LIMITS, Ledger, Limits, Unit
from hagane.tools.prob.language.program import (
    VALUE,
    Apply,
    Claim,
    Function,
    Program,
    parts,
    walk,
)
from hagane.tools.prob.language.recursion import deep_recursion
from hagane.tools.prob.language.source import PathError, TooLarge, UnboundedRecursion
from hagane.tools.prob.language.syntax import (
    Binary,
    Expectation,
    Expression,
    Literal,
    Probability,
    Unary,
    Variable,
)

# States of chains that are looked at whole.
_FEW = 200_000

# States of the chain that is followed from the most probable runs on, before all of it is.
_SOME, _MANY = 1_000, 6_000

# States of chains in which a counter beyond some value takes none.
_FOLDED = 1_000

# Sums that the equations of such chains may take.
_SUMS = 1_000_000

# The probability of runs that may stay open, so that probabilities are known up to it; and the most
# at which such bounds say more than a refusal.
_LITTLE = Fraction(1, 10**12)
_USEFUL = Fraction(1, 100)

# Calls that may be open at once: states are compared by all that is left to do.
_OPEN = 200


def run_chain(program: Program, unit: Unit, limits: Limits = DEFAULT_LIMITS) -> Ledger:
    """Return the distributions of a unit, exactly, recursion without an end included.

    Where sums grow without bound, the keys of claims hold means in place of values, which is all
    that such claims ask for.

    Raises:
        PathError: A possible run goes wrong, or recursion leaves ever more to do.
        TooLarge: More states than ``limits.states``.
    """
    shallow = replace(limits, depth=min(limits.depth, _OPEN))
    with deep_recursion():
        means = all(asks_for_means(site.claim) for site in unit.sites)
        found = _summed(program, unit, shallow, _SOME) if means else None
        if found is not None:
            return found
        few_states = _partly(program, unit, shallow, _SOME)
        if not few_states.open:
            return solved(few_states)[0]
        walked = _walked(program, unit, shallow)
        close = walked is not None and walked.open <= _LITTLE
        if walked is not None and close and (not walked.open or not unit.sites):
            return walked
        found = _summed(program, unit, shallow, _MANY if close else _FEW) if means else None
        if found is not None:
            return found
        if walked is not None and close:
            return walked
        chain = _partly(program, unit, shallow, _MANY)
        if not chain.open:
            return solved(chain)[0]
        partly, _ = solved(few_states)
        if partly.open > _LITTLE:
            with suppress(TooMuchWork):
                partly, _ = solved(chain)
        if partly.open <= _LITTLE:
            return partly
        all_of_it = replace(shallow, states=min(limits.states, _FEW))
        try:
            chain = Endless(program, unit, all_of_it, sums=False).explore(unit.expression)
            return solved(chain)[0]
        except (TooLarge, UnboundedRecursion) as error:
            if partly.open <= _USEFUL:
                return partly
            if isinstance(error, TooLarge) and recurses(unit):
                raise unbounded_work(error) from None
            raise


def _summed(program: Program, unit: Unit, limits: Limits, states: int) -> Ledger | None:
    """Return the ledger of a chain in which sums take no states, if it is so small."""
    few = replace(limits, states=min(limits.states, states))
    with suppress(PathError, TooLarge):
        return solved(Endless(program, unit, few, sums=True).explore(unit.expression))[0]
    return None


def _walked(program: Program, unit: Unit, limits: Limits) -> Ledger | None:
    """Return the ledger of a chain in which a counter takes few states, the closest of all."""
    closest = None
    few = replace(limits, states=min(limits.states, _FOLDED))
    for chain in folded(program, unit, few):
        with suppress(TooMuchWork):
            found = solved(chain)[0]
            if not found.open:
                return found
            if closest is None or found.open < closest.open:
                closest = found
    return closest


def _itself(value: Any) -> Any:
    return value


def _lengthened(found: Visits) -> Visits:
    """Return visits in fractions."""

    def fraction(value: Any) -> Fraction:
        return value.exactly() if isinstance(value, Short) else value

    expected = tuple(map(fraction, found.expected))
    return Visits(expected, tuple(map(fraction, found.rewards)), fraction(found.unending))


def _partly(program: Program, unit: Unit, limits: Limits, states: int) -> Chain:
    few = replace(limits, states=min(limits.states, states))
    return _Partly(program, unit, few).explore(unit.expression)


def recurses(unit: Unit) -> bool:
    """Tell whether a function may be called from inside itself."""
    called: dict[Function, set[Function]] = {}
    waiting = _called_in(unit.expression)
    while waiting:
        function = waiting.pop()
        if function not in called:
            called[function] = _called_in(function.definition)
            waiting |= called[function]
    for function in called:
        reached: set[Function] = set()
        waiting = set(called[function])
        while waiting:
            other = waiting.pop()
            if other is function:
                return True
            if other not in reached:
                reached.add(other)
                waiting |= called[other]
    return False


def _called_in(expression: Expression) -> set[Function]:
    return {node.function for node in walk(expression) if isinstance(node, Apply)}


def solved(chain: Chain) -> tuple[Ledger, tuple[Any, ...]]:
    """Return the distributions of a chain, and the pivots of its equations.

    Where states are open, probabilities are lower bounds anyway, and short numbers do.
    """
    transitions: list[list[Transition]] = []
    claims: set[int] = set()
    number: Any = Short.of if chain.open else _itself
    for index, state in enumerate(chain.states):
        transitions.append(
            [
                (number(share), target, gain)
                for (share, target), gain in zip(state.options, state.gains, strict=True)
            ]
        )
        if state.kind == "claim":
            claims.add(index)
    found = visits(transitions, chain.gain, frozenset(claims), _SUMS if chain.open else None)
    if chain.open:
        found = _lengthened(found)
    ledger = chain.calls
    if chain.open:
        ends = [i for i, each in enumerate(transitions) if not each and i not in chain.open]
        ledger.open = 1 - sum((found.expected[i] for i in ends), found.unending)
    ledger.size = len(chain.states)
    ledger.unending = found.unending
    for index, state in enumerate(chain.states):
        weight = found.expected[index]
        if not weight or state.kind not in ("claim", "end"):
            continue
        key = state.key
        if found.rewards[index]:
            key = (*key[:-1], key[-1] + found.rewards[index] / weight)
            ledger.holds_means = True
        if state.kind == "end":
            ledger.result[key[0]] = ledger.result.get(key[0], Fraction(0)) + weight
        else:
            assert state.site is not None
            table = ledger.tables.setdefault(state.site, {})
            table[key] = table.get(key, Fraction(0)) + weight
    return ledger, found.pivots


class _Partly(Endless):
    """Explores the most probable runs first, and leaves those open that come too late."""

    def __init__(self, program: Program, unit: Unit, limits: Limits):
        super().__init__(program, unit, limits, sums=False)

    def explore(self, start: Expression) -> Chain:
        """Return the chain that begins with an expression, with states that stay open."""
        chain = Chain([], self.book)
        numbers: dict[Any, int] = {}
        waiting: list[tuple[float, int, list[tuple[Any, Control]]]] = []
        beyond: int | None = None

        def number(control: Control, chance: float) -> int:
            nonlocal beyond
            try:
                identity, state, nexts = self._settle(control)
            except UnboundedRecursion:
                if beyond is None:
                    beyond = len(chain.states)
                    chain.states.append(State("open"))
                return beyond
            if identity not in numbers:
                numbers[identity] = len(chain.states)
                chain.states.append(state)
                heapq.heappush(waiting, (-chance, numbers[identity], nexts))
            return numbers[identity]

        number((start, self._live(start, dict(self.unit.values)), ()), 1.0)
        while waiting and len(chain.states) < self.limits.states:
            chance, index, nexts = heapq.heappop(waiting)
            for label, control in nexts:
                share = -chance * (float(label) if isinstance(label, Fraction) else 1.0)
                chain.states[index].options.append((label, number(control, share)))
                chain.states[index].gains.append(0)
        chain.open = frozenset(index for _, index, nexts in waiting if nexts)
        if beyond is not None:
            chain.open |= {beyond}
        return chain


def asks_for_means(claim: Claim) -> bool:
    """Tell whether a claim needs nothing of its value but the mean."""
    if claim.formula is None:
        return True
    return not _looks_at_value(claim.formula)


def _looks_at_value(node: Expression) -> bool:
    match node:
        case Variable(name=name):
            return name == VALUE
        case Expectation(term=term, condition=condition):
            if condition is not None and _mentions(condition):
                return True
            return not _is_linear(term)
        case Probability(event=event, condition=condition):
            return _mentions(event) or (condition is not None and _mentions(condition))
    return any(_looks_at_value(part) for part in parts(node))


def _mentions(node: Expression) -> bool:
    return any(isinstance(part, Variable) and part.name == VALUE for part in walk(node))


def _is_linear(node: Expression) -> bool:
    match node:
        case Variable() | Literal():
            return True
        case Unary(operator="-", operand=operand):
            return _is_linear(operand)
        case Binary(operator="+" | "-", left=left, right=right):
            return _is_linear(left) and _is_linear(right)
        case Binary(operator="*", left=left, right=right):
            return (_is_linear(left) and not _mentions(right)) or (
                _is_linear(right) and not _mentions(left)
            )
    return not _mentions(node)
