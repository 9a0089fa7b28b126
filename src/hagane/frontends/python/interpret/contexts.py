"""``with``: context managers of the program, of generators, and of libraries."""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Sequence

from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.interpret.tables import Tables
from hagane.frontends.python.report.findings import CheckError
from hagane.frontends.python.values.values import MISSING, Class, Host, Instance, Managed, Value


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


__all__ = ["Contexts"]
