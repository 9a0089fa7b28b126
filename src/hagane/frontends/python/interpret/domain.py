"""The domain of an interpretation: its values, and where the paths of a program part and meet.

The interpreter knows Python: names, scopes, calls, containers, statements. Everything that differs
between types (``python/shapes``), a graph (``frontends/capture``) and probabilities
(``tools/prob/capture``) it asks of its domain, and nothing of it is overridden. A domain is made
for one interpreter, of which it may use every public method.

Where a method says "Python's own meaning", the interpreter has a method that gives it
(``Core.visit``, ``apply``, ``compute``); a domain adds to it, changes operands, or refuses.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol, TypeAlias

from hagane.frontends.python.interpret.emitting.emit import Emitter
from hagane.frontends.python.report.collect import Collector
from hagane.frontends.python.values.values import Many, Value
from hagane.symbolic import Dim
from hagane.symbolic.path import PathCondition
from hagane.symbolic.questions import Knowledge
from hagane.symbolic.term import Term

if TYPE_CHECKING:
    from hagane.frontends.python.enter.interpreter import Interpreter
    from hagane.frontends.python.interpret.core import Exit

# A class of the syntax tree: ast.Add, ast.USub, ast.Lt, ast.Subscript, ast.Store …
Operation: TypeAlias = type[ast.AST]
# One iteration of a comprehension, by its number: whether its item is kept (None where nobody can
# tell), and its result.
Step: TypeAlias = Callable[[Dim], tuple[bool | None, list[Value] | Many]]
# The same for an item itself: its result goes to a function, under the conditions that hold.
Visit: TypeAlias = Callable[[Value, Callable[[list[Value] | Many], None]], None]


class Domain(Protocol):
    """The domain that a program is interpreted over."""

    @property
    def knowledge(self) -> Knowledge:
        """The facts of numbers, and the path that is followed."""
        ...

    @property
    def collector(self) -> Collector:
        """Takes findings in."""
        ...

    @property
    def emit(self) -> Emitter:
        """Applies operators to tensors."""
        ...

    @property
    def annotated(self) -> bool:
        """Whether annotations of the program promise shapes."""
        ...

    # Truth.

    def truth(self, value: Value) -> Term:
        """Return the condition under which a value counts as true that only the run knows.

        ``value`` is a tensor, a float or an unknown value; None where there is none, as for the
        order of two such.
        """
        ...

    def decide(self, condition: Term) -> bool | Term:
        """Return a condition, or its truth where the path decides it."""
        ...

    # Paths.

    def fork(
        self, condition: Term, yes: Callable[[], Value], no: Callable[[], Value], text: str
    ) -> Value:
        """Run ``yes`` where a condition holds and ``no`` elsewhere, and join their states.

        Either may end with :attr:`Core.dead` set: its path goes on elsewhere, or not at all. The
        contents of the heap after it are those of both paths; ``text`` is the condition as written.
        """
        ...

    def leave(self, kind: str, value: Value, exits: list[Exit]) -> None:
        """End the path here, by ``return``, ``break``, ``continue`` or ``raise``: add an exit."""
        ...

    def merge(self, exits: Sequence[Exit], entry: PathCondition) -> Value:
        """Continue where several exits meet; return the joined value.

        Args:
            exits: The exits, at least one.
            entry: The path at the start of theirs.
        """
        ...

    def join(self, condition: Term, yes: Value, no: Value) -> Value:
        """Return the value that is ``yes`` where a condition holds, else ``no``.

        Either may be ``MISSING``: a name that is not bound on that path. The two are never one
        object. ``Core.join_parts`` joins containers part by part.
        """
        ...

    # Iterations.

    def loop(self, node: ast.For | ast.While) -> None:
        """Run a loop; the interpreter runs single iterations (``Core.turn``, ``each``)."""
        ...

    def rest(
        self, node: ast.For, items: Sequence[Value], done: int, steps: int, breaks: list[Exit]
    ) -> bool:
        """Run the rest of a loop over known items at once, and the code behind it, if worthwhile.

        Args:
            node: The loop.
            items: All items.
            done: How many turns were run.
            steps: The statements that they took.
            breaks: The ways out of the loop so far.

        Returns:
            Whether it was done.
        """
        ...

    def gather(
        self,
        node: ast.comprehension,
        items: Many | list[Value],
        step: Step,
        visit: Visit,
        *,
        plain: bool,
    ) -> Many | list[Value]:
        """Return the result of a comprehension over items of which only the run knows the number.

        A list, which comes where nodes are built (``Emitter.builds``), holds known items of which
        only the run knows which are kept.

        Args:
            node: The ``for``, with its conditions.
            items: The items.
            step: Makes one iteration, given its number.
            visit: Makes one iteration of an item.
            plain: Whether each item gives one, without conditions and other ``for``.
        """
        ...

    def many(self, source: Value, content: Many | tuple[Value, ...]) -> Many:
        """Return items of which only the run knows the number, or that are too many to follow.

        Args:
            source: The tensor or range that has them; None for a list's content.
            content: The items, or one that stands for all of them; a number, where they are the
                elements of a tensor of one axis as numbers of Python.
        """
        ...

    # Operations.

    def interpret(self, node: ast.expr | ast.stmt) -> Value:
        """Return the value of an expression, or run a statement; else Python's own meaning."""
        ...

    def call(
        self, function: Value, arguments: Sequence[Value], keywords: Mapping[str, Value]
    ) -> Value:
        """Call any value of the program; else Python's own meaning."""
        ...

    def operate(self, kind: Operation, *operands: Value) -> Value:
        """Return an operator applied to its operands; else Python's own meaning.

        Arithmetic and comparisons go by their class (``ast.Add``, ``ast.USub``, ``ast.Is``);
        ``ast.Subscript`` is ``value[index]``, and ``ast.Store`` sets an item of a list, given the
        list, the index and the value.
        """
        ...

    def bind(self, owner: Value, name: str, value: Value) -> Value:
        """Return a value as it is bound to a name, or to an attribute of ``owner``."""
        ...


class Plain:
    """Operations with Python's own meaning: a part of domains that add nothing to it.

    Args:
        core: The interpreter.
    """

    annotated = True

    def __init__(self, core: Interpreter):
        self.core = core

    def rest(
        self, node: ast.For, items: Sequence[Value], done: int, steps: int, breaks: list[Exit]
    ) -> bool:
        """Leave known items to be run one by one."""
        del node, items, done, steps, breaks
        return False

    def interpret(self, node: ast.expr | ast.stmt) -> Value:
        """Return the value of an expression, or run a statement."""
        return self.core.visit(node)

    def call(
        self, function: Value, arguments: Sequence[Value], keywords: Mapping[str, Value]
    ) -> Value:
        """Call any value of the program."""
        return self.core.apply(function, arguments, keywords)

    def operate(self, kind: Operation, *operands: Value) -> Value:
        """Return an operator applied to its operands."""
        return self.core.compute(kind, *operands)

    def bind(self, owner: Value, name: str, value: Value) -> Value:
        """Return a value as it is bound to a name, or to an attribute of ``owner``."""
        del owner, name
        return value
