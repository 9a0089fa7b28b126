"""Programs of other people that subcommands run, whose errors are shown as Python shows them."""

from __future__ import annotations

import runpy
import sys
from collections.abc import Callable
from types import TracebackType
from typing import NoReturn

_RUNNERS = frozenset({__file__, "<frozen runpy>", runpy.__file__})


def run_script(path: str, explain: Callable[[Exception], None] | None = None) -> None:
    """Run a file as ``python FILE`` does; an error of it ends the process with status 1.

    Args:
        path: The file.
        explain: Adds notes to an error before it is shown.
    """
    try:
        runpy.run_path(path, run_name="__main__")
    except Exception as error:
        if explain is not None:
            explain(error)
        _end(error)


def run_module(name: str) -> None:
    """Run a module as ``python -m NAME`` does; an error of it ends the process with status 1."""
    try:
        runpy.run_module(name, run_name="__main__", alter_sys=True)
    except Exception as error:
        _end(error)


def _end(error: Exception) -> NoReturn:
    """Show an error, hagane's own included, with the lines of the program that led to it."""
    if isinstance(error, BrokenPipeError):
        raise error
    error.__traceback__ = own = _own(error.__traceback__)
    sys.excepthook(type(error), error, own)
    raise SystemExit(1) from None


def _own(trace: TracebackType | None) -> TracebackType | None:
    """Return the part of a traceback that begins with the program."""
    while trace is not None and trace.tb_frame.f_code.co_filename in _RUNNERS:
        trace = trace.tb_next
    return trace
