"""Recurrent layers over lists of sequences, and the functions behind recurrent cells."""

from __future__ import annotations

import itertools

from hagane.frontends.libraries.chainer.links import layer
from hagane.frontends.libraries.chainer.operands import (
    floating,
    made,
    need_rank,
    same_dtype,
    shape_of,
    variable,
    variables,
)
from hagane.frontends.libraries.chainer.operands import parameter as weight
from hagane.frontends.libraries.chainer.table import function
from hagane.frontends.libraries.table import View
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.values.values import Many, Tensor, Value
from hagane.symbolic import Dim

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


def steps(
    t: Core, xs: Value, states: dict[str, Value], in_size: Dim, out_size: Dim, n_layers: int,
    directions: int,
) -> tuple[list[Tensor], Value]:  # fmt: skip
    """Return the last states, and the outputs of every sequence.

    Args:
        t: The interpreter.
        xs: Sequences (length, in_size).
        states: The first states by name, each (layers * directions, batch, out_size) or None.
        in_size: Features of the input.
        out_size: Features of the states.
        n_layers: Layers above each other.
        directions: 2 if the sequences are also read backwards.
    """
    first, batch, outputs = _outputs(t, xs, in_size, out_size * directions)
    expected = (n_layers * directions, batch, out_size)
    for name, state in states.items():
        _state(t, state, expected, name)
    last = [made(t, "RNN", [first], first.dtype, expected) for _ in states]
    return last, outputs


def _outputs(t: Core, xs: Value, in_size: Dim, width: Dim) -> tuple[Tensor, Dim, Value]:
    """Return one of the sequences, how many there are, and their outputs."""
    if isinstance(xs, Many):
        first = floating(t, xs.element, "xs")
        _checked(t, first, in_size, "xs")
        rule = xs.at
        y = made(t, "RNN", [first], first.dtype, (shape_of(t, first)[0], width))
        del rule
        return first, xs.length, Many(y, xs.length)
    found = variables(t, xs, "xs")
    for x in found:
        _checked(t, floating(t, x, "xs"), in_size, "xs")
        same_dtype(t, found[0], x, "the sequences")
    ys = [made(t, "RNN", [x], x.dtype, (shape_of(t, x)[0], width)) for x in found]
    return found[0], len(found), ys


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
        return steps(t, xs, states, self.in_size, self.out_size, self.n_layers, directions)

    def forward_lstm(t: Core, self: View, hx: Value, cx: Value, xs: Value) -> Value:
        (hy, cy), ys = run(t, self, {"hx": hx, "cx": cx}, xs)
        return (hy, cy, ys)

    def forward(t: Core, self: View, hx: Value, xs: Value) -> Value:
        (hy,), ys = run(t, self, {"hx": hx}, xs)
        return (hy, ys)

    name = f"NStep{'Bi' if directions == 2 else ''}{kind}"
    functions = {
        "init": staticmethod(init),
        "forward": staticmethod(forward_lstm if kind == "LSTM" else forward),
    }
    layer(name)(type(name, (), functions))


for _kind, _directions in itertools.product(_WEIGHTS, (1, 2)):
    _layers(_kind, _directions)


def _functions(kind: str, directions: int) -> None:
    """Register the functions over lists of the inputs of each time step."""

    def run(
        t: Core, n_layers: Value, ws: Value, xs: Value, states: dict[str, Value]
    ) -> tuple[list[Tensor], Value]:
        w = variable(t, ws[0][0], "ws")
        out, in_size = need_rank(t, w, 2, "ws")
        hx = floating(t, states["hx"], "hx")
        found = [xs.element] if isinstance(xs, Many) else variables(t, xs, "xs")
        for x in found:
            _checked(t, variable(t, x), in_size, "xs")
        shape = (n_layers * directions, need_rank(t, hx, 3, "hx")[1], out)
        for name, state in states.items():
            _state(t, state, shape, name)
        width = out * directions
        ys = [made(t, "RNN", [x], x.dtype, (shape_of(t, x)[0], width)) for x in found]
        outputs: Value = Many(ys[0], xs.length) if isinstance(xs, Many) else tuple(ys)
        return [made(t, "RNN", [hx], hx.dtype, shape) for _ in states], outputs

    def lstm_(
        t: Core,
        n_layers: Value,
        dropout_ratio: Value,
        hx: Value,
        cx: Value,
        ws: Value,
        bs: Value,
        xs: Value,
        **_: Value,
    ) -> Value:
        (hy, cy), ys = run(t, n_layers, ws, xs, {"hx": hx, "cx": cx})
        return (hy, cy, ys)

    def other(t: Core, n_layers: Value, dropout_ratio: Value, hx: Value, ws: Value, bs: Value,
              xs: Value, **_: Value) -> Value:  # fmt: skip
        (hy,), ys = run(t, n_layers, ws, xs, {"hx": hx})
        return (hy, ys)

    prefix = "n_step_bi" if directions == 2 else "n_step_"
    function(f"{prefix}{kind}")(lstm_ if kind == "lstm" else other)


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
    next_cell = made(t, "LSTM", [cell, gates], cell.dtype, before)
    return (next_cell, made(t, "LSTM", [cell, gates], cell.dtype, (own[0], *before[1:])))


@function("slstm")
def slstm(t: Core, c_prev1: Value, c_prev2: Value, x1: Value, x2: Value) -> Value:
    """Return the next cell and output of two cells with their gates."""
    lstm(t, c_prev2, x2)
    return lstm(t, c_prev1, x1)


@function("tree_lstm")
def tree_lstm(t: Core, *inputs: Value) -> Value:
    """Return the next cell and output of the cells of children and gates."""
    cells = [floating(t, c, "c") for c in inputs[:-1]]
    gates = floating(t, inputs[-1], "x")
    before, own = shape_of(t, cells[0]), shape_of(t, gates)
    if t.emit.differ(own[1], (3 + len(cells)) * before[1]):
        t.fail("shape-mismatch", f"{t.show(gates)} does not fit {t.show(cells[0])}", gates)
    y = made(t, "LSTM", [cells[0], gates], cells[0].dtype, before)
    return (y, y)
