"""Random programs over lists of lists return from graphs what CPython returns, or are refused."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hagane
from hagane.errors import CaptureError

from .random_tables import drawn

# What may be refused: reads and changes of which the graph cannot tell the object.
_REFUSED = re.compile(
    "is read here after a change in place|is changed in place, and|a list whose length the data "
    "decide would hold|a loop runs over a list that it changes|is not known when the graph runs"
)
_SIZES = (1, 2, 3, 5)


def loaded(seed: int, folder: Path) -> Any:
    path = folder / f"tables_{seed}.py"
    path.write_text(drawn(seed), encoding="utf-8")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.program


def results(program: Any, feeds: list[np.ndarray]) -> list[list[int] | None]:
    """Return the results of a program; None where it raises an error."""
    found: list[list[int] | None] = []
    for x in feeds:
        try:
            found.append([int(value) for value in program(x)])
        except (IndexError, ZeroDivisionError):
            found.append(None)
    return found


def is_right(seed: int, folder: Path) -> bool:
    """Compare a program and its graph; return whether it was captured."""
    program, rng = loaded(seed, folder), np.random.default_rng(seed)
    feeds = [rng.integers(0, 4, (size, 2)) for size in _SIZES]
    expected = results(program, feeds)
    graph = None
    try:
        graph = hagane.capture(program, "int64[n, 2]")
    except CaptureError as error:
        told = _REFUSED.search(str(error)) is not None
    else:
        told = True
    if graph is None:
        assert told or None in expected, drawn(seed)
        return False
    session = hagane.InferenceSession(graph)
    for x, wanted in zip(feeds, expected, strict=True):
        if wanted is not None:
            assert [int(value) for value in session.run(None, {"x": x})] == wanted, drawn(seed)
    return True


def test_programs_that_are_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HAGANE_ENGINE", "reference")
    captured = [is_right(seed, tmp_path) for seed in range(16)]
    assert sum(captured) >= 10, captured


@pytest.mark.long
@pytest.mark.parametrize("start", range(16, 416, 20))
def test_many_programs_that_are_drawn(
    start: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HAGANE_ENGINE", "reference")
    captured = [is_right(seed, tmp_path) for seed in range(start, start + 20)]
    assert sum(captured) >= 10, captured
