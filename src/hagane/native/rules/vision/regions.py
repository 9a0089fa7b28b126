"""RoiAlign: regions of a picture read between its pixels."""

from __future__ import annotations

import onnx_ir as ir

from hagane.native.kernels.kernel import c_type
from hagane.native.kernels.written import emit_written
from hagane.native.lowering.facts import NotNative
from hagane.native.lowering.state import Lowering, Rule
from hagane.native.rules.indexing.axes import whole_numbers
from hagane.symbolic import ceildiv

# Channels whose sums are kept at once.
_CHANNELS = 32


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
        "sums[c] = any && !(m > sums[c]) ? sums[c] : m;"
    )
    text = f"""
int64_t roi = q / pieces, c0 = q % pieces * {_CHANNELS}, count = hg_min({_CHANNELS}, channels - c0);
int64_t image = batch[roi];
if (regions != indices || image < 0 || image >= images || height == 0 || width == 0) {{ hg_fail(thread, image); return; }}
const T *r = rois + roi * 4; const T scale = (T){scale}, half = {0.5 if half else 0.0};
volatile T corner[4]; for (int k = 0; k < 4; k++) corner[k] = r[k] * scale; // rounded, as numbers of samples follow
T x0 = corner[0] - half, y0 = corner[1] - half, x1 = corner[2] - half, y1 = corner[3] - half;
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
        sizes={"regions": rois.shape[0], "indices": batch.shape[0], "images": x.shape[0], "channels": x.shape[1], "height": x.shape[2],
               "width": x.shape[3], "pieces": pieces},
        types={"T": c_type(x.dtype)}, tasks=rois.shape[0] * pieces,
        cost=rows * columns * _CHANNELS * 4.0, helper=axis,
    )  # fmt: skip
    low.forms[node.outputs[0]] = y


RULES: dict[tuple[str, str], Rule] = {("", "RoiAlign"): lower_roi_align}
