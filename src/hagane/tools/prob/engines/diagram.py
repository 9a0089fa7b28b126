"""Exact distributions by decision diagrams and weighted counting.

Every draw becomes independent Boolean variables; a value becomes a map from each value it may
take to the diagram of the draws that give it. States that the dynamic programme tells apart row by
row is shared here wherever it does not matter, so that many independent flips with a local
structure stay small even where all of them are alive.

Source of the encoding: Holtzen, Van den Broeck, Millstein, "Scaling exact inference for discrete
probabilistic programs" (2020), which counts weighted models of a program's diagram; an integer is
a map of guards here instead of a vector of bits.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, TypeAlias

from hagane.errors import MissingExtra
from hagane.tools.prob.engines.faults import (
    check_chance,
    check_range,
    check_shares,
    division_by_zero,
    endless_call,
    measure_error,
    too_deep,
    untold,
)
from hagane.tools.prob.engines.ledger import DEFAULT_LIMITS, Ledger, Limits, Unit
from hagane.tools.prob.language.operators import ZeroDivisor, combine, evaluate
from hagane.tools.prob.language.program import Apply, Function, Program, Record
from hagane.tools.prob.language.recursion import deep_recursion
from hagane.tools.prob.language.source import ProgramError, TooLarge
from hagane.tools.prob.language.syntax import (
    Binary,
    Choose,
    Expression,
    Flip,
    If,
    Let,
    Literal,
    Observe,
    Project,
    Rand,
    Tuple,
    Unary,
    Variable,
)

# Nodes of the diagram library, which has no types.
_Node: TypeAlias = Any
_Guarded: TypeAlias = "dict[Any, _Node]"


def run_diagram(program: Program, unit: Unit, limits: Limits = DEFAULT_LIMITS) -> Ledger:
    """Return the distributions of a unit, exactly.

    Raises:
        PathError: A possible run goes wrong.
        TooLarge: The diagram grows beyond ``limits.nodes``.
        MissingExtra: The extra ``prob`` is not installed.
    """
    with deep_recursion():
        engine = _Engine(program, unit, limits)
        try:
            return engine.ledger()
        except ProgramError as error:
            # Frames of the traceback hold nodes, which must not outlive their manager.
            raise error.with_traceback(None) from None
        finally:
            engine.close()


def _manager() -> Any:
    for module in ("dd.cudd", "dd.autoref"):
        try:
            manager = importlib.import_module(module).BDD()
        except ImportError:
            continue
        # The order of the draws is the order of the program's variables; keep it.
        manager.configure(reordering=False)
        return manager
    raise MissingExtra("the engine 'diagram'", "prob")


class _Engine:
    def __init__(self, program: Program, unit: Unit, limits: Limits):
        self.source = program.source
        self.unit = unit
        self.limits = limits
        self.manager = _manager()
        self.true, self.false = self.manager.true, self.manager.false
        # The draws that the observations so far admit.
        self.accepted = self.true
        self.book = Ledger()
        self._chances: dict[str, Fraction] = {}
        # Counted nodes, kept alive so that their numbers stay theirs.
        self._counted: dict[int, tuple[_Node, Fraction]] = {}
        self._open: dict[Function, dict[frozenset[Any], None]] = {}
        self._calls = 0
        if unit.function is not None:
            self._open[unit.function] = {frozenset(): None}

    def ledger(self) -> Ledger:
        """Run the unit."""
        result = self.value(self.unit.expression, self.start(), self.true)
        for value, guard in result.items():
            weight = self.count(guard & self.accepted)
            if weight:
                self.book.result[value] = weight
        self.book.size = len(self.manager)
        return self.book

    def close(self) -> None:
        """Let go of all nodes, and then of the manager."""
        self._counted.clear()
        self.true = self.false = self.accepted = None
        self.manager = None

    def start(self) -> dict[str, _Guarded]:
        """Return the unit's own values."""
        return {name: {value: self.true} for name, value in self.unit.values.items()}

    # Counting.

    def count(self, node: _Node) -> Fraction:
        """Return the probability of a diagram."""
        if node == self.true:
            return Fraction(1)
        if node == self.false:
            return Fraction(0)
        if node.negated:
            return 1 - self.count(~node)
        known = self._counted.get(int(node))
        if known is None:
            chance = self._chances[node.var]
            high = self.count(node.high)
            total = chance * high + (1 - chance) * self.count(node.low)
            known = self._counted[int(node)] = (node, total)
        return known[1]

    def _alive(self, guard: _Node) -> bool:
        return bool((guard & self.accepted) != self.false)

    # Values.

    def value(self, node: Expression, values: dict[str, _Guarded], path: _Node) -> _Guarded:
        """Return the possible values of an expression where ``path`` holds."""
        match node:
            case Literal(value=value):
                return {value: path}
            case Variable(name=name):
                return self._within(values[name], path)
            case Binary():
                return self._binary(node, values, path)
            case Unary(operator=operator):
                operand = self.value(node.operand, values, path)
                return self._mapped(operand, lambda v: not v if operator == "not" else -v)
            case Project(index=index):
                return self._mapped(self.value(node.tuple, values, path), lambda v: v[index])
            case Tuple(items=items):
                done = self._several(items, values, path)
                return self._joined(done, path, lambda *parts: parts)
            case Let():
                bound = self.value(node.bound, values, path)
                return self.value(node.body, {**values, node.name: bound}, path)
            case If():
                condition = self.value(node.condition, values, path)
                branches = [
                    (condition.get(True), node.then),
                    (condition.get(False), node.otherwise),
                ]
                return self._branches(branches, values)
            case Rand():
                return self._rand(node, values, path)
            case Flip():
                return self._flip(node, values, path)
            case Choose():
                return self._choose(node, values, path)
            case Observe():
                condition = self.value(node.condition, values, path)
                self.accepted &= ~path | condition.get(True, self.false)
                return {True: path}
            case Record():
                return self._record(node, values, path)
            case Apply():
                return self._apply(node, values, path)
        raise AssertionError(type(node).__name__)

    def _within(self, guarded: _Guarded, path: _Node) -> _Guarded:
        if path == self.true:
            return guarded
        found = ((value, guard & path) for value, guard in guarded.items())
        return {value: guard for value, guard in found if guard != self.false}

    def _mapped(self, guarded: _Guarded, function: Callable[[Any], Any]) -> _Guarded:
        result: _Guarded = {}
        for value, guard in guarded.items():
            self._put(result, function(value), guard)
        return result

    def _put(self, guarded: _Guarded, value: Any, guard: _Node) -> None:
        guarded[value] = guarded[value] | guard if value in guarded else guard

    def _several(
        self, nodes: Sequence[Expression], values: dict[str, _Guarded], path: _Node
    ) -> list[_Guarded]:
        found = []
        for node in nodes:
            found.append(self.value(node, values, path))
        return found

    def _joined(
        self, operands: Sequence[_Guarded], path: _Node, function: Callable[..., Any]
    ) -> _Guarded:
        """Return the results of a function for all values that operands may have together."""
        partial: list[tuple[tuple[Any, ...], _Node]] = [((), path)]
        for operand in operands:
            extended = []
            for before, guard in partial:
                for value, also in operand.items():
                    both = guard & also
                    if both != self.false:
                        extended.append(((*before, value), both))
            partial = extended
        self._check_size()
        result: _Guarded = {}
        for parts, guard in partial:
            self._put(result, function(*parts), guard)
        return result

    def _check_size(self) -> None:
        if len(self.manager) > self.limits.nodes:
            raise self._too_large()

    def _too_large(self) -> TooLarge:
        return TooLarge(
            f"the decision diagram needs more than {self.limits.nodes:,} nodes; use another engine",
            self.source,
            self.unit.expression.span,
        )

    def _binary(self, node: Binary, values: dict[str, _Guarded], path: _Node) -> _Guarded:
        left = self.value(node.left, values, path)
        right = self.value(node.right, values, path)
        if node.operator in ("//", "%", "/") and 0 in right and self._alive(right[0]):
            raise self._zero(node, values, right[0])
        right = {
            value: guard
            for value, guard in right.items()
            if value or node.operator not in ("//", "%", "/")
        }
        return self._joined([left, right], path, lambda a, b: combine(node, a, b))

    def _zero(self, node: Binary, values: dict[str, _Guarded], guard: _Node) -> Exception:
        """Return the error for a divisor that is zero where ``guard`` holds."""
        known = {}
        for name, guarded in values.items():
            for value, also in guarded.items():
                if self._alive(guard & also):
                    known[name] = value
                    guard = guard & also
                    break
        return division_by_zero(self.source, ZeroDivisor(node), known, untold)

    def _branches(
        self, branches: Sequence[tuple[_Node, Expression]], values: dict[str, _Guarded]
    ) -> _Guarded:
        result: _Guarded = {}
        for guard, branch in branches:
            if guard is not None and self._alive(guard):
                for value, inner in self.value(branch, values, guard).items():
                    self._put(result, value, inner)
        return result

    # Draws.

    def _fresh(self, chance: Fraction) -> _Node:
        name = f"d{len(self._chances)}"
        self._chances[name] = chance
        self.manager.declare(name)
        return self.manager.var(name)

    def _one_of(self, shares: Sequence[Fraction]) -> list[_Node]:
        """Return a guard for each of several exclusive outcomes with the given chances."""
        guards = []
        left, none_before = Fraction(1), self.true
        for share in shares:
            if share == left:
                guards.append(none_before if share else self.false)
                none_before, left = self.false, Fraction(0)
                continue
            bit = self._fresh(share / left)
            guards.append(none_before & bit)
            none_before = none_before & ~bit
            left -= share
        return guards

    def _rand(self, node: Rand, values: dict[str, _Guarded], path: _Node) -> _Guarded:
        bounds = self._several([node.low, node.high], values, path)
        result: _Guarded = {}
        draws: dict[int, list[_Node]] = {}
        for (low, high), guard in self._joined(bounds, path, lambda a, b: (a, b)).items():
            if not self._alive(guard):
                continue
            check_range(self.source, node, (low, high), untold)
            size = high - low + 1
            if size > self.limits.nodes:
                raise self._too_large()
            if size not in draws:  # exclusive guards may share their draws
                draws[size] = self._one_of([Fraction(1, size)] * size)
            for offset, drawn in enumerate(draws[size]):
                self._put(result, low + offset, guard & drawn)
        self._check_size()
        return result

    def _flip(self, node: Flip, values: dict[str, _Guarded], path: _Node) -> _Guarded:
        result: _Guarded = {}
        for number, guard in self.value(node.probability, values, path).items():
            if self._alive(guard):
                chance = Fraction(number)
                check_chance(self.source, node, chance, untold)
                heads, tails = self._one_of([chance, 1 - chance])
                for value, drawn in ((True, heads), (False, tails)):
                    if drawn != self.false:
                        self._put(result, value, guard & drawn)
        return result

    def _choose(self, node: Choose, values: dict[str, _Guarded], path: _Node) -> _Guarded:
        weights = self._several([weight for weight, _ in node.branches], values, path)
        guards = [self.false] * len(node.branches)
        for parts, guard in self._joined(weights, path, lambda *parts: parts).items():
            if self._alive(guard):
                shares = [Fraction(part) for part in parts]
                check_shares(self.source, node, shares, untold)
                for index, drawn in enumerate(self._one_of(shares)):
                    guards[index] |= guard & drawn
        branches = [branch for _, branch in node.branches]
        return self._branches(list(zip(guards, branches, strict=True)), values)

    # Claims and calls.

    def _record(self, node: Record, values: dict[str, _Guarded], path: _Node) -> _Guarded:
        result = self.value(node.expression, values, path)
        if self._calls == 0:
            table = self.book.tables.setdefault(node.site, {})
            names = node.site.claim.variables
            columns = [*(values[name] for name in names), result]
            for key, guard in self._joined(columns, path, lambda *parts: parts).items():
                weight = self.count(guard & self.accepted)
                if weight:
                    table[key] = table.get(key, Fraction(0)) + weight
        return result

    def _apply(self, node: Apply, values: dict[str, _Guarded], path: _Node) -> _Guarded:
        function = node.function
        given = self._several(node.arguments, values, path)
        inputs = [*given, *(self._within(values[name], path) for name in function.captured)]
        together = self._joined(inputs, path, lambda *parts: parts)
        entries = [entry for entry, guard in together.items() if self._alive(guard)]
        if not entries:
            return {}
        if node.below is not None:
            self._check_measure(node, inputs, values[node.below], path)
        stack = self._open.setdefault(function, {})
        if not stack:
            for entry in entries:
                self.book.called(function, entry)
        here = frozenset(entries)
        if here in stack:
            raise endless_call(self.source, node, entries[0], untold)
        if len(stack) >= (self.limits.depth if function.depth is None else function.depth):
            raise too_deep(self.source, node, entries[0], len(stack), untold)
        stack[here] = None
        self._calls += 1
        inner = dict(zip(function.inputs, inputs, strict=True))
        result = self.value(function.definition, inner, path)
        self._calls -= 1
        stack.popitem()
        return result

    def _check_measure(
        self, node: Apply, inputs: Sequence[_Guarded], before: _Guarded, path: _Node
    ) -> None:
        function = node.function
        assert function.measure is not None
        columns = [*inputs, before]
        for entry, guard in self._joined(columns, path, lambda *parts: parts).items():
            after = evaluate(function.measure, dict(zip(function.inputs, entry, strict=False)))
            if not 0 <= after < entry[-1] and self._alive(guard):
                raise measure_error(self.source, node, entry[:-1], (entry[-1], after), untold)
