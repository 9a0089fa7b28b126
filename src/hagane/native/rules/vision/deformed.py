"""DeformConv: a convolution whose taps the data move.

The channels of a picture lie side by side, so that a tap is read for a vector of them. The samples of
some pixels, then all taps by all channels, are multiplied by the weights of a vector of maps.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import onnx_ir as ir

from hagane.native.kernels.kernel import c_type, work_of
from hagane.native.kernels.tensor import Tensor
from hagane.native.kernels.written import emit_written
from hagane.native.lowering.facts import NotNative
from hagane.native.lowering.state import Lowering, Rule
from hagane.native.rules.indexing.axes import number_input
from hagane.native.rules.vision.channels_last import channels_last, rows_of_channels
from hagane.symbolic import Dim, ceildiv, floordiv, product

# Pixels of one task.
_PIXELS = 32


def lower_deform_conv(low: Lowering, node: ir.Node) -> None:
    """Lower DeformConv of any rank, groups and groups of offsets."""
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
    if x.size == 0:
        raise NotNative("an empty picture")
    taps = math.prod(kernel)
    strides = attributes.get("strides") or [1] * rank
    dilations = attributes.get("dilations") or [1] * rank
    pads = attributes.get("pads") or [0] * 2 * rank
    groups, moves = int(attributes["group"]), int(attributes["offset_group"])
    y = low.forms.result(node.outputs[0])
    turned, wide = channels_last(low, f"{node.outputs[0].name} turned", x)
    packed, room = _packed_weights(low, node, w, taps, groups)
    reads = {"x": turned, "w": packed, "offset": offset}
    if bias is not None:
        reads["bias"] = low.forms.contiguous(bias)
    if mask is not None:
        reads["mask"] = low.forms.contiguous(mask)
    points = product(y.shape[2:])
    pieces = ceildiv(points, _PIXELS)
    corners = list(itertools.product((0, 1), repeat=rank))
    steps = [" * ".join([*(f"X{j}" for j in range(i + 1, rank)), "wide"]) for i in range(rank)]
    left = "\n".join(
        f"const int64_t o{i} = left % Y{i}; left /= Y{i};" if i else "const int64_t o0 = left;"
        for i in reversed(range(rank))
    )
    tap = "\n".join(
        f"const int64_t k{i} = rest % {kernel[i]}; rest /= {kernel[i]};"
        for i in reversed(range(rank))
    )
    along = "\n".join(
        f"const T z{i} = o{i} * {strides[i]} + k{i} * {dilations[i]} - {pads[i]} + move[{i} * points];\n"
        f"const int ok{i} = (z{i} > -1) & (z{i} < X{i}); const T f{i} = (T)floor(ok{i} ? z{i} : 0);\n"
        f"const int64_t a{i} = (int64_t)f{i}; const T t{i} = z{i} - f{i};"
        for i in range(rank)
    )
    every = " & ".join(f"ok{i}" for i in range(rank))
    reading = []
    for number, chosen in enumerate(corners):
        inside = " & ".join(
            f"(a{i} + {c} >= 0) & (a{i} + {c} < X{i})" for i, c in enumerate(chosen)
        )
        place = " + ".join(f"(a{i} + {c}) * {steps[i]}" for i, c in enumerate(chosen))
        weight = " * ".join(
            f"{'t' if c else '(1 - t'}{i}{'' if c else ')'}" for i, c in enumerate(chosen)
        )
        if mask is not None:
            weight += " * ms[p]"
        reading.append(
            f"{{ const int in = {every} & {inside}; places[{number}][p] = in ? {place} : 0;"
            f" shares[{number}][p] = in ? {weight} : 0; }}"
        )
    new_line = "\n"
    vector = x.dtype == np.float32
    text = f"""
