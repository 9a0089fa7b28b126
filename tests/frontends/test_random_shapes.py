"""Reports on random programs say what PyTorch does, at all sizes."""

from __future__ import annotations

import re
from math import ceil, floor
from pathlib import Path
from typing import Any

import pytest
import torch

import hagane
from tests.capture.test_random_programs import loaded

from .random_shapes import SIZES, Drawn, program

_TENSOR = re.compile(r"torch\.Tensor\(dtype=(\w+), shape=\((.*?),?\)\)$")
_KNOWN: dict[str, Any] = {"ceil": ceil, "floor": floor, "min": min, "max": max}


def run(function: Any, drawn: Drawn, sizes: dict[str, int]) -> torch.Tensor | None:
    """Return a program's result; None if it fails."""
    try:
        found: torch.Tensor = function(*drawn.inputs(sizes))
    except (RuntimeError, IndexError, ValueError, TypeError):
        return None
    return found


def fault(seed: int, folder: Path) -> str:
    """Return the contradiction between a report and PyTorch, or nothing."""
    drawn = program(seed)
    function = loaded(drawn.text, str(folder))
    report = hagane.check(function, *drawn.types())
    if report.errors:
        (first, *_) = report.errors
        if "broadcast to" in first.message:
            return ""  # a loss of every element against others runs, and is reported all the same
        known = {name: size for name, size in first.counterexample.items() if name in "nmhwb"}
        if any(run(function, drawn, {**sizes, **known}) is None for sizes in SIZES):
            return ""
        return f"runs with {known}: {first.message}"
    if not report.ok:
        return ""
    for sizes in map(dict, SIZES):
        result = run(function, drawn, sizes)
        if result is None:
            return "" if report.assumptions else f"fails at {sizes}: {report.returned}"
        told = _TENSOR.match(str(report.returned))
        assert told is not None, report.returned
        if "None" in told[2]:
            continue
        shape = eval(f"({told[2]}{',' if told[2] else ''})", dict(_KNOWN), sizes)
        if (told[1], shape) != (str(result.dtype)[6:], tuple(result.shape)):
            return f"{result.dtype} {tuple(result.shape)} at {sizes}, not {report.returned}"
    return ""


def faults(seeds: range, folder: Path) -> list[str]:
    """Return the contradictions of some programs."""
    found = [(seed, fault(seed, folder)) for seed in seeds]
    return [f"{seed}: {text}\n{program(seed)}" for seed, text in found if text]


def test_reports_on_random_programs_are_right(tmp_path: Path) -> None:
    assert faults(range(60), tmp_path) == []


@pytest.mark.long
def test_reports_on_many_random_programs_are_right(tmp_path: Path) -> None:
    assert faults(range(60, 1500), tmp_path) == []
