"""Contractions on matrix tiles: 16 pixels by 16 channels, summed over 64 bytes at a time.

AMX multiplies a tile of 16 rows of inputs with a tile of 16 channels of weights (Intel 64 and
IA-32 Architectures Software Developer's Manual, volume 2, ``TDPBF16PS`` and ``TDPBUSD``). Two tiles
of each give four of results. What is summed is cut into pieces whose weights stay in the nearest
cache while all rows of a task pass by: without that, both sides come from the second cache, which
feeds the multiplier at half its speed.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from hagane.native.amx_tiles import LANES, ROWS, TILE_FLOATS, finish_function, product_function
from hagane.native.expression import Expression
from hagane.native.tile import Tile
from hagane.symbolic import Dim, ceildiv

if TYPE_CHECKING:
    from hagane.native.contraction import Contraction, Group, Pixels
    from hagane.native.kernel import Body

# Channel blocks of one block of results, and its tiles of rows.
_WIDE = _HIGH = 2
# Multiplications of a block of results whose weights stay in the nearest cache: 16 KiB.
_STEPS = 8
# Blocks of results whose sums wait between two such pieces.
_PANEL = 4
# One task should take about this long, at this many operations a nanosecond.
_TASK_NS = 12_000.0
_FLOPS_PER_NS = 1_000.0


def group_sizes(n_blocks: int) -> list[int]:
    """Return how channel blocks are split into groups, for one block of results each."""
    return [_WIDE] * (n_blocks // _WIDE) + [1] * (n_blocks % _WIDE)


@dataclass(frozen=True, slots=True)
class _Run:
    """Neighbouring pixels of a tile: the first one's row, how many, and where they go."""

    row: int
    count: int
    target: int
    residual: int


@dataclass(frozen=True, slots=True)
class _Cover:
    """Tiles that hold every pixel of an image once.

    Attributes:
        rows: Rows of a tile.
        step: Words from one row of a tile to the next.
        tiles: Offset of each tile's first row, and what is kept of it.
    """

    rows: int
    step: int
    tiles: tuple[tuple[int, tuple[_Run, ...]], ...]


