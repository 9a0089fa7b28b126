"""Convolutions of few channels in matrix tiles: a row of the filter is summed at once.

Images of one to four channels, which a network begins with, are kept a pixel after the other, two or
four bfloat16 each. What one row of the filter covers then lies in one piece, and fills a row of a
matrix tile.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import onnx_ir as ir

from hagane.native.kernel import Body
from hagane.native.lowering import Lowering
from hagane.native.rules.direct import Source
from hagane.native.rules.window import Window
from hagane.native.tensor import Buffer, Kind, Tensor
from hagane.native.tile import Words, block_words
from hagane.ops.definition import Array

_MOST_CHANNELS = 4


def folds_rows(low: Lowering, window: Window) -> bool:
    """Whether a convolution is computed in this form."""
    return (
        low.pairs
        and low.level.tiles
        and window.groups == 1
        and window.channels <= _MOST_CHANNELS
        and (window.dilations[1] == 1 or window.kernel[1] == 1)
    )


def folded(
    low: Lowering, x: ir.Value, window: Window, weight: Array
) -> tuple[Window, Array, Source]:
    """Write the kernel that brings pixels together, and return the convolution that is left.

    Args:
        low: Takes the kernel.
        x: The image.
        window: The convolution's sizes.
        weight: ``(out, in, rows, columns)``.

    Returns:
        Sizes, weights ``(out, 32, rows, steps)`` and source of a convolution whose columns are
        blocks of 32 numbers, each of some pixels of a row.
    """
    block = Words.PAIR.each * block_words(low.level, Words.PAIR)
    each = 2 if window.channels <= 2 else 4
    (kh, kw), (sh, sw) = window.kernel, window.strides
    steps = -(-kw * each // block)
    out = weight.shape[0]
    spread = np.zeros((out, kh, steps * block // each, each), np.float32)
    spread[:, :, :kw, : window.channels] = weight.transpose(0, 2, 3, 1)
    made = spread.reshape(out, kh, steps, block).transpose(0, 3, 1, 2)
    span = (window.out_width - 1) * sw + steps * block // each
    top, left = window.pads[:2]
    wide = -(-max(span, left + window.width) // sw) * sw
    high = max(
        (window.out_height - 1) * sh + (kh - 1) * window.dilations[0] + 1, top + window.height
    )
    image = _emit_pixels(low, x, window, each, (high, wide))
    row = wide * each // 2
    source = Source(image, 0, each // 2, 0, block // 2, row, high * row, Words.PAIR)
    fake = replace(
        window,
        channels=block,
        kernel=(kh, steps),
        dilations=(window.dilations[0], block // each),
    )
    return fake, made, source


def _emit_pixels(
    low: Lowering, x: ir.Value, window: Window, each: int, size: tuple[int, int]
) -> Tensor:
    """Write an image as pixels of ``each`` bfloat16 with a zero border, as 32-bit words."""
    source = low.plain(x)
    strides = source.strides
    if len(strides) == 3:
        strides = (*strides[:2], 0, strides[2])
    high, wide = size
    top, left = window.pads[:2]
    lanes, channels = low.level.lanes, window.channels
    count = window.images * high * wide * each * 2
    buffer = Buffer(f"{x.name} pixels", count, Kind.ARENA)
    body = Body()
    s = body.pointer(source)
    d = body.raw(buffer, written=True, ctype="uint16_t")
    n, c, h, w = (body.size(stride) for stride in strides)
    unit = strides[3] == 1
    loads = [
        (
            f"(k == VL ? v_load(s + {i} * {c}) : v_load_n(s + {i} * {c}, k))"
            if unit
            else f"v_load_strided(s + {i} * {c}, {w}, k)"
        )
        if i < channels
        else "v_set1(0.f)"
        for i in range(each)
    ]
    body.add(
        f"int64_t y = q % {high} - {top}, image = q / {high};",
        f"uint16_t *to = {d} + q * {wide * each};",
        f"if (y < 0 || y >= {window.height}) {{ memset(to, 0, {wide * each * 2}); return; }}",
        f"const float *s = {s} + image * {n} + y * {h};",
        f"memset(to, 0, {left * each * 2});",
        f"to += {left * each};",
        f"for (int64_t x = 0; x < {window.width}; x += {lanes}, s += {lanes} * {w}) {{",
        f"int64_t k = hg_min({lanes}, {window.width} - x);",
        f"v_store_pixels{each}(to + x * {each}, {', '.join(loads)}, k); }}",
        f"memset(to + {window.width * each}, 0, {(wide - left - window.width) * each * 2});",
    )
    work = float(window.images * high * wide)
    low.emit(f"pixels '{x.name}'", body, window.images * high, work=work)
    return Tensor(buffer, np.dtype(np.float32), (), (), 0)
