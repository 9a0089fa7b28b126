"""GridSample, RoiAlign and DeformConv: pictures read between pixels."""

from __future__ import annotations

import itertools
import math

import numpy as np
import onnx_ir as ir

from hagane.native.kernels.kernel import c_type
from hagane.native.kernels.written import emit_written
from hagane.native.lowering.facts import NotNative
from hagane.native.lowering.state import Lowering, Rule
from hagane.native.rules.indexing.axes import number_input, whole_numbers
from hagane.symbolic import Dim, ceildiv, product

# Channels whose sums are kept at once, and pixels that are computed together.
_CHANNELS, _PIXELS = 32, 32
# Results of a product that are summed side by side.
_MAPS = 4
# Points that are sampled at once.
_POINTS = 32
_FOLD = """
static double KERNEL_fold(double x, double n) {{ (void)n;
{body} }}"""
_REFLECT = """
const double low = {low}, span = {span};
if (span <= 0) return 0;
double d = fmod(fabs(x - low), 2 * span);
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
    helper = f"""{_fold(padding, align)}
static void KERNEL_taps(double x, double n, int64_t *at, float *weight) {{
double p[{count}], w[{count}];
if (!(x - x == 0)) x = -1;
{taps}
for (int i = 0; i < {count}; i++) {{
int inside = p[i] >= 0 && p[i] < n;
at[i] = inside ? (int64_t)p[i] : 0; weight[i] = inside ? (float)w[i] : 0; }} }}"""
    y = low.forms.result(node.outputs[0])
    points = product(y.shape[2:])
    total = count**rank
    place = "(g + 1) / 2 * (X{i} - 1)" if align else "((g + 1) * X{i} - 1) / 2"
    of_axes = "\n".join(
        f"{{ double g = at_point[{rank - 1 - i}]; "
        f"KERNEL_taps({place.format(i=i)}, X{i}, at{i}, w{i}); }}"
        for i in range(rank)
    )
    steps = [" * ".join([*(f"X{j}" for j in range(i + 1, rank)), "1"]) for i in range(rank)]
    combine = []
    for number, chosen in enumerate(itertools.product(range(count), repeat=rank)):
        offset = " + ".join(f"at{i}[{t}] * {steps[i]}" for i, t in enumerate(chosen))
        weight = " * ".join(f"w{i}[{t}]" for i, t in enumerate(chosen))
        combine.append(f"offsets[{number}][p] = {offset}; weights[{number}][p] = {weight};")
    new_line = "\n"
    # Places and weights of some points, which all channels then share.
    text = f"""
const int64_t plane = {" * ".join(f"X{i}" for i in range(rank))};
if (grid_n != images) {{ hg_fail(thread, grid_n); return; }}
int64_t m;
for (int64_t point = first; point < last; point += m) {{
const int64_t image = point / points, inner = point % points;
m = hg_min(hg_min({_POINTS}, last - point), points - inner);
int64_t offsets[{total}][{_POINTS}]; float weights[{total}][{_POINTS}];
for (int64_t p = 0; p < m; p++) {{
const G *at_point = grid + (point + p) * {rank};
int64_t {", ".join(f"at{i}[{count}]" for i in range(rank))};
float {", ".join(f"w{i}[{count}]" for i in range(rank))};
{of_axes}
{new_line.join(combine)} }}
const T *from = x + image * channels * plane;
T *to = y + image * channels * points + inner;
for (int64_t c = 0; c < channels; c++, from += plane, to += points) {{
T sums[{_POINTS}] = {{0}};
if (plane > 0) for (int i = 0; i < {total}; i++)
for (int64_t p = 0; p < m; p++) sums[p] += from[offsets[i][p]] * weights[i][p];
for (int64_t p = 0; p < m; p++) to[p] = sums[p]; }} }}"""
    emit_written(
        low.recorder, node, text,
        reads={"x": x, "grid": grid}, writes={"y": y},
        sizes={"images": x.shape[0], "channels": x.shape[1], "points": points, "grid_n": grid.shape[0],
               **{f"X{i}": dim for i, dim in enumerate(x.shape[2:])}},
        types={"T": c_type(x.dtype), "G": c_type(grid.dtype)},
        items=x.shape[0] * points, each=x.shape[1] * total + 20, helper=helper,
    )  # fmt: skip
    low.forms[node.outputs[0]] = y


def lower_roi_align(low: Lowering, node: ir.Node) -> None:
    """Lower RoiAlign: some channels of a region at a time, which share where they are read."""
    attributes = low.facts.attributes(node)
    x, rois = low.forms.contiguous(node.inputs[0]), low.forms.contiguous(node.inputs[1])
    batch = whole_numbers(low, node.inputs[2])
    if x.dtype.name not in ("float32", "float64") or rois.dtype != x.dtype:
        raise NotNative(f"element type {x.dtype}")
    rows, columns = int(attributes["output_height"]), int(attributes["output_width"])
    ratio = int(attributes["sampling_ratio"])
    half = attributes["coordinate_transformation_mode"] == "half_pixel"
    mean = attributes["mode"] == "avg"
    y = low.forms.result(node.outputs[0])
    pieces = ceildiv(x.shape[1], _CHANNELS)
    scale = repr(float(attributes["spatial_scale"]))
    axis = """
