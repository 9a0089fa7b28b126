"""Gradients of rows' normalisation: one pass over the rows, sums of parts of them joined behind."""

from __future__ import annotations

import onnx_ir as ir

from hagane.native.kernels.expression import FLOAT32, float_text
from hagane.native.kernels.kernel import work_of
from hagane.native.kernels.written import emit_written
from hagane.native.lowering.facts import NotNative
from hagane.native.lowering.state import Lowering, Rule
from hagane.native.rules.rows import lower_layer_norm
from hagane.symbolic import ceildiv, product

# Rows are split into so many parts, whatever the number of threads: their order decides digits.
_PARTS = 16
# Numbers of a row whose sums one task joins.
_JOINED = 256

# With n = (x - mean) / deviation, the gradient of the data is
# (g · scale - mean(g · scale) - n · mean(g · scale · n)) / deviation (Ba et al., 2016).
_EACH = """
for (int64_t row = rows * q / parts; row < rows * (q + 1) / parts; row++) {{
const float *xs = x + row * n, *gs = g + row * n; float *to = of_data + row * n;
const float mean = hg_sum_of(xs, n) / n;
const float inverse = 1.f / sqrtf(hg_squares_of(xs, n, mean) / n + {epsilon});
const vf centre = v_set1(mean), factor = v_set1(inverse);
vf all = {{0}}, along = {{0}}; int64_t i;
for (i = 0; i + VL <= n; i += VL) {{
const vf one = v_load(gs + i), y = (v_load(xs + i) - centre) * factor, w = one * v_load(scale + i);
all += w, along = v_fma(w, y, along);
v_store(sums + i, v_fma(one, y, v_load(sums + i))), v_store(sums + n + i, v_load(sums + n + i) + one); }}
float total = v_sum(all), products = v_sum(along);
for (; i < n; i++) {{
const float one = gs[i], y = (xs[i] - mean) * inverse, w = one * scale[i];
total += w, products += w * y, sums[i] += one * y, sums[n + i] += one; }}
total /= n, products /= n;
const vf moved = v_set1(total), turned = v_set1(products);
for (i = 0; i + VL <= n; i += VL) {{
const vf y = (v_load(xs + i) - centre) * factor;
v_store(to + i, (v_load(gs + i) * v_load(scale + i) - moved - y * turned) * factor); }}
for (; i < n; i++)
to[i] = (gs[i] * scale[i] - total - (xs[i] - mean) * inverse * products) * inverse;
}}"""
_START = "float *sums = all_sums + q * 2 * n; memset(sums, 0, 2 * n * sizeof(float));"
_JOIN = """
const int64_t end = hg_min(n, (q + 1) * {joined});
for (int64_t i = q * {joined}; i < end; i++) {{
float scaled = 0, moved = 0;
for (int64_t part = 0; part < parts; part++) {{
scaled += all_sums[part * 2 * n + i]; moved += all_sums[part * 2 * n + n + i]; }}
of_scale[i] = scaled, of_bias[i] = moved;
}}"""


def lower_gradient(low: Lowering, node: ir.Node) -> None:
    """Lower the gradients of data, scale and bias."""
    if not all(low.facts.is_float(value) for value in node.inputs):
        raise NotNative("rows that are not float32")
    x, scale, g = (low.forms.contiguous(value) for value in node.inputs)
    of_data, of_scale, of_bias = (low.forms.result(value) for value in node.outputs)
    axis = int(low.facts.attributes(node)["axis"]) % len(x.shape)
    rows, n = product(x.shape[:axis]), product(x.shape[axis:])
    sums = low.recorder.new(f"{node.name} sums", FLOAT32, (_PARTS, 2, n))
    epsilon = float_text(float(low.facts.attributes(node)["epsilon"]))
    emit_written(
        low.recorder, node, _START + _EACH.format(epsilon=epsilon),
        reads={"x": x, "g": g, "scale": scale}, writes={"all_sums": sums, "of_data": of_data},
        sizes={"rows": rows, "n": n, "parts": _PARTS}, tasks=_PARTS,
        work=work_of(rows * n, 0.3), name="gradient_of_rows",
    )  # fmt: skip
    emit_written(
        low.recorder, node, _JOIN.format(joined=_JOINED),
        reads={"all_sums": sums}, writes={"of_scale": of_scale, "of_bias": of_bias},
        sizes={"n": n, "parts": _PARTS}, tasks=ceildiv(n, _JOINED), cost=200.0, name="join_rows",
    )  # fmt: skip
    for value, made in zip(node.outputs, (of_data, of_scale, of_bias), strict=True):
        low.forms[value] = made


RULES: dict[tuple[str, str], list[Rule]] = {
    ("hagane", "LayerNormTraining"): [lower_layer_norm],
    ("hagane", "LayerNormTrainingGradient"): [lower_gradient],
}
