"""RNN."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from hagane.ops.builder import op
from hagane.ops.definition import Array, OpDef
from hagane.ops.functions.numbers.elementary import add
from hagane.ops.precision import widened
from hagane.ops.recurrent import composed, layer
from hagane.ops.vjp import through


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


def composed_rnn(
    x: Any,
    w: Any,
    r: Any,
    b: Any = None,
    sequence_lens: Any = None,
    initial_h: Any = None,
    *,
    activation_alpha: Sequence[float] | None = None,
    activation_beta: Sequence[float] | None = None,
    activations: Sequence[str] | None = None,
    clip: float | None = None,
    direction: str = "forward",
    layout: int = 0,
    n_outputs: int = 1,
) -> tuple[Any, ...]:
    """Return the operator's outputs, over the builder."""
    count, n = layer.directions_of(direction), composed.hidden_size(r)
    functions = layer.composed_activations(
        activations, ("Tanh",), count, activation_alpha, activation_beta, clip
    )

    def of_direction(d: int) -> tuple[Callable[[Any], Any], composed.Cell]:
        (f,) = functions[d]
        w_d, r_d, b_d = (composed.one_direction(v, d) for v in (w, r, b))
        r_turned = op("Transpose", r_d)

        def project(x: Any) -> Any:
            y = op("MatMul", x, op("Transpose", w_d))
            if b_d is None:
                return y
            return add(y, composed.part(b_d, 0, n), composed.part(b_d, n, 2 * n))

        def step(x_t: Any, state: Sequence[Any]) -> tuple[Any, Sequence[Any]]:
            h = f(add(x_t, op("MatMul", state[0], r_turned)))
            return h, (h,)

        return project, step

    cells = [of_direction(d) for d in range(count)]
    return composed.run(x, sequence_lens, [initial_h], cells, n, direction, layout)[:n_outputs]


OPERATORS = (OpDef("RNN", _infer, _rnn, compose=composed_rnn, vjp=through(composed_rnn)),)
