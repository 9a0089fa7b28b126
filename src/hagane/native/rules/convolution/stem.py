"""Convolutions of few channels: pixels side by side; in matrix tiles a row of the filter at once.

Images of one to four channels, which a network begins with, are kept a pixel after the other, two or
four bfloat16 or four bytes each. The pixels under one row of the filter then lie in one piece, and
fill a row of a matrix tile.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import onnx_ir as ir

from hagane.machine import Level
from hagane.native.kernels.kernel import Body, work_of
from hagane.native.kernels.tensor import Buffer, Kind, Tensor
from hagane.native.lowering.state import Lowering
from hagane.native.rules.convolution.direct import Source
from hagane.native.rules.convolution.images import FEW_CHANNELS
from hagane.native.rules.convolution.window import Window
from hagane.native.tiles.tile import Words, block_words
from hagane.ops.definition import Array
from hagane.symbolic import Dim, maximum


def folds_rows(level: Level, window: Window) -> bool:
    """Whether a convolution of pairs or quads is computed in this form."""
    return (
        level.tiles
        and not window.is_open
        and window.groups == 1
        and window.channels <= FEW_CHANNELS
        and (window.dilations[1] == 1 or window.kernel[1] == 1)
    )


def folded(
    low: Lowering,
    x: ir.Value,
    window: Window,
    weight: Array,
    words: Words = Words.PAIR,
    zero: int = 0,
) -> tuple[Window, Array, Source]:
    """Write the kernel that brings pixels together, and return the convolution that is left.

    Args:
        low: Takes the kernel.
        x: The image.
        window: The convolution's sizes.
        weight: ``(out, in, rows, columns)``.
        words: Pairs or quads.
        zero: The contents of the border of quads.

    Returns:
        Sizes, weights ``(out, block, rows, steps)`` and source of a convolution whose columns are
        blocks of 32 or 64 numbers, each of some pixels of a row.
    """
    block = words.each * block_words(low.facts.level, words)
    each = 2 if window.channels <= 2 and words is Words.PAIR else 4
    (kh, kw), (sh, sw) = window.kernel, window.strides
    steps = -(-kw * each // block)
    out = weight.shape[0]
    spread = np.zeros((out, kh, steps * block // each, each), weight.dtype)
    spread[:, :, :kw, : window.channels] = weight.transpose(0, 2, 3, 1)
    made = spread.reshape(out, kh, steps, block).transpose(0, 3, 1, 2)
    height, width, out_height, out_width = window.sizes
    span = (out_width - 1) * sw + steps * block // each
    top, left = window.border[:2]
    wide = -(-max(span, left + width) // sw) * sw
    high = max((out_height - 1) * sh + (kh - 1) * window.dilations[0] + 1, top + height)
    image = _emit_pixels(low, x, window, (each, words, zero), (high, wide))
    step, row = each // words.each, wide * each // words.each
    source = Source(image, 0, step, 0, block // words.each, row, high * row, words)
    fake = replace(
        window,
        channels=block,
        kernel=(kh, steps),
        dilations=(window.dilations[0], block // each),
    )
    return fake, made, source


def by_pixels(low: Lowering, x: ir.Value, window: Window, zero: int) -> Source:
    """Write the kernel that brings bytes of a pixel together, one word for at most four channels.

    Args:
        low: Takes the kernel.
        x: The image.
        window: The convolution's sizes.
        zero: The contents of the border.
    """
    (kh, kw), (sh, sw), (dh, dw) = window.kernel, window.strides, window.dilations
    top, left = window.pads[:2]
    high = maximum((window.out_height - 1) * sh + (kh - 1) * dh + 1, top + window.height)
    wide = maximum((window.out_width - 1) * sw + (kw - 1) * dw + 1, left + window.width)
    image = _emit_pixels(low, x, window, (4, Words.QUAD, zero), (high, wide))
    return Source(image, 0, 1, 0, 1, wide, high * wide, Words.QUAD)


def _emit_pixels(
    low: Lowering,
    x: ir.Value,
    window: Window,
    kept: tuple[int, Words, int],
    size: tuple[Dim, Dim],
) -> Tensor:
    """Write an image as pixels within a border, as 32-bit words.

    ``kept`` is how many numbers a pixel has, their kind, and the content of the border.
    """
    each, words, zero = kept
    source = low.forms.plain(x)
    strides = source.strides
    if len(strides) == 3:
        strides = (*strides[:2], 0, strides[2])
    high, wide = size
    top, left = window.pads[:2]
    lanes, channels = low.facts.level.lanes, window.channels
    bytes_ = 4 // words.each
    count = window.images * high * wide * each * bytes_
    buffer = Buffer(f"{x.name} pixels", count, Kind.ARENA)
    body = Body()
    element = "uint8_t" if words is Words.QUAD else "uint16_t"
    s = body.pointer(source, ctype="uint8_t" if words is Words.QUAD else None)
    d = body.raw(buffer, written=True, ctype=element)
    (n, c, h, w), number = (body.size(stride) for stride in strides), body.number
    load = "v_load" if words is Words.PAIR else "v_load_u8"
    loads = [
        f"{load}_strided(s + {i} * {c}, {w}, k)"
        if strides[3] != 1
        else f"(k == VL ? {load}(s + {i} * {c}) : {load}_n(s + {i} * {c}, k))"
        for i in range(channels)
    ]
    loads += ["v_set1(0.f)"] * (each - channels)
    flip = ", 128" if source.dtype == np.int8 else ", 0" if words is Words.QUAD else ""
    store = f"v_store_pixels{each}" if words is Words.PAIR else "v_store_pixels_u8"
    body.add(
        f"int64_t y = q % {number(high)} - {number(top)}, image = q / {number(high)};",
        f"{element} *to = {d} + q * {number(wide * each)};",
        f"if (y < 0 || y >= {number(window.height)}) "
        f"{{ memset(to, {zero}, {number(wide * each * bytes_)}); return; }}",
        f"__typeof__({s}) s = {s} + image * {n} + y * {h};",
        f"memset(to, {zero}, {number(left * each * bytes_)});",
        f"to += {number(left * each)};",
        f"for (int64_t x = 0; x < {number(window.width)}; x += {lanes}, s += {lanes} * {w}) {{",
        f"int64_t k = hg_min({lanes}, {number(window.width)} - x);",
        f"{store}(to + x * {each}, {', '.join(loads)}, k{flip}); }}",
        f"memset(to + {number(window.width * each)}, {zero}, "
        f"{number((wide - left - window.width) * each * bytes_)});",
    )
    work = work_of(window.images * high * wide, 1.0)
    low.recorder.emit(f"pixels '{x.name}'", body, window.images * high, work=work)
    return Tensor(buffer, np.dtype(np.float32), (), (), 0)
