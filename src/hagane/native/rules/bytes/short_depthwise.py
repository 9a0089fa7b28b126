"""Depthwise convolution of 16-bit numbers: products of two taps at once, channels side by side."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from hagane.machine import Level
from hagane.native.kernels.kernel import Body, work_of
from hagane.native.kernels.packing import Packing
from hagane.native.kernels.tensor import Blocked
from hagane.native.layouts.shorts import Shorts
from hagane.native.lowering.epilogue import Epilogue
from hagane.native.lowering.state import Lowering
from hagane.native.rules.bytes.operands import parameters
from hagane.native.rules.bytes.shorts import MADD, PACK, Result
from hagane.native.rules.convolution.window import Window
from hagane.native.tiles.tile import bounded
from hagane.ops.definition import Array

# Interleaves 16-bit numbers of two taps within each 128 bits: those of the first half of the
# channels there, then those of the second half; and puts sums in that order back.
_INTERLEAVE = """
#if defined(__AVX512BW__)
#define LOW_PAIRS(a, b) ((vi)_mm512_unpacklo_epi16((__m512i)(a), (__m512i)(b)))
#define HIGH_PAIRS(a, b) ((vi)_mm512_unpackhi_epi16((__m512i)(a), (__m512i)(b)))
#elif defined(__AVX2__)
#define LOW_PAIRS(a, b) ((vi)_mm256_unpacklo_epi16((__m256i)(a), (__m256i)(b)))
#define HIGH_PAIRS(a, b) ((vi)_mm256_unpackhi_epi16((__m256i)(a), (__m256i)(b)))
#else
typedef int16_t hg_halves __attribute__((vector_size(VL * 4), aligned(2), may_alias));
INLINE vi hg_pairs(vi a, vi b, int second) {
  hg_halves x = (hg_halves)a, y = (hg_halves)b, z;
  for (int i = 0; i < VL; i++) {
    const int from = i / 4 * 8 + second * 4 + i % 4;
    z[2 * i] = x[from], z[2 * i + 1] = y[from];
  }
  return (vi)z;
}
#define LOW_PAIRS(a, b) hg_pairs(a, b, 0)
#define HIGH_PAIRS(a, b) hg_pairs(a, b, 1)
#endif
/* 2 * VL numbers in the order of channels. */
INLINE void KERNEL_in_order(const float *low, const float *high, float *to) {
  for (int i = 0; i < VL / 4; i++) {
    __builtin_memcpy(to + 8 * i, low + 4 * i, 16);
    __builtin_memcpy(to + 8 * i + 4, high + 4 * i, 16);
  }
}
INLINE void KERNEL_shorts(int16_t *to, vi low, vi high) {
#if defined(__AVX512BW__)
  _mm512_storeu_si512(to, _mm512_packs_epi32((__m512i)low, (__m512i)high));
#elif defined(__AVX2__)
  _mm256_storeu_si256((__m256i *)to, _mm256_packs_epi32((__m256i)low, (__m256i)high));
#else
  for (int i = 0; i < VL; i++) {
    to[i / 4 * 8 + i % 4] = (int16_t)low[i];
    to[i / 4 * 8 + 4 + i % 4] = (int16_t)high[i];
  }
#endif
}
"""


def emit_short_depthwise(
    low: Lowering,
    node: ir.Node,
    window: Window,
    weight: Array,
    start: Array,
    image: Shorts,
    result: Result,
    epilogue: Epilogue,
    name: str,
) -> None:
    """Write the kernel of a convolution in which each channel has a filter of its own.

    Arguments are those of ``emit_shorts``.
    """
    level, lanes = low.facts.level, low.facts.level.lanes
    unit, target = 2 * lanes, result.target
    assert isinstance(target, (Shorts, Blocked))
    (kh, kw), (sh, sw), (dh, dw) = window.kernel, window.strides, window.dilations
    groups = -(-window.channels // unit)
    taps = [(i, j) for i in range(kh) for j in range(kw)]
    pairs = -(-len(taps) // 2)
    packing = Packing(pack_short_taps, (weight.astype(np.int16), level))
    weights = low.recorder.weight(("shorts", id(node)), packing, groups * pairs * 2 * unit * 2)
    length = groups * unit
    rows = [
        in_pairs(row, length, lanes)
        for row in (
            start.astype(np.int32),
            result.factor.astype(np.float32),
            result.shift.astype(np.float32),
        )
    ]
    numbers = parameters(low, ("shorts", id(node)), length, *rows)
    body = Body()
    n = body.number
    body.helper(MADD)
    body.helper(_INTERLEAVE)
    s = body.pointer(image.pixels())
    w, b = body.raw(weights, ctype="int16_t"), body.raw(numbers.buffer, ctype="int32_t")
    first = -window.pads[0] * image.row_stride - window.pads[1] * image.wide
    sums = []
    for p in range(pairs):
        places = [f"p + {i} * row + {j * dw * image.wide}" for i, j in taps[2 * p : 2 * p + 2]]
        loads = [f"*(const vi *)({place})" for place in places]
        loads += ["(vi){0}"] * (2 - len(loads))
        sums.append(
            f"{{ const vi a = {loads[0]}, b = {loads[1]};"
            f" low = HG_MADD(low, *(const vi *)(gw + {p * 2 * unit}), LOW_PAIRS(a, b));"
            f" high = HG_MADD(high, *(const vi *)(gw + {p * 2 * unit + unit}), HIGH_PAIRS(a, b)); }}"
        )
    lines = _stored(body, result, lanes)
    body.add(
        f"const int64_t image = q / {n(window.out_height)}, y = q % {n(window.out_height)};",
        f"const int16_t *line = {s} + image * {n(image.image_stride)} + {n(first)}"
        f" + y * {n(sh * image.row_stride)};",
        f"const int64_t row = {n(dh * image.row_stride)}; (void)row;",
        f"for (int64_t g = 0; g < {groups}; g++) {{",
        f"const int16_t *gw = {w} + g * {pairs * 2 * unit}; const int32_t *gb = {b} + g * {unit};",
        f"const float *gf = (const float *)gb + {length}, *gs = gf + {length}; (void)gs;",
        f"for (int64_t x = 0; x < {n(window.out_width)}; x++) {{",
        f"const int16_t *p = line + x * {sw * image.wide} + g * {unit};",
        "vi low = *(const vi *)gb, high = *(const vi *)(gb + VL);",
        *sums,
        *lines,
        "} }",
    )
    each = 2.0 * kh * kw
    low.recorder.emit(
        node,
        body,
        window.images * window.out_height,
        work=work_of(window.elements, each / 20),
        flops=work_of(window.elements, each),
        followers=epilogue.nodes,
        name=name,
    )
    low.forms[epilogue.value] = target


def _stored(body: Body, result: Result, lanes: int) -> list[str]:
    """Return the C that stores the sums ``low`` and ``high`` of pixel ``x``."""
    target, n = result.target, body.number
    if isinstance(target, Shorts):
        body.helper(PACK % {"low": f"{result.bounds[0]}.f", "high": f"{result.bounds[1]}.f"})
        d = body.pointer(target.pixels(), written=True)
        place = f"image * {n(target.image_stride)} + y * {n(target.row_stride)} + x * {target.wide}"
        return [
            f"KERNEL_shorts({d} + {place} + g * {2 * lanes}, KERNEL_whole(low, v_load(gf)), "
            "KERNEL_whole(high, v_load(gf + VL)));"
        ]
    assert isinstance(target, Blocked)
    d, plane = body.pointer(target.word_view(), written=True), n(target.plane_stride)
    place = f"image * {n(target.blocks * target.plane_stride)} + y * {n(target.row_stride)} + x * {lanes}"
    values = ["v_load(t)", "v_load(t + VL)"]
    lines = [
        "float f[4 * VL], *t = f + 2 * VL;",
        "v_store(f, v_fma(__builtin_convertvector(low, vf), v_load(gf), v_load(gs)));",
        "v_store(f + VL, v_fma(__builtin_convertvector(high, vf), v_load(gf + VL), v_load(gs + VL)));",
        "KERNEL_in_order(f, f + VL, t);",
        f"float *o = {d} + {place} + 2 * g * {plane};",
    ]
    added = result.residual
    if added is not None:
        a, step = body.pointer(added.word_view()), n(added.plane_stride)
        at = f"image * {n(added.blocks * added.plane_stride)} + y * {n(added.row_stride)} + x * {lanes}"
        lines.append(f"const float *a = {a} + {at} + 2 * g * {step};")
        values = [f"({value} + v_load(a + {i} * {step}))" for i, value in enumerate(values)]
    values = [bounded(value, result.activation) for value in values]
    lines.append(f"v_store(o, {values[0]});")
    lines.append(f"if (2 * g + 1 < {target.blocks}) v_store(o + {plane}, {values[1]});")
    return lines


def in_pairs(row: Array, length: int, lanes: int) -> Array:
    """Return numbers of channels in the order in which interleaved sums have them.

    Args:
        row: One number a channel.
        length: Numbers to fill up to, whole vectors of 16-bit numbers.
        lanes: 32-bit numbers of a vector.
    """
    filled = np.zeros(length, row.dtype)
    filled[: row.size] = row.reshape(-1)
    parts = filled.reshape(-1, lanes // 4, 2, 4)
    return np.ascontiguousarray(parts.transpose(0, 2, 1, 3)).reshape(-1)


def pack_short_taps(weight: Array, level: Level) -> Array:
    """Return filters ``(channels, 1, rows, columns)`` of int16 as kernels read them.

    Two taps of a channel side by side, ``(groups, pairs, 2 * lanes, 2)``, channels in the order of
    interleaved sums.
    """
    channels, unit = weight.shape[0], 2 * level.lanes
    taps = weight.reshape(channels, -1)
    length, pairs = -(-channels // unit) * unit, -(-taps.shape[1] // 2)
    padded = np.zeros((2 * pairs, length), np.int16)
    for into, tap in zip(padded, taps.T, strict=False):
        into[...] = in_pairs(np.ascontiguousarray(tap), length, level.lanes)
    made = padded.reshape(pairs, 2, -1, unit).transpose(2, 0, 3, 1)
    return np.ascontiguousarray(made)
