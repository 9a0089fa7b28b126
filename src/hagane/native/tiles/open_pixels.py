"""The loops around register tiles over images whose rows and columns are known only at run time.

A row of results is cut into near-equal tiles, of any number of pixels that registers hold; where
rows are so short that registers hold two of them, a tile takes two.
Distances between pixels of a row are fixed, those between rows and planes are arguments.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from hagane.machine import Level
from hagane.native.kernels.kernel import Body, Work, work_of
from hagane.native.tiles.contraction import Group
from hagane.native.tiles.register_code import tile_function
from hagane.native.tiles.tile import Tile, tile_pixels
from hagane.symbolic import Dim, ceildiv, floordiv, maximum, minimum

# One task should take about this long, at this many operations a nanosecond.
_TASK_NS = 12_000.0
_FLOPS_PER_NS = 100.0
# Pixels of a tile at most: a code for each number of them is compiled.
_MOST = 14


@dataclass(frozen=True, slots=True)
class Place:
    """How far apart rows, pixels of a row and blocks of channels lie, in words."""

    image: Dim
    plane: Dim
    row: Dim
    step: int


@dataclass(frozen=True, slots=True)
class OpenContraction:
    """A sum over input channels and filter taps, for every pixel of every image.

    Attributes:
        tile: The summands and the epilogue; blocks, offsets and planes are filled in here.
        groups: Groups of output channels.
        images: How many images.
        rows: Of a result.
        columns: Of a result.
        source: Where the first taps of pixels lie; of one row and pixel to the next one's.
        tap_row: Words from one row of taps to the next.
        target: Where results go.
        residual: Where the image that is added lies, or None.
        width: Output channels.
        order: The loop order, if it is not left to the sizes.
    """

    tile: Tile
    groups: tuple[Group, ...]
    images: Dim
    rows: Dim
    columns: Dim
    source: Place
    tap_row: Dim
    target: Place
    residual: Place | None
    width: int
    order: str | None = None

    @property
    def depth(self) -> int:
        """Multiplications for one output element."""
        rows, columns = self.tile.taps
        return (self.tile.depth * self.tile.channels + self.tile.rest) * rows * columns


def emit_open(
    body: Body, plan: OpenContraction, level: Level, names: tuple[str, str, str, str, str]
) -> tuple[Dim, Work]:
    """Write the loops of a contraction into ``body``.

    Args:
        body: The kernel's body.
        plan: The tiles to compute.
        level: For which vector instructions.
        names: C pointers of source, weights, bias, residual and target.

    Returns:
        The number of tasks, and the estimated nanoseconds of one thread.
    """
    plan = _on_one_row(plan)
    source, weights, bias, residual, target = names
    lanes, groups, added = level.lanes, plan.groups, plan.residual
    blocks = sum(group.blocks for group in groups)
    widths = sorted({group.blocks for group in groups})
    most = min(min(_MOST, tile_pixels(level, width)) for width in widths)
    tiles = _bands(plan, most) * ceildiv(plan.columns, most)
    flops = 2.0 * most * lanes * plan.depth  # of a tile and block of channels
    each = [
        max(1, round(_TASK_NS * _FLOPS_PER_NS / (flops * count)))
        for count in (blocks, blocks / len(groups))
    ]
    chunks, of_group = (ceildiv(tiles, count) for count in each)
    by_group = _by_group(plan, blocks * lanes)
    if by_group:
        chunks = chunks + by_group * (of_group - chunks)
    per_image = chunks * (1 + by_group * (len(groups) - 1))
    n = body.number
    table = ", ".join(f"{{{g.weights}, {g.first}, {g.blocks}, {g.source}}}" for g in groups)
    body.helper(f"static const int64_t KERNEL_groups[{len(groups)}][4] = {{{table}}};")
    body.add(
        f"int64_t image = q / {n(per_image)}, piece = q % {n(per_image)};",
        f"{source} += image * {n(plan.source.image)};",
        f"{target} += image * {n(plan.target.image)};",
        f"{residual} += image * {n(added.image)};" if added is not None else "",
        f"const int64_t chunks = {n(chunks)}, by_group = {n(by_group)}, columns = {n(plan.columns)};",
        "const int64_t chunk = piece % chunks, g0 = by_group ? piece / chunks : 0;",
        f"const int64_t g1 = by_group ? g0 + 1 : {len(groups)};",
        f"const int64_t plane = {n(plan.source.plane)} * 4, row = {n(plan.tap_row)} * 4;",
        f"const int64_t target_plane = {n(plan.target.plane)} * 4;",
        f"const int64_t residual_plane = {n(added.plane)} * 4;" if added is not None else "",
        "for (int64_t g = g0; g < g1; g++) {",
        "const int64_t *G = KERNEL_groups[g];",
        f"const float *w = {weights} + G[0], *b = {bias} + G[1] * {lanes};",
        # (Blocks of channels of the image stand in the way of a group's channels.)
        f"const float *s0 = {source} + G[3] * {n(plan.source.plane)};",
        f"float *d0 = {target} + {_first_block(plan, n(plan.target.plane))};",
        f"const float *r0 = {residual} + G[1] * {n(added.plane)};"
        if added is not None
        else "const float *r0 = 0;",
    )
    for width in widths:
        body.add(f"if (G[2] == {width}) {{")
        _emit_tiles(body, plan, level, width, min(_MOST, tile_pixels(level, width)))
        body.add("}")
    body.add("}")
    pixels = plan.images * plan.rows * plan.columns
    work = work_of(pixels, 2.0 * blocks * lanes * plan.depth / _FLOPS_PER_NS)
    return per_image * plan.images, work


def _on_one_row(plan: OpenContraction) -> OpenContraction:
    """Return the same over one long row, where rows follow one another without gaps."""
    places = [plan.source, plan.target, *([] if plan.residual is None else [plan.residual])]
    if plan.tile.taps != (1, 1) or any(at.row != plan.columns * at.step for at in places):
        return plan
    return replace(plan, rows=1, columns=plan.rows * plan.columns)


def _takes_two(plan: OpenContraction, most: int) -> bool:
    """Whether there may be rows so short that tiles of ``most`` pixels take two of them."""
    short = not isinstance(plan.columns, int) or plan.columns <= most // 2
    return most > 1 and plan.rows != 1 and short


def _bands(plan: OpenContraction, most: int) -> Dim:
    """Return how many tiles of ``most`` pixels lie below one another."""
    if not _takes_two(plan, most):
        return plan.rows
    is_short = minimum(1, floordiv(most // 2, maximum(1, plan.columns)))
    return ceildiv(plan.rows, 1 + is_short)


def _by_group(plan: OpenContraction, channels: int) -> Dim:
    """Return 1 where a task is one group of channels and some pixels, 0 where it is all groups."""
    if len(plan.groups) == 1:
        return 0
    if plan.order is not None:
        return int(plan.order == "groups")
    weights, results = channels * plan.depth, channels * plan.rows * plan.columns
    images = maximum(plan.source.image, results)
    return minimum(1, maximum(0, 2 * weights - images))


def _first_block(plan: OpenContraction, plane: str) -> str:
    """Return C text of the words to a group's first block of channels in the target."""
    parts, part = plan.tile.target_parts, plan.tile.part
    if parts == 1:
        return f"G[1] * {plane}"
    return f"(G[1] / {parts} * {plane} + G[1] % {parts} * {part})"


