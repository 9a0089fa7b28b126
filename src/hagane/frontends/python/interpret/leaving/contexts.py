"""``with``: context managers of the program, of generators, and of libraries.

Loops over the program's generators run in the same way: the body where the generator yields.
"""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Callable, Sequence
from functools import partial

from hagane.frontends.python.interpret.core import Exit
from hagane.frontends.python.interpret.leaving.exceptions import Exceptions
from hagane.frontends.python.interpret.tables import Tables
from hagane.frontends.python.report.findings import CheckError
from hagane.frontends.python.values.objects import (
    Bound,
    Class,
    Function,
    Instance,
    Managed,
    Wrapped,
)
from hagane.frontends.python.values.values import (
    MISSING,
    Host,
    Value,
)
from hagane.symbolic.path import PathCondition

_WAYS = ("return", "break", "continue")
_ANY = ast.Try([], [ast.ExceptHandler(None, None, [])], [], [])
ast.fix_missing_locations(_ANY)


class Contexts(Exceptions):
    """Runs ``with``."""

    tables: Tables

    def _do_With(self, node: ast.With) -> None:
        self._with(node.items, node.body)

    def _with(self, items: Sequence[ast.withitem], body: Sequence[ast.stmt]) -> None:
        """Run a body within the managers of some items, the first one outermost."""
        if not items:
            self.execute(body)
            return
        item, rest = items[0], items[1:]
        manager = self.settle(self.evaluate(item.context_expr))
        if isinstance(manager, Managed):
            self._within(manager, item, rest, body)
            return
        own = isinstance(manager, Instance) and isinstance(manager.cls, Class)
        entered = manager
        leaves = not own
        taken = self._taking(manager)
        if isinstance(manager, Instance) and isinstance(manager.cls, Class):
            enter = self.find_in_class(manager.cls, "__enter__")
            if enter is not MISSING:
                entered = self.call(enter, [manager], {})
                leaves = True
        elif isinstance(manager, Host) and isinstance(manager.object, contextlib.nullcontext):
            entered = manager.object.enter_result
        elif isinstance(manager, Wrapped) and manager.kind in ("suppress", "closing"):
            entered = manager.function
        else:
            entered = self.tables.entered(self, manager)
        if item.optional_vars is not None:
            self.assign(item.optional_vars, entered)
        if taken is not None:
            self._with_handler(manager, taken, partial(self._with, rest, body))
            return
        if not leaves:
            self._with(rest, body)
            return
        around = list(self.cleanups)
        self.at_leaving(partial(self._left, manager))
        try:
            self._with(rest, body)
        except CheckError:
            self.cleanups = around
            dead, self.dead = self.dead, False
            self._left(manager)
            self.dead = self.dead or dead
            raise
        self.cleanups = around
        if not self.dead:
            self._left(manager)

    def _left(self, manager: Value) -> None:
        """Leave a manager."""
        if isinstance(manager, Instance) and isinstance(manager.cls, Class):
            self.call(self.attribute(manager, "__exit__"), [None, None, None], {})
        elif isinstance(manager, Wrapped) and manager.kind == "closing":
            self.call(self.attribute(manager.function, "close"), [], {})
        elif not isinstance(manager, Wrapped):
            self.tables.left(self, manager)

    # Managers that take exceptions.

    def _taking(self, manager: Value) -> Callable[[CheckError], Value] | None:
        """Return what says whether a manager takes an exception; None if it leaves them alone."""
        if isinstance(manager, Wrapped) and manager.kind == "suppress":
            return lambda error: self.is_one_of(error, manager.arguments)
        if not isinstance(manager, Instance) or not isinstance(manager.cls, Class):
            return None
        function = self.find_in_class(manager.cls, "__exit__")
        if not isinstance(function, Function) or not _looks_at_exceptions(function.node):
            return None
        return lambda error: self.call(
            self.attribute(manager, "__exit__"), [*self.described(error), None], {}
        )

    def _with_handler(
        self, manager: Value, takes: Callable[[CheckError], Value], run: Callable[[], object]
    ) -> None:
        """Run a body whose exceptions a manager is told of, and may take."""
        before = tuple(self.cleanups)
        self.at_leaving(partial(self._left, manager))
        handling, error = self.attempted(_ANY, run)
        self.cleanups = list(before)
        if error is not None and handling.is_passed:
            raise error

        def handle(error: CheckError) -> None:
            self.caught.append(error)
            try:
                condition = self.decide(self.truth(takes(error)))
                error.first = error.met
                again = partial(self.end_by, error, error.message)
                if isinstance(condition, bool):
                    return None if condition or self.dead else again()
                self.fork(condition, lambda: None, again)
            finally:
                self.caught.pop()

        self.go_on(handling, error, handle, partial(self._left, manager))

    def _within(
        self,
        manager: Managed,
        item: ast.withitem,
        rest: Sequence[ast.withitem],
        body: Sequence[ast.stmt],
    ) -> None:
        """Run a generator, and the body where it yields.

        Paths that leave the body run the rest of the generator first, all of them at once.
        """
        outer, loops, ended = self.frame, self.loops, False
        assert outer is not None
        left: Value = MISSING

        def resume(value: Value) -> None:
            nonlocal ended, left
            inner, turns = self.frame, self.loops
            entry, exits, own = self.knowledge.path, outer.exits, list[Exit]()
            if self.emit.builds:
                outer.exits = own
            self.frame, self.loops = outer, [*loops[:-1], own] if self.emit.builds else loops
            try:
                if item.optional_vars is not None:
                    self.assign(item.optional_vars, value)
                self._with(rest, body)
            finally:
                self.frame, self.loops, outer.exits = inner, turns, exits
            if own:
                left = self._ended(own, entry)
            ended, self.dead = self.dead, False

        self.managed(manager, resume)
        self.dead = self.dead or ended
        if left is not MISSING and not self.dead:
            self._leave_as(left, outer.exits)

    def _ended(self, exits: Sequence[Exit], entry: PathCondition) -> Value:
        """Go on with all paths that left a block, and with its end; return how they did."""
        ends = []
        for each in exits:
            ways = tuple(each.kind == kind for kind in _WAYS)
            result = each.value if each.kind == "return" else MISSING
            ends.append(Exit("end", (*ways, result), each.contents, each.path))
        if not self.dead:
            ends.append(self.exit("end", (False, False, False, MISSING)))
        return self.merge(ends, entry)

    def _leave_as(self, left: Value, exits: list[Exit]) -> None:
        """Leave a block in one of the ways in which its paths did."""
        *ways, result = left
        for kind, way in zip(_WAYS, ways, strict=True):
            condition = self.decide(self.truth(way))
            if condition is False or self.dead:
                continue
            target = exits if kind == "return" else self.loops[-1]
            leave = partial(self.leave, kind, result, target)
            if condition is True:
                leave()
            else:
                self.fork(condition, leave, lambda: None)

    # Loops over generators.

    def follow_generator(self, node: ast.For) -> bool:
        """Run a loop over the call of a generator, each turn where it yields; whether it was done.

        What a turn changes, the generator sees behind its ``yield``. Loops that may leave before
        the generator ends run over all that it yields.
        """
        if self.emit.builds or node.orelse or _leaves(node.body):
            return False
        call, counted = _counted(node.iter)
        if not isinstance(call, ast.Call) or not _is_name(call.func):
            return False
        starred = any(isinstance(argument, ast.Starred) for argument in call.args)
        if starred or any(each.arg is None for each in call.keywords):
            return False
        function = self.settle(self.evaluate(call.func))
        inner = function.function if isinstance(function, Bound) else function
        if not isinstance(inner, Function) or not _yields(inner.node):
            return False
        arguments = [self.evaluate(argument) for argument in call.args]
        keywords = {str(each.arg): self.evaluate(each.value) for each in call.keywords}
        outer, loops, handlers, ended = self.frame, self.loops, self.handlers, False
        counter = self.heap.new({"count": 0})

        def resume(value: Value) -> None:
            nonlocal ended
            within = self.frame, self.loops, self.handlers
            self.frame, self.loops, self.handlers = outer, loops, handlers
            if counted:
                count = self.heap[counter]["count"]
                value = (count, value)
                self.heap[counter]["count"] = self.binary(ast.Add, count, 1)
            try:
                self.turn(partial(self.item_turn, node, value), [])
            finally:
                self.frame, self.loops, self.handlers = within
            ended, self.dead = self.dead, False

        self.managed(Managed(function, tuple(arguments), keywords), resume)
        self.dead = self.dead or ended
        return True


