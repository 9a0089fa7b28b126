"""The error of arguments whose types a function does not take, and the place of its call."""

from __future__ import annotations

import threading
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hagane.errors import TypeInferenceError

_LOCAL = threading.local()
_SOURCE = str(Path(__file__).resolve().parents[2])
_COMMAND = str(Path(_SOURCE) / "cli")


class InvalidType(TypeInferenceError):
    """Arguments whose types a function does not take.

    Attributes:
        expect: The expectation.
        actual: The value that came.
    """

    def __init__(self, expect: Any, actual: Any, msg: str | None = None):
        if msg is None:
            msg = f"Expect: {expect}\nActual: {actual}"
            function = getattr(_LOCAL, "function", None)
            if function is not None:
                label = function if isinstance(function, str) else function.label
                msg = f"\nInvalid operation is performed in: {label} (Forward)\n\n{msg}"
                place = user_place()
                msg += f"\nAt: {place}" if place else ""
        super().__init__(msg)
        self.expect = expect
        self.actual = actual

    def __reduce__(self) -> Any:
        return InvalidType, (self.expect, self.actual, self.args[0])


def user_place(stack: Sequence[traceback.FrameSummary] | None = None) -> str | None:
    """Return file and line of the innermost call from outside of hagane.

    Args:
        stack: The calls, outermost first; those under way if None.

    Calls outside of hagane's command are none of the user's.
    """
    for frame in reversed(traceback.extract_stack() if stack is None else stack):
        if frame.filename.startswith(_COMMAND):
            return None
        if not frame.filename.startswith((_SOURCE, "<")):
            return f"{frame.filename}:{frame.lineno}: {frame.line}"
    return None


@contextmanager
def get_function_check_context(function: Any) -> Iterator[None]:
    """Name the function whose arguments are checked."""
    before = getattr(_LOCAL, "function", None)
    _LOCAL.function = function
    try:
        yield
    finally:
        _LOCAL.function = before
