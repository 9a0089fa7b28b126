"""Loops around the register tile: which thread computes which channels of which pixels.

If the weights are large beside the images, a task is one group of channels and some pixels, so that
each thread reads its share of the weights once; else a task is some pixels and all groups, so that
the pixels stay in the thread's own cache.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from hagane.machine import Level
from hagane.native.kernels.expression import Expression
from hagane.native.kernels.kernel import Body, Work, work_of
from hagane.native.tiles.contraction import MOST_LISTED, Band, Contraction, Pixels, Tiling
from hagane.native.tiles.matrix import emit_tiles
from hagane.native.tiles.register_code import tile_function
from hagane.native.tiles.tile import tile_pixels, uses_tiles
from hagane.symbolic import Dim

# One task should take about this long, at this many operations a nanosecond.
_TASK_NS = 12_000.0
_FLOPS_PER_NS = 100.0


def emit_contraction(
    body: Body,
    plan: Contraction,
    level: Level,
    names: tuple[str, str, str, str, str],
    after: Expression | None = None,
) -> tuple[Dim, Work]:
    """Write the loops of a contraction into ``body``.

    Args:
        body: The kernel's body.
        plan: The tiles to compute.
        level: For which vector instructions.
        names: C pointers of source, weights, bias, residual and target.
        after: Computed on results before they are stored, where they come from matrix tiles.

    Returns:
        The number of tasks, and the estimated nanoseconds of one thread.
    """
    if uses_tiles(level, plan.tile.words):
        return emit_tiles(body, plan, names, after)
    assert after is None, "vectors of floats do without"
    source, weights, bias, residual, target = names
    lanes = level.lanes
    n_blocks = sum(group.blocks for group in plan.groups)
    bands = 1 if plan.band is None else plan.band.pool.height
    flops = 2.0 * plan.pixels.count * bands * n_blocks * lanes * plan.depth()
    per_size = {
        size: Tiling.of(plan.pixels, tile_pixels(level, size))
        for size in {group.blocks for group in plan.groups}
    }
    n_tiles = max(map(len, per_size.values()))
    weight_floats = n_blocks * lanes * plan.depth()
    target_floats = n_blocks * lanes * plan.pixels.count * bands
    by_group = len(plan.groups) > 1 and (
        weight_floats * 2 > max(plan.source_floats, target_floats)
        if plan.order is None
        else plan.order == "groups"
    )
    flops_of_piece = flops / (len(plan.groups) if by_group else 1)
    tiles_of_task = max(1, min(n_tiles, round(_TASK_NS * _FLOPS_PER_NS * n_tiles / flops_of_piece)))
    chunks = -(-n_tiles // tiles_of_task) if plan.band is None else bands
    per_image = chunks * (len(plan.groups) if by_group else 1)

    table = ", ".join(
        f"{{{group.weights}, {group.first}, {group.blocks}, {group.source}}}"
        for group in plan.groups
    )
    body.helper(f"static const int64_t KERNEL_groups[{len(plan.groups)}][4] = {{{table}}};")
    body.add(f"int64_t image = q / {per_image}, piece = q % {per_image};")
    body.add(
        f"{source} += image * {body.number(plan.source_image)};",
        f"{target} += image * {body.number(plan.target_image)};",
    )
    if plan.tile.residuals is not None:
        body.add(f"{residual} += image * {body.number(plan.residual_image)};")
    if by_group:
        body.add(f"int64_t chunk = piece % {chunks}, g = piece / {chunks};", "{")
    else:
        body.add("int64_t chunk = piece;", f"for (int64_t g = 0; g < {len(plan.groups)}; g++) {{")
    place = f"{target} + G[1] * {plan.tile.target_plane}"
    if plan.band is not None:
        place = "(float *)(((uintptr_t)thread->scratch + 63) & ~(uintptr_t)63)"
        body.scratch = max(per_size) * plan.pixels.count * lanes * 4 + 64
    body.add(
        "const int64_t *G = KERNEL_groups[g];",
        f"const float *w = {weights} + G[0], *b = {bias} + G[1] * {lanes};",
        f"const float *s0 = {source} + G[3];",
        f"float *d0 = {place};",
    )
    if plan.tile.residuals is not None:
        body.add(f"const float *r0 = {residual} + G[1] * {plan.tile.residual_plane};")
    else:
        body.add("const float *r0 = 0;")
    partial = 0 if plan.padded else plan.width % lanes
    for size, tiling in sorted(per_size.items(), key=lambda item: item[0]):
        body.add(f"if (G[2] == {size}) {{")
        if plan.band is None:
            _emit_tiles(body, plan, level, size, tiling, chunks, by_group, partial)
        else:
            body.add(f"s0 += chunk * {plan.band.source};", "const int64_t band = chunk;")
            body.add("{ const int64_t chunk = 0;")
            _emit_tiles(body, plan, level, size, tiling, 1, False, partial)
            body.add("}", *_pooling(plan, plan.band, size, lanes, target))
        body.add("}")
    body.add("}")
    return per_image * plan.images, work_of(plan.images, flops / _FLOPS_PER_NS)


def _pooling(plan: Contraction, band: Band, blocks: int, lanes: int, target: str) -> list[str]:
    """Return the loops that pool a band of some blocks of channels."""
    pool, row = band.pool, band.pool.width * band.pool.columns
    places = [
        f"v_load(p + {(y * row + x) * lanes})"
        for y in range(pool.rows)
        for x in range(pool.columns)
    ]
    return [
        f"for (int64_t j = 0; j < {blocks}; j++) {{",
        f"const float *p = d0 + j * {plan.tile.target_plane};",
        f"float *d = {target} + (G[1] + j) * {band.plane} + band * {band.target};",
        f"for (int64_t x = 0; x < {pool.width}; x++, p += {pool.columns * lanes}, d += {lanes})",
        f"v_store(d, {pool.reduced(places)}); }}",
    ]


def _offsets(offset: Callable[[int], int], start: int, count: int) -> tuple[int, tuple[int, ...]]:
    """Return the place of a tile's first pixel, and of each by it."""
    places = [offset(i) for i in range(start, start + count)]
    return places[0], tuple([place - places[0] for place in places])


