"""LSTM."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hagane.ops.definition import Array, OpDef
from hagane.ops.precision import widened
from hagane.ops.recurrent import layer


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


OPERATORS = (OpDef("LSTM", _infer, lstm),)
