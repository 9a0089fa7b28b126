"""3 × 3 convolution of stride one by Winograd's minimal filtering, F(2 × 2) and F(4 × 4).

Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks" (CVPR 2016): tiles of the
image are transformed, multiplied point by point with transformed weights (one matrix product a
point), and transformed back. Multiplications fall by 2.25 and 4; rounding grows a little.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from hagane.native.contraction import (
    Contraction,
    Group,
    Pixels,
    emit_contraction,
    pack_weights,
    split_blocks,
)
from hagane.native.ending import Ending, bounded
from hagane.native.kernel import Body
from hagane.native.lowering import Lowering
from hagane.native.pairs import STORE, Paired
from hagane.native.tensor import Blocked, Buffer, Tensor
from hagane.native.tile import Tile, float_text
from hagane.ops.definition import Array

# The finite points of F(4 x 4) are 0, a, -a, b and -b with a b = 1. Small whole numbers, the usual
# choice, lose four times as much: what counts is that no power of a point is large or small.
# Barabasz et al., "Error analysis and improving the accuracy of Winograd convolution for deep
# neural networks" (ACM TOMS 46(4), 2020), search for points with this in mind.
_A, _B = 2 / 3, 3 / 2
_S = _A * _A + _B * _B
_NA, _NB = 2 * _A**2 * (_A**2 - _B**2), 2 * _B**2 * (_B**2 - _A**2)

_INPUT = {
    2: ((1, 0, -1, 0), (0, 1, 1, 0), (0, -1, 1, 0), (0, 1, 0, -1)),
    4: (
        (1, 0, -_S, 0, 1, 0),
        (0, -_B, -_B * _B, _A, 1, 0),
        (0, _B, -_B * _B, -_A, 1, 0),
        (0, -_A, -_A * _A, _B, 1, 0),
        (0, _A, -_A * _A, -_B, 1, 0),
        (0, 1, 0, -_S, 0, 1),
    ),
}
_OUTPUT = {
    2: ((1, 1, 1, 0), (0, 1, -1, -1)),
    4: (
        (1, 1, 1, 1, 1, 0),
        (0, _A, -_A, _B, -_B, 0),
        (0, _A**2, _A**2, _B**2, _B**2, 0),
        (0, _A**3, -(_A**3), _B**3, -(_B**3), 1),
    ),
}
_WEIGHT = {
    2: ((1, 0, 0), (0.5, 0.5, 0.5), (0.5, -0.5, 0.5), (0, 0, 1)),
    4: (
        (1, 0, 0),
        (1 / _NA, _A / _NA, _A**2 / _NA),
        (1 / _NA, -_A / _NA, _A**2 / _NA),
        (1 / _NB, _B / _NB, _B**2 / _NB),
        (1 / _NB, -_B / _NB, _B**2 / _NB),
        (0, 0, 1),
    ),
}

# What a machine of this class does in a nanosecond, for choosing: operations of one thread, bytes
# of weights from memory for all threads, bytes of a transform for one.
_FLOPS, _WEIGHT_BYTES, _TRANSFORM_BYTES = 105.0, 18.0, 15.0
# The same operations and bytes of one with matrix tiles.
_WITH_TILES = 180.0, 12.0


@dataclass(frozen=True, slots=True)
class Shape:
    """The sizes of a 3 × 3 convolution of stride one."""

    images: int
    channels: int
    out_channels: int
    out_height: int
    out_width: int

    def tiles(self, size: int) -> tuple[int, int]:
        """Return rows and columns of tiles that give ``size`` × ``size`` pixels each."""
        return -(-self.out_height // size), -(-self.out_width // size)


def tile_size(
    shape: Shape, threads: int, direct_speed: float = 1.0, in_tiles: float | None = None
) -> int:
    """Return 4 or 2 where that many pixels at once are estimated to be fastest, else 0.

    The direct form does ``direct_speed`` times the arithmetic in the same time. In matrix tiles it
    takes ``in_tiles`` nanoseconds of a processor that has them.
    """
    pairs = shape.channels * shape.out_channels
    speed, memory = (_FLOPS, _WEIGHT_BYTES) if in_tiles is None else _WITH_TILES

    def estimate(size: int) -> float:
        rows, columns = shape.tiles(size)
        pixels = shape.images * rows * columns
        points = (size + 2) ** 2
        multiply = 2.0 * points * pairs * pixels / (speed * threads)
        moved = 4.0 * points * pixels * (shape.channels + shape.out_channels)
        load = 4.0 * points * pairs / memory
        return max(multiply, load) + moved / (_TRANSFORM_BYTES * threads) + 4000.0

    pixels = shape.images * shape.out_height * shape.out_width
    direct = max(2.0 * 9 * pairs * pixels / (_FLOPS * threads), 4.0 * 9 * pairs / _WEIGHT_BYTES)
    direct /= direct_speed
    if in_tiles is not None:
        direct = in_tiles
    best = min((2, 4), key=estimate)
    small = shape.channels < 16 or shape.out_channels < 16
    return 0 if small or estimate(best) > 0.9 * direct else best


def _combine(row: Sequence[float], names: Sequence[str]) -> str:
    """Return C text of a sum of multiples of vectors."""
    text = ""
    for factor, name in zip(row, names, strict=True):
        if factor == 0:
            continue
        if not text:
            text = name if factor == 1 else f"{name} * {float_text(float(factor))}"
        elif abs(factor) == 1:
            text = f"({text}) {'+' if factor > 0 else '-'} {name}"
        else:
            text = f"v_fma({name}, v_set1({float_text(float(factor))}), {text})"
    return text


def lower_winograd(
    low: Lowering,
    node: ir.Node,
    shape: Shape,
    size: int,
    source: Blocked,
    start: int,
    weight: Array,
    bias: Buffer,
    ending: Ending,
    residual: Blocked | None,
    target: Blocked | Paired,
) -> None:
    """Write the three kernels of a convolution.

    Args:
        low: Where they go.
        node: The convolution.
        shape: Its sizes.
        size: Pixels of a tile's side.
        source: The image, in a border wide enough for whole tiles.
        start: Floats from the image's first pixel to the filter's first tap.
        weight: ``(out, in, 3, 3)``.
        bias: Packed, one number a channel.
        ending: What follows.
        residual: What is added, or None.
        target: The result.
    """
    level, lanes = low.level, low.level.lanes
    rows, columns = shape.tiles(size)
    side = size + 2
    points = side * side
    pixels = shape.images * rows * columns
    in_blocks, out_blocks = -(-shape.channels // lanes), -(-shape.out_channels // lanes)
    # Planes a power of two apart would fall into the same few sets of the cache.
    plane = pixels * lanes + 2 * lanes
    floats = np.dtype(np.float32)
    transformed = low.new(f"{node.name} U", floats, (points * in_blocks * plane,))
    products = low.new(f"{node.name} M", floats, (points * out_blocks * plane,))
    _transform_input(low, node, shape, size, source, start, transformed, plane)

    sizes = split_blocks(out_blocks, pixels, level)
    count = out_blocks * lanes * shape.channels

    def make() -> Array:
        matrix = np.array(_WEIGHT[size])
        spread = np.kron(matrix, matrix)  # (points, 9)
        packed = np.empty((points, count), np.float32)
        first = at = 0
        for blocks in sizes:
            # One group at a time: in double precision, all take four times the result.
            group = weight[first * lanes : (first + blocks) * lanes]
            exact = spread @ group.reshape(-1, 9).astype(np.float64).T
            moved = exact.astype(np.float32).reshape(points, len(group), shape.channels, 1, 1)
            length = blocks * lanes * shape.channels
            for p in range(points):
                (packed[p, at : at + length],) = pack_weights(moved[p], [blocks], level, lanes)
            first, at = first + blocks, at + length
        return packed.reshape(-1)

    weights = low.weight(("winograd", id(node), size, tuple(sizes)), make, points * count * 4)
    none = low.weight(
        ("zeros", points * out_blocks),
        lambda: np.zeros((points * out_blocks + 8) * lanes, np.float32),
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
        images=1,
        source_image=0,
        target_image=0,
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
    flops = 2.0 * 9 * shape.images * shape.out_height * shape.out_width
    flops *= shape.channels * shape.out_channels
    low.emit(node, body, tasks, work=work, flops=flops, followers=ending.operators)
    _transform_output(low, node, shape, size, products, plane, bias, ending, residual, target)
    low.keep_image(ending.value, target)


def _transform_input(
    low: Lowering,
    node: ir.Node,
    shape: Shape,
    size: int,
    source: Blocked,
    start: int,
    transformed: Tensor,
    plane: int,
) -> None:
    lanes, side = source.lanes, size + 2
    rows, columns = shape.tiles(size)
    body = Body()
    s = body.pointer(source.view(), offset=start)
    d = body.pointer(transformed, written=True)
    body.add(
        f"int64_t ty = q % {rows}, block = q / {rows} % {source.blocks}, image = q / {rows * source.blocks};",
        f"const float *s = {s} + (image * {source.blocks} + block) * {source.plane_stride}"
        f" + ty * {size * source.row_stride};",
        f"float *d = {d} + block * {plane} + (image * {rows} + ty) * {columns * lanes};",
        f"for (int64_t tx = 0; tx < {columns}; tx++, s += {size * lanes}, d += {lanes}) {{",
    )
    matrix = _INPUT[size]
    for x in range(side):
        loads = [f"d{y}_{x}" for y in range(side)]
        body.add(
            " ".join(
                f"vf {name} = v_load(s + {y * source.row_stride + x * lanes});"
                for y, name in enumerate(loads)
            ),
            " ".join(f"vf e{a}_{x} = {_combine(matrix[a], loads)};" for a in range(side)),
        )
    step = source.blocks * plane
    for a in range(side):
        names = [f"e{a}_{x}" for x in range(side)]
        for b in range(side):
            body.add(f"v_store(d + {(a * side + b) * step}L, {_combine(matrix[b], names)});")
    body.add("}")
    moved = shape.images * rows * columns * source.blocks * lanes * side * side
    low.emit(
        f"Conv '{node.name}' (input transform)",
        body,
        shape.images * source.blocks * rows,
        work=moved * 0.2,
    )


def _transform_output(
    low: Lowering,
    node: ir.Node,
    shape: Shape,
    size: int,
    products: Tensor,
    plane: int,
    bias: Buffer,
    ending: Ending,
    residual: Blocked | None,
    target: Blocked | Paired,
) -> None:
    lanes, side = target.lanes, size + 2
    rows, columns = shape.tiles(size)
    body = Body()
    s = body.pointer(products)
    b = body.raw(bias)
    r = None if residual is None else body.pointer(residual.view())
    d = body.pointer(target.word_view(), written=True)
    name = STORE if isinstance(target, Paired) else "v_store"
    kind = "uint16_t" if isinstance(target, Paired) else "float"
    body.add(
        f"int64_t ty = q % {rows}, block = q / {rows} % {target.blocks}, image = q / {rows * target.blocks};",
        f"const float *s = {s} + block * {plane} + (image * {rows} + ty) * {columns * lanes};",
        f"float *d = {d} + (image * {target.blocks} + block) * {target.plane_stride}"
        f" + ty * {size * target.row_stride};",
    )
    if residual is not None:
        body.add(
            f"const float *r = {r} + (image * {residual.blocks} + block) * {residual.plane_stride}"
            f" + ty * {size * residual.row_stride};"
        )
    body.add(
        f"vf bias = v_load({b} + block * {lanes});",
        f"int64_t high = hg_min({size}, {shape.out_height} - ty * {size});",
        f"for (int64_t tx = 0; tx < {columns}; tx++, s += {lanes}) {{",
        f"int64_t wide = hg_min({size}, {shape.out_width} - tx * {size});",
    )
    matrix = _OUTPUT[size]
    step = target.blocks * plane
    for x in range(side):
        loads = [f"d{y}_{x}" for y in range(side)]
        body.add(
            " ".join(
                f"vf {name} = v_load(s + {(y * side + x) * step}L);" for y, name in enumerate(loads)
            ),
            " ".join(f"vf e{a}_{x} = {_combine(matrix[a], loads)};" for a in range(size)),
        )
    for a in range(size):
        names = [f"e{a}_{x}" for x in range(side)]
        if shape.out_height % size:
            body.add(f"if ({a} < high) {{")
        for c in range(size):
            value = f"({_combine(matrix[c], names)}) + bias"
            if residual is not None:
                value = f"{value} + v_load(r + {a * residual.row_stride} + (tx * {size} + {c}) * {lanes})"
            store = (
                f"{name}(({kind} *)(d + {a * target.row_stride} + (tx * {size} + {c}) * {target.step}), "
                f"{bounded(value, ending.activation)});"
            )
            body.add(f"if ({c} < wide) {store}" if shape.out_width % size else store)
        if shape.out_height % size:
            body.add("}")
    body.add("}")
    moved = shape.images * rows * columns * target.blocks * lanes * side * side
    low.emit(
        f"Conv '{node.name}' (output transform)",
        body,
        shape.images * target.blocks * rows,
        work=moved * 0.2,
    )
