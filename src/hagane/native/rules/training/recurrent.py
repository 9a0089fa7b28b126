"""The steps of an LSTM, and their way back: a task has some sequences, and goes through all steps."""

from __future__ import annotations

import onnx_ir as ir

from hagane.native.kernels.expression import FLOAT32
from hagane.native.kernels.kernel import work_of
from hagane.native.kernels.tensor import Tensor
from hagane.native.kernels.written import emit_written
from hagane.native.lowering.facts import NotNative
from hagane.native.lowering.state import Lowering, Rule
from hagane.symbolic import Dim, ceildiv, maximum, minimum, product

# Vectors of a tile: one of each gate, or neighbours.
_VECTORS = 4

# Weights as the tiles read them, [block][depth][vector][lane], zero beyond the last column.
_PACK_GATES = """
const int64_t j = q * VL;
float *to = packed + q * H * 4 * VL;
for (int64_t g = 0; g < 4; g++)
for (int64_t l = 0; l < VL; l++) {
const float *from = r + (g * H + j + l) * H;
for (int64_t k = 0; k < H; k++) to[(k * 4 + g) * VL + l] = j + l < H ? from[k] : 0.f;
}"""
_PACK_COLUMNS = """
const int64_t j = q * 4 * VL, count = hg_min(4 * VL, H - j);
float *to = packed + q * 4 * H * 4 * VL;
for (int64_t k = 0; k < 4 * H; k++, to += 4 * VL) {
memcpy(to, r + k * H + j, (size_t)count * 4);
memset(to + count, 0, (size_t)(4 * VL - count) * 4);
}"""
_TASK = """
const int64_t low = q * B / N, high = (q + 1) * B / N;
for (int64_t s = 0; s < T; s++) {{
const int64_t t = {t};"""
_STEPS = (
    _TASK
    + """
const float *h = s ? y + (t {before}) * B * H : h0, *c = s ? cells + (t {before}) * B * H : c0;
for (int64_t j = 0; j < H; j += VL) {{
const int64_t n = hg_min(VL, H - j);
for (int64_t b = low; b < high; b += {rows}) {{
const int64_t m = hg_min({rows}, high - b);
vf sum[{rows} * 4];
for (int64_t i = 0; i < m; i++)
for (int64_t g = 0; g < 4; g++) sum[i * 4 + g] = v_load_n(p + ((t * B + b + i) * 4 + g) * H + j, n);
KERNEL_tile(m, h + b * H, H, H, packed + j * H * 4, sum);
for (int64_t i = 0; i < m; i++) {{
const int64_t at = (b + i) * H + j;
vf in = v_sigmoid(sum[i * 4]), out = v_sigmoid(sum[i * 4 + 1]);
vf forget = v_sigmoid(sum[i * 4 + 2]), cell = v_tanh(sum[i * 4 + 3]);
vf next = forget * v_load_n(c + at, n) + in * cell;
v_store_n(cells + t * B * H + at, next, n);
v_store_n(y + t * B * H + at, out * v_tanh(next), n);
float *to = gates + (t * B + b + i) * 4 * H + j;
v_store_n(to, in, n), v_store_n(to + H, out, n);
v_store_n(to + 2 * H, forget, n), v_store_n(to + 3 * H, cell, n);
}}
}}
}}
}}"""
)
_BACK = (
    """
memset(gh + q * B / N * H, 0, (size_t)((q + 1) * B / N - q * B / N) * H * 4);
memset(gc + q * B / N * H, 0, (size_t)((q + 1) * B / N - q * B / N) * H * 4);"""
    + _TASK
    + """
const float *c = s + 1 < T ? cells + (t {before}) * B * H : c0;
for (int64_t b = low; b < high; b++)
for (int64_t j = 0; j < H; j += VL) {{
const int64_t n = hg_min(VL, H - j), at = b * H + j, all = t * B * H + at;
const float *of = gates + (t * B + b) * 4 * H + j;
float *to = gp + (t * B + b) * 4 * H + j;
vf in = v_load_n(of, n), out = v_load_n(of + H, n);
vf forget = v_load_n(of + 2 * H, n), cell = v_load_n(of + 3 * H, n);
vf bent = v_tanh(v_load_n(cells + all, n));
vf dh = v_load_n(gh + at, n) + v_load_n(gy + all, n);
vf dc = v_load_n(gc + at, n) + dh * out * (1.f - bent * bent){given};
v_store_n(to, dc * cell * in * (1.f - in), n);
v_store_n(to + H, dh * bent * out * (1.f - out), n);
v_store_n(to + 2 * H, dc * v_load_n(c + at, n) * forget * (1.f - forget), n);
v_store_n(to + 3 * H, dc * in * (1.f - cell * cell), n);
v_store_n(gc + at, dc * forget, n);
}}
for (int64_t j = 0; j < H; j += 4 * VL)
for (int64_t b = low; b < high; b += {rows}) {{
const int64_t m = hg_min({rows}, high - b);
vf sum[{rows} * 4] = {{{{0}}}};
KERNEL_tile(m, gp + (t * B + b) * 4 * H, 4 * H, 4 * H, packed + j * 4 * H, sum);
for (int64_t i = 0; i < m; i++)
for (int64_t v = 0; v < 4 && j + v * VL < H; v++)
v_store_n(gh + (b + i) * H + j + v * VL, sum[i * 4 + v], hg_min(VL, H - j - v * VL));
}}
}}"""
)


