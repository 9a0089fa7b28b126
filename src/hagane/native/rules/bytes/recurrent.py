"""DynamicQuantizeLSTM: inputs are quantised together, states anew at every step.

Products are sums of whole numbers. Those of all inputs come first, rows side by side; then one task a
direction takes the steps, since each needs the range of all states before it.
"""

from __future__ import annotations

import math

import numpy as np
import onnx_ir as ir

from hagane.machine import multiplies_bytes
from hagane.native.kernels.expression import float_text
from hagane.native.kernels.kernel import c_type, work_of
from hagane.native.kernels.packing import Packing
from hagane.native.kernels.tensor import Tensor, row_major
from hagane.native.kernels.written import emit_written
from hagane.native.lowering.facts import NotNative
from hagane.native.lowering.state import Lowering, Rule
from hagane.native.rules.indexing.axes import number_input, whole_numbers
from hagane.native.rules.looped.byte_sums import tile_functions
from hagane.ops.definition import Array
from hagane.symbolic import Dim, ceildiv

FLOAT = np.dtype(np.float32)
# Of a vector ``x``, by name.
_FUNCTIONS = {
    "affine": "{a} * x + {b}",
    "elu": "v_sel(x < 0.f, {a} * (v_exp(v_min2(v_set1(0), x)) - 1.f), x)",
    "hardsigmoid": "v_min2(v_set1(1), v_max2(v_set1(0), {a} * x + {b}))",
    "leakyrelu": "v_sel(x < 0.f, {a} * x, x)",
    "relu": "v_max2(v_set1(0), x)",
    "scaledtanh": "{a} * v_tanh({b} * x)",
    "sigmoid": "v_sigmoid(x)",
    "softplus": "v_softplus(x)",
    "softsign": "x / (1.f + v_abs(x))",
    "tanh": "v_tanh(x)",
    "thresholdedrelu": "v_sel(x > {a}, x, v_set1(0))",
}
# Scale and zero point of numbers (a scale that is not a number where one of them is not); a row of them as
# signed bytes, filled up to whole quads, and their sum; some rows of bytes times a packed matrix, added to floats.
_QUANTIZED = """
static float KERNEL_range(const float *x, int64_t n, float *zero) {
vf low = v_set1(0), high = v_set1(0);
for (int64_t i = 0; i < n; i += VL) { const vf v = v_load_n(x + i, hg_min(VL, n - i)); low = v_min(v, low); high = v_max2(v, high); }
float least = 0;
for (int i = 0; i < VL; i++) least = low[i] < least || low[i] != low[i] ? low[i] : least;
const float scale = (v_top(high) - least) / 255.f, at = scale == 0 ? 0 : rintf(0 - least / scale);
*zero = at > 255 ? 255 : at > 0 ? at : 0;
return scale; }
static int32_t KERNEL_quantize(const float *restrict x, int8_t *restrict q, int64_t n, int64_t wide, float scale, float zero) {
int32_t sum = 0;
for (int64_t i = 0; i < n; i++) {
float v = rintf(x[i] / scale) + zero;
v = v < 0 ? 0 : v > 255 ? 255 : v;
const int32_t whole = (int32_t)(v == v ? v : 0) - 128;
q[i] = (int8_t)whole, sum += whole; }
for (int64_t i = n; i < wide; i++) q[i] = 0;
return sum; }
static void KERNEL_product(const int8_t *q, const int32_t *totals, int64_t rows, const uint8_t *m, const int32_t *columns,
                           const ZERO *z, int64_t each, const float *scales, int64_t per, float scale, float zero,
                           float *to, int64_t ld, int64_t depth, int64_t n) {
int32_t made[6 * 64] __attribute__((aligned(64)));
const int64_t quads = (depth + 3) / 4;
const int32_t at = (int32_t)zero - 128;
for (int64_t j0 = 0; j0 < n; j0 += 64, m += quads * 256) {
const int64_t w = hg_min(64, n - j0);
int32_t zeros[64];
float by[64];
if (each) for (int64_t j = 0; j < w; j++) zeros[j] = (int32_t)z[j0 + j] + SHIFT;
else for (int64_t j = 0; j < w; j++) zeros[j] = (int32_t)z[0] + SHIFT;
if (per) for (int64_t j = 0; j < w; j++) by[j] = scale * scales[j0 + j];
else for (int64_t j = 0; j < w; j++) by[j] = scale * scales[0];
for (int64_t r0 = 0; r0 < rows; r0 += 6) {
const int64_t count = hg_min(6, rows - r0);
KERNEL_tile(q + r0 * 4 * quads, 4 * quads, count, m, quads, made);
for (int64_t r = 0; r < count; r++) {
float *restrict line = to + (r0 + r) * ld + j0;
const int32_t total = (int32_t)depth * at - totals[r0 + r];
for (int64_t j = 0; j < w; j++) {
const int32_t sum = made[r * 64 + j] + zeros[j] * total - at * columns[j0 + j];
line[j] += (float)sum * by[j]; } } } } }
"""
# Rows that meet the columns of a matrix while these are in the nearest cache, and the columns of a tile.
_ROWS, _COLUMNS = 24, 64


