"""MatMulBnb4: products with weights of four bits from a table of sixteen numbers.

Both tables are those of bitsandbytes: FP4, a float of four bits, and NF4, quantiles of the normal
distribution (Dettmers et al., QLoRA, 2023, appendix E).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hagane.ops.builder import content_of, op
from hagane.ops.context import InferContext
from hagane.ops.contrib.declare import DOMAIN, FLOATS, INT, declare
from hagane.ops.definition import Array, OpDef
from hagane.ops.precision import composed_wide
from hagane.ops.vjp import PACKED

_FP4 = [0, 1 / 192, 2 / 3, 1, 1 / 3, 1 / 2, 1 / 6, 1 / 4]
_NF4 = [
    *(-1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453),
    *(-0.28444138169288635, -0.18477343022823334, -0.09105003625154495, 0.0),
    *(0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224),
    *(0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0),
]
# By the attribute quant_type.
TABLES = tuple(np.array(table, np.float32) for table in ([*_FP4, *(-each for each in _FP4)], _NF4))


def _weights(b: Array, absmax: Array, rows: int, columns: int, block: int, kind: int) -> Array:
    """Return the weights (columns, rows) of bytes that hold two codes each, the first above."""
    codes = np.stack([b.ravel() >> 4, b.ravel() & 15], axis=-1).ravel()[: rows * columns]
    largest = np.repeat(absmax.astype(np.float32).ravel(), block)[: rows * columns]
    found: Array = (TABLES[kind][codes] * largest).reshape(columns, rows)
    return found


def _matmul_bnb4(
    a: Array,
    b: Array,
    absmax: Array,
    *,
    K: int,
    N: int,
    block_size: int,
    quant_type: int,
    training_mode: int = 0,
    transB: int = 1,
) -> Array:
    """``a @ wᵀ`` with w, (N, K), in blocks of its elements one after the other."""
    weights = _weights(b, absmax, K, N, block_size, quant_type)
    return (a.astype(np.float32) @ weights.T).astype(a.dtype)


def _infer(ctx: InferContext) -> Sequence[Any]:
    shape, rows, columns = ctx.shape(0), ctx.attr("K"), ctx.attr("N")
    if not ctx.attr("transB"):
        ctx.fail("a product with the weights as they are (transB=0) is not supported")
    if ctx.attr("quant_type") not in (0, 1):
        ctx.fail(f"expected quant_type 0 (FP4) or 1 (NF4), got {ctx.attr('quant_type')}")
    if min(rows, columns) < 0 or ctx.attr("block_size") <= 0:
        ctx.fail(
            f"expected sizes K={rows} and N={columns}, and a positive "
            f"block_size={ctx.attr('block_size')}"
        )
    ctx.unify(shape[-1], rows, f"expected {rows} columns")
    blocks = -(-rows * columns // ctx.attr("block_size"))
    for place, count in ((1, (rows * columns + 1) // 2), (2, blocks)):
        ctx.unify(ctx.shape(place, 1)[0], count, f"expected {count} elements of input {place}")
    return [(*shape[:-1], columns)]


@composed_wide
def _composed(
    a: Any,
    b: Any,
    absmax: Any,
    *,
    K: int,
    N: int,
    block_size: int,
    quant_type: int,
) -> Any:
    codes, largest = content_of(b), content_of(absmax)
    if codes is None or largest is None:
        return None
    weights = _weights(codes, largest, K, N, block_size, quant_type)
    return op("MatMul", a, np.ascontiguousarray(weights.T))


OPERATORS = (
    OpDef("MatMulBnb4", _infer, _matmul_bnb4, domain=DOMAIN, compose=_composed, vjp=PACKED),
)

SCHEMAS = {
    (DOMAIN, "MatMulBnb4"): declare(
        "A:T1, B:T2, absmax:T1 -> Y:T1",
        {
            "K": INT,
            "N": INT,
            "block_size": INT,
            "quant_type": INT,
            "training_mode": 0,
            "transB": 1,
        },
        required=("K", "N", "block_size", "quant_type"),
        T1=FLOATS,
        T2="uint8",
    ),
}
