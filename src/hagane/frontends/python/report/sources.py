"""The text of source files, notebooks included."""

from __future__ import annotations

import ast
import json
import linecache
import re
import tokenize
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

NOTEBOOK = ".ipynb"
# Lines that only IPython understands: magics and commands of the shell, and their assignments.
_MAGIC = re.compile(r"(?P<indent>\s*)(?:(?P<target>[\w, ]+?)\s*=\s*)?[%!?].*|\s*[\w.]+\?{1,2}\s*")
_TIMED = re.compile(r"(\s*)%time (?=\S)")  # a statement of Python behind it
_WRAPPING = ("%%time", "%%timeit", "%%capture", "%%prun")  # magics around a cell of Python


def read_source(path: Path) -> str:
    """Return the Python text of a file; the code of a notebook is the sum of its cells.

    Raises:
        OSError: The file cannot be read.
        ValueError: It is no text, or no notebook.
    """
    if path.suffix == NOTEBOOK:
        return Notebook.parse(path.read_text(encoding="utf-8-sig")).text
    try:
        with tokenize.open(path) as file:  # in the encoding that it declares
            return file.read()
    except SyntaxError as error:  # of an encoding that there is not
        raise ValueError(error.msg) from None


def lines_of(text: str) -> list[str]:
    """Return the lines of a source as Python counts them: a form feed does not end one."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return lines if lines[-1] else lines[:-1]


def source_lines(file: str) -> list[str]:
    """Return the lines of a file, or of a cell that a notebook runs; none if they cannot be had."""
    try:
        return lines_of(read_source(Path(file)))
    except (OSError, ValueError):
        return [line.rstrip("\n") for line in linecache.getlines(file)]


@dataclass(frozen=True, slots=True)
class Notebook:
    """The code of a notebook as one Python text.

    Attributes:
        text: The code cells behind each other.
        starts: The first line of each in the text, from 1.
        numbers: The place of each among all cells of the notebook, from 1.
    """

    text: str
    starts: Sequence[int]
    numbers: Sequence[int]

    @staticmethod
    def parse(text: str) -> Notebook:
        """Return the code of a notebook's JSON (nbformat 3 or 4).

        Raises:
            ValueError: The text is no notebook.
        """
        try:
            found = json.loads(text)
            cells = found["cells"] if "cells" in found else _cells_of_sheets(found)
            code = [(i, _source_of(cell)) for i, cell in enumerate(cells, 1) if _is_python(cell)]
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"no notebook: {error!r}") from None
        parts, starts, line = [], [], 1
        for _, source in code:
            parts.append("\n".join(_python_lines(source)))
            starts.append(line)
            line += parts[-1].count("\n") + 1
        return Notebook("\n".join(parts), starts, [number for number, _ in code])

    def place(self, line: int) -> tuple[int, int]:
        """Return the cell of a line of the text, and the line in it, both from 1."""
        at = max(0, bisect_right(self.starts, line) - 1)
        return self.numbers[at], line - self.starts[at] + 1


def _cells_of_sheets(found: Any) -> list[Any]:
    return [cell for sheet in found["worksheets"] for cell in sheet["cells"]]


def _is_python(cell: Any) -> bool:
    return bool(cell["cell_type"] == "code" and cell.get("language", "python") == "python")


def _source_of(cell: Any) -> str:
    source = cell["source"] if "source" in cell else cell["input"]
    return source if isinstance(source, str) else "".join(source)


def _python_lines(source: str) -> list[str]:
    """Return the lines of a cell with everything that is not Python put aside."""
    lines = lines_of(source)
    first = next((i for i, line in enumerate(lines) if line.strip()), 0)
    if lines and lines[first].startswith("%%"):
        wraps = lines[first].split()[0] in _WRAPPING
        lines = ["", *(line if wraps else "" for line in lines[first + 1 :])]
        lines = [""] * first + lines
    for _ in range(len(lines)):
        wrong = _wrong_line(lines)
        if wrong is None or lines[wrong] == (python := _without_magic(lines[wrong])):
            break
        lines[wrong] = python
    return lines


def _wrong_line(lines: Sequence[str]) -> int | None:
    """Return the index of the line where a cell stops being Python, if there is one."""
    try:
        ast.parse("\n".join(lines))
    except SyntaxError as error:
        return min(max(1, error.lineno or 1), len(lines)) - 1
    except (ValueError, RecursionError):
        return None
    return None


def _without_magic(line: str) -> str:
    if timed := _TIMED.match(line):
        return f"{timed[1]}if 1: {line[timed.end() :]}"  # as wide as the magic
    match = _MAGIC.fullmatch(line)
    if match is None:
        return line
    if match["target"]:
        return f"{match['indent']}{match['target']} = input()"  # of which nothing is known
    return f"{match['indent'] or ''}pass"
