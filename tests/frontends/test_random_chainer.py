"""Reports on random programs in Chainer say what they do, at all sizes."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from math import ceil, floor
from pathlib import Path
from typing import Any, Protocol

import pytest

import hagane
from hagane.checking import Request, check_source

from . import random_chainer
from .random_chainer import SIZES, Drawn, Library

_PYTHON = os.environ.get("HAGANE_CHAINER_PYTHON", "")
_TYPE = re.compile(r"(?:Variable|ndarray)\(dtype=(\w+), shape=\((.*?),?\)\)$")
_KNOWN: dict[str, Any] = {"ceil": ceil, "floor": floor, "min": min, "max": max}


class Runs(Protocol):
    """A library in which programs are drawn and run."""

    def draw(self, seed: int) -> Drawn:
        """Return a program."""

    def run(self, drawn: Drawn, sizes: Mapping[str, int]) -> Any:
        """Return the element type and shape of its result; None if it fails."""


class Remote:
    """Chainer in a process of its own."""

    def __init__(self, process: subprocess.Popen[str]):
        self._process = process

    def draw(self, seed: int) -> Drawn:
        """Return a program."""
        text, (first, second) = self._ask(seed)
        return Drawn(text, (tuple(first), tuple(second)))

    def run(self, drawn: Drawn, sizes: Mapping[str, int]) -> Any:
        """Return the element type and shape of its result; None if it fails."""
        found = self._ask([drawn.text, drawn.shapes, dict(sizes)])
        return None if found is None else (found[0], tuple(found[1]))

    def _ask(self, question: Any) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(question) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())


@contextmanager
def chainer() -> Iterator[Remote]:
    """Give Chainer itself."""
    if not _PYTHON:
        pytest.skip(
            "HAGANE_CHAINER_PYTHON names no Python with Chainer: tests/outside/chainer_oracle.py "
            "says how to make one"
        )
    process = subprocess.Popen(
        [_PYTHON, random_chainer.__file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        yield Remote(process)
    finally:
        process.communicate()


def _holds(assumption: str, sizes: Mapping[str, int]) -> bool:
    """Whether an assumption, as it is told, is true of some sizes; not if it cannot be read."""
    text = re.sub(r" is a multiple of (\d+)", r" % \1 == 0", assumption.partition(" (")[0])
    try:
        return bool(eval(text, dict(_KNOWN), dict(sizes)))
    except (SyntaxError, NameError):
        return False


def fault(library: Runs, drawn: Drawn, folder: Path) -> str:
    """Return the contradiction between a report and the library, or nothing."""
    path = folder / "program.py"
    path.write_text(drawn.text)
    report = check_source(Request(path, "program", drawn.types()))
    if report.errors:
        (first, *_) = report.errors
        if first.code == "broadcast" or "features" in first.message or "sum_to" in first.message:
            return ""  # runs, as what nobody means
        known = {name: size for name, size in first.counterexample.items() if name in "nmhwb"}
        if any(library.run(drawn, {**sizes, **known}) is None for sizes in SIZES):
            return ""
        return f"runs with {known}: {first.message}"
    if any("failed" in note.message for note in report.notices):
        return f"{report.notices}"
    if not report.ok:
        return ""
    for sizes in map(dict, SIZES):
        if not all(_holds(note.message, sizes) for note in report.assumptions):
            continue
        result = library.run(drawn, sizes)
        if result is None:
            return f"fails at {sizes}: {report.returned}"
        told = _TYPE.search(str(report.returned))
        assert told is not None, report.returned
        if "None" in told[2]:
            continue
        shape = eval(f"({told[2]}{',' if told[2] else ''})", dict(_KNOWN), sizes)
        if (told[1], shape) != result:
            return f"{result} at {sizes}, not {report.returned}"
    return ""


def faults(library: Runs, seeds: range, folder: Path) -> list[str]:
    """Return the contradictions of some programs."""
    found = []
    for seed in seeds:
        drawn = library.draw(seed)
        text = fault(library, drawn, folder)
        if text:
            found.append(f"{seed}: {text}\n{drawn.shapes}\n{drawn.text}")
    return found


def test_reports_on_random_programs_are_right(tmp_path: Path) -> None:
    assert faults(Library(hagane), range(40), tmp_path) == []


@pytest.mark.long
def test_reports_on_many_random_programs_say_what_chainer_does(tmp_path: Path) -> None:
    with chainer() as library:
        assert faults(library, range(2000), tmp_path) == []


if __name__ == "__main__":  # python -m tests.frontends.test_random_chainer FIRST END
    import tempfile

    with chainer() as process, tempfile.TemporaryDirectory() as place:
        for one in faults(process, range(*map(int, sys.argv[1:])), Path(place)):
            print(one, flush=True)
