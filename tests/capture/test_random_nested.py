"""Random programs over lists three deep return from graphs what CPython returns, or are refused."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hagane
from hagane.errors import CaptureError

from .random_nested import drawn
from .reducing import Endless, limited, reduced
from .test_random_programs import loaded

# Refusals of reads and changes for which the graph cannot tell the object, and of lists that no
# tensors hold.
_REFUSED = re.compile(
    "is read here after a change in place|is changed in place, and|a list whose length the data "
    "decide would hold|a loop runs over a list that it changes|is not known when the graph runs|"
    "items of one of two lists of different lengths|the data decide which of|takes one item"
)
_SIZES = (1, 2, 3, 5)


def results(program: Any, feeds: list[np.ndarray]) -> list[list[int] | None]:
    """Return the results of a program; None where it raises an error."""
    found: list[list[int] | None] = []
    for x in feeds:
        try:
            with limited(2):
                found.append([int(value) for value in program(x)])
        except (IndexError, ZeroDivisionError):
            found.append(None)
    return found


def fault(text: str, seed: int, folder: Path) -> str | None:
    """Compare a program and its graph; return their difference, or None if there is none.

    Programs that are refused raise ``CaptureError``, those that never end ``Endless``.
    """
    program, rng = loaded(text, str(folder)), np.random.default_rng(seed)
    feeds = [rng.integers(0, 4, (size, 2)) for size in _SIZES]
    expected = results(program, feeds)
    try:
        session = hagane.InferenceSession(hagane.capture(program, "int64[n, 2]"))
    except CaptureError as error:
        if _REFUSED.search(str(error)) or None in expected:
            raise
        return f"is refused: {error}"
    except Exception as error:
        return f"{type(error).__name__} of hagane: {error}"
    for x, wanted in zip(feeds, expected, strict=True):
        if wanted is not None:
            found = [int(value) for value in session.run(None, {"x": x})]
            if found != wanted:
                return f"{wanted} of {len(x)} rows are {found}"
    return None


def captured(seeds: range, folder: Path) -> int:
    """Return how many of the programs become graphs; fail if one has a fault."""
    count = 0
    for seed in seeds:
        try:
            text = drawn(seed)
            found = fault(text, seed, folder)
            count += 1
        except (CaptureError, Endless):
            continue
        if found is not None:

            def fails(smaller: str, kind: str = found[:20], seed: int = seed) -> bool:
                try:
                    return (fault(smaller, seed, folder) or "")[:20] == kind
                except (Exception, Endless):
                    return False

            pytest.fail(f"seed {seed}: {found}\n{reduced(text, fails)}")
    return count


def test_programs_that_are_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HAGANE_ENGINE", "reference")
    assert captured(range(12), tmp_path) >= 8


@pytest.mark.long
@pytest.mark.parametrize("start", range(12, 512, 20))
def test_many_programs_that_are_drawn(
    start: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HAGANE_ENGINE", "reference")
    assert captured(range(start, start + 20), tmp_path) >= 10
