"""Batch normalisation in training: statistics of images in blocks in one pass, and their way back.

The normalised values and the gradient of the data are elementwise in the images, given some numbers a
channel; so they are held back for the kernels behind, such as a rectifier.
"""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from hagane.native.kernels.expression import FLOAT32, Apply, Leaf, float_text
from hagane.native.kernels.kernel import work_of
from hagane.native.kernels.tensor import Blocked, Tensor
from hagane.native.kernels.written import emit_written
from hagane.native.lowering.facts import NotNative
from hagane.native.lowering.forms import Lazy
from hagane.native.lowering.state import Lowering, Rule
from hagane.native.rules.elementwise import keep, nodes_of
from hagane.symbolic import Dim, maximum

# Work is split at least so often, by rows where there are not as many blocks of channels.
_TASKS = 16
# Pixels whose sums are taken before they are added to those of others: they stay in the first cache.
_PIXELS = 64

# Rows of all images are split into parts. The pixels of a part are ``n`` at ``p``, row by row.
_WALK = """
const int64_t block = q % B, part = q / B;
const int64_t down = (H + high - 1) / high, units = N * down;
{start}
for (int64_t u = units * part / parts; u < units * (part + 1) / parts; u++) {{
const int64_t y0 = u % down * high, y1 = hg_min(H, y0 + high), image = u / down;
for (int64_t x0 = 0; x0 < W; x0 += {pixels}) {{
const int64_t x1 = hg_min(W, x0 + {pixels});
{chunk}
}} }}
{end}"""
_EACH = """
for (int64_t y = y0; y < y1; y++) {{
{rows}
int64_t i = x0;
{body}
}}"""
# Mean and sum of squares about it, of a chunk and then of all so far (Chan et al., 1979).
_MOMENTS_START = "vf mean = {0}, m2 = {0}; double n = 0;"
_MOMENTS_CHUNK = (
    """const float *chunk = x + image * x_image + block * x_plane;
vf s0 = {{0}}, s1 = {{0}}, s2 = {{0}}, s3 = {{0}};"""
    + _EACH.format(
        rows="const float *r = chunk + y * x_row;",
        body="""for (; i + 4 <= x1; i += 4) {{
s0 += v_load(r + i * VL), s1 += v_load(r + i * VL + VL);
s2 += v_load(r + i * VL + 2 * VL), s3 += v_load(r + i * VL + 3 * VL); }}
for (; i < x1; i++) s0 += v_load(r + i * VL);""",
    )
    + """
const double c = (double)((y1 - y0) * (x1 - x0));
const vf centre = ((s0 + s1) + (s2 + s3)) / (float)c;
vf d0 = {{0}}, d1 = {{0}};"""
    + _EACH.format(
        rows="const float *r = chunk + y * x_row;",
        body="""for (; i + 2 <= x1; i += 2) {{
vf a = v_load(r + i * VL) - centre, b = v_load(r + i * VL + VL) - centre;
d0 = v_fma(a, a, d0), d1 = v_fma(b, b, d1); }}
for (; i < x1; i++) {{ vf a = v_load(r + i * VL) - centre; d0 = v_fma(a, a, d0); }}""",
    )
    + """
const vf apart = centre - mean;
m2 += d0 + d1 + apart * apart * (float)(n * c / (n + c));
mean += apart * (float)(c / (n + c));
n += c;"""
)
_MOMENTS_END = """
float *to = sums + q * 3 * VL;
v_store(to, mean), v_store(to + VL, m2), v_store(to + 2 * VL, v_set1((float)n));"""
# Of each channel: its mean, the factor and the summand of what is left of it.
_MOMENTS_JOIN = """
vf at = {{0}}, m2 = {{0}}; double n = 0;
for (int64_t part = 0; part < parts; part++) {{
const float *from = sums + (part * B + q) * 3 * VL;
const double c = from[2 * VL];
if (c == 0) continue;
const vf apart = v_load(from) - at;
m2 += v_load(from + VL) + apart * apart * (float)(n * c / (n + c));
at += apart * (float)(c / (n + c));
n += c;
}}
const int64_t k = hg_min(VL, C - q * VL);
const vf spread = m2 / (float)n;
v_store_n(mean + q * VL, at, k), v_store_n(variance + q * VL, spread, k);
const vf factor = v_load_n(scale + q * VL, k) / v_sqrt(spread + {epsilon});
v_store(numbers + q * VL, at), v_store(numbers + (B + q) * VL, factor);
v_store(numbers + (2 * B + q) * VL, v_load_n(bias + q * VL, k));"""
# Sums of the gradient, and of its products with the data less their mean.
_GRADIENT_START = """const vf centre = v_load_n(mean + block * VL, hg_min(VL, C - block * VL));
vf total = {0}, products = {0};"""
_GRADIENT_CHUNK = (
    """const float *a = x + image * x_image + block * x_plane;
const float *b = g + image * g_image + block * g_plane;
vf s0 = {{0}}, s1 = {{0}}, t0 = {{0}}, t1 = {{0}};"""
    + _EACH.format(
        rows="const float *r = a + y * x_row, *w = b + y * g_row;",
        body="""for (; i + 2 <= x1; i += 2) {{
vf g0 = v_load(w + i * VL), g1 = v_load(w + i * VL + VL);
s0 += g0, t0 = v_fma(g0, v_load(r + i * VL) - centre, t0);
s1 += g1, t1 = v_fma(g1, v_load(r + i * VL + VL) - centre, t1); }}
for (; i < x1; i++) {{ vf g0 = v_load(w + i * VL); s0 += g0, t0 = v_fma(g0, v_load(r + i * VL) - centre, t0); }}""",
    )
    + "\ntotal += s0 + s1, products += t0 + t1;"
)
_GRADIENT_END = "v_store(sums + q * 2 * VL, total), v_store(sums + q * 2 * VL + VL, products);"
# Of each channel: its mean, the factor of the gradient, that of the data, a summand.
_GRADIENT_JOIN = """
vf total = {{0}}, products = {{0}};
for (int64_t part = 0; part < parts; part++) {{
const float *from = sums + (part * B + q) * 2 * VL;
total += v_load(from), products += v_load(from + VL);
}}
const int64_t k = hg_min(VL, C - q * VL);
vf inverse = 1.f / v_sqrt(v_load_n(variance + q * VL, k) + {epsilon});
v_store_n(of_bias + q * VL, total, k), v_store_n(of_scale + q * VL, products * inverse, k);
const vf factor = v_load_n(scale + q * VL, k) * inverse, share = factor / (float)(N * H * W);
v_store(numbers + q * VL, v_load_n(mean + q * VL, k)), v_store(numbers + (B + q) * VL, factor);
v_store(numbers + (2 * B + q) * VL, -share * inverse * inverse * products);
v_store(numbers + (3 * B + q) * VL, -share * total);"""


