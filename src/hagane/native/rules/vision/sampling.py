"""GridSample: a picture read between its pixels, at points that the data name."""

from __future__ import annotations

import itertools

import numpy as np
import onnx_ir as ir

from hagane.native.kernels.kernel import c_type
from hagane.native.kernels.written import emit_written
from hagane.native.lowering.facts import NotNative
from hagane.native.lowering.state import Lowering, Rule
from hagane.symbolic import Dim, product

# Points that are sampled at once; fewer channels are read where they lie.
_POINTS, _FEW_CHANNELS = 32, 6
_FOLD = """
static double KERNEL_fold(double x, double n) {{ (void)n;
{body} }}"""
_REFLECT = """
const double low = {low}, span = {span};
if (span <= 0) return 0;
double d = fabs(x - low);
d -= floor(d / (2 * span)) * (2 * span);
d = low + (d > span ? 2 * span - d : d);
return d < 0 ? 0 : d > n - 1 ? n - 1 : d;"""


def _fold(mode: str, align: bool) -> str:
    """Return a C function that brings a coordinate back into the picture."""
    if mode == "border":
        return _FOLD.format(body="return x < 0 ? 0 : x > n - 1 ? n - 1 : x;")
    if mode == "reflection":
        body = _REFLECT.format(low="0" if align else "-0.5", span="n - 1" if align else "n")
        return _FOLD.format(body=body)
    return _FOLD.format(body="return x;")


_OLD_NAMES = {"bilinear": "linear", "bicubic": "cubic"}
# Fills positions `p` and weights `w` of the taps along an axis, of a coordinate `x`.
_TAPS = {
    "nearest": (1, "p[0] = rint(KERNEL_fold(x, n)); w[0] = 1;"),
    "linear": (2, "x = KERNEL_fold(x, n); p[0] = floor(x); p[1] = p[0] + 1; w[1] = x - p[0]; w[0] = 1 - w[1];"),
    "cubic": (4, """
const double a = -0.75, base = floor(x), t = x - base;
for (int i = 0; i < 4; i++) {
double d = fabs(t + 1 - i);
w[i] = i == 0 || i == 3 ? ((a * d - 5 * a) * d + 8 * a) * d - 4 * a : ((a + 2) * d - (a + 3)) * d * d + 1;
p[i] = base + i - 1;
if (KERNEL_MOVES) p[i] = rint(KERNEL_fold(p[i], n)); }"""),
}  # fmt: skip


