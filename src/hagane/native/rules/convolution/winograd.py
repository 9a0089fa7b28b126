"""Convolution of stride one by Winograd's minimal filtering, over one axis or two.

Tiles of the image are transformed, multiplied point by point with transformed weights (one matrix
product a point), and transformed back (Lavin and Gray, "Fast Algorithms for Convolutional Neural
Networks", CVPR 2016). Filters of 3 × 3 taps take 2.25 or 4 times fewer multiplications, of 5 × 5 2.8
times, of five in a row 1.7 or 2.5; rounding grows a little (``filtering.py``).
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import onnx_ir as ir

from hagane.machine import Level
from hagane.native.kernels.kernel import Body, Work, work_of
from hagane.native.kernels.packing import Packing, zeros
from hagane.native.kernels.recorder import label_of
from hagane.native.kernels.tensor import Blocked, Buffer, Tensor
from hagane.native.layouts.pairs import STORE, Paired
from hagane.native.lowering.epilogue import Epilogue
from hagane.native.lowering.state import Lowering
from hagane.native.rules.convolution.filtering import Axis, Matrix, axis, sizes_of, transform
from hagane.native.tiles.contraction import Contraction, Group, Pixels, Pool, split_blocks
from hagane.native.tiles.register_loops import emit_contraction
from hagane.native.tiles.tile import Tile, bounded
from hagane.ops.definition import Array
from hagane.symbolic import Dim

# What a machine of this class does in a nanosecond, for choosing: operations of one thread, bytes
# of weights from memory for all threads, bytes of a transform for one.
_FLOPS, _WEIGHT_BYTES, _TRANSFORM_BYTES = 105.0, 18.0, 15.0
# The same operations and bytes of one with matrix tiles.
_WITH_TILES = 180.0, 12.0


# So many points are as many as are transformed at once.
_MOST_POINTS = 36
# Filters that are transformed at once when weights are packed.
_CHUNK = 1024


@dataclass(frozen=True, slots=True)
class Shape:
    """The sizes of a convolution of stride one, without dilation, and of its tiles.

    Attributes:
        images: How many images.
        channels: Of an image.
        out_channels: Of a result.
        out_height: Rows of a result.
        out_width: Columns of a result.
        kernel: Rows and columns of the filter.
    """

    images: Dim
    channels: int
    out_channels: int
    out_height: int
    out_width: int
    kernel: tuple[int, int]

    def name(self, step: str) -> str:
        """Return the name of a kernel: ``winograd_input_3x3_56x56x64``."""
        kernel = "x".join(map(str, self.kernel))
        return f"winograd_{step}_{kernel}_{self.out_height}x{self.out_width}x{self.out_channels}"

    def axes(self, size: int) -> tuple[Axis, Axis]:
        """Return the transforms of rows and of columns, for ``size`` pixels where there are taps."""
        rows, columns = (axis(size if taps > 1 else 1, taps) for taps in self.kernel)
        return rows, columns

    def tiles(self, size: int) -> tuple[int, int]:
        """Return rows and columns of tiles."""
        rows, columns = self.axes(size)
        return -(-self.out_height // rows.size), -(-self.out_width // columns.size)

    def points(self, size: int) -> int:
        """Return how many points a tile has."""
        rows, columns = self.axes(size)
        return rows.side * columns.side

    def pools(self, size: int, pool: Pool) -> bool:
        """Whether tiles are made of whole windows."""
        rows, columns = self.axes(size)
        whole = rows.size % pool.rows == 0 and columns.size % pool.columns == 0
        return whole and self.out_width > 1

    @property
    def sizes(self) -> tuple[int, ...]:
        """The sizes that tiles may have."""
        taps = {taps for taps in self.kernel if taps > 1}
        if len(taps) != 1:
            return ()
        return tuple(n for n in sizes_of(*taps) if self.points(n) <= _MOST_POINTS)


def tile_size(
    shape: Shape, threads: int, direct_speed: float = 1.0, in_tiles: float | None = None
) -> int:
    """Return 4 or 2 where that many pixels at once are estimated to be fastest, else 0.

    The direct form does ``direct_speed`` times the arithmetic in the same time. In matrix tiles it
    takes ``in_tiles`` nanoseconds of a processor that has them.
    """
    pairs = shape.channels * shape.out_channels
    images = shape.images if isinstance(shape.images, int) else 1
    speed, memory = (_FLOPS, _WEIGHT_BYTES) if in_tiles is None else _WITH_TILES
    if not shape.sizes or shape.channels < 16 or shape.out_channels < 16:
        return 0

    def estimate(size: int) -> float:
        rows, columns = shape.tiles(size)
        pixels = images * rows * columns
        points = shape.points(size)
        multiply = 2.0 * points * pairs * pixels / (speed * threads)
        moved = 4.0 * points * pixels * (shape.channels + shape.out_channels)
        load = 4.0 * points * pairs / memory
        return max(multiply, load) + moved / (_TRANSFORM_BYTES * threads) + 4000.0

    pixels = images * shape.out_height * shape.out_width
    taps = shape.kernel[0] * shape.kernel[1]
    direct = max(
        2.0 * taps * pairs * pixels / (_FLOPS * threads), 4.0 * taps * pairs / _WEIGHT_BYTES
    )
    direct /= direct_speed
    if in_tiles is not None:
        direct = in_tiles
    best = min(shape.sizes, key=estimate)
    return 0 if estimate(best) > 0.9 * direct else best


@dataclass(frozen=True, slots=True)
class _Place:
    """How far apart images, blocks of channels, rows and pixels lie, in words.

    An image of one column is transposed to one of one row.
    """

    image: int
    block: int
    row: int
    step: int

    @classmethod
    def of(cls, image: Blocked | Paired, *, transposed: bool) -> _Place:
        """Return the place of an image."""
        row, step = image.row_stride, image.step
        if transposed:
            row, step = step, row
        plane = int(image.plane_stride)
        return cls(image.blocks * plane, plane, int(row), int(step))

    def tile(self, pointer: str, rows: int) -> str:
        """Return C text of a pointer to the first of a row of tiles, some rows high."""
        return f"{pointer} + image * {self.image} + block * {self.block} + ty * {rows * self.row}"


@dataclass(frozen=True, slots=True)
class _Tiles:
    """The tiles of an image, and where their points lie.

    Attributes:
        shape: The convolution, of one row rather than of one column.
        size: Pixels of a tile along an axis with taps.
        plane: Floats of one point of all tiles, for one block of channels.
        transposed: Whether columns stand for rows.
    """

    shape: Shape
    size: int
    plane: int
    transposed: bool

    @property
    def apart(self) -> bool:
        """Whether each image has planes of its own, because only a run knows how many there are."""
        return not isinstance(self.shape.images, int)

    def planes(self, blocks: int) -> int:
        """Return the floats of all planes of an image, or of all images."""
        return self.shape.points(self.size) * blocks * self.plane

    def loops(self, blocks: int) -> tuple[str, ...]:
        """Return the beginning of a kernel with a task for each row of tiles, block and image."""
        rows = self.shape.tiles(self.size)[0]
        return (
            f"int64_t ty = q % {rows}, block = q / {rows} % {blocks}, image = q / {rows * blocks};",
        )

    def points(self, pointer: str, lanes: int, blocks: int) -> str:
        """Return C text of a pointer to the first point of a row of tiles."""
        rows, columns = self.shape.tiles(self.size)
        if self.apart:
            own = f"image * {self.planes(blocks)} + block * {self.plane}"
            return f"{pointer} + {own} + ty * {columns * lanes}"
        return f"{pointer} + block * {self.plane} + (image * {rows} + ty) * {columns * lanes}"

    def tasks(self, blocks: int) -> Dim:
        """Return the number of tasks."""
        return self.shape.images * blocks * self.shape.tiles(self.size)[0]

    def work(self, blocks: int, lanes: int) -> Work:
        """Return the estimated nanoseconds of one thread."""
        rows, columns = self.shape.tiles(self.size)
        points = self.shape.points(self.size)
        return work_of(self.shape.images * rows * columns * blocks * lanes * points, 0.2)


def lower_winograd(
    low: Lowering,
    node: ir.Node,
    shape: Shape,
    size: int,
    source: Blocked,
    start: Dim,
    weight: Array,
    bias: Buffer,
    epilogue: Epilogue,
    residual: Blocked | None,
    target: Blocked | Paired,
    pool: Pool | None = None,
) -> None:
    """Write the three kernels of a convolution.

    Args:
        low: Where they go.
        node: The convolution.
        shape: Its sizes.
        size: Pixels of a tile along an axis with taps.
        source: The image, in a border wide enough for whole tiles.
        start: Floats from the image's first pixel to the filter's first tap.
        weight: ``(out, in, rows, columns)``.
        bias: Packed, one number a channel.
        epilogue: What follows.
        residual: What is added, or None.
        target: The result.
        pool: Windows that tiles are made of, if they are pooled.
    """
    level, lanes = low.facts.level, low.facts.level.lanes
    transposed = shape.out_width == shape.kernel[1] == 1 and pool is None
    if transposed:
        shape = replace(
            shape, out_height=1, out_width=shape.out_height, kernel=(1, shape.kernel[0])
        )
    if pool is not None:
        high, wide = pool.height * pool.rows, pool.width * pool.columns
        shape = replace(shape, out_height=high, out_width=wide)
    rows, columns = shape.tiles(size)
    points, taps = shape.points(size), shape.kernel[0] * shape.kernel[1]
    together = shape.images if isinstance(shape.images, int) else 1
    pixels = together * rows * columns
    in_blocks, out_blocks = -(-shape.channels // lanes), -(-shape.out_channels // lanes)
    # Planes a power of two apart would fall into the same few sets of the cache.
    plane = pixels * lanes + 2 * lanes
    tiles = _Tiles(shape, size, plane, transposed)
    floats = np.dtype(np.float32)
    alone = shape.images if tiles.apart else 1
    transformed = low.recorder.new(f"{node.name} U", floats, (alone * points * in_blocks * plane,))
    products = low.recorder.new(f"{node.name} M", floats, (alone * points * out_blocks * plane,))
    _transform_input(low, node, tiles, source, start, transformed)

    sizes = split_blocks(out_blocks, pixels, level)
    count = out_blocks * lanes * shape.channels

    matrices = tuple(each.weight for each in shape.axes(size))
    packing = Packing(pack_points, (weight, matrices, tuple(sizes), level))
    weights = low.recorder.weight(
        ("winograd", id(node), size, tuple(sizes)), packing, points * count * 4
    )
    none = low.recorder.weight(
        ("zeros", points * out_blocks),
        Packing(zeros, ((points * out_blocks + 8) * lanes,)),
        (points * out_blocks + 8) * lanes * 4,
    )
    groups: list[Group] = []
    for point in range(points):
        first, at = point * out_blocks, point * count
        for blocks in sizes:
            groups.append(Group(first, blocks, at, point * in_blocks * plane))
            at += blocks * lanes * shape.channels
            first += blocks
    tile = Tile(
        blocks=1,
        sources=(),
        targets=(),
        residuals=None,
        depth=shape.channels // lanes,
        channels=lanes,
        rest=shape.channels % lanes,
        source_plane=plane,
        target_plane=plane,
    )
    plan = Contraction(
        tile,
        Pixels(lambda i: i * lanes, lambda i: i * lanes, None, pixels, 0),
        tuple(groups),
        images=alone,
        source_image=tiles.planes(in_blocks) if tiles.apart else 0,
        target_image=tiles.planes(out_blocks) if tiles.apart else 0,
        residual_image=0,
        width=points * out_blocks * lanes,
        padded=True,
        source_floats=0,
    )
    body = Body()
    names = (
        body.pointer(transformed),
        body.raw(weights),
        body.raw(none),
        "0",
        body.pointer(products, written=True),
    )
    tasks, work = emit_contraction(body, plan, level, names)
    flops = 2.0 * taps * shape.channels * shape.out_channels
    low.recorder.emit(
        label_of(node, *epilogue.nodes),
        body,
        tasks,
        work=work,
        flops=work_of(shape.images * shape.out_height * shape.out_width, flops),
        followers=(node,),
        name=shape.name("products"),
    )
    _transform_output(low, node, tiles, products, bias, epilogue, residual, target, pool)
    low.forms[epilogue.value] = target


def _transform_input(
    low: Lowering,
    node: ir.Node,
    tiles: _Tiles,
    source: Blocked,
    start: Dim,
    transformed: Tensor,
) -> None:
    lanes = source.lanes
    rows, columns = tiles.shape.axes(tiles.size)
    place = _Place.of(source, transposed=tiles.transposed)
    body = Body()
    s = body.pointer(source.view(), offset=start)
    d = body.pointer(transformed, written=True)
    body.add(
        *tiles.loops(source.blocks),
        f"const float *s = {place.tile(s, rows.size)};",
        f"float *d = {tiles.points(d, lanes, source.blocks)};",
        f"for (int64_t tx = 0; tx < {tiles.shape.tiles(tiles.size)[1]}; tx++, "
        f"s += {columns.size * place.step}, d += {lanes}) {{",
    )
    for x in range(columns.side):
        loads = [f"d{y}_{x}" for y in range(rows.side)]
        body.add(
            " ".join(
                f"vf {name} = v_load(s + {y * place.row + x * place.step});"
                for y, name in enumerate(loads)
            ),
            *transform(rows.input, loads, [f"e{a}_{x}" for a in range(rows.side)]),
        )
    step = source.blocks * tiles.plane
    for a in range(rows.side):
        names = [f"e{a}_{x}" for x in range(columns.side)]
        made = [f"f{a}_{b}" for b in range(columns.side)]
        body.add(*transform(columns.input, names, made))
        for b, name in enumerate(made):
            body.add(f"v_store(d + {(a * columns.side + b) * step}L, {name});")
    body.add("}")
    low.recorder.emit(
        f"Conv '{node.name}' (input transform)",
        body,
        tiles.tasks(source.blocks),
        work=tiles.work(source.blocks, lanes),
        name=tiles.shape.name("input"),
    )


def _transform_output(
    low: Lowering,
    node: ir.Node,
    tiles: _Tiles,
    products: Tensor,
    bias: Buffer,
    epilogue: Epilogue,
    residual: Blocked | None,
    target: Blocked | Paired,
    pool: Pool | None,
) -> None:
    lanes, shape = low.facts.level.lanes, tiles.shape
    rows, columns = shape.axes(tiles.size)
    window = (1, 1) if pool is None else (pool.rows, pool.columns)
    height, width = (
        (shape.out_height, shape.out_width) if pool is None else (pool.height, pool.width)
    )
    high, wide = rows.size // window[0], columns.size // window[1]  # results of a tile
    place = _Place.of(target, transposed=tiles.transposed)
    body = Body()
    s = body.pointer(products)
    b = body.raw(bias)
    r = None if residual is None else body.pointer(residual.view())
    d = body.pointer(target.word_view(), written=True)
    name = STORE if isinstance(target, Paired) else "v_store"
    kind = "uint16_t" if isinstance(target, Paired) else "float"
    body.add(
        *tiles.loops(target.blocks),
        f"const float *s = {tiles.points(s, lanes, target.blocks)};",
        f"float *d = {place.tile(d, high)};",
    )
    added = None
    if residual is not None:
        added = _Place.of(residual, transposed=tiles.transposed)
        body.add(f"const float *r = {added.tile(str(r), rows.size)};")
    body.add(
        f"vf bias = v_load({b} + block * {lanes});",
        f"const int64_t down = {height} - ty * {high}; (void)down;",
        f"for (int64_t tx = 0; tx < {shape.tiles(tiles.size)[1]}; tx++, s += {lanes}) {{",
        f"const int64_t right = {width} - tx * {wide}; (void)right;",
    )
    step = target.blocks * tiles.plane
    for x in range(columns.side):
        loads = [f"d{y}_{x}" for y in range(rows.side)]
        body.add(
            " ".join(
                f"vf {name} = v_load(s + {(y * columns.side + x) * step}L);"
                for y, name in enumerate(loads)
            ),
            *transform(rows.output, loads, [f"e{a}_{x}" for a in range(rows.size)]),
        )
    for a in range(rows.size):
        names = [f"e{a}_{x}" for x in range(columns.side)]
        body.add(*transform(columns.output, names, [f"f{a}_{c}" for c in range(columns.size)]))

    def result(a: int, c: int) -> str:
        value = f"f{a}_{c} + bias"
        if added is not None:
            value += f" + v_load(r + {a * added.row} + (tx * {columns.size} + {c}) * {added.step})"
        return bounded(value, epilogue.activation)

    for i, j in itertools.product(range(high), range(wide)):
        conditions = [f"{i} < down"] * bool(height % high) + [f"{j} < right"] * bool(width % wide)
        pixels = itertools.product(range(window[0]), range(window[1]))
        values = [result(i * window[0] + a, j * window[1] + c) for a, c in pixels]
        value = values[0] if pool is None else pool.reduced(values)
        at = f"d + {i * place.row} + (tx * {wide} + {j}) * {place.step}"
        body.add(
            f"if ({' && '.join(conditions)})" if conditions else "",
            f"{name}(({kind} *)({at}), {value});",
        )
    body.add("}")
    low.recorder.emit(
        f"Conv '{node.name}' (output transform)",
        body,
        tiles.tasks(target.blocks),
        work=tiles.work(target.blocks, lanes),
        followers=(node, *epilogue.nodes),
        name=tiles.shape.name("output"),
    )


def pack_points(
    weight: Array, matrices: Sequence[Matrix], sizes: Sequence[int], level: Level
) -> Array:
    """Return filters as products of Winograd's algorithm read them, a point after the other.

    Args:
        weight: ``(out, in, rows, columns)``.
        matrices: From taps to points, of rows and of columns.
        sizes: Channel blocks of each group of a tile.
        level: Vector instructions.
    """
    lanes, inputs = level.lanes, weight.shape[1]
    spread = np.kron(*(np.array(each) for each in matrices))  # (points, taps)
    points, taps = spread.shape
    packed = np.empty((points, sum(sizes) * lanes * inputs), np.float32)
    first = at = 0
    for blocks in sizes:
        wide = blocks * lanes
        group = weight[first * lanes : first * lanes + wide].reshape(-1, inputs, taps)
        step = max(1, _CHUNK // wide)
        columns = np.zeros((taps, step, wide))
        for start in range(0, inputs, step):
            # In double precision, and in pieces that stay in the cache of one core.
            part = group[:, start : start + step].T
            deep = part.shape[1]
            columns[:, :deep, : len(group)] = part
            exact = spread @ columns[:, :deep].reshape(taps, -1)
            packed[:, at : at + deep * wide] = exact
            at += deep * wide
        first += blocks
    return packed.reshape(-1)