def _walk(start: str, chunk: str, end: str) -> str:
    text = chunk.replace("{{", "{").replace("}}", "}")
    return _WALK.format(start=start, chunk=text, end=end, pixels=_PIXELS)


def _images(low: Lowering, values: Sequence[ir.Value | None]) -> list[Blocked]:
    """Return images in blocks.

    Raises:
        NotNative: One is no image of float32, or is empty.
    """
    for value in values:
        shape = low.facts.shape(value)
        if not low.facts.is_float(value) or len(shape) not in (3, 4):
            raise NotNative("data that are not images of float32")
        if 0 in shape:
            raise NotNative("an empty image")
        if not isinstance(shape[1], int):
            raise NotNative("channels known only at run time")
    return [low.forms.blocked(value) for value in values]


def _sizes(found: Blocked) -> dict[str, Dim]:
    return {
        "N": found.shape[0],
        "B": found.blocks,
        "C": found.channels,
        "H": found.rows,
        "W": found.columns,
        "parts": -(-_TASKS // found.blocks),
        "high": maximum(1, _PIXELS // maximum(1, found.columns))
        if isinstance(found.columns, int)
        else 1,
    }


def _steps(name: str, found: Blocked) -> dict[str, Dim]:
    return {
        f"{name}_image": found.blocks * found.plane_stride,
        f"{name}_plane": found.plane_stride,
        f"{name}_row": found.row_stride,
    }


def _numbers(low: Lowering, node: ir.Node, count: int, found: Blocked) -> tuple[Tensor, list[Leaf]]:
    """Return memory for some numbers a channel, and each of them as an operand."""
    wide = found.blocks * found.lanes
    memory = low.recorder.new(f"{node.name} numbers", FLOAT32, (count, wide))
    shape, strides = (1, found.blocks, 1, 1, found.lanes), (0, found.lanes, 0, 0, 1)
    parts = [Tensor(memory.buffer, FLOAT32, shape, strides, n * wide) for n in range(count)]
    return memory, [Leaf(part) for part in parts]


def lower_training(low: Lowering, node: ir.Node) -> None:
    """Lower the normalisation of images by their own statistics."""
    (x,) = _images(low, node.inputs[:1])
    scale, bias = (low.forms.contiguous(value) for value in node.inputs[1:3])
    mean, variance = (low.forms.result(value) for value in node.outputs[1:3])
    sizes, tasks = _sizes(x), x.blocks * -(-_TASKS // x.blocks)
    sums = low.recorder.new(f"{node.name} sums", FLOAT32, (tasks, 3, x.lanes))
    numbers, leaves = _numbers(low, node, 3, x)
    epsilon = float_text(float(low.facts.attributes(node)["epsilon"]))
    emit_written(
        low.recorder, node, _walk(_MOMENTS_START, _MOMENTS_CHUNK, _MOMENTS_END),
        reads={"x": x.view()}, writes={"sums": sums}, sizes={**sizes, **_steps("x", x)},
        tasks=tasks, work=work_of(x.floats, 0.1), name="moments",
    )  # fmt: skip
    emit_written(
        low.recorder, node, _MOMENTS_JOIN.format(epsilon=epsilon),
        reads={"sums": sums, "scale": scale, "bias": bias},
        writes={"mean": mean, "variance": variance, "numbers": numbers},
        sizes={name: sizes[name] for name in ("B", "C", "parts")},
        tasks=x.blocks, cost=100.0, name="join_moments",
    )  # fmt: skip
    low.forms[node.outputs[1]], low.forms[node.outputs[2]] = mean, variance
    y = node.outputs[0]
    terms = (Leaf(x.view()), *leaves)
    expression = Apply("v_fma({0} - {1}, {2}, {3})", terms, FLOAT32)
    keep(low, y, Lazy(expression, FLOAT32, low.facts.shape(y), True, nodes_of(low, node)))


def lower_training_gradient(low: Lowering, node: ir.Node) -> None:
    """Lower the gradients of data, scale and bias."""
    x, g = _images(low, (node.inputs[0], node.inputs[4]))
    scale, mean, variance = (low.forms.contiguous(value) for value in node.inputs[1:4])
    of_scale, of_bias = (low.forms.result(value) for value in node.outputs[1:3])
    sizes, tasks = _sizes(x), x.blocks * -(-_TASKS // x.blocks)
    sums = low.recorder.new(f"{node.name} sums", FLOAT32, (tasks, 2, x.lanes))
    numbers, (centre, factor, of_data, rest) = _numbers(low, node, 4, x)
    epsilon = float_text(float(low.facts.attributes(node)["epsilon"]))
    emit_written(
        low.recorder, node, _walk(_GRADIENT_START, _GRADIENT_CHUNK, _GRADIENT_END),
        reads={"x": x.view(), "g": g.view(), "mean": mean}, writes={"sums": sums},
        sizes={**sizes, **_steps("x", x), **_steps("g", g)}, tasks=tasks,
        work=work_of(x.floats, 0.15), name="gradient_sums",
    )  # fmt: skip
    emit_written(
        low.recorder, node, _GRADIENT_JOIN.format(epsilon=epsilon),
        reads={"sums": sums, "scale": scale, "mean": mean, "variance": variance},
        writes={"of_scale": of_scale, "of_bias": of_bias, "numbers": numbers},
        sizes={name: sizes[name] for name in ("N", "B", "C", "H", "W", "parts")},
        tasks=x.blocks, cost=100.0, name="join_gradient",
    )  # fmt: skip
    low.forms[node.outputs[1]], low.forms[node.outputs[2]] = of_scale, of_bias
    y = node.outputs[0]
    if low.facts.uses(y) or y in low.facts.outputs:
        inner = Apply(
            "v_fma({0} - {1}, {2}, {3})", (Leaf(x.view()), centre, of_data, rest), FLOAT32
        )
        expression = Apply("v_fma({0}, {1}, {2})", (Leaf(g.view()), factor, inner), FLOAT32)
        keep(low, y, Lazy(expression, FLOAT32, low.facts.shape(y), True, nodes_of(low, node)))


RULES: dict[tuple[str, str], list[Rule]] = {
    ("hagane", "BatchNormTraining"): [lower_training],
    ("hagane", "BatchNormTrainingGradient"): [lower_training_gradient],
}
