"""Numbers from 0 up in fixed point, rounded down: lower bounds, much faster than fractions."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

_DIGITS = 320  # binary, behind the point
_ONE = 1 << _DIGITS


class Short:
    """A number from 0 up; sums, products and ``1 / (1 - x)`` are rounded down."""

    __slots__ = ("units",)

    def __init__(self, units: int):
        self.units = units

    @classmethod
    def of(cls, value: Fraction) -> Short:
        """Return a number, rounded down."""
        return cls((value.numerator << _DIGITS) // value.denominator)

    def exactly(self) -> Fraction:
        """Return the fraction that this is."""
        return Fraction(self.units, _ONE)

    def __bool__(self) -> bool:
        return self.units != 0

    def __add__(self, other: Any) -> Short:
        return Short(self.units + _units(other))

    __radd__ = __add__

    def __mul__(self, other: Any) -> Short:
        return Short(self.units * _units(other) >> _DIGITS)

    __rmul__ = __mul__

    def __rsub__(self, other: int) -> Short:
        return Short((other << _DIGITS) - self.units)

    def __rtruediv__(self, other: int) -> Short:
        return Short((other << 2 * _DIGITS) // self.units)


def _units(value: Any) -> int:
    return value.units if isinstance(value, Short) else Short.of(Fraction(value)).units
