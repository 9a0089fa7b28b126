"""Matrix products: register tiles over rows, with weights packed ahead where they are constant."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import onnx_ir as ir

from hagane.machine import Level
from hagane.native.choices import BY_RULE, product_key
from hagane.native.contraction import (
    Contraction,
    Group,
    Pixels,
    emit_contraction,
    pack_weights,
    split_blocks,
)
from hagane.native.dynamic_rows import emit_rows
from hagane.native.elementwise import emit_elementwise
from hagane.native.ending import follow
from hagane.native.expression import FLOAT32, Apply, Constant, Expression, Leaf
from hagane.native.gemm import emit_batched
from hagane.native.kernel import Body
from hagane.native.lowering import Lazy, Lowering, NotNative, Rule
from hagane.native.pairs import BFLOAT16, STORE, paired_weights
from hagane.native.quads import UINT8, shifted
from hagane.native.rules.typed_product import lower_typed_product
from hagane.native.tensor import Buffer, Kind, Tensor
from hagane.native.tile import Tile, Words, tile_pixels, uses_tiles, whole_words
from hagane.ops.definition import Array
from hagane.symbolic import Dim, product

# Fewer rows than this are read where they are.
_FEW_ROWS = 4


def lower_matmul(low: Lowering, node: ir.Node) -> None:
    """Lower MatMul; a constant matrix on the right is packed ahead."""
    a, b = node.inputs
    if not low.is_float(a):
        lower_typed_product(low, node)
        return
    weight = low.constant(b)
    if weight is not None and weight.ndim == 2 and len(low.shape(a)) >= 2:
        _lower_product(low, node, a, weight, None)
        return
    _lower_general(low, node)


def lower_gemm(low: Lowering, node: ir.Node) -> None:
    """Lower Gemm."""
    attributes = low.attributes(node)
    a, b = node.inputs[:2]
    c = node.inputs[2] if len(node.inputs) > 2 else None
    if not low.is_float(a):
        raise NotNative(f"element type {low.dtype(a)}")
    weight, bias = low.constant(b), low.constant(c)
    if weight is None or attributes["transA"] or (c is not None and bias is None):
        raise NotNative("operands that are not constant")
    alpha, beta = float(attributes["alpha"]), float(attributes["beta"])
    matrix = weight.T if attributes["transB"] else weight
    matrix = matrix if alpha == 1.0 else (matrix * np.float32(alpha)).astype(np.float32)
    n = matrix.shape[1]
    row = None
    if bias is not None:
        if bias.size not in (1, n) or (bias.ndim == 2 and bias.shape[0] != 1):
            raise NotNative("a bias that is not one row")
        row = np.broadcast_to(bias.reshape(-1), (n,)) * np.float32(beta)
    _lower_product(low, node, a, matrix, row)


def _added_row(low: Lowering, value: ir.Value, n: int) -> tuple[ir.Node, Array] | None:
    """Return the addition of a constant row that follows, and the row."""
    node = low.only_use(value)
    if node is None or node.op_type != "Add":
        return None
    (other,) = [v for v in node.inputs if v is not value] or [None]
    array = low.constant(other)
    if array is None or array.size != n or (array.ndim and array.shape[-1] != n):
        return None
    return node, array.reshape(-1)


def _lower_product(
    low: Lowering, node: ir.Node, source: ir.Value | None, weight: Array, bias: Array | None
) -> None:
    k, n = weight.shape
    value = node.outputs[0]
    rows = product(low.shape(source)[:-1])
    if k == 0 or n == 0 or rows == 0:
        raise NotNative("an empty matrix")
    if bias is None:
        added = _added_row(low, value, n)
        if added is not None:
            follower, bias = added
            low.done.add(follower)
            value = follower.outputs[0]
    level, lanes = low.level, low.level.lanes
    ending = follow(low, value)
    residual = None if ending.residual is None else low.contiguous(ending.residual)
    if residual is not None and n % lanes and residual.buffer.kind is Kind.INPUT:
        # A tile may read past the end of what is added; memory of the caller ends there.
        residual = low.copy(residual, low.new("residual", residual.dtype, residual.shape))
    target = low.result(ending.value)
    words = Words.PAIR if low.pairs and (level.tiles or k % 2 == 0) else Words.FLOAT
    choice = low.choices.get(product_key(low, rows, k, n), BY_RULE)
    sizes = product_groups(n, rows, level, choice.blocks, words)

    def make() -> Iterable[Array]:
        maps = weight.T[:, :, None, None]
        packed = paired_weights(maps, level) if words is Words.PAIR else maps
        return pack_weights(packed, sizes, level, lanes, words)

    def make_bias() -> Array:
        padded = np.zeros(row_length(n, level), np.float32)
        if bias is not None:
            padded[:n] = bias
        return padded

    count = -(-n // lanes) * lanes * whole_words(k, words, level) * 4
    weights = low.weight(("matrix", id(node), tuple(sizes)), make, count)
    row = low.weight(("row", id(node)), make_bias, row_length(n, level) * 4)
    few = isinstance(rows, int) and rows < _FEW_ROWS
    direct = few or _reads_rows(k, level) if choice.rows is None else choice.rows == "direct"
    if direct and words is Words.FLOAT:
        read = Rows(low.contiguous(source), rows, k, k, lanes)
    else:
        read = packed_rows(low, source, rows, k, words)
    followers = (("Add",) if value is not node.outputs[0] else ()) + ending.operators
    tile = replace(row_tile(level, words), activation=ending.activation)
    low.lowered[ending.value] = target
    flops = 2.0 * n * k * (rows if isinstance(rows, int) else 64)
    emit_product(
        low,
        node,
        read,
        (weights, row),
        residual,
        target,
        tile,
        followers,
        flops,
        sizes,
        choice.order,
    )


def product_groups(
    n: int, rows: Dim, level: Level, widest: int | None = None, words: Words = Words.FLOAT
) -> list[int]:
    """Return how the blocks of ``n`` columns are split into groups for one tile each."""
    pixels = rows if isinstance(rows, int) else 64
    return split_blocks(-(-n // level.lanes), pixels, level, widest, words)


def row_tile(level: Level, words: Words) -> Tile:
    """Return a tile over the rows of a product, whose sizes ``emit_product`` fills in."""
    lanes = level.lanes
    return Tile(1, (), (), None, 0, lanes, 0, None, lanes, words=words)


def row_length(n: int, level: Level) -> int:
    """Return the length of a row of numbers, one a column, that the widest group may read."""
    return (-(-n // level.lanes) + 8) * level.lanes


@dataclass(frozen=True, slots=True)
class Rows:
    """The left side of a product, as tiles read it; sizes count 32-bit words.

    Attributes:
        tensor: Its memory.
        count: Rows.
        words: Words of one row.
        step: From one row to the next.
        plane: From one block of words to the next.
    """

    tensor: Tensor
    count: Dim
    words: int
    step: int
    plane: Dim


def emit_product(
    low: Lowering,
    node: ir.Node,
    rows: Rows,
    constants: tuple[Buffer, Buffer],
    residual: Tensor | None,
    target: Tensor,
    tile: Tile,
    followers: Sequence[str],
    flops: float,
    sizes: Sequence[int],
    order: str | None = None,
) -> None:
    """Write the kernel of a product of rows with packed weights.

    Args:
        low: Takes the kernel.
        node: What it computes.
        rows: The left side.
        constants: The packed weights, and what sums start from, one number a column.
        residual: Rows that are added, or None.
        target: The result, row-major; its last axis has the columns.
        tile: Words, activation and store; sizes and offsets are filled in.
        followers: Operators that are computed with it.
        flops: Operations, for profiles.
        sizes: Blocks of columns of each group, as the weights are packed.
        order: The loop order, if it is not left to the rules.
    """
    level, lanes = low.level, low.level.lanes
    n = target.shape[-1]
    assert isinstance(n, int)
    groups: list[Group] = []
    first = 0
    for size in sizes:
        groups.append(Group(first, size, first * lanes * rows.words))
        first += size
    tile = replace(
        tile,
        residuals=None if residual is None else (),
        depth=rows.words // lanes,
        rest=rows.words % lanes,
        source_plane=rows.plane if isinstance(rows.plane, int) else None,
        residual_plane=lanes,
    )
    body = Body()
    names = (
        body.pointer(rows.tensor),
        body.raw(constants[0]),
        body.raw(constants[1]),
        "0" if residual is None else body.pointer(residual),
        body.pointer(target, written=True, ctype="float"),
    )
    count, step = rows.count, rows.step
    if not isinstance(count, int):
        tasks = emit_rows(body, tile, count, n, groups, level, names, step, rows.plane)
        low.emit(node, body, tasks, work=flops / 100, followers=followers)
        return
    pixels = Pixels(
        lambda i: i * step,
        lambda i: i * n,
        None if residual is None else lambda i: i * n,
        count,
        0,
    )
    partial = n if n % lanes else 0
    plan = Contraction(tile, pixels, tuple(groups), 1, 0, 0, 0, partial, count * rows.words, order)
    fixed, work = emit_contraction(body, plan, level, names)
    low.emit(node, body, fixed, work=work, flops=flops, followers=followers)


def _reads_rows(k: int, level: Level) -> bool:
    """Whether a tile may read rows of ``k`` floats where they are.

    The rows of a tile must not fall into a few sets of a first-level cache of 64 sets and 8 ways:
    they, and the weights that pass by, have to stay there.
    """
    lines, rest = divmod(k * 4, 64)
    sets = 64 if rest else 64 // math.gcd(lines, 64)
    return sets * 4 >= tile_pixels(level, 2)


def packed_rows(low: Lowering, value: ir.Value | None, rows: Dim, k: int, words: Words) -> Rows:
    """Copy a matrix into blocks of columns, ``(k / lanes, rows + 2, lanes)`` of 32-bit words.

    A tile then reads one stream instead of one a row; rows whose distance is a power of two
    would fall into the same few sets of the cache. The two spare rows break that distance too.
    A value that is held back is computed straight into the blocks. Numbers are rounded to
    bfloat16, or bytes shifted, as the words want them.
    """
    dtype, each, store = _KEPT[words]
    lanes = low.level.lanes * each
    whole, rest = divmod(k, lanes)
    plane = (rows + 2) * lanes
    name = "" if value is None else str(value.name)
    buffer = low.new(f"{name} rows", dtype, ((whole + 1) * plane,)).buffer
    found = low.get(value)
    lazy = isinstance(found, Lazy) and not found.blocked
    expression = found.expression if isinstance(found, Lazy) and lazy else None
    if expression is not None:
        parts = [_columns(expression, rows, k, at, n, w) for at, n, w in _parts(whole, rest, lanes)]
        if any(part is None for part in parts):
            expression = None
    if expression is None:
        expression = Leaf(low.contiguous(value))
    label = "+".join(found.operators) if isinstance(found, Lazy) and lazy else "copy"
    for first, count, width in _parts(whole, rest, lanes):
        part = _columns(expression, rows, k, first, count, width)
        assert part is not None
        at = first // lanes * plane
        target = Tensor(buffer, dtype, (rows, count, width), (lanes, plane, 1), at)
        kept = shifted(part) if words is Words.QUAD else part
        emit_elementwise(low, f"{label} '{name}'", kept, target, store=store)
    step = low.level.lanes
    words_of_row = whole_words(k, words, low.level)
    if rest and words is Words.PAIR and uses_tiles(low.level, words):
        _fill_up(low, buffer, words, rows, plane, whole, rest)
    return Rows(Tensor(buffer, FLOAT32, (), (), 0), rows, words_of_row, step, (rows + 2) * step)


def _fill_up(
    low: Lowering, buffer: Buffer, words: Words, rows: Dim, plane: Dim, whole: int, rest: int
) -> None:
    """Clear what the last block has beyond a row's end: it counts nought, if it is finite."""
    dtype, each, _ = _KEPT[words]
    lanes = low.level.lanes * each
    at = whole * plane + rest
    target = Tensor(buffer, dtype, (rows, lanes - rest), (lanes, 1), at)
    emit_elementwise(low, f"clear '{buffer.name}'", Constant(0, dtype), target)


