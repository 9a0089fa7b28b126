"""Operators that treat each element by itself."""

from hagane.ops.elementwise import (
    activation,
    arithmetic,
    cast,
    comparison,
    extremes,
    rounding,
    selected,
    unary,
)

OPERATORS = (
    *activation.OPERATORS,
    *arithmetic.OPERATORS,
    *cast.OPERATORS,
    *comparison.OPERATORS,
    *extremes.OPERATORS,
    *rounding.OPERATORS,
    *selected.OPERATORS,
    *unary.OPERATORS,
)
