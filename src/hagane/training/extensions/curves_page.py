"""A page of curves that is written while training runs."""

from __future__ import annotations

import html
import math
import os
from collections.abc import Mapping, Sequence
from typing import Any

from hagane.machine.whole_files import write_whole
from hagane.training.extension import Extension

_WIDTH, _HEIGHT = 460, 240
_LEFT, _BOTTOM, _TOP = 62, 28, 10
_COLOURS = ("#0b6bcb", "#c2410c", "#15803d", "#7e22ce", "#a16207", "#be123c")
_STYLE = """
:root { color-scheme: light dark; }
body { font: 15px/1.4 system-ui, sans-serif; margin: 2em auto; max-width: 62em; padding: 0 1em; }
figure { display: inline-block; margin: 0 1em 1.5em 0; } figcaption { font-weight: 600; }
svg { background: #8881; max-width: 100%; height: auto; } .table { overflow-x: auto; }
td, th { padding: 0.15em 0.9em; text-align: right; }
text { font: 11px system-ui, sans-serif; fill: currentColor; } .key { font-weight: 400; }
@media (prefers-color-scheme: dark) { .key, polyline, circle { filter: brightness(1.6); } }
"""
# Seconds after which a browser loads the page again.
_REFRESH = 3
_SHOWN = 12  # entries of the log in the table


class CurvesPage(Extension):
    """Writes the entries of the log as an HTML page with curves; browsers follow it.

    Values of one name from several sources, as ``main/loss`` and ``validation/main/loss``, share a
    drawing.

    Args:
        log_report: The name of the extension that keeps the log.
        filename: The file in the trainer's folder.
    """

    name = "CurvesPage"
    trigger = (1, "epoch")
    priority = -50  # after the log has its entry

    def __init__(self, log_report: str = "LogReport", filename: str = "index.html"):
        self._log_report, self._filename = log_report, filename
        self._trainer: Any = None

    def initialize(self, trainer: Any) -> None:
        """Write the page of the curves so far."""
        self._trainer = trainer
        self._write(trainer, running=True)

    def __call__(self, trainer: Any) -> None:
        """Write the page."""
        self._write(trainer, running=True)

    def finalize(self) -> None:
        """Write the page for the last time; browsers need not follow it any more."""
        if self._trainer is not None:
            self._write(self._trainer, running=False)
            self._trainer = None

    def _write(self, trainer: Any, *, running: bool) -> None:
        log = trainer.get_extension(self._log_report).log
        text = page_of(log, os.path.basename(os.path.abspath(trainer.out)), running=running)
        os.makedirs(trainer.out, exist_ok=True)
        write_whole(os.path.join(trainer.out, self._filename), text)


def page_of(log: Sequence[Mapping[str, Any]], title: str, *, running: bool) -> str:
    """Return a page with the curves of a log.

    Args:
        log: Entries of numbers by name.
        title: Of the page.
        running: Whether training goes on.
    """
    reload = f'<meta http-equiv="refresh" content="{_REFRESH}">' if running else ""
    state = "running" if running else "ended"
    known = dict.fromkeys(key for entry in log for key in entry)  # as reported: losses first
    names = [key for key in known if key not in ("epoch", "iteration", "elapsed_time")]
    groups: dict[str, list[str]] = {}
    for name in names:
        groups.setdefault(name.rpartition("/")[2], []).append(name)
    drawings = "\n".join(_drawing(group, keys, log) for group, keys in groups.items())
    last = log[-1] if log else {}
    summary = (
        f"epoch {last.get('epoch', 0)}, iteration {last.get('iteration', 0)}, "
        f"{float(last.get('elapsed_time', 0.0)):.0f} s"
    )
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8">{reload}'
        '<meta name="viewport" content="width=device-width">'
        f"<title>{html.escape(title)}: {state}</title><style>{_STYLE}</style></head><body>"
        f"<h1>{html.escape(title)}</h1><p>{state}: {summary}</p>\n{drawings}\n"
        f"{_table(log, names)}</body></html>\n"
    )


def _drawing(group: str, keys: Sequence[str], log: Sequence[Mapping[str, Any]]) -> str:
    series = {
        key: [
            (float(entry["iteration"]), float(entry[key]))
            for entry in log
            if key in entry and math.isfinite(float(entry[key]))
        ]
        for key in keys
    }
    points = [point for found in series.values() for point in found]
    if not points:
        return f"<figure><figcaption>{html.escape(group)}</figcaption>no finite value</figure>"
    low, high = min(y for _, y in points), max(y for _, y in points)
    end = max(x for x, _ in points) or 1.0
    span = high - low or abs(high) or 1.0

    def place(x: float, y: float) -> str:
        across = _LEFT + (_WIDTH - _LEFT - 8) * x / end
        down = _TOP + (_HEIGHT - _TOP - _BOTTOM) * (1 - (y - low) / span)
        return f"{across:.1f},{down:.1f}"

    lines, names = [], []
    for number, (key, found) in enumerate(series.items()):
        colour = _COLOURS[number % len(_COLOURS)]
        path = " ".join(place(x, y) for x, y in found)
        lines.append(
            f'<polyline fill="none" stroke="{colour}" stroke-width="1.6" points="{path}"/>'
        )
        lines += [
            f'<circle cx="{at.split(",")[0]}" cy="{at.split(",")[1]}" r="2" fill="{colour}"/>'
            for at in path.split()
            if len(found) < 60
        ]
        names.append(f'<span class="key" style="color:{colour}">{html.escape(key)}</span>')
    floor = _HEIGHT - _BOTTOM
    axes = (
        f'<path d="M{_LEFT},{_TOP}V{floor}H{_WIDTH - 8}" fill="none" stroke="#999"/>'
        f'<text x="{_LEFT - 6}" y="{_TOP + 8}" text-anchor="end">{high:.4g}</text>'
        f'<text x="{_LEFT - 6}" y="{floor}" text-anchor="end">{low:.4g}</text>'
        f'<text x="{_LEFT}" y="{_HEIGHT - 10}">0</text>'
        f'<text x="{_WIDTH - 8}" y="{_HEIGHT - 10}" text-anchor="end">iteration {end:g}</text>'
    )
    return (
        f"<figure><figcaption>{html.escape(group)} {' '.join(names)}</figcaption>"
        f'<svg width="{_WIDTH}" height="{_HEIGHT}" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" '
        f'aria-label="{html.escape(group)}">{axes}{"".join(lines)}</svg></figure>'
    )


def _table(log: Sequence[Mapping[str, Any]], names: Sequence[str]) -> str:
    columns = ["epoch", "iteration", *names]
    head = "".join(f"<th>{html.escape(name)}</th>" for name in columns)
    rows = [
        "".join(f"<td>{_number(entry.get(name))}</td>" for name in columns)
        for entry in reversed(log[-_SHOWN:])
    ]
    body = "".join(f"<tr>{row}</tr>" for row in rows)
    return f'<div class="table"><table><tr>{head}</tr>{body}</table></div>'


def _number(value: Any) -> str:
    return "" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)
