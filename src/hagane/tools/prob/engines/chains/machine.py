"""A program as a Markov chain: an abstract machine whose states hold only values still needed.

A state is the rest of the program (a stack of frames) with the live variables of each frame, so
states that differ in nothing that matters are one. The chain has a state for each draw, each claim
that is reached and each end; everything between is deterministic and takes no state.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, TypeAlias

from hagane.tools.prob.engines.compiled import Compiler
from hagane.tools.prob.engines.faults import (
    check_chance,
    check_range,
    check_shares,
    division_by_zero,
    measure_error,
    too_deep,
    untold,
)
from hagane.tools.prob.engines.late import late
from hagane.tools.prob.engines.ledger import DEFAULT_LIMITS, Key, Ledger, Limits, Unit
from hagane.tools.prob.language.operators import ZeroDivisor, combine, evaluate
from hagane.tools.prob.language.program import (
    Apply,
    Function,
    Liveness,
    Program,
    Record,
    Site,
    parts,
)
from hagane.tools.prob.language.recursion import deep_recursion
from hagane.tools.prob.language.source import PathError, TooLarge
from hagane.tools.prob.language.syntax import (
    Binary,
    Choose,
    Expression,
    Flip,
    If,
    Let,
    Observe,
    Project,
    Rand,
    Tuple,
    Unary,
    Value,
)

# Live variables with their values, in the order of their names.
_Values: TypeAlias = tuple[tuple[str, Any], ...]
# The use of the value of an expression, and then: (frame, rest), or () at the end.
Stack: TypeAlias = tuple[Any, ...]
# To evaluate a node, or (None, value, stack): to go on with a value.
Control: TypeAlias = tuple["Expression | None", Any, Stack]
# Gives the values among which an opaque call chooses, or None to look inside the function.
Opaque: TypeAlias = Callable[[Function, tuple[Value, ...]], "Sequence[Value] | None"]


@dataclass(slots=True)
class State:
    """A state of the chain.

    Attributes:
        kind: ``draw``, ``claim``, ``call`` (an opaque one), ``end``,
            ``rejected``, ``endless`` (calls that go on without a draw), or ``open`` (not followed).
        node: The draw or the call, for messages.
        site: The claim that is reached, with ``key``.
        key: The record of a claim; the inputs of a call; the final value.
        options: Next states, each with its probability; of a call, each with its value.
        gains: The amount that going to each of these adds to sums that states do not hold.
    """

    kind: str
    node: Expression | None = None
    site: Site | None = None
    key: Key = ()
    options: list[tuple[Any, int]] = field(default_factory=list)
    gains: list[int] = field(default_factory=list)


@dataclass(slots=True)
class Chain:
    """States, the first of which is the start.

    ``gain`` is the total there of sums outside the states; ``open`` are the states of which nobody
    knows the rest.
    """

    states: list[State]
    calls: Ledger
    gain: int = 0
    open: frozenset[int] = frozenset()


def explore(
    program: Program,
    unit: Unit,
    limits: Limits = DEFAULT_LIMITS,
    opaque: Opaque = lambda function, inputs: None,
) -> Chain:
    """Return the chain of a unit.

    Args:
        program: The program.
        unit: The unit to explore.
        limits: How many states there may be.
        opaque: Which calls stay calls.

    Raises:
        PathError: A possible run goes wrong.
        TooLarge: More states than ``limits.states``.
    """
    with deep_recursion():
        try:
            return Machine(program, unit, limits, opaque).explore(late(unit.expression))
        except PathError:
            # Told of the program as it is written, where that is not too large.
            with suppress(TooLarge):
                Machine(program, unit, limits, opaque).explore(unit.expression)
            raise


class Machine:
    """Explores a unit; :func:`explore` is its use."""

    def __init__(self, program: Program, unit: Unit, limits: Limits, opaque: Opaque):
        self.source = program.source
        self.unit = unit
        self.limits = limits
        self.opaque = opaque
        self.liveness = Liveness()
        self.compiler = Compiler(self.liveness)
        self.book = Ledger()
        # The last step's addition to sums outside the states.
        self.gain = 0

    def explore(self, start: Expression) -> Chain:
        """Return the chain that begins with an expression."""
        chain = Chain([], self.book)
        numbers: dict[Any, int] = {}
        waiting: list[tuple[int, list[tuple[Any, Control]]]] = []

        def number(control: Control) -> int:
            identity, state, nexts = self._settle(control)
            if identity not in numbers:
                numbers[identity] = len(chain.states)
                chain.states.append(state)
                if len(chain.states) > self.limits.states:
                    raise self._too_large(self.unit.expression)
                waiting.append((numbers[identity], nexts))
            return numbers[identity]

        values = dict(self.unit.values)
        number((start, self._live(start, values), ()))
        chain.gain = self.gain
        while waiting:
            index, nexts = waiting.pop()
            for label, control in nexts:
                chain.states[index].options.append((label, number(control)))
                chain.states[index].gains.append(self.gain)
        return chain

    def _too_large(self, node: Expression) -> TooLarge:
        return TooLarge(
            f"the Markov chain needs more than {self.limits.states:,} states; shorten ranges, or "
            "keep fewer variables alive",
            self.source,
            node.span,
        )

    def _live(self, node: Expression, values: dict[str, Any]) -> _Values:
        return tuple([(name, values[name]) for name in self.liveness.names(node) if name in values])

    def _settle(self, control: Control) -> tuple[Any, State, list[tuple[Any, Control]]]:
        """Go on until something is drawn, claimed or over.

        Returns:
            The key of the state, the state, and its successors.
        """
        while True:
            node, content, stack = control
            if node is None:
                if not stack:
                    return ("end", content), State("end", key=(content,)), []
                frame, rest = stack
                found = self._resume(frame, content, rest)
            else:
                found = self._evaluate(node, dict(content), stack)
            if isinstance(found[1], State):
                return found[0], found[1], found[2]
            control = found

    def _evaluate(self, node: Expression, values: dict[str, Any], stack: Stack) -> Any:
        if self.compiler.is_pure(node):
            return None, self._pure(node, values), stack
        match node:
            case Let():
                kept = self._live(node.body, values)
                frame = ("let", node, tuple(pair for pair in kept if pair[0] != node.name))
                return node.bound, self._live(node.bound, values), (frame, stack)
            case If():
                live = dict(self._live(node.then, values))
                live.update(self._live(node.otherwise, values))
                chosen = ("if", node, tuple(sorted(live.items())))
                return node.condition, self._live(node.condition, values), (chosen, stack)
            case Choose():
                return self._choose(node, values, stack)
        return self._operand(node, (), values, stack)

    def _pure(self, node: Expression, values: dict[str, Any]) -> Any:
        fixed = self.compiler.fixed(node)
        if fixed:
            return fixed[0]
        try:
            return evaluate(node, values)
        except ZeroDivisor as error:
            raise division_by_zero(self.source, error, values, untold) from None

    def _operand(
        self, node: Expression, done: tuple[Any, ...], values: dict[str, Any], stack: Stack
    ) -> Any:
        """Evaluate the next operand of a node, or the node itself when it has them all."""
        operands = parts(node)
        if len(done) == len(operands):
            return self._finish(node, done, values, stack)
        if self.compiler.is_pure(operands[len(done)]):
            value = self._pure(operands[len(done)], values)
            return self._operand(node, (*done, value), values, stack)
        needed: set[str] = set()
        for later in operands[len(done) + 1 :]:
            needed |= self.liveness.free(later)
        if isinstance(node, Record):
            needed.update(node.site.claim.variables)
        if isinstance(node, Apply):
            needed.update(node.function.captured)
            if node.below is not None:
                needed.add(node.below)
        kept = tuple((name, values[name]) for name in sorted(needed))
        frame = ("operand", node, done, kept)
        operand = operands[len(done)]
        return operand, self._live(operand, values), (frame, stack)

    def _resume(self, frame: Any, value: Any, stack: Stack) -> Any:
        match frame:
            case ("let", node, kept):
                if node.name in self.liveness.free(node.body):
                    kept = tuple(sorted((*kept, (node.name, value))))
                return node.body, kept, stack
            case ("if", node, kept):
                branch = node.then if value else node.otherwise
                return branch, self._live(branch, dict(kept)), stack
            case ("operand", node, done, kept):
                return self._operand(node, (*done, value), dict(kept), stack)
            case ("return", _, _):
                return None, value, stack
        raise AssertionError(frame)

    def _finish(
        self, node: Expression, done: tuple[Any, ...], values: dict[str, Any], stack: Stack
    ) -> Any:
        match node:
            case Binary():
                try:
                    return None, combine(node, *done), stack
                except ZeroDivisor as error:
                    raise division_by_zero(self.source, error, values, untold) from None
            case Unary(operator="not"):
                return None, not done[0], stack
            case Unary():
                return None, -done[0], stack
            case Project(index=index):
                return None, done[0][index], stack
            case Tuple():
                return None, done, stack
            case Observe():
                if done[0]:
                    return None, True, stack
                return ("rejected",), State("rejected", node), []
            case Rand():
                check_range(self.source, node, (done[0], done[1]), untold)
                if done[1] - done[0] >= self.limits.states:
                    raise self._too_large(node)
                share = Fraction(1, done[1] - done[0] + 1)
                nexts = [(share, (None, v, stack)) for v in range(done[0], done[1] + 1)]
                return (node, done, stack), State("draw", node), nexts
            case Flip():
                chance = Fraction(done[0])
                check_chance(self.source, node, chance, untold)
                both = [(chance, (None, True, stack)), (1 - chance, (None, False, stack))]
                nexts = [(share, control) for share, control in both if share]
                # The hash of a fraction takes longer than those of its parts.
                key = (node, chance.numerator, chance.denominator, stack)
                return key, State("draw", node), nexts
            case Record():
                if any(frame[0] == "return" for frame in frames(stack)):
                    return None, done[0], stack
                key = (*[values[name] for name in node.site.claim.variables], done[0])
                state = State("claim", node, node.site, key)
                return (node, key, stack), state, [(Fraction(1), (None, done[0], stack))]
            case Apply():
                return self._apply(node, done, values, stack)
        raise AssertionError(type(node).__name__)

    def _choose(self, node: Choose, values: dict[str, Any], stack: Stack) -> Any:
        shares = [Fraction(self._pure(weight, values)) for weight, _ in node.branches]
        check_shares(self.source, node, shares, untold)
        nexts = [
            (share, (branch, self._live(branch, values), stack))
            for share, (_, branch) in zip(shares, node.branches, strict=True)
            if share
        ]
        return (node, self._live(node, values), stack), State("draw", node), nexts

    def _apply(
        self, node: Apply, done: tuple[Any, ...], values: dict[str, Any], stack: Stack
    ) -> Any:
        function = node.function
        inputs = (*done, *[values[name] for name in function.captured])
        inner = dict(zip(function.inputs, inputs, strict=True))
        if node.below is not None:
            assert function.measure is not None
            before, after = values[node.below], evaluate(function.measure, inner)
            if not 0 <= after < before:
                raise measure_error(self.source, node, inputs, (before, after), untold)
        depth = self._depth(function, stack)
        if depth == 0:
            self.book.called(function, inputs)
            choices = self.opaque(function, inputs)
            if choices is not None:
                nexts = [(value, (None, value, stack)) for value in choices]
                return (node, inputs, stack), State("call", node, None, inputs), nexts
        if depth >= (self.limits.depth if function.depth is None else function.depth):
            raise too_deep(self.source, node, inputs, depth, untold)
        return self._enter(function, inputs, depth, stack)

    def _depth(self, function: Function, stack: Stack) -> int:
        """Return how many calls of a function are open."""
        return next(
            (frame[2] for frame in frames(stack) if frame[0] == "return" and frame[1] is function),
            int(function is self.unit.function),
        )

    def _enter(
        self, function: Function, inputs: tuple[Value, ...], depth: int, stack: Stack
    ) -> Any:
        """Go into a function that is open ``depth`` times already."""
        # A tail call of the same function needs no frame of its own.
        if stack and stack[0][0] == "return" and stack[0][1] is function:
            stack = stack[1]
        inner = dict(zip(function.inputs, inputs, strict=True))
        frame = ("return", function, depth + 1)
        return function.definition, self._live(function.definition, inner), (frame, stack)


def frames(stack: Stack) -> Any:
    """Yield the frames of a stack, the innermost first."""
    while stack:
        yield stack[0]
        stack = stack[1]
