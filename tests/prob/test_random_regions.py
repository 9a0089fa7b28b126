"""Random programs with continuous draws agree with many of their runs."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np
import pytest

from hagane.tools.prob import load_program, solve
from hagane.tools.prob.language.source import ImpossibleCondition, ProgramTypeError, TooLarge

from .random_regions import Region

RUNS = 100_000
FEW = 200  # runs that a condition admits: fewer say too little


def bounds(value: Any) -> tuple[float, float]:
    """Return the numbers between which a probability or mean surely lies."""
    try:
        return float(value), float(value)
    except TypeError:
        low, high = value.bounds() if callable(value.bounds) else value.bounds
        return float(low), float(high)


@pytest.mark.parametrize(
    ("first", "last"), [(0, 12), pytest.param(12, 160, marks=pytest.mark.long)]
)
def test_a_random_program_with_continuous_draws_agrees_with_its_runs(first: int, last: int) -> None:
    compared: Counter[str] = Counter()
    for seed in range(first, last):
        region = Region(seed, RUNS)
        met = len(region.values)
        what = f"seed {seed}: {region.text}"
        try:
            found = solve(load_program(region.text))
        except (TooLarge, ProgramTypeError):
            continue
        except ImpossibleCondition:
            assert met == 0, what
            continue
        if met < FEW:
            continue
        expected: list[tuple[Any, float, float]] = []
        if region.kind != "bool":
            error = float(np.std(region.values)) / math.sqrt(met)
            expected.append((found.mean, float(np.mean(region.values)), error))
        if region.kind != "real":
            shares = {v: float(np.mean(region.values == v)) for v in np.unique(region.values)}
            unexpected = [v for v in shares if v not in found.distribution]
            assert not unexpected, what
            for value, chance in found.distribution.items():
                share = shares.get(value, 0.0)
                error = math.sqrt(max(share * (1 - share), 1 / met) / met)
                expected.append((chance, share, error))
        for value, mean, error in expected:
            low, high = bounds(value)
            assert low - 5 * error - 1e-9 <= mean <= high + 5 * error + 1e-9, what
        compared[region.kind] += 1
    assert sum(compared.values()) > (last - first) // 2
    assert len(compared) == 3
