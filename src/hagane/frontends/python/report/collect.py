"""Gathers findings while a program is interpreted."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import hagane
from hagane.frontends.python.report.findings import (
    FOLLOWS,
    OPEN,
    CheckError,
    Note,
    Problem,
    Report,
    TypedExpression,
)
from hagane.frontends.python.report.following import Following
from hagane.frontends.python.report.sources import source_lines
from hagane.frontends.python.values.objects import Frame
from hagane.frontends.python.values.printing import show_tensor, size_parts
from hagane.frontends.python.values.values import (
    Origin,
    Place,
    Tensor,
    Value,
)
from hagane.graph.types import dtype_name
from hagane.symbolic.path import PathCondition
from hagane.symbolic.questions import Knowledge
from hagane.symbolic.term import Term

_OWN = str(Path(hagane.__file__).parent)  # programs of hagane that stand for functions
_MAX_STEPS = 6
_MOST_CALLS = 5

_FOLLOWING = frozenset(("key", "square", "broadcast"))


class Collector:
    """Findings so far; nothing is taken in while it is muted.

    Args:
        knowledge: The facts of sizes, for printing.
    """

    def __init__(self, knowledge: Knowledge):
        self.knowledge = knowledge
        self.report = Report()
        self.muted = 0
        self.checked = ""  # the file that is checked
        self.nodes: dict[int, ast.AST] = {}  # frame key -> the node being evaluated
        self.sources: dict[str, list[str]] = {}
        self._types: dict[tuple[Place, str], TypedExpression] = {}
        self._seen: set[object] = set()
        self.following = Following()
        self._texts: dict[int, tuple[ast.AST, str]] = {}
        self.raised = 0  # errors met, muted or not
        self.doubted = 0  # reads of values that are of another type in the first iteration
        self.decisions: list[tuple[Place | None, PathCondition, Term]] = []

    def text(self, node: ast.AST) -> str:
        """Return the source of a node, on one line."""
        found = self._texts.get(id(node))
        if found is None or found[0] is not node:
            text = ast.unparse(node).replace("\n", " ")
            found = self._texts[id(node)] = (node, text)
        return found[1]

    def source_line(self, file: str, line: int) -> str:
        """Return a line of a source file, empty if it cannot be had."""
        if file not in self.sources:
            self.sources[file] = source_lines(file)
        lines = self.sources[file]
        return lines[line - 1] if 0 < line <= len(lines) else ""

    def place(self, file: str, node: ast.AST) -> Place:
        """Return the place of a node; a call of a method stands where the method's name does."""
        line = getattr(node, "lineno", 1)
        column = self._column(file, line, getattr(node, "col_offset", 0))
        end_line = getattr(node, "end_lineno", None) or line
        end = self._column(file, end_line, getattr(node, "end_col_offset", None) or 0)
        return Place(file, line, column, end_line, end)

    def _column(self, file: str, line: int, offset: int) -> int:
        text = self.source_line(file, line)
        if text.isascii():
            return offset + 1
        return len(text.encode()[:offset].decode("utf-8", "replace")) + 1

    def place_of(self, frame: Frame | None) -> Place | None:
        """Return where the innermost frame of the user's code is."""
        while frame is not None:
            node = self.nodes.get(frame.key)
            if frame.is_user and node is not None:
                return self.place(frame.file, node)
            frame = frame.caller
        return None

    def within(self, frame: Frame | None) -> Place | None:
        """Return where the innermost frame is, if it is one of a library."""
        while frame is not None and not frame.is_user:
            node = self.nodes.get(frame.key)
            if node is not None and not frame.file.startswith(_OWN):
                return self.place(frame.file, node)
            frame = frame.caller
        return None

    def calls_to(self, frame: Frame | None) -> list[Place]:
        """Return the calls of functions by functions that led to the innermost frame of the user's.

        The innermost comes first.
        """
        while frame is not None and not frame.is_user:
            frame = frame.caller
        found = []
        while frame is not None and frame.caller is not None and frame.caller.function is not None:
            if frame.call is not None:
                found.append(frame.call)
            frame = frame.caller
        return found

    def type(self, frame: Frame, node: ast.expr, value: Value, text: str) -> None:
        """Record the type of an expression of the user's code."""
        if self.muted:
            return
        place = self.place(frame.file, node)
        if (place, text) in self._types:
            return
        dtype = shape = None
        if isinstance(value, Tensor):
            dtype = dtype_name(value.dtype)
            if value.shape is not None:
                shape = tuple(size_parts(dim, self.knowledge) for dim in value.shape)
        found = TypedExpression(place, self.text(node), text, dtype, shape)
        self._types[place, text] = found
        self.report.types.append(found)

    def error(self, error: CheckError, frame: Frame, node: ast.AST, condition: str) -> None:
        """Record an error at ``node``."""
        self.raised += 1
        if self.muted or error.code == FOLLOWS:
            return
        place = error.first or self._error_place(frame.file, node)
        if error.code == OPEN or error.code == "capture" or self._of_library(error, frame):
            remedy = error.remedy if error.code == "capture" else ""
            whole = f"{error.message}; {remedy}" if remedy else error.message
            self.open_question(place, whole, error.within)
            return
        key = (place.line, place.column, error.code)
        is_met = self.following.follows(error, place)
        if key in self._seen or (error.code in _FOLLOWING and self._follows(error.code)):
            return
        self._seen.add(key)
        # A layer that fits no input is one mistake, wherever it is called, under whatever name.
        expected = error.message.rpartition(", got")[0].rpartition(": ")[2]
        told = (error.layer, error.code, expected)
        is_told = error.layer is not None and told[2] != "" and told in self._seen
        self._seen.add(told)
        if is_met or is_told:
            return
        self.report.errors.append(
            Problem(
                place,
                error.code,
                error.message,
                self.source_line(place.file, place.line),
                tuple(self._steps(error.tensors)),
                error.remedy,
                self._shown(error.counterexample, condition),
                condition,
                tuple(_calls(frame))[:_MOST_CALLS],
                within=error.within,
            )
        )

    def _of_library(self, error: CheckError, frame: Frame) -> bool:
        """Whether an error comes of what is not known here of the code of an installed package.

        A name or attribute that a package's own code lacks is none of the program's mistakes.
        """
        is_installed = "site-packages" in frame.file and frame.file != self.checked
        return is_installed and error.code in ("attribute", "name", "import")

    def _follows(self, code: str) -> bool:
        """Whether an error may come of one that is reported.

        An earlier error may have kept a key from being set; columns that one layer gives meet rows
        at many places.
        """
        return any(code in ("key", found.code) for found in self.report.errors)

    def _shown(self, counterexample: dict[str, int], condition: str) -> dict[str, int]:
        """Return the sizes to tell; if a branch leads to the error, sizes that take it."""
        sizes = counterexample or (self.knowledge.example(()) if condition else {})
        return {name: value for name, value in sizes.items() if not name.startswith("?")}

    def _error_place(self, file: str, node: ast.AST) -> Place:
        whole = self.place(file, node)
        # A chain of calls over several lines: the line of the method that was called last.
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            line = node.func.end_lineno or whole.line
            if line != whole.line:
                end = self._column(file, line, node.func.end_col_offset or 0)
                return Place(file, line, end - len(node.func.attr), line, end)
        return whole

    def _steps(self, tensors: tuple[Tensor, ...]) -> list[str]:
        """Return where tensors came from: the expressions on the way, oldest first."""
        chain: dict[Place, str] = {}
        for tensor in tensors:
            own: list[tuple[Place, str]] = []
            current: Tensor | None = tensor
            while current is not None and current.origin is not None and len(own) < _MAX_STEPS:
                origin = current.origin
                text = f"{origin.text}: {show_tensor(current, self.knowledge)}"
                own.append((origin.place, text))
                current = _main_source(origin)
            for place, text in reversed(own):
                chain.setdefault(place, f"{place.file}:{place.line}: {text}")
        return list(chain.values())[-2 * _MAX_STEPS :]

    def assume(self, place: Place | None, message: str) -> None:
        """Record an assumption."""
        self._note(self.report.assumptions, place, message)

    def open_question(self, place: Place | None, message: str, within: Place | None = None) -> None:
        """Record an expression whose type could not be told."""
        self._note(self.report.unknown, place, message, within)

    def notice(self, place: Place | None, message: str) -> None:
        """Record a notice to the reader."""
        self._note(self.report.notices, place, message)

    def condition(self, text: str) -> None:
        """Record a decision that a branch depends on."""
        if not self.muted and text not in self.report.conditions:
            self.report.conditions.append(text)

    def decision(self, place: Place | None, path: PathCondition, decision: Term) -> None:
        """Record which way a branch went in the example, and the path up to it."""
        self.decisions.append((place, path, decision))

    def _note(
        self, notes: list[Note], place: Place | None, message: str, within: Place | None = None
    ) -> None:
        known = any(note.place == place and note.message == message for note in notes)
        if not self.muted and not known:
            notes.append(Note(place, message, within))


def _calls(frame: Frame | None) -> Iterator[Place]:
    """Yield the places of the calls that led to a frame, innermost first."""
    while frame is not None:
        if frame.call is not None:
            yield frame.call
        frame = frame.caller


def _main_source(origin: Origin) -> Tensor | None:
    return next((source for source in origin.sources if source.origin is not None), None)
