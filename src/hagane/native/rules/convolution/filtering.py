"""Minimal filtering along one axis, F(size, taps): Winograd's algorithm by Cook and Toom.

``size`` neighbouring outputs of a filter are computed from ``size + taps - 1`` inputs with as many
multiplications, where the definition takes ``size * taps``: the inputs and the filter are taken for
polynomials, their values at some points and at infinity are multiplied, and the outputs found from
these products (Winograd, "Arithmetic Complexity of Computations", SIAM 1980; Lavin and Gray, "Fast
Algorithms for Convolutional Neural Networks", CVPR 2016).

The loss by rounding depends on the points. No power of them should be large or small, so whole
numbers are a poor choice (Barabasz et al., "Error analysis and improving the accuracy of Winograd
convolution for deep neural networks", ACM TOMS 46(4), 2020, search for others). An infinity among
the inputs leaves no number in any output of its tile.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import pairwise

from hagane.native.kernels.expression import float_text

Matrix = tuple[tuple[float, ...], ...]

# By how many inputs are read: pairs of points, beside 0 and infinity.
_PAIRS: dict[int, tuple[Fraction, ...]] = {
    4: (Fraction(1),),
    6: (Fraction(2, 3), Fraction(3, 2)),
    8: (Fraction(1, 2), Fraction(1), Fraction(2)),
}


@dataclass(frozen=True, slots=True)
class Axis:
    """The transforms of F(size, taps).

    Attributes:
        size: Outputs.
        taps: Of the filter.
        input: From inputs to points, ``(side, side)``.
        weight: From taps to points, ``(side, taps)``.
        output: From products to outputs, ``(size, side)``.
    """

    size: int
    taps: int
    input: Matrix
    weight: Matrix
    output: Matrix

    @property
    def side(self) -> int:
        """Inputs, and points."""
        return self.size + self.taps - 1


def sizes_of(taps: int) -> tuple[int, ...]:
    """Return the sizes that there are points for, with filters of more than one tap."""
    return tuple(side - taps + 1 for side in _PAIRS if side - taps + 1 in (2, 4))


@cache
def axis(size: int, taps: int) -> Axis:
    """Return the transforms of F(size, taps); those of one tap change nothing."""
    if taps == 1:
        return Axis(size, 1, ((1.0,),), ((1.0,),), ((1.0,),))
    pairs = _PAIRS[size + taps - 1]
    points = [Fraction(0), *(sign * point for point in pairs for sign in (1, -1))]
    inputs, weights = [], []
    for point in points:
        others = [other for other in points if other != point]
        scale = Fraction(1)
        for other in others:
            scale *= point - other
        inputs.append([*_polynomial(others), Fraction(0)])
        weights.append([point**k / scale for k in range(taps)])
    inputs.append(_polynomial(points))
    weights.append([Fraction(k == taps - 1) for k in range(taps)])
    outputs = [[*(p**k for p in points), Fraction(k == size - 1)] for k in range(size)]
    return Axis(size, taps, _floats(inputs), _floats(weights), _floats(outputs))


def _polynomial(roots: Sequence[Fraction]) -> list[Fraction]:
    """Return the coefficients of a product of ``x - root``, the constant first."""
    found = [Fraction(1)]
    for root in roots:
        found = [low - root * high for low, high in pairwise([Fraction(0), *found, Fraction(0)])]
    return found


def _floats(rows: Sequence[Sequence[Fraction]]) -> Matrix:
    return tuple(tuple(float(value) for value in row) for row in rows)


def transform(matrix: Matrix, names: Sequence[str], made: Sequence[str]) -> list[str]:
    """Return C statements that declare products of a matrix with vectors.

    Points come in pairs of two signs. So two rows have a part in common and one whose sign differs,
    and two columns are added or subtracted for all rows: that is done once.

    Args:
        matrix: A row for each result.
        names: The vectors.
        made: Names of the results.
    """
    columns = list(zip(*matrix, strict=True))
    lines: list[str] = []
    sums: list[str] = []
    kept: list[tuple[float, ...]] = []
    at = 0
    while at < len(columns):
        first, second = columns[at], columns[at + 1] if at + 1 < len(columns) else ()
        if len(matrix) > 1 and second and _mirrored(first, second):
            halves = (f"{made[0]}_s{at}", f"{made[0]}_d{at}")
            for half, sign, pick in ((halves[0], "+", 1), (halves[1], "-", -1)):
                part = tuple(
                    a if a == pick * b else 0.0 for a, b in zip(first, second, strict=True)
                )
                if any(part):
                    lines.append(f"vf {half} = {names[at]} {sign} {names[at + 1]};")
                    sums.append(half)
                    kept.append(part)
            at += 2
        else:
            sums.append(names[at])
            kept.append(first)
            at += 1
    rows = list(zip(*kept, strict=True))
    at = 0
    while at < len(rows):
        first, second = rows[at], rows[at + 1] if at + 1 < len(rows) else ()
        if second and _mirrored(first, second) and sum(map(bool, first)) > 2:
            same = [a if a == b else 0.0 for a, b in zip(first, second, strict=True)]
            other = [a if a != b else 0.0 for a, b in zip(first, second, strict=True)]
            even, odd = f"{made[at]}_e", f"{made[at]}_o"
            lines += [f"vf {even} = {combine(same, sums)};", f"vf {odd} = {combine(other, sums)};"]
            lines += [f"vf {made[at]} = {even} + {odd};", f"vf {made[at + 1]} = {even} - {odd};"]
            at += 2
        else:
            lines.append(f"vf {made[at]} = {combine(first, sums)};")
            at += 1
    return lines


def _mirrored(first: Sequence[float], second: Sequence[float]) -> bool:
    """Whether numbers differ in the sign of some alone, and not of all."""
    pairs = list(zip(first, second, strict=True))
    same, other = (any(a and a == sign * b for a, b in pairs) for sign in (1, -1))
    return all(abs(a) == abs(b) for a, b in pairs) and same and other


def combine(row: Sequence[float], names: Sequence[str]) -> str:
    """Return C text of a sum of multiples of vectors."""
    terms = [(factor, name) for factor, name in zip(row, names, strict=True) if factor]
    terms.sort(key=lambda term: term[0] != 1)  # the first one without a product, if there is one
    (factor, text), *rest = terms
    if factor != 1:
        text = f"{text} * {float_text(factor)}"
    for factor, name in rest:
        if abs(factor) == 1:
            text = f"({text}) {'+' if factor > 0 else '-'} {name}"
        else:
            text = f"v_fma({name}, v_set1({float_text(factor)}), {text})"
    return text
