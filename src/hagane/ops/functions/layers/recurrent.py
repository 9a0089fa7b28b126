"""Recurrent layers, with their weights laid out as in PyTorch.

The gates lie one after another in the rows of a weight: input, forget, cell, output (LSTM); reset,
update, new (GRU). ONNX orders them differently, and joins both biases.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hagane.ops.builder import dtype_of, op, scan, shape_of
from hagane.ops.functions.numbers.elementary import add, mul, squeeze, sub, transpose, unsqueeze
from hagane.ops.functions.tensors.parts import parts
from hagane.ops.functions.tensors.positions import positions_along
from hagane.ops.functions.tensors.shapes import zeros_like
from hagane.symbolic import Dim

# The place of ONNX's gates among PyTorch's.
_ORDERS = {"LSTM": (0, 3, 1, 2), "GRU": (1, 0, 2), "RNN": (0,)}


@dataclass(frozen=True, slots=True)
class Weights:
    """The parameters of one direction of one layer; biases are None where there are none."""

    inputs: Any  # (gates * hidden, features)
    states: Any  # (gates * hidden, hidden)
    input_bias: Any = None  # (gates * hidden,)
    state_bias: Any = None
    projection: Any = None  # (outputs, hidden), of LSTMs whose outputs are projected


def recurrent_layer(
    kind: str,
    x: Any,
    directions: Sequence[Weights],
    hidden: Dim,
    initial: Sequence[Any],
    activation: str = "tanh",
    lengths: Any = None,
) -> tuple[Any, list[Any]]:
    """Return the outputs of all steps, and the last states, of one layer.

    Args:
        kind: LSTM, GRU or RNN.
        x: Inputs, (steps, batch, features).
        directions: The weights forward, then backward if the layer runs both ways.
        hidden: The number of hidden units.
        initial: The states before the first step, each (directions, batch, hidden): the hidden
            ones, for LSTM those of the cells too. None of them means zeros.
        activation: Of RNN: ``tanh`` or ``relu``.
        lengths: How many steps each sequence has, int32 (batch,); None if all have all.

    Returns:
        Outputs (steps, batch, directions * hidden), and one state for each of ``initial``'s kind.
    """
    order = _ORDERS[kind]
    stacked = [
        op("Concat", *(unsqueeze(row, [0]) for row in rows), axis=0) if len(rows) > 1 else
        unsqueeze(rows[0], [0])
        for rows in (
            [_ordered(one.inputs, order, hidden) for one in directions],
            [_ordered(one.states, order, hidden) for one in directions],
        )
    ]  # fmt: skip
    bias = None
    if directions[0].input_bias is not None:
        rows = [
            op(
                "Concat",
                _ordered(one.input_bias, order, hidden),
                _ordered(one.state_bias, order, hidden),
                axis=0,
            )
            for one in directions
        ]
        bias = op("Concat", *(unsqueeze(row, [0]) for row in rows), axis=0)
    count = len(directions)
    given: dict[str, Any] = {
        "hidden_size": hidden,
        "direction": "bidirectional" if count == 2 else "forward",
    }
    if kind == "GRU":
        given["linear_before_reset"] = 1
    if kind == "RNN" and activation == "relu":
        given["activations"] = ["Relu"] * count
    n_states = 2 if kind == "LSTM" else 1
    y, *last = op(kind, x, *stacked, bias, lengths, *initial, outputs=1 + n_states, **given)
    steps, batch, _ = shape_of(x)
    joined = op("Reshape", transpose(y, [0, 2, 1, 3]), [steps, batch, count * hidden], allowzero=1)
    return joined, list(last)


def projected_layer(
    x: Any,
    directions: Sequence[Weights],
    hidden: Dim,
    outputs: Dim,
    initial: Sequence[Any],
    lengths: Any = None,
) -> tuple[Any, list[Any]]:
    """Return the outputs of all steps, and the last states, of an LSTM with projected outputs.

    A step is ``h = P(o * tanh(c))`` (Sak et al., 2014, without peepholes).

    Args:
        x: Inputs, (steps, batch, features).
        directions: As for :func:`recurrent_layer`.
        hidden: The size of cells.
        outputs: The size of outputs.
        initial: The states before the first step, (directions, batch, outputs) and
            (directions, batch, hidden); none of them means zeros.
        lengths: How many steps each sequence has, int64 (batch,); None if all have all. Outputs
            behind are zeros, and states stay as they are.
    """
    count = len(directions)
    seen = []
    if lengths is not None:
        place = unsqueeze(positions_along(x, 0), [1])
        seen = [unsqueeze(op("Less", place, unsqueeze(lengths, [0])), [2])]
    if not initial:
        zero, batch = op("Cast", 0.0, to=dtype_of(x)), shape_of(x)[1]
        initial = [op("Expand", zero, [count, batch, size]) for size in (outputs, hidden)]
    sequences, last = [], []
    for number, one in enumerate(directions):

        def step(h: Any, c: Any, projected: Any, seen: Any = None, one: Weights = one) -> list[Any]:
            gates = add(projected, op("MatMul", h, transpose(one.states, [1, 0])))
            i, f, g, o = parts(gates, 1, [hidden] * 4)
            kept = mul(op("Sigmoid", f), c)
            cell = add(kept, mul(op("Sigmoid", i), op("Tanh", g)))
            whole = mul(op("Sigmoid", o), op("Tanh", cell))
            out = op("MatMul", whole, transpose(one.projection, [1, 0]))
            if seen is None:
                return [out, cell, out]
            kept = [op("Where", seen, new, old) for new, old in ((out, h), (cell, c))]
            return [*kept, op("Where", seen, out, zeros_like(out))]

        begun = [op("Gather", state, number, axis=0) for state in initial]
        of_inputs = _linear(x, one.inputs, one.input_bias)
        if one.state_bias is not None:
            of_inputs = add(of_inputs, one.state_bias)
        *states, y = scan(begun, [of_inputs, *seen], step, stacked=1, reverse=number == 1)
        sequences.append(y)
        last.append([unsqueeze(state, [0]) for state in states])
    y = op("Concat", *sequences, axis=2) if count > 1 else sequences[0]
    return y, [op("Concat", *each, axis=0) for each in zip(*last, strict=True)]


def _ordered(x: Any, order: Sequence[int], hidden: Dim) -> Any:
    """Return the rows of gates in another order."""
    if len(order) == 1:
        return x
    rows = parts(x, 0, [hidden] * len(order))
    return op("Concat", *(rows[place] for place in order), axis=0)


def _linear(x: Any, weight: Any, bias: Any) -> Any:
    y = op("MatMul", x, transpose(weight, [1, 0]))
    return y if bias is None else add(y, bias)


def _gates(x: Any, hidden: Dim, count: int) -> list[Any]:
    rank = len(shape_of(x))
    return parts(x, rank - 1, [hidden] * count)


def recurrent_step(
    kind: str,
    x: Any,
    weights: Weights,
    hidden: Dim,
    initial: Sequence[Any],
    activation: str = "tanh",
) -> list[Any]:
    """Return the states after one step: the hidden one, for LSTM that of the cell too.

    Args:
        kind: LSTM, GRU or RNN.
        x: Input, (..., features).
        weights: The parameters of the cell.
        hidden: The number of hidden units.
        initial: The states before, each (..., hidden); none of them means zeros.
        activation: Of RNN: ``tanh`` or ``relu``.
    """
    own = _linear(x, weights.inputs, weights.input_bias)
    before = list(initial)
    if not before:
        zero = np.zeros(1, dtype_of(x).numpy())
        zeros = op("ConstantOfShape", [*shape_of(x)[:-1], hidden], value=zero)
        before = [zeros, zeros]
    state = _linear(before[0], weights.states, weights.state_bias)
    if kind == "RNN":
        return [op("Relu" if activation == "relu" else "Tanh", add(own, state))]
    if kind == "GRU":
        (r, z, n), (hr, hz, hn) = _gates(own, hidden, 3), _gates(state, hidden, 3)
        reset, update = op("Sigmoid", add(r, hr)), op("Sigmoid", add(z, hz))
        new = op("Tanh", add(n, mul(reset, hn)))
        return [add(new, mul(update, sub(before[0], new)))]
    i, f, g, o = _gates(add(own, state), hidden, 4)
    kept = mul(op("Sigmoid", f), before[1])
    cell = add(kept, mul(op("Sigmoid", i), op("Tanh", g)))
    return [mul(op("Sigmoid", o), op("Tanh", cell)), cell]


def without_batch(states: Sequence[Any], axis: int) -> list[Any]:
    """Return states without an axis of size 1 that stood for the batch."""
    return [squeeze(state, [axis]) for state in states]
