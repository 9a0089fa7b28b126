"""Arithmetic of one value and constants, read as a polynomial, in any order and grouping."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import onnx_ir as ir

from hagane.ops.inference import GraphTypes
from hagane.passes.edit import producer, scalar, type_of

# Coefficients by power.
Polynomial = Mapping[int, float]

# Activations as exporters write them are smaller than this.
_MOST_STEPS = 8
_MOST_DEGREE = 4


def polynomial(
    value: ir.Value | None, x: ir.Value, types: GraphTypes, steps: int = _MOST_STEPS
) -> Polynomial | None:
    """Return ``value`` as a polynomial in ``x``, if constants and ``x`` are all that it is made of.

    Sums, differences, products, quotients by numbers, powers and negation are followed.
    """
    if value is x:
        return {1: 1.0}
    known = scalar(value, types)
    if known is not None:
        return {0: known} if math.isfinite(known) else None
    node = None if value is None else value.producer()
    if node is None or node.domain != "" or not steps:
        return None
    if node.op_type not in ("Add", "Sub", "Mul", "Div", "Pow", "Neg"):
        return None
    parts = [polynomial(one, x, types, steps - 1) for one in node.inputs]
    left, right = parts[0], parts[-1]
    if left is None or right is None:
        return None
    match node.op_type:
        case "Add":
            return _sum(left, right)
        case "Sub":
            return _sum(left, {power: -factor for power, factor in right.items()})
        case "Mul":
            return _product(left, right)
        case "Neg":
            return {power: -factor for power, factor in left.items()}
    number = right.get(0, 0.0)
    if set(right) != {0}:
        return None
    if node.op_type == "Div":
        return {power: factor / number for power, factor in left.items()} if number else None
    result: Polynomial | None = {0: 1.0}
    if number not in range(1, _MOST_DEGREE + 1):
        return None
    for _ in range(int(number)):
        result = None if result is None else _product(result, left)
    return result


def _sum(left: Polynomial, right: Polynomial) -> Polynomial:
    powers = {*left, *right}
    return {power: left.get(power, 0.0) + right.get(power, 0.0) for power in powers}


def _product(left: Polynomial, right: Polynomial) -> Polynomial | None:
    result: dict[int, float] = {}
    for i, a in left.items():
        for j, b in right.items():
            result[i + j] = result.get(i + j, 0.0) + a * b
    return result if max(result) <= _MOST_DEGREE else None


def close(found: Polynomial | None, wanted: Polynomial, tolerance: float) -> bool:
    """Whether coefficients agree to a relative tolerance; those not wanted must be zero."""
    if found is None:
        return False
    return all(
        math.isclose(found.get(power, 0.0), wanted.get(power, 0.0), rel_tol=tolerance)
        for power in {*found, *wanted}
    )


def tolerance_of(x: ir.Value, types: GraphTypes) -> float:
    """Return how far constants may be off that exporters wrote with a few digits."""
    found = type_of(x, types)
    return 1e-9 if found is not None and found.dtype == ir.DataType.DOUBLE else 1e-4


def ingredients(value: ir.Value | None, types: GraphTypes) -> Iterator[ir.Value]:
    """Yield the values that arithmetic makes a value of, itself first: each may be its ``x``."""
    waiting = [(value, _MOST_STEPS)]
    seen: set[ir.Value] = set()
    while waiting:
        one, steps = waiting.pop(0)
        if one is None or one in seen or scalar(one, types) is not None:
            continue
        seen.add(one)
        yield one
        for op_type in ("Add", "Sub", "Mul", "Div", "Pow", "Neg"):
            node = producer(one, op_type)
            if node is not None and steps:
                waiting += [(operand, steps - 1) for operand in node.inputs]


@dataclass(frozen=True, slots=True)
class _State:
    """A value that is ``(start + slope · g) · x`` or, without ``x`` yet, ``start + slope · g``."""

    value: ir.Value
    start: float
    slope: float
    has_x: bool


def completions(
    g: ir.Value, x: ir.Value, start: float, slope: float, types: GraphTypes
) -> list[ir.Node]:
    """Return the nodes that compute ``x · (start + slope · g)``, in any order and grouping."""
    found: dict[ir.Node, None] = {}
    waiting = [(_State(g, 0.0, 1.0, False), _MOST_STEPS)]
    tolerance = tolerance_of(x, types)
    whole = type_of(x, types)
    while waiting:
        state, steps = waiting.pop()
        for use in state.value.uses():
            node = use.node
            after = _after(state, node, x, types) if node.domain == "" else None
            if after is None:
                continue
            right = close({0: after.start, 1: after.slope}, {0: start, 1: slope}, tolerance)
            if after.has_x and right:
                if whole is not None and type_of(after.value, types) == whole:
                    found[node] = None
            elif steps:
                waiting.append((after, steps - 1))
    return list(found)


def _after(state: _State, node: ir.Node, x: ir.Value, types: GraphTypes) -> _State | None:
    """Return the result of a reader of a value, if that goes on to the pattern looked for."""
    if node.op_type not in ("Add", "Mul", "Div") or len(node.inputs) != 2:
        return None
    left, right = node.inputs
    if left is right or (node.op_type == "Div" and left is not state.value):
        return None
    other = polynomial(right if left is state.value else left, x, types)
    if other is None or len(other) != 1:
        return None
    ((power, factor),) = other.items()
    out, start, slope, has_x = node.outputs[0], state.start, state.slope, state.has_x
    if node.op_type == "Add":
        return _State(out, start + factor, slope, has_x) if power == int(has_x) else None
    if node.op_type == "Div":
        if power or not factor:
            return None
        return _State(out, start / factor, slope / factor, has_x)
    if power > 1 or (power and has_x):
        return None
    return _State(out, start * factor, slope * factor, has_x or bool(power))
