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
import struct
from dataclasses import dataclass

from hagane.machine import Level


@dataclass(frozen=True, slots=True)
class Activation:
    """``min(max(x, low), high)``; None leaves a side open."""

    low: float | None = None
    high: float | None = None


NO_ACTIVATION = Activation()


class Words(enum.Enum):
    """What a 32-bit word of inputs and weights holds, by the instruction that multiplies it."""

    FLOAT = "vfmadd231ps"
    PAIR = "vdpbf16ps"  # two bfloat16
    QUAD = "vpdpbusd"  # four bytes, those of the inputs unsigned, those of the weights signed

    @property
    def each(self) -> int:
        """How many numbers a word holds."""
        return {Words.FLOAT: 1, Words.PAIR: 2, Words.QUAD: 4}[self]


class Store(enum.Enum):
    """How results are kept."""

    SUM = "sum"  # as they were summed: float32, or int32 of quads
    PAIR = "pair"  # rounded to bfloat16
    SCALED = "scaled"  # int32 to float32: times a factor, plus a shift, of each channel
    QUAD = "quad"  # int32 to bytes: times a factor, rounded, plus the zero point


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
        source_plane: From one block of input channels to the next; None if it is known only at
            run time, and then a last argument, ``plane``, in bytes.
        target_plane: From one block of channels of the target to the next.
        residual_plane: The same of what is added.
        target_parts: Blocks of output channels that one block of the target holds.
        residual_parts: The same of what is added.
        residual_pairs: Whether what is added is kept in bfloat16.
        taps: Rows and columns of the filter.
        row_step: From one filter row to the next in the input.
        column_step: From one filter column to the next in the input.
        activation: Applied last.
        prefetch: Cache lines of later weights to fetch for each block of input channels and tap.
        accumulate: Start from what the output holds instead of the bias.
        words: What a word holds; "channels" above count words.
        store: How results are kept.
        parameters: Bytes from the biases to the factors of the channels, from there to their
            shifts or zero points, and for bytes from there to the largest result before
            rounding, and from there to the least byte.
    """

    blocks: int
    sources: tuple[int, ...]
    targets: tuple[int, ...]
    residuals: tuple[int, ...] | None
    depth: int
    channels: int
    rest: int
    source_plane: int | None
    target_plane: int
    residual_plane: int = 0
    taps: tuple[int, int] = (1, 1)
    row_step: int = 0
    column_step: int = 0
    activation: Activation = NO_ACTIVATION
    prefetch: int = 0
    accumulate: bool = False
    words: Words = Words.FLOAT
    store: Store = Store.SUM
    parameters: int = 0
    target_parts: int = 1
    residual_parts: int = 1
    residual_pairs: bool = False

    @property
    def part(self) -> int:
        """Words from one block of output channels to the next, in one block of the target."""
        return {Store.PAIR: 8, Store.QUAD: 4}.get(self.store, 16)

    @property
    def residual_part(self) -> int:
        """The same of what is added."""
        return 8 if self.residual_pairs else 16


# Words of a whole block of channels, whose next blocks are fetched ahead.
_WHOLE_BLOCKS = {Words.FLOAT: (16, 8), Words.PAIR: (16, 8), Words.QUAD: (16, 4)}


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


def tile_function(name: str, tile: Tile, level: Level) -> str:
    """Return a C function ``name(s, w, b, r, d, pf)`` that computes one tile."""
    return _assembly(name, tile, level) if level.assembly else _portable(name, tile, level)


def _signature(name: str, tile: Tile) -> str:
    plane = ", int64_t plane" if tile.source_plane is None else ""
    return (
        f"INLINE void {name}(const float *s, const float *w, const float *b, const float *r, "
        f"float *d, const float *pf{plane})"
    )


class _Assembler:
    """Writes the instructions of one tile."""

    def __init__(self, tile: Tile, level: Level):
        self.tile = tile
        self.register = "zmm" if level.lanes == 16 else "ymm"
        self.vector = level.lanes * 4
        self.wide = level.lanes == 16
        self.product = tile.words.value
        self.pixels = len(tile.sources)
        used = tile.blocks * self.pixels
        self.weights = [f"%%{self.register}{used + j}" for j in range(tile.blocks)]
        free = range(used + tile.blocks, level.registers)
        self.spare = [f"%%{self.register}{i}" for i in free][-3:]
        assert self.spare or (tile.blocks == 1 and self.wide), "the tile leaves no register"
        self.lines: list[str] = []
        self.turn = 0

    def accumulator(self, block: int, pixel: int) -> str:
        return f"%%{self.register}{block * self.pixels + pixel}"

    def start(self) -> None:
        tile = self.tile
        for j in range(tile.blocks):
            for t in range(self.pixels):
                acc = self.accumulator(j, t)
                if tile.accumulate:
                    at = (j * tile.target_plane + tile.targets[t]) * 4
                    self.lines.append(f"vmovups {at}(%[d]), {acc}")
                elif t == 0:
                    self.lines.append(f"vmovups {j * self.vector}(%[b]), {acc}")
                else:
                    self.lines.append(f"vmovaps {self.accumulator(j, 0)}, {acc}")

    def multiply(self, channel: int, weight: int) -> None:
        tile = self.tile
        for j in range(tile.blocks):
            at = (weight * tile.blocks + j) * self.vector
            self.lines.append(f"vmovups {at}(%[w]), {self.weights[j]}")
        for t in range(self.pixels):
            at = (channel + tile.sources[t]) * 4
            if tile.blocks == 1 and self.wide and tile.words is not Words.QUAD:
                broadcast = f"{at}(%[p])%{{1to16%}}"
                self.lines.append(
                    f"{self.product} {broadcast}, {self.weights[0]}, {self.accumulator(0, t)}"
                )
                continue
            x = self.spare[self.turn % len(self.spare)]
            self.turn += 1
            self.lines.append(f"vbroadcastss {at}(%[p]), {x}")
            for j in range(tile.blocks):
                acc = self.accumulator(j, t)
                self.lines.append(f"{self.product} {self.weights[j]}, {x}, {acc}")

    def prefetch(self) -> None:
        tile = self.tile
        for i in range(tile.prefetch):
            self.lines.append(f"prefetcht1 {64 * i}(%[pf])")
        if tile.prefetch:
            self.lines.append(f"add ${64 * tile.prefetch}, %[pf]")
        ahead = tile.source_plane is not None and tile.taps == (1, 1) and tile.depth > 1
        if ahead and tile.channels in _WHOLE_BLOCKS[tile.words]:
            assert tile.source_plane is not None
            for t in range(self.pixels):
                at = (tile.sources[t] + 2 * tile.source_plane) * 4
                self.lines.append(f"prefetcht0 {at}(%[p])")

    def section(self, blocks: int, channels: int) -> None:
        """Sum over some blocks of input channels, all taps of each."""
        tile, lines = self.tile, self.lines
        if blocks == 0 or channels == 0:
            return
        rows, columns = tile.taps
        if blocks > 1:
            lines.append(f"mov ${blocks}, %[ib]")
            lines.append("1:")
        lines.append("mov %[s], %[p]")
        if rows > 1:
            lines += [f"mov ${rows}, %[kh]", "2:"]
        if channels >= 4:
            self._channels_in_a_loop(columns, channels)
        else:
            self._channels_unrolled(columns, channels)
        if rows > 1:
            lines += [f"add ${tile.row_step * 4}, %[p]", "dec %[kh]", "jnz 2b"]
        plane = "%[plane]" if tile.source_plane is None else f"${tile.source_plane * 4}"
        lines.append(f"add {plane}, %[s]")
        if blocks > 1:
            lines += ["dec %[ib]", "jnz 1b"]

    def _channels_in_a_loop(self, columns: int, channels: int) -> None:
        tile, lines = self.tile, self.lines
        if columns > 1:
            lines += [f"mov ${columns}, %[kw]", "3:"]
        self.prefetch()
        unroll = next(n for n in (8, 7, 6, 5, 4, 3, 2, 1) if channels % n == 0)
        looped = channels > unroll
        if looped:
            lines += [f"mov ${channels // unroll}, %[c]", "4:"]
        for u in range(unroll):
            self.multiply(u, u)
        lines.append(f"add ${unroll * tile.blocks * self.vector}, %[w]")
        if looped:
            lines += [f"add ${unroll * 4}, %[p]", "dec %[c]", "jnz 4b"]
        step = tile.column_step * 4 - (channels * 4 if looped else 0)
        if columns > 1:
            lines += [f"add ${step}, %[p]", "dec %[kw]", "jnz 3b"]
            lines.append(f"sub ${columns * tile.column_step * 4}, %[p]")
        elif looped:
            lines.append(f"sub ${channels * 4}, %[p]")

    def _channels_unrolled(self, columns: int, channels: int) -> None:
        tile = self.tile
        for column in range(columns):
            for c in range(channels):
                self.multiply(column * tile.column_step + c, column * channels + c)
        self.lines.append(f"add ${columns * channels * tile.blocks * self.vector}, %[w]")

    def finish(self) -> None:
        tile, lines = self.tile, self.lines
        low, high = self.weights[0], (self.spare or [""])[0]
        if tile.activation.low is not None:
            self._constant(low, tile.activation.low)
        if tile.activation.high is not None:
            self._constant(high, tile.activation.high)
        for j in range(tile.blocks):
            if tile.store in (Store.SCALED, Store.QUAD):
                self._parameters(j)
            for t in range(self.pixels):
                acc = self.accumulator(j, t)
                if tile.store is Store.SCALED:
                    factor, shift = self._scaling()
                    lines += [
                        f"vcvtdq2ps {acc}, {acc}",
                        f"vfmadd213ps {shift}, {factor}, {acc}",
                    ]
                if tile.residuals is not None:
                    # Large beside the products: each of them would be rounded to its steps.
                    at = (j * tile.residual_plane + tile.residuals[t]) * 4
                    lines.append(f"vaddps {at}(%[r]), {acc}, {acc}")
                # The data come last: these instructions return it where it is NaN.
                if tile.activation.low is not None:
                    lines.append(f"vmaxps {acc}, {low}, {acc}")
                if tile.activation.high is not None:
                    lines.append(f"vminps {acc}, {high}, {acc}")
                self._store(acc, j, (j * tile.target_plane + tile.targets[t]) * 4)

    def _scaling(self) -> tuple[str, str]:
        """Return the registers of a block's factors and shifts, apart from the bounds."""
        free = [*self.weights[1:], *self.spare[1:]]
        return free[0], free[1]

    def _parameters(self, block: int) -> None:
        factor, shift = self._scaling()
        at = self.tile.parameters
        for register, offset in ((factor, at), (shift, 2 * at)):
            self.lines.append(f"vmovups {offset + block * self.vector}(%[b]), {register}")

    def _store(self, acc: str, block: int, at: int) -> None:
        tile, lines = self.tile, self.lines
        if tile.store is Store.PAIR:
            half = acc.replace("zmm", "ymm")
            lines += [f"vcvtneps2bf16 {acc}, {half}", f"vmovups {half}, {at}(%[d])"]
        elif tile.store is Store.QUAD:
            factor, zero = self._scaling()
            lines += [
                f"vcvtdq2ps {acc}, {acc}",
                f"vmulps {factor}, {acc}, {acc}",
                # What is too large for an int32 would become the smallest one.
                f"vminps {3 * tile.parameters + self.vector * block}(%[b]), {acc}, {acc}",
                f"vcvtps2dq {acc}, {acc}",
                f"vpaddd {zero}, {acc}, {acc}",
                f"vpmaxsd {4 * tile.parameters + self.vector * block}(%[b]), {acc}, {acc}",
                f"vpmovusdb {acc}, {at}(%[d])",
            ]
        else:
            lines.append(f"vmovups {acc}, {at}(%[d])")

    def _constant(self, register: str, value: float) -> None:
        bits = struct.unpack("<I", struct.pack("<f", value))[0]
        narrow = register.replace("zmm", "xmm").replace("ymm", "xmm")
        self.lines += [
            f"mov ${bits}, %k[ib]",
            f"vmovd %k[ib], {narrow}",
            f"vbroadcastss {narrow}, {register}",
        ]


