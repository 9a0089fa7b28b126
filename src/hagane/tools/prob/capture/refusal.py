"""What cannot be captured, told at the line of Python that asks for it."""

from __future__ import annotations

import ast
from typing import NoReturn

from hagane.frontends.python.report.collect import Collector
from hagane.frontends.python.report.findings import CheckError
from hagane.frontends.python.values.values import Frame
from hagane.symbolic.questions import Knowledge
from hagane.tools.prob.python_function import PythonFunction, Unsupported
from hagane.tools.prob.source import Span


class Refusing(Collector):
    """Ends the capture at the first error of the program; records nothing.

    Args:
        knowledge: What is known of numbers.
        found: The function that is captured.
    """

    def __init__(self, knowledge: Knowledge, found: PythonFunction):
        super().__init__(knowledge)
        self.muted = 1
        self.found = found
        self._spans: dict[tuple[int, int, int | None, int | None], Span] = {}

    def span(self, frame: Frame | None) -> Span:
        """Return where in the function's file the interpreter is."""
        while frame is not None:
            node = self.nodes.get(frame.key)
            if frame.file == self.found.source.name and isinstance(node, ast.expr | ast.stmt):
                key = (node.lineno, node.col_offset, node.end_lineno, node.end_col_offset)
                if key not in self._spans:
                    self._spans[key] = self.found.span(node)
                return self._spans[key]
            frame = frame.caller
        return self.found.span(self.found.tree)

    def refuse(self, message: str, frame: Frame | None) -> NoReturn:
        """End the capture.

        Raises:
            Unsupported: Always.
        """
        raise Unsupported(message, self.found.source, self.span(frame))

    def error(self, error: CheckError, frame: Frame, node: ast.AST, condition: str) -> None:
        """End the capture at an error of the program."""
        del node, condition
        self.refuse(error.message, frame)
