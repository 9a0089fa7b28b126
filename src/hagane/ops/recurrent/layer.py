"""Common parts of recurrent layers: directions, layouts, lengths, activations, type rule."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from hagane.graph.types import Shape
from hagane.ops.builder import op
from hagane.ops.context import InferContext
from hagane.ops.definition import Array
from hagane.ops.elementwise.activation import sigmoid, softplus
from hagane.ops.recurrent import composed
from hagane.symbolic import Dim

Activation: TypeAlias = Callable[[Array], Array]
# One step of one direction: (input, states) -> (output, states), each (batch, hidden).
Cell: TypeAlias = Callable[[Array, tuple[Array, ...]], tuple[Array, tuple[Array, ...]]]

# Activations by lower-case name, as functions of (x, alpha, beta), with default alpha and beta
# (ONNX operator specification, LSTM: "activations").
_ACTIVATIONS: dict[str, tuple[Callable[[Array, float, float], Array], float, float]] = {
    "affine": (lambda x, a, b: a * x + b, 1.0, 0.0),
    "elu": (lambda x, a, b: np.where(x >= 0, x, a * np.expm1(np.minimum(x, 0))), 1.0, 0.0),
    "hardsigmoid": (lambda x, a, b: np.clip(a * x + b, 0, 1), 0.2, 0.5),
    "leakyrelu": (lambda x, a, b: np.where(x >= 0, x, a * x), 0.01, 0.0),
    "relu": (lambda x, a, b: np.maximum(x, 0), 0.0, 0.0),
    "scaledtanh": (lambda x, a, b: a * np.tanh(b * x), 1.0, 1.0),
    "sigmoid": (lambda x, a, b: sigmoid(x), 0.0, 0.0),
    "softplus": (lambda x, a, b: softplus(x), 0.0, 0.0),
    "softsign": (lambda x, a, b: x / (1 + np.abs(x)), 0.0, 0.0),
    "tanh": (lambda x, a, b: np.tanh(x), 0.0, 0.0),
    "thresholdedrelu": (lambda x, a, b: np.where(x > a, x, 0), 1.0, 0.0),
}


def activations(
    names: Sequence[str] | None,
    defaults: Sequence[str],
    directions: int,
    alphas: Sequence[float] | None,
    betas: Sequence[float] | None,
    clip: float | None,
) -> list[list[Activation]]:
    """Return the functions of each direction, in the operator's order."""

    def make(name: str, alpha: float, beta: float) -> Activation:
        return _clipped(_ACTIVATIONS[name][0], alpha, beta, clip)

    return _chosen(names, defaults, directions, alphas, betas, make)


def composed_activations(
    names: Sequence[str] | None,
    defaults: Sequence[str],
    directions: int,
    alphas: Sequence[float] | None,
    betas: Sequence[float] | None,
    clip: float | None,
) -> list[list[Callable[[Any], Any]]]:
    """Return the same functions over the builder."""

    def make(name: str, alpha: float, beta: float) -> Callable[[Any], Any]:
        def apply(x: Any) -> Any:
            bounded = x if clip is None else op("Clip", x, -clip, clip)
            return composed.ACTIVATIONS[name](bounded, alpha, beta)

        return apply

    return _chosen(names, defaults, directions, alphas, betas, make)


def named_activations(
    names: Sequence[str] | None,
    defaults: Sequence[str],
    directions: int,
    alphas: Sequence[float] | None,
    betas: Sequence[float] | None,
) -> list[list[tuple[str, float, float]]]:
    """Return the lower-case name, alpha and beta of the same functions."""
    return _chosen(names, defaults, directions, alphas, betas, lambda *function: function)


def _chosen(
    names: Sequence[str] | None,
    defaults: Sequence[str],
    directions: int,
    alphas: Sequence[float] | None,
    betas: Sequence[float] | None,
    make: Callable[[str, float, float], Any],
) -> list[list[Any]]:
    """Return the activations of the names, one list a direction.

    ``alphas`` and ``betas`` are handed out in order to the functions that take one.
    """
    chosen = list(names) if names else list(defaults) * directions
    if len(chosen) < len(defaults) * directions:
        chosen = (chosen * directions)[: len(defaults) * directions]
    alpha_values, beta_values = iter(alphas or ()), iter(betas or ())
    functions: list[Any] = []
    for name in chosen:
        try:
            _, alpha, beta = _ACTIVATIONS[name.lower()]
        except KeyError:
            raise ValueError(
                f"unknown activation '{name}'; known: {', '.join(sorted(_ACTIVATIONS))}"
            ) from None
        if name.lower() in _WITH_ALPHA:
            alpha = next(alpha_values, alpha)
        if name.lower() in _WITH_BETA:
            beta = next(beta_values, beta)
        functions.append(make(name.lower(), alpha, beta))
    count = len(defaults)
    return [functions[i * count : (i + 1) * count] for i in range(directions)]


_WITH_ALPHA = frozenset(
    {"affine", "elu", "hardsigmoid", "leakyrelu", "scaledtanh", "thresholdedrelu"}
)
_WITH_BETA = frozenset({"affine", "hardsigmoid", "scaledtanh"})


def _clipped(
    function: Callable[[Array, float, float], Array], alpha: float, beta: float, clip: float | None
) -> Activation:
    def apply(x: Array) -> Array:
        bounded = x if clip is None else np.clip(x, -clip, clip)
        return np.asarray(function(bounded, alpha, beta)).astype(x.dtype)

    return apply


