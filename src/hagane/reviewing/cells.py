"""Places in the cells of a notebook, whose code is checked as one text."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from hagane.frontends.python.report.findings import Note, Report
from hagane.frontends.python.report.sources import NOTEBOOK, Notebook
from hagane.frontends.python.values.values import Place

_CELL = re.compile(re.escape(NOTEBOOK) + r":cell \d+$")


def notebook_of(file: str) -> str:
    """Return the file of a place, without the cell."""
    return _CELL.sub(NOTEBOOK, file)


def in_cells(report: Report, file: Path) -> Report:
    """Return a report whose places in a notebook name the cell: ``train.ipynb:cell 3``, its line.

    Cells are counted from 1, those of text included. The report of another file is returned as it
    is.
    """
    if file.suffix != NOTEBOOK:
        return report
    try:
        notebook = Notebook.parse(file.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError):
        return report

    def placed(place: Place) -> Place:
        if place.file != str(file) or not notebook.starts:
            return place
        number, line = notebook.place(place.line)
        end_line = line + place.end_line - place.line
        return replace(place, file=f"{file}:cell {number}", line=line, end_line=end_line)

    def noted(notes: Iterable[Note]) -> list[Note]:
        return [n if n.place is None else replace(n, place=placed(n.place)) for n in notes]

    step = re.compile(re.escape(str(file)) + r":(\d+)")

    def stepped(match: re.Match[str]) -> str:
        place = placed(Place(str(file), int(match[1]), 1, int(match[1]), 1))
        return f"{place.file}:{place.line}"

    return replace(
        report,
        errors=[
            replace(
                p,
                place=placed(p.place),
                calls=tuple(placed(call) for call in p.calls),
                steps=tuple(step.sub(stepped, text) for text in p.steps),
            )
            for p in report.errors
        ],
        types=[replace(one, place=placed(one.place)) for one in report.types],
        assumptions=noted(report.assumptions),
        unknown=noted(report.unknown),
        notices=noted(report.notices),
    )
