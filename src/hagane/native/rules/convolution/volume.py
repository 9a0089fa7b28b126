"""Convolution with three spatial axes: four maps at a time, along the rows of a plane.

Where windows take steps of several pixels, a plane lies as planes of every such pixel, one for each place
that a step may begin at: a tap then reads neighbours for neighbouring results, as with steps of one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import onnx_ir as ir

from hagane.native.kernels.elementwise_loops import emit_copy
from hagane.native.kernels.kernel import Body, work_of
from hagane.native.kernels.packing import Packing
from hagane.native.kernels.tensor import Buffer, Kind, Tensor, keep_border
from hagane.native.lowering.facts import AT_RUN_TIME, NotNative
from hagane.native.lowering.state import Lowering
from hagane.native.rules.convolution.window import pads_of
from hagane.ops.definition import Array
from hagane.symbolic import Dim, ceildiv, maximum

_STEPS = ("strides", "dilations")
# Maps that are summed at once: each vector of the input serves them all.
_MAPS = 4


def lower_volume(low: Lowering, node: ir.Node, weight: Array, bias: Array | None) -> None:
    """Lower a convolution ``(N, C, D, H, W)`` with constant weights."""
    attributes = low.facts.attributes(node)
    kernel = weight.shape[2:]
    strides, dilations = (list(attributes.get(name) or (1, 1, 1)) for name in _STEPS)
    images, channels, *sizes = low.facts.shape(node.inputs[0])
    deep, high, wide = out = low.facts.shape(node.outputs[0])[2:]
    target = low.forms.result(node.outputs[0])
    if 0 in (images, channels, *out):
        raise NotNative("an empty image")
    if not isinstance(channels, int):
        raise NotNative(AT_RUN_TIME)
    groups = int(attributes["group"])
    begin, end = pads_of(attributes, sizes, out, kernel, strides, dilations)
    (kd, kh, kw), (sd, sh, sw), (dd, dh, dw) = kernel, strides, dilations
    places = sorted({(j * dh % sh, k * dw % sw) for j in range(kh) for k in range(kw)})
    source, volume = _padded(low, node, begin, end, (sh, sw), places)
    maps, depth = weight.shape[:2]
    at_once = _MAPS
    each = maps // groups
    blocks = -(-each // at_once)
    taps = depth * int(np.prod(weight.shape[2:]))
    packing = Packing(pack_volume, (weight, groups, at_once))
    own = np.zeros(maps, np.float32) if bias is None else bias
    biases = Packing(pack_volume_bias, (own, groups, at_once))
    body = Body()
    n = body.number
    s = body.pointer(source)
    w = body.raw(
        low.recorder.weight(("volume", id(node)), packing, groups * blocks * taps * at_once * 4)
    )
    b = body.raw(
        low.recorder.weight(("volume bias", id(node)), biases, groups * blocks * at_once * 4)
    )
    d = body.pointer(target, written=True)
    image, plane, area, row = (n(stride) for stride in source.strides[:4])
    of_place = np.zeros((sh, sw), np.int64)
    for number, (row_at, at) in enumerate(places):
        of_place[row_at, at] = number
    inner = (
        f"for (int64_t c = 0; c < {depth}; c++) for (int64_t i = 0; i < {kd}; i++)",
        f"for (int64_t j = 0; j < {kh}; j++) for (int64_t k = 0; k < {kw}; k++, w += {at_once}) {{",
        f"const int64_t down = j * {dh}, right = k * {dw};",
        f"const float *p = s + c * {plane} + i * {dd} * {area} + down / {sh} * {row} + right / {sw}",
    )
    if len(places) > 1:
        numbers = ", ".join(str(number) for number in of_place.reshape(-1))
        body.add(f"static const uint8_t of_place[] = {{{numbers}}};")
        inner = (
            *inner[:-1],
            f"{inner[-1]} + of_place[down % {sh} * {sw} + right % {sw}] * {n(volume)}",
        )
    body.add(
        f"int64_t z = q % {n(deep)}, block = q / {n(deep)} % {blocks};",
        f"int64_t group = q / {n(deep * blocks)} % {groups}, "
        f"image = q / {n(deep * blocks * groups)};",
        f"const float *s = {s} + image * {image} + group * {depth} * {plane} + z * {sd} * {area};",
        f"const float *w0 = {w} + (group * {blocks} + block) * {taps * at_once};",
        f"const float *b = {b} + (group * {blocks} + block) * {at_once};",
        f"int64_t m = hg_min({at_once}, {each} - block * {at_once});",
        f"float *d = {d} + ((image * {maps} + group * {each} + block * {at_once}) * {n(deep)} + z) * {n(high * wide)};",
        f"const int64_t H = {n(high)}, W = {n(wide)}, map = {body.size(deep * high * wide)};",
    )
    body.add(*_flat(inner, at_once, row, 4 if low.facts.level.registers >= 32 else 2))
    pixels, flops = images * deep * high * wide, 2.0 * maps * taps
    low.recorder.emit(
        node,
        body,
        images * groups * blocks * deep,
        work=work_of(pixels, flops / 20),
        flops=work_of(pixels, flops),
    )
    low.forms[node.outputs[0]] = target


def _flat(inner: Sequence[str], maps: int, row: str, most: int) -> list[str]:
    """Return the lines that compute a plane as one line of numbers, its rows within their borders.

    Several vectors of it share what is read of the filters, and narrow rows fill whole vectors; sums
    at places of the border are left out.

    Args:
        inner: Loops over the taps, up to the pointer to the first number of the plane.
        maps: How many are summed at once.
        row: From one row of the source to the next.
        most: Vectors at once.
    """
    lines = [f"const int64_t all = (H - 1) * {row} + W; int64_t f = 0;"]
    vectors = most
    while vectors:
        sums = [(j, u) for j in range(maps) for u in range(vectors)]
        more = f"f + {vectors - 1} * VL < all"
        lines += [
            f"{'while' if vectors == most else 'if'} ({more}) {{ const float *w = w0;",
            *(f"vf a{j}_{u} = v_set1(b[{j}]);" for j, u in sums),
            *inner,
            " + f;",
            *(f"const vf v{u} = v_load(p + {u} * VL);" for u in range(vectors)),
            *(f"a{j}_{u} = v_fma(v_set1(w[{j}]), v{u}, a{j}_{u});" for j, u in sums),
            "}",
            f"float sums[{maps}][{vectors} * VL] __attribute__((aligned(64)));",
            *(f"v_store(sums[{j}] + {u} * VL, a{j}_{u});" for j, u in sums),
            f"for (int64_t at = f, end = hg_min(all, f + {vectors} * VL), n; at < end; at += n) {{",
            f"const int64_t y = at / {row}, x = at % {row};",
            f"if (x >= W) {{ n = {row} - x; continue; }}",
            f"n = {row} == W ? end - at : hg_min(W - x, end - at);",  # without borders, all
            "for (int64_t j = 0; j < m; j++)",
            "memcpy(d + j * map + y * W + x, sums[j] + (at - f), (size_t)n * 4);",
            "}",
            f"f += {vectors} * VL; }}",
        ]
        vectors //= 2
    return lines


def _padded(
    low: Lowering,
    node: ir.Node,
    begin: Sequence[Dim],
    end: Sequence[Dim],
    steps: tuple[int, int],
    places: Sequence[tuple[int, int]],
) -> tuple[Tensor, Dim]:
    """Return a copy of the image within its zero border, and the size of a volume of it.

    Args:
        low: Takes the kernels.
        node: The convolution.
        begin: The border before each axis.
        end: The border behind it.
        steps: From one window to the next, along both axes of a plane.
        places: Where in a step there are pixels that windows read; of each a channel has a volume,
            one behind the other. Rows may be read past by a vector.
    """
    value = node.inputs[0]
    found = low.forms.plain(value)
    images, channels, *sizes = low.facts.shape(value)
    deep, high, wide = (a + b + c for a, b, c in zip(begin, sizes, end, strict=True))
    row = ceildiv(wide, steps[1])
    area = ceildiv(high, steps[0]) * row
    volume = deep * area
    apart = volume * len(places)
    strides = (channels * apart, apart, area, row, 1)
    buffer = Buffer(f"{node.name} padded", (images * strides[0] + 64) * 4, Kind.ARENA)
    for number, place in enumerate(places):
        offset = number * volume + begin[0] * area
        shape, apart_in, at = list(found.shape), list(found.strides), found.offset
        for axis, (step, first, before, stride) in enumerate(
            zip(steps, place, begin[1:], (row, 1), strict=True), 3
        ):
            skipped = ceildiv(maximum(0, before - first), step)
            start = skipped * step + first - before
            shape[axis] = maximum(0, ceildiv(found.shape[axis] - start, step))
            at = at + start * apart_in[axis]
            apart_in[axis] = apart_in[axis] * step
            offset = offset + skipped * stride
        inner = Tensor(buffer, found.dtype, tuple(shape), strides, offset)
        keep_border(inner, volume, start=number * volume, step=apart)
        emit_copy(
            low.recorder,
            replace(found, shape=tuple(shape), strides=tuple(apart_in), offset=at),
            inner,
        )
    shape_of_all = (images, channels, deep, ceildiv(high, steps[0]), row)
    return Tensor(buffer, found.dtype, shape_of_all, strides, 0), volume


def pack_volume(weight: Array, groups: int, at_once: int) -> Array:
    """Return filters ``(out, in, ...)`` as ``(groups, blocks, taps, channels of a block)``."""
    each = len(weight) // groups
    flat = weight.reshape(groups, each, -1)
    packed = np.zeros((groups, -(-each // at_once), flat.shape[2], at_once), np.float32)
    for block in range(packed.shape[1]):
        part = flat[:, block * at_once : (block + 1) * at_once]
        packed[:, block, :, : part.shape[1]] = part.transpose(0, 2, 1)
    return packed


def pack_volume_bias(bias: Array, groups: int, at_once: int) -> Array:
    """Return one number a channel as ``(groups, channels of all blocks)``."""
    each = bias.size // groups
    padded = np.zeros((groups, -(-each // at_once) * at_once), np.float32)
    padded[:, :each] = bias.reshape(groups, each)
    return padded