def _within(lengths: Array, steps: int) -> bool:
    return bool(np.all((lengths >= 0) & (lengths <= steps)))


def run(
    x: Array,
    lengths: Array | None,
    initial: Sequence[Array | None],
    cells: Sequence[Cell],
    hidden: int,
    direction: str,
    layout: int,
    dtype: Any = None,
) -> tuple[Array, list[Array]]:
    """Run one cell a direction over the sequence.

    Args:
        x: (sequence, batch, size), or (batch, sequence, size) if ``layout`` is 1.
        lengths: (batch,), or None if all sequences are complete.
        initial: First states, (directions, batch, hidden), batch first if ``layout`` is 1.
        cells: One a direction.
        hidden: Size of the states.
        direction: forward, reverse or bidirectional.
        layout: 0 or 1.
        dtype: Element type of outputs and states, that of ``x`` if None.

    Returns:
        All outputs, (sequence, directions, batch, hidden), and the last states, in ``layout``;
        those of a sequence without elements are 0, as for ONNX Runtime.
    """
    if layout:
        x = x.transpose(1, 0, 2)
        initial = [None if h is None else h.transpose(1, 0, 2) for h in initial]
    steps, batch = x.shape[:2]
    dtype = x.dtype if dtype is None else dtype
    ends = np.full(batch, steps) if lengths is None else lengths
    if ends.shape != (batch,):
        raise ValueError(f"expected lengths of {batch} sequences, got shape {list(ends.shape)}")
    if not _within(ends, steps):
        raise ValueError(f"expected sequence lengths from 0 to {steps}, got {ends.tolist()}")
    outputs = np.zeros((steps, len(cells), batch, hidden), dtype=dtype)
    final = [np.zeros((len(cells), batch, hidden), dtype=dtype) for _ in initial]
    for d, cell in enumerate(cells):
        state = tuple(
            np.zeros((batch, hidden), dtype=dtype) if h is None else h[d] for h in initial
        )
        backwards = direction == "reverse" or d == 1
        order = range(steps - 1, -1, -1) if backwards else range(steps)
        for t in order:
            y, following = cell(x[t], state)
            active = (t < ends)[:, None]
            outputs[t, d] = np.where(active, y, 0)
            state = tuple(
                np.where(active, new, old) for new, old in zip(following, state, strict=True)
            )
        for last, value in zip(final, state, strict=True):
            last[d] = value if lengths is None else np.where((lengths > 0)[:, None], value, 0)
    if layout:
        return outputs.transpose(2, 0, 1, 3), [h.transpose(1, 0, 2) for h in final]
    return outputs, final


def directions_of(direction: str) -> int:
    """Return how many directions a layer has."""
    return 2 if direction == "bidirectional" else 1


def checked_directions(ctx: InferContext) -> int:
    """Return how many directions a node has, whose attribute has to be one of the three words."""
    direction = ctx.attr("direction")
    if direction not in ("forward", "reverse", "bidirectional"):
        ctx.fail(f"expected direction to be forward, reverse or bidirectional, got '{direction}'")
    return directions_of(direction)


def unify_optional(
    ctx: InferContext, gates: int, count: int, batch: Dim, hidden: Dim, state: Shape
) -> None:
    """Compare the sizes of a layer's biases, lengths, states and peepholes with the others."""
    wanted = {
        3: (count, hidden * (2 * gates)), 4: (batch,), 5: state, 6: state, 7: (count, hidden * 3),
    }  # fmt: skip
    for index, shape in wanted.items():
        if ctx.has(index):
            for left, right in zip(ctx.shape(index, rank=len(shape)), shape, strict=True):
                ctx.unify(left, right, f"expected '{ctx.name(index)}' to be of the sizes {shape}")


def infer(ctx: InferContext, gates: int, n_states: int) -> Sequence[Any]:
    """Infer a recurrent layer with ``gates`` gates and ``n_states`` states."""
    x, w, r = (ctx.shape(i, rank=3) for i in range(3))
    count = checked_directions(ctx)
    hidden = ctx.attr("hidden_size") or r[2]
    ctx.unify(w[0], count, f"expected {count} directions in '{ctx.name(1)}'")
    ctx.unify(w[1], hidden * gates, f"expected {gates} gates of {hidden} in '{ctx.name(1)}'")
    ctx.unify(w[2], x[2], f"expected '{ctx.name(1)}' to take inputs of size {x[2]}")
    ctx.unify(r[0], count, f"expected {count} directions in '{ctx.name(2)}'")
    ctx.unify(r[1], hidden * gates, f"expected {gates} gates of {hidden} in '{ctx.name(2)}'")
    ctx.unify(r[2], hidden, f"expected '{ctx.name(2)}' to take states of size {hidden}")
    batch_first = bool(ctx.attr("layout"))
    steps, batch = (x[1], x[0]) if batch_first else (x[0], x[1])
    lengths = ctx.constant(4) if ctx.has(4) else None
    if lengths is not None and isinstance(steps, int) and not _within(lengths, steps):
        ctx.fail(f"expected sequence lengths from 0 to {steps}, got {lengths.tolist()}")
    sequence = (batch, steps, count, hidden) if batch_first else (steps, count, batch, hidden)
    state = (batch, count, hidden) if batch_first else (count, batch, hidden)
    unify_optional(ctx, gates, count, batch, hidden, state)
    return [sequence, *[state] * n_states][: ctx.n_outputs]