def lower_steps(low: Lowering, node: ir.Node) -> None:
    """Lower the steps forward: sums of gates stay in registers until the state is known."""
    p, r, h0, c0 = _operands(low, node)
    reverse = bool(low.facts.attributes(node).get("reverse"))
    rows, hidden = _rows(low), r.shape[1]
    packed = _packed(low, node, r, hidden, ceildiv(hidden, low.facts.level.lanes), _PACK_GATES)
    y, cells, gates = (_result(low, value) for value in node.outputs)
    text = _STEPS.format(
        t="T - 1 - s" if reverse else "s", before="+ 1" if reverse else "- 1", rows=rows
    )
    _emit(low, node, text, p, hidden, {"p": p, "h0": h0, "c0": c0, "packed": packed},
          {"y": y, "cells": cells, "gates": gates})  # fmt: skip


def lower_steps_gradient(low: Lowering, node: ir.Node) -> None:
    """Lower the way back: gradients of states lie in the results that hold them in the end."""
    gates, cells, c0, r, gy, *more = _operands(low, node)
    reverse = bool(low.facts.attributes(node).get("reverse"))
    rows, hidden = _rows(low), r.shape[1]
    blocks = ceildiv(hidden, _VECTORS * low.facts.level.lanes)
    packed = _packed(low, node, r, 4 * hidden, blocks, _PACK_COLUMNS)
    gp, gh, gc = (_result(low, value) for value in node.outputs)
    text = _BACK.format(
        t="s" if reverse else "T - 1 - s",
        before="+ 1" if reverse else "- 1",
        rows=rows,
        given=" + v_load_n(given + all, n)" if more else "",
    )
    reads = {"gates": gates, "cells": cells, "c0": c0, "gy": gy, "packed": packed}
    if more:
        reads["given"] = more[0]
    _emit(low, node, text, gates, hidden, reads, {"gp": gp, "gh": gh, "gc": gc})


def _operands(low: Lowering, node: ir.Node) -> list[Tensor]:
    for value in node.inputs:
        if value is not None and not low.facts.is_float(value):
            raise NotNative(f"element type {low.facts.dtype(value)}")
    return [low.forms.contiguous(value) for value in node.inputs if value is not None]


def _result(low: Lowering, value: ir.Value) -> Tensor:
    found = low.forms.result(value)
    low.forms[value] = found
    return found


def _rows(low: Lowering) -> int:
    """Return the rows of a tile: with one vector for each gate, they fill the registers."""
    return 6 if low.facts.level.lanes == 16 else 3


def _packed(low: Lowering, node: ir.Node, r: Tensor, depth: Dim, blocks: Dim, text: str) -> Tensor:
    count = blocks * depth * _VECTORS * low.facts.level.lanes
    packed = low.recorder.new(f"{node.name} packed", FLOAT32, (count,))
    emit_written(
        low.recorder, f"pack weights '{node.name}'", text,
        reads={"r": r}, writes={"packed": packed}, sizes={"H": r.shape[1]}, tasks=blocks,
        work=work_of(maximum(1, count), 0.5), name="pack_steps",
    )  # fmt: skip
    return packed


def _emit(
    low: Lowering,
    node: ir.Node,
    text: str,
    walked: Tensor,
    hidden: Dim,
    reads: dict[str, Tensor],
    writes: dict[str, Tensor],
) -> None:
    rows = _rows(low)
    steps, batch = walked.shape[0], walked.shape[1]
    # An even number of tasks, each of at most one tile's rows where that is no more than them.
    tasks = maximum(1, minimum(batch, 2 * ceildiv(batch, 2 * rows)))
    sizes: dict[str, Dim] = {"T": steps, "B": batch, "H": hidden, "N": tasks}
    emit_written(
        low.recorder, node, text, reads=reads, writes=writes, sizes=sizes, tasks=tasks,
        work=work_of(maximum(1, product(walked.shape) * hidden), 0.04), helper=_tiles(rows),
    )  # fmt: skip


def _tiles(rows: int) -> str:
    """Return C of products of up to so many rows with a block of packed weights."""
    functions = []
    for m in range(1, rows + 1):
        pairs = [(i, v) for i in range(m) for v in range(_VECTORS)]
        lines = [
            f"static void KERNEL_tile{m}(const float *a, int64_t step, int64_t depth, "
            "const float *w, vf *sum) {",
            " ".join(f"vf s{i}{v} = sum[{i * _VECTORS + v}];" for i, v in pairs),
            f"for (int64_t k = 0; k < depth; k++, w += {_VECTORS} * VL) {{",
            "vf " + ", ".join(f"w{v} = v_load(w + {v} * VL)" for v in range(_VECTORS)) + ";",
        ]
        for i in range(m):
            sums = " ".join(f"s{i}{v} = v_fma(x, w{v}, s{i}{v});" for v in range(_VECTORS))
            lines.append(f"{{ vf x = v_set1(a[{i} * step + k]); {sums} }}")
        lines.append("}")
        lines.append(" ".join(f"sum[{i * _VECTORS + v}] = s{i}{v};" for i, v in pairs) + " }")
        functions.append("\n".join(lines))
    cases = " ".join(
        f"case {m}: KERNEL_tile{m}(a, step, depth, w, sum); break;" for m in range(1, rows + 1)
    )
    return (
        "\n".join(functions)
        + "\nstatic void KERNEL_tile(int64_t m, const float *a, int64_t step, int64_t depth, "
        "const float *w, vf *sum) {\n"
        f"switch (m) {{ {cases} }}\n}}"
    )


RULES: dict[tuple[str, str], list[Rule]] = {
    ("hagane", "LSTMSteps"): [lower_steps],
    ("hagane", "LSTMStepsGradient"): [lower_steps_gradient],
}
