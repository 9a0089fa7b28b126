"""Normalisation by norms, and softmax of any floating-point type."""

from __future__ import annotations

import onnx_ir as ir

from hagane.native.kernels.kernel import c_type
from hagane.native.kernels.written import emit_written, is_real, loaded, stored
from hagane.native.lowering.facts import NotNative
from hagane.native.lowering.state import Lowering, Rule
from hagane.native.rules.indexing.axes import around, axis_of


def lower_lp_normalization(low: Lowering, node: ir.Node) -> None:
    """Lower LpNormalization: each line divided by its norm."""
    attributes = low.facts.attributes(node)
    x = low.forms.contiguous(node.inputs[0])
    outer, n, inner = around(x.shape, axis_of(low, node, len(x.shape)))
    p = int(attributes["p"])
    y = low.forms.result(node.outputs[0])
    value = f"(double){loaded(x.dtype, 'from[i * inner]')}"
    text = f"""
for (int64_t line = first; line < last; line++) {{
const int64_t at = line / inner * n * inner + line % inner;
const T *from = x + at;
double sum = 0;
for (int64_t i = 0; i < n; i++) {{ double v = {value}; sum += {"fabs(v)" if p == 1 else "v * v"}; }}
const double norm = {"sum" if p == 1 else "sqrt(sum)"};
for (int64_t i = 0; i < n; i++) y[at + i * inner] = {stored(x.dtype, f"(norm == 0 ? 0 : {value} / norm)")};
}}"""
    emit_written(
        low.recorder, node, text,
        reads={"x": x}, writes={"y": y}, sizes={"n": n, "inner": inner},
        types={"T": c_type(x.dtype)}, items=outer * inner, each=n * 2,
    )  # fmt: skip
    low.forms[node.outputs[0]] = y


def lower_softmax(low: Lowering, node: ir.Node) -> None:
    """Lower Softmax and LogSoftmax of float64."""
    x = low.forms.contiguous(node.inputs[0])
    if not is_real(x.dtype) or not x.shape:
        raise NotNative(f"element type {x.dtype}")
    outer, n, inner = around(x.shape, axis_of(low, node, len(x.shape)))
    y = low.forms.result(node.outputs[0])
    value = f"(double){loaded(x.dtype, 'from[i * inner]')}"
    result = "exp(v - top) / sum" if node.op_type == "Softmax" else "(v - top) - log(sum)"
    text = f"""
for (int64_t line = first; line < last; line++) {{
const int64_t at = line / inner * n * inner + line % inner;
const T *from = x + at;
double top = -INFINITY, sum = 0;
for (int64_t i = 0; i < n; i++) {{ double v = {value}; top = v > top || v != v ? v : top; }}
for (int64_t i = 0; i < n; i++) sum += exp({value} - top);
for (int64_t i = 0; i < n; i++) {{ double v = {value}; y[at + i * inner] = {stored(x.dtype, result)}; }}
}}"""
    emit_written(
        low.recorder, node, text,
        reads={"x": x}, writes={"y": y}, sizes={"n": n, "inner": inner},
        types={"T": c_type(x.dtype)}, items=outer * inner, each=n * 16,
    )  # fmt: skip
    low.forms[node.outputs[0]] = y


RULES: dict[str, Rule] = {
    "LogSoftmax": lower_softmax,
    "LpNormalization": lower_lp_normalization,
    "Softmax": lower_softmax,
}
