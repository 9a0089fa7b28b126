"""Integer expressions over named dimensions, kept in a normal form."""

from hagane.symbolic.expression import (
    Dim,
    Expr,
    Number,
    absolute,
    ceildiv,
    definitely_different,
    definitely_equal,
    floor,
    floordiv,
    lower_bound,
    maximum,
    minimum,
    mod,
    product,
    symbol,
)
from hagane.symbolic.parse import as_dim, parse_dim
from hagane.symbolic.substitute import (
    C_FLOOR,
    c_bound,
    c_text,
    evaluate,
    number_of,
    python_text,
    symbols_of,
)
from hagane.symbolic.written import written_form

__all__ = [
    "C_FLOOR",
    "Dim",
    "Expr",
    "Number",
    "absolute",
    "as_dim",
    "c_bound",
    "c_text",
    "ceildiv",
    "definitely_different",
    "definitely_equal",
    "evaluate",
    "floor",
    "floordiv",
    "lower_bound",
    "maximum",
    "minimum",
    "mod",
    "number_of",
    "parse_dim",
    "product",
    "python_text",
    "symbol",
    "symbols_of",
    "written_form",
]
