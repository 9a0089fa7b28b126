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

from hagane.tools.prob.engines.absorbing import Transition, visits
from hagane.tools.prob.engines.faults import unbounded_work
from hagane.tools.prob.engines.ledger import DEFAULT_LIMITS, Ledger, Limits, Unit
from hagane.tools.prob.engines.machine import Chain, Control, Machine, Stack, State, frames
from hagane.tools.prob.language.program import (
    VALUE,
    Apply,
    Claim,
    Function,
    Liveness,
    Program,
    Record,
    parts,
    walk,
)
from hagane.tools.prob.language.recursion import deep_recursion
from hagane.tools.prob.language.source import PathError, TooLarge, UnboundedRecursion
from hagane.tools.prob.language.syntax import (
    Binary,
    Choose,
    Expectation,
    Expression,
    If,
    Let,
    Literal,
    Probability,
    Unary,
    Value,
    Variable,
)

# States of chains that are looked at whole.
_FEW = 200_000

# States of the chain that is followed from the most probable runs on, before all of it is.
_SOME, _MANY = 1_000, 6_000

# The probability of runs that may stay open, so that probabilities are known up to it; and the most
# at which such bounds say more than a refusal.
_LITTLE = Fraction(1, 10**12)
_USEFUL = Fraction(1, 100)

# The continuation of a call that recurs without a draw.
_ENDLESS: Control = (None, None, (("endless",), ()))

# Calls that may follow each other without a draw.
_CALLS = 20_000

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
        if all(asks_for_means(site.claim) for site in unit.sites):
            few = replace(shallow, states=min(limits.states, _FEW))
            with suppress(PathError, TooLarge):
                return solved(Endless(program, unit, few, sums=True).explore(unit.expression))[0]
        chain = _partly(program, unit, shallow, _MANY)
        if not chain.open:
            return solved(chain)[0]
        partly, _ = solved(_partly(program, unit, shallow, _SOME))
        if partly.open > _LITTLE:
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
    """Return the distributions of a chain, and the pivots of its equations."""
    transitions: list[list[Transition]] = []
    claims: set[int] = set()
    for index, state in enumerate(chain.states):
        transitions.append(
            [
                (share, target, gain)
                for (share, target), gain in zip(state.options, state.gains, strict=True)
            ]
        )
        if state.kind == "claim":
            claims.add(index)
    found = visits(transitions, chain.gain, frozenset(claims))
    ledger = chain.calls
    ledger.open = sum((found.expected[index] for index in chain.open), Fraction(0))
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