def _assembly(name: str, tile: Tile, level: Level) -> str:
    writer = _Assembler(tile, level)
    writer.start()
    writer.section(tile.depth, tile.channels)
    writer.section(1 if tile.rest else 0, tile.rest)
    writer.finish()
    text = "\n".join(f'    "{line}\\n\\t"' for line in writer.lines)
    clobbered = ", ".join(f'"{writer.register}{i}"' for i in range(level.registers))
    plane = ', [plane] "r"(plane)' if tile.source_plane is None else ""
    return f"""{_signature(name, tile)} {{
  const float *p;
  int64_t ib, kh, kw, c;
  __asm__ volatile(
{text}
    : [s] "+r"(s), [w] "+r"(w), [pf] "+r"(pf), [p] "=&r"(p), [ib] "=&r"(ib), [kh] "=&r"(kh),
      [kw] "=&r"(kw), [c] "=&r"(c)
    : [b] "r"(b), [r] "r"(r), [d] "r"(d){plane}
    : "memory", "cc", {clobbered});
}}
"""


def _portable(name: str, tile: Tile, level: Level) -> str:
    assert tile.words is Words.FLOAT, "narrow words need instructions of their own"
    lanes, pixels = level.lanes, len(tile.sources)
    out = [f"{_signature(name, tile)} {{", "  (void)r, (void)pf, (void)b;"]
    for j in range(tile.blocks):
        for t in range(pixels):
            start = f"v_load(b + {j * lanes})"
            if tile.accumulate:
                start = f"v_load(d + {j * tile.target_plane + tile.targets[t]})"
            out.append(f"  vf a{j}_{t} = {start};")
    rows, columns = tile.taps
    for blocks, channels in ((tile.depth, tile.channels), (1 if tile.rest else 0, tile.rest)):
        if not blocks or not channels:
            continue
        plane = "plane / 4" if tile.source_plane is None else str(tile.source_plane)
        out.append(f"  for (int ib = 0; ib < {blocks}; ib++, s += {plane})")
        out.append(f"    for (int kh = 0; kh < {rows}; kh++)")
        out.append(f"      for (int kw = 0; kw < {columns}; kw++) {{")
        out.append(f"        const float *p = s + kh * {tile.row_step} + kw * {tile.column_step};")
        out.append(f"        for (int c = 0; c < {channels}; c++, w += {tile.blocks * lanes}) {{")
        for j in range(tile.blocks):
            out.append(f"          vf w{j} = v_load(w + {j * lanes});")
        for t in range(pixels):
            out.append(f"          float x{t} = p[c + {tile.sources[t]}];")
            for j in range(tile.blocks):
                out.append(f"          a{j}_{t} += x{t} * w{j};")
        out.append("        }")
        out.append("      }")
    for j in range(tile.blocks):
        for t in range(pixels):
            value = f"a{j}_{t}"
            if tile.residuals is not None:
                value += f" + v_load(r + {j * tile.residual_plane + tile.residuals[t]})"
            if tile.activation.low is not None:
                value = f"v_max2(v_set1({float_text(tile.activation.low)}), {value})"
            if tile.activation.high is not None:
                value = f"v_min2(v_set1({float_text(tile.activation.high)}), {value})"
            out.append(f"  v_store(d + {j * tile.target_plane + tile.targets[t]}, {value});")
    out.append("}\n")
    return "\n".join(out)


def float_text(value: float) -> str:
    """Return a C literal of a 32-bit float."""
    if value != value:
        return "NAN"
    if value in (float("inf"), float("-inf")):
        return "INFINITY" if value > 0 else "(-INFINITY)"
    rounded = struct.unpack("<f", struct.pack("<f", value))[0]
    return f"{rounded.hex()}f" if rounded >= 0 else f"({rounded.hex()}f)"
