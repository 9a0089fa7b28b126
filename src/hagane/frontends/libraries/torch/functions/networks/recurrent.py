"""Recurrent layers of PyTorch."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import onnx_ir as ir

from hagane.frontends.libraries.computing import built
from hagane.frontends.libraries.table import View
from hagane.frontends.libraries.torch.functions.networks.packing import counts_of, packed
from hagane.frontends.libraries.torch.layers.layer import weight
from hagane.frontends.libraries.torch.operands import (
    need_float,
    need_tensor,
    same_dtype,
    shape_of,
)
from hagane.frontends.libraries.torch.table import TORCH
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.values.objects import Instance
from hagane.frontends.python.values.values import (
    Many,
    Tensor,
    Value,
)
from hagane.ops.builder import interpreting, op
from hagane.ops.functions.layers.drawing import dropped
from hagane.ops.functions.layers.recurrent import (
    Weights,
    projected_layer,
    recurrent_layer,
    recurrent_step,
    without_batch,
)
from hagane.ops.functions.numbers.elementary import cast, transpose, unsqueeze
from hagane.ops.functions.tensors.padding import padded_around
from hagane.ops.functions.tensors.parts import part
from hagane.symbolic import Dim, maximum


@TORCH.function("nn.utils.rnn.pad_sequence")
def pad_sequence(
    t: Core, sequences: Value, batch_first: Value = False, padding_value: Value = 0.0,
    padding_side: Value = "right",
) -> Tensor:  # fmt: skip
    """Return sequences of different lengths padded to the longest."""
    if isinstance(sequences, Many):
        x, count, longest = sequences.element, sequences.length, shape_of(t, sequences.element)[0]
    else:
        x, count = sequences[0], len(sequences)
        for other in sequences:
            a, b = shape_of(t, x)[1:], shape_of(t, other)[1:]
            if len(a) != len(b) or any(map(t.emit.differ, a, b)):
                t.fail(
                    "shape-mismatch",
                    "pad_sequence expects sequences that differ in their first axis only, got "
                    f"{t.show(x)} and {t.show(other)}",
                    x,
                    other,
                )
        longest = maximum(*(shape_of(t, s)[0] for s in sequences))
    lead = (count, longest) if batch_first else (longest, count)
    made = (x.dtype, (*lead, *shape_of(t, x)[1:]))
    same = not isinstance(sequences, Many) and all(s.dtype == x.dtype for s in sequences)
    if not same or padding_side != "right" or not isinstance(padding_value, int | float):
        return t.emit.typed("PadSequence", [x], *made)
    place = 0 if batch_first else 1

    def padded(*rows: Tensor) -> Any:
        found = []
        for row in rows:
            rank = len(shape_of(t, row))
            amounts = [0] * rank + [longest - shape_of(t, row)[0]] + [0] * (rank - 1)
            wide = padded_around(row, amounts, padding_value, "constant")
            found.append(op("Unsqueeze", wide, [place]))
        return op("Concat", *found, axis=place) if len(found) > 1 else found[0]

    return built(t, made, padded, *sequences)


def layer_init(
    t: Core, kind: str, input_size: Value, hidden_size: Value, num_layers: Value, bias: Value,
    batch_first: Value, dropout: Value, bidirectional: Value, proj_size: Value = 0,
    device: Value = None, dtype: Value = None,
) -> dict[str, Value]:  # fmt: skip
    """Return the attributes of a recurrent layer."""
    if isinstance(proj_size, int) and isinstance(hidden_size, int) and proj_size >= hidden_size:
        t.fail("value", f"expected proj_size below hidden_size ({hidden_size}), got {proj_size}")
    return {
        "mode": kind, "input_size": input_size, "hidden_size": hidden_size,
        "num_layers": num_layers, "bias": bias, "batch_first": batch_first, "dropout": dropout,
        "bidirectional": bidirectional, "proj_size": proj_size,
        **{
            f"{name}_l{number}{end}": weight(t, *shape, device=device, dtype=dtype)
            for number in range(num_layers if isinstance(num_layers, int) else 1)
            for end in (("", "_reverse") if bidirectional else ("",))
            for name, shape in _weight_shapes(
                kind,
                (proj_size or hidden_size) * (2 if bidirectional else 1) if number else input_size,
                hidden_size, bias, proj_size,
            ).items()
        },
    }  # fmt: skip


def _weight_shapes(
    kind: str, inputs: Dim, hidden: Dim, bias: Value, projected: Dim = 0
) -> dict[str, tuple[Dim, ...]]:
    """Return the shapes of the weights of one layer in one direction, in their order."""
    gates = {"LSTM": 4, "GRU": 3}.get(kind, 1) * hidden
    shapes: dict[str, tuple[Dim, ...]] = {
        "weight_ih": (gates, inputs), "weight_hh": (gates, projected or hidden),
    }  # fmt: skip
    if bias:
        shapes |= {"bias_ih": (gates,), "bias_hh": (gates,)}
    return shapes | ({"weight_hr": (projected, hidden)} if projected else {})


def layer_forward(t: Core, self: View, input: Value, hx: Value) -> Value:
    """Return the outputs of all steps and the last states."""
    if isinstance(input, Instance):
        content = t.heap[input]
        lengths = counts_of(t, content["lengths"])
        out, last = _steps(t, self, content["padded"], hx, content["first"], lengths)
        return (packed(t, out, content["lengths"], content["first"], content["sorted"]), last)
    x = need_tensor(t, input, "input")
    return _steps(t, self, x, hx, bool(self.batch_first))


def _steps(
    t: Core, self: View, x: Tensor, hx: Value, batch_first: bool, lengths: Tensor | None = None
) -> tuple[Tensor, Value]:
    need_float(t, x, "input")
    same_dtype(t, x, self.weight_ih_l0, "input and weight")
    shape = shape_of(t, x)
    if len(shape) not in (2, 3):
        order = "batch, length" if batch_first else "length, batch"
        t.fail("rank", f"expected ({order}, features), got {t.show(x)}", x)
    if t.emit.differ(shape[-1], self.input_size):
        t.fail(
            "shape-mismatch",
            f"expected {self.input_size} features in the last axis, got {shape[-1]}: {t.show(x)}",
            x,
        )
    length = shape[1] if batch_first and len(shape) == 3 else shape[0]
    if not t.emit.builds and not t.emit.may_reach(0, length, f"steps of {self.mode}"):
        t.fail("value", f"expected at least one step, got {t.show(x)}", x)
    directions = 2 if self.bidirectional else 1
    out = self.proj_size or self.hidden_size
    batch = () if len(shape) == 2 else (shape[0] if batch_first else shape[1],)
    states = (self.num_layers * directions, *batch, out)
    cells = (self.num_layers * directions, *batch, self.hidden_size)
    drawn = _drops(self) and (t.emit.training is None or not t.emit.builds)
    if (lengths is None or t.emit.builds) and not drawn and _is_computed(self):
        if self.mode == "LSTM":
            _check_pair(t, hx, states, cells)
        else:
            _check_state(t, hx, states, "hx")
        return _computed_steps(t, self, x, hx, batch_first, directions, lengths)
    if self.mode == "LSTM":
        _check_pair(t, hx, states, cells)
        given = [x, *(one for one in hx or () if isinstance(one, Tensor))]
        last: Value = tuple(t.emit.typed("LSTM", given, x.dtype, s) for s in (states, cells))
    else:
        _check_state(t, hx, states, "hx")
        given = [x, *([hx] if isinstance(hx, Tensor) else [])]
        last = t.emit.typed(self.mode, given, x.dtype, states)
    y = t.emit.typed(self.mode, given, x.dtype, (*shape[:-1], out * directions))
    return y, last


def _is_computed(self: View) -> bool:
    """Whether operators compute a layer, that of a real model."""
    return self.instance().host is not None


def _drops(self: View) -> bool:
    return bool(self.dropout and self.num_layers > 1 and self.get("training", True))


def _computed_steps(
    t: Core,
    self: View,
    x: Tensor,
    hx: Value,
    batch_first: bool,
    directions: int,
    lengths: Tensor | None,
) -> tuple[Tensor, Value]:
    """Return the results of a layer: the outputs of all steps, and the last states."""
    kind = _kind(self)
    names = ("h", "c") if kind == "LSTM" else ("h",)
    given = [] if hx is None else list(hx) if kind == "LSTM" else [hx]
    flat = len(shape_of(t, x)) == 2
    with interpreting(t.emit):
        steps = x
        if flat:
            steps = unsqueeze(x, [1])
            given = [unsqueeze(state, [1]) for state in given]
        elif batch_first:
            steps = transpose(x, [1, 0, 2])
        found: dict[str, list[Value]] = {name: [] for name in names}
        for number in range(self.num_layers):
            rows = [_weights(self, number, back) for back in range(directions)]
            own = [part(state, 0, number * directions, directions) for state in given]
            if number and _drops(self):
                seed, draw = t.emit.draw()
                steps = dropped(steps, float(self.dropout), seed, draw)
            if self.proj_size:
                steps, last = projected_layer(
                    steps, rows, self.hidden_size, self.proj_size, own, lengths
                )
            else:
                steps, last = recurrent_layer(
                    kind,
                    steps,
                    rows,
                    self.hidden_size,
                    own,
                    self.get("nonlinearity", "tanh"),
                    None if lengths is None else cast(lengths, ir.DataType.INT32),
                )
            for name, state in zip(names, last, strict=True):
                found[name].append(state)
        states = [
            op("Concat", *each, axis=0) if len(each) > 1 else each[0] for each in found.values()
        ]
        if flat:
            steps, *states = without_batch([steps, *states], 1)
        elif batch_first:
            steps = transpose(steps, [1, 0, 2])
    return steps, tuple(states) if kind == "LSTM" else states[0]


def _kind(self: View) -> str:
    """Return the kind of a layer; real ones of kind RNN name their nonlinearity with it."""
    return str(self.mode).partition("_")[0]


def _weights(self: View, number: int, back: int) -> Weights:
    end = f"_l{number}{'_reverse' if back else ''}"
    names = ["weight_ih", "weight_hh", *(("bias_ih", "bias_hh") if self.bias else ())]
    given = [getattr(self, name + end) for name in names]
    projection = getattr(self, f"weight_hr{end}") if self.proj_size else None
    made = Weights(*given)
    return made if projection is None else replace(made, projection=projection)


def _check_pair(t: Core, hx: Value, states: tuple[Dim, ...], cells: tuple[Dim, ...]) -> None:
    if hx is None:
        return
    if not isinstance(hx, tuple | list) or len(hx) != 2:
        t.fail("type", f"expected the states as a pair (h, c), got {t.show(t.wrap(hx))}")
    _check_state(t, hx[0], states, "h_0")
    _check_state(t, hx[1], cells, "c_0")


def _check_state(t: Core, state: Value, expected: tuple[Dim, ...], name: str) -> None:
    if state is None:
        return
    x = need_tensor(t, state, name)
    shape = shape_of(t, x)
    if len(shape) != len(expected) or any(
        t.emit.differ(a, b) for a, b in zip(shape, expected, strict=True)
    ):
        text = ", ".join(map(str, expected))
        t.fail("shape-mismatch", f"expected '{name}' of shape ({text}), got {t.show(x)}", x)


def cell_init(
    t: Core, kind: str, input_size: Value, hidden_size: Value, bias: Value,
    device: Value = None, dtype: Value = None,
) -> dict[str, Value]:  # fmt: skip
    """Return the attributes of a recurrent cell."""
    missing = {} if bias else {"bias_ih": None, "bias_hh": None}
    return {
        "input_size": input_size, "hidden_size": hidden_size, "bias": bias,
        **{
            name: weight(t, *shape, device=device, dtype=dtype)
            for name, shape in _weight_shapes(kind, input_size, hidden_size, bias).items()
        },
        **missing,
    }  # fmt: skip


def cell_forward(t: Core, kind: str, self: View, input: Value, hx: Value) -> Value:
    """Return the next state: one tensor, or (h, c)."""
    x = need_tensor(t, input, "input")
    need_float(t, x, "input")
    same_dtype(t, x, self.weight_ih, "input and weight")
    shape = shape_of(t, x)
    if len(shape) not in (1, 2):
        t.fail("rank", f"a cell takes (batch, features), got {t.show(x)}", x)
    if t.emit.differ(shape[-1], self.input_size):
        t.fail(
            "shape-mismatch",
            f"expected {self.input_size} features in the last axis, got {t.show(x)}",
            x,
        )
    state = (*shape[:-1], self.hidden_size)
    if self.instance().host is not None:
        return _computed_cell(t, kind, self, x, hx, state)
    if kind == "LSTM":
        _check_pair(t, hx, state, state)
        return tuple(t.emit.typed("LSTM", [x], x.dtype, state) for _ in range(2))
    _check_state(t, hx, state, "hx")
    return t.emit.typed(kind, [x], x.dtype, state)


def _computed_cell(
    t: Core, kind: str, self: View, x: Tensor, hx: Value, state: tuple[Dim, ...]
) -> Value:
    if kind == "LSTM":
        _check_pair(t, hx, state, state)
    else:
        _check_state(t, hx, state, "hx")
    given = [] if hx is None else list(hx) if kind == "LSTM" else [hx]
    biases = (self.bias_ih, self.bias_hh) if self.bias else ()
    weights = Weights(self.weight_ih, self.weight_hh, *biases)
    with interpreting(t.emit):
        made = recurrent_step(
            kind, x, weights, self.hidden_size, given, self.get("nonlinearity", "tanh")
        )
    return tuple(made) if kind == "LSTM" else made[0]
