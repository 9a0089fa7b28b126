"""Bytes less their zero point, 16 bits each: images with the channels of a pixel side by side.

Processors without ``VPDPBUSD`` multiply pairs of 16-bit numbers and add both products to an int32
(``VPMADDWD``), exactly. A number that has lost its zero point needs no correction of sums, and
the border of an image is nought.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hagane.machine import Level
from hagane.native.kernels.kernel import Body, work_of
from hagane.native.kernels.recorder import Recorder
from hagane.native.kernels.tensor import Buffer, Kind, Pads, Tensor, keep_border, row_major
from hagane.symbolic import Dim

INT16 = np.dtype(np.int16)
# Channels of an image that are written one after the other.
_FEW = 4


@dataclass(frozen=True, slots=True)
class Shorts:
    """Images ``(N, rows, columns, wide)`` of int16 in a border of nought; sizes count elements.

    Attributes:
        buffer: Its memory.
        shape: ``(N, C, H, W)``; the rows of a matrix are the pixels of an image of one row.
        wide: Elements of a pixel, whole vectors of 16-bit numbers; those past the last channel are
            multiplied by nought.
        pads: The border.
        zero: The zero point that was taken off.
        dtype: int8 or uint8.
    """

    buffer: Buffer
    shape: tuple[Dim, ...]
    wide: int
    pads: Pads
    zero: int
    dtype: np.dtype[Any]

    @property
    def channels(self) -> int:
        """Channels."""
        channels = self.shape[1]
        assert isinstance(channels, int), self
        return channels

    @property
    def row_stride(self) -> Dim:
        """From one row to the next."""
        return (self.shape[3] + self.pads[1] + self.pads[3]) * self.wide

    @property
    def image_stride(self) -> Dim:
        """From one image to the next."""
        return (self.shape[2] + self.pads[0] + self.pads[2]) * self.row_stride

    @property
    def origin(self) -> Dim:
        """From the buffer's start to the first pixel inside the border."""
        return self.pads[0] * self.row_stride + self.pads[1] * self.wide

    def pixels(self) -> Tensor:
        """Return the pixels, ``(N, rows, columns, wide)``."""
        images, _, rows, columns = self.shape
        strides = (self.image_stride, self.row_stride, self.wide, 1)
        return Tensor(self.buffer, INT16, (images, rows, columns, self.wide), strides, self.origin)

    def blocks(self, lanes: int) -> Tensor:
        """Return the pixels as those of an image in blocks, ``(N, blocks, rows, columns, lanes)``."""
        images, _, rows, columns = self.shape
        shape = (images, -(-self.channels // lanes), rows, columns, lanes)
        strides = (self.image_stride, lanes, self.row_stride, self.wide, 1)
        return Tensor(self.buffer, INT16, shape, strides, self.origin)


def new_shorts(
    name: str, shape: Sequence[Dim], dtype: np.dtype[Any], zero: int, pads: Pads, level: Level
) -> Shorts:
    """Return fresh memory for an image of 16-bit numbers within a border of nought.

    Args:
        name: The image's.
        shape: ``(N, C, H, W)``.
        dtype: That of the bytes.
        zero: Their zero point.
        pads: The border.
        level: Decides how many elements a pixel has.
    """
    assert isinstance(shape[1], int), shape
    wide = -(-shape[1] // (2 * level.lanes)) * 2 * level.lanes
    buffer = Buffer(f"{name} shorts", 0, Kind.ARENA)
    image = Shorts(buffer, tuple(shape), wide, pads, zero, dtype)
    # (A vector of the last pixel's taps may be read a little past its end.)
    buffer.bytes = (shape[0] * image.image_stride + wide) * INT16.itemsize
    keep_border(image.pixels(), image.image_stride)
    return image


def to_shorts(
    recorder: Recorder, name: str, source: Tensor, target: Shorts, zero: Tensor | None = None
) -> None:
    """Write the kernel that takes the zero point off plain bytes ``(N, C, H, W)``.

    A tensor ``zero`` stands for a zero point that only a run knows.
    """
    images, _, rows, columns = target.shape
    body = Body()
    s, d = body.pointer(source), body.pointer(target.pixels(), written=True)
    point = str(target.zero) if zero is None else f"(int32_t){body.pointer(zero)}[0]"
    n, wide, (by_image, c, h, v) = body.number, target.wide, source.strides
    left = source.dtype.name
    body.add(
        f"int64_t y = q % {n(rows)}, image = q / {n(rows)}; const int32_t zero = {point};",
        f"const {left}_t *s = {s} + image * {n(by_image)} + y * {n(h)};",
        f"int16_t *d = {d} + image * {n(target.image_stride)} + y * {n(target.row_stride)};",
        f"for (int64_t x = 0; x < {n(columns)}; x++, d += {wide}) {{",
        # (A pixel as a whole: compilers write few channels and the filling one by one.)
        *(
            [f"memset(d, 0, {2 * wide});"]
            + [f"d[{i}] = (int16_t)(s[{i} * {n(c)} + x * {n(v)}] - zero);" for i in range(few)]
            if (few := target.channels) <= _FEW
            else [
                f"for (int64_t c = 0; c < {few}; c++) d[c] = (int16_t)(s[c * {n(c)} + x * {n(v)}] - zero);",
                f"for (int64_t c = {few}; c < {wide}; c++) d[c] = 0;",
            ]
        ),
        "}",
    )
    work = work_of(images * rows * columns, wide * 0.4)
    recorder.emit(f"to shorts '{name}'", body, images * rows, work=work)


def from_shorts(recorder: Recorder, source: Shorts, target: Tensor) -> Tensor:
    """Write the kernel that brings an image back to plain bytes; return these."""
    images, channels, rows, columns = source.shape
    body = Body()
    s, d = body.pointer(source.pixels()), body.pointer(target, written=True)
    n, wide = body.number, source.wide
    body.add(
        f"int64_t y = q % {n(rows)}, image = q / {n(rows)};",
        f"const int16_t *s = {s} + image * {n(source.image_stride)} + y * {n(source.row_stride)};",
        f"__typeof__({d}) d = {d} + (image * {channels} * {n(rows)} + y) * {n(columns)};",
        f"for (int64_t c = 0; c < {channels}; c++) for (int64_t x = 0; x < {n(columns)}; x++)",
        f"d[c * {n(rows * columns)} + x] = (__typeof__(*{d}))(s[x * {wide} + c] + {source.zero});",
    )
    work = work_of(images * rows * columns, source.channels * 0.4)
    name = source.buffer.name.removesuffix(" shorts")
    recorder.emit(f"from shorts '{name}'", body, images * rows, work=work)
    return replace(target, strides=row_major(target.shape))
