"""Operators of integers that ONNX Runtime computes in float64, exact above 2⁵³ and modulo 2⁶⁴."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.ops.builder import op
from hagane.ops.builder.control import loop
from hagane.ops.functions.numbers.elementary import add, div, mul, sub, where

_INTEGERS = frozenset((ir.DataType.INT32, ir.DataType.INT64))
_EXACT = 3  # ONNX Runtime multiplies for exponents up to this one
_LARGE = 1 << 31  # sums of products with such numbers may pass 2⁵³
_HALF = 1 << 32
# Operators whose result is large where an operand is.
_HANDING = frozenset(
    ("Mul", "Add", "Sub", "Neg", "Where", "Identity", "Reshape", "Transpose", "Unsqueeze",
     "Squeeze", "Expand", "Gather", "Slice", "Concat", "CumSum")
)  # fmt: skip

# Operators whose results are elements of their first operand.
_MOVING = frozenset(
    ("Cast", "Identity", "Reshape", "Expand", "Unsqueeze", "Squeeze", "Slice", "Gather")
)


def rounds(node: ir.Node) -> bool:
    """Whether ONNX Runtime may round an integer of a node."""
    x = node.inputs[0] if node.inputs else None
    if x is None or x.dtype not in _INTEGERS:
        return False
    if node.op_type == "Pow":
        if node.inputs[1] is None or node.inputs[1].dtype not in _INTEGERS:
            return False
        exponents = _known(node.inputs[1])
        return exponents is None or exponents.size != 1 or int(exponents.ravel()[0]) > _EXACT
    return node.op_type == "ReduceSum" and x.dtype == ir.DataType.INT64 and _is_large(x)


def power(node: ir.Node, known: dict[str, Any]) -> Any:
    """Return a power by squares, modulo the number of values of its type."""
    del known
    base, exponent = node.inputs
    assert base is not None
    dtype = base.dtype
    assert dtype is not None
    most = _most(exponent)
    left: Any = op("Cast", exponent, to=dtype)
    one, two = (np.array(n, dtype.numpy()) for n in (1, 2))

    def step(left: Any, square: Any, found: Any) -> tuple[Any, Any, Any]:
        is_odd = op("Equal", op("Mod", left, two), one)
        return div(left, two), mul(square, square), mul(found, where(is_odd, square, one))

    found: Any = op("Expand", one, op("Shape", add(base, left)))
    if most is None:
        last = loop(
            None,
            _any_above_zero(left),
            (left, base, found),
            lambda number, going, *states: (_any_above_zero(states[0]), *step(*states)),
        )
        return last[2]
    square: Any = base
    for _ in range(most.bit_length()):
        left, square, found = step(left, square, found)
    return found


def _any_above_zero(x: Any) -> Any:
    most = op(
        "ReduceMax", op("Cast", op("Reshape", x, np.array([-1])), to=ir.DataType.INT64), keepdims=0
    )
    return op("Greater", most, np.array(0, np.int64))


def _most(value: ir.Value | None) -> int | None:
    """Return a bound of exponents from above; None where the graph tells none."""
    known = _known(value)
    if known is not None and known.size:
        return max(0, int(known.max()))
    node = None if value is None else value.producer()
    if node is None:
        return None
    bounds = [_most(one) for one in node.inputs]
    if node.op_type == "Min":
        return min((bound for bound in bounds if bound is not None), default=None)
    if node.op_type in _MOVING:
        return bounds[0]
    if node.op_type == "Where" and bounds[1] is not None and bounds[2] is not None:
        return max(bounds[1], bounds[2])
    return None


def total(node: ir.Node, known: dict[str, Any]) -> Any:
    """Return a sum as that of the upper and that of the lower halves."""
    x, *axes = node.inputs
    half = np.array(_HALF, np.int64)
    upper = div(x, half)
    parts = [op("ReduceSum", one, *axes, **known) for one in (upper, sub(x, mul(upper, half)))]
    return add(mul(parts[0], half), parts[1])


def _known(value: ir.Value | None) -> np.ndarray[Any, Any] | None:
    while value is not None and value.const_value is None:
        node = value.producer()
        if node is None or node.op_type not in ("Cast", "Identity"):
            return None
        value = node.inputs[0]
    return None if value is None or value.const_value is None else value.const_value.numpy()


def _is_large(value: ir.Value) -> bool:
    """Whether a value is a product with a large number, or a power."""
    waiting, seen = [value], set[ir.Value]()
    while waiting:
        one = waiting.pop()
        known = _known(one)
        if known is not None and known.size and known.dtype.kind in "iu":
            if max(abs(int(known.max())), abs(int(known.min()))) >= _LARGE:
                return True
            continue
        node = one.producer()
        if node is None or one in seen or node.domain:
            continue
        seen.add(one)
        if node.op_type == "Pow":
            return True
        if node.op_type in _HANDING:
            waiting += [item for item in node.inputs if item is not None]
    return False


__all__ = ["power", "rounds", "total"]