def _emit_tiles(
    body: Body,
    plan: Contraction,
    level: Level,
    size: int,
    tiling: Tiling,
    chunks: int,
    by_group: bool,
    partial: int,
) -> None:
    pixels, lanes = plan.pixels, level.lanes
    whole_channels = plan.tile.channels == lanes
    lines = -(-lanes * lanes * size * 4 // 64 // len(tiling)) if by_group and whole_channels else 0
    blocks_and_taps = plan.tile.depth * plan.tile.taps[0] * plan.tile.taps[1]
    # Tiles whose pixels lie alike are one function.
    kinds: dict[tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...] | None], int] = {}
    rows: list[tuple[int, int, int, int]] = []
    listed = len(tiling) <= MOST_LISTED
    for number in range(len(tiling)) if listed else (0, tiling.each - 1):
        start, count = tiling[number]
        source, sources = _offsets(pixels.source, start, count)
        target, targets = _offsets(pixels.target, start, count)
        residual, residuals = (
            (0, None) if pixels.residual is None else _offsets(pixels.residual, start, count)
        )
        kind = kinds.setdefault((sources, targets, residuals), len(kinds))
        rows.append((source, target, residual, kind))
    calls: list[str] = []
    for (sources, targets, residuals), index in kinds.items():
        tile = replace(
            plan.tile,
            blocks=size,
            sources=sources,
            targets=targets,
            residuals=residuals,
            prefetch=lines,
        )
        name = f"KERNEL_tile{size}x{len(tile.sources)}_{index}"
        body.helper(tile_function(name, tile, level))
        call = f"{name}(s, w, b, r, d, pf);"
        if partial:
            edge = replace(
                tile,
                targets=tuple(t * size * lanes for t in range(len(tile.targets))),
                target_plane=lanes,
            )
            body.helper(tile_function(f"{name}_edge", edge, level))
            width = (size - 1) * lanes + partial
            copy = " ".join(
                f"memcpy(d + {at}, edge + {t * size * lanes}, {width * 4});"
                for t, at in enumerate(tile.targets)
            )
            last = sum(group.blocks for group in plan.groups)
            call = (
                f"if (G[1] + {size} == {last}) {{ "
                f"float edge[{len(tile.targets) * size * lanes}] __attribute__((aligned(64))); "
                f"{name}_edge(s, w, b, r, edge, pf); {copy} }} else {call}"
            )
        calls.append(f"if (kind == {index}) {{ {call} }}" if len(kinds) > 1 else f"{{ {call} }}")
    n = len(tiling)
    if listed:
        table = ", ".join(f"{{{', '.join(map(str, row))}}}" for row in rows)
        body.helper(f"static const int64_t KERNEL_tiles{size}[{n}][4] = {{{table}}};")
    step = lines * 16 * blocks_and_taps
    body.add(
        f"int64_t t0 = chunk * {n} / {chunks}, t1 = (chunk + 1) * {n} / {chunks};",
        f"const float *pf = w + {plan.depth() * size * lanes} + t0 * {step};",
        f"for (int64_t t = t0; t < t1; t++, pf += {step}) {{",
        *(_listed(size) if listed else _computed(plan.pixels, tiling, len(kinds))),
        " else ".join(calls),
        "}",
    )


def _listed(size: int) -> list[str]:
    """Return the C text of a tile's place and kind, which stand in a table."""
    return [
        f"const int64_t *T = KERNEL_tiles{size}[t], kind = T[3]; (void)kind;",
        "const float *s = s0 + T[0], *r = r0 + T[2];",
        "float *d = d0 + T[1];",
    ]


def _computed(pixels: Pixels, tiling: Tiling, kinds: int) -> list[str]:
    """Return the C text of the place and kind of a tile of an image that has many."""

    def place(offset: Callable[[int], int] | None) -> str:
        if offset is None:
            return "0"
        first = offset(0)
        row = offset(tiling.row) - first if tiling.rows > 1 else 0
        pixel = offset(1) - first if tiling.row > 1 else 0
        return f"{first} + y * {row} + i * {pixel}"

    return [
        f"const int64_t y = t / {tiling.each}, x = t % {tiling.each};",
        f"const int64_t i = x * {tiling.length} + hg_min(x, {tiling.longer});",
        f"const int64_t kind = x < {tiling.longer if kinds > 1 else tiling.each} ? 0 : 1;",
        "(void)y; (void)kind;",
        f"const float *s = s0 + {place(pixels.source)}, *r = r0 + {place(pixels.residual)};",
        f"float *d = d0 + {place(pixels.target)};",
    ]
