"""A contraction: pixels times groups of output channels, summed over input channels and taps.

A convolution of blocked images and the product of a matrix with constant weights are one thing
here: pixels (rows of the matrix) times groups of output channels. Loops of register tiles
(``register_loops``) and of matrix tiles (``matrix``) compute it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from hagane.machine import Level
from hagane.native.tiles.tile import Tile, Words, uses_tiles
from hagane.ops.definition import Array
from hagane.symbolic import Dim

# Channel blocks of one block of results in matrix tiles.
WIDE = 2


@dataclass(frozen=True, slots=True)
class Group:
    """Output channel blocks that one tile computes together.

    Attributes:
        first: Its first block of output channels.
        blocks: How many.
        weights: Where its packed weights begin, in floats.
        source: Floats from the image's start to the group's first block of input channels.
    """

    first: int
    blocks: int
    weights: int
    source: int = 0


def group_sizes(n_blocks: int) -> list[int]:
    """Return how channel blocks are split into groups, for one block of results each."""
    return [WIDE] * (n_blocks // WIDE) + [1] * (n_blocks % WIDE)


def split_blocks(
    n_blocks: int,
    pixels: int,
    level: Level,
    widest: int | None = None,
    words: Words = Words.FLOAT,
) -> list[int]:
    """Return how ``n_blocks`` channel blocks are split into groups for one tile each.

    Groups have at most ``widest`` blocks; by rule if None.
    """
    if uses_tiles(level, words):
        return group_sizes(n_blocks)
    if widest is not None:
        return _near_equal(n_blocks, widest)
    if pixels <= 3 and n_blocks > 3:
        most = {1: 8, 2: 8, 3: 6}[max(1, pixels)] if level.registers == 32 else 4
        return _near_equal(n_blocks, most)
    if n_blocks % 3 == 0 and n_blocks % 2 and n_blocks > 1:
        return [3] * (n_blocks // 3)
    if n_blocks % 2 == 0:
        return [2] * (n_blocks // 2)
    if n_blocks == 1:
        return [1]
    return [2] * ((n_blocks - 3) // 2) + [3]


def _near_equal(total: int, most: int) -> list[int]:
    parts = -(-total // most)
    base, extra = divmod(total, parts)
    return [base + (i < extra) for i in range(parts)]


def pack_weights(
    weights: Array, sizes: Sequence[int], level: Level, channels: int, words: Words = Words.FLOAT
) -> Iterator[Array]:
    """Yield weights in the order in which tiles read them, a group at a time.

    Args:
        weights: ``(out, in, rows, columns)``, 32-bit words; numbers that are cut into pieces as
            floats, two for each word.
        sizes: Channel blocks of each group.
        level: Gives the lanes of a block.
        channels: Input channels of one block.
        words: The form in which they are multiplied.

    Yields:
        A row of floats: ``(in blocks, rows, columns, channels, group lanes)``; a last, partial
        block of input channels is not padded. For matrix tiles
        ``(in blocks, rows, columns, group blocks, channels, lanes)``.
    """
    channels *= words.weights
    out, depth, rows, columns = weights.shape
    lanes, taps = level.lanes, rows * columns
    apart = uses_tiles(level, words) and words.weights == 1
    whole, rest = divmod(depth, channels)
    first = 0
    for size in sizes:
        wide = size * lanes
        packed = np.empty(wide * depth * taps, weights.dtype)
        at = 0
        group = weights[first * lanes : min(out, first * lanes + wide)]
        used = len(group)
        first += size
        for start, blocks, deep in ((0, whole, channels), (whole * channels, 1, rest)):
            count = blocks * taps * deep * wide
            part = packed[at : at + count].reshape(blocks, rows, columns, deep, wide)
            if apart:
                part = packed[at : at + count].reshape(blocks, rows, columns, size, deep, lanes)
                part = part.swapaxes(3, 4)
            at += count
            own = group[:, start : start + blocks * deep]
            own = own.reshape(used, blocks, deep, rows, columns).transpose(1, 3, 4, 2, 0)
            if apart:
                filled = np.zeros((*own.shape[:-1], wide), own.dtype)
                filled[..., :used] = own
                part[...] = filled.reshape(*own.shape[:-1], size, lanes)
                continue
            part[..., :used] = own
            part[..., used:] = 0
        yield packed


# Tiles whose places stand in a table; those of larger images are computed.
MOST_LISTED = 1 << 12


@dataclass(frozen=True, slots=True)
class Pixels:
    """The output pixels of one image, as offsets of floats into source, target and residual.

    Attributes:
        source: Offset of a pixel's first input.
        target: Offset of a pixel's output vector.
        residual: Offset of the residual, or None.
        count: Pixels.
        row: Pixels of one row if offsets are regular only within a row, and from row to row; 0 if
            they are regular throughout.
    """

    source: Callable[[int], int]
    target: Callable[[int], int]
    residual: Callable[[int], int] | None
    count: int
    row: int


@dataclass(frozen=True, slots=True)
class Tiling:
    """Near-equal tiles of the pixels of an image: in each row some longer ones, then the others.

    Attributes:
        rows: Rows of tiles, which are alike.
        row: Pixels of one.
        each: Tiles of one.
        length: Pixels of the last tiles of a row.
        longer: Tiles at the start of a row that have one pixel more.
    """

    rows: int
    row: int
    each: int
    length: int
    longer: int

    @staticmethod
    def of(pixels: Pixels, most: int) -> Tiling:
        """Return tiles of at most ``most`` pixels; of narrow rows, they reach across several."""
        across = pixels.row < most and -(-pixels.count // most) <= MOST_LISTED
        row = pixels.count if pixels.row == 0 or across else pixels.row
        each = -(-row // most)
        length, longer = divmod(row, each)
        return Tiling(pixels.count // row, row, each, length, longer)

    def __len__(self) -> int:
        return self.rows * self.each

    def __getitem__(self, number: int) -> tuple[int, int]:
        """Return the first pixel of a tile, and its pixels."""
        if not 0 <= number < len(self):
            raise IndexError(number)
        y, x = divmod(number, self.each)
        start = y * self.row + x * self.length + min(x, self.longer)
        return start, self.length + (x < self.longer)


@dataclass(frozen=True, slots=True)
class Pool:
    """Windows side by side that cover an image but for rows and columns at its end.

    Attributes:
        rows: Of a window.
        columns: Of a window.
        height: Of the result.
        width: Of the result.
        largest: Whether the largest number of a window counts, or else the mean.
    """

    rows: int
    columns: int
    height: int
    width: int
    largest: bool

    @property
    def pixels(self) -> int:
        """Pixels of all windows."""
        return self.rows * self.columns * self.height * self.width

    def combined(self, vectors: Sequence[str]) -> str:
        """Return C text of the largest number, or of the sum."""
        text = vectors[0]
        for vector in vectors[1:]:
            text = f"v_max({vector}, {text})" if self.largest else f"({text} + {vector})"
        return text

    def reduced(self, vectors: Sequence[str]) -> str:
        """Return C text of a window's result."""
        text = self.combined(vectors)
        return text if self.largest else f"{text} / {len(vectors)}.f"


