"""Where nodes lie: the main graph, sides of branches, bodies of loops."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

import onnx_ir as ir

from hagane.ops.builder import Nodes
from hagane.symbolic.term import Term


class Owner(Protocol):
    """The owner of a scope: a branch or a loop, which hands values of it to the scope around."""

    def export(self, value: ir.Value, scope: Scope) -> ir.Value:
        """Return the stand-in of an inner value in the scope around."""
        ...


@dataclass(eq=False)
class Scope:
    """A graph that nodes are added to.

    Attributes:
        nodes: Adds them.
        parent: The scope around.
        owner: The branch or loop that it is part of.
        condition: When it is run, given that the scope around is; None for a loop's body.
        branches: The branches that lie in it, by their conditions.
    """

    nodes: Nodes
    parent: Scope | None = None
    owner: Owner | None = None
    condition: Term | None = None
    branches: dict[Term, Branch] = field(default_factory=dict)

    @property
    def graph(self) -> ir.Graph:
        """The graph itself."""
        return self.nodes.graph

    def chain(self) -> list[Scope]:
        """Return this scope and those around it, innermost first."""
        found: list[Scope] = []
        scope: Scope | None = self
        while scope is not None:
            found.append(scope)
            scope = scope.parent
        return found

    def is_within(self, other: Scope) -> bool:
        """Whether values of another scope are seen here."""
        return other in self.chain()


def meeting_scope(left: Scope, right: Scope) -> Scope:
    """Return the innermost scope around two."""
    around = left.chain()
    return next(scope for scope in right.chain() if scope in around)


@dataclass(eq=False)
class Branch:
    """An If: two scopes of which one is run.

    Attributes:
        node: The node in the scope around.
        scope: The scope around.
        condition: When ``yes`` is run.
        since: How many values there were before it.
        output: Makes a value of the scope around, given one of the inside.
        filler: Makes a value of the kind of another one, in a scope.
    """

    node: ir.Node
    scope: Scope
    condition: Term
    since: int
    output: Callable[[ir.Value, ir.Value, ir.Value, Scope], None]
    filler: Callable[[ir.Value, Scope], ir.Value]
    same: Callable[[ir.Value, Scope], ir.Value]
    yes: Scope = field(init=False)
    no: Scope = field(init=False)
    _exported: dict[ir.Value, ir.Value] = field(default_factory=dict)

    def export(self, value: ir.Value, scope: Scope) -> ir.Value:
        """Return an output of the branch; where the other side is taken, it says nothing."""
        if value not in self._exported:
            other = self.no if scope is self.yes else self.yes
            pair = (value, self.filler(value, other))
            self._exported[value] = self.pair(*(pair if scope is self.yes else pair[::-1]))
        return self._exported[value]

    def pair(self, yes: ir.Value, no: ir.Value) -> ir.Value:
        """Return an output that is one value of each side."""
        for value, scope in ((yes, self.yes), (no, self.no)):
            # Every output of a body is made in it, and is only one of its outputs.
            scope.graph.outputs.append(self.same(value, scope))
        self.node.resize_outputs(len(self.node.outputs) + 1)
        made = self.node.outputs[-1]
        self.output(made, yes, no, self.scope)
        return made
