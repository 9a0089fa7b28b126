"""LSTMSteps, LSTMStepsGradient: the part of an LSTM that goes from step to step, and its way back.

Operators of hagane's own, for training. Products of all steps with one matrix, such as those of the
inputs, are left to the operators around them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hagane.ops.builder import Call, op, scan, size_of
from hagane.ops.context import InferContext
from hagane.ops.definition import Array, OpDef
from hagane.ops.elementwise.activation import sigmoid
from hagane.ops.functions.numbers.elementary import add, mul, square, sub, unsqueeze
from hagane.ops.precision import composed_wide, widened
from hagane.ops.schema import Parameter, Schema
from hagane.ops.vjp import through

DOMAIN = "hagane"
STEPS, GRADIENT = "LSTMSteps", "LSTMStepsGradient"
_LAST = np.iinfo(np.int64).max


@widened
def _steps(p: Array, r: Array, h: Array, c: Array, *, reverse: int = 0) -> tuple[Array, ...]:
    y, cells = (np.empty((*p.shape[:2], h.shape[1]), p.dtype) for _ in range(2))
    gates = np.empty_like(p)
    for t in _order(len(p), reverse):
        i, o, f, g = np.split(p[t] + h @ r.T, 4, axis=1)
        i, o, f, g = sigmoid(i), sigmoid(o), sigmoid(f), np.tanh(g)
        c = f * c + i * g
        h = o * np.tanh(c)
        y[t], cells[t], gates[t] = h, c, np.concatenate([i, o, f, g], axis=1)
    return y, cells, gates


@widened
def _gradient(
    gates: Array,
    cells: Array,
    c0: Array,
    r: Array,
    gy: Array,
    gc: Array | None = None,
    *,
    reverse: int = 0,
) -> tuple[Array, ...]:
    gp, dh, dc = np.empty_like(gates), np.zeros_like(c0), np.zeros_like(c0)
    before = -1 if not reverse else 1
    for t in _order(len(gates), not reverse):
        i, o, f, g = np.split(gates[t], 4, axis=1)
        last = cells[t + before] if 0 <= t + before < len(cells) else c0
        bent = np.tanh(cells[t])
        dh = dh + gy[t]
        dc = dc + dh * o * (1 - bent**2)
        if gc is not None:
            dc = dc + gc[t]
        parts = (dc * g * i * (1 - i), dh * bent * o * (1 - o), dc * last * f * (1 - f))
        gp[t] = np.concatenate([*parts, dc * i * (1 - g**2)], axis=1)
        dh, dc = gp[t] @ r, dc * f
    return gp, dh, dc


def _order(count: int, backwards: int | bool) -> range:
    return range(count - 1, -1, -1) if backwards else range(count)


def _infer_steps(ctx: InferContext) -> Sequence[Any]:
    p, r, h, c = (ctx.shape(i, rank=2 + (i == 0)) for i in range(4))
    hidden = r[1]
    ctx.unify(r[0], hidden * 4, f"expected 4 gates of {hidden} in '{ctx.name(1)}'")
    ctx.unify(p[2], hidden * 4, f"expected 4 gates of {hidden} in '{ctx.name(0)}'")
    for number, state in ((2, h), (3, c)):
        ctx.unify(state[0], p[1], f"expected '{ctx.name(number)}' to be of the batch of {p[1]}")
        ctx.unify(state[1], hidden, f"expected '{ctx.name(number)}' to hold states of {hidden}")
    return [(*p[:2], hidden), (*p[:2], hidden), p][: ctx.n_outputs]


def _infer_gradient(ctx: InferContext) -> Sequence[Any]:
    gates, state = ctx.shape(0, rank=3), ctx.shape(2, rank=2)
    ctx.unify(gates[2], state[1] * 4, f"expected 4 gates of {state[1]} in '{ctx.name(0)}'")
    return [gates, state, state][: ctx.n_outputs]


def _four(x: Any) -> Any:
    return op("Split", x, axis=1, num_outputs=4, outputs=4)


@composed_wide
def _composed_steps(p: Any, r: Any, h: Any, c: Any, *, reverse: int = 0) -> tuple[Any, ...]:
    turned = op("Transpose", r, perm=[1, 0])

    def step(h: Any, c: Any, projected: Any) -> Sequence[Any]:
        i, o, f, g = _four(add(projected, op("MatMul", h, turned)))
        i, o, f, g = (*(op("Sigmoid", gate) for gate in (i, o, f)), op("Tanh", g))
        c = add(mul(f, c), mul(i, g))
        h = mul(o, op("Tanh", c))
        return h, c, h, c, op("Concat", i, o, f, g, axis=1)

    return scan([h, c], [p], step, stacked=3, reverse=bool(reverse))[2:]


@composed_wide
def _composed_gradient(
    gates: Any, cells: Any, c0: Any, r: Any, gy: Any, gc: Any = None, *, reverse: int = 0
) -> tuple[Any, ...]:
    def step(dh: Any, dc: Any, gates: Any, cell: Any, last: Any, *given: Any) -> Sequence[Any]:
        (i, o, f, g), bent = _four(gates), op("Tanh", cell)
        dh = add(dh, given[0])
        dc = add(dc, mul(dh, o, sub(1, square(bent))), *given[1:])
        parts = [
            mul(dc, g, i, sub(1, i)), mul(dh, bent, o, sub(1, o)), mul(dc, last, f, sub(1, f)),
            mul(dc, i, sub(1, square(g))),
        ]  # fmt: skip
        gp = op("Concat", *parts, axis=1)
        return op("MatMul", gp, r), mul(dc, f), gp

    walked = [gates, cells, _before(cells, c0, reverse), gy, *([] if gc is None else [gc])]
    zeros = mul(c0, 0)
    dh, dc, gp = scan([zeros, zeros], walked, step, stacked=1, reverse=not reverse)
    return gp, dh, dc


def _before(steps: Any, first: Any, reverse: int) -> Any:
    """Return the state before each step, of those after it."""
    first = unsqueeze(first, [0])
    if reverse:
        return op("Concat", op("Slice", steps, [1], [_LAST], [0]), first, axis=0)
    return op("Concat", first, op("Slice", steps, [0], [-1], [0]), axis=0)


def _vjp(call: Call, gradients: Sequence[Any]) -> Sequence[Any]:
    (_, r, h0, c0), (y, cells, gates) = call.inputs, call.outputs
    gy, gc, of_gates = gradients
    if of_gates is not None:
        return through(_composed_steps)(call, gradients)
    reverse = call.attr("reverse") or 0
    gy = mul(y, 0) if gy is None else gy
    gp, gh0, gc0 = op(
        GRADIENT, gates, cells, c0, r, gy, gc, reverse=reverse, domain=DOMAIN, outputs=3
    )

    def of_weight() -> Any:
        rows = op("Reshape", gp, [-1, 4 * hidden])
        before = op("Reshape", _before(y, h0, reverse), [-1, hidden])
        return op("MatMul", op("Transpose", rows, perm=[1, 0]), before)

    hidden = size_of(r, 1)
    return [gp, of_weight, gh0, gc0]


def _schema(inputs: str, outputs: str, optional: int) -> Schema:
    # (``contrib.declare`` would import all operators there.)
    import onnx_ir as ir

    floats = frozenset(f"tensor({name})" for name in ("float16", "bfloat16", "float", "double"))
    names = inputs.split()
    taken = tuple(
        Parameter(name, "T", floats, n >= len(names) - optional, False, True)
        for n, name in enumerate(names)
    )
    made = tuple(Parameter(name, "T", floats, False, False, True) for name in outputs.split())
    return Schema(
        inputs=taken,
        outputs=made,
        min_inputs=len(taken) - optional,
        max_inputs=len(taken),
        min_outputs=1,
        max_outputs=len(made),
        defaults={"reverse": 0},
        attribute_types={"reverse": ir.AttributeType.INT},
        required=frozenset(),
    )


OPERATORS = (
    OpDef(STEPS, _infer_steps, _steps, domain=DOMAIN, vjp=_vjp, compose=_composed_steps),
    OpDef(
        GRADIENT, _infer_gradient, _gradient, domain=DOMAIN, vjp=through(_composed_gradient),
        compose=_composed_gradient,
    ),
)  # fmt: skip
SCHEMAS = {
    (DOMAIN, STEPS): _schema("P R H0 C0", "Y C G", 0),
    (DOMAIN, GRADIENT): _schema("G C C0 R GY GC", "GP GH0 GC0", 1),
}
