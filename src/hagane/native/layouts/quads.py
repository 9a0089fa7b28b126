"""Quads of bytes: four neighbouring 8-bit numbers in one 32-bit word, multiplied at once.

``VPDPBUSD`` adds four products of unsigned by signed bytes to an int32, so a kernel over words
does the work of one over floats with a quarter of the steps. Signed inputs are kept shifted by 128.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from hagane.machine import Level
from hagane.native.kernels.expression import Apply, Expression
from hagane.native.kernels.kernel import Body, work_of
from hagane.native.kernels.recorder import Recorder
from hagane.native.kernels.tensor import Buffer, Kind, Pads, Tensor, keep_border, row_major
from hagane.native.tiles.tile import Words, block_words, whole_words
from hagane.ops.definition import Array
from hagane.symbolic import Dim

UINT8, INT8 = np.dtype(np.uint8), np.dtype(np.int8)
QUAD = 4


@dataclass(frozen=True, slots=True)
class Quads:
    """Images of bytes in blocks of channels, like ``Blocked``; sizes below count words.

    Attributes:
        buffer: Its memory; the border, and channels past the last, hold the zero point.
        shape: ``(N, C, H, W)``.
        lanes: Channels of a block, which takes a quarter as many words: those of a vector, or four
            times as many where matrix tiles multiply them.
        pads: The border.
        zero: The zero point as it is kept: shifted by 128 for signed elements.
        dtype: int8 or uint8.
    """

    buffer: Buffer
    shape: tuple[Dim, ...]
    lanes: int
    pads: Pads
    zero: int
    dtype: np.dtype[Any]

    @property
    def shift(self) -> int:
        """The number that is added to an element to keep it."""
        return 128 if self.dtype == INT8 else 0

    @property
    def step(self) -> int:
        """Words from one pixel to the next."""
        return self.lanes // QUAD

    @property
    def channels(self) -> int:
        """Channels."""
        channels = self.shape[1]
        assert isinstance(channels, int), self
        return channels

    @property
    def blocks(self) -> int:
        """Blocks of channels."""
        return -(-self.channels // self.lanes)

    @property
    def rows(self) -> Dim:
        """Rows of one plane, the border left out."""
        return self.shape[2]

    @property
    def columns(self) -> Dim:
        """Columns of one plane, the border left out."""
        return self.shape[3]

    @property
    def row_stride(self) -> Dim:
        """Words from one row to the next."""
        return (self.shape[3] + self.pads[1] + self.pads[3]) * self.step

    @property
    def plane_stride(self) -> Dim:
        """Words from one block of channels to the next."""
        return (self.shape[2] + self.pads[0] + self.pads[2]) * self.row_stride

    @property
    def origin(self) -> Dim:
        """Words from the buffer's start to the first pixel inside the border."""
        return self.pads[0] * self.row_stride + self.pads[1] * self.step

    def view(self) -> Tensor:
        """Return the pixels as unsigned bytes, ``(N, blocks, rows, columns, lanes)``."""
        plane, row = QUAD * self.plane_stride, QUAD * self.row_stride
        return Tensor(
            self.buffer,
            UINT8,
            (self.shape[0], self.blocks, *self.shape[2:], self.lanes),
            (self.blocks * plane, plane, row, self.lanes, 1),
            QUAD * self.origin,
        )

    def word_view(self) -> Tensor:
        """Return the memory from the first pixel inside the border, as 32-bit words."""
        return Tensor(self.buffer, np.dtype(np.float32), (), (), self.origin)


def new_quads(
    name: str, shape: tuple[Dim, ...], dtype: np.dtype[Any], zero: int, pads: Pads, level: Level
) -> Quads:
    """Return fresh memory for an image of bytes within a border of its zero point.

    Args:
        name: The image's.
        shape: ``(N, C, H, W)``.
        dtype: int8 or uint8.
        zero: Its zero point.
        pads: The border.
        level: Decides how many channels a block has.
    """
    kept = zero + (128 if dtype == INT8 else 0)
    lanes = QUAD * block_words(level, Words.QUAD)
    buffer = Buffer(f"{name} quads", 0, Kind.ARENA)
    image = Quads(buffer, shape, lanes, pads, kept, dtype)
    buffer.bytes = shape[0] * image.blocks * image.plane_stride * 4
    keep_border(image.view(), QUAD * image.plane_stride, fill=kept)
    return image


def shifted(expression: Expression) -> Expression:
    """Return bytes as they are kept: signed ones plus 128."""
    if expression.dtype == UINT8:
        return expression
    return Apply("({0} + v_num(128))", (expression,), UINT8)


