"""Short names for the operators that formulas are made of.

Each takes and returns values of any interpreter; Python numbers take the element type of the other
operand.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce, wraps
from typing import Any

import onnx_ir as ir

from hagane.ops.builder import dtype_of, op, rank_of

_NARROW = (ir.DataType.FLOAT16, ir.DataType.BFLOAT16)
_PLAIN = (int, float, str, list, tuple, type(None))


def _are_numbers(x: Any, y: Any) -> bool:
    """Whether both are numbers of Python, whose element type is still open."""
    return isinstance(x, int | float) and isinstance(y, int | float)


def add(*values: Any) -> Any:
    """Return the sum of values that broadcast against each other."""
    return reduce(lambda x, y: x + y if _are_numbers(x, y) else op("Add", x, y), values)


def sub(x: Any, y: Any) -> Any:
    """Return ``x - y``."""
    return x - y if _are_numbers(x, y) else op("Sub", x, y)


def mul(*values: Any) -> Any:
    """Return the product of values that broadcast against each other, from the left."""
    return reduce(lambda x, y: x * y if _are_numbers(x, y) else op("Mul", x, y), values)


def div(x: Any, y: Any) -> Any:
    """Return ``x / y``; integers round toward zero."""
    return op("Div", x, y)


def neg(x: Any) -> Any:
    """Return ``-x``."""
    return op("Neg", x)


def square(x: Any) -> Any:
    """Return ``x * x``."""
    return op("Mul", x, x)


def sqrt(x: Any) -> Any:
    """Return the square root."""
    return op("Sqrt", x)


def exp(x: Any) -> Any:
    """Return the exponential."""
    return op("Exp", x)


def log(x: Any) -> Any:
    """Return the natural logarithm."""
    return op("Log", x)


def where(condition: Any, x: Any, y: Any) -> Any:
    """Return elements of ``x`` where the condition holds, else of ``y``."""
    return op("Where", condition, x, y)


def cast(x: Any, dtype: ir.DataType) -> Any:
    """Return ``x`` with another element type; ``x`` itself if it has that one."""
    return x if dtype_of(x) == dtype else op("Cast", x, to=dtype)


def widened(x: Any) -> Any:
    """Return ``x`` in float32 where its element type is too narrow for squares and sums."""
    return cast(x, ir.DataType.FLOAT) if dtype_of(x) in _NARROW else x


def in_float32(function: Callable[..., Any]) -> Callable[..., Any]:
    """Let a function of 16-bit floats compute in float32, as squares and sums need it."""

    @wraps(function)
    def run(x: Any, *arguments: Any) -> Any:
        if dtype_of(x) not in _NARROW:
            return function(x, *arguments)
        given = [one if isinstance(one, _PLAIN) else widened(one) for one in arguments]
        return cast(function(widened(x), *given), dtype_of(x))

    return run


def mask_like(condition: Any, x: Any) -> Any:
    """Return 1 where the condition holds and 0 elsewhere, in the element type of ``x``."""
    return op("Cast", condition, to=dtype_of(x))


def sum_over(x: Any, axes: Sequence[int], *, keepdims: bool = True) -> Any:
    """Return the sum over axes; over none, ``x`` itself."""
    return op("ReduceSum", x, list(axes), keepdims=int(keepdims)) if axes else x


def mean_over(x: Any, axes: Sequence[int], *, keepdims: bool = True) -> Any:
    """Return the mean over axes; over none, ``x`` itself."""
    return op("ReduceMean", x, list(axes), keepdims=int(keepdims)) if axes else x


def transpose(x: Any, order: Sequence[int]) -> Any:
    """Return ``x`` with its axes in another order; ``x`` itself if that is the one they have."""
    return x if list(order) == list(range(len(order))) else op("Transpose", x, perm=list(order))


def swapped(x: Any) -> Any:
    """Return a stack of matrices, each transposed."""
    rank = rank_of(x)
    return transpose(x, [*range(rank - 2), rank - 1, rank - 2])


def squeeze(x: Any, axes: Sequence[int]) -> Any:
    """Return ``x`` without axes of size 1."""
    return op("Squeeze", x, list(axes)) if axes else x


def unsqueeze(x: Any, axes: Sequence[int]) -> Any:
    """Return ``x`` with axes of size 1, counted as they are in the result."""
    return op("Unsqueeze", x, list(axes)) if axes else x