# How the numbers of a row are kept: their type, how many make a word, what stores them.
_KEPT = {
    Words.FLOAT: (FLOAT32, 1, ""),
    Words.PAIR: (BFLOAT16, 2, STORE),
    Words.QUAD: (UINT8, 4, ""),
}


def _parts(whole: int, rest: int, lanes: int) -> list[tuple[int, int, int]]:
    """Return first column, blocks and width of the whole blocks and of the last, partial one."""
    found = [(0, whole, lanes), (whole * lanes, 1, rest)]
    return [part for part in found if part[1] and part[2]]


def _columns(
    expression: Expression, rows: Dim, k: int, first: int, count: int, width: int
) -> Expression | None:
    """Return an expression over some columns of its operands, ``(rows, count, width)``."""
    if isinstance(expression, Leaf):
        tensor = expression.tensor
        if tensor.size == 1:
            return Leaf(replace(tensor, shape=(), strides=()))
        at = tensor.offset + first
        if tensor.contiguous and tensor.size == rows * k and tensor.shape[-1] == k:
            strides: tuple[Dim, ...] = (k, width, 1)
            return Leaf(replace(tensor, shape=(rows, count, width), strides=strides, offset=at))
        if tensor.contiguous and tensor.size == k and tensor.shape[-1] == k:
            return Leaf(replace(tensor, shape=(count, width), strides=(width, 1), offset=at))
        return None
    if isinstance(expression, Apply):
        arguments = [
            _columns(argument, rows, k, first, count, width) for argument in expression.arguments
        ]
        kept = tuple(argument for argument in arguments if argument is not None)
        return replace(expression, arguments=kept) if len(kept) == len(arguments) else None
    return expression


def _lower_general(low: Lowering, node: ir.Node) -> None:
    """Lower a product of two computed matrices, or of stacks of them."""
    a, b = low.plain(node.inputs[0]), low.plain(node.inputs[1])
    if len(a.shape) < 2 or len(b.shape) < 2:
        raise NotNative("a product with a vector")
    out = node.outputs[0]
    target = low.result(out)
    batch = target.shape[:-2]
    a = a.broadcast((*batch, *a.shape[-2:]))
    b = b.broadcast((*batch, *b.shape[-2:]))
    emit_batched(low, node, a, b, target)
    low.lowered[out] = target


RULES: dict[str, Rule] = {"Gemm": lower_gemm, "MatMul": lower_matmul}
