"""Recurrent layers over whole sequences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from hagane.nn.functions.activation import relu, sigmoid, tanh
from hagane.nn.functions.applying import lift, pop_options
from hagane.nn.functions.drawn.noise import dropout
from hagane.nn.functions.joining import concat, separate, split_axis, stack
from hagane.nn.functions.products import linear

# One step of a layer: inputs after their linear map, and states, to new states.
Step = Callable[[Any, tuple[Any, ...], Any, Any], tuple[Any, ...]]


def _rnn_step(activate: Any) -> Step:
    def step(x: Any, states: tuple[Any, ...], ws: Any, bs: Any) -> tuple[Any, ...]:
        (h,) = states
        return (activate(x + linear(h, ws[1], bs[1])),)

    return step


def _gru_step(x: Any, states: tuple[Any, ...], ws: Any, bs: Any) -> tuple[Any, ...]:
    (h,) = states
    xr, xz, xn = split_axis(x, 3, 1)
    hr, hz, hn = split_axis(linear(h, concat(ws[3:6], axis=0), concat(bs[3:6], axis=0)), 3, 1)
    z = sigmoid(xz + hz)
    new = tanh(xn + sigmoid(xr + hr) * hn)
    return ((1 - z) * new + z * h,)


def _lstm_step(x: Any, states: tuple[Any, ...], ws: Any, bs: Any) -> tuple[Any, ...]:
    h, c = states
    i, f, a, o = split_axis(x + linear(h, concat(ws[4:8], axis=0), concat(bs[4:8], axis=0)), 4, 1)
    new = sigmoid(i) * tanh(a) + sigmoid(f) * c
    return sigmoid(o) * tanh(new), new


def _one_direction(
    step: Step,
    xs: Sequence[Any],
    states: tuple[Any, ...],
    ws: Any,
    bs: Any,
    inputs: int,
    backwards: bool,
) -> tuple[list[Any], tuple[Any, ...]]:
    """Return the outputs of a layer at all times, and its last states.

    Batches shrink with time: a sequence that ends keeps its last state.
    """
    sizes = [x.shape[0] for x in xs]
    joined = concat(list(xs), axis=0) if len(xs) > 1 else xs[0]
    mapped = linear(joined, concat(ws[:inputs], axis=0), concat(bs[:inputs], axis=0))
    bounds = [sum(sizes[: i + 1]) for i in range(len(sizes) - 1)]
    rows = split_axis(mapped, bounds, 0) if bounds else (mapped,)
    times = range(len(xs) - 1, -1, -1) if backwards else range(len(xs))
    outputs: list[Any] = [None] * len(xs)
    for t in times:
        size = sizes[t]
        now, rest = states, None
        if states[0].shape[0] > size:
            parts = [split_axis(state, [size], 0) for state in states]
            now, rest = tuple(p[0] for p in parts), tuple(p[1] for p in parts)
        now = step(rows[t], now, ws, bs)
        outputs[t] = now[0]
        states = now
        if rest is not None:
            states = tuple(concat([a, b], axis=0) for a, b in zip(now, rest, strict=True))
    return outputs, states


def _n_step(
    step: Step,
    inputs: int,
    n_layers: int,
    ratio: float,
    firsts: tuple[Any, ...],
    ws: Any,
    bs: Any,
    xs: Any,
    both: bool,
) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Return the last states of all layers, and the outputs of the last at all times."""
    row = [lift(x) for x in xs]
    if not row:
        raise ValueError("expected a sequence of one or more batches, got none")
    directions = 2 if both else 1
    initial = [separate(lift(first), axis=0) for first in firsts]
    if len(initial[0]) != n_layers * directions:
        raise ValueError(
            f"hx: expected initial states of {n_layers * directions} layers, "
            f"(layers × directions, batch, units), got {len(initial[0])}"
        )
    last: list[list[Any]] = [[] for _ in firsts]
    for layer in range(n_layers):
        results = []
        for direction in range(directions):
            given = row if layer == 0 else [dropout(x, ratio=ratio) for x in row]
            index = layer * directions + direction
            states = tuple(one[index] for one in initial)
            outputs, states = _one_direction(
                step, given, states, ws[index], bs[index], inputs, direction == 1
            )
            results.append(outputs)
            for kept, state in zip(last, states, strict=True):
                kept.append(state)
        if both:
            row = [concat([a, b], axis=1) for a, b in zip(*results, strict=True)]
        else:
            row = results[0]
    return tuple(stack(kept) for kept in last), tuple(row)


