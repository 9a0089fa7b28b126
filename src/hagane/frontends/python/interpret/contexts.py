"""``with``: context managers of the program, of generators, and of libraries.

Loops over the program's generators run in the same way: the body where the generator yields.
"""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Sequence
from functools import partial

from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.interpret.tables import Tables
from hagane.frontends.python.report.findings import CheckError
from hagane.frontends.python.values.values import (
    MISSING,
    Bound,
    Class,
    Function,
    Host,
    Instance,
    Managed,
    Value,
)


class Contexts(Core):
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
        if isinstance(manager, Instance) and isinstance(manager.cls, Class):
            enter = self.find_in_class(manager.cls, "__enter__")
            if enter is not MISSING:
                entered = self.call(enter, [manager], {})
                leaves = True
        elif isinstance(manager, Host) and isinstance(manager.object, contextlib.nullcontext):
            entered = manager.object.enter_result
        else:
            entered = self.tables.entered(self, manager)
        if item.optional_vars is not None:
            self.assign(item.optional_vars, entered)
        try:
            self._with(rest, body)
        except CheckError:
            if leaves:
                self._left(manager)
            raise
        if leaves:
            self._left(manager)

    def _left(self, manager: Value) -> None:
        """Leave a manager, also where the path ended within it."""
        dead, self.dead = self.dead, False
        if isinstance(manager, Instance) and isinstance(manager.cls, Class):
            self.call(self.attribute(manager, "__exit__"), [None, None, None], {})
        else:
            self.tables.left(self, manager)
        self.dead = self.dead or dead

    def _within(
        self,
        manager: Managed,
        item: ast.withitem,
        rest: Sequence[ast.withitem],
        body: Sequence[ast.stmt],
    ) -> None:
        """Run a generator, and the body where it yields."""
        outer, loops, ended = self.frame, self.loops, False

        def resume(value: Value) -> None:
            nonlocal ended
            inner, turns = self.frame, self.loops
            self.frame, self.loops = outer, loops
            try:
                if item.optional_vars is not None:
                    self.assign(item.optional_vars, value)
                self._with(rest, body)
            finally:
                self.frame, self.loops = inner, turns
            ended, self.dead = self.dead, False

        self.managed(manager, resume)
        self.dead = self.dead or ended

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