const int64_t plane = {" * ".join(f"X{i}" for i in range(rank))};
const int64_t image = q / pieces, point0 = q % pieces * {_PIXELS}, count = hg_min({_PIXELS}, points - point0);
if (offset_c != {moves * taps * rank} || offset_p != points || channels % {groups} != 0 || channels % {moves} != 0
|| plane == 0 || maps % {groups} != 0 || of_group * {groups} != channels) {{ hg_fail(thread, offset_c); return; }}
T *read = (T *)thread->scratch, *own = read + {_PIXELS * taps} * wide;
const T *picture = x + image * plane * wide;
const int64_t each = channels / {moves}, row = {taps} * wide;
for (int64_t g = 0; g < {moves}; g++)
for (int64_t k = 0; k < {taps}; k++) {{
int64_t rest = k; (void)rest;
{tap}
int64_t places[{len(corners)}][{_PIXELS}]; T shares[{len(corners)}][{_PIXELS}];
const T *moves = offset + ((image * {moves} + g) * {taps} + k) * {rank} * points + point0;
{f"const T *ms = mask + ((image * {moves} + g) * {taps} + k) * points + point0;" if mask is not None else ""}
for (int64_t p = 0; p < count; p++) {{
int64_t left = point0 + p;
{left}
const T *move = moves + p;
{along}
{new_line.join(reading)} }}
for (int64_t p = 0; p < count; p++) {{
T *to = read + p * row + k * wide;
{_sampled(len(corners), parts=moves > 1, vector=vector)} }} }}
const int64_t of_maps = maps / {groups};
for (int64_t g = 0; g < {groups}; g++) {{
const T *weights = w + g * {taps} * of_group * room, *in = read + g * of_group;
{_multiplied(taps, low.facts.level.lanes, biased=bias is not None, vector=vector)}
}}
"""
    sizes: dict[str, Dim] = {
        "channels": x.shape[1], "maps": w.shape[0], "of_group": w.shape[1], "points": points,
        "pieces": pieces, "offset_c": offset.shape[1], "offset_p": product(offset.shape[2:]),
        "wide": wide, "room": room,
        **{f"X{i}": dim for i, dim in enumerate(x.shape[2:])},
        **{f"Y{i}": dim for i, dim in enumerate(y.shape[2:])},
    }  # fmt: skip
    bytes_of_rows = (_PIXELS * taps * wide + _PIXELS * room) * x.dtype.itemsize
    emit_written(
        low.recorder, node, text,
        reads=reads, writes={"y": y}, sizes=sizes, types={"T": c_type(x.dtype)},
        tasks=x.shape[0] * pieces, helper=rows_of_channels() if vector else "",
        work=work_of(y.size * w.shape[1], taps * 0.03), scratch=bytes_of_rows + 512,
    )  # fmt: skip
    low.forms[node.outputs[0]] = y


def _packed_weights(
    low: Lowering, node: ir.Node, w: Tensor, taps: int, groups: int
) -> tuple[Tensor, Dim]:
    """Return weights ``(groups, taps, channels, room)``, and ``room``, whole vectors of maps."""
    lanes = low.facts.level.lanes
    maps, of_group = w.shape[:2]
    of_maps = floordiv(maps, groups)
    room = ceildiv(of_maps, lanes) * lanes
    known = low.facts.constant(node.inputs[1])
    if known is not None and known.shape[0] % groups == 0:
        turned = known.reshape(groups, -1, known.shape[1], taps).transpose(0, 3, 2, 1)
        padding = [(0, 0)] * 3 + [(0, -turned.shape[3] % lanes)]
        return low.recorder.constant(node.inputs[1], np.pad(turned, padding)), room
    shape = (groups, taps, of_group, room)
    packed = low.recorder.new(f"{node.outputs[0].name} weights", w.dtype, shape)
    text = f"""
for (int64_t item = first; item < last; item++) {{
const int64_t c = item % channels, k = item / channels % {taps}, g = item / channels / {taps};
for (int64_t m = 0; m < maps; m++) packed[item * room + m] = w[((g * maps + m) * channels + c) * {taps} + k];
for (int64_t m = maps; m < room; m++) packed[item * room + m] = 0; }}"""
    emit_written(
        low.recorder, node, text, reads={"w": w}, writes={"packed": packed},
        sizes={"channels": of_group, "maps": of_maps, "room": room},
        items=of_group * (groups * taps), each=room, cost=1.0,
    )  # fmt: skip
    return packed, room


def _sampled(corners: int, *, parts: bool, vector: bool) -> str:
    """Return C that reads the channels of a tap of pixel ``p``, from its corners to ``to``.

    Args:
        corners: How many there are.
        parts: Whether other channels are read at other places.
        vector: Whether elements are float32.
    """
    if not vector:
        return f"""
