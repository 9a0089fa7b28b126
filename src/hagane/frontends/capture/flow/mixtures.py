"""Numbers whose type the data decide: Python's on one path, a scalar of NumPy on another.

Python's numbers are weak beside arrays (NEP 50) and NumPy's are not, so the element type of a
result may differ between the two. Scalars of int64 and float64 compute as Python's numbers do
otherwise; of narrower ones, every sum and product may differ.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import onnx_ir as ir

from hagane.frontends.python.interpret.domain import Operation
from hagane.frontends.python.report.findings import CheckError
from hagane.frontends.python.values.values import (
    Kinds,
    Real,
    Tensor,
    Value,
    is_plain,
)
from hagane.graph.types import dtype_name

if TYPE_CHECKING:
    from hagane.frontends.python.enter.interpreter import Interpreter

NUMPY = "numpy.ndarray"
_INT64, _DOUBLE = ir.DataType.INT64, ir.DataType.DOUBLE
_WIDE = (_INT64, _DOUBLE)


def is_numpy_scalar(value: Value) -> bool:
    """Whether a value is one that NumPy's scalars have: a number, not a truth value."""
    plain = isinstance(value, Tensor) and value.kind == NUMPY and value.shape == ()
    return plain and value.dtype != ir.DataType.BOOL and value.dtype.numpy().kind in "iuf"


def mixes(dtype: ir.DataType, value: Value, also: Kinds) -> bool:
    """Whether one number can stand for a scalar of NumPy or another number.

    Args:
        dtype: The element type of the scalar.
        value: The other number; None for one that is not known.
        also: The types that the other number may have beside its own.
    """
    if dtype in _WIDE or dtype in also:
        return True
    return is_plain(value) and value is not None and _is_exact(value, dtype)


def _is_exact(value: Value, dtype: ir.DataType) -> bool:
    """Whether an element type holds a number of Python as it is."""
    if isinstance(value, float) and dtype.is_integer():
        return False
    try:
        with np.errstate(all="ignore"):
            made = np.asarray(value).astype(dtype.numpy()).item()  # a weak value would be rounded
        return bool(made == value)
    except (OverflowError, ValueError):
        return False


def kinds_of_result(kind: Operation, operands: Sequence[Value], also: Sequence[Kinds]) -> Kinds:
    """Return the types that the result of an operator may have.

    Args:
        kind: The operator.
        operands: The numbers that it takes.
        also: The types of each beside its own.
    """
    choices = [_of_python(value) | more for value, more in zip(operands, also, strict=True)]
    if len(choices) == 1:
        return choices[0]
    return frozenset(_result(kind, a, b) for a in choices[0] for b in choices[1])


def _of_python(value: Value) -> Kinds:
    return frozenset((float if isinstance(value, float | Real) else int,))


def _result(
    kind: Operation, left: ir.DataType | type, right: ir.DataType | type
) -> ir.DataType | type:
    whole = {left, right} <= {int, _INT64} and kind is not ast.Div
    if isinstance(left, ir.DataType) or isinstance(right, ir.DataType):
        return _INT64 if whole else _DOUBLE
    return int if whole else float


def refuse_narrow(
    core: Interpreter, kind: Operation, operands: Sequence[Value], also: Sequence[Kinds]
) -> None:
    """Refuse sums and products of a number that may be a scalar narrower than Python's.

    Raises:
        CheckError: One is, and the operator would round it, or wrap it, as its type does.
    """
    narrow = {t for kinds in also for t in kinds if isinstance(t, ir.DataType)} - {*_WIDE}
    if not narrow or kind in (ast.USub, ast.UAdd, ast.Is, ast.IsNot):
        return
    if issubclass(kind, ast.cmpop) and all(
        dtype in more or mixes(dtype, value, more)
        for dtype in narrow
        for value, more in zip(operands, also, strict=True)
    ):
        return
    names = " or ".join(sorted(map(dtype_name, narrow)))
    raise CheckError(
        "capture",
        f"the data decide whether a number is Python's or a scalar of {names}, and so how it is "
        f"rounded; give it one type on all paths, as in float(x) or np.{names.split()[0]}(0)",
    )


__all__ = ["NUMPY", "is_numpy_scalar", "kinds_of_result", "mixes", "refuse_narrow"]
