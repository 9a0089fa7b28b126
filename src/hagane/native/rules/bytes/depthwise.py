"""Depthwise convolution of bytes: products of four taps at once, results as the next layer reads them.

``VPDPBUSD`` sums four products of neighbouring bytes, so the inputs of four taps of a channel have to
lie side by side. They are brought there by interleaving rows of 64 bytes: four rows of the image, at
the columns of one tap. A row of 64 bytes is one pixel of a block that matrix tiles read, or two or
four pixels of one that has no more than 32 or 16 channels. Interleaved bytes serve all taps,
pixels and rows of results that read it.

Exact sums are 32-bit; they are scaled in float32, as every product of quads is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from hagane.native.kernels.expression import float_text
from hagane.native.kernels.kernel import Body, work_of
from hagane.native.kernels.packing import Packing
from hagane.native.layouts.quads import QUAD, Quads, store_pixels
from hagane.native.lowering.state import Lowering
from hagane.native.rules.bytes.operands import (
    MOST,
    bounded_bytes,
    image_of_quads,
    may_overflow,
)
from hagane.native.rules.convolution.images import four_axes
from hagane.native.rules.convolution.window import Window, needed_pads
from hagane.ops.definition import Array
from hagane.symbolic import ceildiv

# Bytes of a vector, and vectors that hold the sums of as many bytes.
_ROW, _PARTS = 64, 4
# Vectors of 64 results that are summed at once: their sums take 16 registers.
_WIDE = 4
# Columns between two results: the last vector may read pixels past the end of the image.
_MOST_STRIDE = 8
# The columns that an image of open width is taken to have.
_LIKELY_WIDTH = 32
# One task should do about as many products.
_TASK_PRODUCTS = 400_000


@dataclass(frozen=True, slots=True)
class _Taps:
    """How the taps of a filter are interleaved by fours.

    Attributes:
        rows: Rows of results that are computed at once.
        groups: Of the rows and columns of the image that are interleaved, as offsets from a result
            of the first row, in pixels.
        words: For each row of results and group, the four taps; None where there is none.
    """

    rows: int
    groups: tuple[tuple[tuple[int, int], ...], ...]
    words: tuple[tuple[tuple[tuple[int, int] | None, ...], ...], ...]


def is_near(window: Window) -> bool:
    """Whether the pixels of a vector lie so near that reading past the last one is harmless."""
    return window.strides[1] <= _MOST_STRIDE


def taps_of(window: Window) -> _Taps:
    """Return the four taps of each product: below one another, or side by side of a single row."""
    (kh, kw), (dh, dw) = window.kernel, window.dilations
    groups: list[tuple[tuple[int, int], ...]] = []
    if kh == 1:
        words = []
        for first in range(0, kw, QUAD):
            taps = range(first, first + QUAD)
            groups.append(tuple((0, min(j, kw - 1) * dw) for j in taps))
            words.append(tuple((0, j) if j < kw else None for j in taps))
        return _Taps(1, tuple(groups), (tuple(words),))
    sh = window.strides[0]
    # A second row of results comes with the same rows of the image where the last four are not full.
    fits = dh == 1 and window.out_height != 1 and -(-(kh + sh) // QUAD) == -(-kh // QUAD)
    rows = 2 if fits else 1
    last = kh - 1 + (rows - 1) * sh
    found: list[list[tuple[tuple[int, int] | None, ...]]] = [[] for _ in range(rows)]
    for first in range(0, last + 1, QUAD):
        for j in range(kw):
            lines = range(first, first + QUAD)
            groups.append(tuple((min(i, last) * dh, j * dw) for i in lines))
            for r in range(rows):
                own = (i - r * sh for i in lines)
                found[r].append(tuple((i, j) if 0 <= i < kh else None for i in own))
    return _Taps(rows, tuple(groups), tuple(tuple(row) for row in found))


def lower_depthwise_quads(
    low: Lowering,
    node: ir.Node,
    window: Window,
    weight: Array,
    x_zero: int,
    factor: Array,
    bias: Array | None,
    y_zero: int,
) -> None:
    """Write the kernel of a QLinearConv in which each channel has a filter of its own.

    Args:
        low: Takes it.
        node: The convolution.
        window: Its sizes.
        weight: ``(channels, 1, rows, columns)`` of int8, around zero.
        x_zero: The zero point of the image.
        factor: From sums to results before the zero point, one or one a channel.
        bias: Whole numbers that are added to sums.
        y_zero: The zero point of the result.
    """
    x = node.inputs[0]
    assert x is not None
    shift = 128 if low.facts.dtype(x) == np.int8 else 0
    out, bounds, followers = bounded_bytes(low, node.outputs[0])
    target = low.forms.new_quads(out, y_zero)
    image = image_of_quads(low, x, x_zero, needed_pads(window))
    taps = taps_of(window)
    weight = four_axes(weight)
    start = -(x_zero + shift) * weight.astype(np.int64).sum((1, 2, 3))
    start = start + (0 if bias is None else bias.astype(np.int64))
    scale = np.broadcast_to(factor, (window.channels,)).astype(np.float32)
    words = 16 * _PARTS * (2 + taps.rows * len(taps.groups))

    packing = Packing(pack_bytes, (weight, start, scale, taps.words, target.lanes))
    packed = low.recorder.weight(("byte depthwise", id(node)), packing, target.blocks * words * 4)
    first = -window.pads[0] * image.row_stride - window.pads[1] * image.step
    body = Body()
    s = body.pointer(image.word_view(), ctype="uint8_t", offset=first)
    w = body.raw(packed, ctype="uint8_t")
    d = body.pointer(target.word_view(), written=True, ctype="uint8_t")
    height, width, n = window.out_height, window.out_width, body.number
    pairs = ceildiv(height, taps.rows)
    of_row = taps.rows * window.kernel[0] * window.kernel[1] * target.lanes
    likely = width if isinstance(width, int) else _LIKELY_WIDTH
    of_task = max(1, _TASK_PRODUCTS // (likely * of_row))
    of_task = min(pairs, of_task) if isinstance(pairs, int) else of_task
    chunks = ceildiv(pairs, of_task)
    source_plane, plane = image.plane_stride * QUAD, target.plane_stride * QUAD
    body.add(
        f"int64_t chunk = q % {n(chunks)}, block = q / {n(chunks)} % {image.blocks};",
        f"int64_t image = q / {n(chunks * image.blocks)};",
        f"const uint8_t *s = {s} + (image * {image.blocks} + block) * {n(source_plane)};",
        f"uint8_t *d = {d} + (image * {image.blocks} + block) * {n(plane)};",
        f"const uint8_t *w = {w} + block * {words * 4};",
    )
    numbers = _Numbers(*bounds, y_zero, may_overflow(weight, start, scale))
    loop = (
        f"for (int64_t y = chunk * {of_task * taps.rows}; "
        f"y < hg_min({n(height)}, (chunk + 1) * {of_task * taps.rows}); y += {taps.rows}) {{",
        f"const uint8_t *p = s + y * {n(QUAD * image.row_stride * window.strides[0])};",
        f"uint8_t *o = d + y * {n(QUAD * target.row_stride)};",
    )
    rows_of = n(QUAD * image.row_stride), n(QUAD * target.row_stride)
    kinds = sorted({_used(target.channels, target.lanes, block) for block in range(target.blocks)})
    for used in kinds:
        writer = _Writer(window, taps, image, target, used, numbers, *rows_of)
        if len(kinds) > 1:
            body.add(f"if ((block == {target.blocks - 1}) == {int(used == kinds[0])}) {{")
        body.add(*loop)
        whole = isinstance(height, int) and height % taps.rows == 0
        if taps.rows > 1 and not whole:
            body.add(
                f"if (y + {taps.rows} > {n(height)}) {{", *writer.line(1, n(width)), "} else {"
            )
            body.add(*writer.line(taps.rows, n(width)), "}")
        else:
            body.add(*writer.line(taps.rows, n(width)))
        body.add("}", "}" if len(kinds) > 1 else "")
    products = window.images * height * width
    low.recorder.emit(
        node,
        body,
        window.images * image.blocks * chunks,
        work=work_of(products, 2.0 * weight.size / 100),
        flops=work_of(products, 2.0 * weight.size),
        followers=followers,
        name=window.name("depthwise_int8"),
    )
    low.forms[out] = target


def _words(weight: Array, taps: tuple[tuple[int, int] | None, ...]) -> Array:
    """Return four taps of each channel as one word."""
    four = np.zeros((len(weight), QUAD), np.int8)
    for at, tap in enumerate(taps):
        if tap is not None:
            four[:, at] = weight[:, 0, tap[0], tap[1]]
    return four.view(np.int32)[:, 0]


def _used(channels: int, lanes: int, block: int) -> int:
    """Return how many bytes of a pixel are computed: bytes with channels, as far as they fit."""
    left = channels - block * lanes
    return next(used for used in (16, 32, lanes) if used >= min(left, lanes))


def _spread(numbers: Array, lanes: int) -> Array:
    """Return one number a channel as vectors ``(blocks, 64)`` in the order of interleaved bytes.

    Each 128 bits of a vector hold four channels of a pixel.
    """
    channels = len(numbers)
    blocks = -(-channels // lanes)
    padded = np.zeros((blocks, lanes), np.int32)
    padded.reshape(-1)[:channels] = numbers
    made = np.empty((blocks, _PARTS, _ROW // 16, 4), np.int32)
    for block in range(blocks):
        used = _used(channels, lanes, block)
        own = padded[block, :used].reshape(used // 16, _PARTS, 4).swapaxes(0, 1)
        made[block] = np.tile(own, (1, _ROW // used, 1))
    return made.reshape(blocks, _ROW)


@dataclass(frozen=True, slots=True)
class _Numbers:
    """How sums become bytes: the bounds of the result, its zero point, whether sums may overflow."""

    least: int
    most: int | None
    zero: int
    limited: bool


class _Writer:
    """Writes the code of one or two rows of results, of blocks that use some bytes of a pixel."""

    def __init__(
        self,
        window: Window,
        taps: _Taps,
        image: Quads,
        target: Quads,
        used: int,
        numbers: _Numbers,
        image_row: str,
        target_row: str,
    ):
        self.window = window
        self.taps = taps
        self.image = image
        self.target = target
        self.used = used
        self.numbers = numbers
        self.pixels = _ROW // used
        self.image_row, self.target_row = image_row, target_row

    def line(self, rows: int, width: str) -> Iterator[str]:
        """Yield the loop over the pixels of some rows, from ``p`` to ``o``."""
        wide = max(1, _WIDE // rows)
        step = wide * self.pixels * self.window.strides[1] * self.image.lanes
        if not isinstance(self.window.out_width, int):
            yield f"int64_t left = {width};"
            for count in dict.fromkeys((wide, 1)):
                one = count * self.pixels
                ahead = one * self.window.strides[1] * self.image.lanes
                yield (
                    f"for (; left >= {one}; left -= {one}, p += {ahead}, "
                    f"o += {one * self.target.lanes}) {{"
                )
                yield from self._results(rows, count, 0)
                yield "}"
            for partial in range(1, self.pixels):
                yield f"if (left == {partial}) {{"
                yield from self._results(rows, 1, partial)
                yield "}"
            return
        total = -(-self.window.out_width // self.pixels)
        loops, rest = divmod(total, wide)
        partial = self.window.out_width % self.pixels
        if partial and not rest:
            loops, rest = loops - 1, wide
        if loops:
            passed = wide * self.pixels * self.target.lanes
            yield f"for (int64_t x = 0; x < {loops}; x++, p += {step}, o += {passed}) {{"
            yield from self._results(rows, wide, 0)
            yield "}"
        if rest:
            yield "{"
            yield from self._results(rows, rest, partial)
            yield "}"

    def _results(self, rows: int, wide: int, partial: int) -> Iterator[str]:
        """Yield the code of ``wide`` vectors of results a row; the last has ``partial`` pixels."""
        uses: dict[tuple[tuple[int, int], ...], list[tuple[int, int, int]]] = {}
        apart = self.pixels * self.window.strides[1]
        for t in range(wide):
            for number, group in enumerate(self.taps.groups):
                places = tuple((i, t * apart + j) for i, j in group)
                uses.setdefault(places, []).extend((r, t, number) for r in range(rows))
        count = len(self.taps.groups)
        names = [f"a{r}_{t}_{k}" for r in range(rows) for t in range(wide) for k in range(_PARTS)]
        yield (
            "__m512i "
            + ", ".join(
                f"{name} = _mm512_loadu_si512(w + {_ROW * int(name[-1])})" for name in names
            )
            + ";"
        )
        for places, users in sorted(uses.items(), key=lambda item: (item[0][0][1], item[0][0][0])):
            yield "{ __m512i x[4]; "
            yield f"hg_interleave({', '.join(self._bytes(*place) for place in places)}, x);"
            for k in range(_PARTS):
                for r, t, number in users:
                    where = _ROW * (_PARTS * (2 + r * count + number) + k)
                    name = f"a{r}_{t}_{k}"
                    yield f"{name} = hg_dot_quads({name}, x[{k}], _mm512_loadu_si512(w + {where}));"
            yield "}"
        for r in range(rows):
            for t in range(wide):
                at = f"{r} * {self.target_row} + {t * self.pixels * self.target.lanes}"
                last = partial if t == wide - 1 and partial else self.pixels
                yield from self._stored(f"a{r}_{t}_", at, last)

    def _bytes(self, row: int, column: int) -> str:
        """Return C text of 64 bytes of the image."""
        stride, lanes = self.window.strides[1], self.image.lanes
        at = f"{row} * {self.image_row} + {column * lanes}"
        if self.pixels == 1 or (stride == 1 and self.used == lanes):
            return f"_mm512_loadu_si512(p + {at})"
        kind = {2: "two", 4: "four"}[self.pixels]
        return f"hg_{kind}_pixels(p + {at}, {stride * lanes})"

    def _stored(self, name: str, at: str, pixels: int) -> Iterator[str]:
        """Yield the code that brings the sums of 64 results to bytes, and stores some pixels."""
        numbers, shift = self.numbers, self.target.shift
        scaled = []
        for k in range(_PARTS):
            both = f"{name}{k}, _mm512_loadu_ps(w + {_ROW * (_PARTS + k)})"
            limited = f"hg_scaled({both}, _mm512_set1_ps({float_text(MOST)}))"
            scaled.append(limited if numbers.limited else f"hg_scaled_freely({both})")
        point = f"_mm512_set1_epi16({numbers.zero + shift})"
        yield f"{{ __m512i y = hg_bytes({', '.join(scaled)}, {point});"
        if numbers.least + shift > 0:
            yield f"y = _mm512_max_epu8(y, _mm512_set1_epi8((char){numbers.least + shift}));"
        if numbers.most is not None:
            yield f"y = _mm512_min_epu8(y, _mm512_set1_epi8((char){numbers.most + shift}));"
        yield from store_pixels(f"o + {at}", pixels, self.used, self.target.lanes)
        yield "}"


def pack_bytes(
    weight: Array,
    start: Array,
    scale: Array,
    words: Sequence[Sequence[tuple[tuple[int, int] | None, ...]]],
    lanes: int,
) -> Array:
    """Return the constants of each block of channels: starts of sums, scales, and taps in fours.

    Args:
        weight: ``(channels, 1, rows, columns)`` of int8.
        start: One whole number a channel.
        scale: One float a channel.
        words: The taps of each word, for each row of results.
        lanes: Channels of a block.
    """
    numbers = [_spread(start, lanes), _spread(scale.view(np.int32), lanes)]
    for row in words:
        numbers += [_spread(_words(weight, four), lanes) for four in row]
    return np.stack(numbers, 1).reshape(-1)
