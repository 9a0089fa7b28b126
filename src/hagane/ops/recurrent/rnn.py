"""RNN."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hagane.ops.definition import Array, OpDef
from hagane.ops.precision import widened
from hagane.ops.recurrent import layer


@widened
def _rnn(
    x: Array,
    w: Array,
    r: Array,
    b: Array | None = None,
    sequence_lens: Array | None = None,
    initial_h: Array | None = None,
    *,
    activation_alpha: Sequence[float] | None = None,
    activation_beta: Sequence[float] | None = None,
    activations: Sequence[str] | None = None,
    clip: float | None = None,
    direction: str = "forward",
    hidden_size: int | None = None,
    layout: int = 0,
    n_outputs: int = 1,
) -> tuple[Array, ...]:
    """H_t = f(X_t Wᵀ + H_{t-1} Rᵀ + Wb + Rb)."""
    count = layer.directions_of(direction)
    functions = layer.activations(
        activations, ("Tanh",), count, activation_alpha, activation_beta, clip
    )
    hidden = r.shape[2]
    bias = np.zeros((count, 2 * hidden), dtype=x.dtype) if b is None else b

    def cell(d: int) -> layer.Cell:
        total = bias[d, :hidden] + bias[d, hidden:]
        (f,) = functions[d]

        def step(x_t: Array, state: tuple[Array, ...]) -> tuple[Array, tuple[Array, ...]]:
            h = f(x_t @ w[d].T + state[0] @ r[d].T + total)
            return h, (h,)

        return step

    cells = [cell(d) for d in range(count)]
    y, states = layer.run(x, sequence_lens, [initial_h], cells, hidden, direction, layout)
    return (y, *states)[:n_outputs]


def _infer(ctx: Any) -> Sequence[Any]:
    return layer.infer(ctx, gates=1, n_states=1)


OPERATORS = (OpDef("RNN", _infer, _rnn),)
