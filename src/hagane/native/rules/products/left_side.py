"""The left side of a product of computed matrices: rows in the order in which panels read them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import onnx_ir as ir

from hagane.native.kernels.expression import FLOAT32
from hagane.native.kernels.kernel import Body, work_of
from hagane.native.kernels.names import sizes
from hagane.native.kernels.tensor import Tensor
from hagane.native.rules.products.sides import side, words_of
from hagane.symbolic import Dim, ceildiv, maximum, product

if TYPE_CHECKING:
    from hagane.native.lowering.state import Lowering

# So much of the inner size is summed at once: a tile's rows stay in the first cache, and the columns
# of a task in the second.
DEPTH = 256
# So many rows of the memory ahead are fetched.
_FETCHED = 4
# Tiles of rows that one task packs ahead.
_TILES_AHEAD = 8


def turn_function(name: str, lanes: int) -> str:
    """Return a C function that writes a square of at most ``VL`` rows and columns as columns.

    ``name(s, step, rows, count, d, to)`` reads ``rows`` rows of ``count`` floats, ``step`` apart, and
    writes ``count`` rows of ``VL`` floats, ``to`` apart, in order; missing rows are zeros.
    """
    lines = [
        f"SHARED void {name}(const float *s, int64_t step, int64_t rows, int64_t count, float *d, "
        "int64_t to) {",
        "const vf none = {0};",
        "vf " + ", ".join(f"r{i}" for i in range(lanes)) + ", t;",
        f"if (rows >= {lanes} && count >= {lanes}) {{",
        *(f"r{i} = v_load(s + {i} * step);" for i in range(lanes)),
        "} else {",
        *(
            f"r{i} = rows > {i} ? v_load_n(s + {i} * step, hg_min(count, VL)) : none;"
            for i in range(lanes)
        ),
        "}",
    ]
    apart = lanes // 2
    while apart:
        low = [i if not i & apart else lanes + i - apart for i in range(lanes)]
        high = [i + apart if not i & apart else lanes + i for i in range(lanes)]
        for i in range(lanes):
            if not i & apart:
                one, other = f"r{i}", f"r{i + apart}"
                lines += [
                    f"t = HG_SHUFFLE({one}, {other}, {', '.join(map(str, low))});",
                    f"{other} = HG_SHUFFLE({one}, {other}, {', '.join(map(str, high))});",
                    f"{one} = t;",
                ]
        apart //= 2
    lines += [f"if (count > {i}) v_store(d + {i} * to, r{i});" for i in range(lanes)]
    return "\n".join([*lines, "}\n"])


def pack_left(body: Body, rows: int, lanes: int, a: Tensor) -> None:
    """Write the packing of ``m`` rows from ``top``, missing ones of ``height`` as zeros."""
    read, row = side(body, a, -1), body.size(a.strides[-2])
    at = read.start("k")
    one = f"left[k * height + t] = t < m ? {read.word(f'from + t * {row} + {at}', 'k0 + k')} : 0;"
    each = f"for (int64_t k = 0; k < kc; k++) for (int64_t t = 0; t < height; t++) {one}"
    body.add(
        f"const {read.kind} *from = a0 + top * {row} + {read.start('k0')};",
        "if (height == 1) for (int64_t k = 0; k < kc; k++)",
        f"left[k] = {read.word(f'from + {at}', 'k0 + k')};",
    )
    if a.strides[-1] == 1 and rows <= lanes:
        # Rows of VL words, of which the next one covers the end.
        body.add(
            f"else if ({read.in_order(row)}) for (int64_t k = 0; k < kc; k += VL)",
            f"KERNEL_turn({read.words('from')} + k, {read.step(row)}, m, kc - k, "
            "left + k * height, height);",
        )
        if not read.pairs:
            return
    elif a.strides[-2] == 1 and rows <= lanes:
        body.add(
            "else for (int64_t k = 0; k < kc; k++)",
            f"v_store(left + k * height, {read.vector(f'from + {at}', 'k0 + k', 'm')});",
        )
        return
    body.add(f"else {each}")


@dataclass(frozen=True, slots=True)
class Ahead:
    """The left side packed by a kernel of its own: blocks of the inner size, tiles, panels.

    Attributes:
        tensor: The memory.
        spare: Floats behind each panel, over which its last row is stored.
    """

    tensor: Tensor
    spare: int

    def panel(self, base: str, tile: str, tiles: str, height: str) -> str:
        """Return C text of where a tile's panel of the block from ``k0`` on begins."""
        before = f"{tiles} * (k0 * {height} + k0 / {DEPTH} * {self.spare})"
        return f"{base} + {before} + {tile} * (kc * {height} + {self.spare})"


def pack_ahead(
    low: Lowering, node: ir.Node, a: Tensor, rows: int, tiles: Dim, height: Dim
) -> Ahead:
    """Write the kernel that packs all rows of a left side."""
    lanes = low.facts.level.lanes
    m, k = a.shape[0], words_of(a.shape[1], a.dtype)
    blocks = maximum(1, ceildiv(k, DEPTH))
    size = tiles * (k * height + blocks * lanes)
    made = Ahead(low.recorder.new(f"{node.name} rows", FLOAT32, (size,)), lanes)
    parts = ceildiv(tiles, _TILES_AHEAD)
    body = Body()
    body.shared(partial(turn_function, lanes=lanes), "KERNEL_turn")
    s, d = body.pointer(a), body.pointer(made.tensor, written=True)
    read = side(body, a, -1)
    body.add(
        f"const int64_t depth = {body.size(a.shape[1])}; (void)depth;",
        f"const int64_t K = {body.size(k)}, M = {body.size(m)};",
        f"const int64_t height = {body.size(height)}, tiles = {body.size(tiles)};",
        f"const int64_t first = q % {body.size(parts)} * {_TILES_AHEAD};",
        f"const int64_t last = hg_min(tiles, first + {_TILES_AHEAD});",
        f"const int64_t k0 = q / {body.size(parts)} * {DEPTH}, kc = hg_min({DEPTH}, K - k0);",
        f"const {read.kind} *a0 = {s}; float *to = {made.panel(d, 'first', 'tiles', 'height')};",
        f"const int64_t apart = kc * height + {lanes};",
    )
    if a.strides[-2] == 1 and rows <= lanes:
        # Neighbouring tiles together read whole lines of memory.
        body.add(
            "for (int64_t k = 0; k < kc; k++) {",
            f"const {read.kind} *from = a0 + {read.start('k0 + k')} + first * height;",
            "for (int64_t c = 0; c < (last - first) * height; c += 16) "
            f"__builtin_prefetch(from + {_FETCHED} * {read.inner} + c);",
            "float *left = to + k * height; int64_t tile = first, rest = M - first * height;",
            "for (; tile < last && rest >= height + VL; tile++, rest -= height) {",
            f"v_store(left, {read.vector('from', 'k0 + k')}); from += height; left += apart; }}",
            "for (; tile < last; tile++, rest -= height) {",
            f"v_store(left, {read.vector('from', 'k0 + k', 'hg_min(height, rest)')});",
            "from += height; left += apart; }",
            "}",
        )
    else:
        body.add(
            "for (int64_t tile = first; tile < last; tile++) {",
            "const int64_t top = tile * height, m = hg_min(height, M - top);",
            "float *left = to + (tile - first) * apart;",
        )
        pack_left(body, rows, lanes, a)
        body.add("}")
    work = work_of(product((m, k)), 0.5)
    low.recorder.emit(node, body, parts * blocks, work=work, name=f"pack_rows_{sizes((m, k))}")
    return made