def lower_grid_sample(low: Lowering, node: ir.Node) -> None:
    """Lower GridSample of any rank: taps are found once a point, and serve all channels."""
    attributes = low.facts.attributes(node)
    x, grid = low.forms.contiguous(node.inputs[0]), low.forms.contiguous(node.inputs[1])
    rank = len(x.shape) - 2
    for each in (x, grid):
        if each.dtype.name not in ("float32", "float64"):
            raise NotNative(f"element type {each.dtype}")
    mode = low.facts.choice(node, "mode", (*_TAPS, *_OLD_NAMES))
    padding = low.facts.choice(node, "padding_mode", ("zeros", "border", "reflection"))
    mode = _OLD_NAMES.get(mode, mode)
    align = bool(attributes["align_corners"])
    count, taps = _TAPS[mode]
    taps = taps.replace("KERNEL_MOVES", str(int(padding != "zeros")))
    real = c_type(x.dtype)
    # Loops over some points at once, which compilers bring to vectors.
    helper = f"""{_fold(padding, align)}
static void KERNEL_taps(const double *z, int64_t m, double n, int64_t at[][{_POINTS}], {real} weight[][{_POINTS}]) {{
for (int64_t k = 0; k < m; k++) {{
double p[{count}], w[{count}], x = z[k] - z[k] == 0 ? z[k] : -1;
{taps}
for (int i = 0; i < {count}; i++) {{
const int inside = (p[i] >= 0) & (p[i] < n);
at[i][k] = inside ? (int64_t)p[i] : 0; weight[i][k] = inside ? ({real})w[i] : 0; }} }} }}"""
    y = low.forms.result(node.outputs[0])
    points = product(y.shape[2:])
    total = count**rank
    place = "(g + 1) / 2 * (X{i} - 1)" if align else "((g + 1) * X{i} - 1) / 2"
    of_axes = "\n".join(
        f"for (int64_t p = 0; p < m; p++) {{ const double g = at_point[p * {rank} + {rank - 1 - i}]; "
        f"z[p] = {place.format(i=i)}; }}\nKERNEL_taps(z, m, (double)X{i}, at{i}, w{i});"
        for i in range(rank)
    )
    steps = [" * ".join([*(f"X{j}" for j in range(i + 1, rank)), "step"]) for i in range(rank)]
    combine = []
    for number, chosen in enumerate(itertools.product(range(count), repeat=rank)):
        offset = " + ".join(f"at{i}[{t}][p] * ({steps[i]})" for i, t in enumerate(chosen))
        weight = " * ".join(f"w{i}[{t}][p]" for i, t in enumerate(chosen))
        combine.append(f"offsets[{number}][p] = {offset}; weights[{number}][p] = {weight};")
    new_line = "\n"
    few = isinstance(x.shape[1], int) and x.shape[1] < _FEW_CHANNELS
    wide = x.dtype == np.float32 and not few and x.size != 0
    sizes: dict[str, Dim] = {
        "images": x.shape[0], "channels": x.shape[1], "points": points, "grid_n": grid.shape[0],
        **{f"X{i}": dim for i, dim in enumerate(x.shape[2:])},
    }  # fmt: skip
    if wide:
        from hagane.native.rules.vision.channels_last import channels_last, rows_of_channels

        x, sizes["step"] = channels_last(low, f"{node.outputs[0].name} turned", x)
        helper += rows_of_channels()
        channels = f"""
float *own = (float *)thread->scratch;
const T *from = x + image * plane * step;
for (int64_t p = 0; p < m; p++) for (int64_t c = 0; c < step; c += VL) {{
vf sum = {{0}};
if (plane > 0) for (int i = 0; i < {total}; i++) sum = v_fma(v_load(from + offsets[i][p] + c), v_set1(weights[i][p]), sum);
v_store(own + p * step + c, sum); }}
KERNEL_turn(own, step, to, points, m, channels); }}"""
    else:
        sizes["step"] = 1
        channels = f"""
const T *from = x + image * channels * plane;
for (int64_t c = 0; c < channels; c++, from += plane, to += points) {{
T sums[{_POINTS}] = {{0}};
if (plane > 0) for (int i = 0; i < {total}; i++)
for (int64_t p = 0; p < m; p++) sums[p] += from[offsets[i][p]] * weights[i][p];
for (int64_t p = 0; p < m; p++) to[p] = sums[p]; }} }}"""
    # Places and weights of some points, which all channels then share.
    text = f"""
const int64_t plane = {" * ".join(f"X{i}" for i in range(rank))};
if (grid_n != images) {{ hg_fail(thread, grid_n); return; }}
int64_t m;
for (int64_t point = first; point < last; point += m) {{
const int64_t image = point / points, inner = point % points;
m = hg_min(hg_min({_POINTS}, last - point), points - inner);
int64_t offsets[{total}][{_POINTS}]; {real} weights[{total}][{_POINTS}]; double z[{_POINTS}];
int64_t {", ".join(f"at{i}[{count}][{_POINTS}]" for i in range(rank))};
{real} {", ".join(f"w{i}[{count}][{_POINTS}]" for i in range(rank))};
const G *at_point = grid + point * {rank};
{of_axes}
for (int64_t p = 0; p < m; p++) {{ {new_line.join(combine)} }}
T *to = y + image * channels * points + inner;
{channels}"""
    emit_written(
        low.recorder, node, text,
        reads={"x": x, "grid": grid}, writes={"y": y}, sizes=sizes,
        types={"T": c_type(x.dtype), "G": c_type(grid.dtype)},
        items=y.shape[0] * points, each=y.shape[1] * total + 20, helper=helper, cost=0.3,
        scratch=sizes["step"] * (_POINTS * 4) if wide else 0,
    )  # fmt: skip
    low.forms[node.outputs[0]] = y


def lower_other(low: Lowering, node: ir.Node) -> None:
    """Lower other operators of grids and places between pixels."""
    from hagane.native.rules.vision import deformed, grids, regions  # few models need it

    (deformed.RULES | grids.RULES | regions.RULES)["", node.op_type](low, node)


RULES: dict[tuple[str, str], Rule] = {
    ("", "GridSample"): lower_grid_sample,
    **{("", name): lower_other for name in ("AffineGrid", "DeformConv", "Det", "RoiAlign")},
}
