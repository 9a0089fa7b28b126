"""Contractions on matrix tiles: 16 pixels by 16 channels, summed over 64 bytes at a time.

AMX multiplies a tile of 16 rows of inputs with a tile of 16 channels of weights (Intel 64 and
IA-32 Architectures Software Developer's Manual, volume 2, ``TDPBF16PS`` and ``TDPBUSD``). Two tiles
of each give four of results. The summed axis is cut into pieces whose weights stay in the nearest
cache while all rows of a task pass by: without that, both sides come from the second cache, which
feeds the multiplier at half its speed.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace

from hagane.native.kernels.expression import Expression
from hagane.native.kernels.kernel import Body, Work, work_of
from hagane.native.tiles.contraction import WIDE, Contraction, Group, Pixels
from hagane.native.tiles.matrix_code import LANES, ROWS
from hagane.native.tiles.matrix_loops import HIGH, emit_loops, plan_loops
from hagane.native.tiles.tile import Tile
from hagane.symbolic import Dim, ceildiv

# One task should take about this long, at this many operations a nanosecond.
_TASK_NS = 12_000.0
_FLOPS_PER_NS = 1_000.0
# Blocks of rows of an image from which on tasks are made of rows.
_MANY = 16
# So many blocks of an unknown number of rows share the fetching of later weights.
_AHEAD = 4


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
        tiles: Offset of each tile's first row, and the part of it that is kept.
    """

    rows: int
    step: int
    tiles: tuple[tuple[int, tuple[_Run, ...]], ...]


