"""The left side of a product: rows in blocks of columns, as tiles read them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import onnx_ir as ir

from hagane.native.kernels.elementwise_loops import emit_elementwise
from hagane.native.kernels.expression import (
    FLOAT32,
    Apply,
    Constant,
    Expression,
    Leaf,
    leaves,
    vectorizes,
)
from hagane.native.kernels.tensor import Buffer, Tensor
from hagane.native.layouts.pairs import BFLOAT16, SPLIT, STORE
from hagane.native.layouts.quads import UINT8, shifted
from hagane.native.layouts.rows import Rows
from hagane.native.lowering.facts import AT_RUN_TIME, NotNative
from hagane.native.lowering.forms import Lazy, Lowered, operand
from hagane.native.tiles.tile import Words, uses_tiles, whole_words
from hagane.symbolic import Dim

if TYPE_CHECKING:
    from hagane.native.lowering.state import Lowering


def packed_rows(low: Lowering, value: ir.Value | None, rows: Dim, k: int, words: Words) -> Rows:
    """Copy a matrix into blocks of columns, ``(k / lanes, rows + 2, lanes)`` of 32-bit words.

    A tile then reads one stream instead of one a row; rows whose distance is a power of two
    would fall into the same few sets of the cache. The two spare rows break that distance too.
    A value that is held back is computed straight into the blocks. Numbers are rounded to
    bfloat16, or bytes shifted, as the words want them.
    """
    assert value is not None
    if (value, words) in low.forms.packed:
        return low.forms.packed[value, words]
    found = low.forms.get(value)
    made = _by_producer(low, value, found, rows, k, words)
    low.forms.packed[value, words] = made or _pack(low, value, found, rows, k, words)
    return low.forms.packed[value, words]


def _pack(low: Lowering, value: ir.Value, found: Lowered, rows: Dim, k: int, words: Words) -> Rows:
    dtype, each, store = _KEPT[words]
    lanes = low.facts.level.lanes * each
    step = lanes * words.pieces
    whole, rest = divmod(k, lanes)
    name = str(value.name)
    packed = new_rows(low, name, rows, k, words)
    buffer, plane = packed.tensor.buffer, packed.plane * each
    lazy = isinstance(found, Lazy) and not found.blocked
    expression = found.expression if isinstance(found, Lazy) and lazy else None
    if expression is not None:
        parts = [_columns(expression, rows, k, at, n, w) for at, n, w in _parts(whole, rest, lanes)]
        if any(part is None for part in parts):
            expression = None
    if expression is None:
        expression = Leaf(low.forms.contiguous(value))
    nodes = found.nodes if isinstance(found, Lazy) and lazy else ()
    label = "+".join(node.op_type for node in nodes) or "copy"
    for first, count, width in _parts(whole, rest, lanes):
        part = _columns(expression, rows, k, first, count, width)
        if part is None:
            raise NotNative(AT_RUN_TIME)  # the columns are k only if the sizes turn out so
        at = first // lanes * plane
        target = Tensor(buffer, dtype, (rows, count, width), (step, plane, 1), at)
        kept = shifted(part) if words is Words.QUAD else part
        emit_elementwise(low.recorder, f"{label} '{name}'", kept, target, store=store, nodes=nodes)
    if rest and each == 2 and uses_tiles(low.facts.level, words):
        _fill_up(low, buffer, words, rows, plane, whole, rest)
    return packed


def new_rows(low: Lowering, name: str, rows: Dim, k: int, words: Words) -> Rows:
    """Return fresh memory for ``rows`` rows of ``k`` numbers in blocks."""
    lanes = low.facts.level.lanes
    step = lanes * words.pieces
    plane = (rows + 2) * step
    count = (k // (lanes * words.each) + 1) * plane
    buffer = low.recorder.new(f"{name} rows", FLOAT32, (count,)).buffer
    tensor = Tensor(buffer, FLOAT32, (), (), 0)
    return Rows(tensor, rows, whole_words(k, words, low.facts.level), step, plane, words)


def _by_producer(
    low: Lowering, value: ir.Value, found: Lowered, rows: Dim, k: int, words: Words
) -> Rows | None:
    """Let the product that a value is a function of store it in blocks at once, if it can."""
    expression = found.expression if isinstance(found, Lazy) else operand(found)
    read = set(leaves(expression))
    if words.each != 2 or len(read) != 1 or not vectorizes(expression):
        return None
    (tensor,) = read
    made = low.forms.products.get(tensor.buffer)
    if made is None or low.facts.uses(made.value) != 1 or made.value in low.facts.outputs:
        return None
    if (k, rows * k) != (made.columns, tensor.size) or not tensor.contiguous or k % 32:
        return None
    packed = new_rows(low, str(value.name), rows, k, words)
    made.again(packed, expression if isinstance(expression, Apply) else None)
    kernel = low.recorder.kernels.pop()
    if isinstance(found, Lazy):
        kernel.label = f"{kernel.label} -> {found.operators}"
    low.recorder.kernels[made.index] = kernel
    return packed


def _fill_up(
    low: Lowering, buffer: Buffer, words: Words, rows: Dim, plane: Dim, whole: int, rest: int
) -> None:
    """Clear the last block beyond a row's end: it counts nought, if it is finite."""
    dtype, each, _ = _KEPT[words]
    lanes, pieces = low.facts.level.lanes * each, words.pieces
    at = whole * plane + rest
    shape, strides = (rows, pieces, lanes - rest), (lanes * pieces, lanes, 1)
    target = Tensor(buffer, dtype, shape, strides, at)
    emit_elementwise(low.recorder, f"clear '{buffer.name}'", Constant(0, dtype), target)


# How the numbers of a row are kept: type, how many make a word, the function that stores them.
_KEPT = {
    Words.FLOAT: (FLOAT32, 1, ""),
    Words.PAIR: (BFLOAT16, 2, STORE),
    Words.TRIPLE: (BFLOAT16, 2, SPLIT),
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


def product_key(low: Lowering, rows: Dim, k: int, n: int) -> str:
    """Return all that the best form of a product of (rows, k) and (k, n) depends on."""
    return f"product {rows}x{k}x{n} {low.facts.circumstances}"
