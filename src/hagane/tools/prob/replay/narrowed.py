"""Numbers drawn evenly of which a run knows the bounds that its comparisons have left.

``random.random() < 0.4`` is a draw of two outcomes, and ``int(6 * random.random())`` one of six. A
number that meets another such number, or a function, is no such draw: its run ends with
:class:`~hagane.tools.prob.draws.ContinuousDraw`, and the program is integrated.
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise
from typing import Any, NoReturn

from hagane.tools.prob.draws import deciding, leave_discrete
from hagane.tools.prob.language.floats import fraction_of

_MOST_CELLS = 10_000


class _Bounds:
    """Where a number drawn from 0 to 1 lies."""

    __slots__ = ("high", "low")

    def __init__(self) -> None:
        self.low, self.high = Fraction(0), Fraction(1)

    def below(self, limit: Fraction) -> bool:
        """Tell whether the number lies below a limit, by a draw where that is open."""
        if limit <= self.low or self.high <= limit:
            return self.high <= limit
        share = (limit - self.low) / (self.high - self.low)
        if _pick((share, 1 - share)) == 0:
            self.high = limit
            return True
        self.low = limit
        return False


def _pick(shares: tuple[Fraction, ...]) -> int:
    decider = deciding.get()
    assert decider is not None
    if len(set(shares)) == 1:
        return decider.uniform(len(shares))
    return decider.weighted(shares)


class Narrowed:
    """A number drawn evenly, times a factor, plus an offset."""

    __slots__ = ("_bounds", "_factor", "_offset")

    def __init__(
        self,
        bounds: _Bounds | None = None,
        factor: Fraction = Fraction(1),
        offset: Fraction = Fraction(0),
    ) -> None:
        self._bounds = _Bounds() if bounds is None else bounds
        self._factor, self._offset = factor, offset

    def __add__(self, other: object) -> Narrowed:
        return Narrowed(self._bounds, self._factor, self._offset + _constant(other))

    __radd__ = __add__

    def __neg__(self) -> Narrowed:
        return Narrowed(self._bounds, -self._factor, -self._offset)

    def __pos__(self) -> Narrowed:
        return self

    def __sub__(self, other: object) -> Narrowed:
        return self + -_constant(other)

    def __rsub__(self, other: object) -> Narrowed:
        return -self + other

    def __mul__(self, other: object) -> Any:
        scale = _constant(other)
        if not scale:
            return 0.0
        return Narrowed(self._bounds, self._factor * scale, self._offset * scale)

    __rmul__ = __mul__

    def __truediv__(self, other: object) -> Any:
        return self * (1 / _constant(other))

    def _is_below(self, other: object) -> bool:
        limit = (_constant(other) - self._offset) / self._factor
        below = self._bounds.below(limit)
        return below if self._factor > 0 else not below

    def __lt__(self, other: object) -> bool:
        return self._is_below(other)

    def __le__(self, other: object) -> bool:
        return self._is_below(other)

    def __gt__(self, other: object) -> bool:
        return not self._is_below(other)

    def __ge__(self, other: object) -> bool:
        return not self._is_below(other)

    def __eq__(self, other: object) -> bool:
        """Numbers that are equal with probability 0 are not."""
        return (
            isinstance(other, Narrowed)
            and self._bounds is other._bounds
            and (self._factor, self._offset) == (other._factor, other._offset)
        )

    def __hash__(self) -> int:
        return hash((self._factor, self._offset))

    def __bool__(self) -> bool:
        return True

    def __abs__(self) -> Narrowed:
        return -self if self < 0 else self

    def __floor__(self) -> int:
        factor, offset = self._factor, self._offset
        ends = sorted(factor * end + offset for end in (self._bounds.low, self._bounds.high))
        first, last = math.floor(ends[0]), math.ceil(ends[1]) - 1
        if last - first >= _MOST_CELLS:
            leave_discrete()
        cuts = [max(ends[0], Fraction(each)) for each in range(first, last + 1)] + [ends[1]]
        whole = ends[1] - ends[0]
        shares = [(high - low) / whole for low, high in pairwise(cuts)]
        cell = _pick(tuple(shares))
        inner = sorted((cut - offset) / factor for cut in cuts[cell : cell + 2])
        self._bounds.low, self._bounds.high = inner
        return first + cell

    def __trunc__(self) -> int:
        return self.__floor__() if self > 0 else -(-self).__floor__()

    def __ceil__(self) -> int:
        return self.__floor__() + 1

    def __int__(self) -> int:
        return self.__trunc__()

    def __floordiv__(self, other: object) -> int:
        return Narrowed.__floor__(self / other)

    def _leave(self, *_: object) -> NoReturn:
        leave_discrete()

    __float__ = __complex__ = __index__ = __round__ = __str__ = __repr__ = __format__ = _leave
    __rtruediv__ = __pow__ = __rpow__ = __mod__ = __rmod__ = __rfloordiv__ = __divmod__ = _leave


def _constant(other: object) -> Fraction:
    if isinstance(other, int | Fraction):
        return Fraction(other)
    if not isinstance(other, float) or not math.isfinite(other):
        leave_discrete()
    return fraction_of(other)
