"""A line for each twentieth of the tests, and the reasons of those that were skipped, counted."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Iterator, Sequence

import pytest

# Fewer tests than this show a dot each.
_FEWEST = 400
_STEPS = 20


class Progress:
    """Counts the reports of tests and prints lines in place of a letter for each.

    Args:
        terminal: Where pytest writes.
    """

    def __init__(self, terminal: pytest.TerminalReporter):
        self._terminal = terminal
        self._counts: Counter[str] = Counter()
        self._shown = 0
        self._start = time.monotonic()

    @property
    def _total(self) -> int:
        session = self._terminal._session
        return 0 if session is None else session.testscollected

    @pytest.hookimpl(tryfirst=True)
    def pytest_report_teststatus(
        self, report: pytest.TestReport | pytest.CollectReport
    ) -> tuple[str, str, str] | None:
        """Leave out the letters of tests that pass or are skipped."""
        if self._total < _FEWEST or report.failed or hasattr(report, "wasxfail"):
            return None
        counted = report.skipped or report.when == "call"
        return ("skipped" if report.skipped else "passed" if counted else "", "", "")

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Print a line where another twentieth is through."""
        if report.when == "call" or report.outcome != "passed":
            self._counts[report.outcome] += 1
        if self._total < _FEWEST:
            return
        done = self._counts.total()
        step = done * _STEPS // self._total
        if report.failed:
            self._terminal.write_line(f" {report.nodeid} failed")
        if step > self._shown:
            self._shown = step
            self._terminal.write_line(line(self._counts, self._total, self._seconds()))

    def _seconds(self) -> float:
        return time.monotonic() - self._start

    def pytest_terminal_summary(self) -> None:
        """Print how many tests were skipped, by reason."""
        skipped = self._terminal.stats.get("skipped", [])
        for text in summary([reason(report) for report in skipped]):
            self._terminal.write_line(text)


def line(counts: Counter[str], total: int, seconds: float) -> str:
    """Return what is through so far: share, tests, time."""
    done = counts.total()
    minutes, rest = divmod(int(seconds), 60)
    parts = [f"{counts['passed']:,} passed", f"{counts['skipped']:,} skipped"]
    parts += [f"{counts['failed']:,} failed"] if counts["failed"] else []
    return f"{done * 100 // total:4} %  {minutes:2}:{rest:02}  {', '.join(parts)}"


def reason(report: pytest.TestReport) -> str:
    """Return why a test was skipped."""
    found = report.longrepr
    text = found[2] if isinstance(found, tuple) else str(found)
    return text.removeprefix("Skipped: ")


def summary(reasons: Sequence[str]) -> Iterator[str]:
    """Yield a heading and a line for each reason, the most frequent first.

    Reasons that differ in names and numbers alone are one.
    """
    if not reasons:
        return
    groups: dict[str, Counter[str]] = {}
    for text in reasons:
        groups.setdefault(_kind(text), Counter())[text] += 1
    yield f"{len(reasons):,} tests skipped:"
    for group in sorted(groups.values(), key=Counter.total, reverse=True):
        example = max(group, key=lambda text: group[text])
        others = f" (and {len(group) - 1:,} like it)" if len(group) > 1 else ""
        yield f"{group.total():8,}  {example}{others}"


def _kind(text: str) -> str:
    """Return a reason without what differs between tests: quoted names and numbers."""
    return re.sub(r"'[^']*'|\"[^\"]*\"|`[^`]*`|\d[\d.,]*", "…", text)