def cover(pixels: Pixels) -> _Cover:
    """Return the fewest tiles of rows a constant step apart that hold all pixels of an image.

    Tiles run on over borders and ends of rows, where that is nearer than a tile of their own:
    results there are computed and dropped. No tile reads past the last pixel.
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
    """Return the distance of neighbouring pixels in the target and in the residual."""
    if pixels.count == 1:
        return 0, 0
    added = pixels.residual(1) - pixels.residual(0) if pixels.residual else 0
    return pixels.target(1) - pixels.target(0), added


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
            f"b, r0 + R[3], d0 + R[2], left, s0 + {self.source(tile)} + R[0] * {self.step}, w0, plane); }}"
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
            f"hg_min({ROWS}, M - top), b, r0 + top * {self._residual}, d0 + top * {self._target}, left, "
            f"s0 + top * {self.step}, w0, plane); }}"
        )


def emit_tiles(
    body: Body,
    plan: Contraction,
    names: tuple[str, str, str, str, str],
    after: Expression | None = None,
) -> tuple[Dim, Work]:
    """Write the loops of a contraction of pairs, triples or quads; see ``emit_contraction``.

    ``after`` is a function of one tensor, computed on results before they are stored.
    """
    source, _, _, residual, target = names
    found = cover(plan.pixels)
    n_blocks = sum(group.blocks for group in plan.groups)
    words = plan.tile.words
    flops = 2.0 * plan.pixels.count * n_blocks * LANES * plan.depth() * words.each * words.products
    pairs = -(-len(found.tiles) // HIGH)
    weight_words = n_blocks * LANES * plan.depth()
    if words.pieces > 1:
        large = takes_rows(len(found.tiles))
    else:
        large = weight_words * 2 <= plan.source_floats
    by_group = len(plan.groups) > 1 and (
        not large if plan.order is None else plan.order == "groups"
    )
    loops = plan_loops(
        plan.tile, plan.groups, plan.width, pairs, padded=plan.padded, by_group=by_group
    )
    parts = -(-len(plan.groups) // loops.groups_of_task) if by_group else 1
    each = max(1, min(pairs, round(_TASK_NS * _FLOPS_PER_NS * pairs * parts / flops)))
    if words.pieces > 1:
        each = loops.panel  # weights are cut anew for each task
    chunks = -(-pairs // each)
    if words.pieces > 1 and not by_group:
        chunks = min(-(-chunks // plan.threads) * plan.threads, pairs)
    per_image = chunks * parts
    steps = _steps(plan.pixels)
    tiles = _Pixels(body, found)
    body.add(
        f"int64_t image = q / {per_image}, piece = q % {per_image};",
        f"{source} += image * {body.number(plan.source_image)}; "
        f"{target} += image * {body.number(plan.target_image)};",
        f"{residual} += image * {body.number(plan.residual_image)};"
        if plan.tile.residuals is not None
        else "",
        f"const int64_t n_tiles = {len(found.tiles)}, n_pairs = {pairs};",
        f"int64_t chunk = piece % {chunks}, g0 = piece / {chunks} * {loops.groups_of_task};"
        f"int64_t g1 = hg_min({len(plan.groups)}, g0 + {loops.groups_of_task});"
        if by_group
        else f"int64_t chunk = piece, g0 = 0, g1 = {len(plan.groups)};",
        f"int64_t c0 = chunk * n_pairs / {chunks}, c1 = (chunk + 1) * n_pairs / {chunks};",
    )
    if plan.float_plane is not None:
        spans = [(c * pairs // chunks, (c + 1) * pairs // chunks) for c in range(chunks)]
        span = _split_rows(body, plan, found, spans, source)
        loops = replace(loops, tile=replace(loops.tile, source_plane=span * LANES * words.pieces))
        names = ("near", *names[1:])
    planes = ("0", str(plan.tile.target_plane))
    ahead = -(-pairs // chunks) if by_group else 0
    emit_loops(body, loops, tiles, names, steps, planes, ahead, after)
    return per_image * plan.images, work_of(plan.images, flops / _FLOPS_PER_NS)


def takes_rows(tiles: int) -> bool:
    """Whether tasks of numbers in pieces are made of rows, all groups for some of the tiles."""
    return tiles >= 2 * _MANY


def _split_rows(
    body: Body, plan: Contraction, found: _Cover, tasks: Sequence[tuple[int, int]], source: str
) -> int:
    """Write the loop that splits a task's part of an image of floats; return pixels of a plane.

    Args:
        body: Has ``c0`` and ``c1``, and gets ``near``, which is where the image would begin.
        plan: The image's distances.
        found: The tiles.
        tasks: First and last block of rows of each task.
        source: The image's C pointer.
    """
    tile = plan.tile
    assert plan.float_plane is not None
    pixel = LANES * tile.words.pieces
    reach = (tile.taps[0] - 1) * tile.known[2] + (tile.taps[1] - 1) * tile.column_step
    reach = (reach + (found.rows - 1) * found.step) // pixel + 1
    tiles = [at // pixel for at, _ in found.tiles]
    lows = [min(tiles[first * HIGH : last * HIGH]) for first, last in tasks]
    counts = [
        max(tiles[first * HIGH : last * HIGH]) + reach - low
        for (first, last), low in zip(tasks, lows, strict=True)
    ]
    table = ", ".join(f"{{{low}, {count}}}" for low, count in zip(lows, counts, strict=True))
    body.helper(f"static const int32_t KERNEL_spans[{len(tasks)}][2] = {{{table}}};")
    span = max(counts)
    body.scratch = span * pixel * tile.depth * 4 + 64
    plane = plan.float_plane
    body.add(
        "float *near = (float *)(((uintptr_t)thread->scratch + 63) & ~(uintptr_t)63);",
        "{ const int64_t low = KERNEL_spans[chunk][0], count = KERNEL_spans[chunk][1];",
        f"for (int64_t block = 0; block < {tile.depth}; block++) {{",
        f"const int64_t left = {plan.float_channels} - block * {2 * LANES};",
        f"const __mmask16 first = hg_lanes(left), second = hg_lanes(left - {LANES});",
        f"const float *from = {source} + block * {2 * plane} + low * {LANES};",
        f"uint16_t *to = (uint16_t *)(near + block * {span * pixel});",
        f"for (int64_t i = 0; i < count; i++, from += {LANES}, to += {2 * pixel}) {{",
        "v_store_triples(to, v_load_kept(from, first));",
        f"v_store_triples(to + {LANES}, v_load_kept(from + {plane}, second)); }} }}",
        f"near -= low * {pixel}; }}",
    )
    return span


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
    chunks: Dim | None = None,
) -> Dim:
    """Write the loops of a product with any number of rows; see ``emit_rows``.

    ``target`` has the words between rows of the result, and between its blocks of columns.
    """
    pairs = ceildiv(rows, ROWS * HIGH)
    depth = tile.depth * tile.channels * tile.words.each * tile.words.products
    each = max(1, round(_TASK_NS * _FLOPS_PER_NS / (2.0 * ROWS * HIGH * WIDE * LANES * depth)))
    chunks = ceildiv(pairs, each) if chunks is None else chunks
    loops = plan_loops(tile, groups, columns, 1, padded=False, by_group=False)
    body.add(
        f"const int64_t M = {body.size(rows)}, n_tiles = (M + {ROWS - 1}) / {ROWS};",
        f"const int64_t n_pairs = {body.size(pairs)}, n_chunks = {body.size(chunks)};",
        "int64_t chunk = q % n_chunks, g0 = q / n_chunks, g1 = g0 + 1;",
        "int64_t c0 = chunk * n_pairs / n_chunks, c1 = (chunk + 1) * n_pairs / n_chunks;",
    )
    planes = (f"{body.size(plane)} * 4", body.size(target[1]))
    steps = (target[0], columns)
    ahead = _AHEAD if tile.words.pieces > 1 else 0
    emit_loops(body, loops, _Rows(row_step, steps), names, steps, planes, ahead, after)
    return chunks * len(groups)
