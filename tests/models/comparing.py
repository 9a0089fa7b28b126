"""Traced values beside the types that the checker inferred for the same places."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from hagane.frontends.python.report.findings import Report

from .tracing import TracedValue

# (line, name) -> the inferred (shape, element type), one for each call of the code.
Inferred = dict[tuple[int, str], set[tuple[object, ...]]]


def inferred(report: Report, source: str) -> Inferred:
    """Shapes and element types of named tensors by line; None for a size that data decides.

    What a ``return`` gives back is called ``return``, as in a trace.
    """
    found: Inferred = {}
    places: dict[tuple[int, int], set[tuple[object, ...]]] = {}
    for item in report.types:
        if item.shape is not None:
            values = (tuple(value for value, _ in item.shape), item.dtype)
            found.setdefault((item.place.line, item.expression), set()).add(values)
            end = (item.place.end_line, item.place.end_column)
            places.setdefault((item.place.line, item.place.column), set()).add((*values, *end))
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Return) and node.value is not None:
            value = node.value
            end = (value.end_lineno, (value.end_col_offset or 0) + 1)
            for option in places.get((value.lineno, value.col_offset + 1), ()):
                if option[2:] == end:
                    found.setdefault((node.lineno, "return"), set()).add(option[:2])
    return found


def agrees(value: TracedValue, options: set[tuple[object, ...]]) -> bool:
    """Whether one of the inferred types is that of the traced value."""
    for shape, dtype in options:
        assert isinstance(shape, tuple)
        if dtype != value.dtype or len(shape) != len(value.shape):
            continue
        if all(a is None or a == b for a, b in zip(shape, value.shape, strict=True)):
            return True
    return False


def disagreements(traced: Iterable[TracedValue], report: Report, source: str) -> list[str]:
    """Traced values that the checker types otherwise, or not at all, but for items of lists."""
    types = inferred(report, source)
    wrong = []
    for value in traced:
        if "[" in value.name or "." in value.name:
            continue
        options = types.get((value.line, value.name), set())
        if not agrees(value, options):
            wrong.append(f"{value} inferred {options}")
    return wrong
