"""LSTM, GRU and RNN: one task a direction and sequence, all steps within."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.native.kernels.elementwise_loops import emit_elementwise
from hagane.native.kernels.expression import Apply, Leaf
from hagane.native.kernels.kernel import Body, work_of
from hagane.native.kernels.packing import Packing
from hagane.native.kernels.tensor import Buffer, Tensor
from hagane.native.lowering.facts import NotNative
from hagane.native.lowering.state import Lowering, Rule
from hagane.native.rules.varying import lower_varying
from hagane.ops.definition import Array

_DEFAULTS = {"LSTM": ["Sigmoid", "Tanh", "Tanh"], "GRU": ["Sigmoid", "Tanh"], "RNN": ["Tanh"]}
_GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
# Activations at the end of a step of an RNN.
_STEPS = {
    "Relu": "v_max2(v_set1(0.f), v_load(g + j))",
    "Sigmoid": "v_sigmoid(v_load(g + j))",
    "Tanh": "v_tanh(v_load(g + j))",
}


def _check(low: Lowering, node: ir.Node, attributes: dict[str, Any], directions: int) -> None:
    if not low.facts.is_float(node.inputs[0]):
        raise NotNative(f"element type {low.facts.dtype(node.inputs[0])}")
    activations = list(attributes.get("activations") or ())
    if node.op_type == "RNN":
        usual = len(set(activations)) <= 1 and set(activations) <= set(_STEPS)
    else:
        usual = activations in ([], _DEFAULTS[node.op_type] * directions)
    if not usual:
        raise NotNative(f"activations {', '.join(activations)}")
    if attributes.get("clip") is not None or attributes.get("layout", 0) != 0:
        raise NotNative("clipped cells, or batches first")
    if attributes.get("input_forget"):
        raise NotNative("coupled gates")
    if len(node.inputs) > 7 and node.inputs[7] is not None:
        raise NotNative("peepholes")


def _input(node: ir.Node, index: int) -> ir.Value | None:
    return node.inputs[index] if len(node.inputs) > index else None


def _lower_varying(low: Lowering, node: ir.Node) -> None:
    """Lower a layer whose weights are not constant; the two halves of its bias are summed first."""
    weights: dict[ir.Value, Tensor | None] = {}
    for value in node.inputs[1:3]:
        assert value is not None
        weights[value] = None
    bias = _input(node, 3)
    if bias is not None:
        if node.op_type == "GRU" and low.facts.attributes(node).get("linear_before_reset", 0):
            raise NotNative("biases that are not constant, one of them within a reset")
        whole = low.forms.contiguous(bias)
        directions, length = low.facts.fixed_shape(bias)
        half = replace(whole, shape=(directions, length // 2))
        other = replace(half, offset=whole.offset + length // 2)
        total = low.recorder.new(f"{bias.name} summed", whole.dtype, (directions, length // 2))
        added = Apply("({0} + {1})", (Leaf(half), Leaf(other)), whole.dtype)
        emit_elementwise(low.recorder, f"sum '{bias.name}'", added, total)
        weights[bias] = total
    lower_varying(low, node, lower_recurrent, weights)


def lower_recurrent(low: Lowering, node: ir.Node) -> None:
    """Lower LSTM, GRU and RNN; weights that are not constant are packed when they run."""
    attributes = low.facts.attributes(node)
    weight, recurrence = low.facts.constant(node.inputs[1]), low.facts.constant(node.inputs[2])
    bias = low.facts.constant(_input(node, 3))
    if weight is None or recurrence is None or (_input(node, 3) is not None and bias is None):
        _lower_varying(low, node)
        return
    directions, rows, depth = weight.shape
    _check(low, node, attributes, directions)
    gates = _GATES[node.op_type]
    hidden = rows // gates
    after = bool(attributes.get("linear_before_reset", 0))
    if bias is None:
        bias = np.zeros((directions, 2 * rows), np.float32)
    lanes = low.facts.level.lanes
    wide = -(-hidden // lanes) * lanes  # each gate starts at a whole vector

    def buffer(name: str, array: Array) -> Buffer:
        size = directions * array.shape[2] * gates * wide * 4
        return low.recorder.weight((node, name), Packing(pack_gates, (array, gates, wide)), size)

    first, second = bias[:, :rows, None], bias[:, rows:, None]
    # A GRU that resets after the product needs the recurrent bias of its last gate apart.
    apart = second.copy()
    apart[:, : 2 * hidden] = 0
    if node.op_type != "GRU" or not after:
        first, apart = first + second, np.zeros_like(apart)
    else:
        first = first + second - apart
    x = low.forms.contiguous(node.inputs[0])
    steps, batch = x.shape[0], x.shape[1]
    states = [_input(node, 5), _input(node, 6) if node.op_type == "LSTM" else None]
    initial = [None if value is None else low.forms.contiguous(value) for value in states]
    outputs: list[Tensor | None] = [
        low.forms.result(value) if value.name and low.facts.uses(value) else None
        for value in node.outputs
    ]
    outputs += [None] * (3 - len(outputs))
    body = Body()
    names = {
        "x": body.pointer(x),
        "w": body.raw(buffer("w", weight)),
        "r": body.raw(buffer("r", recurrence)),
        "b": body.raw(buffer("b", first)),
        "e": body.raw(buffer("e", apart)),
    }
    lengths = _input(node, 4)
    own = None if lengths is None else body.pointer(low.forms.contiguous(lengths))
    starts = ["0" if tensor is None else body.pointer(tensor) for tensor in initial]
    ends = ["0" if t is None else body.pointer(t, written=True) for t in outputs]
    total = gates * wide
    backwards = "1" if attributes["direction"] == "reverse" else "direction"
    body.add(
        f"const int64_t T = {body.size(steps)}, B = {body.size(batch)};",
        "int64_t direction = q / B, sequence = q % B;",
        f"const int64_t L = {'T' if own is None else f'{own}[sequence]'};",
        "if (L < 0 || L > T) { hg_fail(thread, L); return; }" if own is not None else "",
        f"float *h = (float *)thread->scratch, *c = h + {wide}, *g = c + {wide}, *u = g + {total};",
        f"memset(h, 0, {2 * wide * 4});",
    )
    for state, start in zip(("h", "c"), starts, strict=True):
        if start != "0":
            body.add(f"memcpy({state}, {start} + q * {hidden}, {hidden * 4});")
    body.add(
        f"const float *W = {names['w']} + direction * {depth * total}, *R = {names['r']} + direction * {hidden * total};",
        f"const float *bias = {names['b']} + direction * {total}, *apart = {names['e']} + direction * {total};",
        "for (int64_t step = 0; step < L; step++) {",
        f"int64_t t = {backwards} ? L - 1 - step : step;",
        f"const float *x = {names['x']} + (t * B + sequence) * {depth};",
    )
    if node.op_type == "LSTM":
        _product(body, "g", "bias", "x", "W", depth, total, 0, total, lanes)
        _product(body, "g", "g", "h", "R", hidden, total, 0, total, lanes)
        body.add(
            f"for (int64_t j = 0; j < {wide}; j += VL) {{",
            f"vf in = v_sigmoid(v_load(g + j)), out = v_sigmoid(v_load(g + {wide} + j));",
            f"vf forget = v_sigmoid(v_load(g + {2 * wide} + j)), cell = v_tanh(v_load(g + {3 * wide} + j));",
            "vf next = forget * v_load(c + j) + in * cell;",
            "v_store(c + j, next); v_store(h + j, out * v_tanh(next)); }",
        )
    elif node.op_type == "RNN":
        _product(body, "g", "bias", "x", "W", depth, total, 0, total, lanes)
        _product(body, "g", "g", "h", "R", hidden, total, 0, total, lanes)
        step = _STEPS[(attributes.get("activations") or ["Tanh"])[0]]
        body.add(f"for (int64_t j = 0; j < {wide}; j += VL) v_store(h + j, {step});")
    else:
        two = 2 * wide
        _product(body, "g", "bias", "x", "W", depth, total, 0, total, lanes)
        _product(body, "g", "g", "h", "R", hidden, total, 0, two, lanes)
        body.add(
            f"for (int64_t j = 0; j < {two}; j += VL) v_store(g + j, v_sigmoid(v_load(g + j)));"
        )
        if after:
            _product(body, "u", "apart", "h", "R", hidden, total, two, total, lanes)
            body.add(
                f"for (int64_t j = 0; j < {wide}; j += VL) v_store(g + {two} + j, v_load(g + {two} + j)"
                f" + v_load(g + {wide} + j) * v_load(u + {two} + j));"
            )
        else:
            body.add(
                f"for (int64_t j = 0; j < {wide}; j += VL) v_store(c + j, v_load(g + {wide} + j) * v_load(h + j));"
            )
            _product(body, "g", "g", "c", "R", hidden, total, two, total, lanes)
        body.add(
            f"for (int64_t j = 0; j < {wide}; j += VL) {{",
            f"vf z = v_load(g + j), new = v_tanh(v_load(g + {two} + j));",
            "v_store(h + j, (1.f - z) * new + z * v_load(h + j)); }",
        )
    if ends[0] != "0":
        body.add(
            f"memcpy({ends[0]} + ((t * {directions} + direction) * B + sequence) * {hidden}, h, {hidden * 4});"
        )
    body.add("}")
    if ends[0] != "0" and own is not None:
        body.add(
            "for (int64_t t = L; t < T; t++) "
            f"memset({ends[0]} + ((t * {directions} + direction) * B + sequence) * {hidden}, 0, "
            f"{hidden * 4});"
        )
    for state, end in zip(("h", "c"), ends[1:], strict=True):
        if end != "0":
            body.add(f"memcpy({end} + q * {hidden}, {state}, {hidden * 4});")
    flops = 2.0 * directions * rows * (depth + hidden)  # of a step of a sequence
    low.recorder.emit(
        node,
        body,
        batch * directions,
        work=work_of(steps * batch, flops / 30),
        flops=work_of(steps * batch, flops),
        scratch=(2 * wide + 2 * total) * 4,
        failure="sequence length {value}, expected lengths from 0 to {0}",
        failure_sizes=(steps,),
    )
    for value, tensor in zip(node.outputs, outputs, strict=False):
        if tensor is not None:
            low.forms[value] = tensor


def _product(
    body: Body,
    target: str,
    start: str,
    vector: str,
    matrix: str,
    depth: int,
    total: int,
    first: int,
    last: int,
    lanes: int,
) -> None:
    """Write ``target = start + vector × matrix`` for columns ``first`` to ``last``."""
    at = first
    while at < last:
        count = min(8, (last - at) // lanes)
        body.add(
            "{ " + " ".join(f"vf a{i} = v_load({start} + {at + i * lanes});" for i in range(count)),
            f"for (int64_t k = 0; k < {depth}; k++) {{ vf v = v_set1({vector}[k]);"
            f" const float *m = {matrix} + k * {total} + {at};",
            " ".join(f"a{i} = v_fma(v, v_load(m + {i * lanes}), a{i});" for i in range(count)),
            "} "
            + " ".join(f"v_store({target} + {at + i * lanes}, a{i});" for i in range(count))
            + " }",
        )
        at += count * lanes


RULES: dict[str, Rule] = dict.fromkeys(_GATES, lower_recurrent)


def pack_gates(array: Array, gates: int, wide: int) -> Array:
    """Return ``(directions, gates × hidden, n)`` as ``(directions, n, gates × wide)``."""
    directions, rows, n = array.shape
    result = np.zeros((directions, n, gates, wide), np.float32)
    source = array.reshape(directions, gates, rows // gates, n).transpose(0, 3, 1, 2)
    result[..., : rows // gates] = source
    return result
