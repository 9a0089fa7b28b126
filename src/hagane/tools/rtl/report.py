"""The HTML report: annotated sources, points by kind, and how coverage grew."""

from __future__ import annotations

import html
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hagane.tools.rtl.result import Result, Status

_STYLE = """
:root { color-scheme: light dark; }
body { font-family: system-ui, sans-serif; margin: 2em auto; padding: 0 1em; max-width: 80em; }
table { border-collapse: collapse; margin: 1em 0; } .table, pre { overflow-x: auto; }
td, th { padding: 0.2em 0.8em; text-align: right; border-bottom: 1px solid #8885; }
pre { line-height: 1.35; } .no { color: #888; display: inline-block; width: 4em; }
svg { border: 1px solid #8888; max-width: 100%; height: auto; }
.covered { background: #3a33; } .dead { background: #66a3; } .unknown { background: #f634; }
.note { color: #79a; font-style: italic; }
"""


def write_report(result: Result) -> str:
    """Return the report as one HTML page without outside resources."""
    parts = [
        "<!DOCTYPE html><html lang='en'><meta charset='utf-8'>",
        "<meta name='viewport' content='width=device-width'>",
        f"<title>{html.escape(result.top)}: coverage</title><style>{_STYLE}</style>",
        f"<h1>{html.escape(result.top)}</h1>",
        f"<p>{len(result.tests)} tests, {sum(map(len, result.tests))} cycles, replayed in "
        f"{html.escape(result.simulator or 'no simulator')}.</p>",
        _table(result),
        "<h2>Coverage over random rows</h2>",
        _chart(result.growth, result.random_growth),
        _assertions(result),
        _list("Unknown", [s for s in result.statuses if s.status == "unknown"]),
        _list("Dead", [s for s in result.statuses if s.status == "dead"]),
    ]
    for text in result.defects:
        parts.append(f"<p class='unknown'>Difference: {html.escape(text)}</p>")
    for file in sorted({item.file for item in result.statuses if item.file}):
        parts.append(_source(file, [item for item in result.statuses if item.file == file]))
    return "\n".join([*parts, "</html>", ""])


def _table(result: Result) -> str:
    rows = "".join(
        f"<tr><th>{kind}</th>" + "".join(f"<td>{value}</td>" for value in row.values()) + "</tr>"
        for kind, row in result.counts().items()
    )
    words = (
        "",
        "total",
        "covered",
        "dead",
        "reachable",
        "waived",
        "unknown",
        "dead in K cycles only",
    )
    head = "<tr>" + "".join(f"<th>{word}</th>" for word in words) + "</tr>"
    return f"<div class='table'><table>{head}{rows}</table></div>"


def _chart(ours: Sequence[tuple[int, int]], chance: Sequence[tuple[int, int]]) -> str:
    """Return two step lines: goals over random rows, of this search and from reset alone."""
    width, height = 640, 240
    most_x = max([x for x, _ in (*ours, *chance)], default=1) or 1
    most_y = max([y for _, y in (*ours, *chance)], default=1) or 1

    def line(points: Sequence[tuple[int, int]], colour: str) -> str:
        text = " ".join(
            f"{x / most_x * width:.1f},{height - y / most_y * height:.1f}" for x, y in points
        )
        return f"<polyline points='{text}' fill='none' stroke='{colour}' stroke-width='2'/>"

    return (
        f"<svg width='{width}' height='{height}' viewBox='0 0 {width} {height}' role='img'>"
        f"{line(chance, '#c60')}{line(ours, '#295')}</svg>"
        f"<p>Goals met over random rows: this search (green), rows from reset alone (orange); "
        f"{most_x} rows across, {most_y} goals up, both by hagane's own evaluation.</p>"
    )


def _assertions(result: Result) -> str:
    if not result.assertions:
        return ""
    rows = "".join(
        f"<li class='{'unknown' if a.status == 'violated' else 'covered'}'>"
        f"{html.escape(a.name)}: {a.status}"
        + (f" by test {a.test} in cycle {a.cycle}" if a.status == "violated" else f" {a.why}")
        + "</li>"
        for a in result.assertions
    )
    return f"<h2>Assertions</h2><ul>{rows}</ul>"


def _list(title: str, statuses: Sequence[Status]) -> str:
    if not statuses:
        return ""
    shown = "".join(
        f"<li>{html.escape(f'{s.kind} {s.where}: {s.why}')}</li>" for s in statuses[:500]
    )
    more = f"<p>and {len(statuses) - 500} more</p>" if len(statuses) > 500 else ""
    count = len(statuses)
    return f"<details><summary>{title}: {count}</summary><ul>{shown}</ul>{more}</details>"


def _source(file: str, statuses: Sequence[Status]) -> str:
    by_line: dict[int, list[Status]] = {}
    for status in statuses:
        by_line.setdefault(status.line, []).append(status)
    lines = []
    text = Path(file).read_text(encoding="utf-8", errors="replace").splitlines()
    for number, content in enumerate(text, start=1):
        here = by_line.get(number, [])
        words = {item.status for item in here}
        style = next((word for word in ("unknown", "dead", "covered") if word in words), "")
        if words >= {"covered", "dead"} and "unknown" not in words:
            style = "covered"
        tests = sorted({item.test for item in here if item.test is not None})
        note = f" test {tests[0]}" if tests else ""
        if "dead" in words:
            note += f" {sum(item.status == 'dead' for item in here)} of {len(here)} dead"
        lines.append(
            f"<span class='no'>{number}</span><span class='{style}'>{html.escape(content)}</span>"
            + (f" <span class='note'>{note}</span>" if note else "")
        )
    return f"<h2>{html.escape(Path(file).name)}</h2><pre>" + "\n".join(lines) + "</pre>"