def _emit_tiles(body: Body, plan: OpenContraction, level: Level, width: int, most: int) -> None:
    """Write the loop over the tiles of a task for one group of ``width`` blocks of channels."""
    n, added = body.number, plan.residual
    bands = n(_bands(plan, most))
    rows = {1: most, 2: most // 2} if _takes_two(plan, most) else {1: most}
    if 2 in rows:
        body.add(
            f"const int64_t source_row = {n(plan.source.row)} * 4;",
            f"const int64_t target_row = {n(plan.target.row)} * 4;",
            f"const int64_t residual_row = {n(added.row)} * 4;" if added is not None else "",
        )
    cases = [
        f"case {count + (high - 1) * _MOST}: {_tile(body, plan, level, width, count, high)}; break;"
        for high, widest in rows.items()
        for count in range(1, widest + 1)
    ]
    body.add(
        f"const int64_t across = (columns + {most - 1}) / {most}, tiles = {bands} * across;",
        "const int64_t t1 = (chunk + 1) * tiles / chunks;",
        "for (int64_t t = chunk * tiles / chunks; t < t1; t++) {",
        "const int64_t band = t / across, i = t % across, x = i * columns / across;",
        f"const int64_t y = band * {n(plan.rows)} / {bands};",
        f"const int64_t high = (band + 1) * {n(plan.rows)} / {bands} - y;",
        f"const float *s = s0 + y * {n(plan.source.row)} + x * {plan.source.step};",
        f"float *d = d0 + y * {n(plan.target.row)} + x * {plan.target.step};",
        f"const float *r = r0 + y * {n(added.row)} + x * {added.step};"
        if added is not None
        else "const float *r = 0;",
        f"switch ((i + 1) * columns / across - x + (high - 1) * {_MOST}) {{",
        *cases,
        "} }",
    )


def _tile(
    body: Body, plan: OpenContraction, level: Level, width: int, count: int, high: int
) -> str:
    """Return the call of the tile of some blocks of channels, rows, and pixels of each row."""
    name = f"KERNEL_tile{width}x{count}" + (f"x{high}" if high > 1 else "")
    pixels: Sequence[int] = [*range(count)] * high
    added = plan.residual
    tile = replace(
        plan.tile,
        blocks=width,
        sources=tuple(t * plan.source.step for t in pixels),
        targets=tuple(t * plan.target.step for t in pixels),
        residuals=None if added is None else tuple(t * added.step for t in pixels),
        source_plane=None,
        row_step=None,
        target_plane=None,
        residual_plane=0 if added is None else None,
        rows=high,
    )
    body.helper(tile_function(name, tile, level))
    return f"{name}({', '.join(('s', 'w', 'b', 'r', 'd', '0', *tile.distances))})"
