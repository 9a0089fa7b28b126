"""Sizes of 0, in programs that ask for them."""

from __future__ import annotations

import ast
from collections.abc import Callable

from hagane.frontends.capture.emitting.emitter import GraphEmitter
from hagane.symbolic import symbol
from hagane.symbolic.questions import Knowledge
from hagane.symbolic.term import Term, variables_of

_ASKING = ast.If | ast.IfExp | ast.While | ast.For | ast.BoolOp


class Empty:
    """Decides conditions over sizes of inputs, which are 1 or more unless a program says otherwise.

    ``if len(x) == 0`` says that arrays may be empty: from there on, sizes of 0 are followed as any
    others. Where the program cannot be captured so, a graph compares those sizes with 0 in the run.

    Args:
        knowledge: The facts of sizes.
        emit: Is told of sizes that must not be 0.

    Attributes:
        follow: Whether sizes of 0 are followed.
        compare: Whether sizes that must not be 0 are compared in the run.
        admitted: Names of the sizes that may be 0, as the program says.
    """

    def __init__(self, knowledge: Knowledge, emit: GraphEmitter):
        self.knowledge, self.emit = knowledge, emit
        self.follow = self.compare = False
        self.admitted: set[str] = set()

    def decide(
        self, condition: Term, decided: Callable[[Term], bool | Term], node: ast.AST | None
    ) -> bool | Term:
        """Return a condition that a statement asks for, or its truth where sizes decide it."""
        found = decided(condition)
        if not isinstance(found, bool) or not (self.follow or self.compare):
            return found
        names = self._names(condition) if isinstance(node, _ASKING) else set()
        if not names:
            return found
        known = self.knowledge
        for name in names:
            known.lowest[name] = 0
        if isinstance(decided(condition), bool):
            known.lowest.update(dict.fromkeys(names, 1))
            return found
        self.admitted |= names
        if self.follow:
            known.forget()
            return condition
        known.lowest.update(dict.fromkeys(names, 1))
        for name in sorted(names):
            self.emit.demands[known.less(1, symbol(name), strict=False)] = f"{name} >= 1"
        return found

    def _names(self, condition: Term) -> set[str]:
        """Return the names in a condition that are sizes of inputs, taken to be 1 or more."""
        known = self.knowledge
        return {
            name
            for name in variables_of((condition,))
            if name in self.emit.bare and known.lowest.get(name) == 1
        }


__all__ = ["Empty"]
