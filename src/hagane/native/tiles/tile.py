"""The innermost kernel: a register tile of channel blocks × pixels, summed over input channels.

One description serves convolutions (pixels of blocked images) and matrix products (rows of a
matrix); only the offsets differ. It is written as one block of x86 assembly, because compilers
spill accumulators of a tile that fills the register file, or as C over vector types.

Register tiles are those of "Anatomy of High-Performance Many-Threaded Matrix Multiplication"
(Smith et al., IPDPS 2014): as many accumulators as registers allow, weights in registers, one
input element broadcast at a time.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

from hagane.machine import Level
from hagane.native.kernels.expression import float_text
from hagane.native.kernels.tensor import Buffer


@dataclass(frozen=True, slots=True)
class Activation:
    """``min(max(x, low), high)``; None leaves a side open."""

    low: float | None = None
    high: float | None = None


NO_ACTIVATION = Activation()


class Words(enum.Enum):
    """The contents of a 32-bit word of inputs and weights, by the multiplying instruction."""

    FLOAT = "vfmadd231ps"
    PAIR = "vdpbf16ps"  # two bfloat16
    TRIPLE = "tdpbf16ps"  # a third of two float32, each the sum of three bfloat16
    QUAD = "vpdpbusd"  # four bytes, those of the inputs unsigned, those of the weights signed

    @property
    def each(self) -> int:
        """How many numbers a word holds."""
        return {Words.FLOAT: 1, Words.PAIR: 2, Words.TRIPLE: 2, Words.QUAD: 4}[self]

    @property
    def weights(self) -> int:
        """How many words of weights, kept as they are multiplied or as floats, stand for one."""
        return 2 if self is Words.TRIPLE else 1

    @property
    def products(self) -> int:
        """How many products of words are summed for one of numbers."""
        return 6 if self is Words.TRIPLE else 1

    @property
    def pieces(self) -> int:
        """How many words, one after the other in a block, make up a number together."""
        return 3 if self is Words.TRIPLE else 1


class Store(enum.Enum):
    """How results are kept."""

    SUM = "sum"  # as they were summed: float32, or int32 of quads
    PAIR = "pair"  # rounded to bfloat16
    TRIPLE = "triple"  # split into three bfloat16
    SCALED = "scaled"  # int32 to float32: times a factor, plus a shift, of each channel
    QUAD = "quad"  # int32 to bytes: times a factor, rounded, plus the zero point

    @classmethod
    def of(cls, words: Words) -> Store:
        """Return how results are kept that a product of such words reads."""
        return {
            Words.FLOAT: cls.SUM,
            Words.PAIR: cls.PAIR,
            Words.TRIPLE: cls.TRIPLE,
            Words.QUAD: cls.QUAD,
        }[words]


@dataclass(frozen=True, slots=True)
class Tile:
    """A register tile. Offsets and strides count 32-bit words.

    Attributes:
        blocks: Output channel blocks, of as many channels as a vector has lanes.
        sources: Offset of each pixel's first input element.
        targets: Offset of each pixel's output vector.
        residuals: Offset of each pixel's vector to add, or None.
        depth: Whole blocks of input channels.
        channels: Input channels of a whole block, next to one another.
        rest: Input channels of a last, partial block.
        source_plane: From one block of input channels to the next. None, here and below, stands for
            a distance that is known only at run time, and then is a last argument, in bytes:
            ``plane``, ``row``, ``target_plane`` and ``residual_plane``, in this order.
        target_plane: From one block of channels of the target to the next.
        residual_plane: The same of the residual.
        target_parts: Blocks of output channels that one block of the target holds.
        residual_parts: The same of the residual.
        residual_words: How the residual is kept.
        taps: Rows and columns of the filter.
        row_step: From one filter row to the next in the input.
        column_step: From one filter column to the next in the input.
        activation: Applied last.
        prefetch: Cache lines of later weights to fetch for each block of input channels and tap.
        streams: Parts of the input channels that are summed side by side, each from weights of its
            own: memory gives more to several streams than to one.
        words: The contents of a word; "channels" above count words.
        store: How results are kept.
        missing: Inputs of the last block that there are no weights for, where they are cut.
        parameters: Bytes from the biases to the factors of the channels, and from there to their
            shifts. For bytes to the zero point instead, 16 bits each, from there to the least
            byte, to the largest result before rounding, and to ``IN_ROWS``. Where a residual is
            added to these, the shifts follow, then its factors.
        limited: Whether there is a largest result before rounding.
        rows: Rows of an image that share the pixels, 1 or 2. Offsets then count from a row's first
            pixel, and the distances to the second row are known at run time only: ``source_row``,
            ``target_row`` and ``residual_row``, behind the other arguments.
    """

    blocks: int
    sources: tuple[int, ...]
    targets: tuple[int, ...]
    residuals: tuple[int, ...] | None
    depth: int
    channels: int
    rest: int
    source_plane: int | None
    target_plane: int | None
    residual_plane: int | None = 0
    taps: tuple[int, int] = (1, 1)
    row_step: int | None = 0
    column_step: int = 0
    activation: Activation = NO_ACTIVATION
    prefetch: int = 0
    streams: int = 1
    words: Words = Words.FLOAT
    store: Store = Store.SUM
    missing: int = 0
    parameters: int = 0
    limited: bool = False
    target_parts: int = 1
    residual_parts: int = 1
    residual_words: Words = Words.FLOAT
    rows: int = 1

    def is_below(self, pixel: int) -> bool:
        """Whether a pixel lies in the second row."""
        return self.rows == 2 and pixel >= len(self.sources) // 2

    @property
    def known(self) -> tuple[int, int, int]:
        """Distances of planes of the target and of the residual, and of rows, where all are known."""
        found = (self.target_plane, self.residual_plane, self.row_step)
        target, added, row = (0 if distance is None else distance for distance in found)
        assert None not in found, self
        return target, added, row

    @property
    def distances(self) -> tuple[str, ...]:
        """The distances that are known only at run time."""
        found = {
            "plane": self.source_plane,
            "row": self.row_step,
            "target_plane": self.target_plane,
            "residual_plane": self.residual_plane,
        }
        below = ("source_row", "target_row", *(["residual_row"] if self.residuals else []))
        names = [name for name, distance in found.items() if distance is None]
        return (*names, *(below if self.rows > 1 else ()))

    @property
    def part(self) -> int:
        """Words from one block of output channels to the next, in one block of the target."""
        return {Store.PAIR: 8, Store.TRIPLE: 8, Store.QUAD: 4}.get(self.store, 16)

    @property
    def residual_part(self) -> int:
        """The same of the residual."""
        return {Words.FLOAT: 16, Words.QUAD: 4}.get(self.residual_words, 8)


# The places of words after four vectors of 32-bit numbers are packed to bytes: those of the first
# vector, then of the second, and so on.
IN_ROWS = tuple(4 * i + j for j in range(4) for i in range(4))


def uses_tiles(level: Level, words: Words) -> bool:
    """Whether words of this kind are multiplied in matrix tiles (``amx.py``)."""
    return level.tiles and words is not Words.FLOAT


def block_words(level: Level, words: Words) -> int:
    """Return the words of one pixel in a block of an image."""
    return 16 if uses_tiles(level, words) else level.lanes // words.each


def whole_words(depth: int, words: Words, level: Level) -> int:
    """Return the words that ``depth`` inputs take; in matrix tiles, whole blocks of them."""
    count = -(-depth // words.each)
    return -(-count // 16) * 16 if uses_tiles(level, words) else count


def tile_pixels(level: Level, blocks: int) -> int:
    """Return how many pixels fit beside ``blocks`` channel blocks in the register file."""
    if blocks == 1:
        return level.registers - 4
    return max(1, (level.registers - blocks - 1) // blocks)


def bounded(value: str, activation: Activation) -> str:
    """Return C text of a vector within an activation's bounds."""
    if activation.low is not None:
        value = f"v_max2(v_set1({float_text(activation.low)}), {value})"
    if activation.high is not None:
        value = f"v_min2(v_set1({float_text(activation.high)}), {value})"
    return value


@dataclass(frozen=True, slots=True)
class Parameters:
    """Numbers of each output channel that a tile of quads reads, in one buffer.

    Attributes:
        buffer: The starts of sums, then the factors, and so on as ``Tile`` has it.
        distance: Bytes from one row of numbers to the next.
        limited: Whether there is a largest result before rounding.
    """

    buffer: Buffer
    distance: int
    limited: bool = False
