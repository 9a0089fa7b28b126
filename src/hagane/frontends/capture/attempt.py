"""Attempts: an interpreter that makes a graph of a call."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from hagane.frontends.capture.emitting.emitter import GraphEmitter
from hagane.frontends.capture.flow.loops import Graph
from hagane.frontends.capture.interface.state import Stateful
from hagane.frontends.python.enter.interpreter import Interpreter
from hagane.frontends.python.enter.roots import Root
from hagane.frontends.python.interpret.running import Budget
from hagane.frontends.python.interpret.tables import Tables

_SECONDS = 600.0  # of computing that an attempt may take


class Attempt:
    """The interpretation of one call into a graph.

    Args:
        tables: Gives the meaning of names of libraries.
        names: The names of the arrays that the call reads, by identity.
        state: Makes the observer of reads, given the interpreter.
    """

    def __init__(
        self, tables: Tables, names: dict[int, str], state: Callable[[Interpreter], Stateful]
    ):
        self.names = names
        self.core = Interpreter(Path.cwd(), tables, partial(Graph, names), state)
        self.core.budget = Budget(_SECONDS)
        assert isinstance(self.core.emit, GraphEmitter)
        assert isinstance(self.core.observer, Stateful)
        self.graph, self.state = self.core.emit, self.core.observer
        assert isinstance(self.core.domain, Graph)
        self.telling, self.empty = self.core.domain.telling, self.core.domain.empty
        self.loops = self.core.domain.known
        self.arguments: tuple[str, ...] = ()  # names, in the order of the signature
        self.root: Root | None = None

    def watch(self) -> None:
        """Have the program's state looked at after each statement."""
        assert isinstance(self.core.domain, Graph)
        self.core.domain.after = self.state.look


__all__ = ["Attempt"]
