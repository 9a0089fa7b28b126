"""The loops around blocks of results in matrix tiles.

The summed axis is cut into stretches whose weights stay in the nearest cache while all rows of a
task pass by: without that, both sides come from the second cache, which feeds the multiplier at
half its speed. Weights of float32 are cut into pieces of bfloat16 at the beginning of a stretch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from hagane.native.kernels.expression import Expression
from hagane.native.kernels.kernel import Body
from hagane.native.tiles.contraction import Group
from hagane.native.tiles.matrix_code import (
    LANES,
    ROWS,
    TILE_FLOATS,
    finish_function,
    product_function,
)
from hagane.native.tiles.tile import Tile

# Tiles of rows of one block of results.
HIGH = 2
# Multiplications of a block of results whose weights stay in the nearest cache: 16 KiB, or 24 KiB of
# numbers in three pieces.
_STEPS = {1: 8, 3: 4}
# Blocks of results whose sums wait between two such stretches.
PANEL = {1: 4, 3: 16}
# Bytes of inputs that should stay in the second cache while groups of channels pass by, and how many
# groups do.
_NEAR = 1 << 20
_GROUPS = 6


class Tiles(Protocol):
    """The loops' view of the rows that they go over, as C text."""

    step: int
    rows: str

    def source(self, tile: str) -> str:
        """Return the words from the source's start to a tile's first row."""

    def finish(self, tile: str, sums: str, wide: int) -> str:
        """Return the statement that stores a tile's results."""


@dataclass(frozen=True, slots=True)
class Loops:
    """The fixed facts of the loops of one kernel.

    Attributes:
        tile: The sums.
        groups: Groups of output channels.
        stretch: Blocks of inputs that are summed at once.
        chunk: Blocks of inputs that are summed for all groups of a task before others are.
        panel: Blocks of rows that a stretch of weights is read for.
        groups_of_task: At most so many groups make a task, where tasks are made of groups.
        width: Output channels that exist; blocks may hold some more.
        padded: Whether results are stored for all channels of all blocks.
    """

    tile: Tile
    groups: Sequence[Group]
    stretch: int
    chunk: int
    panel: int
    groups_of_task: int
    width: int
    padded: bool

    @property
    def wide(self) -> tuple[int, ...]:
        """The blocks of groups, each once."""
        return tuple(sorted({group.blocks for group in self.groups}))

    @property
    def taps(self) -> int:
        """Taps of the filter."""
        return self.tile.taps[0] * self.tile.taps[1]


