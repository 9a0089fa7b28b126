"""MelWeightMatrix: triangles over the bins of a spectrogram."""

from __future__ import annotations

import onnx_ir as ir

from hagane.native.kernels.kernel import c_type
from hagane.native.kernels.written import emit_written, is_real, loaded, number_type, stored
from hagane.native.lowering.facts import NotNative
from hagane.native.lowering.state import Lowering
from hagane.native.rules.indexing.axes import whole_numbers
from hagane.native.rules.shaping.numbers import found_numbers

# The bin of an edge of a triangle; rounded down as Python divides.
_BIN = """
static int64_t KERNEL_bin(double low, double step, int64_t i, int64_t length, int64_t rate) {
const double hertz = 700 * expm1((i * step + low) / 2595 * log(10.)) * (double)(length + 1), by = (double)rate;
double rest = fmod(hertz, by), whole = (hertz - rest) / by;
if (rest != 0 && (rest < 0) != (by < 0)) whole -= 1;
return (int64_t)(whole == 0 ? 0 : floor(whole) + (whole - floor(whole) > 0.5)); }
"""
_NAMES = ("bins", "length", "rate", "lower", "upper")


def lower_mel_weight_matrix(low: Lowering, node: ir.Node) -> None:
    """Lower MelWeightMatrix whose numbers of bins a kernel reads: some rows of all triangles."""
    out = node.outputs[0]
    whole = [whole_numbers(low, value) for value in node.inputs[:3]]
    edges = [low.forms.contiguous(value) for value in node.inputs[3:5]]
    dtype, shape = low.facts.dtype(out), low.facts.shape(out)
    if not is_real(edges[0].dtype) or not is_real(dtype):
        raise NotNative(f"element types {edges[0].dtype} and {dtype}")
    reads = dict(zip(_NAMES, (*whole, *edges), strict=True))
    found_numbers(
        low, node,
        """
if (length[0] < 0 || bins[0] < 0) { hg_fail(thread, bins[0]); return; }
found[0] = length[0] / 2 + 1; found[1] = bins[0];""",
        list(shape), reads={"bins": whole[0], "length": whole[1]},
    )  # fmt: skip
    y = low.forms.result(out)
    ends = [loaded(edges[0].dtype, f"{name}[0]") for name in ("lower", "upper")]
    log1p = "log1p" if edges[0].dtype.name == "float64" else "log1pf"
    text = f"""
const N low = (N)2595 * {log1p}({ends[0]} / 700), high = (N)2595 * {log1p}({ends[1]} / 700);
const double from = (double)low / log(10.), step = ((double)high / log(10.) - from) / (double)(columns + 2);
int64_t *bins = (int64_t *)thread->scratch;
for (int64_t i = 0; i < columns + 2; i++) bins[i] = KERNEL_bin(from, step, i, length[0], rate[0]);
for (int64_t i = 0; i < columns; i++) {{
const int64_t left = bins[i], middle = bins[i + 1], right = bins[i + 2];
if (rate[0] == 0 || left < 0 || middle < left || right < middle || middle >= rows || right > rows) {{ hg_fail(thread, right); return; }} }}
memset(y + first * columns, 0, (size_t)((last - first) * columns) * sizeof(T));
for (int64_t i = 0; i < columns; i++) {{
const int64_t left = bins[i], middle = bins[i + 1], right = bins[i + 2], top = hg_max(right, middle + 1);
for (int64_t j = hg_max(left, first); j < hg_min(top, last); j++) {{
double v = middle == left ? 1 : 0;
if (j <= middle && middle > left) v = (double)(j - left) / (double)(middle - left);
if (j >= middle && j < right) v = (double)(right - j) / (double)(right - middle);
y[j * columns + i] = {stored(dtype, "v")}; }} }}"""
    emit_written(
        low.recorder, node, text,
        reads={name: reads[name] for name in _NAMES[1:]}, writes={"y": y},
        sizes={"rows": shape[0], "columns": shape[1]},
        types={"N": number_type(edges[0].dtype), "T": c_type(dtype)},
        items=shape[0], each=shape[1], helper=_BIN, scratch=8 * (shape[1] + 2),
    )  # fmt: skip
    low.forms[out] = y
