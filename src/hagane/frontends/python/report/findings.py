"""Findings of a check: errors, types of expressions, assumptions, questions left open."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hagane.errors import HaganeError
from hagane.frontends.python.values.heap import OPEN as OPEN
from hagane.frontends.python.values.values import (
    Place,
    Tensor,
    Value,
)
from hagane.symbolic.term import Term

FOLLOWS = "follows"  # the code of errors that come of others, which the reader knows of

# Codes of errors that are no exceptions of the program: limits of the interpreter or its domain.
OWN = frozenset(("capture", "order", "input", "target", "make", "source", "annotation", OPEN))


class CheckError(HaganeError, TypeError):
    """An expression of the program that cannot be right.

    Args:
        code: The kind of mistake, such as ``shape-mismatch``.
        message: The expectation, and the value that came.
        remedy: The remedy, where it is plain.
        tensors: The tensors it is about, whose origins the reader is shown.
        counterexample: Sizes with which it fails.
        claim: The condition under which it does not fail.

    Attributes:
        within: The line of a library that was being read, if it was not the user's.
        layer: The key of the layer whose call it is about, None for other calls.
        first: Where it was met, if a handler that took it raises it again.
        met: Where a handler took it.
        held: The value that the handler has of it.
        is_open: Whether it only says that a value is not known.
    """

    def __init__(
        self,
        code: str,
        message: str,
        *,
        remedy: str = "",
        tensors: tuple[Tensor, ...] = (),
        counterexample: Mapping[str, int] | None = None,
        claim: Term | None = None,
    ):
        super().__init__(message)
        self.code = code
        self.message = message
        self.remedy = remedy
        self.tensors = tensors
        self.counterexample = dict(counterexample or {})
        self.claim = claim
        self.within: Place | None = None
        self.layer: int | None = None
        self.first: Place | None = None
        self.met: Place | None = None
        self.held: Value = None
        self.is_open = False


@dataclass(frozen=True, slots=True)
class Problem:
    """An error at a place of the source.

    Attributes:
        place: Where.
        code: The kind of mistake.
        message: The expectation, and the value that came.
        text: The source line.
        steps: Where the tensors in question came from, oldest first.
        remedy: The remedy; may be empty.
        counterexample: Sizes with which it fails; empty if it always does.
        condition: The decisions on the way; empty if it is always reached.
        calls: The calls on the way, innermost first.
        inputs: Concrete types of inputs that trigger it, where the concolic search found it.
        replayed: Whether the framework itself fails with them; None if it was not tried.
        within: The line of a library, which the user's code called; None for the user's own.
    """

    place: Place
    code: str
    message: str
    text: str
    steps: tuple[str, ...] = ()
    remedy: str = ""
    counterexample: Mapping[str, int] = field(default_factory=dict)
    condition: str = ""
    calls: tuple[Place, ...] = ()
    inputs: Mapping[str, str] = field(default_factory=dict)
    replayed: bool | None = None
    within: Place | None = None


@dataclass(frozen=True, slots=True)
class TypedExpression:
    """The type of an expression.

    Attributes:
        place: Where.
        expression: Its source.
        type: The printed type.
        dtype: Element type of a tensor, else None.
        shape: (size in the example or None, formula or None) of each axis of a tensor, else None.
    """

    place: Place
    expression: str
    type: str
    dtype: str | None = None
    shape: tuple[tuple[int | None, str | None], ...] | None = None


@dataclass(frozen=True, slots=True)
class Note:
    """An assumption, a notice or an open question, with its place.

    Attributes:
        place: Where in the user's code; None if nowhere.
        message: The text.
        within: The line of a library, which the user's code called; None for the user's own.
    """

    place: Place | None
    message: str
    within: Place | None = None


@dataclass
class Report:
    """The result of a check.

    Attributes:
        errors: Places that cannot be right, in order.
        types: The type of every expression that was reached.
        assumptions: Conditions on the inputs that were not proved.
        unknown: Expressions whose type could not be told, with the reason.
        notices: Remarks on how the check went.
        returned: The printed type of the result; None if nothing could be run.
        result: The value that came back.
        tensors: The tensors in it by their path: ``logits``, ``hidden.0``; a tensor's own is empty.
        conditions: The decisions that branches depend on, as written.
        checked: Whether anything could be checked.
    """

    errors: list[Problem] = field(default_factory=list)
    types: list[TypedExpression] = field(default_factory=list)
    assumptions: list[Note] = field(default_factory=list)
    unknown: list[Note] = field(default_factory=list)
    notices: list[Note] = field(default_factory=list)
    returned: str | None = None
    result: Any = None
    tensors: Mapping[str, Tensor] = field(default_factory=dict)
    conditions: list[str] = field(default_factory=list)
    checked: bool = True

    def __str__(self) -> str:
        from hagane.frontends.python.report.render import render_text

        return "\n".join(render_text(self))

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """Print the report in IPython as the command does."""
        printer.text(str(self))

    @property
    def ok(self) -> bool:
        """Whether everything was checked and nothing is wrong."""
        return self.checked and not self.errors and not self.unknown

    @property
    def exit_code(self) -> int:
        """0 clean, 1 errors found, 2 could not check, or not everything."""
        if any(problem.code != "syntax" for problem in self.errors):
            return 1
        return 0 if self.checked and not self.unknown else 2
