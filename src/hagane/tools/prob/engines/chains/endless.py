"""A machine for recursion without an end: tail calls without frames, sums outside the states."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from hagane.tools.prob.engines.chains.machine import Control, Machine, Stack, State, frames
from hagane.tools.prob.engines.ledger import Limits, Unit
from hagane.tools.prob.language.program import (
    Apply,
    Function,
    Liveness,
    Program,
    Record,
    walk,
)
from hagane.tools.prob.language.syntax import (
    Binary,
    Choose,
    Expression,
    If,
    Let,
    Value,
    Variable,
)

# The continuation of a call that recurs without a draw.
ENDLESS: Control = (None, None, (("endless",), ()))

# Calls that may follow each other without a draw.
_CALLS = 20_000


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
            return "endless", State("endless"), [(Fraction(1), ENDLESS)]
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
            return ENDLESS
        self.entered.add(call)
        if len(self.entered) > min(_CALLS, self.limits.states):
            raise self._too_large(function.definition)
        return super()._enter(function, inputs, self._depth(function, stack), stack)


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
