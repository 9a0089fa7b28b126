"""Where conditions on parameters hold: exactly for one parameter, by subdivision for more.

The roots of all polynomials in one parameter cut its range into points and open intervals, on each
of which every condition is true or false. In more parameters the coefficients of polynomials in
Bernstein's basis bound them over a box (Garloff, 1986), and boxes are halved until they decide.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import Any

from hagane.tools.prob.claims.bernstein import Box, halves, range_over
from hagane.tools.prob.claims.conditions import Condition, Sign, both, decided, signs_of
from hagane.tools.prob.engines.run import show_decimal
from hagane.tools.prob.language.ratios import Parameters, Polynomial, Ratio, value_at

# Boxes that are looked at before an answer is given up.
_MOST_BOXES = 1_000

_PRECISE = Fraction(1, 10**20)


@dataclass(frozen=True, slots=True)
class Answer:
    """Whether a condition holds on a region: True, False, or None where that was not decided.

    Attributes:
        holds: The answer.
        where: The part of the region on which it holds, where that is known.
        witness: Values of the parameters for which it does not hold, by name.
        open: The share of the region on which nothing was decided.
    """

    holds: bool | None
    where: str = ""
    witness: str = ""
    open: Fraction = Fraction(0)


class Region:
    """The values of parameters for which formulas hold.

    Args:
        parameters: The parameters, with their ranges.
        shares: Probabilities, each from 0 to 1.
        nonzero: Functions that are not zero.
    """

    def __init__(
        self, parameters: Parameters, shares: Sequence[Ratio], nonzero: Sequence[Ratio]
    ) -> None:
        self.parameters = parameters
        limits: list[Sign] = []
        for share in shares:
            limits += [Sign(share, ">="), Sign(1 - share, ">=")]
        self.limits = tuple(dict.fromkeys(limits))
        self.nonzero = tuple(Sign(each, "!=") for each in dict.fromkeys(nonzero))
        whole: Condition = True
        for each in (*self.limits, *self.nonzero):
            whole = both(whole, each)
        self.condition = whole

    @property
    def text(self) -> str:
        """Return the region as people read it."""
        if len(self.parameters.names) == 1:
            line = _Line(self.parameters, signs_of(self.condition))
            return line.text(line.truths(self.condition))
        names, ranges = self.parameters.names, self.parameters.ranges
        told = [
            f"{low} <= {name} <= {high}" for name, (low, high) in zip(names, ranges, strict=True)
        ]
        box = tuple(ranges)
        for limit in self.limits:
            if not _surely(limit, box):
                told.append(f"{limit.formula} {limit.operator} 0")
        for factor in self._vanishing():
            told.append(f"{factor} != 0")
        return ", ".join(dict.fromkeys(told))

    def _vanishing(self) -> list[Ratio]:
        """Return the factors of the functions that may be zero somewhere in the ranges."""
        box = tuple(self.parameters.ranges)
        found: dict[Ratio, None] = {}
        for each in self.nonzero:
            for factor, power in each.formula.factors()[1]:
                low, high = range_over(factor.numerator, box)
                if power > 0 and low <= 0 <= high:
                    found[factor] = None
        return list(found)

    def decide(self, condition: Condition) -> Answer:
        """Return whether a condition holds everywhere in the region."""
        if isinstance(condition, bool):
            return Answer(condition)
        if len(self.parameters.names) > 1:
            return self._by_boxes(condition)
        line = _Line(self.parameters, [*signs_of(self.condition), *signs_of(condition)])
        inside = line.truths(self.condition)
        true = [a and b for a, b in zip(inside, line.truths(condition), strict=True)]
        if true == inside:
            return Answer(True)
        witness = next(at for at, (a, b) in enumerate(zip(inside, true, strict=True)) if a > b)
        return Answer(False, line.text(true), f"{line.name} = {line.pieces[witness].shown}")

    def _by_boxes(self, condition: Condition) -> Answer:
        start: Box = tuple(self.parameters.ranges)
        waiting = [(start, Fraction(1))]
        open_, looked = Fraction(0), 0
        positive = tuple(
            factor
            for factor in self._vanishing()
            if _surely(Sign(factor, ">="), start) or _surely(Sign(factor, "<="), start)
        )
        condition = _without(condition, positive)
        while waiting:
            box, share = waiting.pop()
            looked += 1
            if any(_known(each, box) is False for each in self.limits):
                continue
            known = _known(condition, box)
            if known is True:
                continue
            middle = tuple((low + high) / 2 for low, high in box)
            if self._is_inside(middle) and not decided(condition, _signs(middle)):
                shown = ", ".join(
                    f"{name} = {value}"
                    for name, value in zip(self.parameters.names, middle, strict=True)
                )
                return Answer(False, "", shown)
            if looked > _MOST_BOXES:
                open_ += share
            else:
                # The widest side is cut; boxes of equal width are cut in the order of the names.
                waiting[:0] = [(half, share / 2) for half in halves(box)]
        return Answer(None if open_ else True, open=open_)

    def _is_inside(self, point: Sequence[Fraction]) -> bool:
        return decided(self.condition, _signs(point))


def _without(condition: Condition, factors: Sequence[Ratio]) -> Condition:
    """Return a condition whose formulas are polynomials, without factors that are never zero."""
    if isinstance(condition, Sign):
        scale, found = condition.formula.factors()
        parameters = condition.formula.parameters
        product = parameters.constant(-1 if scale < 0 else 1)
        for factor, power in found:
            if factor not in factors:
                # Below the line a factor has the sign that it has above.
                product = product * factor ** (abs(power) if power > 0 else abs(power) % 2 or 2)
            elif power % 2 and factor.at(parameters.middle) < 0:
                product = -product
        return Sign(product, condition.operator)
    if isinstance(condition, bool):
        return condition
    left, right = _without(condition.left, factors), _without(condition.right, factors)
    return both(left, right, needs_both=condition.needs_both)


def _surely(sign: Sign, box: Box) -> bool:
    return _known(sign, box) is True


def _known(condition: Condition, box: Box) -> bool | None:
    """Return whether a condition on polynomials holds all over a box, or nowhere, if that shows."""
    if isinstance(condition, bool):
        return condition
    if isinstance(condition, Sign):
        above, below, product = _polynomials(condition.formula)
        low, high = range_over(above, box)
        low_below, high_below = range_over(below, box)
        if low_below <= 0 <= high_below:
            low, high = range_over(product, box)
        elif high_below < 0:
            low, high = -high, -low
        possible = {sign for sign in (-1, 0, 1) if _may_be(sign, low, high)}
        admitted = {sign for sign in possible if condition.admits(sign)}
        return True if admitted == possible else False if not admitted else None
    left, right = _known(condition.left, box), _known(condition.right, box)
    if condition.needs_both:
        return False if False in (left, right) else None if None in (left, right) else True
    return True if True in (left, right) else None if None in (left, right) else False


@lru_cache(256)
def _polynomials(formula: Ratio) -> tuple[Polynomial, Polynomial, Polynomial]:
    """Return numerator, denominator, and their product, which has the formula's sign."""
    bottom = formula.bottom
    return formula.numerator, formula.denominator, (formula * bottom * bottom).numerator