def to_quads(recorder: Recorder, name: str, source: Tensor, target: Quads) -> None:
    """Write the kernel that brings a plain image of bytes into blocks."""
    images, channels = target.shape[0], target.channels
    rows, columns = target.rows, target.columns
    c, w = source.strides[1], source.strides[3]
    body = Body()
    s = body.pointer(source, ctype="uint8_t")
    d = body.pointer(target.view(), written=True)
    lanes, row, plane = target.lanes, QUAD * target.row_stride, QUAD * target.plane_stride
    n = body.number
    flip = 128 if target.shift else 0
    body.add(
        f"int64_t y = q % {n(rows)}, block = q / {n(rows)} % {target.blocks};",
        f"int64_t image = q / {n(rows * target.blocks)};",
        f"const uint8_t *s = {s} + image * {body.size(source.strides[0])}"
        f" + block * {lanes} * {body.size(c)} + y * {body.size(source.strides[2])};",
        f"uint8_t *d = {d} + (image * {target.blocks} + block) * {n(plane)} + y * {n(row)};",
        f"int64_t n = hg_min({lanes}, {channels} - block * {lanes});",
        f"if (n < {lanes}) memset(d, {target.zero}, {n(columns * lanes)});",
    )
    if w == 1:
        body.add(
            *_turned(
                f"d + x * {lanes} + c",
                lanes,
                f"s + c * {body.size(c)} + x",
                body.size(c),
                n(columns),
                flip,
            )
        )
    else:
        body.add(
            f"for (int64_t c = 0; c < n; c++) for (int64_t x = 0; x < {n(columns)}; x++)",
            f"d[x * {lanes} + c] = s[c * {body.size(c)} + x * {body.size(w)}] ^ {flip};",
        )
    work = work_of(images * target.blocks * lanes * rows * columns, 0.1 if w == 1 else 0.5)
    recorder.emit(f"to quads '{name}'", body, images * target.blocks * rows, work=work)


def _turned(
    target: str,
    target_step: object,
    source: str,
    source_step: object,
    columns: str,
    flip: int,
    back: bool = False,
) -> list[str]:
    """Return loops over 16 channels ``c`` of ``n`` and 16 pixels ``x``, which exchange both axes.

    Args:
        target: C text of where those of ``c`` and ``x`` go.
        target_step: From one pixel of the target to the next; from one channel, ``back``.
        source: C text of where they are.
        source_step: From one channel of the source to the next; from one pixel, ``back``.
        columns: How many pixels there are.
        flip: Bits that change.
        back: Whether pixels are turned into channels.
    """
    order = ("pixels", "channels") if back else ("channels", "pixels")

    def call(rows: str, width: str) -> str:
        places = f"{source}, {source_step}, {rows}, {target}, {target_step}, {width}, {flip}"
        return f"hg_turn_bytes({places});"

    return [
        f"for (int64_t c = 0; c < n; c += 16) for (int64_t x = 0; x < {columns}; x += 16) {{",
        f"int64_t channels = hg_min(16, n - c), pixels = hg_min(16, {columns} - x);",
        f"if (channels == 16 && pixels == 16) {call('16', '16')} else {call(*order)} }}",
    ]


def from_quads(recorder: Recorder, source: Quads, target: Tensor) -> Tensor:
    """Write the kernel that brings bytes in blocks into row-major order; return these."""
    images, channels = source.shape[0], source.channels
    rows, columns = source.rows, source.columns
    body = Body()
    s = body.pointer(source.view())
    d = body.pointer(target, written=True, ctype="uint8_t")
    lanes, row, plane = source.lanes, QUAD * source.row_stride, QUAD * source.plane_stride
    n = body.number
    flip = 128 if source.shift else 0
    body.add(
        f"int64_t y = q % {n(rows)}, block = q / {n(rows)} % {source.blocks};",
        f"int64_t image = q / {n(rows * source.blocks)};",
        f"const uint8_t *s = {s} + (image * {source.blocks} + block) * {n(plane)} + y * {n(row)};",
        f"uint8_t *d = {d} + ((image * {channels} + block * {lanes}) * {n(rows)} + y) * {n(columns)};",
        f"int64_t n = hg_min({lanes}, {channels} - block * {lanes});",
        *_turned(
            f"d + c * {n(rows * columns)} + x", n(rows * columns), f"s + x * {lanes} + c", lanes,
            n(columns), flip, back=True,
        ),
    )  # fmt: skip
    work = work_of(images * source.blocks * lanes * rows * columns, 0.1)
    name = source.buffer.name.removesuffix(" quads")
    recorder.emit(f"from quads '{name}'", body, images * source.blocks * rows, work=work)
    return Tensor(target.buffer, target.dtype, source.shape, row_major(source.shape))


def quad_weights(weight: Array, level: Level) -> Array:
    """Return signed weights ``(out, in, rows, columns)`` as words of four inputs.

    For matrix tiles, inputs are filled up to whole blocks.
    """
    out, depth, rows, columns = weight.shape
    words = whole_words(depth, Words.QUAD, level)
    padded = np.zeros((out, words * QUAD, rows, columns), np.int8)
    padded[:, :depth] = weight
    quads = padded.reshape(out, -1, QUAD, rows, columns).transpose(0, 1, 3, 4, 2)
    return np.ascontiguousarray(quads).view(np.uint32)[..., 0]


def store_pixels(place: str, pixels: int, used: int, lanes: int) -> list[str]:
    """Return the C code that stores the first pixels of a vector ``y`` of 64 bytes.

    Args:
        place: C text of where the first one goes.
        pixels: How many.
        used: Bytes of a pixel that ``y`` has.
        lanes: Bytes from one pixel to the next, where they go.
    """
    if used == lanes:
        if pixels * used == 64:
            return [f"_mm512_storeu_si512({place}, y);"]
        return [f"_mm512_mask_storeu_epi32({place}, {hex((1 << pixels * used // 4) - 1)}, y);"]
    if used == 32:
        store, part = "_mm256_storeu_si256((__m256i *)", "_mm512_extracti64x4_epi64"
    else:
        store, part = "_mm_storeu_si128((__m128i *)", "_mm512_extracti32x4_epi32"
    return [f"{store}({place} + {i * lanes}), {part}(y, {i}));" for i in range(pixels)]
