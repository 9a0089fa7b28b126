"""GRU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hagane.ops.definition import Array, OpDef
from hagane.ops.precision import widened
from hagane.ops.recurrent import layer


@widened
def _gru(
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
    linear_before_reset: int = 0,
    n_outputs: int = 1,
) -> tuple[Array, ...]:
    """Gates z, r, h (Cho et al., 2014; the reset after the product with linear_before_reset)."""
    count = layer.directions_of(direction)
    functions = layer.activations(
        activations, ("Sigmoid", "Tanh"), count, activation_alpha, activation_beta, clip
    )
    n = r.shape[2]
    bias = np.zeros((count, 6 * n), dtype=x.dtype) if b is None else b

    def cell(d: int) -> layer.Cell:
        f, g = functions[d]
        wb, rb = bias[d, : 3 * n], bias[d, 3 * n :]

        def step(x_t: Array, state: tuple[Array, ...]) -> tuple[Array, tuple[Array, ...]]:
            (h,) = state
            from_x = x_t @ w[d].T + wb
            gates = f(from_x[:, : 2 * n] + h @ r[d, : 2 * n].T + rb[: 2 * n])
            update, reset = gates[:, :n], gates[:, n:]
            if linear_before_reset:
                candidate = reset * (h @ r[d, 2 * n :].T + rb[2 * n :])
            else:
                candidate = (reset * h) @ r[d, 2 * n :].T + rb[2 * n :]
            new = (1 - update) * g(from_x[:, 2 * n :] + candidate) + update * h
            return new, (new,)

        return step

    cells = [cell(d) for d in range(count)]
    y, states = layer.run(x, sequence_lens, [initial_h], cells, n, direction, layout)
    return (y, *states)[:n_outputs]


def _infer(ctx: Any) -> Sequence[Any]:
    return layer.infer(ctx, gates=3, n_states=1)


OPERATORS = (OpDef("GRU", _infer, _gru),)