@dataclass(frozen=True, slots=True)
class Band:
    """A row of windows that are pooled.

    Attributes:
        pool: The windows, side by side in the band's pixels.
        source: Floats from one row of windows to the next in the source.
        target: The same in the target.
        plane: Floats from one block of channels of the target to the next.
    """

    pool: Pool
    source: int
    target: int
    plane: int


@dataclass(frozen=True, slots=True)
class Contraction:
    """A sum over input channels and filter taps, for every pixel of every image.

    Attributes:
        tile: The tile's strides and activation; blocks, offsets and prefetch are filled in here.
        pixels: The pixels of one image.
        groups: Groups of output channels.
        images: How many images.
        source_image: Floats from one image's input to the next.
        target_image: The same of the output.
        residual_image: The same of the residual.
        width: Output channels that exist; blocks may hold some more.
        padded: Whether all channels of all blocks are written; those of row-major rows are not.
        source_floats: Floats that one image's input takes, to choose the loop order.
        order: The loop order, if it is not left to that.
        float_plane: Floats from one block of input channels to the next, where inputs lie in blocks
            of float32 and matrix tiles read their pieces; offsets count words of these.
        float_channels: How many channels they hold; the filling of the last block counts nought.
        threads: How many share the work.
        band: If windows of pixels are pooled, ``pixels`` are those of one row of windows, which a
            task computes for itself before it stores their results. Not in matrix tiles.
    """

    tile: Tile
    pixels: Pixels
    groups: tuple[Group, ...]
    images: Dim
    source_image: Dim
    target_image: Dim
    residual_image: Dim
    width: int
    padded: bool
    source_floats: int
    order: str | None = None
    float_plane: int | None = None
    float_channels: int = 0
    threads: int = 1
    band: Band | None = None

    def depth(self) -> int:
        """Return multiplications for one output element."""
        rows, columns = self.tile.taps
        return (self.tile.depth * self.tile.channels + self.tile.rest) * rows * columns
