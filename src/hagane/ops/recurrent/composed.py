"""Recurrent layers as scans over the builder, for their gradients."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from hagane.ops.builder import dtype_of, op, rank_of, scan, shape_of, size_of
from hagane.ops.functions.numbers.elementary import add, mul, transpose, unsqueeze, where
from hagane.ops.functions.tensors.positions import positions_along

Activation: TypeAlias = Callable[[Any], Any]
# One step: (projected input, states) -> (output, states), each (batch, hidden).
Cell: TypeAlias = Callable[[Any, Sequence[Any]], tuple[Any, Sequence[Any]]]

# Activations by lower-case name, as functions of (x, alpha, beta).
ACTIVATIONS: dict[str, Callable[[Any, float, float], Any]] = {
    "affine": lambda x, a, b: add(mul(x, a), b),
    "elu": lambda x, a, b: op("Elu", x, alpha=a),
    "hardsigmoid": lambda x, a, b: op("HardSigmoid", x, alpha=a, beta=b),
    "leakyrelu": lambda x, a, b: op("LeakyRelu", x, alpha=a),
    "relu": lambda x, a, b: op("Relu", x),
    "scaledtanh": lambda x, a, b: mul(op("Tanh", mul(x, b)), a),
    "sigmoid": lambda x, a, b: op("Sigmoid", x),
    "softplus": lambda x, a, b: op("Softplus", x),
    "softsign": lambda x, a, b: op("Softsign", x),
    "tanh": lambda x, a, b: op("Tanh", x),
    "thresholdedrelu": lambda x, a, b: op("ThresholdedRelu", x, alpha=a),
}


def part(x: Any, first: int, last: int, axis: int = -1) -> Any:
    """Return elements from ``first`` to before ``last`` of an axis."""
    return op("Slice", x, [first], [last], [axis])


def one_direction(x: Any, d: int) -> Any:
    """Return the entry of a direction of a parameter; None for None."""
    return None if x is None else op("Gather", x, d, axis=0)


def run(
    x: Any,
    lengths: Any,
    initial: Sequence[Any],
    cells: Sequence[tuple[Callable[[Any], Any], Cell]],
    hidden: int,
    direction: str,
    layout: int,
) -> tuple[Any, ...]:
    """Return all outputs of a layer, and its last states.

    Args:
        x: (sequence, batch, size), or (batch, sequence, size) if ``layout`` is 1.
        lengths: (batch,), or None if all sequences are complete.
        initial: First states, (directions, batch, hidden), batch first if ``layout`` is 1; None
            for zeros.
        cells: For each direction the projection of all inputs, and the step.
        hidden: Size of the states.
        direction: forward, reverse or bidirectional.
        layout: 0 or 1.
    """
    if layout:
        x = transpose(x, [1, 0, 2])
        initial = [None if h is None else transpose(h, [1, 0, 2]) for h in initial]
    active = []
    if lengths is not None:
        steps = unsqueeze(op("Cast", positions_along(x, 0), to=dtype_of(lengths)), [1, 2])
        active = [op("Less", steps, unsqueeze(lengths, [1]))]
    outputs, finals = [], []
    for d, (project, cell) in enumerate(cells):
        states = [_first(h, d, x, hidden) for h in initial]

        def step(*values: Any, cell: Cell = cell) -> Sequence[Any]:
            before, projected, is_active = values[: len(initial)], values[len(initial)], values[-1]
            y, after = cell(projected, before)
            if active:
                y = where(is_active, y, 0)
                pairs = zip(after, before, strict=True)
                after = [where(is_active, new, old) for new, old in pairs]
            return [*after, y]

        backwards = direction == "reverse" or d == 1
        walked = [project(x), *active]
        *last, y = scan(states, walked, step, stacked=1, reverse=backwards)
        if lengths is not None:  # no element, no last state
            some = op("Greater", unsqueeze(lengths, [1]), 0)
            last = [where(some, state, 0) for state in last]
        outputs.append(unsqueeze(y, [1]))
        finals.append([unsqueeze(state, [0]) for state in last])
    y = op("Concat", *outputs, axis=1)
    last = [op("Concat", *parts, axis=0) for parts in zip(*finals, strict=True)]
    if layout:
        return (transpose(y, [2, 0, 1, 3]), *(transpose(h, [1, 0, 2]) for h in last))
    return (y, *last)


def _first(h: Any, d: int, x: Any, hidden: int) -> Any:
    if h is not None:
        return one_direction(h, d)
    return op("Expand", op("Cast", 0.0, to=dtype_of(x)), [size_of(x, 1), hidden])


def hidden_size(r: Any) -> int:
    """Return the size of the states from the recurrent weight."""
    size = shape_of(r)[rank_of(r) - 1]
    assert isinstance(size, int)
    return size
