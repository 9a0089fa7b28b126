"""The code of a register tile: x86 assembly, or C over vector types."""

from __future__ import annotations

import functools
import struct

from hagane.machine import Level
from hagane.native.kernels.expression import float_text
from hagane.native.tiles.tile import Store, Tile, Words

# Words of a whole block of channels, whose next blocks are fetched ahead.
_WHOLE_BLOCKS = {Words.FLOAT: (16, 8), Words.PAIR: (16, 8), Words.QUAD: (16, 4)}
# Sums of more products than this are cut into stretches of about so many.
_CHAIN, _STRETCH = 768, 512
# Vectors of 32-bit numbers that become one of bytes.
QUAD = 4
# How far ahead of each stream weights are fetched, in bytes.
_AHEAD = 1024


def stretch_blocks(tile: Tile, blocks: int, channels: int) -> int:
    """Return how many blocks of input channels are summed in one chain."""
    products = channels * tile.taps[0] * tile.taps[1]
    if tile.words is not Words.FLOAT or tile.streams > 1 or blocks * products <= _CHAIN:
        return blocks
    return max(1, min(blocks, _STRETCH // products))


def _cleared(register: str) -> str:
    """Return the instruction that sets a register to zero."""
    if register.startswith("%%zmm"):
        return f"vpxord {register}, {register}, {register}"
    return f"vxorps {register}, {register}, {register}"


@functools.lru_cache(maxsize=512)  # layers of a network are alike
def tile_function(name: str, tile: Tile, level: Level) -> str:
    """Return a C function ``name(s, w, b, r, d, pf)`` that computes one tile."""
    return _assembly(name, tile, level) if level.assembly else _portable(name, tile, level)


def _signature(name: str, tile: Tile) -> str:
    distances = "".join(f", int64_t {distance}" for distance in tile.distances)
    return (
        f"INLINE void {name}(const float *s, const float *w, const float *b, const float *r, "
        f"float *d, const float *pf{distances})"
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
        # Few sums would wait for one another: those of each stream are kept apart.
        apart = tile.blocks * self.pixels * tile.streams <= level.registers // 2
        self.chains = tile.streams if apart else 1
        used = tile.blocks * self.pixels * self.chains
        self.weights = [f"%%{self.register}{used + j}" for j in range(tile.blocks)]
        free = range(used + tile.blocks, level.registers)
        self.spare = [f"%%{self.register}{i}" for i in free][-3:]
        assert self.spare or (tile.blocks == 1 and self.wide), "the tile leaves no register"
        self.lines: list[str] = []
        self.next_spare = 0
        self.folds = False

    def accumulator(self, block: int, pixel: int, stream: int = 0) -> str:
        chain = stream % self.chains * self.tile.blocks
        return f"%%{self.register}{(chain + block) * self.pixels + pixel}"

    def place(self, pointer: str, at: int, pixel: int, row: str) -> str:
        """Return the operand ``at`` bytes behind a pointer, in the row that a pixel lies in."""
        return (
            f"{at}(%[{pointer}],%[{row}])" if self.tile.is_below(pixel) else f"{at}(%[{pointer}])"
        )

    def start(self) -> None:
        tile = self.tile
        for j in range(tile.blocks):
            for t in range(self.pixels):
                acc = self.accumulator(j, t)
                if t == 0:
                    self.lines.append(f"vmovups {j * self.vector}(%[b]), {acc}")
                else:
                    self.lines.append(f"vmovaps {self.accumulator(j, 0)}, {acc}")
                for chain in range(1, self.chains):
                    self.lines.append(_cleared(self.accumulator(j, t, chain)))

    def multiply(self, channel: int, weight: int, stream: int = 0) -> None:
        tile = self.tile
        begin = stream * (tile.depth // tile.streams)  # in blocks of input channels
        row = tile.blocks * self.vector
        first = begin * tile.channels * row
        for j in range(tile.blocks):
            at = first + weight * row + j * self.vector
            self.lines.append(f"vmovups {at}(%[w]), {self.weights[j]}")
            if tile.streams > 1:  # these wait for memory
                self.lines.append(f"prefetcht0 {at + _AHEAD}(%[w])")
        for t in range(self.pixels):
            at = (begin * (tile.source_plane or 0) + channel + tile.sources[t]) * 4
            place = self.place("p", at, t, "source_row")
            if tile.blocks == 1 and self.wide and tile.words is not Words.QUAD:
                acc = self.accumulator(0, t, stream)
                self.lines.append(f"{self.product} {place}%{{1to16%}}, {self.weights[0]}, {acc}")
                continue
            x = self.spare[self.next_spare % len(self.spare)]
            self.next_spare += 1
            self.lines.append(f"vbroadcastss {place}, {x}")
            for j in range(tile.blocks):
                acc = self.accumulator(j, t, stream)
                self.lines.append(f"{self.product} {self.weights[j]}, {x}, {acc}")

    def prefetch(self) -> None:
        tile = self.tile
        for i in range(tile.prefetch):
            self.lines.append(f"prefetcht1 {64 * i}(%[pf])")
        if tile.prefetch:
            self.lines.append(f"add ${64 * tile.prefetch}, %[pf]")
        ahead = tile.taps == (1, 1) and tile.depth > 1
        if ahead and tile.channels in _WHOLE_BLOCKS[tile.words]:
            place, plane = "p", tile.source_plane
            if plane is None:  # (A filter of one tap counts no columns.)
                self.lines += ["mov %[plane], %[kw]", "lea (%[p],%[kw],2), %[kw]"]
                place, plane = "kw", 0
            for t in range(self.pixels):
                at = (tile.sources[t] + 2 * plane) * 4
                self.lines.append(f"prefetcht0 {self.place(place, at, t, 'source_row')}")

    def section(self, blocks: int, channels: int, streams: int = 1) -> None:
        """Sum over some blocks of input channels, all taps of each."""
        if blocks == 0 or channels == 0:
            return
        per = stretch_blocks(self.tile, blocks, channels)
        stretches, rest = divmod(blocks, per)
        if per == blocks:
            self._blocks(blocks // streams, channels, streams)
            return
        self.folds = True
        # Sums of thousands in one chain lose digits; those of stretches are added up apart.
        self.lines += [f"movq ${stretches}, %[stretches]", "5:"]
        self._blocks(per, channels)
        self._fold()
        self.lines += ["decq %[stretches]", "jnz 5b"]
        if rest:
            self._blocks(rest, channels)

    def _fold(self) -> None:
        for i in range(self.tile.blocks * self.pixels):
            acc, at = f"%%{self.register}{i}", f"{i * self.vector}+%[sums]"
            self.lines += [f"vaddps {at}, {acc}, {acc}", f"vmovaps {acc}, {at}", _cleared(acc)]

    def _blocks(self, blocks: int, channels: int, streams: int = 1) -> None:
        tile, lines = self.tile, self.lines
        rows, columns = tile.taps
        if blocks > 1:
            lines.append(f"mov ${blocks}, %[ib]")
            lines.append("1:")
        lines.append("mov %[s], %[p]")
        if rows > 1:
            lines += [f"mov ${rows}, %[kh]", "2:"]
        if channels >= 4 or streams > 1:
            self._channels_in_a_loop(columns, channels, streams)
        else:
            self._channels_unrolled(columns, channels)
        if rows > 1:
            row = "%[row]" if tile.row_step is None else f"${tile.row_step * 4}"
            lines += [f"add {row}, %[p]", "dec %[kh]", "jnz 2b"]
        plane = "%[plane]" if tile.source_plane is None else f"${tile.source_plane * 4}"
        lines.append(f"add {plane}, %[s]")
        if blocks > 1:
            lines += ["dec %[ib]", "jnz 1b"]

    def _channels_in_a_loop(self, columns: int, channels: int, streams: int) -> None:
        tile, lines = self.tile, self.lines
        if columns > 1:
            lines += [f"mov ${columns}, %[kw]", "3:"]
        self.prefetch()
        unroll = next(n for n in (8, 7, 6, 5, 4, 3, 2, 1) if channels % n == 0)
        looped = channels > unroll
        if looped:
            lines += [f"mov ${channels // unroll}, %[c]", "4:"]
        for u in range(unroll):
            for stream in range(streams):
                self.multiply(u, u, stream)
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

    def join(self) -> None:
        """Add up the sums of all streams; those of bytes are whole numbers."""
        add = "vpaddd" if self.tile.words is Words.QUAD else "vaddps"
        for chain in range(1, self.chains):
            for j in range(self.tile.blocks):
                for t in range(self.pixels):
                    acc = self.accumulator(j, t)
                    self.lines.append(f"{add} {self.accumulator(j, t, chain)}, {acc}, {acc}")

    def finish(self) -> None:
        tile, lines = self.tile, self.lines
        low, high = self.weights[0], (self.spare or [""])[0]
        # (What counted taps and pixels holds the places of results now: open sizes leave few registers.)
        lines.append("mov %[d], %[p]")
        if tile.residuals is not None:
            lines.append("mov %[r], %[c]")
        if tile.rows > 1:
            lines.append("mov %[target_row], %[kh]")
            lines += ["mov %[residual_row], %[kw]"] if tile.residuals is not None else []
        if tile.activation.low is not None:
            self._constant(low, tile.activation.low)
        if tile.activation.high is not None:
            self._constant(high, tile.activation.high)
        if tile.store is Store.QUAD:
            self._bytes()
            return
        for j in range(tile.blocks):
            if tile.store is Store.SCALED:
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
                    at = (j * (tile.residual_plane or 0) + tile.residuals[t]) * 4
                    lines.append(f"vaddps {self.place('c', at, t, 'kw')}, {acc}, {acc}")
                # The data come last: these instructions return it where it is NaN.
                if tile.activation.low is not None:
                    lines.append(f"vmaxps {acc}, {low}, {acc}")
                if tile.activation.high is not None:
                    lines.append(f"vminps {acc}, {high}, {acc}")
                at = (j * (tile.target_plane or 0) + tile.targets[t]) * 4
                self._store(acc, self.place("p", at, t, "kh"))
            self._next_block()

    def _next_block(self) -> None:
        """Go on to the next block of channels of target and residual."""
        if self.tile.target_plane is None:
            self.lines.append("add %[target_plane], %[p]")
        if self.tile.residual_plane is None:
            self.lines.append("add %[residual_plane], %[c]")

    def _scaling(self) -> tuple[str, str]:
        """Return the registers of a block's factors and shifts, apart from the bounds."""
        free = [*self.weights[1:], *self.spare[1:]]
        return free[0], free[1]

    def _parameters(self, block: int) -> None:
        factor, shift = self._scaling()
        at = self.tile.parameters
        for register, offset in ((factor, at), (shift, 2 * at)):
            self.lines.append(f"vmovups {offset + block * self.vector}(%[b]), {register}")

    def _store(self, acc: str, place: str) -> None:
        tile, lines = self.tile, self.lines
        if tile.store is Store.PAIR:
            half = acc.replace("zmm", "ymm")
            lines += [f"vcvtneps2bf16 {acc}, {half}", f"vmovups {half}, {place}"]
        else:
            lines.append(f"vmovups {acc}, {place}")

    def _bytes(self) -> None:
        """Scale sums, round them, and store the bytes of four pixels together."""
        tile, lines = self.tile, self.lines
        order = self.weights[0]
        factor, zero = self._scaling()
        lines.append(f"vmovdqu32 {5 * tile.parameters}(%[b]), {order}")
        if tile.residuals is None:
            lines.append(f"vmovdqu32 {2 * tile.parameters}(%[b]), {zero}")
        else:  # the residual takes its register
            zero = f"{2 * tile.parameters}(%[b])"
        for j in range(tile.blocks):
            lines.append(f"vmovups {tile.parameters + j * self.vector}(%[b]), {factor}")
            for first in range(0, self.pixels, QUAD):
                pixels = range(first, min(first + QUAD, self.pixels))
                accs = [self.accumulator(j, t) for t in pixels]
                for t, acc in zip(pixels, accs, strict=True):
                    lines.append(f"vcvtdq2ps {acc}, {acc}")
                    if tile.residuals is None:
                        lines.append(f"vmulps {factor}, {acc}, {acc}")
                    else:
                        self._add_scaled(j, t, acc)
                    if tile.limited:
                        lines.append(f"vminps {4 * tile.parameters}(%[b]), {acc}, {acc}")
                    lines.append(f"vcvtps2dq {acc}, {acc}")
                y = accs[0]
                pairs = [accs[i : i + 2] for i in range(0, len(accs), 2)]
                for pair in pairs:
                    lines.append(f"vpackssdw {pair[-1]}, {pair[0]}, {pair[0]}")
                    lines.append(f"vpaddsw {zero}, {pair[0]}, {pair[0]}")
                lines += [
                    f"vpackuswb {pairs[-1][0]}, {y}, {y}",
                    f"vpmaxub {3 * tile.parameters}(%[b]), {y}, {y}",
                    f"vpermd {y}, {order}, {y}",
                ]
                offsets = [(j * (tile.target_plane or 0) + tile.targets[t]) * 4 for t in pixels]
                places = [
                    self.place("p", at, t, "kh") for t, at in zip(pixels, offsets, strict=True)
                ]
                in_row = tile.is_below(pixels[0]) == tile.is_below(pixels[-1])
                if in_row and offsets == [offsets[0] + 16 * i for i in range(QUAD)]:
                    lines.append(f"vmovdqu32 {y}, {places[0]}")
                    continue
                lines.append(f"vmovdqu32 {y.replace('zmm', 'xmm')}, {places[0]}")
                for i, place in enumerate(places[1:], 1):
                    lines.append(f"vextracti32x4 ${i}, {y}, {place}")
            self._next_block()

    def _add_scaled(self, block: int, pixel: int, acc: str) -> None:
        """Scale and shift a sum, and add the residual times its factor."""
        tile, lines = self.tile, self.lines
        assert tile.residuals is not None
        factor, added = self._scaling()
        shifts, factors = (f"{row * tile.parameters + block * self.vector}(%[b])" for row in (6, 7))
        at = (block * (tile.residual_plane or 0) + tile.residuals[pixel]) * 4
        place = self.place("c", at, pixel, "kw")
        lines.append(f"vfmadd213ps {shifts}, {factor}, {acc}")
        if tile.residual_words is Words.QUAD:
            lines += [f"vpmovzxbd {place}, {added}", f"vcvtdq2ps {added}, {added}"]
        else:
            lines.append(f"vmovups {place}, {added}")
        lines.append(f"vfmadd231ps {factors}, {added}, {acc}")

    def _constant(self, register: str, value: float) -> None:
        bits = struct.unpack("<I", struct.pack("<f", value))[0]
        lowest = register.replace("zmm", "xmm").replace("ymm", "xmm")
        self.lines += [
            f"mov ${bits}, %k[ib]",
            f"vmovd %k[ib], {lowest}",
            f"vbroadcastss {lowest}, {register}",
        ]


def _assembly(name: str, tile: Tile, level: Level) -> str:
    writer = _Assembler(tile, level)
    writer.start()
    if tile.streams > 1:
        assert tile.taps == (1, 1)
        assert tile.depth % tile.streams == 0
    writer.section(tile.depth, tile.channels, tile.streams)
    if tile.streams > 1:
        passed = tile.depth - tile.depth // tile.streams
        row = tile.blocks * writer.vector
        writer.lines.append(f"add ${passed * tile.channels * row}, %[w]")
        writer.lines.append(f"add ${passed * (tile.source_plane or 0) * 4}, %[s]")
    writer.section(1 if tile.rest else 0, tile.rest)
    writer.join()
    if writer.folds:
        for i in range(tile.blocks * writer.pixels):
            acc = f"%%{writer.register}{i}"
            writer.lines.append(f"vaddps {i * writer.vector}+%[sums], {acc}, {acc}")
    writer.finish()
    text = "\n".join(f'    "{line}\\n\\t"' for line in writer.lines)
    clobbered = ", ".join(f'"{writer.register}{i}"' for i in range(level.registers))
    distances = "".join(
        f', [{each}] "{"r" if each == "source_row" else "rm"}"({each})' for each in tile.distances
    )
    count = tile.blocks * writer.pixels * level.lanes
    sums = stretches = ""
    if writer.folds:
        sums = (
            f"\n  float sums[{count}] __attribute__((aligned(64))) = {{0}};\n  int64_t stretches;"
        )
        # (In place, not by a register: two rows of open sizes leave none.)
        stretches = f', [stretches] "=m"(stretches), [sums] "+m"(*(float (*)[{count}])sums)'
    return f"""{_signature(name, tile)} {{
  const float *p;
  int64_t ib, kh, kw, c;{sums}
  __asm__ volatile(
{text}
    : [s] "+&r"(s), [w] "+r"(w), [pf] "+r"(pf), [p] "=&r"(p), [ib] "=&r"(ib), [kh] "=&r"(kh),
      [kw] "=&r"(kw), [c] "=&r"(c){stretches}
    : [b] "r"(b), [r] "rm"(r), [d] "rm"(d){distances}
    : "memory", "cc", {clobbered});
}}
"""


def _at(plane: int | None, name: str, block: int, offset: int) -> str:
    """Return C text of the words to a pixel of some block of channels."""
    if plane is None:
        return f"{block} * ({name}_plane / 4) + {offset}"
    return str(block * plane + offset)


def _below(tile: Tile, name: str, pixel: int) -> str:
    """Return C text of the words to a pixel's row, which other words are added to."""
    return f"{name}_row / 4 + " if tile.is_below(pixel) else ""


def _portable(name: str, tile: Tile, level: Level) -> str:
    assert tile.words is Words.FLOAT, "low precision needs instructions of its own"
    lanes, pixels = level.lanes, len(tile.sources)
    out = [f"{_signature(name, tile)} {{", "  (void)r, (void)pf, (void)b;"]
    for j in range(tile.blocks):
        for t in range(pixels):
            start = f"v_load(b + {j * lanes})"
            out.append(f"  vf a{j}_{t} = {start}, s{j}_{t} = {{0}};")
    rows, columns = tile.taps
    for blocks, channels in ((tile.depth, tile.channels), (1 if tile.rest else 0, tile.rest)):
        if not blocks or not channels:
            continue
        plane = "plane / 4" if tile.source_plane is None else str(tile.source_plane)
        per = stretch_blocks(tile, blocks, channels)
        out.append(f"  for (int ib = 0; ib < {blocks}; ib++, s += {plane}) {{")
        if per < blocks:
            fold = " ".join(
                f"s{j}_{t} += a{j}_{t}; a{j}_{t} = (vf){{0}};"
                for j in range(tile.blocks)
                for t in range(pixels)
            )
            out.append(f"    if (ib && ib % {per} == 0) {{ {fold} }}")
        out.append(f"    for (int kh = 0; kh < {rows}; kh++)")
        out.append(f"      for (int kw = 0; kw < {columns}; kw++) {{")
        row = "(row / 4)" if tile.row_step is None else str(tile.row_step)
        out.append(f"        const float *p = s + kh * {row} + kw * {tile.column_step};")
        out.append(f"        for (int c = 0; c < {channels}; c++, w += {tile.blocks * lanes}) {{")
        for j in range(tile.blocks):
            out.append(f"          vf w{j} = v_load(w + {j * lanes});")
        for t in range(pixels):
            out.append(
                f"          float x{t} = p[c + {_below(tile, 'source', t)}{tile.sources[t]}];"
            )
            for j in range(tile.blocks):
                out.append(f"          a{j}_{t} += x{t} * w{j};")
        out.append("        }")
        out.append("      } }")
    for j in range(tile.blocks):
        for t in range(pixels):
            value = f"(s{j}_{t} + a{j}_{t})"
            if tile.residuals is not None:
                at = _at(tile.residual_plane, "residual", j, tile.residuals[t])
                value += f" + v_load(r + {_below(tile, 'residual', t)}{at})"
            if tile.activation.low is not None:
                value = f"v_max2(v_set1({float_text(tile.activation.low)}), {value})"
            if tile.activation.high is not None:
                value = f"v_min2(v_set1({float_text(tile.activation.high)}), {value})"
            at = _at(tile.target_plane, "target", j, tile.targets[t])
            out.append(f"  v_store(d + {_below(tile, 'target', t)}{at}, {value});")
    out.append("}\n")
    return "\n".join(out)
