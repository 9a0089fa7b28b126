"""GRU."""

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


def composed_gru(
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
    linear_before_reset: int = 0,
    n_outputs: int = 1,
) -> tuple[Any, ...]:
    """Return the operator's outputs, over the builder."""
    count, n = layer.directions_of(direction), composed.hidden_size(r)
    functions = layer.composed_activations(
        activations, ("Sigmoid", "Tanh"), count, activation_alpha, activation_beta, clip
    )

    def of_direction(d: int) -> tuple[Callable[[Any], Any], composed.Cell]:
        f, g = functions[d]
        w_d, r_d, b_d = (composed.one_direction(v, d) for v in (w, r, b))
        r_gates = op("Transpose", composed.part(r_d, 0, 2 * n, 0))
        r_candidate = op("Transpose", composed.part(r_d, 2 * n, 3 * n, 0))

        def project(x: Any) -> Any:
            y = op("MatMul", x, op("Transpose", w_d))
            return y if b_d is None else add(y, composed.part(b_d, 0, 3 * n))

        def with_bias(y: Any, first: int, last: int) -> Any:
            return y if b_d is None else add(y, composed.part(b_d, 3 * n + first, 3 * n + last))

        def step(x_t: Any, state: Sequence[Any]) -> tuple[Any, Sequence[Any]]:
            (h,) = state
            from_h = with_bias(op("MatMul", h, r_gates), 0, 2 * n)
            gates = f(add(composed.part(x_t, 0, 2 * n), from_h))
            update, reset = op("Split", gates, axis=1, num_outputs=2, outputs=2)
            if linear_before_reset:
                linear = with_bias(op("MatMul", h, r_candidate), 2 * n, 3 * n)
                candidate = mul(reset, linear)
            else:
                linear = op("MatMul", mul(reset, h), r_candidate)
                candidate = with_bias(linear, 2 * n, 3 * n)
            proposed = g(add(composed.part(x_t, 2 * n, 3 * n), candidate))
            new = add(mul(sub(1, update), proposed), mul(update, h))
            return new, (new,)

        return project, step

    cells = [of_direction(d) for d in range(count)]
    return composed.run(x, sequence_lens, [initial_h], cells, n, direction, layout)[:n_outputs]


OPERATORS = (OpDef("GRU", _infer, _gru, compose=composed_gru, vjp=through(composed_gru)),)
