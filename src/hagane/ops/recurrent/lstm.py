"""LSTM."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from hagane.ops.builder import op
from hagane.ops.definition import Array, OpDef
from hagane.ops.functions.numbers.elementary import add, mul, sub
from hagane.ops.precision import widened
from hagane.ops.recurrent import composed, layer
from hagane.ops.vjp import through


@widened
def lstm(
    x: Array,
    w: Array,
    r: Array,
    b: Array | None = None,
    sequence_lens: Array | None = None,
    initial_h: Array | None = None,
    initial_c: Array | None = None,
    p: Array | None = None,
    *,
    activation_alpha: Sequence[float] | None = None,
    activation_beta: Sequence[float] | None = None,
    activations: Sequence[str] | None = None,
    clip: float | None = None,
    direction: str = "forward",
    hidden_size: int | None = None,
    input_forget: int = 0,
    layout: int = 0,
    n_outputs: int = 1,
) -> tuple[Array, ...]:
    """Gates i, o, f, c, with peepholes p (Gers and Schmidhuber, 2000)."""
    count = layer.directions_of(direction)
    functions = layer.activations(
        activations, ("Sigmoid", "Tanh", "Tanh"), count, activation_alpha, activation_beta, clip
    )
    n = r.shape[2]
    bias = np.zeros((count, 8 * n), dtype=x.dtype) if b is None else b
    peephole = np.zeros((count, 3 * n), dtype=x.dtype) if p is None else p

    def cell(d: int) -> layer.Cell:
        f, g, h_activation = functions[d]
        total = bias[d, : 4 * n] + bias[d, 4 * n :]
        p_i, p_o, p_f = np.split(peephole[d], 3)

        def step(x_t: Array, state: tuple[Array, ...]) -> tuple[Array, tuple[Array, ...]]:
            h, c = state
            gates = x_t @ w[d].T + h @ r[d].T + total
            i, o, forget, candidate = np.split(gates, 4, axis=1)
            i = f(i + p_i * c)
            forget = 1 - i if input_forget else f(forget + p_f * c)
            c = forget * c + i * g(candidate)
            h = f(o + p_o * c) * h_activation(c)
            return h, (h, c)

        return step

    cells = [cell(d) for d in range(count)]
    y, states = layer.run(x, sequence_lens, [initial_h, initial_c], cells, n, direction, layout)
    return (y, *states)[:n_outputs]


def _infer(ctx: Any) -> Sequence[Any]:
    return layer.infer(ctx, gates=4, n_states=2)


def composed_lstm(
    x: Any,
    w: Any,
    r: Any,
    b: Any = None,
    sequence_lens: Any = None,
    initial_h: Any = None,
    initial_c: Any = None,
    p: Any = None,
    *,
    activation_alpha: Sequence[float] | None = None,
    activation_beta: Sequence[float] | None = None,
    activations: Sequence[str] | None = None,
    clip: float | None = None,
    direction: str = "forward",
    input_forget: int = 0,
    layout: int = 0,
    n_outputs: int = 1,
) -> tuple[Any, ...]:
    """Return the operator's outputs, over the builder."""
    count, n = layer.directions_of(direction), composed.hidden_size(r)
    functions = layer.composed_activations(
        activations, ("Sigmoid", "Tanh", "Tanh"), count, activation_alpha, activation_beta, clip
    )

    def of_direction(d: int) -> tuple[Callable[[Any], Any], composed.Cell]:
        f, g, h_activation = functions[d]
        w_d, r_d, b_d, p_d = (composed.one_direction(v, d) for v in (w, r, b, p))
        r_turned = op("Transpose", r_d)
        peepholes = None if p_d is None else op("Split", p_d, axis=0, num_outputs=3, outputs=3)

        def project(x: Any) -> Any:
            y = op("MatMul", x, op("Transpose", w_d))
            if b_d is None:
                return y
            return add(y, composed.part(b_d, 0, 4 * n), composed.part(b_d, 4 * n, 8 * n))

        def peep(gate: Any, number: int, c: Any) -> Any:
            return gate if peepholes is None else add(gate, mul(peepholes[number], c))

        def step(x_t: Any, state: Sequence[Any]) -> tuple[Any, Sequence[Any]]:
            h, c = state
            gates = add(x_t, op("MatMul", h, r_turned))
            i, o, forget, candidate = op("Split", gates, axis=1, num_outputs=4, outputs=4)
            i = f(peep(i, 0, c))
            forget = sub(1, i) if input_forget else f(peep(forget, 2, c))
            c = add(mul(forget, c), mul(i, g(candidate)))
            h = mul(f(peep(o, 1, c)), h_activation(c))
            return h, (h, c)

        return project, step

    cells = [of_direction(d) for d in range(count)]
    initial = [initial_h, initial_c]
    return composed.run(x, sequence_lens, initial, cells, n, direction, layout)[:n_outputs]


OPERATORS = (OpDef("LSTM", _infer, lstm, compose=composed_lstm, vjp=through(composed_lstm)),)