for (int64_t c = g * each; c < (g + 1) * each; c++) {{
T sum = 0;
for (int i = 0; i < {corners}; i++) sum += picture[places[i][p] + c] * shares[i][p];
to[c] = sum; }}"""
    load, store = "v_load({0})", "v_store(to + c, sum)"
    if parts:
        load, store = "v_load_n({0}, n)", "v_store_n(to + c, sum, n)"
    terms = "\n".join(
        f"sum = v_fma({load.format(f'picture + places[{i}][p] + c')}, v_set1(shares[{i}][p]), sum);"
        for i in range(corners)
    )
    return f"""
for (int64_t c = g * each; c < (g + 1) * each; c += VL) {{
const int64_t n = hg_min(VL, (g + 1) * each - c); (void)n;
vf sum = {{0}};
{terms}
{store}; }}"""


def _multiplied(taps: int, lanes: int, *, biased: bool, vector: bool) -> str:
    """Return C that multiplies the samples ``in`` of a group by its weights.

    Args:
        taps: How many there are.
        lanes: Elements of a vector.
        biased: Whether a bias is added.
        vector: Whether elements are float32.
    """
    result = "y + (image * maps + g * of_maps) * points + point0"
    if not vector:
        start = "m < of_maps ? bias[g * of_maps + m] : 0" if biased else "0"
        return f"""
for (int64_t p = 0; p < count; p++) {{
T *sums = own + p * room, *to = {result} + p;
for (int64_t m = 0; m < room; m++) sums[m] = {start};
for (int64_t k = 0; k < {taps}; k++) for (int64_t c = 0; c < of_group; c++) {{
const T e = in[p * row + k * wide + c], *v = weights + (k * of_group + c) * room;
for (int64_t m = 0; m < room; m++) sums[m] += e * v[m]; }}
for (int64_t m = 0; m < of_maps; m++) to[m * points] = sums[m]; }}"""
    pixels = 8 if lanes == 16 else 4

    def tile(vectors: int) -> str:
        each = [(p, v) for p in range(pixels) for v in range(vectors)]
        start = "v_load_n(bias + g * of_maps + m + {0}, hg_min(VL, hg_max(0, of_maps - m - {0})))"
        starts = [start.format(v * lanes) if biased else "(vf){0}" for v in range(vectors)]
        return f"""
for (int64_t p = 0; p < count; p += {pixels}) {{
vf {", ".join(f"s{p}_{v} = {starts[v]}" for p, v in each)};
for (int64_t k = 0; k < {taps}; k++) {{
const T *e = in + p * row + k * wide, *w0 = weights + k * of_group * room + m;
for (int64_t c = 0; c < of_group; c++, w0 += room) {{
{" ".join(f"const vf b{v} = v_load(w0 + {v * lanes});" for v in range(vectors))}
{" ".join(f"{{ const vf a = v_set1(e[c + {p} * row]); {' '.join(f's{p}_{v} = v_fma(a, b{v}, s{p}_{v});' for v in range(vectors))} }}" for p in range(pixels))}
}} }}
{" ".join(f"v_store(own + (p + {p}) * room + m + {v * lanes}, s{p}_{v});" for p, v in each)} }}"""

    return f"""
int64_t m = 0;
for (; m + {2 * lanes} <= room; m += {2 * lanes}) {{ {tile(2)} }}
for (; m < room; m += {lanes}) {{ {tile(1)} }}
KERNEL_turn(own, room, {result}, points, count, of_maps);"""


RULES: dict[tuple[str, str], Rule] = {("", "DeformConv"): lower_deform_conv}