def plan_loops(
    tile: Tile, groups: Sequence[Group], width: int, pairs: int, *, padded: bool, by_group: bool
) -> Loops:
    """Return the loops over ``pairs`` blocks of rows, or more, of which tasks take some.

    ``by_group`` is set where a task has some groups only; ``Loops`` tells of the others.
    """
    assert tile.rest == 0
    assert tile.channels == LANES
    taps, pieces, depth = tile.taps[0] * tile.taps[1], tile.words.pieces, tile.depth
    steps = _STEPS[pieces]
    if pieces == 1:
        stretch = depth if depth * taps <= steps * 3 // 2 else max(1, round(steps / taps))
    else:
        stretch = -(-depth // -(-depth * taps // steps))
    panel, chunk, together = PANEL[pieces], depth, 1
    if pieces == 1:
        return Loops(tile, groups, stretch, chunk, panel, together, width, padded)
    block = HIGH * ROWS * LANES * 4 * pieces
    if by_group and min(panel, pairs) * block * depth > _NEAR:
        panel = panel // 2
        chunk = max(1, _NEAR // (min(panel, pairs) * block * stretch)) * stretch
        chunk = min(chunk, depth)
        together = max(1, min(_GROUPS, len(groups) // 4)) if chunk < depth else 1
    elif not by_group:
        panel = max(4, min(panel, _NEAR // (block * depth)))
    return Loops(tile, groups, stretch, chunk, panel, together, width, padded)


def emit_loops(
    body: Body,
    loops: Loops,
    tiles: Tiles,
    names: tuple[str, str, str, str, str],
    steps: tuple[int, int],
    planes: tuple[str, str],
    pairs_of_task: int,
    after: Expression | None,
) -> None:
    """Write the loops over groups, panels, stretches of the sum and blocks of results.

    Args:
        body: The kernel's body; it has ``c0`` and ``c1``, ``g0`` and ``g1``, ``n_tiles``.
        loops: The sums.
        tiles: Over which rows.
        names: C pointers of source, weights, bias, residual and target.
        steps: Words between neighbouring pixels in the target, and in the residual.
        planes: Bytes between blocks of inputs, where they are known only at run time, and words
            between blocks of the target.
        pairs_of_task: Blocks of results of a group and task that is followed by the next group's
            task, whose weights are then fetched ahead; or 0.
        after: Computed on results.
    """
    source, weights, bias, residual, target = names
    tile, pieces = loops.tile, loops.tile.words.pieces
    partial = loops.width < LANES * sum(group.blocks for group in loops.groups)
    for wide in loops.wide:
        lines = wide * LANES * tile.words.weights
        ahead = -(-lines // min(loops.panel, pairs_of_task)) if pairs_of_task else 0
        for high in range(1, HIGH + 1):
            name = f"KERNEL_product{high}{wide}"
            body.helper(product_function(name, high, wide, tile, tiles.step * 4, ahead))
        finish = f"KERNEL_finish{wide}"
        body.helper(
            finish_function(finish, wide, tile, tiles.step, steps, partial, loops.padded, after)
        )
    table = ", ".join(f"{{{g.weights}, {g.first}, {g.blocks}, {g.source}}}" for g in loops.groups)
    body.helper(f"static const int64_t KERNEL_groups[{len(loops.groups)}][4] = {{{table}}};")
    one = loops.stretch == tile.depth and pieces == 1
    panel = 1 if one else loops.panel
    block = HIGH * max(loops.wide) * TILE_FLOATS
    body.add(
        f"float sums[{loops.groups_of_task * panel * block}] __attribute__((aligned(64)));",
        f"const int64_t plane = {planes[0]}; (void)plane;",
        f"hg_tiles_begin({tiles.rows});",
    )
    if pieces > 1:
        words = loops.stretch * loops.taps * max(loops.wide) * pieces * TILE_FLOATS
        body.add(f"float cut[{words}] __attribute__((aligned(64)));")
    if loops.chunk < tile.depth:
        body.add(
            f"for (int64_t top = c0; top < c1; top += {panel})",
            f"for (int64_t k0 = 0; k0 < {tile.depth}; k0 += {loops.chunk})",
        )
    body.add(
        "for (int64_t g = g0; g < g1; g++) {",
        "const int64_t *G = KERNEL_groups[g];",
        f"const float *w0 = {weights} + G[0], *b = {bias} + G[1] * {LANES}, *s0 = {source} + G[3];",
        f"float *d0 = {target} + {_place('G[1]', planes[1], tile.target_parts, tile.part)};",
        "const float *r0 = 0;"
        if tile.residuals is None
        else f"const float *r0 = {residual} + "
        f"{_place('G[1]', str(tile.residual_plane), tile.residual_parts, tile.residual_part)};",
        f"const int64_t left = {loops.width} - G[1] * {LANES}; (void)left;",
    )
    for wide in loops.wide:
        words = wide * TILE_FLOATS * loops.taps * tile.words.weights  # of one block of inputs
        end = tile.depth * words - tile.missing * wide * LANES
        body.add(f"if (G[2] == {wide}) {{ const float *pf = w0 + {end};")
        if loops.chunk == tile.depth:
            body.add(f"const int64_t k0 = 0; for (int64_t top = c0; top < c1; top += {panel})")
        body.add(
            f"for (int64_t k = k0; k < hg_min({tile.depth}, k0 + {loops.chunk}); k += {loops.stretch}) {{",
            f"const float *w = w0 + k * {words};",
            f"int64_t blocks = hg_min({loops.stretch}, {tile.depth} - k);",
            f"pf = w + blocks * {words};" if pieces > 1 else "",
        )
        _emit_block(body, loops, tiles, wide, panel)
        body.add("} }")
    body.add("}", "hg_tiles_end();")


def _emit_block(body: Body, loops: Loops, tiles: Tiles, wide: int, panel: int) -> None:
    """Write the loop over the blocks of results of a panel, for one stretch and group."""
    tile, step = loops.tile, wide * TILE_FLOATS
    plane = "plane / 4" if tile.source_plane is None else str(tile.source_plane)
    place = f"((g - g0) * {panel} + at - top)" if loops.groups_of_task > 1 else "(at - top)"
    if tile.words.pieces > 1:
        rows = f"{32 * tile.depth - tile.missing} - 32 * k" if tile.missing else "INT64_MAX"
        body.add(
            f"v_cut_tiles(w, (uint32_t *)cut, blocks * {loops.taps}, {wide}, {rows}); w = cut;"
        )
    body.add(
        f"for (int64_t at = top; at < hg_min(c1, top + {panel}); at++) {{",
        f"float *c = sums + {place} * {HIGH * step}; int64_t t = at * {HIGH};",
        f"const float *p = s0 + k * {plane}, *p0 = p + {tiles.source('t')}, *p1 = p0;",
        f"if (t + 1 < n_tiles) p1 = p + {tiles.source('(t + 1)')};",
    )
    for high, condition in ((2, "if (t + 1 < n_tiles)"), (1, "else")):
        call = f"pf = KERNEL_product{high}{wide}(p0, p1, w, c, pf, blocks, k, plane);"
        body.add(f"{condition} {{ {call} }}")
    body.add(
        f"if (k + {loops.stretch} >= {tile.depth}) {{ {tiles.finish('t', 'c', wide)}",
        f"if (t + 1 < n_tiles) {tiles.finish('(t + 1)', f'(c + {step})', wide)} }}",
        "}",
    )


def _place(block: str, plane: str, parts: int, part: int) -> str:
    """Return C text of the words from the first channel block to another one."""
    if parts == 1:
        return f"{block} * {plane}"
    return f"({block} / {parts} * {plane} + {block} % {parts} * {part})"
