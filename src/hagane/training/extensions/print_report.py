"""The log as a table on the terminal."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from hagane.training.expected import texts
from hagane.training.extension import Extension
from hagane.training.extensions.log_report import LogReport
from hagane.training.extensions.terminal import is_terminal


class PrintReport(Extension):
    """Prints new entries of the log as lines of a table.

    Args:
        entries: The names of the columns.
        log_report: The log, or its name in the trainer.
        out: A stream, the standard output if None.
    """

    observes = True

    def __init__(
        self, entries: Sequence[str], log_report: str | LogReport = "LogReport", out: Any = None
    ):
        self._entries = texts("PrintReport: entries", entries)
        self._log_report = log_report
        self._out = sys.stdout if out is None else out
        self._widths = [max(10, len(entry)) for entry in self._entries]
        self._begun = False
        self._printed = 0

    def __call__(self, trainer: Any) -> None:
        """Print the entries that are new.

        Raises:
            TypeError: The log is something else.
        """
        if not self._begun:
            cells = zip(self._entries, self._widths, strict=True)
            self._out.write("  ".join(entry.ljust(width) for entry, width in cells) + "\n")
            self._begun = True
        report = self._log_report
        if isinstance(report, str):
            report = trainer.get_extension(report)
        elif isinstance(report, LogReport):
            report(trainer)
        else:
            raise TypeError(f"log report has a wrong type {type(report)}")
        for entry in report.log[self._printed :]:
            if is_terminal(self._out):
                self._out.write("\033[J")
            self._out.write(self._line(entry))
            if hasattr(self._out, "flush"):
                self._out.flush()
        self._printed = len(report.log)

    def _line(self, entry: dict[str, Any]) -> str:
        cells = (
            f"{entry[name]:<{width}g}  " if name in entry else " " * (width + 2)
            for name, width in zip(self._entries, self._widths, strict=True)
        )
        return "".join(cells) + "\n"

    def serialize(self, serializer: Any) -> None:
        """Read or write the log, if it is this extension's own."""
        if isinstance(self._log_report, LogReport):
            self._log_report.serialize(serializer["_log_report"])
