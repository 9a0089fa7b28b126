"""The domain of draws: draws and typed functions in the record."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Mapping, Sequence
from fractions import Fraction
from types import FunctionType
from typing import TYPE_CHECKING, Any

import numpy as np

from hagane.frontends.python.load.lift import is_standard
from hagane.frontends.python.values.objects import Frame, Function
from hagane.frontends.python.values.values import (
    MISSING,
    Choice,
    Host,
    ListRef,
    Real,
    Truth,
    Unknown,
    Value,
)
from hagane.symbolic import Expr
from hagane.symbolic.logic import implies
from hagane.symbolic.questions import denominator
from hagane.symbolic.term import BOOL, INT, TRUE, Term, variable
from hagane.tools.prob.capture.library import known_fraction
from hagane.tools.prob.capture.numbers import guarded
from hagane.tools.prob.capture.python_function import PythonFunction
from hagane.tools.prob.capture.strict import Strict
from hagane.tools.prob.capture.writer import Writer
from hagane.tools.prob.language.program import Kind
from hagane.tools.prob.language.source import Span
from hagane.tools.prob.language.syntax import (
    Binary,
    Call,
    Choose,
    Expression,
    Flip,
    Literal,
    Observe,
    Project,
    Rand,
    Tuple,
    Variable,
)

if TYPE_CHECKING:
    from hagane.frontends.python.enter.interpreter import Interpreter


class Typed:
    """A function that is known by its type.

    Args:
        original: The function itself.
        name: Its name in the program.
        kind: The kind of its result.
    """

    def __init__(self, original: Any, name: str, kind: Kind):
        self.original = original
        self.name = name
        self.kind = kind


class Draws(Strict):
    """The domain of draws.

    Args:
        found: The function that is captured.
        typed: Typed functions by the Python function inside; they stay calls.
        core: The interpreter.
    """

    def __init__(self, found: PythonFunction, typed: Mapping[Any, Typed], core: Interpreter):
        super().__init__(found, core)
        self.typed = typed
        self.called: dict[str, Any] = {}

    # Draws.

    def _whole(self, value: Value) -> Any:
        value = self.counted(value)
        if not isinstance(value, int | Expr):
            self.refuse(f"expected an integer, got {self.core.show(value)}")
        return value

    def rand(self, low: Value, high: Value) -> Value:
        """Return an integer drawn between two bounds, both included."""
        bounds = [self.knowledge.term(self._whole(value)) for value in (low, high)]
        span, guard = self.span, self.guard
        ranges = [self.facts.range_of(bound) for bound in bounds]
        safe = bounds[0].is_const and bounds[1].is_const and bounds[0].data <= bounds[1].data
        if safe:
            guard = TRUE

        def write(writer: Writer) -> Expression:
            drawn = Rand(span, *(writer.written(bound, span) for bound in bounds))
            return guarded(writer, guard, drawn, Literal(span, 0))

        self.record.draws += 1
        name = self.record.step("rand", span, [*bounds, guard], write, needed=not safe)
        return self.record.number(name, (ranges[0][0], ranges[1][1]))

    def _chance(self, value: Value) -> tuple[Fraction | Term, int]:
        """Return a probability: a fraction, or a term over a divisor."""
        known = known_fraction(value.object if isinstance(value, Host) else value)
        if known is not None:
            return known, 1
        formula = value.formula if isinstance(value, Real) else value
        if not isinstance(formula, Expr):
            self.refuse(
                f"expected a probability, such as Fraction(1, 3), 0.1 or n / 10, got "
                f"{self.core.show(value)}"
            )
        scale = denominator(formula)
        return self.knowledge.term(formula * scale), scale

    def _written_chance(
        self, writer: Writer, chance: tuple[Fraction | Term, int], span: Span
    ) -> Expression:
        value, scale = chance
        if isinstance(value, Fraction):
            return Literal(span, int(value) if value.denominator == 1 else value)
        return Binary(span, "/", writer.written(value, span), Literal(span, scale))

    def flip(self, probability: Value) -> Value:
        """Return a truth value that is true with a probability."""
        chance = self._chance(probability)
        span, guard = self.span, self.guard
        safe = isinstance(chance[0], Fraction) and 0 <= chance[0] <= 1
        if safe:
            guard = TRUE
        terms = [guard] if isinstance(chance[0], Fraction) else [guard, chance[0]]

        def write(writer: Writer) -> Expression:
            drawn = Flip(span, self._written_chance(writer, chance, span))
            return guarded(writer, guard, drawn, Literal(span, False))

        self.record.draws += 1
        name = self.record.step("flip", span, terms, write, needed=not safe)
        return Truth(variable(name, BOOL))

    def choose(self, *branches: Value) -> Value:
        """Return one of several values, given as pairs of its probability and itself."""
        pairs = [self._pair(branch) for branch in branches]
        chances = [self._chance(pair[0]) for pair in pairs]
        span, guard = self.span, self.guard
        safe = all(isinstance(c, Fraction) and c >= 0 for c, _ in chances)
        safe = safe and sum(c for c, _ in chances if isinstance(c, Fraction)) == 1
        if safe:
            guard = TRUE
        terms = [guard, *(c for c, _ in chances if isinstance(c, Term))]

        def write(writer: Writer) -> Expression:
            drawn = Choose(
                span,
                tuple(
                    (self._written_chance(writer, chance, span), Literal(span, place))
                    for place, chance in enumerate(chances)
                ),
            )
            return guarded(writer, guard, drawn, Literal(span, 0))

        self.record.draws += 1
        name = self.record.step("choice", span, terms, write, needed=not safe)
        place = self.record.number(name, (0, len(pairs) - 1))
        return self.core.item(tuple(pair[1] for pair in pairs), place)

    def _pair(self, branch: Value) -> list[Value]:
        items = self.core.sequence(branch) if isinstance(branch, tuple | list | ListRef) else None
        if isinstance(branch, list):
            items = branch
        if not isinstance(items, list) or len(items) != 2:
            self.refuse(
                "choose takes pairs of a probability and a value, such as (Fraction(1, 3), 'a'), "
                f"got {self.core.show(branch)}"
            )
        return items

    def observe(self, condition: Value) -> Value:
        """Keep the runs on which a condition holds."""
        term = self.core.as_term(self.core.truth(condition))
        whole = implies(self.guard, term)
        span = self.span
        self.record.draws += 1
        self.record.step(
            "observed",
            span,
            (whole,),
            lambda writer: Observe(span, writer.written(whole, span)),
            needed=True,
        )
        self.learn(term)
        return True

    # Typed functions.

    def lifted(self, found: Any) -> Value:
        """Return the stand-in of a real object; ``MISSING`` for others."""
        original = getattr(found, "__wrapped__", found) if callable(found) else found
        if _is_hashable(original) and original in self.typed:
            return Host(self.typed[original])
        if isinstance(found, np.ndarray | np.generic):
            return self.core.lift(found.tolist())
        is_own = isinstance(found, FunctionType) and not is_standard(found)
        if is_own and inspect.unwrap(found) is not found:
            self.refuse(
                f"'{found.__name__}' is decorated; only typed and plain functions are known"
            )
        return MISSING

    def own_function(self) -> Function:
        """Return the function that is captured."""
        function = self.core.lift_function(self.found.function)  # type: ignore[arg-type]
        if not isinstance(function, Function):
            name = self.found.function.__name__
            self.refuse(f"'{name}' has no source to read; define it in a file")
        return function

    def _is_own(self, name: str) -> bool:
        own = self.found.function
        return name in own.__code__.co_freevars or own.__qualname__ == name

    def named_value(self, node: ast.Name) -> Value:
        """Return the value of a name; the function's own name is its own."""
        frame = self.core.frame
        assert frame is not None
        if node.id == self.found.function.__name__ and self._is_own(node.id):
            where: Frame | None = frame
            while where is not None and node.id not in self.core.heap[where.key]:
                where = where.parent
            is_inside = where is not None and where.function is not None
            if not is_inside and frame.file == self.found.source.name:
                return Host(self.typed[self.found.function])
        return super().named_value(node)

    def call(
        self, function: Value, arguments: Sequence[Value], keywords: Mapping[str, Value]
    ) -> Value:
        """Call any value; typed functions stay calls."""
        if isinstance(function, Host) and isinstance(function.object, Typed):
            if keywords:
                self.refuse("a typed function takes its arguments by position here")
            return self._call_typed(function.object, arguments)
        return super().call(function, arguments, keywords)

    def _call_typed(self, function: Typed, arguments: Sequence[Value]) -> Value:
        self.called[function.name] = function.original
        span, guard = self.span, self.guard
        terms: list[Term] = [guard]
        written = [self.result(value, terms) for value in arguments]

        def write(writer: Writer) -> Expression:
            call = Call(span, function.name, tuple(w(writer) for w in written))
            return guarded(writer, guard, call, any_value(function.kind, span))

        self.record.draws += 1
        name = self.record.step(function.name, span, terms, write, needed=True)
        return self.unpacked(name, function.kind, span)

    def unpacked(self, name: str, kind: Kind, span: Span) -> Value:
        """Return a named value of a kind as values of the interpreter."""
        if kind == "bool":
            return Truth(variable(name, BOOL))
        if isinstance(kind, str):
            return self.record.number(name, (None, None))
        items = []
        for place, inner in enumerate(kind):
            whole = variable(name, INT)

            def write(writer: Writer, place: int = place) -> Expression:
                return Project(span, Variable(span, writer.name(name)), place)

            part = self.record.step("item", span, (whole,), write)
            items.append(self.unpacked(part, inner, span))
        return tuple(items)

    # Results.

    def result(self, value: Value, terms: list[Term]) -> Any:
        """Return how a value is written, and add the terms it is made of."""
        span = self.span
        value = self.core.settle(value)
        if isinstance(value, Choice):
            value = self._joined(value)
        if isinstance(value, ListRef):
            value = self.core.sequence(value)
        if isinstance(value, tuple | list):
            parts = [self.result(item, terms) for item in value]
            return lambda writer: Tuple(span, tuple(part(writer) for part in parts))
        if isinstance(value, Host) and isinstance(value.object, Fraction):
            value = value.object
        if isinstance(value, Fraction | float):
            shown = known_fraction(value)
            assert shown is not None
            return lambda writer: Literal(span, shown)
        if value is None:
            self.refuse("a path ends without 'return value'")
        if not isinstance(value, int | Expr | Truth):
            self.refuse(
                f"{self._described(value)} is no value of a program: int, bool and tuples are"
            )
        if isinstance(value, bool | Truth):
            term = self.core.as_term(self.core.truth(value))
        else:
            term = self.knowledge.term(value)
        terms.append(term)
        return lambda writer: writer.written(term, span)

    def _described(self, value: Value) -> str:
        if isinstance(value, Choice):
            return f"a value that is {self._described(value.yes)} or {self._described(value.no)}"
        if isinstance(value, Unknown):
            self.refuse(value.reason)
        return "a real number" if isinstance(value, Real) else f"a {type(value).__name__}"

    def _joined(self, value: Choice) -> Value:
        """Return one form of two tuples or lists, if they have one."""
        sides = []
        for side in (value.yes, value.no):
            found = self._joined(side) if isinstance(side, Choice) else side
            sides.append(tuple(self.items_of(found)) if isinstance(found, ListRef) else found)
        if None in sides:
            self.refuse("a path ends without 'return value'")
        return self.core.join(value.condition, *sides)


def any_value(kind: Kind, span: Span) -> Expression:
    """Return some value of a kind."""
    if kind == "real":
        return Call(span, "uniform", (Literal(span, 0), Literal(span, 1)))
    if isinstance(kind, str):
        return Literal(span, False if kind == "bool" else 0)
    return Tuple(span, tuple(any_value(item, span) for item in kind))


def _is_hashable(found: Any) -> bool:
    try:
        hash(found)
    except TypeError:
        return False
    return True
