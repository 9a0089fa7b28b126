"""Exact distributions by dynamic programming over live variables.

A table maps the values of the variables that are still needed to a weight; each step of the
program maps a table to a table, and states that agree on the needed values meet in one row. Weights
are integers over one common denominator per table, which is many times faster than a fraction a
row. A call whose caller needs nothing afterwards goes through with its whole table; any other
call uses the distribution of the function for each distinct argument, computed once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from math import lcm
from operator import itemgetter
from typing import Any

from hagane.tools.prob.engines.compiled import Compiler, Row
from hagane.tools.prob.engines.faults import (
    Told,
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
from hagane.tools.prob.engines.ordered import shortened
from hagane.tools.prob.engines.run import Run, show_draws
from hagane.tools.prob.engines.table import Table
from hagane.tools.prob.language.operators import PLAIN, ZeroDivisor, combine
from hagane.tools.prob.language.program import Apply, Function, Liveness, Program, Record, shown
from hagane.tools.prob.language.recursion import deep_recursion
from hagane.tools.prob.language.source import PathError, ProgramError, TooLarge, TooManyCalls
from hagane.tools.prob.language.syntax import (
    Annotated,
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

# The column of the value that an expression has just got.
_RESULT = "$"


def run_dynamic(
    program: Program, unit: Unit, limits: Limits = DEFAULT_LIMITS, *, told: bool = True
) -> Ledger:
    """Return the distributions of a unit, exactly.

    Args:
        program: The program.
        unit: The unit to run.
        limits: How many rows a table may have.
        told: Whether an error names a run that leads to it, for which everything runs again.

    Raises:
        PathError: A possible run goes wrong; the message tells that run.
        TooLarge: More rows than ``limits.states``.
    """
    with deep_recursion():
        try:
            return _Engine(program, shortened(unit), limits, traced=False).ledger()
        except PathError:
            # Told of the program as it is written, where that is not too large.
            for form in (unit, shortened(unit)) if told else ():
                _retrace(program, form, limits)
            raise


def likeliest_runs(program: Program, unit: Unit, limits: Limits = DEFAULT_LIMITS) -> dict[Any, Any]:
    """Return for each claim and each key its most probable run."""
    with deep_recursion():
        engine = _Engine(program, shortened(unit), limits, traced=True)
        engine.ledger()
        return engine.found


def _retrace(program: Program, unit: Unit, limits: Limits) -> None:
    """Raise an error again with a run that leads to it, if one can be had in the same limits."""
    try:
        _Engine(program, unit, limits, traced=True).ledger()
    except PathError as traced:
        raise traced from None
    except ProgramError:
        return


class _Engine:
    def __init__(self, program: Program, unit: Unit, limits: Limits, *, traced: bool):
        self.source = program.source
        self.unit = unit
        self.limits = limits
        self.traced = traced
        self.liveness = Liveness()
        self.compiler = Compiler(self.liveness)
        self.book = Ledger()
        self.found: dict[Any, dict[Row, tuple[Any, int]]] = {}
        self.summaries: dict[tuple[Function, Row], Table] = {}
        # The inputs with which each function is open, one entry a call.
        self.open: dict[Function, dict[frozenset[Row], None]] = {}
        self.calls = 0
        self.entered = 0
        # The inputs with which calls were entered and left, and how many came again.
        self.over: set[tuple[Function, frozenset[Row]]] = set()
        self.again = 0
        if unit.function is not None:
            self.open[unit.function] = {frozenset(): None}

    def ledger(self) -> Ledger:
        names = tuple(self.unit.values)
        one: Any = Run(1) if self.traced else 1
        start = Table(names, {tuple(self.unit.values.values()): one})
        end = self.push(self.unit.expression, start, frozenset())
        if not self.traced:
            self.book.result = {
                row[0]: Fraction(weight, end.denominator) for row, weight in end.rows.items()
            }
            for site, found in self.found.items():
                self.book.tables[site] = {
                    key: Fraction(weight, denominator)
                    for key, (weight, denominator) in found.items()
                }
        return self.book

    # One step: a table in, a table of the kept names and the result out.

    def push(self, node: Expression, table: Table, keep: frozenset[str]) -> Table:
        """Evaluate an expression in every state of a table, which it may use up: calls nest deep.

        Returns:
            A table whose columns are ``keep`` in sorted order, then the value.
        """
        if self.compiler.is_pure(node):
            return self._map(table, keep, self._pure(node, table))
        match node:
            case Let():
                live = (self.liveness.free(node.body) - {node.name}) | keep
                bound = self.push(node.bound, table, live)
                bound.names = (*bound.names[:-1], node.name)
                return self.push(node.body, bound, keep)
            case If():
                return self._if(node, table, keep)
            case Binary():
                return self._binary(node, table, keep)
            case Unary(operand=operand):
                done = self.push(operand, table, keep)
                negate = (lambda v: not v) if node.operator == "not" else (lambda v: -v)
                return self._map(done, keep, lambda row: negate(row[-1]))
            case Project(index=index):
                done = self.push(node.tuple, table, keep)
                return self._map(done, keep, lambda row: row[-1][index])
            case Tuple(items=items):
                done, values = self._operands(items, table, keep)
                return self._map(done, keep, lambda row: tuple(value(row) for value in values))
            case Rand():
                return self._rand(node, table, keep)
            case Flip():
                return self._flip(node, table, keep)
            case Choose():
                return self._choose(node, table, keep)
            case Observe():
                done = self.push(node.condition, table, keep)
                done.rows = {row: weight for row, weight in done.rows.items() if row[-1]}
                return done
            case Record():
                return self._record(node, table, keep)
            case Apply():
                return self._apply(node, table, keep)
        assert not isinstance(node, Annotated)
        raise AssertionError(f"{type(node).__name__} in a resolved program")

    def _pure(self, node: Expression, table: Table) -> Callable[[Row], Any]:
        function = self.compiler.function(node, table.names)
        if self.compiler.is_safe(node):
            return function

        def located(row: Row) -> Any:
            try:
                return function(row)
            except ZeroDivisor as error:
                raise self._zero(error, table, row) from None

        return located

    def _zero(self, error: ZeroDivisor, table: Table, row: Row) -> PathError:
        values = {**self.unit.values, **dict(zip(table.names, row, strict=True))}
        return division_by_zero(self.source, error, values, self._told(table.rows[row]))

    def _told(self, weight: Any) -> Told:
        if not isinstance(weight, Run):
            return untold
        return lambda: show_draws(self.source, weight.draws())

    def _slots(self, table: Table, names: frozenset[str]) -> tuple[int, ...]:
        return tuple(table.names.index(name) for name in sorted(names))

    def _map(self, table: Table, keep: frozenset[str], value: Callable[[Row], Any]) -> Table:
        slots = self._slots(table, keep)
        rows: dict[Row, Any] = {}
        for row, weight in table.rows.items():
            key = (*[row[slot] for slot in slots], value(row))
            rows[key] = rows.get(key, 0) + weight
        return self._table((*sorted(keep), _RESULT), rows, table.denominator)

    def _table(self, names: tuple[str, ...], rows: dict[Row, Any], denominator: int) -> Table:
        if len(rows) > self.book.size:
            self.book.size = len(rows)
            if len(rows) > self.limits.states:
                raise self._too_large(names)
        return Table(names, rows, denominator)

    def _too_large(self, names: Sequence[str]) -> TooLarge:
        alive = ", ".join(shown(name) for name in names if name[0] != "$")
        return TooLarge(
            f"dynamic programming needs more than {self.limits.states:,} rows here"
            + (f"; the variables alive are: {alive}" if alive else ""),
            self.source,
            self.unit.expression.span,
        )

    def _merge(self, left: Table | None, right: Table) -> Table:
        if left is None:
            return right
        common = lcm(left.denominator, right.denominator)
        left.scaled(common // left.denominator)
        right.scaled(common // right.denominator)
        rows = left.rows
        for row, weight in right.rows.items():
            rows[row] = rows.get(row, 0) + weight
        return self._table(left.names, rows, common)

    def _operands(
        self, nodes: Sequence[Expression], table: Table, keep: frozenset[str]
    ) -> tuple[Table, list[Callable[[Row], Any]]]:
        """Evaluate several expressions in order.

        Definitions that draw nothing and cannot fail wait until the others are done, so that they
        cost no pass over the table.

        Returns:
            A table that has at least the columns ``keep``, and the value of each expression as a
            function of a row.
        """
        waits = [
            self.compiler.is_pure(node)
            and (
                all(map(self.compiler.is_pure, nodes[index:]))
                or (self.compiler.is_safe(node) and self._keeps_nothing(node, keep))
            )
            for index, node in enumerate(nodes)
        ]
        needed = keep.union(
            *(self.liveness.free(node) for node, wait in zip(nodes, waits, strict=True) if wait)
        )
        held: dict[int, str] = {}
        first = sum(name.startswith("$t") for name in keep)
        for index, node in enumerate(nodes):
            if not waits[index]:
                later = [self.liveness.free(other) for other in nodes[index + 1 :]]
                table = self.push(node, table, needed.union(held.values(), *later))
                held[index] = f"$t{first + index}"
                table.names = (*table.names[:-1], held[index])
        return table, [
            self._pure(node, table) if wait else itemgetter(table.names.index(held[index]))
            for index, (node, wait) in enumerate(zip(nodes, waits, strict=True))
        ]

    def _keeps_nothing(self, node: Expression, keep: frozenset[str]) -> bool:
        """Tell whether holding an expression's variables splits no rows that its value would not.

        A comparison is better evaluated first: its one bit takes the place of its variables.
        """
        match node:
            case Literal() | Variable():
                return True
            case Binary(operator="+" | "-", left=Variable(), right=Literal()):
                return True
        return self.liveness.free(node) <= keep

    def _binary(self, node: Binary, table: Table, keep: frozenset[str]) -> Table:
        done, (left, right) = self._operands([node.left, node.right], table, keep)
        plain = PLAIN.get(node.operator)
        if plain is not None:
            return self._map(done, keep, lambda row: plain(left(row), right(row)))

        def value(row: Row) -> Any:
            try:
                return combine(node, left(row), right(row))
            except ZeroDivisor as error:
                raise self._zero(error, done, row) from None

        return self._map(done, keep, value)

    def _if(self, node: If, table: Table, keep: frozenset[str]) -> Table:
        free = self.liveness.free
        live = free(node.then) | free(node.otherwise) | keep
        done = self.push(node.condition, table, live)
        table.rows = {}
        parts: dict[bool, dict[Row, Any]] = {True: {}, False: {}}
        for row, weight in done.rows.items():
            parts[row[-1]][row[:-1]] = weight
        done.rows = {}
        result = None
        for wanted, branch in ((True, node.then), (False, node.otherwise)):
            if parts[wanted]:
                part = Table(done.names[:-1], parts.pop(wanted), done.denominator)
                result = self._merge(result, self.push(branch, part, keep))
        return result or self._nothing(keep)

    def _nothing(self, keep: frozenset[str]) -> Table:
        return Table((*sorted(keep), _RESULT), {})

    # Draws.

    def _rand(self, node: Rand, table: Table, keep: frozenset[str]) -> Table:
        done, (low, high) = self._operands([node.low, node.high], table, keep)
        slots = self._slots(done, keep)
        ready: dict[Row, Any] = {}
        for row, weight in done.rows.items():
            bounds = low(row), high(row)
            if bounds[0] > bounds[1]:
                check_range(self.source, node, bounds, self._told(weight))
            key = (*[row[slot] for slot in slots], *bounds)
            ready[key] = ready.get(key, 0) + weight
        sizes = {row[-1] - row[-2] + 1 for row in ready}
        if sum(sizes) > self.limits.states:
            raise self._too_large(done.names)
        common = lcm(*sizes) if sizes else 1
        rows: dict[Row, Any] = {}
        for row, weight in ready.items():
            share = weight * (common // (row[-1] - row[-2] + 1))
            rest = row[:-2]
            if self.traced:
                for value in range(row[-2], row[-1] + 1):
                    key = (*rest, value)
                    rows[key] = rows.get(key, 0) + share * Run(1, (node.span, value))
            else:
                for value in range(row[-2], row[-1] + 1):
                    key = (*rest, value)
                    rows[key] = rows.get(key, 0) + share
            if len(rows) > self.limits.states:
                break
        return self._table((*sorted(keep), _RESULT), rows, done.denominator * common)

    def _flip(self, node: Flip, table: Table, keep: frozenset[str]) -> Table:
        probability = self._pure(node.probability, table)
        slots = self._slots(table, keep)
        fixed = self.compiler.fixed(node.probability)
        chances: dict[Row, Fraction] = {}
        for row, weight in table.rows.items():
            chance = Fraction(probability(row))
            check_chance(self.source, node, chance, self._told(weight))
            if fixed:
                chances = dict.fromkeys(table.rows, chance)
                break
            chances[row] = chance
        common = lcm(*{chance.denominator for chance in chances.values()})
        rows: dict[Row, Any] = {}
        shares: tuple[tuple[bool, int], ...] = ()
        for row, weight in table.rows.items():
            if not (fixed and shares):
                heads = chances[row].numerator * (common // chances[row].denominator)
                shares = tuple(each for each in ((True, heads), (False, common - heads)) if each[1])
            rest = [row[slot] for slot in slots]
            for value, share in shares:
                key = (*rest, value)
                drawn = weight * (Run(share, (node.span, value)) if self.traced else share)
                rows[key] = rows.get(key, 0) + drawn
        return self._table((*sorted(keep), _RESULT), rows, table.denominator * common)

    def _choose(self, node: Choose, table: Table, keep: frozenset[str]) -> Table:
        weights = [self._pure(weight, table) for weight, _ in node.branches]
        chances: dict[Row, list[Fraction]] = {}
        for row, weight in table.rows.items():
            chances[row] = shares = [Fraction(function(row)) for function in weights]
            check_shares(self.source, node, shares, self._told(weight))
        common = lcm(*(share.denominator for row in chances.values() for share in row))
        result = None
        for index, (_, branch) in enumerate(node.branches):
            rows = {}
            for row, weight in table.rows.items():
                share = chances[row][index]
                if share:
                    factor: Any = share.numerator * (common // share.denominator)
                    if self.traced:
                        factor = Run(factor, (node.span, index))
                    rows[row] = weight * factor
            if rows:
                part = Table(table.names, rows, table.denominator * common)
                result = self._merge(result, self.push(branch, part, keep))
        return result or self._nothing(keep)

    # Claims and calls.

    def _record(self, node: Record, table: Table, keep: frozenset[str]) -> Table:
        names = node.site.claim.variables
        if self.calls:
            return self.push(node.expression, table, keep)
        done = self.push(node.expression, table, keep.union(names))
        slots = [*[done.names.index(name) for name in names], len(done.names) - 1]
        found = self.found.setdefault(node.site, {})
        for row, weight in done.rows.items():
            key = tuple(row[slot] for slot in slots)
            if key in found:
                old, denominator = found[key]
                common = lcm(denominator, done.denominator)
                weight = old * (common // denominator) + weight * (common // done.denominator)
                found[key] = (weight, common)
            else:
                found[key] = (weight, done.denominator)
        return self._map(done, keep, lambda row: row[-1])

    def _apply(self, node: Apply, table: Table, keep: frozenset[str]) -> Table:
        function = node.function
        needed = frozenset((node.below,)) if node.below is not None else frozenset[str]()
        live = keep.union(function.captured, needed)
        done, held = self._operands(node.arguments, table, live)
        captured = [itemgetter(done.names.index(name)) for name in function.captured]
        getters: list[Callable[[Row], Any]] = [*held, *captured]
        rest = self._slots(done, keep)
        entries: dict[Row, dict[Row, Any]] = {}
        for row, weight in done.rows.items():
            inputs = tuple([get(row) for get in getters])
            if node.below is not None:
                before = row[done.names.index(node.below)]
                self._check_measure(node, inputs, before, weight)
            group = entries.setdefault(inputs, {})
            left = tuple(row[slot] for slot in rest)
            group[left] = group.get(left, 0) + weight
        done.rows = {}
        if not self.open.get(function):
            for inputs in entries:
                self.book.called(function, inputs)
        if not keep:
            rows = {inputs: group[()] for inputs, group in entries.items()}
            entries.clear()
            return self._through(node, Table(function.inputs, rows, done.denominator))
        return self._summarised(node, entries, keep, done.denominator)

    def _through(self, node: Apply, table: Table) -> Table:
        if not table.rows:
            return self._nothing(frozenset())
        self._enter(node, frozenset(table.rows), next(iter(table.rows.values())))
        result = self.push(node.function.definition, table, frozenset())
        self._leave(node.function)
        return result

    def _summarised(
        self,
        node: Apply,
        entries: dict[Row, dict[Row, Any]],
        keep: frozenset[str],
        denominator: int,
    ) -> Table:
        function = node.function
        summaries: dict[Row, Table] = {}
        for inputs, group in entries.items():
            if (function, inputs) not in self.summaries:
                start = Table(function.inputs, {inputs: Run(1) if self.traced else 1})
                self._enter(node, frozenset((inputs,)), next(iter(group.values())))
                done = self.push(function.definition, start, frozenset())
                self._leave(function)
                self.summaries[function, inputs] = done
            summaries[inputs] = self.summaries[function, inputs]
        common = lcm(*(table.denominator for table in summaries.values()))
        rows: dict[Row, Any] = {}
        for inputs, group in entries.items():
            factor = common // summaries[inputs].denominator
            for (value,), share in summaries[inputs].rows.items():
                share = share * factor
                for left, weight in group.items():
                    key = (*left, value)
                    rows[key] = rows.get(key, 0) + weight * share
        return self._table((*sorted(keep), _RESULT), rows, denominator * common)

    def _enter(self, node: Apply, inputs: frozenset[Row], weight: Any) -> None:
        """Note an open call; refuse one that can never end.

        A function's effect on a set of inputs depends on nothing else, so a call with the
        same set inside itself calls itself for ever.
        """
        function = node.function
        stack = self.open.setdefault(function, {})
        if inputs in stack:
            raise endless_call(self.source, node, next(iter(inputs)), self._told(weight))
        if len(stack) >= (self.limits.depth if function.depth is None else function.depth):
            entry = next(iter(inputs))
            raise too_deep(self.source, node, entry, len(stack), self._told(weight))
        stack[inputs] = None
        self.calls += 1
        self.entered += 1
        self.again += (function, inputs) in self.over
        if self.entered > self.limits.calls or self.again > self.limits.again:
            text = f"tables would follow more than {self.limits.calls:,} calls one by one"
            raise TooManyCalls(text, self.source, node.span)

    def _leave(self, function: Function) -> None:
        inputs, _ = self.open[function].popitem()
        self.over.add((function, inputs))
        self.calls -= 1

    def _check_measure(self, node: Apply, inputs: Row, before: int, weight: Any) -> None:
        measure = node.function.measure
        assert measure is not None
        after = self.compiler.function(measure, node.function.inputs)(inputs)
        if not 0 <= after < before:
            raise measure_error(self.source, node, inputs, (before, after), self._told(weight))
