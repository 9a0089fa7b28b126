"""Integer expressions over named dimensions, kept in a normal form."""

from hagane.symbolic.bounds import (
    absolute,
    definitely_different,
    definitely_equal,
    lower_bound,
    maximum,
    minimum,
)
from hagane.symbolic.expression import (
    Dim,
    Expr,
    Number,
    ceildiv,
    floor,
    floordiv,
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
    line_in,
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
    "line_in",
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
