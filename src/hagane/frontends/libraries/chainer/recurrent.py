"""Recurrent layers over lists of sequences, and the functions behind recurrent cells."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from hagane.frontends.libraries.chainer.configuration import settings
from hagane.frontends.libraries.chainer.link import items_of
from hagane.frontends.libraries.chainer.links import layer
from hagane.frontends.libraries.chainer.operands import (
    computed_parts,
    floating,
    made,
    need_rank,
    same_dtype,
    same_shape,
    shape_of,
    variable,
    variables,
)
from hagane.frontends.libraries.chainer.operands import parameter as weight
from hagane.frontends.libraries.chainer.table import function
from hagane.frontends.libraries.table import View
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.values.values import (
    Many,
    Tensor,
    Value,
)
from hagane.ops.builder import op
from hagane.ops.functions.chainer import elementwise
from hagane.ops.functions.chainer import recurrent as functions
from hagane.ops.functions.layers import drawing
from hagane.ops.functions.tensors.parts import part
from hagane.symbolic import Dim, maximum

_WEIGHTS = {"LSTM": 8, "GRU": 6, "RNNTanh": 2, "RNNReLU": 2}


def _checked(t: Core, x: Tensor, in_size: Dim, what: str) -> None:
    shape = shape_of(t, x)
    if len(shape) != 2:
        t.fail("rank", f"expected sequences (length, features) in '{what}', got {t.show(x)}", x)
    if t.emit.differ(shape[1], in_size):
        t.fail("shape-mismatch", f"expected {in_size} features, got {shape[1]}: {t.show(x)}", x)


def _state(t: Core, state: Value, expected: tuple[Dim, ...], name: str) -> None:
    if state is None:
        return
    x = floating(t, state, name)
    own = shape_of(t, x)
    if len(own) != 3 or any(t.emit.differ(a, b) for a, b in zip(own, expected, strict=True)):
        text = ", ".join(map(str, expected))
        t.fail("shape-mismatch", f"expected '{name}' of shape ({text}), got {t.show(x)}", x)


@dataclass(frozen=True, slots=True)
class Stack:
    """Recurrent layers above each other.

    Attributes:
        kind: LSTM, GRU, RNNTanh or RNNReLU.
        ws: The weights of each direction of each layer.
        bs: Their biases.
        directions: 2 if the sequences are also read backwards.
        ratio: The share dropped between layers while training.
    """

    kind: str
    ws: Sequence[Sequence[Tensor]]
    bs: Sequence[Sequence[Tensor]]
    directions: int
    ratio: Value

    @property
    def operator(self) -> tuple[str, str]:
        """The operator, and the activation that RNN has."""
        if self.kind.startswith("RNN"):
            return "RNN", self.kind[3:].lower()
        return self.kind, "tanh"

    def drops(self, t: Core) -> bool:
        """Whether elements are dropped between layers."""
        return bool(settings(t)["train"] and len(self.ws) > self.directions and self.ratio != 0)

    def between(self, t: Core) -> Callable[[Any], Any]:
        """Return the function between layers."""
        if not self.drops(t):
            return lambda x: x
        seed, number = t.emit.draw()
        return lambda x: drawing.dropped(x, float(self.ratio), seed, number)

    def computes(self, t: Core) -> bool:
        """Whether operators compute it."""
        return not self.drops(t) or (t.emit.builds and t.emit.training is not None)

    def run(
        self, t: Core, over: Callable[..., Any], promised: Sequence[Any], *operands: Any
    ) -> list[Tensor]:
        """Return the result of a function over the builder for operands and the weights."""
        kind, activation = self.operator
        between = self.between(t)

        def compute(ws: Any, bs: Any, *given: Any) -> Any:
            weights = [functions.weights_of(*pair) for pair in zip(ws, bs, strict=True)]
            return over(kind, *given, weights, self.directions, activation, between)

        return computed_parts(t, promised, compute, self.ws, self.bs, *operands)


def steps(
    t: Core, xs: Value, states: dict[str, Value], in_size: Dim, out_size: Dim, stack: Stack
) -> tuple[list[Tensor], Value]:
    """Return the last states, and the outputs of every sequence.

    Args:
        t: The interpreter.
        xs: Sequences (length, in_size).
        states: The first states by name, each (layers * directions, batch, out_size) or None.
        in_size: Features of the input.
        out_size: Features of the states.
        stack: The layers.
    """
    width = out_size * stack.directions
    found = None if isinstance(xs, Many) else variables(t, xs, "xs")
    rows = xs.stacked if isinstance(xs, Many) else None
    if rows is not None and rows.shape:
        first = floating(t, t.emit.new(rows.dtype, rows.shape[1:], kind=rows.kind), "xs")
    else:
        first = floating(t, xs.element, "xs") if found is None else found[0]
    for x in found or [first]:
        _checked(t, floating(t, x, "xs"), in_size, "xs")
        same_dtype(t, first, x, "the sequences")
    expected = (len(stack.ws), xs.length if found is None else len(found), out_size)
    for name, state in states.items():
        _state(t, state, expected, name)
    last = [(first.dtype, expected)] * len(states)
    initial = [None if one is None else variable(t, one) for one in states.values()]
    if rows is not None and stack.computes(t):
        x = variable(t, rows)
        whole = (x.dtype, (*shape_of(t, x)[:2], width))
        *results, y = stack.run(t, functions.over_rows, [*last, whole], x, initial)
        return results, t.domain.many(y, Many(None, xs.length))
    if found is None or not stack.computes(t):
        kept = [made(t, "RNN", [first], *one) for one in last]
        ys = [made(t, "RNN", [x], x.dtype, (shape_of(t, x)[0], width)) for x in found or [first]]
        return kept, Many(ys[0], xs.length) if found is None else ys
    counts = [shape_of(t, x)[0] for x in found]
    outputs = [(x.dtype, (count, width)) for x, count in zip(found, counts, strict=True)]
    results = stack.run(
        t, functions.over_sequences, [*last, *outputs], found, maximum(*counts), initial
    )
    return results[: len(last)], results[len(last) :]


def _layers(kind: str, directions: int) -> None:
    def init(
        t: Core, n_layers: Value, in_size: Value, out_size: Value, dropout: Value, **_: Value
    ) -> dict[str, Value]:
        weights: list[list[Tensor]] = []
        for number, _way in itertools.product(range(n_layers), range(directions)):
            width = in_size if number == 0 else out_size * directions
            half = _WEIGHTS[kind] // 2
            weights.append(
                [weight(t, out_size, width if i < half else out_size) for i in range(2 * half)]
            )
        biases = [[weight(t, out_size) for _ in row] for row in weights]
        return {
            "n_layers": n_layers, "in_size": in_size, "out_size": out_size, "dropout": dropout,
            "ws": weights, "bs": biases, "n_weights": _WEIGHTS[kind],
        }  # fmt: skip

    def run(t: Core, self: View, states: dict[str, Value], xs: Value) -> tuple[list[Tensor], Value]:
        ws, bs = parameters(t, self, _WEIGHTS[kind])
        in_size = need_rank(t, ws[0][0], 2, "w0")[1]
        stack = Stack(kind, ws, bs, directions, self.dropout)
        return steps(t, xs, states, in_size, self.out_size, stack)

    def forward_lstm(t: Core, self: View, hx: Value, cx: Value, xs: Value) -> Value:
        (hy, cy), ys = run(t, self, {"hx": hx, "cx": cx}, xs)
        return (hy, cy, ys)

    def forward(t: Core, self: View, hx: Value, xs: Value) -> Value:
        (hy,), ys = run(t, self, {"hx": hx}, xs)
        return (hy, ys)

    name = f"NStep{'Bi' if directions == 2 else ''}{kind}"
    functions_ = {
        "init": staticmethod(init),
        "forward": staticmethod(forward_lstm if kind == "LSTM" else forward),
    }
    layer(name)(type(name, (), functions_))


def parameters(
    t: Core, self: View, count: int
) -> tuple[Sequence[Sequence[Tensor]], Sequence[Sequence[Tensor]]]:
    """Return weights and biases of each layer: those of the links in a real object."""
    if self.raw("ws") is not None and self.instance().host is None:
        return self.ws, self.bs
    rows = items_of(t, self.instance())
    return tuple(
        [[t.attribute(one, f"{letter}{i}") for i in range(count)] for one in rows]
        for letter in "wb"
    )  # type: ignore[return-value]


for _kind, _directions in itertools.product(_WEIGHTS, (1, 2)):
    _layers(_kind, _directions)


def _functions(kind: str, directions: int) -> None:
    """Register the functions over lists of the inputs of each time step."""

    def run(
        t: Core, xs: Value, states: dict[str, Value], stack: Stack
    ) -> tuple[list[Tensor], Value]:
        w = variable(t, stack.ws[0][0], "ws")
        out, in_size = need_rank(t, w, 2, "ws")
        hx = floating(t, states["hx"], "hx")
        found = [xs.element] if isinstance(xs, Many) else variables(t, xs, "xs")
        for x in found:
            _checked(t, variable(t, x), in_size, "xs")
        shape = (len(stack.ws), need_rank(t, hx, 3, "hx")[1], out)
        for name, state in states.items():
            _state(t, state, shape, name)
        width = out * directions
        last = [(hx.dtype, shape)] * len(states)
        outputs = [(x.dtype, (shape_of(t, x)[0], width)) for x in found]
        if isinstance(xs, Many) or not stack.computes(t):
            kept = [made(t, "RNN", [hx], *one) for one in last]
            ys = [made(t, "RNN", [x], *one) for x, one in zip(found, outputs, strict=True)]
            return kept, Many(ys[0], xs.length) if isinstance(xs, Many) else tuple(ys)
        initial = [variable(t, state) for state in states.values()]
        over = functions.over_steps
        results = stack.run(t, over, [*last, *outputs], found, initial)
        return results[: len(last)], tuple(results[len(last) :])

    def lstm_(
        t: Core, n_layers: Value, dropout_ratio: Value, hx: Value, cx: Value, ws: Value, bs: Value,
        xs: Value, **_: Value,
    ) -> Value:  # fmt: skip
        stack = Stack("LSTM", ws, bs, directions, dropout_ratio)
        (hy, cy), ys = run(t, xs, {"hx": hx, "cx": cx}, stack)
        return (hy, cy, ys)

    def gru(t: Core, n_layers: Value, dropout_ratio: Value, hx: Value, ws: Value, bs: Value,
            xs: Value, **_: Value) -> Value:  # fmt: skip
        (hy,), ys = run(t, xs, {"hx": hx}, Stack("GRU", ws, bs, directions, dropout_ratio))
        return (hy, ys)

    def rnn(t: Core, n_layers: Value, dropout_ratio: Value, hx: Value, ws: Value, bs: Value,
            xs: Value, activation: Value = "tanh", **_: Value) -> Value:  # fmt: skip
        names = {"tanh": "RNNTanh", "relu": "RNNReLU"}
        if activation not in names:
            t.fail("value", f"expected activation 'tanh' or 'relu', got {activation!r}")
        stack = Stack(names[activation], ws, bs, directions, dropout_ratio)
        (hy,), ys = run(t, xs, {"hx": hx}, stack)
        return (hy, ys)

    prefix = "n_step_bi" if directions == 2 else "n_step_"
    runs: dict[str, Callable[..., Value]] = {"lstm": lstm_, "gru": gru, "rnn": rnn}
    function(f"{prefix}{kind}")(runs[kind])


for _kind, _directions in itertools.product(("lstm", "gru", "rnn"), (1, 2)):
    _functions(_kind, _directions)


@function("lstm")
def lstm(t: Core, c_prev: Value, x: Value) -> Value:
    """Return the next cell and output of (batch, units) and gates (batch, 4 * units)."""
    cell, gates = floating(t, c_prev, "c_prev"), floating(t, x)
    same_dtype(t, cell, gates, "c_prev and x")
    before, own = shape_of(t, cell), shape_of(t, gates)
    if len(before) < 2 or len(before) != len(own):
        t.fail(
            "rank",
            f"expected (batch, units, ...) and (batch, 4 * units, ...), got {t.show(cell)} and "
            f"{t.show(gates)}",
            cell,
            gates,
        )
    if t.emit.differ(own[1], 4 * before[1]):
        t.fail(
            "shape-mismatch",
            f"expected {4 * before[1]} gates for the cell {t.show(cell)}, got {t.show(gates)}",
            cell,
            gates,
        )
    if not t.emit.holds(
        t.knowledge.less(own[0], before[0], strict=False), f"{own[0]} <= {before[0]}"
    ):
        t.fail("shape-mismatch", f"{t.show(gates)} does not fit {t.show(cell)}", cell, gates)
    if before[0] == own[0]:
        return tuple(computed_parts(t, [cell, cell], elementwise.lstm, cell, gates))
    promised = [(cell.dtype, before), (cell.dtype, (own[0], *before[1:]))]
    rest = partial(_lstm_of_first, own[0], before[0] - own[0])
    return tuple(computed_parts(t, promised, rest, cell, gates))


def _lstm_of_first(batch: Dim, others: Dim, cell: Any, gates: Any) -> tuple[Any, Any]:
    """Return the next cells, of which those behind the batch stay, and the outputs."""
    new, y = elementwise.lstm(part(cell, 0, 0, batch), gates)
    return op("Concat", new, part(cell, 0, batch, others), axis=0), y


@function("slstm")
def slstm(t: Core, c_prev1: Value, c_prev2: Value, x1: Value, x2: Value) -> Value:
    """Return the next cell and output of two cells with their gates."""
    given = []
    for cell, gates, number in ((c_prev1, x1, 1), (c_prev2, x2, 2)):
        c, x = floating(t, cell, f"c_prev{number}"), floating(t, gates, f"x{number}")
        same_dtype(t, c, x, "cells and gates")
        before, own = shape_of(t, c), shape_of(t, x)
        wanted = (before[0], 4 * before[1], *before[2:]) if len(before) > 1 else ()
        if len(own) != len(wanted) or any(map(t.emit.differ, own, wanted)):
            t.fail("shape-mismatch", f"{t.show(x)} are no gates for the cell {t.show(c)}", c, x)
        given.append((c, x))
    (first, x), (second, y) = given
    same_shape(t, first, second, "both cells")
    promised = [first, first]
    return tuple(computed_parts(t, promised, elementwise.slstm, first, second, x, y))


@function("tree_lstm")
def tree_lstm(t: Core, *inputs: Value) -> Value:
    """Return the next cell and output of the cells of children and gates."""
    cells = [floating(t, c, "c") for c in inputs[:-1]]
    gates = floating(t, inputs[-1], "x")
    before, own = shape_of(t, cells[0]), shape_of(t, gates)
    if t.emit.differ(own[1], (3 + len(cells)) * before[1]):
        t.fail("shape-mismatch", f"{t.show(gates)} does not fit {t.show(cells[0])}", gates)
    promised = [cells[0], cells[0]]
    return tuple(computed_parts(t, promised, elementwise.tree_lstm, cells, gates))