def _looks_at_exceptions(node: ast.AST) -> bool:
    """Whether an ``__exit__`` asks for the exception, or may say that it takes it."""
    if not isinstance(node, ast.FunctionDef):
        return True
    given = node.args
    names = {one.arg for one in (*given.posonlyargs, *given.args)[1:]}
    names |= {one.arg for one in (given.vararg, given.kwarg) if one is not None}
    for part in ast.walk(node):
        if isinstance(part, ast.Name) and part.id in names:
            return True
        value = part.value if isinstance(part, ast.Return) else None
        if value is not None and not (isinstance(value, ast.Constant) and not value.value):
            return True
    return False


def _counted(node: ast.expr) -> tuple[ast.expr, bool]:
    """Return what a loop runs over, and whether ``enumerate`` counts its items from 0."""
    match node:
        case ast.Call(func=ast.Name(id="enumerate"), args=[inner], keywords=[]):
            return inner, True
    return node, False


def _is_name(node: ast.expr) -> bool:
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name)


def _leaves(body: Sequence[ast.stmt]) -> bool:
    """Whether a loop's body may leave the loop, or yields itself."""
    queue: list[tuple[ast.AST, bool]] = [(statement, False) for statement in body]
    while queue:
        node, inside = queue.pop()
        if isinstance(node, ast.Return | ast.Yield | ast.YieldFrom):
            return True
        if isinstance(node, ast.Break) and not inside:
            return True
        if not isinstance(node, ast.FunctionDef | ast.Lambda | ast.ClassDef):
            inside = inside or isinstance(node, ast.For | ast.While)
            queue += [(child, inside) for child in ast.iter_child_nodes(node)]
    return False


def _yields(node: ast.AST) -> bool:
    """Whether a function is a generator that yields by itself, and reads nothing it is sent."""
    if not isinstance(node, ast.FunctionDef):
        return False
    queue: list[ast.AST] = list(node.body)
    found = False
    while queue:
        current = queue.pop()
        if isinstance(current, ast.YieldFrom):
            return False
        if isinstance(current, ast.Assign | ast.NamedExpr) and isinstance(current.value, ast.Yield):
            return False
        found = found or isinstance(current, ast.Yield)
        if not isinstance(current, ast.FunctionDef | ast.Lambda | ast.ClassDef):
            queue += ast.iter_child_nodes(current)
    return found


__all__ = ["Contexts"]
