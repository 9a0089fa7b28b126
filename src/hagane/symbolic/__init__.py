"""Integer expressions over named dimensions, kept in a normal form."""

from hagane.symbolic.expression import (
    Dim,
    Expr,
    Number,
    ceildiv,
    definitely_different,
    definitely_equal,
    evaluate,
    floor,
    floordiv,
    maximum,
    minimum,
    mod,
    product,
    symbol,
    symbols_of,
)
from hagane.symbolic.parse import as_dim, parse_dim

__all__ = [
    "Dim",
    "Expr",
    "Number",
    "as_dim",
    "ceildiv",
    "definitely_different",
    "definitely_equal",
    "evaluate",
    "floor",
    "floordiv",
    "maximum",
    "minimum",
    "mod",
    "parse_dim",
    "product",
    "symbol",
    "symbols_of",
]
