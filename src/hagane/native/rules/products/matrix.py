"""Matrix products: register tiles over rows, with weights packed ahead where they are constant."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
import onnx_ir as ir

from hagane.machine import Level, multiplies_bfloat16
from hagane.native.kernels.elementwise_loops import emit_copy
from hagane.native.kernels.expression import Expression
from hagane.native.kernels.kernel import Body, work_of
from hagane.native.kernels.names import sizes as sizes_text
from hagane.native.kernels.packing import Packing, padded_rows
from hagane.native.kernels.tensor import Buffer, Kind, Tensor
from hagane.native.layouts.pairs import BFLOAT16, paired_weights
from hagane.native.layouts.rows import Product, Rows
from hagane.native.lowering.choices import BY_RULE
from hagane.native.lowering.epilogue import Epilogue, follow, is_ready
from hagane.native.lowering.facts import NotNative
from hagane.native.lowering.state import Lowering, Rule
from hagane.native.rules.onednn.product import lower_product
from hagane.native.rules.products.gemm import emit_batched
from hagane.native.rules.products.packed import packed_rows, product_key
from hagane.native.rules.products.thin import FEW_COLUMNS, FEW_ROWS
from hagane.native.rules.products.typed_product import lower_typed_product
from hagane.native.tiles.contraction import Contraction, Group, Pixels, pack_weights, split_blocks
from hagane.native.tiles.dynamic_rows import emit_rows
from hagane.native.tiles.matrix import emit_tile_rows
from hagane.native.tiles.register_loops import emit_contraction
from hagane.native.tiles.tile import (
    NO_ACTIVATION,
    Store,
    Tile,
    Words,
    tile_pixels,
    uses_tiles,
    whole_words,
)
from hagane.native.tiles.triples import splits
from hagane.ops.definition import Array
from hagane.symbolic import Dim, ceildiv, product

# Fewer rows than this are read where they are.
_FEW_ROWS = 4
# The tiles of more rows than this are not listed, matrix tiles least of all.
_LISTED_ROWS = 1 << 20
# The estimate of an unknown number of rows, from how many on matrix tiles multiply numbers in
# pieces, and how many make a task then.
_USUAL_ROWS, _TILE_ROWS, _TASK_ROWS = 128, 24, 256


def lower_matmul(low: Lowering, node: ir.Node) -> None:
    """Lower MatMul; a constant matrix on the right is packed ahead."""
    a, b = node.inputs
    if not low.facts.is_float(a):
        lower_typed_product(low, node)
        return
    weight = low.facts.constant(b)
    if weight is not None and weight.ndim == 2 and low.facts.shape(a):
        _lower_product(low, node, a, weight, None)
        return
    _lower_general(low, node)


def lower_gemm(low: Lowering, node: ir.Node) -> None:
    """Lower Gemm."""
    attributes = low.facts.attributes(node)
    a, b = node.inputs[:2]
    c = node.inputs[2] if len(node.inputs) > 2 else None
    if not low.facts.is_float(a):
        raise NotNative(f"element type {low.facts.dtype(a)}")
    weight, bias = low.facts.constant(b), low.facts.constant(c)
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
    array = low.facts.constant(other)
    if array is None or array.size != n or (array.ndim and array.shape[-1] != n):
        return None
    return node, array.reshape(-1)


def _with_row(low: Lowering, epilogue: Epilogue, n: int) -> tuple[Epilogue, Array | None]:
    """Return an epilogue with the constant row that is added behind its residual, and the row."""
    added = _added_row(low, epilogue.value, n)
    if added is None:
        return epilogue, None
    node, row = added
    low.done.add(node)
    behind = follow(low, node.outputs[0], residuals=False)
    nodes = (*epilogue.nodes, node, *behind.nodes)
    return replace(behind, residual=epilogue.residual, nodes=nodes), row


def _lower_product(
    low: Lowering, node: ir.Node, source: ir.Value | None, weight: Array, bias: Array | None
) -> None:
    k, n = weight.shape
    value = node.outputs[0]
    rows = product(low.facts.shape(source)[:-1])
    if k == 0 or n == 0 or rows == 0:
        raise NotNative("an empty matrix")
    followers: tuple[ir.Node, ...] = ()
    if bias is None:
        added = _added_row(low, value, n)
        if added is not None:
            follower, bias = added
            followers = (follower,)
            low.done.add(follower)
            value = follower.outputs[0]
    level, lanes = low.facts.level, low.facts.level.lanes
    epilogue = follow(low, value)
    if bias is None and epilogue.residual is not None and epilogue.activation == NO_ACTIVATION:
        epilogue, bias = _with_row(low, epilogue, n)
    residual = None if epilogue.residual is None else low.forms.contiguous(epilogue.residual)
    if residual is not None and n % lanes and residual.buffer.kind in (Kind.INPUT, Kind.MOVING):
        # A tile may read past the end of the residual; memory of the caller ends there.
        residual = emit_copy(
            low.recorder, residual, low.recorder.new("residual", residual.dtype, residual.shape)
        )
    target = low.forms.result(epilogue.value)
    followers += epilogue.nodes
    assert source is not None
    if low.facts.choices and lower_product(
        low, node, source, weight, bias, epilogue, residual, target, followers
    ):
        return
    words = _words(low, rows, k, n)
    choice = low.facts.choices.get(product_key(low, rows, k, n), BY_RULE)
    sizes = product_groups(n, rows, level, choice.blocks, words)

    packing = Packing(pack_matrix, (weight, tuple(sizes), level, words))
    own = np.zeros(n, np.float32) if bias is None else np.broadcast_to(bias.reshape(-1), (n,))
    biases = Packing(padded_rows, ((own,), row_length(n, level), "float32"))
    deep = k if words is Words.TRIPLE else whole_words(k, words, level)
    count = -(-n // lanes) * lanes * deep * 4
    weights = low.recorder.weight(("matrix", id(node), tuple(sizes)), packing, count)
    row = low.recorder.weight(("row", id(node)), biases, row_length(n, level) * 4)
    few = isinstance(rows, int) and rows < _FEW_ROWS
    direct = few or _reads_rows(k, level) if choice.rows is None else choice.rows == "direct"
    if direct and words is Words.FLOAT:
        read = Rows(low.forms.contiguous(source), rows, k, k, lanes, words)
    else:
        read = packed_rows(low, source, rows, k, words)
    plain = None
    if words is Words.TRIPLE and not isinstance(rows, int):
        plain = Rows(low.forms.contiguous(source), rows, k, k, lanes, Words.FLOAT)
    missing = whole_words(k, words, level) * 2 - k if words is Words.TRIPLE else 0
    tile = replace(row_tile(level, words), activation=epilogue.activation, missing=missing)
    low.forms[epilogue.value] = target

    def emit(to: Tensor | Rows, after: Expression | None = None) -> None:
        emit_product(
            low, node, read, (weights, row), residual, to, tile, followers, 2.0 * n * k, sizes,
            choice.order, after, plain,
        )  # fmt: skip

    emit(target)
    if uses_tiles(level, words) and plain is None:
        low.forms.products[target.buffer] = Product(
            epilogue.value, len(low.recorder.kernels) - 1, n, emit
        )


def _words(low: Lowering, rows: Dim, k: int, n: int) -> Words:
    """Return the words of a product's two sides."""
    if low.facts.pairs:
        return Words.PAIR if low.facts.level.tiles or k % 2 == 0 else Words.FLOAT
    if low.facts.words is Words.FLOAT:
        return Words.FLOAT
    count = rows if isinstance(rows, int) else _USUAL_ROWS
    return (
        Words.TRIPLE
        if splits(low.facts.threads, count, k, (-(-count // 16), k, n), k)
        else Words.FLOAT
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


def emit_product(
    low: Lowering,
    node: ir.Node,
    rows: Rows,
    constants: tuple[Buffer, Buffer],
    residual: Tensor | None,
    target: Tensor | Rows,
    tile: Tile,
    followers: Sequence[ir.Node],
    each: float,
    sizes: Sequence[int],
    order: str | None = None,
    after: Expression | None = None,
    plain: Rows | None = None,
) -> None:
    """Write the kernel of a product of rows with packed weights.

    Args:
        low: Takes the kernel.
        node: The node that it computes.
        rows: The left side.
        constants: The packed weights, and the starts of sums, one number a column.
        residual: Rows that are added, or None.
        target: The result, row-major, its last axis the columns; or in blocks of pairs, which
            matrix tiles write.
        tile: Words, activation and store; sizes and offsets are filled in.
        followers: Nodes that are computed with it.
        each: Operations of a row.
        sizes: Blocks of columns of each group, as the weights are packed.
        order: The loop order, if it is not left to the rules.
        after: Computed on results before they are stored, by matrix tiles.
        plain: The rows as floats, for vectors to multiply if there are few, where nobody knows.
    """
    level, lanes = low.facts.level, low.facts.level.lanes
    if isinstance(target, Rows):
        n, step_out, plane_out = target.words * 2, target.step, target.plane
        tile = replace(tile, store=Store.of(target.kept), target_parts=2)
    else:
        columns = target.shape[-1]
        assert isinstance(columns, int)
        n, step_out, plane_out = columns, columns, lanes
    groups: list[Group] = []
    first, deep = 0, rows.words * tile.words.weights - tile.missing
    for size in sizes:
        groups.append(Group(first, size, first * lanes * deep))
        first += size
    tile = replace(
        tile,
        residuals=None if residual is None else (),
        depth=rows.words // lanes,
        rest=rows.words % lanes,
        source_plane=rows.plane if isinstance(rows.plane, int) else None,
        streams=_streams(rows, level, tile.words),
        target_plane=plane_out if isinstance(plane_out, int) else 0,
        residual_plane=lanes,
    )
    name = f"{node.op_type.lower()}_{sizes_text((rows.count, rows.words, n))}"
    body = Body()
    names = (
        body.pointer(rows.tensor),
        body.raw(constants[0]),
        body.raw(constants[1]),
        "0" if residual is None else body.pointer(residual),
        body.pointer(
            target.tensor if isinstance(target, Rows) else target, written=True, ctype="float"
        ),
    )
    count, step = rows.count, rows.step
    flops = work_of(count, each)
    if plain is not None:
        few = body.pointer(plain.tensor)
        chunks = ceildiv(count, _TASK_ROWS)
        body.add(f"if ({body.size(count)} >= {_TILE_ROWS}) {{")
        tasks = emit_tile_rows(
            body,
            tile,
            count,
            n,
            groups,
            names,
            step,
            rows.plane,
            (step_out, plane_out),
            after,
            chunks,
        )
        depth, rest = divmod(plain.words, lanes)
        vectors = replace(
            tile, words=Words.FLOAT, depth=depth, rest=rest, missing=0, source_plane=lanes
        )
        body.add("} else {")
        emit_rows(
            body, vectors, count, n, groups, level, (few, *names[1:]), plain.step, lanes, chunks
        )
        body.add("}")
        work = work_of(count, each / 100)
        low.recorder.emit(node, body, tasks, work=work, flops=flops, followers=followers, name=name)
        return
    if (not isinstance(count, int) or count > _LISTED_ROWS) and uses_tiles(level, tile.words):
        tasks = emit_tile_rows(
            body, tile, count, n, groups, names, step, rows.plane, (step_out, plane_out), after
        )
        work = work_of(count, each / 1000)
        low.recorder.emit(node, body, tasks, work=work, flops=flops, followers=followers, name=name)
        return
    if not isinstance(count, int):
        tasks = emit_rows(body, tile, count, n, groups, level, names, step, rows.plane)
        work = work_of(count, each / 100)
        low.recorder.emit(node, body, tasks, work=work, flops=flops, followers=followers, name=name)
        return
    pixels = Pixels(
        lambda i: i * step,
        lambda i: i * step_out,
        None if residual is None else lambda i: i * n,
        count,
        0,
    )
    plan = Contraction(
        tile,
        pixels,
        tuple(groups),
        images=1,
        source_image=0,
        target_image=0,
        residual_image=0,
        width=n,
        padded=False,
        source_floats=count * rows.words,
        order=order,
        threads=low.facts.threads,
    )
    fixed, work = emit_contraction(body, plan, level, names, after)
    low.recorder.emit(node, body, fixed, work=work, flops=flops, followers=followers, name=name)


def _streams(rows: Rows, level: Level, words: Words) -> int:
    """Return in how many parts few rows are summed: weights pass by but once, from memory."""
    few = isinstance(rows.count, int) and rows.count < _FEW_ROWS
    if not few or not level.assembly or uses_tiles(level, words):
        return 1
    blocks = rows.words // level.lanes
    return next(n for n in (4, 2, 1) if blocks % n == 0) if blocks else 1


def _reads_rows(k: int, level: Level) -> bool:
    """Whether a tile may read rows of ``k`` floats where they are.

    The rows of a tile must not fall into a few sets of a first-level cache of 64 sets and 8 ways:
    they, and the weights that pass by, have to stay there.
    """
    lines, rest = divmod(k * 4, 64)
    sets = 64 if rest else 64 // math.gcd(lines, 64)
    return sets * 4 >= tile_pixels(level, 2)


def _lower_general(low: Lowering, node: ir.Node) -> None:
    """Lower a product of two computed matrices, or of stacks of them."""
    halves = _halves(low, node)
    a, b = (low.forms.plain(value) for value in halves or node.inputs[:2])
    if not a.shape or not b.shape:
        raise NotNative("a product with a number")
    out, row = node.outputs[0], None
    # A vector is a row, or a column, and the result lacks its axis.
    lacking = (len(a.shape) == 1) + (len(b.shape) == 1)
    batch = low.facts.shape(out)[: len(low.facts.shape(out)) - 2 + lacking]
    if len(a.shape) == 1:
        a = replace(a, shape=(1, *a.shape), strides=(0, *a.strides))
    if len(b.shape) == 1:
        b = replace(b, shape=(*b.shape, 1), strides=(*b.strides, 0))
    added = _added_computed_row(low, out, b.shape[-1])
    followers: tuple[ir.Node, ...] = ()
    if added is not None:
        follower, row = added
        low.done.add(follower)
        out, followers = follower.outputs[0], (follower,)
    target = low.forms.result(out)
    low.stretched.add(node)
    a = a.broadcast((*batch, *a.shape[-2:]))
    b = b.broadcast((*batch, *b.shape[-2:]))
    whole = target.reshaped((*batch, a.shape[-2], b.shape[-1])) if lacking else target
    emit_batched(low, node, a, b, whole, row, followers)
    low.forms[out] = target


def _halves(low: Lowering, node: ir.Node) -> tuple[ir.Value, ir.Value] | None:
    """Return the bfloat16 that both sides of a product are, where pairs of them are multiplied."""
    found = [_narrow(low, value) for value in node.inputs[:2]]
    shapes = [low.facts.shape(value) for value in node.inputs[:2]]
    if any(len(shape) < 2 for shape in shapes) or not multiplies_bfloat16(low.facts.level):
        return None
    m, k, n = shapes[0][-2], shapes[0][-1], shapes[1][-1]
    least = ((m, FEW_ROWS), (n, FEW_COLUMNS), (k, 1))
    if any(isinstance(size, int) and size <= few for size, few in least):
        return None  # these are not packed, but read as floats
    a, b = found
    return None if a is None or b is None else (a, b)


def _narrow(low: Lowering, value: ir.Value | None) -> ir.Value | None:
    """Return the value of bfloat16 that a float is the same number as; None if there is none."""
    cast = None if value is None else value.producer()
    if cast is None or cast.op_type != "Cast" or cast.domain:
        return None
    source = cast.inputs[0]
    return source if low.facts.dtype(source) == BFLOAT16 else None


def _added_computed_row(low: Lowering, value: ir.Value, n: Dim) -> tuple[ir.Node, Tensor] | None:
    """Return the addition of a row that follows, as long as those of the product, and the row."""
    node = low.only_use(value)
    if node is None or node.op_type != "Add":
        return None
    (other,) = [v for v in node.inputs if v is not value] or [None]
    if other is None or low.facts.shape(other) != (n,) or not is_ready(low, other):
        return None
    return node, low.forms.contiguous(other)


RULES: dict[str, Rule] = {"Gemm": lower_gemm, "MatMul": lower_matmul}


def pack_matrix(weight: Array, sizes: Sequence[int], level: Level, words: Words) -> Iterable[Array]:
    """Return a right side ``(k, n)`` of numbers in the order in which tiles read it."""
    maps = weight.T[:, :, None, None]
    packed = paired_weights(maps, level) if words is Words.PAIR else maps
    return pack_weights(packed, sizes, level, level.lanes, words)
