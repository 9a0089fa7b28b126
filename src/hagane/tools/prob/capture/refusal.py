"""Refusals of capture, told at the line of Python that asks for it."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import NoReturn

from hagane.frontends.python.interpret.emitting.emit import Emitter
from hagane.frontends.python.report.collect import Collector
from hagane.frontends.python.report.findings import CheckError
from hagane.frontends.python.values.objects import Frame
from hagane.frontends.python.values.values import Place
from hagane.symbolic import Expr
from hagane.symbolic.questions import Knowledge
from hagane.tools.prob.capture.python_function import PythonFunction, Unsupported
from hagane.tools.prob.language.source import Span

LENGTH = "the length of this list depends on draws; keep it, and count what is in it"
_FILTER = "a filter has to be known before the run; count with sum(x > 0 for x in items)"


class Refusing(Collector):
    """Ends the capture at the first error of the program; records nothing.

    Args:
        knowledge: The facts of numbers.
        found: The function that is captured.
        frame: Says where the interpreter is.
    """

    def __init__(
        self, knowledge: Knowledge, found: PythonFunction, frame: Callable[[], Frame | None]
    ):
        super().__init__(knowledge)
        self.muted = 1
        self.found = found
        self._frame = frame
        self._spans: dict[tuple[int, int, int | None, int | None], Span] = {}

    def span(self) -> Span:
        """Return where in the function's file the interpreter is."""
        frame = self._frame()
        while frame is not None:
            node = self.nodes.get(frame.key)
            if frame.file == self.found.source.name and isinstance(node, ast.expr | ast.stmt):
                key = (node.lineno, node.col_offset, node.end_lineno, node.end_col_offset)
                if key not in self._spans:
                    self._spans[key] = self.found.span(node)
                return self._spans[key]
            frame = frame.caller
        return self.found.span(self.found.tree)

    def refuse(self, message: str) -> NoReturn:
        """End the capture.

        Raises:
            Unsupported: Always.
        """
        raise Unsupported(message, self.found.source, self.span())

    def error(self, error: CheckError, frame: Frame, node: ast.AST, condition: str) -> None:
        """End the capture at an error of the program."""
        del frame, node, condition
        self.refuse(error.message)

    def open_question(self, place: Place | None, message: str, within: Place | None = None) -> None:
        """End the capture: a value is not known."""
        del place, within
        if message.startswith("recursion of"):
            fault = message.partition(":")[0]
            remedy = "give the function a type with prob.typed, so that calls of it stay calls"
            message = f"{fault}; {remedy}"
        self.refuse(LENGTH if message == "items of one of two lists" else message)


class NoTensors(Emitter):
    """Ends the capture where the interpreter would invent a number.

    Args:
        knowledge: The facts of numbers.
        collector: Ends the capture.
    """

    literal = True

    def __init__(self, knowledge: Knowledge, collector: Refusing):
        super().__init__(knowledge, lambda text: None)
        self._collector = collector

    def fresh(self, label: str = "size") -> Expr:
        """End the capture: a number is not known."""
        self._collector.refuse(_FILTER if label == "kept" else "a number that is not known")
