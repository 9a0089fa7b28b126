"""Products of rows with constant weights that oneDNN computes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import onnx_ir as ir

from hagane.native.kernels.elementwise_loops import emit_elementwise
from hagane.native.kernels.kernel import Body
from hagane.native.kernels.tensor import Blocked, Tensor
from hagane.native.layouts.pairs import BFLOAT16, STORE
from hagane.native.lowering.epilogue import Epilogue
from hagane.native.lowering.forms import Lazy, operand
from hagane.native.lowering.state import Lowering
from hagane.native.rules.onednn.calls import (
    ALIGNED,
    COLUMNS,
    FAILURE,
    FLOPS_PER_NS,
    PIECE_BYTES,
    ROWS,
    WEIGHTS_BYTES,
    Load,
    Split,
    aligned,
    bias_of,
    call,
    chosen,
    declare_calls,
    label,
    loop_over_vectors,
    packed,
    split,
    tasks_wanted,
)
from hagane.native.rules.onednn.operations import Operation, product
from hagane.native.rules.products.packed import product_key
from hagane.native.tiles.tile import NO_ACTIVATION, bounded
from hagane.ops.definition import Array
from hagane.symbolic import Dim


@dataclass(frozen=True, slots=True)
class Pieces:
    """How a product is divided.

    Attributes:
        rows: Of the left side.
        columns: Of the weights.
        by_columns: Whether neighbouring tasks share columns of the weights, or else rows.
        operations: For each length of rows one for each length of columns.
    """

    rows: Split
    columns: Split
    by_columns: bool
    operations: tuple[Operation, ...]


def divided_product(
    low: Lowering, rows: Dim, k: int, n: int, *, biased: bool = False, order: str | None = None
) -> Pieces | None:
    """Return how oneDNN computes a product of (rows, k) and (k, n), or None if it does not."""
    if not isinstance(rows, int):
        return None
    itemsize = 2 if low.facts.pairs else 4
    columns = split(n, WEIGHTS_BYTES // (k * itemsize), COLUMNS)
    height = split(rows, PIECE_BYTES // (k * itemsize + columns.length * 4), ROWS)
    wanted = tasks_wanted(low.facts.threads, 2.0 * rows * k * n)
    by_columns = k * n > rows * (k + n) if order is None else order == "groups"
    if height.count * columns.count < wanted:
        parts = -(-wanted // (height.count if by_columns else columns.count))
        axis, unit = (columns, COLUMNS) if by_columns else (height, ROWS)
        finer = split(axis.total, -(-axis.total // parts), unit)
        height, columns = (height, finer) if by_columns else (finer, columns)
    operations: list[Operation] = []
    for high in height.lengths:
        for wide in columns.lengths:
            found = product(high, k, wide, low.facts.pairs, biased)
            if found is None:
                return None
            operations.append(found)
    return Pieces(height, columns, by_columns, tuple(operations))


def lower_product(
    low: Lowering,
    node: ir.Node,
    source: ir.Value,
    weight: Array,
    bias: Array | None,
    epilogue: Epilogue,
    residual: Tensor | None,
    target: Tensor,
    followers: Sequence[ir.Node],
) -> bool:
    """Lower a product to calls of oneDNN if that was chosen; return whether it was.

    Args:
        low: Takes the kernels.
        node: The product.
        source: Its left side.
        weight: Its right side, ``(k, n)``.
        bias: The summand of each row, or None.
        epilogue: Its bounds are kept.
        residual: The summand before these, ``(rows, n)``, or None.
        target: The result, in row-major order.
        followers: Nodes that are computed with it.
    """
    k, n = weight.shape
    rows = target.size // n
    choice = chosen(low, product_key(low, rows, k, n))
    if choice is None:
        return False
    pieces = divided_product(low, rows, k, n, biased=bias is not None, order=choice.order)
    if pieces is None:
        return False
    height, columns = pieces.rows, pieces.columns
    read = _rounded(low, source) if low.facts.pairs else low.forms.contiguous(source)
    body = Body()
    declare_calls(low, body, node, pieces.operations)
    own = pieces.operations[: len(columns.lengths)]
    weights, step = packed(low, node, columns, own, weight, 1)
    s, w = body.pointer(read), body.raw(weights, ctype="char")
    row = bias_of(low, node, bias)
    b = "0" if row is None else f"{body.raw(row)} + first"
    r = "" if residual is None else body.pointer(residual)
    d = body.pointer(target, written=True)
    slow, fast, most = ("b", "a", height) if pieces.by_columns else ("a", "b", columns)
    # oneDNN's fast kernels write whole rows only.
    apart = columns.count > 1
    size = aligned(height.length * columns.length * 4) if apart else 0
    body.add(
        f"int64_t {slow} = q / {most.count}, {fast} = q % {most.count};",
        f"int64_t top = a * {height.length}, first = b * {columns.length};",
        f"int64_t rows = {height.size('a')}, columns = {columns.size('b')};",
        f"float *d = {d} + top * {n} + first;",
        f"float *made = {'(float *)scratch' if apart else 'd'};",
        call(
            f"{height.number('a')} * {len(columns.lengths)} + {columns.number('b')}",
            f"{s} + top * {k}",
            f"{w} + b * {step}",
            b,
            "made",
            f"scratch + {size}",
        ),
    )

    def value(load: Load) -> str:
        text = load(f"made + i * {'columns' if apart else n}")
        if r:
            text += " + " + load(f"{r} + (top + i) * {n} + first")
        return bounded(text, epilogue.activation)

    if apart or r or epilogue.activation != NO_ACTIVATION:
        loop = loop_over_vectors("columns", f"d + i * {n}", "v_store", value)
        body.add(f"for (int64_t i = 0; i < rows; i++) {loop}")
    flops = 2.0 * rows * k * n
    low.recorder.emit(
        label(node, followers),
        body,
        height.count * columns.count,
        work=flops / FLOPS_PER_NS,
        flops=flops,
        scratch=size + max(made.scratch_bytes for made in pieces.operations) + 2 * ALIGNED,
        failure=FAILURE,
        followers=(node, *followers),
    )
    low.forms[epilogue.value] = target
    return True


def _rounded(low: Lowering, source: ir.Value) -> Tensor:
    """Return a matrix rounded to bfloat16; one that is held back is computed straight into it."""
    if source not in low.forms.rounded:
        found = low.forms.get(source)
        if isinstance(found, Blocked) or (isinstance(found, Lazy) and found.blocked):
            found = low.forms.plain(source)
        target = low.recorder.new(f"{source.name} rounded", BFLOAT16, low.facts.shape(source))
        emit_elementwise(
            low.recorder, f"round '{source.name}'", operand(found), target, store=STORE
        )
        low.forms.rounded[source] = target
    return low.forms.rounded[source]
