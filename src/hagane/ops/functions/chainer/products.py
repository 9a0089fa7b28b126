"""Chainer's products: linear layers, embeddings, sums over axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.ops.builder import dtype_of, op, rank_of, shape_of
from hagane.ops.functions.numbers.elementary import (
    add,
    cast,
    mask_like,
    mul,
    transpose,
    unsqueeze,
    where,
)
from hagane.symbolic import product

_INT64 = ir.DataType.INT64


def linear(x: Any, weight: Any, bias: Any, batch_axes: int = 1) -> Any:
    """Return ``x @ weight.T + bias`` in the element type of ``x``.

    Args:
        x: (*batch, *features); the features count as one axis.
        weight: (outputs, features).
        bias: (outputs,), or None.
        batch_axes: The number of axes of the batch.

    Returns:
        (*batch, outputs).
    """
    lead, dtype = list(shape_of(x)[:batch_axes]), dtype_of(x)
    given = [cast(weight, dtype), None if bias is None else cast(bias, dtype)]
    out, features = shape_of(weight)
    if rank_of(x) != 2 or batch_axes != 1:
        x = op("Reshape", x, [product(lead), features], allowzero=1)
    y = op("Gemm", x, *given, transB=1)
    return y if len(lead) == 1 else op("Reshape", y, [*lead, out], allowzero=1)


def tensordot(a: Any, b: Any, over_a: Sequence[int], over_b: Sequence[int]) -> Any:
    """Return the sum of products over pairs of axes, as ``numpy.tensordot``."""
    rest_a = [axis for axis in range(rank_of(a)) if axis not in over_a]
    rest_b = [axis for axis in range(rank_of(b)) if axis not in over_b]
    left, right = shape_of(a), shape_of(b)
    rows = transpose(a, [*rest_a, *over_a])
    columns = transpose(b, [*over_b, *rest_b])
    inner = product([left[axis] for axis in over_a])
    outer = [left[axis] for axis in rest_a], [right[axis] for axis in rest_b]
    rows = op("Reshape", rows, [product(outer[0]), inner], allowzero=1)
    columns = op("Reshape", columns, [inner, product(outer[1])], allowzero=1)
    sizes = np.zeros(0, np.int64) if not [*outer[0], *outer[1]] else [*outer[0], *outer[1]]
    return op("Reshape", op("MatMul", rows, columns), sizes, allowzero=1)


def bilinear(
    x: Any, y: Any, weight: Any, left: Any = None, right: Any = None, bias: Any = None
) -> Any:
    """Return ``x W y``, and ``x V + y U + b`` beside it where these are given.

    Args:
        x: (batch, ...), of ``l`` features.
        y: (batch, ...), of ``r`` features.
        weight: (l, r, outputs).
        left: (l, outputs); all of left, right and bias are given, or none.
        right: (r, outputs).
        bias: (outputs,).
    """
    x, y = (_rows(one, shape_of(weight)[axis]) for axis, one in enumerate((x, y)))
    found = op("Einsum", x, y, weight, equation="ij,ik,jkl->il")
    if left is None:
        return found
    return add(add(add(found, op("MatMul", x, left)), op("MatMul", y, right)), bias)


def _rows(x: Any, features: Any) -> Any:
    return x if rank_of(x) == 2 else op("Reshape", x, [shape_of(x)[0], features], allowzero=1)


def embed_id(places: Any, weight: Any, ignored: int | None) -> Any:
    """Return the rows of a weight at places; zeros at ignored places."""
    indices = cast(places, _INT64)
    if ignored is None:
        return op("Gather", weight, indices, axis=0)
    kept = op("Not", op("Equal", indices, ignored))
    found = op("Gather", weight, where(kept, indices, 0), axis=0)
    return mul(found, unsqueeze(mask_like(kept, weight), [rank_of(indices)]))
