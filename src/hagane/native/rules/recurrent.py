"""LSTM, GRU and RNN: one task a direction and some sequences, all steps within.

Weights of the state are read once for all sequences of a task, those of the input once for four steps.
"""

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
from hagane.symbolic import ceildiv

_DEFAULTS = {"LSTM": ["Sigmoid", "Tanh", "Tanh"], "GRU": ["Sigmoid", "Tanh"], "RNN": ["Tanh"]}
_GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
# Sequences of one task at most, and numbers of them that have a product of their own.
_TOGETHER = 4
_VARIANTS = (1, 2, 3, 4)
# Steps whose inputs are multiplied at once.
_SPAN = 4
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
    directions, rows_of_weights, depth = weight.shape
    _check(low, node, attributes, directions)
    gates = _GATES[node.op_type]
    hidden = rows_of_weights // gates
    after = bool(attributes.get("linear_before_reset", 0))
    if bias is None:
        bias = np.zeros((directions, 2 * rows_of_weights), np.float32)
    lanes = low.facts.level.lanes
    wide = -(-hidden // lanes) * lanes  # each gate starts at a whole vector

    def buffer(name: str, array: Array) -> Buffer:
        size = directions * array.shape[2] * gates * wide * 4
        return low.recorder.weight((node, name), Packing(pack_gates, (array, gates, wide)), size)

    first, second = bias[:, :rows_of_weights, None], bias[:, rows_of_weights:, None]
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
    groups = ceildiv(batch, _TOGETHER)
    for together in _VARIANTS:
        body.helper(_product_of(together, lanes))
    length = "T" if own is None else f"{own}[first + r]"
    body.add(
        f"const int64_t T = {body.size(steps)}, B = {body.size(batch)}, groups = {body.size(groups)};",
        f"const int64_t direction = q / groups, first = q % groups * {_TOGETHER};",
        f"const int64_t rows = hg_min({_TOGETHER}, B - first);",
        f"int64_t L[{_TOGETHER}], longest = 0;",
        f"for (int64_t r = 0; r < rows; r++) {{ L[r] = {length};",
        "if (L[r] < 0 || L[r] > T) { hg_fail(thread, L[r]); return; }" if own is not None else "",
        "longest = hg_max(longest, L[r]); }",
        f"float *hs = (float *)thread->scratch, *cs = hs + {_TOGETHER * wide}, *gs = cs + {_TOGETHER * wide}, *us = gs + {_TOGETHER * total}, *is = us + {_TOGETHER * total};",
        f"memset(hs, 0, {2 * _TOGETHER * wide * 4}); (void)us;",
    )
    for state, start in zip(("hs", "cs"), starts, strict=True):
        if start != "0":
            body.add(
                f"for (int64_t r = 0; r < rows; r++) memcpy({state} + r * {wide}, "
                f"{start} + (direction * B + first + r) * {hidden}, {hidden * 4});"
            )
    each_row = "for (int64_t r = 0; r < rows; r++) if (step < L[r]) {"
    body.add(
        f"const float *W = {names['w']} + direction * {depth * total}, *R = {names['r']} + direction * {hidden * total};",
        f"const float *bias = {names['b']} + direction * {total}, *apart = {names['e']} + direction * {total}; (void)apart;",
        f"const float *xs[{_SPAN}], *own_h[{_TOGETHER}], *own_c[{_TOGETHER}];",
        f"for (int64_t r = 0; r < {_TOGETHER}; r++) own_h[r] = hs + r * {wide}, own_c[r] = cs + r * {wide};",
        "for (int64_t step = 0; step < longest; step++) {",
        # (Sequences that have ended read their last step again, and keep their state.)
        f"if (step % {_SPAN} == 0) for (int64_t r = 0; r < rows; r++) {{",
        f"const int64_t last = hg_max(L[r], 1) - 1; for (int64_t i = 0; i < {_SPAN}; i++) {{",
        f"const int64_t at = hg_min(step + i, last), t = {backwards} ? last - at : at;",
        f"xs[i] = {names['x']} + (t * B + first + r) * {depth}; }}",
        f"KERNEL_product_{_SPAN}(is + r * {_SPAN * total}, bias, 0, xs, W, {depth}, {total}, {total}); }}",
        f"const float *given = is + step % {_SPAN} * {total};",
    )

    def product(target: str, start: str, vectors: str, columns: tuple[int, int]) -> None:
        """Write ``target = start + vectors × R`` for some columns of all rows."""
        low_column, high_column = columns
        step_of_start = _SPAN * total if start == "given" else 0
        given = (
            f"({target} + {low_column}, {start} + {low_column}, {step_of_start}, {vectors}, "
            f"R + {low_column}, {hidden}, {total}, {high_column - low_column});"
        )
        *fewer, most = _VARIANTS
        text = "".join(f"if (rows == {n}) KERNEL_product_{n}{given} else " for n in fewer)
        body.add(f"{text}KERNEL_product_{most}{given}")

    of_row = f"float *h = hs + r * {wide}, *c = cs + r * {wide}, *g = gs + r * {total}, *u = us + r * {total}; (void)c, (void)u;"
    if node.op_type == "LSTM":
        product("gs", "given", "own_h", (0, total))
        body.add(
            each_row,
            of_row,
            f"for (int64_t j = 0; j < {wide}; j += VL) {{",
            f"vf in = v_sigmoid(v_load(g + j)), out = v_sigmoid(v_load(g + {wide} + j));",
            f"vf forget = v_sigmoid(v_load(g + {2 * wide} + j)), cell = v_tanh(v_load(g + {3 * wide} + j));",
            "vf next = forget * v_load(c + j) + in * cell;",
            "v_store(c + j, next); v_store(h + j, out * v_tanh(next)); }",
        )
    elif node.op_type == "RNN":
        product("gs", "given", "own_h", (0, total))
        step = _STEPS[(attributes.get("activations") or ["Tanh"])[0]]
        body.add(
            each_row,
            of_row,
            f"for (int64_t j = 0; j < {wide}; j += VL) v_store(h + j, {step});",
        )
    else:
        two = 2 * wide
        product("gs", "given", "own_h", (0, two))
        body.add(
            each_row,
            of_row,
            f"for (int64_t j = 0; j < {two}; j += VL) v_store(g + j, v_sigmoid(v_load(g + j)));",
        )
        if after:
            body.add("}")
            product("us", "apart", "own_h", (two, total))
            body.add(
                each_row,
                of_row,
                f"for (int64_t j = 0; j < {wide}; j += VL) v_store(g + {two} + j, v_load(given + r * {_SPAN * total} + {two} + j)"
                f" + v_load(g + {wide} + j) * v_load(u + {two} + j));",
            )
        else:
            body.add(
                f"for (int64_t j = 0; j < {wide}; j += VL) v_store(c + j, v_load(g + {wide} + j) * v_load(h + j)); }}",
            )
            product("gs", "given", "own_c", (two, total))
            body.add(each_row, of_row)
        body.add(
            f"for (int64_t j = 0; j < {wide}; j += VL) {{",
            f"vf z = v_load(g + j), new = v_tanh(v_load(g + {two} + j));",
            "v_store(h + j, (1.f - z) * new + z * v_load(h + j)); }",
        )
    if ends[0] != "0":
        body.add(
            f"const int64_t t = {backwards} ? L[r] - 1 - step : step;",
            f"memcpy({ends[0]} + ((t * {directions} + direction) * B + first + r) * {hidden}, h, {hidden * 4});",
        )
    body.add("} }")
    if ends[0] != "0" and own is not None:
        body.add(
            "for (int64_t r = 0; r < rows; r++) for (int64_t t = L[r]; t < T; t++) "
            f"memset({ends[0]} + ((t * {directions} + direction) * B + first + r) * {hidden}, 0, "
            f"{hidden * 4});"
        )
    for state, end in zip(("hs", "cs"), ends[1:], strict=True):
        if end != "0":
            place, size = f"{end} + (direction * B + first + r) * {hidden}", hidden * 4
            none = f"if (L[r] == 0) memset({place}, 0, {size}); else" if own is not None else ""
            body.add(
                f"for (int64_t r = 0; r < rows; r++) {none} memcpy({place}, {state} + r * {wide}, {size});"
            )
    flops = 2.0 * directions * rows_of_weights * (depth + hidden)  # of a step of a sequence
    low.recorder.emit(
        node,
        body,
        groups * directions,
        work=work_of(steps * batch, flops / 30),
        flops=work_of(steps * batch, flops),
        scratch=(2 * wide + (2 + _SPAN) * total) * 4 * _TOGETHER,
        failure="sequence length {value}, expected lengths from 0 to {0}",
        failure_sizes=(steps,),
    )
    for value, tensor in zip(node.outputs, outputs, strict=False):
        if tensor is not None:
            low.forms[value] = tensor


def _product_of(rows: int, lanes: int) -> str:
    """Return a C function that multiplies the vectors of some rows by a matrix and adds a start.

    ``KERNEL_product_<rows>(to, from, from_step, x, m, depth, total, columns)``: rows of ``to`` and of the
    matrix ``m`` are ``total`` apart, those of the start ``from_step``.
    """
    most = {1: 8, 2: 4, 3: 4 if lanes == 16 else 3, 4: 4 if lanes == 16 else 3}[rows]

    def block(count: int) -> str:
        each = [(r, i) for r in range(rows) for i in range(count)]
        adds = "".join(
            f"{{ const vf v = v_set1(x[{r}][k]); "
            + "".join(f"a{r}_{i} = v_fma(v, b{i}, a{r}_{i});" for i in range(count))
            + "}"
            for r in range(rows)
        )
        return (
            " ".join(
                f"vf a{r}_{i} = v_load(from + {r} * from_step + c + {i} * VL);" for r, i in each
            )
            + "\nconst float *b = m + c; for (int64_t k = 0; k < depth; k++, b += total) {\n"
            + " ".join(f"const vf b{i} = v_load(b + {i} * VL);" for i in range(count))
            + adds
            + "}\n"
            + " ".join(f"v_store(to + {r} * total + c + {i} * VL, a{r}_{i});" for r, i in each)
        )

    return f"""
static void KERNEL_product_{rows}(float *to, const float *from, int64_t from_step, const float *const *x,
const float *m, int64_t depth, int64_t total, int64_t columns) {{
int64_t c = 0;
for (; c + {most} * VL <= columns; c += {most} * VL) {{ {block(most)} }}
for (; c < columns; c += VL) {{ {block(1)} }} }}
"""


RULES: dict[str, Rule] = dict.fromkeys(_GATES, lower_recurrent)


def pack_gates(array: Array, gates: int, wide: int) -> Array:
    """Return ``(directions, gates × hidden, n)`` as ``(directions, n, gates × wide)``."""
    directions, rows, n = array.shape
    result = np.zeros((directions, n, gates, wide), np.float32)
    source = array.reshape(directions, gates, rows // gates, n).transpose(0, 3, 1, 2)
    result[..., : rows // gates] = source
    return result