def cover(pixels: Pixels) -> _Cover:
    """Return the fewest tiles of rows a constant step apart that hold all pixels of an image.

    Tiles run on over borders and ends of rows, where that is nearer than a tile of their own:
    what lies there is computed and dropped. No tile reads past the last pixel.
    """
    sources = [pixels.source(i) for i in range(pixels.count)]
    step = min((b - a for a, b in itertools.pairwise(sources)), default=LANES)
    width = pixels.row or pixels.count
    if any((at - sources[0]) % step for at in sources):
        step = sources[1] - sources[0]
        rows = [range(y, y + width) for y in range(0, pixels.count, width)]
    else:
        rows = [range(pixels.count)]
    spans = [(sources[row[-1]] - sources[row[0]]) // step + 1 for row in rows]
    high = min(ROWS, min(spans))
    tiles: list[tuple[int, tuple[_Run, ...]]] = []
    for row, span in zip(rows, spans, strict=True):
        base, i = sources[row[0]], row[0]
        while i <= row[-1]:
            first = min((sources[i] - base) // step, span - high)
            end = i
            while end <= row[-1] and (sources[end] - base) // step < first + high:
                end += 1
            positions = [(sources[n] - base) // step - first for n in range(i, end)]
            tiles.append((base + first * step, tuple(_runs(pixels, i, positions))))
            i = end
    return _Cover(high, step, tuple(tiles))


def _runs(pixels: Pixels, first: int, positions: Sequence[int]) -> list[_Run]:
    """Return the runs of pixels, from ``first`` on, that lie at some rows of a tile."""
    target_step, residual_step = _steps(pixels)
    found: list[_Run] = []
    for i, row in enumerate(positions, first):
        target = pixels.target(i)
        residual = pixels.residual(i) if pixels.residual else 0
        last = found[-1] if found else None
        if (
            last is not None
            and row == last.row + last.count
            and target == last.target + last.count * target_step
            and residual == last.residual + last.count * residual_step
        ):
            found[-1] = _Run(last.row, last.count + 1, last.target, last.residual)
        else:
            found.append(_Run(row, 1, target, residual))
    return found


def _steps(pixels: Pixels) -> tuple[int, int]:
    """Return the distance of neighbouring pixels in the target and in what is added."""
    if pixels.count == 1:
        return 0, 0
    added = pixels.residual(1) - pixels.residual(0) if pixels.residual else 0
    return pixels.target(1) - pixels.target(0), added


class _Tiles(Protocol):
    """What the loops ask of the rows that they go over, as C text."""

    step: int
    rows: str

    def source(self, tile: str) -> str:
        """Return the words from the source's start to a tile's first row."""

    def finish(self, tile: str, sums: str, wide: int) -> str:
        """Return the statement that stores a tile's results."""


class _Pixels:
    """Tiles of an image, from a table."""

    def __init__(self, body: Body, found: _Cover):
        self.step, self.rows = found.step, str(found.rows)
        runs = [run for _, own in found.tiles for run in own]
        table: list[str] = []
        at = 0
        for source, own in found.tiles:
            table.append(f"{{{source}, {at}, {at + len(own)}}}")
            at += len(own)
        rows = ", ".join(f"{{{r.row}, {r.count}, {r.target}, {r.residual}}}" for r in runs)
        body.helper(f"static const int32_t KERNEL_tiles[{len(table)}][3] = {{{', '.join(table)}}};")
        body.helper(f"static const int32_t KERNEL_runs[{len(runs)}][4] = {{{rows}}};")

    def source(self, tile: str) -> str:
        return f"KERNEL_tiles[{tile}][0]"

    def finish(self, tile: str, sums: str, wide: int) -> str:
        return (
            f"for (int64_t i = KERNEL_tiles[{tile}][1]; i < KERNEL_tiles[{tile}][2]; i++) {{ "
            f"const int32_t *R = KERNEL_runs[i]; KERNEL_finish{wide}({sums} + R[0] * {LANES}, R[1], "
            "b, r0 + R[3], d0 + R[2], last); }"
        )


class _Rows:
    """Tiles of a matrix whose number of rows, ``M``, is known at run time."""

    rows = f"hg_min({ROWS}, M)"

    def __init__(self, step: int, results: tuple[int, int]):
        self.step, (self._target, self._residual) = step, results

    def source(self, tile: str) -> str:
        return f"hg_max(0, hg_min({tile} * {ROWS}, M - {ROWS})) * {self.step}"

    def finish(self, tile: str, sums: str, wide: int) -> str:
        top, first = f"{tile} * {ROWS}", f"hg_max(0, hg_min({tile} * {ROWS}, M - {ROWS}))"
        return (
            f"{{ int64_t top = {top}, row = top - {first}; KERNEL_finish{wide}({sums} + row * {LANES}, "
            f"hg_min({ROWS}, M - top), b, r0 + top * {self._residual}, d0 + top * {self._target}, last); }}"
        )


@dataclass(frozen=True, slots=True)
class _Loops:
    """What is fixed about the loops of one kernel."""

    tile: Tile
    groups: Sequence[Group]
    wide: tuple[int, ...]  # blocks of groups, each once
    blocks_of_piece: int
    pieces: int
    partial: int


def _plan_loops(tile: Tile, groups: Sequence[Group], partial: int) -> _Loops:
    assert tile.rest == 0
    assert tile.channels == LANES
    taps = tile.taps[0] * tile.taps[1]
    per = tile.depth if tile.depth * taps <= _STEPS * 3 // 2 else max(1, round(_STEPS / taps))
    wide = tuple(sorted({group.blocks for group in groups}))
    return _Loops(tile, groups, wide, per, -(-tile.depth // per), partial)


def emit_tiles(
    body: Body,
    plan: Contraction,
    names: tuple[str, str, str, str, str],
    after: Expression | None = None,
) -> tuple[int, float]:
    """Write the loops of a contraction of pairs or quads; see ``emit_contraction``.

    ``after`` is a function of one tensor, computed on results before they are stored.
    """
    source, _, _, residual, target = names
    found = cover(plan.pixels)
    n_blocks = sum(group.blocks for group in plan.groups)
    flops = 2.0 * plan.pixels.count * n_blocks * LANES * plan.depth() * plan.tile.words.each
    pairs = -(-len(found.tiles) // _HIGH)
    weight_words = n_blocks * LANES * plan.depth()
    by_group = len(plan.groups) > 1 and (
        weight_words * 2 > plan.source_floats if plan.order is None else plan.order == "groups"
    )
    of_piece = flops / (len(plan.groups) if by_group else 1)
    chunks = -(-pairs // max(1, min(pairs, round(_TASK_NS * _FLOPS_PER_NS * pairs / of_piece))))
    per_image = chunks * (len(plan.groups) if by_group else 1)
    steps = _steps(plan.pixels)
    loops = _plan_loops(plan.tile, plan.groups, plan.target_width % LANES)
    tiles = _Pixels(body, found)
    body.add(
        f"int64_t image = q / {per_image}, piece = q % {per_image};",
        f"{source} += image * {plan.source_image}; {target} += image * {plan.target_image};",
        f"{residual} += image * {plan.residual_image};" if plan.tile.residuals is not None else "",
        f"const int64_t n_tiles = {len(found.tiles)}, n_pairs = {pairs};",
        f"int64_t chunk = piece % {chunks}, g0 = piece / {chunks}, g1 = g0 + 1;"
        if by_group
        else f"int64_t chunk = piece, g0 = 0, g1 = {len(plan.groups)};",
        f"int64_t c0 = chunk * n_pairs / {chunks}, c1 = (chunk + 1) * n_pairs / {chunks};",
    )
    planes = ("0", str(plan.tile.target_plane))
    ahead = -(-pairs // chunks) if by_group else 0
    _emit_loops(body, loops, tiles, names, steps, planes, ahead, after)
    return per_image * plan.images, flops * plan.images / _FLOPS_PER_NS


def emit_tile_rows(
    body: Body,
    tile: Tile,
    rows: Dim,
    columns: int,
    groups: Sequence[Group],
    names: tuple[str, str, str, str, str],
    row_step: int,
    plane: Dim,
    target: tuple[int, Dim],
    after: Expression | None = None,
) -> Dim:
    """Write the loops of a product with any number of rows; see ``emit_rows``.

    ``target`` has the words between rows of the result, and between its blocks of columns.
    """
    pairs = ceildiv(rows, ROWS * _HIGH)
    depth = tile.depth * tile.channels * tile.words.each
    each = max(1, round(_TASK_NS * _FLOPS_PER_NS / (2.0 * ROWS * _HIGH * _WIDE * LANES * depth)))
    chunks = ceildiv(pairs, each)
    loops = _plan_loops(tile, groups, columns % LANES)
    body.add(
        f"const int64_t M = {body.size(rows)}, n_tiles = (M + {ROWS - 1}) / {ROWS};",
        f"const int64_t n_pairs = {body.size(pairs)}, n_chunks = {body.size(chunks)};",
        "int64_t chunk = q % n_chunks, g0 = q / n_chunks, g1 = g0 + 1;",
        "int64_t c0 = chunk * n_pairs / n_chunks, c1 = (chunk + 1) * n_pairs / n_chunks;",
    )
    planes = (f"{body.size(plane)} * 4", body.size(target[1]))
    steps = (target[0], columns)
    _emit_loops(body, loops, _Rows(row_step, steps), names, steps, planes, 0, after)
    return chunks * len(groups)


def _emit_loops(
    body: Body,
    loops: _Loops,
    tiles: _Tiles,
    names: tuple[str, str, str, str, str],
    steps: tuple[int, int],
    planes: tuple[str, str],
    pairs_of_task: int,
    after: Expression | None,
) -> None:
    """Write the loops over groups, panels, pieces of the sum and blocks of results.

    Args:
        body: The kernel's body; it has ``c0`` and ``c1``, ``g0`` and ``g1``, ``n_tiles``.
        loops: What is summed.
        tiles: Over which rows.
        names: C pointers of source, weights, bias, residual and target.
        steps: Words between neighbouring pixels in the target, and in what is added.
        planes: Bytes between blocks of inputs, where they are known only at run time, and words
            between blocks of the target.
        pairs_of_task: Blocks of results of a group and task that is followed by the next group's
            task, whose weights are then fetched ahead; or 0.
        after: Computed on results.
    """
    source, weights, bias, residual, target = names
    tile, per = loops.tile, loops.blocks_of_piece
    taps = tile.taps[0] * tile.taps[1]
    total = sum(group.blocks for group in loops.groups)
    last = loops.partial or LANES
    for wide in loops.wide:
        lines = -(-wide * LANES // pairs_of_task) if pairs_of_task else 0
        for high in range(1, _HIGH + 1):
            name = f"KERNEL_product{high}{wide}"
            body.helper(product_function(name, high, wide, tile, tiles.step * 4, lines))
        body.helper(
            finish_function(f"KERNEL_finish{wide}", wide, tile, steps, loops.partial != 0, after)
        )
    source_plane = "plane / 4" if tile.source_plane is None else str(tile.source_plane)
    table = ", ".join(f"{{{g.weights}, {g.first}, {g.blocks}, {g.source}}}" for g in loops.groups)
    body.helper(f"static const int64_t KERNEL_groups[{len(loops.groups)}][4] = {{{table}}};")
    n_panel = _PANEL if loops.pieces > 1 else 1
    body.add(
        f"float sums[{n_panel * _HIGH * max(loops.wide) * TILE_FLOATS}] __attribute__((aligned(64)));",
        f"const int64_t plane = {planes[0]}; (void)plane;",
        f"hg_tiles_begin({tiles.rows});",
        "for (int64_t g = g0; g < g1; g++) {",
        "const int64_t *G = KERNEL_groups[g];",
        f"const float *w0 = {weights} + G[0], *b = {bias} + G[1] * {LANES}, *s0 = {source} + G[3];",
        f"float *d0 = {target} + {_place('G[1]', planes[1], tile.target_parts, tile.part)};",
        "const float *r0 = 0;"
        if tile.residuals is None
        else f"const float *r0 = {residual} + "
        f"{_place('G[1]', str(tile.residual_plane), tile.residual_parts, tile.residual_part)};",
        f"int64_t last = G[1] + G[2] == {total} ? {last} : {LANES}; (void)last;",
    )
    for wide in loops.wide:
        step = wide * TILE_FLOATS
        words = step * taps  # of one block of inputs
        body.add(
            f"if (G[2] == {wide}) {{ const float *pf = w0 + {tile.depth * words};",
            f"for (int64_t top = c0; top < c1; top += {n_panel})",
            f"for (int64_t k = 0; k < {tile.depth}; k += {per}) {{",
            f"const float *w = w0 + k * {words}; int64_t blocks = hg_min({per}, {tile.depth} - k);",
            f"for (int64_t at = top; at < hg_min(c1, top + {n_panel}); at++) {{",
            f"float *c = sums + (at - top) * {_HIGH * step}; int64_t t = at * {_HIGH};",
            f"const float *p = s0 + k * {source_plane}, *p0 = p + {tiles.source('t')};",
            f"if (t + 1 < n_tiles) {{ const float *p1 = p + {tiles.source('(t + 1)')};",
            f"pf = KERNEL_product2{wide}(p0, p1, w, c, pf, blocks, k, plane); }}",
            f"else pf = KERNEL_product1{wide}(p0, p0, w, c, pf, blocks, k, plane);",
            f"if (k + {per} >= {tile.depth}) {{ {tiles.finish('t', 'c', wide)}",
            f"if (t + 1 < n_tiles) {tiles.finish('(t + 1)', f'(c + {step})', wide)} }}",
            "} } }",
        )
    body.add("}", "hg_tiles_end();")


def _place(block: str, plane: str, parts: int, part: int) -> str:
    """Return C text of the words from the first channel block to another one."""
    if parts == 1:
        return f"{block} * {plane}"
    return f"({block} / {parts} * {plane} + {block} % {parts} * {part})"
