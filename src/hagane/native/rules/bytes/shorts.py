"""Products of bytes without ``VPDPBUSD``: pairs of 16-bit numbers, for convolutions and matrices.

A tile is six pixels by two vectors of outputs. A word of two inputs of a pixel is broadcast, multiplied
by pairs of weights, and both products are added to an int32, exactly. Sums are scaled in float32. All
sizes of images may be open: a task finds the places of its pixels first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from hagane.machine import Level
from hagane.native.kernels.expression import FLOAT32, float_text
from hagane.native.kernels.kernel import Body, work_of
from hagane.native.kernels.packing import Packing
from hagane.native.kernels.tensor import Blocked, Pads, Tensor
from hagane.native.layouts.shorts import Shorts, new_shorts, to_shorts
from hagane.native.lowering.epilogue import Epilogue
from hagane.native.lowering.facts import NotNative
from hagane.native.lowering.state import Lowering
from hagane.native.rules.bytes.operands import parameters
from hagane.native.rules.bytes.scaled import Scaled
from hagane.native.rules.convolution.window import Window, covers
from hagane.native.tiles.tile import NO_ACTIVATION, Activation, bounded
from hagane.ops.definition import Array
from hagane.symbolic import Dim, ceildiv

# Pixels of a tile, and of a task.
_PIXELS, _CHUNK = 6, 96
# Tasks that there should be at least, where there are so many groups of outputs.
_TASKS = 8

MADD = """
#if defined(__AVX512BW__)
#define HG_MADD(sum, w, x) ((vi)_mm512_add_epi32((__m512i)(sum), _mm512_madd_epi16((__m512i)(w), (__m512i)(x))))
#elif defined(__AVX2__)
#define HG_MADD(sum, w, x) ((vi)_mm256_add_epi32((__m256i)(sum), _mm256_madd_epi16((__m256i)(w), (__m256i)(x))))
#else
#define HG_MADD(sum, w, x) ((sum) + ((vi)(w) << 16 >> 16) * ((vi)(x) << 16 >> 16) + ((vi)(w) >> 16) * ((vi)(x) >> 16))
#endif
"""
_SUM = """
/* Sums of M pixels: b is where they begin, from the places of the pixels, D.. distances of taps. */
INLINE void KERNEL_sum(const int M, const int16_t *const *from, const int64_t row, const int16_t *w,
                       const int32_t *b, vi (*sum)[2]) {
  vi s[6][2];
  #pragma GCC unroll 6
  for (int r = 0; r < M; r++) s[r][0] = *(const vi *)b, s[r][1] = *(const vi *)(b + VL);
  for (int64_t i = 0; i < %(rows)d; i++) for (int64_t j = 0; j < %(runs)d; j++) {
    const int64_t at = i * row + j * %(column)d;
    const int16_t *p[6];
    #pragma GCC unroll 6
    for (int r = 0; r < M; r++) p[r] = from[r] + at;
    for (int64_t k = 0; k < %(pairs)d; k++, w += 4 * VL) {
      const vi w0 = *(const vi *)w, w1 = *(const vi *)(w + 2 * VL);
      #pragma GCC unroll 6
      for (int r = 0; r < M; r++) {
        int32_t two;
        __builtin_memcpy(&two, p[r] + 2 * k, 4);
        const vi x = two + (vi){0};
        s[r][0] = HG_MADD(s[r][0], w0, x);
        s[r][1] = HG_MADD(s[r][1], w1, x);
      }
    }
  }
  #pragma GCC unroll 6
  for (int r = 0; r < M; r++) sum[r][0] = s[r][0], sum[r][1] = s[r][1];
}
"""
# Whole numbers from scaled sums, between two bounds, to 16 bits.
PACK = """
INLINE vi KERNEL_whole(vi sum, vf factor) {
  vf y = v_max2(v_set1(%(low)s), v_min2(v_set1(%(high)s), __builtin_convertvector(sum, vf) * factor));
#if defined(__AVX512F__)
  return (vi)_mm512_cvtps_epi32((__m512)y);
#elif defined(__AVX2__)
  return (vi)_mm256_cvtps_epi32((__m256)y);
#else
  return __builtin_convertvector(v_round(y), vi);
#endif
}
"""


@dataclass(frozen=True, slots=True)
class Result:
    """How sums become results.

    Attributes:
        target: 16-bit numbers, an image of floats in blocks, rows of floats, or rows of the sums.
        factor: From sums to results, one number a channel.
        shift: Added to floats, one a channel.
        bounds: Of 16-bit numbers.
        activation: Of floats.
        residual: An image of floats that is added.
    """

    target: Shorts | Blocked | Tensor
    factor: Array
    shift: Array
    bounds: tuple[int, int] = (0, 0)
    activation: Activation = NO_ACTIVATION
    residual: Blocked | None = None


def fits_shorts(weight: Array, start: Array) -> bool:
    """Whether there are weights, and sums of bytes times them, both less their zero points, are int32.

    Args:
        weight: ``(out, in, rows, columns)``, less the zero point.
        start: The starts of sums.
    """
    most = 255 * np.abs(weight.astype(np.int64)).sum(tuple(range(1, weight.ndim)))
    return weight.size > 0 and bool((most + np.abs(start.astype(np.int64))).max() < 2**31)


def four_sizes(shape: Sequence[Dim]) -> tuple[Dim, ...]:
    """Return the sizes of an image with one or two spatial axes as those of one with two."""
    return (*shape[:2], 1, *shape[2:]) if len(shape) == 3 else tuple(shape)


def image_of_shorts(low: Lowering, value: ir.Value | None, zero: int, pads: Pads) -> Shorts:
    """Return an image as 16-bit numbers around a zero point, with the border that is read."""
    assert value is not None
    found = low.forms.shorts.get(value)
    if found is None or found.zero != zero or not covers(found.pads, pads):
        source = low.forms.plain(value)
        found = low.forms.new_shorts(value, four_sizes(source.shape), zero)
        if not covers(found.pads, pads):
            raise NotNative("an image of bytes without its border")
        strides = source.strides
        if len(strides) == 3:
            strides = (*strides[:2], 0, strides[2])
        plain = Tensor(source.buffer, source.dtype, found.shape, strides, source.offset)
        to_shorts(low.recorder, str(value.name), plain, found)
        low.forms.shorts.setdefault(value, found)
    return found


def emit_shorts(
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
    """Write the kernel of a convolution of one group.

    Args:
        low: Takes the kernel.
        node: The convolution.
        window: Its sizes.
        weight: ``(out, in, rows, columns)``, whole numbers around nought.
        start: Starts of sums, one a channel.
        image: The image.
        result: The epilogue of the sums.
        epilogue: The operations that are computed with it.
        name: The kernel's.
    """
    level = low.facts.level
    unit = 2 * level.lanes
    (kh, kw), (sh, sw), (dh, dw) = window.kernel, window.strides, window.dilations
    pairs, groups = -(-window.channels // 2), -(-window.out_channels // unit)
    runs = kw
    if dw == 1 and 2 * pairs == image.wide:  # taps of a row follow one another
        pairs, runs = pairs * kw, 1
    packing = Packing(pack_shorts, (weight.astype(np.int16), level))
    of_group = kh * runs * pairs * 2 * unit
    weights = low.recorder.weight(("shorts", id(node)), packing, groups * of_group * 2)
    length = groups * unit
    numbers = parameters(
        low,
        ("shorts", id(node)),
        length,
        start.astype(np.int32),
        result.factor.astype(np.float32),
        result.shift.astype(np.float32),
    )
    body = Body()
    n = body.number
    body.helper(MADD)
    kept = {"rows": kh, "runs": runs, "column": dw * image.wide, "pairs": pairs}
    body.helper(_SUM % kept)
    s = body.pointer(image.pixels())
    w, b = body.raw(weights, ctype="int16_t"), body.raw(numbers.buffer, ctype="int32_t")
    plane = window.out_height * window.out_width
    pixels = window.images * plane
    chunks = ceildiv(pixels, _CHUNK)
    split = min(groups, max(1, _TASKS // max(1, chunks) if isinstance(chunks, int) else 2))
    first = -window.pads[0] * image.row_stride - window.pads[1] * image.wide
    across = n(window.out_width)
    places, lines = _stored(body, low, result, window)
    body.add(
        f"const int64_t chunk = q / {split}, part = q % {split}, first = chunk * {_CHUNK};",
        f"const int64_t count = hg_min({_CHUNK}, {n(pixels)} - first);",
        f"const int16_t *from[{_CHUNK + _PIXELS}]; int64_t to[{_CHUNK}], also[{_CHUNK}]; (void)also;",
        f"int64_t image = first / {n(plane)}, y = first % {n(plane)} / {across};",
        f"int64_t x = first % {across};",
        "for (int64_t t = 0; t < count; t++) {",
        f"from[t] = {s} + image * {n(image.image_stride)} + {n(first)} + y * {n(sh * image.row_stride)}"
        f" + x * {sw * image.wide};",
        *places,
        f"if (++x == {across}) {{ x = 0; if (++y == {n(window.out_height)}) y = 0, image++; }}",
        "}",
        f"for (int64_t t = count; t < count + {_PIXELS}; t++) from[t] = from[count - 1];",
        f"for (int64_t g = part * {groups} / {split}; g < (part + 1) * {groups} / {split}; g++) {{",
        f"const int16_t *gw = {w} + g * {of_group}; const int32_t *gb = {b} + g * {unit};",
        f"const float *gf = (const float *)gb + {length}, *gs = gf + {length}; (void)gs;",
        f"for (int64_t t = 0; t < count; t += {_PIXELS}) {{",
        f"const int64_t m = hg_min({_PIXELS}, count - t); vi sum[{_PIXELS}][2];",
        f"const int64_t row = {n(dh * image.row_stride)};",
        *[
            f"{'else ' if at else ''}{test}KERNEL_sum({size}, from + t, row, gw, gb, sum);"
            for at, (size, test) in enumerate(
                ((6, "if (m > 4) "), (4, "if (m > 2) "), (2, "if (m == 2) "), (1, ""))
            )
        ],
        "for (int64_t r = 0; r < m; r++) {",
        *lines,
        "} } }",
    )
    each = 2.0 * weight.size
    low.recorder.emit(
        node,
        body,
        chunks * split,
        work=work_of(pixels, each / 60),
        flops=work_of(pixels, each),
        followers=epilogue.nodes,
        name=name,
    )
    low.forms[epilogue.value] = result.target


def _stored(
    body: Body, low: Lowering, result: Result, window: Window
) -> tuple[list[str], list[str]]:
    """Return the C that finds the place of pixel ``t``, and that stores the sums of one of a tile."""
    target, lanes, n = result.target, low.facts.level.lanes, body.number
    if isinstance(target, Shorts):
        low_, high = (float_text(float(bound)) for bound in result.bounds)
        body.helper(PACK % {"low": low_, "high": high})
        d = body.pointer(target.pixels(), written=True)
        place = f"image * {n(target.image_stride)} + y * {n(target.row_stride)} + x * {target.wide}"
        return [f"to[t] = {place};"], [
            f"int16_t *o = {d} + to[t + r] + g * {2 * lanes};",
            "*(vw *)o = LOW_SHORTS(KERNEL_whole(sum[r][0], v_load(gf)));",
            "*(vw *)(o + VL) = LOW_SHORTS(KERNEL_whole(sum[r][1], v_load(gf + VL)));",
        ]
    values = [
        f"v_fma(__builtin_convertvector(sum[r][{i}], vf), v_load(gf + {i} * VL), v_load(gs + {i} * VL))"
        for i in range(2)
    ]
    if isinstance(target, Tensor):
        width = window.out_channels
        if target.dtype != FLOAT32:  # 32-bit integers are stored as the bits of floats
            values = ["(vf)sum[r][0]", "(vf)sum[r][1]"]
        d = body.pointer(target, written=True, ctype="float")
        return [f"to[t] = (first + t) * {width};"], [
            f"float *o = {d} + to[t + r] + g * {2 * lanes};",
            f"const int64_t left = {width} - g * {2 * lanes};",
            f"if (left >= {2 * lanes}) {{ v_store(o, {values[0]}); v_store(o + VL, {values[1]}); }}",
            f"else {{ v_store_n(o, {values[0]}, hg_min(left, VL));",
            f"if (left > VL) v_store_n(o + VL, {values[1]}, left - VL); }}",
        ]
    d = body.pointer(target.word_view(), written=True)
    whole, plane = target.blocks * target.plane_stride, n(target.plane_stride)
    places = [f"to[t] = image * {n(whole)} + y * {n(target.row_stride)} + x * {lanes};"]
    lines = [f"float *o = {d} + to[t + r] + 2 * g * {plane};"]
    added = result.residual
    if added is not None:
        a = body.pointer(added.word_view())
        whole = added.blocks * added.plane_stride
        places.append(f"also[t] = image * {n(whole)} + y * {n(added.row_stride)} + x * {lanes};")
        lines.append(f"const float *a = {a} + also[t + r] + 2 * g * {n(added.plane_stride)};")
        values = [
            f"({value} + v_load(a + {i} * {n(added.plane_stride)}))"
            for i, value in enumerate(values)
        ]
    values = [bounded(value, result.activation) for value in values]
    lines.append(f"v_store(o, {values[0]});")
    lines.append(f"if (2 * g + 1 < {target.blocks}) v_store(o + {plane}, {values[1]});")
    return places, lines


def pack_shorts(weight: Array, level: Level) -> Array:
    """Return weights ``(out, in, rows, columns)`` of int16 in the order in which tiles read them.

    Those of two vectors of outputs at a time: ``(groups, rows, columns, pairs, outputs, 2)``.
    """
    out, depth, rows, columns = weight.shape
    unit, pairs = 2 * level.lanes, -(-depth // 2)
    padded = np.zeros((-(-out // unit) * unit, 2 * pairs, rows, columns), np.int16)
    padded[:out, :depth] = weight
    grouped = padded.reshape(-1, unit, pairs, 2, rows, columns)
    return np.ascontiguousarray(grouped.transpose(0, 4, 5, 2, 1, 3))


def emit_short_rows(
    low: Lowering,
    node: ir.Node,
    weight: Array,
    rows: Shorts,
    after: Scaled,
    target: Tensor,
) -> None:
    """Write the kernel of a product of rows with a constant matrix ``(k, n)``.

    Its result are floats, or the sums.
    """
    k, n = weight.shape
    count = rows.shape[3]
    window = Window(1, k, 1, count, n, 1, count, (1, 1), (1, 1), (1, 1), (0, 0, 0, 0), 1)
    filters = np.ascontiguousarray(weight.T)[:, :, None, None]
    start = np.zeros(n, np.int32)
    epilogue = Epilogue(after.value, nodes=after.nodes)
    result = Result(target, after.factor, after.shift)
    emit_shorts(low, node, window, filters, start, rows, result, epilogue, f"product_int8_{k}x{n}")


def rows_of_shorts(
    low: Lowering, value: ir.Value | None, k: int, zero: int | ir.Value | None
) -> Shorts:
    """Return rows of bytes as 16-bit numbers around a zero point, which only a run may know."""
    assert value is not None
    source = low.forms.contiguous(value)
    count: Dim = 1
    for dim in source.shape[:-1]:
        count = count * dim
    known = zero if isinstance(zero, int) else 0
    found = low.forms.short_rows.get((value, zero))
    if found is None:
        shape = (1, k, 1, count)
        found = new_shorts(
            str(value.name), shape, source.dtype, known, (0, 0, 0, 0), low.facts.level
        )
        strides: tuple[Dim, ...] = (0, 1, 0, k)
        plain = Tensor(source.buffer, source.dtype, shape, strides, source.offset)
        at_run = low.forms.contiguous(zero) if isinstance(zero, ir.Value) else None
        to_shorts(low.recorder, str(value.name), plain, found, at_run)
        low.forms.short_rows[value, zero] = found
    return found
