"""The product of constant weights with a matrix whose number of rows is known only at run time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hagane.machine import Level
from hagane.native.kernels.kernel import Body
from hagane.native.tiles.contraction import Group
from hagane.native.tiles.register_code import tile_function
from hagane.native.tiles.tile import Tile, tile_pixels
from hagane.symbolic import Dim, ceildiv

# One task should take about this long, at this many operations a nanosecond.
_TASK_FLOPS = 12_000.0 * 100.0


def emit_rows(
    body: Body,
    tile: Tile,
    rows: Dim,
    columns: int,
    groups: Sequence[Group],
    level: Level,
    names: tuple[str, str, str, str, str],
    row_step: int,
    plane: Dim,
    chunks: Dim | None = None,
) -> Dim:
    """Write the loops of a product: rows in near-equal tiles, of any size up to the largest.

    Args:
        body: The kernel's body.
        tile: Depth, residual and activation; blocks and offsets are filled in here.
        rows: Rows of the matrix.
        columns: Columns of the result.
        groups: Groups of output channels.
        level: For which vector instructions.
        names: C pointers of source, weights, bias, residual and target.
        row_step: Floats from one row to the next.
        plane: Floats from one block of columns of a packed matrix to the next.
        chunks: Into how many tasks the rows are cut, if that is not left to the rules.

    Returns:
        The number of tasks.
    """
    source, weights, bias, residual, target = names
    lanes = level.lanes
    depth = tile.depth * tile.channels + tile.rest
    widest = max(group.blocks for group in groups)
    most = tile_pixels(level, widest)
    tiles = ceildiv(rows, most)
    each = max(1, round(_TASK_FLOPS / (2.0 * most * widest * lanes * depth)))
    chunks = ceildiv(tiles, each) if chunks is None else chunks
    table = ", ".join(f"{{{g.weights}, {g.first}, {g.blocks}}}" for g in groups)
    body.helper(f"static const int64_t KERNEL_columns[{len(groups)}][3] = {{{table}}};")
    n_chunks, n_tiles = body.size(chunks), body.size(tiles)
    body.add(
        f"const int64_t M = {body.size(rows)}, plane = {body.size(plane)} * 4; (void)plane;",
        f"int64_t g = q / {n_chunks}, chunk = q % {n_chunks};",
        "const int64_t *G = KERNEL_columns[g];",
        f"const float *w = {weights} + G[0], *b = {bias} + G[1] * {lanes};",
        f"for (int64_t t = chunk * {n_tiles} / {n_chunks}; t < (chunk + 1) * {n_tiles} / {n_chunks}; t++) {{",
        f"int64_t top = t * M / {n_tiles}, height = (t + 1) * M / {n_tiles} - top;",
        f"const float *s = {source} + top * {row_step};",
        f"const float *r = {residual} + top * {columns} + G[1] * {lanes};"
        if tile.residuals is not None
        else "const float *r = 0;",
        f"float *d = {target} + top * {columns} + G[1] * {lanes};",
    )
    last_argument = ", plane" if tile.source_plane is None else ""
    partial = columns % lanes
    last = sum(group.blocks for group in groups)
    for size in sorted({group.blocks for group in groups}):
        body.add(f"if (G[2] == {size}) {{")
        edges = partial and groups[-1].blocks == size
        if edges:
            body.add(
                f"if (G[1] + {size} == {last}) {{ float edge[{most * size * lanes}] __attribute__((aligned(64)));",
                "switch (height) {",
                *(
                    f"case {n}: {_call(body, tile, level, size, n, None, columns, row_step)}(s, w, b, r, edge, 0{last_argument}); break;"
                    for n in range(1, most + 1)
                ),
                f"}} for (int64_t i = 0; i < height; i++) memcpy(d + i * {columns}, edge + i * {size * lanes}, "
                f"{((size - 1) * lanes + partial) * 4}); }} else",
            )
        body.add(
            "switch (height) {",
            *(
                f"case {n}: {_call(body, tile, level, size, n, columns, columns, row_step)}(s, w, b, r, d, 0{last_argument}); break;"
                for n in range(1, most + 1)
            ),
            "}",
            "}",
        )
    body.add("}")
    return chunks * len(groups)


def _call(
    body: Body,
    tile: Tile,
    level: Level,
    size: int,
    rows: int,
    step: int | None,
    columns: int,
    row_step: int,
) -> str:
    """Return the name of the tile of some rows; without a step it writes rows side by side."""
    lanes = level.lanes
    name = f"KERNEL_{size}_{rows}{'' if step else '_edge'}"
    target = step or size * lanes
    made = replace(
        tile,
        blocks=size,
        sources=tuple(t * row_step for t in range(rows)),
        targets=tuple(t * target for t in range(rows)),
        residuals=None if tile.residuals is None else tuple(t * columns for t in range(rows)),
        target_plane=lanes,
        residual_plane=lanes,
    )
    body.helper(tile_function(name, made, level))
    return name
