"""Pairs of bfloat16: two neighbouring numbers in one 32-bit word, multiplied at once.

``VDPBF16PS`` adds two products of bfloat16 to a float32, so a kernel over words does the work of
one over floats with half the steps. Sums, and all other operations, stay in float32
(Intel, "BFLOAT16 - Hardware Numerics Definition", 2018).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import ml_dtypes
import numpy as np

from hagane.machine import Level
from hagane.native.kernels.expression import FLOAT32, Apply, Expression, Leaf
from hagane.native.kernels.recorder import Recorder
from hagane.native.kernels.tensor import Blocked, Buffer, Kind, Pads, Tensor, keep_border
from hagane.native.layouts.image_kernels import clear_beyond, emit_image
from hagane.native.tiles.tile import Words, block_words, whole_words
from hagane.ops.definition import Array
from hagane.symbolic import Dim

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
# Stores float32 as bfloat16 in one instruction; numbers below 2^-126 become zero.
STORE = "v_store_pairs"
# Keeps float32 as the sum of three bfloat16, in three vectors that lie 32 numbers apart.
SPLIT = "v_store_triples"


@dataclass(frozen=True, slots=True)
class Paired:
    """Images of bfloat16 in blocks of channels, like ``Blocked``; sizes below count words.

    Attributes:
        buffer: Its memory.
        shape: ``(N, C, H, W)`` or ``(N, C, W)``.
        lanes: Channels of a block, whose pieces take half as many words each: those of a vector, or
            twice as many where matrix tiles multiply them.
        pads: The zero border.
        words: Whether numbers are rounded, or cut into pieces whose sum they are; the pieces of a
            pixel's block follow one another.
    """

    buffer: Buffer
    shape: tuple[Dim, ...]
    lanes: int
    pads: Pads
    words: Words = Words.PAIR

    @property
    def step(self) -> int:
        """Words from one pixel to the next."""
        return self.lanes // 2 * self.words.pieces

    @property
    def blocks(self) -> int:
        """Blocks of channels."""
        channels = self.shape[1]
        assert isinstance(channels, int), self
        return -(-channels // self.lanes)

    @property
    def row_stride(self) -> Dim:
        """Words from one row to the next."""
        return (self.shape[-1] + self.pads[1] + self.pads[3]) * self.step

    @property
    def plane_stride(self) -> Dim:
        """Words from one block of channels to the next."""
        rows = self.shape[2] if len(self.shape) == 4 else 1
        return (rows + self.pads[0] + self.pads[2]) * self.row_stride

    @property
    def origin(self) -> Dim:
        """Words from the buffer's start to the first pixel inside the border."""
        return self.pads[0] * self.row_stride + self.pads[1] * self.step

    def view(self, piece: int = 0) -> Tensor:
        """Return the pixels, or a piece of them, as bfloat16, ``(N, blocks, rows, columns, lanes)``."""
        pixels = self._pixels(self.lanes)
        return replace(pixels, offset=pixels.offset + piece * self.lanes)

    def _pixels(self, length: int) -> Tensor:
        rows = self.shape[2] if len(self.shape) == 4 else 1
        plane, row = 2 * self.plane_stride, 2 * self.row_stride
        return Tensor(
            self.buffer,
            BFLOAT16,
            (self.shape[0], self.blocks, rows, self.shape[-1], length),
            (self.blocks * plane, plane, row, 2 * self.step, 1),
            2 * self.origin,
        )

    def keep_border(self) -> None:
        """Note that the memory around the pixels must be zero whenever it is read."""
        keep_border(self._pixels(2 * self.step), 2 * self.plane_stride)

    def word_view(self) -> Tensor:
        """Return the same memory as 32-bit words, from the first pixel inside the border."""
        return Tensor(self.buffer, np.dtype(np.float32), (), (), self.origin)


def new_paired(name: str, shape: tuple[Dim, ...], pads: Pads, words: Words, level: Level) -> Paired:
    """Return fresh memory for an image of pairs within a zero border."""
    lanes = words.each * block_words(level, words)
    image = Paired(Buffer(f"{name} pairs", 0, Kind.ARENA), shape, lanes, pads, words)
    image.buffer.bytes = shape[0] * image.blocks * image.plane_stride * 4
    image.keep_border()
    return image


def to_pairs(recorder: Recorder, name: str, source: Blocked, target: Paired) -> None:
    """Write the kernel that rounds an image in blocks to pairs, or cuts its numbers into pieces."""
    verb, store = ("round", STORE) if target.words is Words.PAIR else ("split", SPLIT)
    # The rest of the last block is multiplied by zero, and must not be infinite: it is cleared.
    emit_image(recorder, f"{verb} '{name}'", Leaf(source.view()), target.view(), store=store)
    clear_beyond(recorder, f"clear '{name}'", source.channels, target.view(), store=store)


def from_pairs(recorder: Recorder, name: str, source: Paired, target: Blocked) -> None:
    """Write the kernel that widens an image of pairs, or adds up its pieces."""
    pieces = [Leaf(source.view(piece)) for piece in range(source.words.pieces)]
    whole: Expression = pieces[-1]
    for piece in reversed(pieces[:-1]):
        whole = Apply("{0} + {1}", (piece, whole), FLOAT32)
    emit_image(recorder, f"widen '{name}'", whole, target.view())


def split_weights(weight: Array, level: Level) -> Array:
    """Return weights as floats, inputs filled up to whole blocks of the words of their pieces."""
    out, depth, rows, columns = weight.shape
    count = whole_words(depth, Words.TRIPLE, level) * Words.TRIPLE.weights
    padded = np.zeros((out, count, rows, columns), np.float32)
    padded[:, :depth] = weight
    return padded


def paired_weights(weight: Array, level: Level) -> Array:
    """Return weights ``(out, in, rows, columns)`` as words of two inputs, ``(out, in / 2, …)``.

    For matrix tiles, inputs are filled up to whole blocks.
    """
    out, depth, rows, columns = weight.shape
    words = whole_words(depth, Words.PAIR, level)
    padded = np.zeros((out, words * 2, rows, columns), BFLOAT16)
    padded[:, :depth] = weight
    pairs = padded.reshape(out, -1, 2, rows, columns).transpose(0, 1, 3, 4, 2)
    return np.ascontiguousarray(pairs).view(np.uint32)[..., 0]