def _lstm(
    n_layers: int,
    ratio: float,
    hx: Any,
    cx: Any,
    ws: Any,
    bs: Any,
    xs: Any,
    both: bool,
    kwargs: dict[str, Any],
) -> Any:
    pop_options("n_step_lstm", kwargs, removed=("train", "use_cudnn"))
    (h, c), ys = _n_step(_lstm_step, 4, n_layers, ratio, (hx, cx), ws, bs, xs, both)
    return h, c, ys


def n_step_lstm(
    n_layers: int, dropout_ratio: float, hx: Any, cx: Any, ws: Any, bs: Any, xs: Any, **kwargs: Any
) -> Any:
    """Return the states and outputs of a stack of LSTMs over sequences.

    Args:
        n_layers: The number of layers.
        dropout_ratio: Of the inputs of all layers but the first, in training.
        hx: Initial outputs, (layers, batch, units).
        cx: Initial cells, the same.
        ws: Eight weights a layer: of inputs, then of outputs, for input, forget, cell and output
            gate.
        bs: Eight biases a layer.
        xs: The inputs at each time, (batch at that time, features); batches do not grow.
        **kwargs: None are known.

    Returns:
        Last outputs, last cells, and the outputs of the last layer at each time.
    """
    return _lstm(n_layers, dropout_ratio, hx, cx, ws, bs, xs, False, kwargs)


def n_step_bilstm(
    n_layers: int, dropout_ratio: float, hx: Any, cx: Any, ws: Any, bs: Any, xs: Any, **kwargs: Any
) -> Any:
    """Return the states and outputs of LSTMs in both directions; layers alternate directions."""
    return _lstm(n_layers, dropout_ratio, hx, cx, ws, bs, xs, True, kwargs)


def n_step_gru(
    n_layers: int, dropout_ratio: float, hx: Any, ws: Any, bs: Any, xs: Any, **kwargs: Any
) -> Any:
    """Return the states and outputs of a stack of GRUs over sequences.

    Weights are six a layer: of inputs, then of outputs, for reset gate, update gate and candidate.
    """
    pop_options("n_step_gru", kwargs, removed=("train", "use_cudnn"))
    (h,), ys = _n_step(_gru_step, 3, n_layers, dropout_ratio, (hx,), ws, bs, xs, False)
    return h, ys


def n_step_bigru(
    n_layers: int, dropout_ratio: float, hx: Any, ws: Any, bs: Any, xs: Any, **kwargs: Any
) -> Any:
    """Return the states and outputs of GRUs in both directions."""
    pop_options("n_step_bigru", kwargs, removed=("train", "use_cudnn"))
    (h,), ys = _n_step(_gru_step, 3, n_layers, dropout_ratio, (hx,), ws, bs, xs, True)
    return h, ys


def _activation(name: str) -> Any:
    if name not in ("tanh", "relu"):
        raise ValueError(f'activation="{name}" is not valid: expected "tanh" or "relu"')
    return tanh if name == "tanh" else relu


def n_step_rnn(
    n_layers: int,
    dropout_ratio: float,
    hx: Any,
    ws: Any,
    bs: Any,
    xs: Any,
    activation: str = "tanh",
    **kwargs: Any,
) -> Any:
    """Return the states and outputs of a stack of simple recurrent layers over sequences."""
    pop_options("n_step_rnn", kwargs, removed=("train", "use_cudnn"))
    step = _rnn_step(_activation(activation))
    (h,), ys = _n_step(step, 1, n_layers, dropout_ratio, (hx,), ws, bs, xs, False)
    return h, ys


def n_step_birnn(
    n_layers: int,
    dropout_ratio: float,
    hx: Any,
    ws: Any,
    bs: Any,
    xs: Any,
    activation: str = "tanh",
    **kwargs: Any,
) -> Any:
    """Return the states and outputs of simple recurrent layers in both directions."""
    pop_options("n_step_birnn", kwargs, removed=("train", "use_cudnn"))
    step = _rnn_step(_activation(activation))
    (h,), ys = _n_step(step, 1, n_layers, dropout_ratio, (hx,), ws, bs, xs, True)
    return h, ys