def _may_be(sign: int, low: Fraction, high: Fraction) -> bool:
    return low < 0 if sign < 0 else high > 0 if sign > 0 else low <= 0 <= high


def _signs(point: Sequence[Fraction]) -> Any:
    def sign(formula: Ratio) -> int:
        above = value_at(formula.numerator, point) * value_at(formula.denominator, point)
        return (above > 0) - (above < 0)

    return sign


@dataclass(frozen=True, slots=True)
class _Piece:
    """A point, or the open interval to the next one; ``sample`` lies in it.

    ``root`` is the polynomial that is zero at the point, where it is no rational number.
    """

    is_point: bool
    sample: Fraction
    shown: str
    root: Ratio | None = None


class _Line:
    """The range of one parameter, cut at the roots of formulas."""

    def __init__(self, parameters: Parameters, signs: Iterable[Sign]) -> None:
        self.name = parameters.names[0]
        self._factors: dict[Ratio, tuple[Fraction, list[tuple[Ratio, int]]]] = {}
        for sign in signs:
            self._factors[sign.formula] = sign.formula.factors()
        irreducible = {factor for _, found in self._factors.values() for factor, _ in found}
        low, high = parameters.ranges[0]
        points = [
            root for factor in irreducible for root in _roots(factor) if low <= root[0] <= high
        ]
        exact = {root[0] for root in points if root[2] is None}
        points += [(end, end, None) for end in (low, high) if end not in exact]
        points.sort(key=lambda root: root[0])
        self.pieces = [_point(points[0])]
        for before, after in pairwise(points):
            between = (before[1] + after[0]) / 2
            self.pieces += [_Piece(False, between, show_decimal(between)), _point(after)]

    def truths(self, condition: Condition) -> list[bool]:
        """Return whether a condition holds, for each piece."""

        def at(piece: _Piece) -> bool:
            def sign(formula: Ratio) -> int:
                scale, factors = self._factors[formula]
                found = 1 if scale > 0 else -1 if scale else 0
                for factor, power in factors:
                    if piece.root is not None and factor == piece.root:
                        return 0
                    value = value_at(factor.numerator, (piece.sample,))
                    if not value:
                        return 0
                    if value < 0 and power % 2:
                        found = -found
                return found

            return decided(condition, sign)

        return [at(piece) for piece in self.pieces]

    def text(self, truths: Sequence[bool]) -> str:
        """Return the pieces for which something holds as people read them."""
        runs: list[list[int]] = []
        for place, true in enumerate(truths):
            if true and runs and runs[-1][1] == place - 1:
                runs[-1][1] = place
            elif true:
                runs.append([place, place])
        return " or ".join(self._run(first, last) for first, last in runs) or "nowhere"

    def _run(self, first: int, last: int) -> str:
        pieces = self.pieces
        if first == last and pieces[first].is_point:
            return f"{self.name} = {pieces[first].shown}"
        low = pieces[first] if pieces[first].is_point else pieces[first - 1]
        high = pieces[last] if pieces[last].is_point else pieces[last + 1]
        left = "<=" if pieces[first].is_point else "<"
        right = "<=" if pieces[last].is_point else "<"
        return f"{low.shown} {left} {self.name} {right} {high.shown}"


def _point(root: tuple[Fraction, Fraction, Ratio | None]) -> _Piece:
    low, high, factor = root
    middle = (low + high) / 2
    shown = str(middle) if factor is None else f"about {show_decimal(middle)}"
    return _Piece(True, middle, shown, factor)


def _roots(factor: Ratio) -> list[tuple[Fraction, Fraction, Ratio | None]]:
    """Return an interval around each real root of an irreducible polynomial in one parameter."""
    terms = factor.numerator
    if max(powers[0] for powers in terms) == 1:
        root = -terms.get((0,), Fraction(0)) / terms[(1,)]
        return [(root, root, None)]
    polynomial = factor.element.numer.as_expr().as_poly()
    return [
        (Fraction(int(low.p), int(low.q)), Fraction(int(high.p), int(high.q)), factor)
        for (low, high), _ in polynomial.intervals(eps=_PRECISE)
    ]