def pack_byte_columns(matrix: Array, by_quads: bool) -> Array:
    """Return ``(directions, depth, n)`` as unsigned bytes: 64 columns of four rows side by side.

    Args:
        matrix: Bytes; signed ones are moved by 128.
        by_quads: Whether the four numbers of a column are neighbours; else those of a row are.
    """
    directions, depth, n = matrix.shape
    quads, chunks = -(-depth // 4), -(-n // _COLUMNS)
    filled = np.zeros((directions, 4 * quads, chunks * _COLUMNS), np.uint8)
    filled[:, :depth, :n] = _unsigned(matrix)
    parts = filled.reshape(directions, quads, 4, chunks, _COLUMNS)
    return np.ascontiguousarray(parts.transpose(0, 3, 1, *((4, 2) if by_quads else (2, 4))))


def sum_byte_columns(matrix: Array) -> Array:
    """Return the sums of the columns of these bytes, ``(directions, n)``."""
    total: Array = _unsigned(matrix).sum(axis=1, dtype=np.int32)
    return total


def _unsigned(matrix: Array) -> Array:
    return matrix.view(np.uint8) ^ np.uint8(128 if matrix.dtype == np.int8 else 0)


def _packed(low: Lowering, node: ir.Node, index: int) -> tuple[Tensor, Tensor]:
    """Return a matrix in quads and the sums of its columns, packed in each run if it varies."""
    value = node.inputs[index]
    assert value is not None
    known, by_quads = low.facts.constant(value), multiplies_bytes(low.facts.level)
    directions, depth, n = low.facts.shape(value)
    chunks, quads = ceildiv(n, _COLUMNS), ceildiv(depth, 4)
    shape: tuple[Dim, ...] = (directions, chunks, quads, 4 * _COLUMNS)
    if known is not None:
        own = np.ascontiguousarray(known)
        size = math.prod(int(dim) for dim in shape)
        buffer = low.recorder.weight(
            (node, index), Packing(pack_byte_columns, (own, by_quads)), size
        )
        summed = low.recorder.weight(
            (node, index, "sums"),
            Packing(sum_byte_columns, (own,)),
            4 * own.shape[0] * own.shape[2],
        )
        return (
            Tensor(buffer, np.dtype(np.uint8), shape, row_major(shape)),
            Tensor(summed, np.dtype(np.int32), (directions, n), row_major((directions, n))),
        )
    matrix = low.forms.contiguous(value)
    packed = low.recorder.new(f"{value.name} packed", np.dtype(np.uint8), shape)
    sums = low.recorder.new(f"{value.name} sums", np.dtype(np.int32), (directions, n))
    place = "j * 4 + t" if by_quads else "t * 64 + j"
    emit_written(
        low.recorder, node,
        f"""
for (int64_t item = first; item < last; item++) {{
const int64_t d = item / chunks, j0 = item % chunks * 64, w = hg_min(64, n - j0);
int32_t total[64] = {{0}};
for (int64_t k = 0; k < 4 * quads; k++) for (int64_t j = 0; j < 64; j++) {{
const int64_t t = k % 4;
const uint8_t v = k < depth && j < w ? (uint8_t)m[(d * depth + k) * n + j0 + j] ^ {_shift(matrix)} : 0;
packed[(item * quads + k / 4) * 256 + {place}] = v, total[j] += v; }}
for (int64_t j = 0; j < w; j++) sums[d * n + j0 + j] = total[j]; }}""",
        reads={"m": matrix}, writes={"packed": packed, "sums": sums},
        sizes={"depth": depth, "n": n, "chunks": chunks, "quads": quads},
        items=directions * chunks, each=depth * _COLUMNS, name="quantize_lstm_pack",
    )  # fmt: skip
    return packed, sums


def _shift(matrix: Tensor) -> int:
    return 128 if matrix.dtype == np.int8 else 0


def lower_dynamic_quantize_lstm(low: Lowering, node: ir.Node) -> None:
    """Lower DynamicQuantizeLSTM."""
    from hagane.ops.recurrent.layer import directions_of  # few models need it

    attributes = low.facts.attributes(node)
    x = low.forms.contiguous(node.inputs[0])
    kinds = [low.facts.dtype(value) for value in node.inputs[1:3]]
    if x.dtype != FLOAT or kinds[0] != kinds[1] or kinds[0].name not in ("int8", "uint8"):
        raise NotNative(f"element types {x.dtype}, {kinds[0]} and {kinds[1]}")
    directions = directions_of(str(attributes["direction"]))
    steps, batch, size = x.shape
    _, hidden, n = low.facts.shape(node.inputs[2])
    given = [low.forms.contiguous(value) for value in node.inputs[8:12]]
    if any(len(each.shape) not in (1, 2) for each in given):
        raise NotNative("scales of another rank")
    w_scale, w_zero, r_scale, r_zero = given
    functions = [_functions(low, node, d) for d in range(directions)]
    (w, w_sums), (r, r_sums) = _packed(low, node, 1), _packed(low, node, 2)
    helper = tile_functions(low) + _QUANTIZED.replace("ZERO", c_type(kinds[0])).replace(
        "SHIFT", "128" if kinds[0] == np.int8 else "0"
    )
    sizes: dict[str, Dim] = {
        "steps": steps, "batch": batch, "size": size, "hidden": hidden, "n": n,
    }  # fmt: skip
    found = low.recorder.new(f"{node.name} range", FLOAT, (2,))
    emit_written(
        low.recorder, node, "found[0] = KERNEL_range(x, steps * batch * size, found + 1);",
        reads={"x": x}, writes={"found": found}, sizes=sizes, tasks=1, helper=helper,
        name="quantize_lstm_range",
    )  # fmt: skip
    gates = low.recorder.new(
        f"{node.outputs[0].name or node.name} gates", FLOAT, (directions, steps, batch, n)
    )
    per = {"w_each": _columns(w_zero), "w_per": _columns(w_scale)}
    wide = ceildiv(size, 4) * 4
    emit_written(
        low.recorder, node,
        f"""
int8_t *whole = (int8_t *)thread->scratch;
const int64_t chunks = (n + 63) / 64;
for (int64_t block = first; block < last; block++) {{
const int64_t row = block * {_ROWS}, count = hg_min({_ROWS}, steps * batch - row);
int32_t totals[{_ROWS}];
for (int64_t r = 0; r < count; r++)
totals[r] = KERNEL_quantize(x + (row + r) * size, whole + r * wide, size, wide, found[0], found[1]);
for (int64_t d = 0; d < {directions}; d++) {{
float *to = gates + (d * steps * batch + row) * n;
memset(to, 0, (size_t)(count * n) * 4);
KERNEL_product(whole, totals, count, w + d * chunks * wide * 64, sums + d * n, zero + d * (w_each ? n : 1), w_each,
scale + d * (w_per ? n : 1), w_per, found[0], found[1], to, n, size, n); }} }}""",
        reads={"x": x, "w": w, "sums": w_sums, "found": found, "zero": w_zero, "scale": w_scale},
        writes={"gates": gates}, sizes=sizes | per | {"wide": wide},
        items=ceildiv(steps * batch, _ROWS), each=_ROWS * size * n * directions, cost=0.02, scratch=_ROWS * wide, helper=helper,
        name="quantize_lstm_inputs",
    )  # fmt: skip
    reads = {"gates": gates, "r": r, "sums": r_sums, "zero": r_zero, "scale": r_scale}
    for name, index in (("bias", 3), ("first_h", 5), ("first_c", 6), ("peep", 7)):
        value = number_input(low, node, index)
        if value is not None:
            reads[name] = low.forms.contiguous(value)
    if node.inputs[4] is not None:
        reads["lengths"] = whole_numbers(low, node.inputs[4])
    writes: dict[str, Tensor] = {}
    for name, value in zip(("y", "last_h", "last_c"), node.outputs, strict=False):
        if value.name:
            writes[name] = low.forms[value] = low.forms.result(value)
    emit_written(
        low.recorder, node, _steps(low, node, functions, reads, writes), reads=reads,
        writes=writes, sizes=sizes | {"r_each": _columns(r_zero), "r_per": _columns(r_scale)},
        tasks=directions, work=work_of(steps * batch * hidden * n, 0.02),
        scratch=batch * (8 * hidden + 4 * n + ceildiv(hidden, 4) * 4 + 4), helper=helper,
        name="quantize_lstm",
    )  # fmt: skip


def _columns(given: Tensor) -> int:
    """Return 1 where each column has a number of its own, 0 where all have one."""
    return int(len(given.shape) == 2 and given.shape[1] != 1)


def _functions(low: Lowering, node: ir.Node, direction: int) -> tuple[str, ...]:
    """Return C expressions of the three functions of a direction, of a vector ``x``."""
    from hagane.ops.recurrent.layer import directions_of, named_activations

    attributes = low.facts.attributes(node)
    count = directions_of(str(attributes["direction"]))
    chosen = named_activations(
        attributes.get("activations"), ("Sigmoid", "Tanh", "Tanh"), count,
        attributes.get("activation_alpha"), attributes.get("activation_beta"),
    )[direction]  # fmt: skip
    return tuple(
        _FUNCTIONS[name].format(a=float_text(alpha), b=float_text(beta))
        for name, alpha, beta in chosen
    )


def _steps(
    low: Lowering,
    node: ir.Node,
    functions: list[tuple[str, ...]],
    reads: dict[str, Tensor],
    writes: dict[str, Tensor],
) -> str:
    """Return C of all steps of a direction."""
    attributes = low.facts.attributes(node)
    clip = attributes.get("clip")
    bound = (
        "x"
        if clip is None
        else f"v_min2(v_set1({float_text(float(clip))}), v_max2(v_set1({float_text(-float(clip))}), x))"
    )

    def applied(which: int, operand: str) -> str:
        texts = [f"({{ vf x = {operand}; x = {bound}; {each[which]}; }})" for each in functions]
        return texts[0] if len(set(texts)) == 1 else f"(q == 0 ? {texts[0]} : {texts[1]})"

    peep = ["", "", ""]
    if "peep" in reads:
        peep = [
            f" + v_load_n(peep + (q * 3 + {i}) * hidden + j, wide) * {c}"
            for i, c in enumerate(("c", "next", "c"))
        ]
    biased = ""
    if "bias" in reads:
        biased = "for (int64_t b = 0; b < batch; b++) for (int64_t j = 0; j < n; j++) gs[b * n + j] += bias[q * 2 * n + j] + bias[q * 2 * n + n + j];"
    forget = (
        "1.f - in"
        if attributes["input_forget"]
        else applied(0, "v_load_n(g + 2 * hidden + j, wide)" + peep[2])
    )
    backwards = "1" if attributes["direction"] == "reverse" else "q"
    checked = ""
    if "lengths" in reads:
        checked = "for (int64_t b = 0; b < batch; b++) if (lengths[b] < 0 || lengths[b] > steps) { hg_fail(thread, lengths[b]); return; }"
    starts = "\n".join(
        f"memcpy({state}, first_{state} + q * batch * hidden, (size_t)(batch * hidden) * 4);"
        if f"first_{state}" in reads
        else f"memset({state}, 0, (size_t)(batch * hidden) * 4);"
        for state in ("h", "c")
    )
    place = "y + ((t * directions + q) * batch + b) * hidden"
    ends = "\n".join(
        f"memcpy(last_{state} + q * batch * hidden, {state}, (size_t)(batch * hidden) * 4);"
        + (
            "\nfor (int64_t b = 0; b < batch; b++) if (lengths[b] == 0) "
            f"memset(last_{state} + (q * batch + b) * hidden, 0, (size_t)hidden * 4);"
            if "lengths" in reads
            else ""
        )
        for state in ("h", "c")
        if f"last_{state}" in writes
    )
    return f"""
const int64_t directions = {len(functions)}; (void)directions;
{checked}
const int64_t wide_h = (hidden + 3) / 4 * 4, chunks = (n + 63) / 64;
float *h = (float *)thread->scratch, *c = h + batch * hidden, *gs = c + batch * hidden;
int32_t *totals = (int32_t *)(gs + batch * n);
int8_t *whole = (int8_t *)(totals + batch);
{starts}
for (int64_t turn = 0; turn < steps; turn++) {{
const int64_t t = {backwards} ? steps - 1 - turn : turn;
float at;
const float by = KERNEL_range(h, batch * hidden, &at);
for (int64_t b = 0; b < batch; b++) totals[b] = KERNEL_quantize(h + b * hidden, whole + b * wide_h, hidden, wide_h, by, at);
memcpy(gs, gates + (q * steps + t) * batch * n, (size_t)(batch * n) * 4);
for (int64_t b = 0; b < batch; b += {_ROWS})
KERNEL_product(whole + b * wide_h, totals + b, hg_min({_ROWS}, batch - b), r + q * chunks * wide_h * 64, sums + q * n,
zero + q * (r_each ? n : 1), r_each, scale + q * (r_per ? n : 1), r_per, by, at, gs + b * n, n, hidden, n);
{biased}
for (int64_t b = 0; b < batch; b++) {{
if ({"t >= lengths[b]" if "lengths" in reads else "0"}) {{
{f"memset({place}, 0, (size_t)hidden * 4);" if "y" in writes else ""}
continue; }}
const float *g = gs + b * n;
float *own_h = h + b * hidden, *own_c = c + b * hidden;
for (int64_t j = 0; j < hidden; j += VL) {{
const int64_t wide = hg_min(VL, hidden - j);
const vf c = v_load_n(own_c + j, wide);
const vf in = {applied(0, "v_load_n(g + j, wide)" + peep[0])};
const vf forget = {forget};
const vf next = forget * c + in * {applied(1, "v_load_n(g + 3 * hidden + j, wide)")};
v_store_n(own_c + j, next, wide);
v_store_n(own_h + j, {applied(0, "v_load_n(g + hidden + j, wide)" + peep[1])} * {applied(2, "next")}, wide); }}
{f"memcpy({place}, own_h, (size_t)hidden * 4);" if "y" in writes else ""}
}} }}
{ends}"""


RULES: dict[tuple[str, str], Rule] = {
    ("com.microsoft", "DynamicQuantizeLSTM"): lower_dynamic_quantize_lstm
}