static int KERNEL_tap(T z, int64_t n, int64_t *at, T *w) {
if (z < -1 || z > n || z != z) return 0;
z = z > 0 ? z : 0;
int64_t low = (int64_t)z;
if (low >= n - 1) { at[0] = at[1] = n - 1; z = (T)(n - 1); low = n - 1; } else { at[0] = low; at[1] = low + 1; }
w[1] = z - low; w[0] = 1 - w[1];
return 1; }""".replace("T ", c_type(x.dtype) + " ").replace("(T)", f"({c_type(x.dtype)})")
    add = (
        "sums[c] += (v[0] + v[1]) + (v[2] + v[3]);"
        if mean
        else "T m = v[0]; for (int i = 1; i < 4; i++) m = v[i] > m ? v[i] : m;\n"
        "sums[c] = any && sums[c] >= m ? sums[c] : m;"
    )
    text = f"""
int64_t roi = q / pieces, c0 = q % pieces * {_CHANNELS}, count = hg_min({_CHANNELS}, channels - c0);
int64_t image = batch[roi];
if (image < 0 || image >= images || height == 0 || width == 0) {{ hg_fail(thread, image); return; }}
const T *r = rois + roi * 4; const T scale = (T){scale}, half = {0.5 if half else 0.0};
T x0 = r[0] * scale - half, y0 = r[1] * scale - half, x1 = r[2] * scale - half, y1 = r[3] * scale - half;
T w = x1 - x0, h = y1 - y0;
{"" if half else "w = w > 1 ? w : 1; h = h > 1 ? h : 1;"}
T bin_h = h / {rows}, bin_w = w / {columns};
if (!(bin_h < 1e6 && bin_w < 1e6)) {{ hg_fail(thread, roi); return; }}
int64_t ny = {ratio if ratio > 0 else "(int64_t)ceil(bin_h)"}, nx = {ratio if ratio > 0 else "(int64_t)ceil(bin_w)"};
T number = ny > 0 && nx > 0 ? (T)(ny * nx) : 1;
const T *from = x + (image * channels + c0) * height * width;
for (int64_t p = 0; p < {rows * columns}; p++) {{
T sums[{_CHANNELS}] = {{0}}; int any = 0;
for (int64_t iy = 0; iy < ny; iy++) {{
T yy = y0 + p / {columns} * bin_h + (iy + (T)0.5) * bin_h / ny;
for (int64_t ix = 0; ix < nx; ix++) {{
T xx = x0 + p % {columns} * bin_w + (ix + (T)0.5) * bin_w / nx;
int64_t ay[2] = {{0}}, ax[2] = {{0}}; T wy[2] = {{0}}, wx[2] = {{0}};
if (!KERNEL_tap(yy, height, ay, wy) || !KERNEL_tap(xx, width, ax, wx)) wy[0] = wy[1] = wx[0] = wx[1] = 0;
for (int64_t c = 0; c < count; c++) {{
const T *a = from + c * height * width;
T v[4] = {{wy[0] * wx[0] * a[ay[0] * width + ax[0]], wy[0] * wx[1] * a[ay[0] * width + ax[1]],
wy[1] * wx[0] * a[ay[1] * width + ax[0]], wy[1] * wx[1] * a[ay[1] * width + ax[1]]}};
{add}
}}
any = 1;
}} }}
for (int64_t c = 0; c < count; c++) y[(roi * channels + c0 + c) * {rows * columns} + p] = sums[c]{" / number" if mean else ""};
}}
(void)number, (void)any;"""
    text = text.replace("(void)number, (void)any;", "(void)number;")
    emit_written(
        low.recorder, node, text,
        reads={"x": x, "rois": rois, "batch": batch}, writes={"y": y},
        sizes={"images": x.shape[0], "channels": x.shape[1], "height": x.shape[2],
               "width": x.shape[3], "pieces": pieces},
        types={"T": c_type(x.dtype)}, tasks=rois.shape[0] * pieces,
        cost=rows * columns * _CHANNELS * 4.0, helper=axis,
    )  # fmt: skip
    low.forms[node.outputs[0]] = y


def lower_deform_conv(low: Lowering, node: ir.Node) -> None:
    """Lower DeformConv: the samples of some pixels lie side by side, then a product."""
    attributes = low.facts.attributes(node)
    x, w = low.forms.contiguous(node.inputs[0]), low.forms.contiguous(node.inputs[1])
    offset = low.forms.contiguous(node.inputs[2])
    bias, mask = number_input(low, node, 3), number_input(low, node, 4)
    rank = len(x.shape) - 2
    if x.dtype.name not in ("float32", "float64") or w.dtype != x.dtype:
        raise NotNative(f"element type {x.dtype}")
    kernel = [int(k) for k in attributes.get("kernel_shape") or w.shape[2:] if isinstance(k, int)]
    if len(kernel) != rank:
        raise NotNative("a kernel of a size known only at run time")
    taps = math.prod(kernel)
    strides = attributes.get("strides") or [1] * rank
    dilations = attributes.get("dilations") or [1] * rank
    pads = attributes.get("pads") or [0] * 2 * rank
    groups, moves = int(attributes["group"]), int(attributes["offset_group"])
    y = low.forms.result(node.outputs[0])
    reads = {"x": x, "w": w, "offset": offset}
    if bias is not None:
        reads["bias"] = low.forms.contiguous(bias)
    if mask is not None:
        reads["mask"] = low.forms.contiguous(mask)
    points = product(y.shape[2:])
    pieces = ceildiv(points, _PIXELS)
    corners = list(itertools.product((0, 1), repeat=rank))
    steps = [" * ".join([*(f"X{j}" for j in range(i + 1, rank)), "1"]) for i in range(rank)]
    left = "\n".join(
        f"int64_t o{i} = left % Y{i}; left /= Y{i};" if i else "int64_t o0 = left;"
        for i in reversed(range(rank))
    )
    tap = "\n".join(
        f"int64_t k{i} = rest % {kernel[i]}; rest /= {kernel[i]};" for i in reversed(range(rank))
    )
    along = "\n".join(
        f"T z{i} = o{i} * {strides[i]} + k{i} * {dilations[i]} - {pads[i]} + move[{i} * points];\n"
        f"T f{i} = (T)floor(z{i}); int ok{i} = z{i} > -1 && z{i} < X{i};\n"
        f"int64_t a{i} = ok{i} ? (int64_t)f{i} : 0; T t{i} = z{i} - f{i};"
        for i in range(rank)
    )
    every = " && ".join(f"ok{i}" for i in range(rank))
    reading = []
    for number, chosen in enumerate(corners):
        inside = " && ".join(f"a{i} + {c} >= 0 && a{i} + {c} < X{i}" for i, c in enumerate(chosen))
        place = " + ".join(f"(a{i} + {c}) * {steps[i]}" for i, c in enumerate(chosen))
        weight = " * ".join(
            f"{'t' if c else '(1 - t'}{i}{'' if c else ')'}" for i, c in enumerate(chosen)
        )
        reading.append(
            f"{{ int in = {every} && {inside}; places[{number}][p] = in ? {place} : 0;"
            f" shares[{number}][p] = in ? {weight} : 0; }}"
        )
    new_line = "\n"
    text = f"""
