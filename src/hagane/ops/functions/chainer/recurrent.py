"""Chainer's recurrent layers over sequences of different lengths.

Weights and gates lie as in PyTorch: input, forget, cell, output; reset, update, new. ONNX's
recurrent operators take the lengths of the sequences, so that a layer is one node.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.ops.builder import dtype_of, op, rank_of, shape_of
from hagane.ops.functions.layers.recurrent import Weights, recurrent_layer
from hagane.ops.functions.numbers.elementary import cast, unsqueeze
from hagane.ops.functions.tensors.parts import element, part
from hagane.symbolic import Dim

INT32 = ir.DataType.INT32
Between = Callable[[Any], Any]


def weights_of(ws: Sequence[Any], bs: Sequence[Any]) -> Weights:
    """Return the parameters of a direction of a layer from one weight and bias for each gate.

    Args:
        ws: (units, features) for the inputs' gates, then (units, units) for the states' gates.
        bs: (units,) for each of them.
    """
    half = len(ws) // 2
    joined = [
        op("Concat", *rows, axis=0) if len(rows) > 1 else rows[0]
        for rows in (ws[:half], ws[half:], bs[:half], bs[half:])
    ]
    return Weights(*joined)


def layers(
    kind: str,
    x: Any,
    lengths: Any,
    initial: Sequence[Any],
    weights: Sequence[Weights],
    directions: int,
    activation: str,
    between: Between,
) -> tuple[list[Any], Any]:
    """Return the last states, and the outputs of all steps, of layers above each other.

    Args:
        kind: LSTM, GRU or RNN.
        x: Inputs, (steps, batch, features).
        lengths: The number of steps of each sequence, int32 (batch,); None if all have all.
        initial: The first states, each (layers * directions, batch, units) or None for zeros.
        weights: The parameters of each direction of each layer.
        directions: 2 if the sequences are also read backwards.
        activation: Of RNN: ``tanh`` or ``relu``.
        between: Is applied to the inputs of all layers but the first.

    Returns:
        States (layers * directions, batch, units), and outputs (steps, batch, directions * units),
        which are zeros behind the end of a sequence.
    """
    hidden = shape_of(weights[0].states)[1]
    last: list[list[Any]] = [[] for _ in initial]
    for number in range(0, len(weights), directions):
        x = x if number == 0 else between(x)
        first = [part(one, 0, number, directions) for one in _filled(x, initial, weights)]
        own = weights[number : number + directions]
        x, states = recurrent_layer(kind, x, own, hidden, first, activation, lengths)
        for kept, state in zip(last, states, strict=True):
            kept.append(state)
    joined = [op("Concat", *kept, axis=0) if len(kept) > 1 else kept[0] for kept in last]
    return joined, x


def _filled(x: Any, initial: Sequence[Any], weights: Sequence[Weights]) -> list[Any]:
    """Return the first states, with zeros for missing ones beside others."""
    if all(one is None for one in initial):
        return []
    shape = [len(weights), shape_of(x)[1], shape_of(weights[0].states)[1]]
    zero = np.zeros(1, dtype_of(x).numpy())
    return [op("ConstantOfShape", shape, value=zero) if one is None else one for one in initial]


def padded(xs: Sequence[Any], longest: Dim, axis: int) -> Any:
    """Return tensors filled up with zeros along their first axis, stacked along an axis."""
    rank = rank_of(xs[0])
    filled = [
        x if shape_of(x)[0] == longest
        else op("Pad", x, [*[0] * rank, longest - shape_of(x)[0], *[0] * (rank - 1)])
        for x in xs
    ]  # fmt: skip
    return op("Concat", *(unsqueeze(x, [axis]) for x in filled), axis=axis)


def over_sequences(
    kind: str, xs: Sequence[Any], longest: Dim, initial: Sequence[Any],
    weights: Sequence[Weights], directions: int, activation: str, between: Between,
) -> tuple[Any, ...]:  # fmt: skip
    """Return the last states, then the outputs of each sequence (length, features).

    Args:
        kind: LSTM, GRU or RNN.
        xs: Sequences, (length, features) each.
        longest: The greatest length.
        initial: The first states, see :func:`layers`.
        weights: The parameters of each direction of each layer.
        directions: 2 if the sequences are also read backwards.
        activation: Of RNN: ``tanh`` or ``relu``.
        between: Is applied to the inputs of all layers but the first.
    """
    counts = [shape_of(x)[0] for x in xs]
    equal = all(count == longest for count in counts)
    lengths = None if equal else op("Cast", counts, to=INT32)
    x = padded(xs, longest, 1)
    last, y = layers(kind, x, lengths, initial, weights, directions, activation, between)
    ys = [element(y, 1, number) for number in range(len(xs))]
    return *last, *(
        one if equal else part(one, 0, 0, count) for one, count in zip(ys, counts, strict=True)
    )


def over_rows(
    kind: str, x: Any, initial: Sequence[Any], weights: Sequence[Weights], directions: int,
    activation: str, between: Between,
) -> tuple[Any, ...]:  # fmt: skip
    """Return the last states, then the outputs of sequences of one length, (batch, length, units).

    Args:
        kind: LSTM, GRU or RNN.
        x: The sequences, (batch, length, features).
        initial: The first states, see :func:`layers`.
        weights: The parameters of each direction of each layer.
        directions: 2 if the sequences are also read backwards.
        activation: Of RNN: ``tanh`` or ``relu``.
        between: Is applied to the inputs of all layers but the first.
    """
    steps = op("Transpose", x, perm=[1, 0, 2])
    last, y = layers(kind, steps, None, initial, weights, directions, activation, between)
    return *last, op("Transpose", y, perm=[1, 0, 2])


def over_steps(
    kind: str, xs: Sequence[Any], initial: Sequence[Any], weights: Sequence[Weights],
    directions: int, activation: str, between: Between,
) -> tuple[Any, ...]:  # fmt: skip
    """Return the last states, then the outputs of each step (batch of the step, features).

    Args:
        kind: LSTM, GRU or RNN.
        xs: Inputs of each step, (batch, features) each; batches do not grow.
        initial: The first states, see :func:`layers`; the first tells the size of the batch.
        weights: The parameters of each direction of each layer.
        directions: 2 if the sequences are also read backwards.
        activation: Of RNN: ``tanh`` or ``relu``.
        between: Is applied to the inputs of all layers but the first.
    """
    batch = shape_of(initial[0])[1]
    counts = [shape_of(x)[0] for x in xs]
    lengths = None
    if any(count != batch for count in counts):
        alive = op("Less", unsqueeze(op("Range", 0, batch, 1), [0]), [[count] for count in counts])
        lengths = cast(op("ReduceSum", cast(alive, ir.DataType.INT64), [0], keepdims=0), INT32)
    x = padded(xs, batch, 0)
    last, y = layers(kind, x, lengths, initial, weights, directions, activation, between)
    ys = [element(y, 0, number) for number in range(len(xs))]
    return *last, *(
        one if count == batch else part(one, 0, 0, count)
        for one, count in zip(ys, counts, strict=True)
    )
