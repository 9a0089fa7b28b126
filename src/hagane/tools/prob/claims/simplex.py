"""Linear programmes over distributions, in exact rationals.

Source: the two-phase tableau method with the smallest-subscript rule (R. G. Bland, 1977), which
cannot cycle. The programmes here have as many unknowns as a function has results, so a dense
tableau serves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True, slots=True)
class Constraint:
    """``sum(coefficients[i] * p[i]) operator 0``; the operator is <=, >= or =."""

    coefficients: tuple[Fraction, ...]
    operator: str


def maximise(gains: Sequence[Fraction], constraints: Sequence[Constraint]) -> Fraction | None:
    """Return the greatest expected gain over all distributions that meet constraints.

    Args:
        gains: The gain of each outcome.
        constraints: Conditions on the probabilities of the outcomes, beside being a distribution.

    Returns:
        The maximum, or None where no distribution meets the constraints.
    """
    count = len(gains)
    if count == 0:
        return None
    if not constraints:
        return max(gains)
    rows: list[list[Fraction]] = []
    slacks = sum(constraint.operator != "=" for constraint in constraints)
    width = count + slacks
    slack = count
    for constraint in constraints:
        row = [*constraint.coefficients, *[Fraction(0)] * slacks, Fraction(0)]
        if constraint.operator != "=":
            row[slack] = Fraction(1 if constraint.operator == "<=" else -1)
            slack += 1
        rows.append(row)
    rows.append([*[Fraction(1)] * count, *[Fraction(0)] * slacks, Fraction(1)])
    # Phase one: an artificial unknown for each row, all of which must vanish.
    artificial = len(rows)
    for index, row in enumerate(rows):
        row[-1:] = [*[Fraction(int(index == k)) for k in range(artificial)], row[-1]]
    basis = [width + index for index in range(artificial)]
    first = [Fraction(0)] * width + [Fraction(-1)] * artificial + [Fraction(0)]
    if _solve(rows, basis, first, width + artificial) != 0:
        return None
    _drop_artificial(rows, basis, width)
    rows = [[*row[:width], row[-1]] for row in rows]
    second = [*map(Fraction, gains), *[Fraction(0)] * slacks, Fraction(0)]
    return _solve(rows, basis, second, width)


def _solve(
    rows: list[list[Fraction]], basis: list[int], gains: list[Fraction], width: int
) -> Fraction:
    """Pivot until nothing gains; return the value. The region is bounded, so there is one."""
    objective = list(gains)
    for row, basic in zip(rows, basis, strict=True):
        _subtract(objective, row, objective[basic])
    while True:
        entering = next((column for column in range(width) if objective[column] > 0), None)
        if entering is None:
            return -objective[-1]
        ratios = [
            (row[-1] / row[entering], basis[index], index)
            for index, row in enumerate(rows)
            if row[entering] > 0
        ]
        if not ratios:
            raise AssertionError("distributions are bounded")
        _, _, leaving = min(ratios)
        _pivot(rows, basis, leaving, entering)
        _subtract(objective, rows[leaving], objective[entering])


def _pivot(rows: list[list[Fraction]], basis: list[int], leaving: int, entering: int) -> None:
    pivot = rows[leaving][entering]
    rows[leaving] = [entry / pivot for entry in rows[leaving]]
    for index, row in enumerate(rows):
        if index != leaving and row[entering]:
            _subtract(row, rows[leaving], row[entering])
    basis[leaving] = entering


def _subtract(row: list[Fraction], other: Sequence[Fraction], factor: Fraction) -> None:
    if factor:
        for column, entry in enumerate(other):
            if entry:
                row[column] -= factor * entry


def _drop_artificial(rows: list[list[Fraction]], basis: list[int], width: int) -> None:
    """Take artificial unknowns, which are zero by now, out of the basis."""
    for index in reversed(range(len(rows))):
        if basis[index] < width:
            continue
        entering = next((c for c in range(width) if rows[index][c]), None)
        if entering is None:  # the row says nothing that others do not
            del rows[index], basis[index]
        else:
            _pivot(rows, basis, index, entering)
