"""Distances of PyTorch, and products of vectors."""

from __future__ import annotations

import numpy as np

from hagane.frontends.libraries.computing import computed
from hagane.frontends.libraries.torch.functions.numbers.elementwise import broadcast_shape
from hagane.frontends.libraries.torch.operands import (
    BOOL,
    as_float,
    axis,
    expect_axes,
    need_float,
    need_tensor,
    promote,
    real_dtype,
    same_dtype,
    shape_of,
)
from hagane.frontends.libraries.torch.table import TORCH
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.values.values import Tensor, Value
from hagane.ops.builder import op
from hagane.ops.functions.sums import distances
from hagane.symbolic import Dim, floordiv
from hagane.symbolic.logic import negate


def _cross(t: Core, input: Value, other: Value, dim: Value) -> Tensor:
    a, b = promote(t, need_tensor(t, input, "input"), need_tensor(t, other, "other"))
    expect_axes(t, a)
    rank = len(shape_of(t, a))
    if rank != len(shape_of(t, b)):
        t.fail("rank", f"expected as many axes in {t.show(a)} as in {t.show(b)}", a, b)
    place = axis(t, _first_of_three(t, a) if dim is None else dim, rank, a)
    for x in (a, b):
        if t.emit.differ(shape_of(t, x)[place], 3):
            t.fail("shape-mismatch", f"expected 3 elements along axis {place}, got {t.show(x)}", x)
    shape = broadcast_shape(t, a, b)
    return computed(t, (a.dtype, shape), distances.cross, a, b, place)


def _first_of_three(t: Core, x: Tensor) -> int:
    """Return the axis that torch.cross takes where none is given: the first of size 3."""
    open_sizes: list[Dim] = []
    for place, size in enumerate(shape_of(t, x)):
        if size == 3:
            for other in open_sizes:
                t.emit.suppose(negate(t.knowledge.equal(other, 3)), f"{other} != 3")
            return place
        if not isinstance(size, int):
            open_sizes.append(size)
    return -1


@TORCH.function("cross", methods=("cross",))
def cross(t: Core, input: Value, other: Value, dim: Value = None) -> Tensor:
    """Return the cross product along an axis of 3."""
    return _cross(t, input, other, dim)


@TORCH.function("linalg.cross")
def linalg_cross(t: Core, input: Value, other: Value, *, dim: Value = -1) -> Tensor:
    """Return the cross product along an axis of 3, the last one."""
    return _cross(t, input, other, dim)


@TORCH.function("cdist")
def cdist(t: Core, x1: Value, x2: Value, p: Value = 2.0, compute_mode: Value = None) -> Tensor:
    """Return the distances between rows: (..., rows of x1, rows of x2)."""
    del compute_mode
    a, b = need_tensor(t, x1, "x1"), need_tensor(t, x2, "x2")
    need_float(t, a, "x1")
    same_dtype(t, a, b, "x1 and x2")
    for x, name in ((a, "x1"), (b, "x2")):
        if len(shape_of(t, x)) < 2:
            t.fail("rank", f"expected '{name}' to have at least 2 axes, got {t.show(x)}", x)
    if t.emit.differ(shape_of(t, a)[-1], shape_of(t, b)[-1]):
        t.fail(
            "shape-mismatch",
            f"expected rows of one size, got {t.show(a)} and {t.show(b)}",
            a,
            b,
        )
    _need_order(t, p)
    rows = (shape_of(t, a)[-2], shape_of(t, b)[-2])
    front = _broadcast_front(t, a, b)
    return computed(t, (a.dtype, (*front, *rows)), distances.distances_of_all, a, b, float(p))


def _broadcast_front(t: Core, a: Tensor, b: Tensor) -> tuple[Value, ...]:
    """Return the shape that all axes but the last two of two tensors broadcast to."""
    fronts = [t.emit.new(x.dtype, shape_of(t, x)[:-2]) for x in (a, b)]
    return tuple(broadcast_shape(t, *fronts))


def _need_order(t: Core, p: Value) -> None:
    if not isinstance(p, int | float) or isinstance(p, bool) or p < 0:
        t.fail("value", f"expected p, the order of the norm, to be at least 0, got {t.show(p)}")


@TORCH.function("nn.functional.cosine_similarity", "cosine_similarity")
def cosine_similarity(t: Core, x1: Value, x2: Value, dim: Value = 1, eps: Value = 1e-8) -> Tensor:
    """Return the cosine of the angle between vectors along an axis."""
    a, b = promote(t, need_tensor(t, x1, "x1"), need_tensor(t, x2, "x2"))
    need_float(t, a, "x1")
    shape = broadcast_shape(t, a, b)
    place = axis(t, dim, len(shape), a)
    rest = (*shape[:place], *shape[place + 1 :])
    if not shape:  # numbers are their own only component
        a, b = (t.op("Unsqueeze", one, np.array([0], np.int64)) for one in (a, b))
    return computed(t, (a.dtype, rest), distances.cosine, a, b, place, float(eps))


@TORCH.function("nn.functional.pairwise_distance", "pairwise_distance")
def pairwise_distance(
    t: Core, x1: Value, x2: Value, p: Value = 2.0, eps: Value = 1e-6, keepdim: Value = False
) -> Tensor:
    """Return the distances between vectors along the last axis."""
    given = promote(t, need_tensor(t, x1, "x1"), need_tensor(t, x2, "x2"))
    a, b = (as_float(t, x) for x in given)
    whole = broadcast_shape(t, a, b)
    rest, kept = whole[:-1], bool(keepdim and whole)
    if not whole:  # numbers are their own only component
        a, b = (t.op("Unsqueeze", x, np.array([0], np.int64)) for x in (a, b))
    shape = (*rest, 1) if kept else rest
    if not isinstance(p, int | float) or isinstance(p, bool):
        t.fail("type", f"expected p, the order of the norm, to be a number, got {t.show(p)}")
    promised = (real_dtype(a.dtype), shape)
    return computed(t, promised, distances.distance, a, b, float(p), float(eps), kept)


@TORCH.function("pdist", "nn.functional.pdist")
def pdist(t: Core, input: Value, p: Value = 2.0) -> Tensor:
    """Return the distances of all pairs of rows, in the order (0, 1), (0, 2), …, (1, 2), …."""
    x = need_tensor(t, input, "input")
    need_float(t, x, "input")
    rows = shape_of(t, x, 2)[0]
    _need_order(t, p)

    def of_pairs(x: Tensor) -> Tensor:
        every = op("Reshape", distances.distances_of_all(x, x, float(p)), [-1])
        ones = op("Expand", np.array(1, np.int64), [rows, rows])
        above = op("Trilu", ones, np.array(1, np.int64), upper=1)
        later = op("Cast", op("Reshape", above, [-1]), to=int(BOOL))
        made: Tensor = op("Compress", every, later, axis=0)
        return made

    return computed(t, (x.dtype, (floordiv(rows * (rows - 1), 2),)), of_pairs, x)
