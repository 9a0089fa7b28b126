"""Random recursive programs get the answers of their linear equations."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import pytest

from hagane.tools.prob import load_program, solve
from hagane.tools.prob.language.ratios import Ratio
from hagane.tools.prob.language.source import ImpossibleCondition, UnboundedRecursion

from .random_chains import Chain

POINTS = (Fraction(1, 3), Fraction(7, 10), Fraction(1, 2))


@pytest.mark.parametrize(
    ("first", "last"), [(0, 25), pytest.param(25, 1500, marks=pytest.mark.long)]
)
def test_a_random_chain_has_the_solution_of_its_equations(first: int, last: int) -> None:
    kinds: Counter[str] = Counter()
    for seed in range(first, last):
        chain = Chain(seed)
        points = POINTS if chain.parameter else POINTS[:1]
        expected = [chain.solved(p) for p in points]
        try:
            found = solve(load_program(chain.text))
        except (UnboundedRecursion, ImpossibleCondition):
            assert expected == [None] * len(points), f"seed {seed}: {chain.text}"
            kinds["no end"] += 1
            continue
        for p, known in zip(points, expected, strict=True):
            assert known is not None

            def at(value: object, p: Fraction = p) -> Fraction:
                return value.at((p,)) if isinstance(value, Ratio) else Fraction(str(value))

            if chain.sums:
                assert at(found.mean) == known.mean, f"seed {seed}, p = {p}: {chain.text}"
            else:
                values = {k: at(v) for k, v in found.distribution.items()}
                assert {k: v for k, v in values.items() if v} == known.distribution, (
                    f"seed {seed}, p = {p}: {chain.text}"
                )
        kinds["sums" if chain.sums else "values"] += 1
    assert min(kinds["sums"], kinds["values"], kinds["no end"]) > (last - first) // 20