class Endless(Machine):
    """Explores without frames for tail calls, and with sums as rewards where that is asked for."""

    def __init__(self, program: Program, unit: Unit, limits: Limits, *, sums: bool):
        super().__init__(program, unit, limits, lambda function, inputs: None)
        self.sums = sums
        self.counters: dict[Function, tuple[int, ...]] = {}
        # Calls since the last draw: one that comes again comes for ever.
        self.entered: set[tuple[Function, tuple[Value, ...], Stack]] = set()

    def _settle(self, control: Control) -> tuple[Any, State, list[tuple[Any, Control]]]:
        self.gain = 0
        self.entered = set()
        return super()._settle(control)

    def _operand(
        self, node: Expression, done: tuple[Any, ...], values: dict[str, Any], stack: Stack
    ) -> Any:
        if isinstance(node, Record) and not done and _inside(stack):
            return node.expression, self._live(node.expression, values), stack
        if self.sums and isinstance(node, Binary) and node.operator in ("+", "-"):
            last, first = node.right, node.left
            if len(done) == 1 and node.operator == "+" and self._is_open(last, stack):
                self.gain += done[0]
                return last, self._live(last, values), _summing(stack)
            if not done and self.compiler.is_pure(last) and self._is_open(first, stack):
                amount = self._pure(last, values)
                self.gain += amount if node.operator == "+" else -amount
                return first, self._live(first, values), _summing(stack)
        return super()._operand(node, done, values, stack)

    def _resume(self, frame: Any, value: Any, stack: Stack) -> Any:
        if frame[0] == "sum":
            return None, value, stack
        if frame[0] == "endless":
            self.gain = 0
            return "endless", State("endless"), [(Fraction(1), _ENDLESS)]
        return super()._resume(frame, value, stack)

    def _is_open(self, node: Expression, stack: Stack) -> bool:
        """Tell whether a term is a call whose sum nobody looks at before a claim does."""
        return any(isinstance(part, Apply) for part in walk(node)) and self._passes(stack)

    def _passes(self, stack: Stack) -> bool:
        """Tell whether a value goes on as it is until it is claimed, dropped, or the result."""
        while stack:
            frame, stack = stack
            match frame:
                case ("return" | "sum", *_):
                    continue
                case ("operand", Record(), _, _):
                    return not stack or self._drops(stack[0])
                case ("let", Let(name=name, body=Record(expression=Variable(name=used))), kept):
                    body = frame[1].body
                    if name == used and name not in body.site.claim.variables and not kept:
                        continue
                    return False
            return self._drops(frame)
        return True

    def _drops(self, frame: Any) -> bool:
        return frame[0] == "let" and frame[1].name not in self.liveness.free(frame[1].body)

    def _enter(
        self, function: Function, inputs: tuple[Value, ...], depth: int, stack: Stack
    ) -> Any:
        if self.sums and self._passes(stack):
            if function not in self.counters:
                self.counters[function] = _counters(function, self.liveness)
            given = list(inputs)
            for place in self.counters[function]:
                amount = given[place]
                assert isinstance(amount, int)
                self.gain += amount
                given[place] = 0
            inputs = tuple(given)
        while stack and stack[0][0] == "return":
            stack = stack[1]
        call = (function, inputs, stack)
        if call in self.entered:
            return _ENDLESS
        self.entered.add(call)
        if len(self.entered) > min(_CALLS, self.limits.states):
            raise self._too_large(function.definition)
        return super()._enter(function, inputs, self._depth(function, stack), stack)


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


def _inside(stack: Stack) -> bool:
    return any(frame[0] == "return" or frame == ("sum", True) for frame in frames(stack))


def _summing(stack: Stack) -> Stack:
    """Return a stack whose innermost frame waits for the rest of a sum."""
    inside = _inside(stack)
    while stack and stack[0][0] == "return":
        stack = stack[1]
    return stack if stack and stack[0] == ("sum", inside) else (("sum", inside), stack)


def _counters(function: Function, liveness: Liveness) -> tuple[int, ...]:
    """Return the parameters that do nothing but count: their values are added to the result.

    Such a parameter stands in tail position only, alone or as a term of a sum, and in the calls of
    the function itself at its own place. Only one is taken: a result counts one of them.
    """
    for place, name in enumerate(function.parameters):
        if function.kinds[place] != "int" or function.measure is not None:
            continue
        if _counts(function.definition, name, place, function, liveness):
            return (place,)
    return ()


def _counts(
    node: Expression, name: str, place: int, function: Function, liveness: Liveness
) -> bool:
    """Tell whether an expression is the parameter plus an expression without it, on all paths."""

    def without(*nodes: Expression) -> bool:
        return all(name not in liveness.free(each) for each in nodes)

    def counts(inner: Expression) -> bool:
        return _counts(inner, name, place, function, liveness)

    match node:
        case Variable(name=own):
            return own == name
        case If(condition=condition, then=then, otherwise=otherwise):
            return without(condition) and counts(then) and counts(otherwise)
        case Let(bound=bound, body=body):
            return without(bound) and counts(body)
        case Record(expression=inner, site=site):
            return name not in site.claim.variables and counts(inner)
        case Binary(operator="+", left=left, right=right):
            return (counts(left) and without(right)) or (without(left) and counts(right))
        case Binary(operator="-", left=left, right=right):
            return counts(left) and without(right)
        case Apply(function=called, arguments=arguments) if called is function:
            others = [each for index, each in enumerate(arguments) if index != place]
            return name not in function.captured and without(*others) and counts(arguments[place])
        case Choose(branches=branches):
            weights = without(*(weight for weight, _ in branches))
            return weights and all(counts(branch) for _, branch in branches)
    return False


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