const int64_t plane = {" * ".join(f"X{i}" for i in range(rank))};
const int64_t image = q / pieces, point0 = q % pieces * {_PIXELS}, count = hg_min({_PIXELS}, points - point0);
if (offset_c != {moves * taps * rank} || offset_p != points || channels % {groups * moves} != 0
|| maps % {groups} != 0 || of_group * {groups} != channels) {{ hg_fail(thread, offset_c); return; }}
T *read = (T *)thread->scratch;
const int64_t each = channels / {moves};
for (int64_t g = 0; g < {moves}; g++)
for (int64_t k = 0; k < {taps}; k++) {{
int64_t rest = k; (void)rest;
{tap}
int64_t places[{len(corners)}][{_PIXELS}]; T shares[{len(corners)}][{_PIXELS}];
for (int64_t p = 0; p < count; p++) {{
int64_t left = point0 + p;
{left}
const T *move = offset + ((image * {moves} + g) * {taps} + k) * {rank} * points + point0 + p;
{along}
{new_line.join(reading)} }}
{f"const T *ms = mask + ((image * {moves} + g) * {taps} + k) * points + point0;" if mask is not None else ""}
for (int64_t c = g * each; c < (g + 1) * each; c++) {{
const T *from = x + (image * channels + c) * plane;
T sums[{_PIXELS}] = {{0}}, *to = read + (c * {taps} + k) * {_PIXELS};
if (plane > 0) for (int i = 0; i < {len(corners)}; i++)
for (int64_t p = 0; p < count; p++) sums[p] += from[places[i][p]] * shares[i][p];
for (int64_t p = 0; p < count; p++) to[p] = sums[p]{" * ms[p]" if mask is not None else ""}; }} }}
const int64_t of_maps = maps / {groups}, terms = of_group * {taps};
for (int64_t m = 0, few; m < maps; m += few) {{
const T *in = read + m / of_maps * terms * {_PIXELS}, *v = w + m * terms;
few = of_maps - m % of_maps < {_MAPS} ? 1 : {_MAPS};
T sums[{_MAPS}][{_PIXELS}];
for (int64_t n = 0; n < few; n++)
for (int p = 0; p < {_PIXELS}; p++) sums[n][p] = {"bias[m + n]" if bias is not None else "0"};
if (few == 1) for (int64_t i = 0; i < terms; i++) {{
for (int p = 0; p < {_PIXELS}; p++) sums[0][p] += v[i] * in[i * {_PIXELS} + p]; }}
else for (int64_t i = 0; i < terms; i++)
for (int p = 0; p < {_PIXELS}; p++) {{
const T e = in[i * {_PIXELS} + p];
{" ".join(f"sums[{n}][p] += v[{n} * terms + i] * e;" for n in range(_MAPS))} }}
for (int64_t n = 0; n < few; n++)
for (int64_t p = 0; p < count; p++) y[(image * maps + m + n) * points + point0 + p] = sums[n][p]; }}"""
    sizes: dict[str, Dim] = {
        "channels": x.shape[1], "maps": w.shape[0], "of_group": w.shape[1], "points": points,
        "pieces": pieces, "offset_c": offset.shape[1], "offset_p": product(offset.shape[2:]),
        **{f"X{i}": dim for i, dim in enumerate(x.shape[2:])},
        **{f"Y{i}": dim for i, dim in enumerate(y.shape[2:])},
    }  # fmt: skip
    item = np.dtype(x.dtype).itemsize
    emit_written(
        low.recorder, node, text,
        reads=reads, writes={"y": y}, sizes=sizes, types={"T": c_type(x.dtype)},
        tasks=x.shape[0] * pieces, cost=50000.0,
        scratch=x.shape[1] * taps * _PIXELS * item + 64,
    )  # fmt: skip
    low.forms[node.outputs[0]] = y


RULES: dict[tuple[str, str], Rule] = {
    ("", "DeformConv"): lower_deform_conv,
    ("", "GridSample"): lower_grid_sample,
    ("", "RoiAlign"): lower_roi_align,
}
