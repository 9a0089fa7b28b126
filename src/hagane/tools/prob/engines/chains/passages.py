"""First passages of walks whose steps look alike: exact where they are rational, else bounded.

A walk has a level and one of a few phases; from phase i it steps to phase j, d levels up, with a
probability that no level changes, or ends. The probability of coming below the start is the least
solution of a system of polynomials (Neuts, Structured Stochastic Matrices of M/G/1 Type, 1989).
Newton's method from 0, rounded down, stays below that solution (Etessami and Yannakakis, Recursive
Markov Chains, Journal of the ACM, 2009, section 6); a point that the system maps below itself lies
above it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

# Phases and residues of a walk that is solved.
_MOST = 4

# Binary digits to which probabilities are rounded, and steps of Newton's method. Where the walk
# just about comes back, a step halves the distance.
_DIGITS, _STEPS = 256, 80
_CLOSE = Fraction(1, 2**200)

_ZERO, _ONE = Fraction(0), Fraction(1)
_Matrix = list[list[Fraction]]


@dataclass(frozen=True, slots=True)
class Steps:
    """The steps of a walk.

    Attributes:
        moves: Of each phase, the probabilities of (phase, levels up).
        ends: Of each phase, the probabilities of the ends.
    """

    moves: Sequence[Mapping[tuple[int, int], Fraction]]
    ends: Sequence[Mapping[int, Fraction]]


@dataclass(frozen=True, slots=True)
class Passage:
    """Where a walk goes that begins above a level, as bounds of probabilities.

    Attributes:
        below: Of each (phase, levels below 0), from 1, in which it may first come below level 0.
        ends: Of each of its ends before that.
        open: The probability that the bounds leave; 0 where all are exact.
        unending: A lower bound of the probability that neither happens.
    """

    below: Mapping[tuple[int, int], Fraction]
    ends: Mapping[int, Fraction]
    open: Fraction
    unending: Fraction


class Walk:
    """A walk, solved once for all levels at which it may begin."""

    def __init__(self, steps: Steps):
        self.down = max([1, *(-up for row in steps.moves for _, up in row)])
        self.size = len(steps.moves) * self.down
        if self.size > _MOST:
            raise ValueError(f"a walk with {self.size} phases")
        self.count = 1 + max([-1, *(end for row in steps.ends for end in row)])
        # Blocks of levels; from block to block a walk goes down by one at most.
        self.blocks: dict[int, _Matrix] = {}
        self.out = [[_ZERO] * self.count for _ in range(self.size)]
        for phase, row in enumerate(steps.moves):
            for residue in range(self.down):
                source = phase * self.down + residue
                for (target, up), share in row.items():
                    block, rest = divmod(residue + up, self.down)
                    matrix = self.blocks.setdefault(block, _zeros(self.size))
                    matrix[source][target * self.down + rest] += share
                for end, share in steps.ends[phase].items():
                    self.out[source][end] += share
        self.highest = max([0, *self.blocks])
        self.low, self.high = self._bounds()
        self.low_ends = self._ends(self.low, _ZERO)
        self.high_ends = self.low_ends if self.high is self.low else self._ends(self.high, _ONE)

    def passage(self, phase: int, level: int) -> Passage:
        """Return where the walk goes that begins in a phase, at a level from 0 up."""
        block, residue = divmod(level, self.down)
        source = phase * self.down + residue
        low, low_ends = self._from(source, block, self.low, self.low_ends)
        high, high_ends = self._from(source, block, self.high, self.high_ends)
        known = sum(low, _ZERO) + sum(low_ends, _ZERO)
        left = _ONE - known
        gap = min(left, sum(high, _ZERO) + sum(high_ends, _ZERO) - known)
        below = {
            (index // self.down, self.down - index % self.down): share
            for index, share in enumerate(low)
            if share
        }
        ends = {end: share for end, share in enumerate(low_ends) if share}
        return Passage(below, ends, gap, left - gap)

    def _from(
        self, source: int, block: int, passages: _Matrix, ends: _Matrix
    ) -> tuple[list[Fraction], list[Fraction]]:
        row = [_ONE if index == source else _ZERO for index in range(self.size)]
        ended = [_ZERO] * self.count
        for _ in range(block + 1):
            for end in range(self.count):
                ended[end] += _dot(row, [line[end] for line in ends])
            row = [_dot(row, [line[index] for line in passages]) for index in range(self.size)]
        return row, ended

    def _next(self, passages: _Matrix) -> _Matrix:
        """Return the right side of the equation of passages, by Horner's rule."""
        total = self.blocks.get(self.highest, _zeros(self.size))
        for block in range(self.highest - 1, -2, -1):
            total = _add(_times(total, passages), self.blocks.get(block, _zeros(self.size)))
        return total

    def _bounds(self) -> tuple[_Matrix, _Matrix]:
        cells = self._reached()
        low = _zeros(self.size)
        width = _ONE
        for _ in range(_STEPS):
            step = self._newton(low, cells, self._distance(low))
            if step is None:
                break
            for (row, column), amount in step.items():
                low[row][column] = _down(low[row][column] + amount)
            width = max(step.values(), default=_ZERO)
            if width < _CLOSE:
                break
        exact = self._rational(low, width, cells)
        if exact is not None:
            return exact, exact
        return low, self._above(low, cells, width)

    def _distance(self, at: _Matrix) -> _Matrix:
        after = self._next(at)
        return [
            [new - old for new, old in zip(*rows, strict=True)]
            for rows in zip(after, at, strict=True)
        ]

    def _reached(self) -> list[tuple[int, int]]:
        """Return the passages of a probability above 0."""
        found = _zeros(self.size)
        while True:
            after = [[_ONE if share else _ZERO for share in row] for row in self._next(found)]
            if after == found:
                break
            found = after
        return [
            (row, column)
            for row in range(self.size)
            for column in range(self.size)
            if found[row][column]
        ]

    def _newton(
        self, at: _Matrix, cells: Sequence[tuple[int, int]], distance: _Matrix
    ) -> dict[tuple[int, int], Fraction] | None:
        """Solve ``(I - F'(at)) x = distance``; None where there is no positive solution."""
        numbers = {cell: number for number, cell in enumerate(cells)}
        rows: _Matrix = []
        powers = [_identity(self.size)]
        for _ in range(self.highest + 1):
            powers.append(_times(powers[-1], at))
        # The derivative of A G^(k+1) in direction X is the sum of A G^l X G^(k-l).
        before: dict[int, _Matrix] = {}
        for block, matrix in self.blocks.items():
            for first in range(block + 1):
                second = block - first
                product = _times(matrix, powers[first])
                before[second] = _add(before.get(second, _zeros(self.size)), product)
        for row, column in cells:
            line = [_ZERO] * (len(cells) + 1)
            for second, matrix in before.items():
                for middle in range(self.size):
                    if matrix[row][middle]:
                        for inner in range(self.size):
                            place = numbers.get((middle, inner))
                            share = powers[second][inner][column]
                            if place is not None and share:
                                line[place] -= matrix[row][middle] * share
            line[numbers[row, column]] += 1
            line[-1] = distance[row][column]
            rows.append(line)
        solution = _solution(rows)
        if solution is None or any(value < 0 for value in solution):
            return None
        return {cell: _down(solution[number]) for cell, number in numbers.items()}

    def _rational(
        self, low: _Matrix, width: Fraction, cells: Sequence[tuple[int, int]]
    ) -> _Matrix | None:
        """Return the exact solution where its numbers are short fractions."""
        slack = max(width * 4, _CLOSE)
        near = [
            [_simplest(share - slack, share + slack) if share else share for share in row]
            for row in low
        ]
        if self._next(near) != near:
            return None
        # A solution at which the system contracts is the least. So is that of one convex polynomial
        # which crosses the diagonal from above, or touches it.
        if self.size == 1:
            base = near[0][0]
            slope = sum(
                (
                    (block + 1) * matrix[0][0] * base**block
                    for block, matrix in self.blocks.items()
                    if block >= 0
                ),
                _ZERO,
            )
            return near if slope <= 1 else None
        return near if self._newton(near, cells, _ones(self.size, cells)) is not None else None

    def _above(self, low: _Matrix, cells: Sequence[tuple[int, int]], width: Fraction) -> _Matrix:
        """Return an upper bound: a point beside the lower one that the system maps below itself."""
        slope = self._newton(low, cells, _ones(self.size, cells))
        if slope is not None:
            size = max(width, _CLOSE) * 4
            for _ in range(40):
                high = [line[:] for line in low]
                for (row, column), amount in slope.items():
                    high[row][column] += _up(size * amount)
                if all(
                    new <= old
                    for news, olds in zip(self._next(high), high, strict=True)
                    for new, old in zip(news, olds, strict=True)
                ):
                    return self._capped(high, low, cells)
                size *= 4
        return self._capped(_ones(self.size, cells), low, cells)

    def _capped(self, high: _Matrix, low: _Matrix, cells: Sequence[tuple[int, int]]) -> _Matrix:
        """Return upper bounds that are no more than what the others of a row leave."""
        found = _zeros(self.size)
        for row, column in cells:
            found[row][column] = min(high[row][column], _ONE - sum(low[row]) + low[row][column])
        return found

    def _ends(self, passages: _Matrix, otherwise: Fraction) -> _Matrix:
        """Return the probabilities of the ends above a level, given those of passages below it.

        Any solution that is not negative is at least the least one.
        """
        if not self.count:
            return [[] for _ in range(self.size)]
        # A walk that goes up by k comes back to the level through each number of blocks below k.
        inner = _zeros(self.size)
        power = _identity(self.size)
        sums = [power]
        for _ in range(self.highest):
            power = _times(power, passages)
            sums.append(_add(sums[-1], power))
        for block, matrix in self.blocks.items():
            if block >= 0:
                inner = _add(inner, _times(matrix, sums[block]))
        columns = []
        for end in range(self.count):
            rows = [
                [
                    (_ONE if row == column else _ZERO) - inner[row][column]
                    for column in range(self.size)
                ]
                + [self.out[row][end]]
                for row in range(self.size)
            ]
            solution = _solution(rows)
            if solution is None or any(value < 0 for value in solution):
                solution = [otherwise] * self.size
            columns.append(solution)
        return [[column[row] for column in columns] for row in range(self.size)]


