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
from hagane.native.rules.convolution.filtering import Matrix, transform
from hagane.native.rules.convolution.winograd_sizes import Shape
from hagane.native.tiles.contraction import Contraction, Group, Pixels, Pool, split_blocks
from hagane.native.tiles.open_pixels import OpenContraction, Place, emit_open
from hagane.native.tiles.register_loops import emit_contraction
from hagane.native.tiles.tile import Tile, bounded
from hagane.ops.definition import Array
from hagane.symbolic import Dim, product

# Filters that are transformed at once when weights are packed.
_CHUNK = 1024


@dataclass(frozen=True, slots=True)
class _Place:
    """How far apart images, blocks of channels, rows and pixels lie, in words.

    An image of one column is transposed to one of one row.
    """

    image: Dim
    block: Dim
    row: Dim
    step: Dim

    @classmethod
    def of(cls, image: Blocked | Paired, *, transposed: bool) -> _Place:
        """Return the place of an image."""
        row: Dim = image.row_stride
        step: Dim = image.step
        if transposed:
            row, step = step, row
        return cls(image.blocks * image.plane_stride, image.plane_stride, row, step)

    def tile(self, body: Body, pointer: str, rows: int) -> str:
        """Return C text of a pointer to the first of a row of tiles, some rows high."""
        n = body.number
        return f"{pointer} + image * {n(self.image)} + block * {n(self.block)} + ty * {n(rows * self.row)}"

    def names(self, body: Body, ending: str) -> _Lengths:
        """Return the distances of rows and pixels, with C names where only a run knows them."""
        return _Lengths.of(body, **{f"row{ending}": self.row, f"step{ending}": self.step})


