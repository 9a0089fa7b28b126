"""Elements put at places, and taken from them, in the ways of PyTorch."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.ops.builder import dtype_of, op, rank_of, shape_of
from hagane.ops.functions.numbers.activations import number_like
from hagane.ops.functions.numbers.elementary import (
    add,
    cast,
    div,
    mul,
    sub,
    transpose,
    unsqueeze,
    where,
)
from hagane.ops.functions.tensors.parts import flat, resized
from hagane.ops.functions.tensors.shapes import sizes_of
from hagane.symbolic import Dim

_INT64 = ir.DataType.INT64
_REDUCTIONS = {"add": "add", "sum": "add", "mean": "add", "multiply": "mul", "prod": "mul",
               "amax": "max", "amin": "min"}  # fmt: skip


def scattered(
    x: Any, axis: int, places: Any, source: Any, reduce: str | None, *, own: bool = True
) -> Any:
    """Return ``x`` with elements of a source at places along an axis.

    Args:
        x: A tensor.
        axis: The axis.
        places: Integers, (...); no axis is longer than that of ``x``, or of ``source``.
        source: A tensor, or an array without axes.
        reduce: How an element is combined with the present one: None, ``add`` (``sum``), ``mean``,
            ``multiply`` (``prod``), ``amax`` or ``amin``.
        own: Whether the elements of ``x`` count where others come.
    """
    if not rank_of(places):
        row, at = op("Reshape", x, [1]), op("Reshape", places, [1])
        found = scattered(row, axis, at, source, reduce, own=own)
        return op("Squeeze", found, [0])
    places = cast(places, _INT64)
    sizes = list(shape_of(places))
    if rank_of(source):
        updates = op("Slice", source, [0] * len(sizes), sizes, list(range(len(sizes))))
    else:
        updates = op("Expand", source, sizes_of(places))
    if reduce is None:
        return op("ScatterElements", x, places, updates, axis=axis)
    kind = _REDUCTIONS[reduce]
    if not own or reduce == "mean":
        pairs = ((0, x), (1, places))
        zeros, ones = (op("Expand", number_like(n, x), sizes_of(v)) for n, v in pairs)
        count = op("ScatterElements", zeros, places, ones, axis=axis, reduction="add")
        hit = op("Greater", count, number_like(0, x))
        if not own:
            x = where(hit, number_like(_neutral(kind, dtype_of(x)), x), x)
    found = op("ScatterElements", x, places, updates, axis=axis, reduction=kind)
    if reduce != "mean":
        return found
    total = add(count, number_like(int(own), x))
    shares = div(found, op("Max", total, number_like(1, x)))
    if not dtype_of(x).is_floating_point():
        whole = op("Max", total, number_like(1, x))
        shares = div(sub(found, op("Mod", found, whole)), whole)
    return where(hit, shares, found)


def _neutral(kind: str, dtype: ir.DataType) -> float:
    if kind in ("add", "mul"):
        return 0 if kind == "add" else 1
    if dtype.is_floating_point():
        return -math.inf if kind == "max" else math.inf
    limits = np.iinfo(dtype.numpy())
    return limits.min if kind == "max" else limits.max


def slices_put(x: Any, axis: int, places: Any, source: Any, reduce: str | None) -> Any:
    """Return ``x`` with slices of a source, or one number, at places along an axis.

    Args:
        x: A tensor.
        axis: The axis.
        places: (count,) or one integer.
        source: Of the shape of ``x`` with ``count`` elements along the axis, or without axes.
        reduce: As in :func:`scattered`.
    """
    rank = rank_of(x)
    places = op("Reshape", places, [-1])
    if rank == 0:  # PyTorch takes a number as one element
        given = source if rank_of(source) else op("Reshape", source, [1])
        put = slices_put(op("Reshape", x, [1]), 0, places, given, reduce)
        return op("Reshape", put, np.zeros(0, np.int64))
    sizes = list(shape_of(x))
    count = shape_of(places)[0]
    sizes[axis] = count
    wide = op("Reshape", places, [-1 if place == axis else 1 for place in range(rank)])
    wide = op("Expand", wide, sizes)
    return scattered(x, axis, wide, source, reduce)


def flat_put(x: Any, places: Any, source: Any, *, accumulate: bool) -> Any:
    """Return ``x`` with elements of a source at places counted over all axes."""
    reduction = "add" if accumulate else "none"
    size = op("Size", x)
    at = flat(cast(places, _INT64))
    at = where(op("Less", at, 0), add(at, size), at)
    found = op("ScatterElements", flat(x), at, flat(source), axis=0, reduction=reduction)
    return resized(found, list(shape_of(x)))


def put_together(x: Any, places: Sequence[Any], source: Any, how: str) -> Any:
    """Return ``x`` with a source added (``how="add"``) or joined otherwise at places.

    Args:
        x: A tensor.
        places: Indices of its first axes, of one shape; each time that a place comes up counts.
        source: Broadcasts to the shape of the indices, and of the other axes.
        how: ``add``, ``mul``, ``max`` or ``min``.
    """
    columns = [op("Unsqueeze", cast(place, _INT64), [-1]) for place in places]
    at = columns[0] if len(columns) == 1 else op("Concat", *columns, axis=-1)
    wide = [*shape_of(places[0]), *list(shape_of(x))[len(places) :]]
    return op("ScatterND", x, at, op("Expand", source, wide), reduction=how)


def taken_flat(x: Any, places: Any) -> Any:
    """Return the elements at places counted over all axes."""
    return op("Gather", flat(x), cast(places, _INT64), axis=0)


def taken_along(x: Any, places: Any, axis: int) -> Any:
    """Return elements at places along an axis; the other axes broadcast."""
    left, right = list(shape_of(x)), list(shape_of(places))
    left[axis] = right[axis] = 1
    x = op("Expand", x, right)
    return op("GatherElements", x, op("Expand", cast(places, _INT64), left), axis=axis)


def selected(x: Any, mask: Any) -> Any:
    """Return the elements where a mask holds, which broadcast against each other; one axis."""
    wide = op("Expand", x, sizes_of(mask))
    kept = op("Expand", mask, sizes_of(x))
    return op("Compress", flat(wide), flat(kept), axis=0)


def filled_where(x: Any, mask: Any, source: Any) -> Any:
    """Return ``x`` with the elements of a source, in order, where a mask holds."""
    kept = op("Expand", mask, sizes_of(x))
    chosen = cast(flat(kept), _INT64)
    number = mul(op("CumSum", chosen, np.array(0)), chosen)
    # (Others take the item in front: a source may be empty where the mask holds nowhere.)
    front = op("Expand", cast(np.array(0), dtype_of(x)), [1])
    found = op("Gather", op("Concat", front, flat(source), axis=0), number, axis=0)
    return where(kept, resized(found, list(shape_of(x))), x)


def diagonal_put(x: Any, source: Any, offset: int, rows: int, columns: int, length: Dim) -> Any:
    """Return ``x`` with a source, whose last axis is the diagonal, on a diagonal of two axes."""
    rank = rank_of(x)
    rest = [axis for axis in range(rank) if axis not in (rows, columns)]
    order = [*rest, rows, columns]
    moved = transpose(x, order)
    *front, height, width = shape_of(moved)
    first = offset if offset >= 0 else width * -offset
    places = op("Add", op("Mul", op("Range", 0, length, 1), width + 1), first)
    wide = op("Expand", places, [*front, length])
    made = op("ScatterElements", resized(moved, [*front, height * width]), wide, source,
              axis=len(front))  # fmt: skip
    back = [order.index(axis) for axis in range(rank)]
    return transpose(resized(made, [*front, height, width]), back)


def joined_corners(matrices: Sequence[Any]) -> Any:
    """Return matrices as the blocks on the diagonal of one."""
    width = sum(shape_of(x)[1] for x in matrices)
    before: Dim = 0
    rows = []
    for x in matrices:
        own = shape_of(x)[1]
        pads = [0, before, 0, width - before - own]
        rows.append(op("Pad", x, pads, number_like(0, x)))
        before = before + own
    return op("Concat", *rows, axis=0) if len(rows) > 1 else rows[0]


def combined(x: Any, places: Any) -> Any:
    """Return the elements of a vector at the places of combinations; (count, r)."""
    return op("Gather", x, places, axis=0)


def under_each_other(vectors: Sequence[Any]) -> Any:
    """Return all combinations of elements of vectors, one a row."""
    sizes = [shape_of(x)[0] for x in vectors]
    columns = []
    for place, x in enumerate(vectors):
        ones: list[Dim] = [n if axis == place else 1 for axis, n in enumerate(sizes)]
        columns.append(unsqueeze(flat(op("Expand", resized(x, ones), sizes)), [1]))
    return op("Concat", *columns, axis=1) if len(columns) > 1 else columns[0]
