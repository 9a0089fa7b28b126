"""Findings as text in the manner of a compiler, as JSON, and as SARIF.

SARIF 2.1.0: https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import hagane
from hagane.frontends.python.report.findings import Note, Problem, Report, TypedExpression
from hagane.frontends.python.report.sources import NOTEBOOK, source_lines
from hagane.frontends.python.values.values import Place

# The meaning of each code, for readers of SARIF.
CODES = {
    "annotation": "A value that is not what an annotation promises.",
    "assertion": "An assertion of the program that fails.",
    "attribute": "An attribute that an object does not have.",
    "axis": "An axis that a tensor does not have.",
    "broadcast": "Shapes that broadcast to what nobody means.",
    "square": "A column and a row that broadcast to all pairs.",
    "call": "Arguments that a function does not take.",
    "device-mismatch": "Tensors on different devices.",
    "dtype-mismatch": "Element types that do not fit.",
    "import": "A name that cannot be imported.",
    "index": "A place beyond the end.",
    "key": "A key that a dictionary does not have.",
    "name": "A name that is not defined.",
    "raises": "An exception that the program raises itself.",
    "rank": "A number of axes that does not fit.",
    "shape-mismatch": "Shapes that do not fit.",
    "syntax": "Source that is not Python.",
    "type": "A value of the wrong type.",
    "unpack": "More or fewer values than names.",
    "value": "A value that is not allowed.",
}


_DRAWN = re.compile(r"(?<=[a-z])_\d+\b")  # the number of an open value: item_436


def render_text(report: Report, expressions: int | None = None) -> Iterator[str]:
    """Yield the lines of a report; ``expressions`` is their number if it has no types."""
    for problem in report.errors:
        yield from _problem(problem)
        yield ""
    for note in report.notices:
        yield f"{_at(note.place)}notice: {note.message}{_inside(note)}"
    for note in report.unknown:
        yield f"{_at(note.place)}unknown: {note.message}{_inside(note)}"
    for note, count in _alike(report.assumptions):
        more = f", and {count - 1} like it" if count > 1 else ""
        yield f"{_at(note.place)}assumed: {note.message}{more}"
    yield summary(report, expressions)


def _alike(notes: Sequence[Note]) -> list[tuple[Note, int]]:
    """Return one note of those that differ in the numbers of drawn values, and their count."""
    groups: dict[tuple[Place | None, str], list[Note]] = {}
    for note in notes:
        groups.setdefault((note.place, _DRAWN.sub("_", note.message)), []).append(note)
    return [(found[0], len(found)) for found in groups.values()]


def summary(report: Report, expressions: int | None = None) -> str:
    """Return the last line of a report."""
    if report.errors:
        count = len(report.errors)
        return f"{count} error{'s' if count != 1 else ''}"
    if not report.checked:
        return "could not be checked"
    rest = ""
    if report.unknown:
        rest = f"; {len(report.unknown)} expressions could not be typed"
    returned = f"; returns {report.returned}" if report.returned is not None else ""
    count = len(report.types) if expressions is None else expressions
    return f"no errors in {count} expressions{rest}{returned}"


def _at(place: Place | None) -> str:
    return "" if place is None else f"{place.file}:{place.line}:{place.column}: "


def _inside(note: Note) -> str:
    """Return the line of a library that a note is about."""
    return "" if note.within is None else f" (at {note.within.file}:{note.within.line})"


def _problem(problem: Problem) -> Iterator[str]:
    place = problem.place
    yield f"{place.file}:{place.line}:{place.column}: error: {problem.message} [{problem.code}]"
    if problem.text:
        text = problem.text.rstrip().expandtabs(1)
        number = str(place.line)
        yield f"  {number} | {text}"
        end = place.end_column if place.end_line == place.line else len(text) + 1
        width = max(1, min(end, len(text) + 1) - place.column)
        yield f"  {' ' * len(number)} | {' ' * (place.column - 1)}{'^' * width}"
    if problem.condition:
        yield f"  when {problem.condition}"
    if problem.counterexample:
        sizes = ", ".join(f"{name} = {value}" for name, value in problem.counterexample.items())
        yield f"  for instance with {sizes}"
    if problem.inputs:
        shapes = ", ".join(f"{name}: {text}" for name, text in problem.inputs.items())
        replayed = {True: ", where it fails", False: ", where it does NOT fail", None: ""}
        yield f"  triggered by {shapes}{replayed[problem.replayed]}"
    if problem.steps:
        yield "  where it came from:"
        yield from (f"    {step}" for step in problem.steps)
    if problem.within is not None:
        yield f"  in the library, at {problem.within.file}:{problem.within.line}:"
        lines = source_lines(problem.within.file)[problem.within.line - 1 :]
        yield from (f"    {line.strip()}" for line in lines[:1])
    for call in problem.calls:
        yield f"  called from {call.file}:{call.line}"
    if problem.remedy:
        yield f"  help: {problem.remedy}"


def report_json(report: Report) -> dict[str, Any]:
    """Return a report as JSON has it."""
    return {
        "errors": [_problem_json(problem) for problem in report.errors],
        "types": [_type_json(item) for item in report.types],
        "assumptions": [_note_json(note) for note in report.assumptions],
        "unknown": [_note_json(note) for note in report.unknown],
        "notices": [_note_json(note) for note in report.notices],
        "conditions": list(report.conditions),
        "returned": report.returned,
        "checked": report.checked,
    }


def _problem_json(problem: Problem) -> dict[str, Any]:
    place = problem.place
    return {
        "file": place.file,
        "line": place.line,
        "column": place.column,
        "end_line": place.end_line,
        "end_column": place.end_column,
        "code": problem.code,
        "message": problem.message,
        "remedy": problem.remedy,
        "counterexample": dict(problem.counterexample),
        "condition": problem.condition,
        "inputs": dict(problem.inputs),
        "replayed": problem.replayed,
        "steps": list(problem.steps),
        "calls": [{"file": call.file, "line": call.line} for call in problem.calls],
        "within": _within_json(problem.within),
    }


def _within_json(place: Place | None) -> dict[str, Any] | None:
    """Return the line of a library."""
    return None if place is None else {"file": place.file, "line": place.line}


def _type_json(item: TypedExpression) -> dict[str, Any]:
    place = item.place
    shape = None
    if item.shape is not None:
        shape = [{"value": value, "expression": formula} for value, formula in item.shape]
    return {
        "file": place.file,
        "line": place.line,
        "column": place.column,
        "end_line": place.end_line,
        "end_column": place.end_column,
        "expression": item.expression,
        "dtype": item.dtype,
        "shape": shape,
        "type": item.type,
    }


def _note_json(note: Note) -> dict[str, Any]:
    place = note.place
    return {
        "file": None if place is None else place.file,
        "line": None if place is None else place.line,
        "column": None if place is None else place.column,
        "message": note.message,
        "within": _within_json(note.within),
    }


def report_sarif(report: Report) -> dict[str, Any]:
    """Return a report as a SARIF log, which editors and code hosts show in place."""
    used = sorted({problem.code for problem in report.errors})
    rules = [{"id": c, "shortDescription": {"text": CODES.get(c, c)}} for c in used]
    results = [
        {
            "ruleId": problem.code,
            "ruleIndex": used.index(problem.code),
            "level": "error",
            "message": {"text": _sarif_message(problem)},
            "locations": [_location(problem.place)],
            **_related(problem),
        }
        for problem in report.errors
    ]
    driver = {
        "name": "hagane check",
        "version": hagane.__version__,
        "informationUri": "https://github.com/hagane-dev/hagane",
        "rules": rules,
    }
    return {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [
            {"tool": {"driver": driver}, "results": results, "columnKind": "unicodeCodePoints"}
        ],
    }


def _related(problem: Problem) -> dict[str, Any]:
    """Return the line of a library and the calls that belong to a finding, innermost first."""
    places = [] if problem.within is None else [(problem.within, "the line of the library")]
    places += [(call, "called from here") for call in problem.calls]
    told = [{**_location(place), "message": {"text": text}} for place, text in places]
    return {"relatedLocations": told} if told else {}


def _sarif_message(problem: Problem) -> str:
    parts = [problem.message]
    if problem.condition:
        parts.append(f"when {problem.condition}")
    if problem.counterexample:
        parts.append(", ".join(f"{n} = {v}" for n, v in problem.counterexample.items()))
    if problem.remedy:
        parts.append(f"help: {problem.remedy}")
    return "; ".join(parts)


def _location(place: Place) -> dict[str, Any]:
    name, cell, _ = place.file.partition(f"{NOTEBOOK}:cell ")
    path = Path(name + NOTEBOOK if cell else name)
    uri = path.as_uri() if path.is_absolute() else quote(path.as_posix())
    if cell:  # lines of a cell are none of the file
        return {"physicalLocation": {"artifactLocation": {"uri": uri}}}
    region = {
        "startLine": place.line,
        "startColumn": place.column,
        "endLine": place.end_line,
        "endColumn": max(place.end_column, place.column + 1),
    }
    return {"physicalLocation": {"artifactLocation": {"uri": uri}, "region": region}}


def render_types(report: Report, file: str) -> Iterator[str]:
    """Yield the source of a file, the types of its expressions under each line."""
    by_line: dict[int, list[TypedExpression]] = {}
    for item in report.types:
        if item.place.file == file and not _is_plain(item):
            by_line.setdefault(item.place.line, []).append(item)
    for number, line in enumerate(source_lines(file), 1):
        yield f"{number:5} | {line}"
        for item in by_line.get(number, ()):
            indent = " " * (item.place.column - 1)
            yield f"      | {indent}{item.expression} : {item.type}"


def _is_plain(item: TypedExpression) -> bool:
    """Whether an expression says its type itself: constants, functions, modules."""
    kinds = ("function ", "class ", "slice(")
    if item.type == "super" or item.type.endswith(item.expression):
        return True
    if item.type.replace(".", "").replace("_", "").isalnum() and item.type != "unknown":
        return "(" not in item.expression and item.type != "None"
    return (
        item.type.startswith(kinds)
        or item.expression[:1] in "'\"0123456789"
        or (item.expression in ("None", "True", "False", "self"))
    )