@dataclass(frozen=True, slots=True)
class _Lengths:
    """Distances, each a number or the C name of one."""

    found: tuple[int | str, ...]

    @classmethod
    def of(cls, body: Body, **lengths: Dim) -> _Lengths:
        """Return distances by the C names that they are given where they are no numbers."""
        found: list[int | str] = []
        for name, length in lengths.items():
            if not isinstance(length, int):
                body.add(f"const int64_t {name} = {body.size(length)};")
            found.append(length if isinstance(length, int) else name)
        return cls(tuple(found))

    def at(self, *counts: int) -> str:
        """Return C text of the sum of multiples of the distances."""
        pairs = list(zip(counts, self.found, strict=True))
        fixed = sum(count * length for count, length in pairs if isinstance(length, int))
        texts = [f"{count} * {name}" for count, name in pairs if isinstance(name, str) and count]
        return " + ".join([*texts, f"{fixed}L"] if fixed or not texts else texts)


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
    plane: Dim
    transposed: bool

    @property
    def apart(self) -> bool:
        """Whether each image has planes of its own, because only a run knows how many there are."""
        return not (isinstance(self.shape.images, int) or self.shape.is_open)

    def planes(self, blocks: int) -> Dim:
        """Return the floats of all planes of an image, or of all images."""
        return self.shape.points(self.size) * blocks * self.plane

    def loops(self, body: Body, blocks: int) -> str:
        """Return the beginning of a kernel with a task for each row of tiles, block and image."""
        rows = self.shape.tiles(self.size)[0]
        n = body.number(rows)
        last = f"image = q / {body.number(rows * blocks)}"
        return f"int64_t ty = q % {n}, block = q / {n} % {blocks}, {last};"

    def points(self, body: Body, pointer: str, lanes: int, blocks: int) -> str:
        """Return C text of a pointer to the first point of a row of tiles."""
        rows, columns = self.shape.tiles(self.size)
        n = body.number
        row, first = n(columns * lanes), f"{pointer} + block * {n(self.plane)}"
        if self.apart:
            return f"{first} + image * {n(self.planes(blocks))} + ty * {row}"
        return f"{first} + (image * {n(rows)} + ty) * {row}"

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
        epilogue: The operations that follow.
        residual: The summand, or None.
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
    points = shape.points(size)
    together = shape.images if shape.is_open or isinstance(shape.images, int) else 1
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

    likely = pixels if isinstance(pixels, int) else product(shape.likely.tiles(size))
    sizes = split_blocks(out_blocks, int(likely), level)
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
            groups.append(Group(first, blocks, at, point * in_blocks))
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
        source_plane=0,
        target_plane=0,
    )
    width = points * out_blocks * lanes
    body = Body()
    names = (
        body.pointer(transformed),
        body.raw(weights),
        body.raw(none),
        "0",
        body.pointer(products, written=True),
    )
    if isinstance(plane, int) and isinstance(pixels, int):
        plan = Contraction(
            replace(tile, source_plane=plane, target_plane=plane),
            Pixels(lambda i: i * lanes, lambda i: i * lanes, None, pixels, 0),
            tuple(replace(group, source=group.source * plane) for group in groups),
            images=alone,
            source_image=tiles.planes(in_blocks) if tiles.apart else 0,
            target_image=tiles.planes(out_blocks) if tiles.apart else 0,
            residual_image=0,
            width=width,
            padded=True,
            source_floats=0,
        )
        tasks, work = emit_contraction(body, plan, level, names)
    else:
        # Each point has weights of its own: a task that took several would read all of them.
        at_pixel = Place(0, plane, 0, lanes)
        opened = OpenContraction(
            tile, tuple(groups), 1, 1, pixels, at_pixel, 0, at_pixel, None, width, order="groups"
        )
        tasks, work = emit_open(body, opened, level, names)
    flops = 2.0 * points * shape.channels * shape.out_channels  # of a tile
    low.recorder.emit(
        label_of(node, *epilogue.nodes),
        body,
        tasks,
        work=work,
        flops=work_of(shape.images * rows * columns, flops),
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
        tiles.loops(body, source.blocks),
        f"const float *s = {place.tile(body, s, rows.size)};",
        f"float *d = {tiles.points(body, d, lanes, source.blocks)};",
    )
    steps, point = place.names(body, ""), _Lengths.of(body, point=source.blocks * tiles.plane)
    body.add(
        f"for (int64_t tx = 0; tx < {body.number(tiles.shape.tiles(tiles.size)[1])}; tx++, "
        f"s += {steps.at(0, columns.size)}, d += {lanes}) {{",
    )
    for x in range(columns.side):
        loads = [f"d{y}_{x}" for y in range(rows.side)]
        body.add(
            " ".join(f"vf {name} = v_load(s + {steps.at(y, x)});" for y, name in enumerate(loads)),
            *transform(rows.input, loads, [f"e{a}_{x}" for a in range(rows.side)]),
        )
    for a in range(rows.side):
        names = [f"e{a}_{x}" for x in range(columns.side)]
        made = [f"f{a}_{b}" for b in range(columns.side)]
        body.add(*transform(columns.input, names, made))
        for b, name in enumerate(made):
            body.add(f"v_store(d + {point.at(a * columns.side + b)}, {name});")
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
        tiles.loops(body, target.blocks),
        f"const float *s = {tiles.points(body, s, lanes, target.blocks)};",
        f"float *d = {place.tile(body, d, high)};",
    )
    steps, point = place.names(body, ""), _Lengths.of(body, point=target.blocks * tiles.plane)
    added = None
    if residual is not None:
        other = _Place.of(residual, transposed=tiles.transposed)
        body.add(f"const float *r = {other.tile(body, str(r), rows.size)};")
        added = other.names(body, "_added")
    body.add(
        f"vf bias = v_load({b} + block * {lanes});",
        f"const int64_t down = {body.number(height)} - ty * {high}; (void)down;",
        f"for (int64_t tx = 0; tx < {body.number(shape.tiles(tiles.size)[1])}; tx++, s += {lanes}) {{",
        f"const int64_t right = {body.number(width)} - tx * {wide}; (void)right;",
    )
    for x in range(columns.side):
        loads = [f"d{y}_{x}" for y in range(rows.side)]
        body.add(
            " ".join(
                f"vf {name} = v_load(s + {point.at(y * columns.side + x)});"
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
            value += f" + v_load(r + {added.at(a, c)} + tx * ({added.at(0, columns.size)}))"
        return bounded(value, epilogue.activation)

    for i, j in itertools.product(range(high), range(wide)):
        conditions = [f"{i} < down"] * (height % high != 0) + [f"{j} < right"] * (width % wide != 0)
        pixels = itertools.product(range(window[0]), range(window[1]))
        values = [result(i * window[0] + a, j * window[1] + c) for a, c in pixels]
        value = values[0] if pool is None else pool.reduced(values)
        at = f"d + {steps.at(i, j)} + tx * ({steps.at(0, wide)})"
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
