"""Normalisation by norms, and softmax of any floating-point type."""

from __future__ import annotations

import onnx_ir as ir

from hagane.native.kernels.kernel import c_type
from hagane.native.kernels.written import emit_written, is_real, loaded, stored
from hagane.native.lowering.facts import NotNative
from hagane.native.lowering.state import Lowering, Rule
from hagane.native.rules.indexing.axes import around, axis_of

# Brings a line to ``row``, in double.
_READ = """const int64_t at = line / inner * n * inner + line % inner;
const T *from = x + at;
for (int64_t i = 0; i < n; i++) row[i] = (double){value};"""


def _summed(term: str) -> str:
    """Return C of ``sum``, of a function of each element ``v`` of a row, in eight parts."""
    return f"""
double sums[8] = {{0}}, sum = 0;
int64_t i0 = 0;
for (; i0 + 8 <= n; i0 += 8) for (int j = 0; j < 8; j++) {{ const double v = row[i0 + j]; sums[j] += {term}; }}
for (; i0 < n; i0++) {{ const double v = row[i0]; sums[0] += {term}; }}
for (int j = 0; j < 8; j++) sum += sums[j];"""


def lower_lp_normalization(low: Lowering, node: ir.Node) -> None:
    """Lower LpNormalization: each line divided by its norm."""
    attributes = low.facts.attributes(node)
    x = low.forms.contiguous(node.inputs[0])
    outer, n, inner = around(x.shape, axis_of(low, node, len(x.shape)))
    p = int(attributes["p"])
    y = low.forms.result(node.outputs[0])
    wide = x.dtype.itemsize == 8
    text = f"""
double *restrict row = (double *)thread->scratch;
for (int64_t line = first; line < last; line++) {{
{_READ.format(value=loaded(x.dtype, "from[i * inner]"))}
{_summed("fabs(v)" if p == 1 else "v * v")}
const double norm = {"sum" if p == 1 else "sqrt(sum)"}, factor = norm == 0 ? 0 : 1 / norm; (void)factor;
T *to = y + at;
for (int64_t i = 0; i < n; i++) to[i * inner] = {stored(x.dtype, "(norm == 0 ? 0 : row[i] / norm)" if wide else "row[i] * factor")};
}}"""
    emit_written(
        low.recorder, node, text,
        reads={"x": x}, writes={"y": y}, sizes={"n": n, "inner": inner},
        types={"T": c_type(x.dtype)}, items=outer * inner, each=n * 2, scratch=8 * n + 64,
    )  # fmt: skip
    low.forms[node.outputs[0]] = y


def lower_softmax(low: Lowering, node: ir.Node) -> None:
    """Lower Softmax and LogSoftmax of float64."""
    x = low.forms.contiguous(node.inputs[0])
    if not is_real(x.dtype) or not x.shape:
        raise NotNative(f"element type {x.dtype}")
    outer, n, inner = around(x.shape, axis_of(low, node, len(x.shape)))
    y = low.forms.result(node.outputs[0])
    log = node.op_type == "LogSoftmax"
    result = "row[i] - shift" if log else "row[i] * factor"
    text = f"""
double *restrict row = (double *)thread->scratch;
for (int64_t line = first; line < last; line++) {{
{_READ.format(value=loaded(x.dtype, "from[i * inner]"))}
double tops[8], top = -INFINITY;
for (int j = 0; j < 8; j++) tops[j] = top;
int64_t k = 0;
for (; k + 8 <= n; k += 8) for (int j = 0; j < 8; j++) tops[j] = row[k + j] > tops[j] ? row[k + j] : tops[j];
for (; k < n; k++) tops[0] = row[k] > tops[0] ? row[k] : tops[0];
for (int j = 0; j < 8; j++) top = tops[j] > top ? tops[j] : top;
{"for (int64_t i = 0; i < n; i++) row[i] -= top;" if log else ""}
{"" if log else "for (int64_t i = 0; i < n; i++) row[i] = hg_exp(row[i] - top);"}
{_summed("hg_exp(v)" if log else "v")}
const double {"shift = log(sum)" if log else "factor = 1 / sum"};
T *to = y + at;
for (int64_t i = 0; i < n; i++) to[i * inner] = {stored(x.dtype, result)};
}}"""
    emit_written(
        low.recorder, node, text,
        reads={"x": x}, writes={"y": y}, sizes={"n": n, "inner": inner},
        types={"T": c_type(x.dtype)}, items=outer * inner, each=n * 4, scratch=8 * n + 64,
    )  # fmt: skip
    low.forms[node.outputs[0]] = y


RULES: dict[str, Rule] = {
    "LogSoftmax": lower_softmax,
    "LpNormalization": lower_lp_normalization,
    "Softmax": lower_softmax,
}