def _zeros(size: int) -> _Matrix:
    return [[_ZERO] * size for _ in range(size)]


def _identity(size: int) -> _Matrix:
    return [[_ONE if row == column else _ZERO for column in range(size)] for row in range(size)]


def _ones(size: int, cells: Sequence[tuple[int, int]]) -> _Matrix:
    found = _zeros(size)
    for row, column in cells:
        found[row][column] = _ONE
    return found


def _dot(left: Sequence[Fraction], right: Sequence[Fraction]) -> Fraction:
    return sum((a * b for a, b in zip(left, right, strict=True) if a and b), _ZERO)


def _times(left: _Matrix, right: _Matrix) -> _Matrix:
    columns = list(zip(*right, strict=True))
    return [[_dot(row, column) for column in columns] for row in left]


def _add(left: _Matrix, right: _Matrix) -> _Matrix:
    return [[a + b for a, b in zip(*rows, strict=True)] for rows in zip(left, right, strict=True)]


def _down(value: Fraction) -> Fraction:
    """Return a number rounded towards 0."""
    if value.denominator.bit_length() <= _DIGITS:
        return value
    return Fraction((value.numerator << _DIGITS) // value.denominator, 1 << _DIGITS)


def _up(value: Fraction) -> Fraction:
    return _down(value) + Fraction(1, 1 << _DIGITS)


def _solution(rows: _Matrix) -> list[Fraction] | None:
    """Solve linear equations, the right side last in each row; None without one solution."""
    size = len(rows)
    rows = [row[:] for row in rows]
    for index in range(size):
        pivot = next((row for row in range(index, size) if rows[row][index]), None)
        if pivot is None:
            return None
        rows[index], rows[pivot] = rows[pivot], rows[index]
        lead = rows[index]
        scale = lead[index]
        for row in range(size):
            if row != index and rows[row][index]:
                factor = rows[row][index] / scale
                other = rows[row]
                for column in range(index, size + 1):
                    if lead[column]:
                        other[column] -= factor * lead[column]
    return [row[-1] / row[index] for index, row in enumerate(rows)]


def _simplest(low: Fraction, high: Fraction) -> Fraction:
    """Return the fraction of the smallest denominator between two numbers."""
    whole = low.__floor__()
    if low == whole:
        return Fraction(whole)
    if whole + 1 <= high:
        return Fraction(whole + 1)
    return whole + 1 / _simplest(1 / (high - whole), 1 / (low - whole))
