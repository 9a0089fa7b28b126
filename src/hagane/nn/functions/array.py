"""Functions that move elements: shapes, axes, and choice of elements."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from hagane.errors import OutOfRange
from hagane.nn.autograd import type_check
from hagane.nn.autograd.configuration import read
from hagane.nn.autograd.debugging import at_place
from hagane.nn.autograd.variable import Variable
from hagane.nn.functions.applying import (
    array_of,
    check_indices,
    constant_like,
    function,
    lift,
    require,
    shape_of,
)
from hagane.nn.functions.indexing import get_item, scatter_add
from hagane.ops.builder import op
from hagane.ops.values import array_dtype

__all__ = ["get_item", "scatter_add"]


def checked_axis(where: str, axis: Any, rank: int) -> int:
    """Return an axis counted from the first; refuse one out of range."""
    if not isinstance(axis, int | np.integer):
        raise TypeError(f"{where}: expected axis to be an int, got {type(axis).__name__}")
    if not -rank <= axis < rank:
        raise type_check.refuse(where, f"{-rank} <= axis < {rank}", f"axis == {axis}")
    return int(axis) % rank


@function("x")
def reshape(x: Any, shape: Any) -> Any:
    """Return an array with other sizes.

    Args:
        x: An array.
        shape: The sizes; one may be -1, which is then computed.
    """
    wanted = (int(shape),) if isinstance(shape, int | np.integer) else tuple(shape)
    if isinstance(x, Variable):
        if wanted == x.shape:
            return x
        size = math.prod(x.shape)
        known = math.prod(n for n in wanted if n != -1)
        if wanted.count(-1) > 1:
            raise type_check.refuse("reshape", "at most one -1 in shape", f"{wanted}")
        if wanted.count(-1) == 1:
            if known == 0 or size % known:
                raise type_check.refuse(
                    "reshape", f"prod(x.shape) % {known} == 0", f"x.shape == {x.shape}"
                )
            wanted = tuple(size // known if n == -1 else int(n) for n in wanted)
        elif known != size:
            raise type_check.refuse(
                "reshape", f"prod(x.shape) == prod({wanted})", f"{size} != {known}"
            )
        return op("Reshape", x, np.array(wanted, np.int64), allowzero=1)
    return op("Reshape", x, list(wanted))


@function("x")
def flatten(x: Any) -> Any:
    """Return an array of one axis."""
    return reshape(x, (-1,) if not isinstance(x, Variable) else (x.size,))


@function("x")
def transpose(x: Any, axes: Any = None) -> Any:
    """Return an array with its axes permuted, by default reversed."""
    rank = len(shape_of(x))
    if axes is None:
        order = tuple(reversed(range(rank)))
    else:
        if len(axes) != rank:
            raise type_check.refuse("transpose", f"len(axes) == {rank}", f"axes == {axes}")
        order = tuple(checked_axis("transpose", axis, rank) for axis in axes)
        if len(set(order)) != rank:
            raise type_check.refuse("transpose", "axes to differ", f"axes == {axes}")
    return op("Transpose", x, perm=order)


@function("x")
def swapaxes(x: Any, axis1: int, axis2: int) -> Any:
    """Return an array with two axes exchanged."""
    rank = len(shape_of(x))
    order = list(range(rank))
    a, b = checked_axis("swapaxes", axis1, rank), checked_axis("swapaxes", axis2, rank)
    order[a], order[b] = order[b], order[a]
    return op("Transpose", x, perm=tuple(order))


@function("x")
def rollaxis(x: Any, axis: int, start: int = 0) -> Any:
    """Return an array with one axis moved before ``start``."""
    if not isinstance(axis, int) or not isinstance(start, int):
        raise TypeError(f"rollaxis: expected ints, got axis={axis!r}, start={start!r}")
    rank = len(shape_of(x))
    if not -rank <= start <= rank:
        raise type_check.refuse("rollaxis", f"{-rank} <= start <= {rank}", f"start == {start}")
    a, b = checked_axis("rollaxis", axis, rank), start % rank if start < 0 else start
    order = [i for i in range(rank) if i != a]
    order.insert(b - 1 if b > a else b, a)
    return op("Transpose", x, perm=tuple(order))


@function("x")
def moveaxis(x: Any, source: Any, destination: Any) -> Any:
    """Return an array with axes moved to other places."""
    rank = len(shape_of(x))
    sources = (source,) if isinstance(source, int) else tuple(source)
    targets = (destination,) if isinstance(destination, int) else tuple(destination)
    for name, given in (("source", sources), ("destination", targets)):
        if not all(isinstance(axis, int) for axis in given):
            raise TypeError(f"moveaxis: expected {name} to be ints, got {given}")
    if len(sources) != len(targets):
        raise ValueError(
            f"moveaxis: expected as many sources as destinations, got {sources} and {targets}"
        )
    moved = [checked_axis("moveaxis", axis, rank) for axis in sources]
    places = [checked_axis("moveaxis", axis, rank) for axis in targets]
    if len(set(moved)) != len(moved) or len(set(places)) != len(places):
        raise ValueError(f"moveaxis: axes repeat in {sources} or {targets}")
    order = [i for i in range(rank) if i not in moved]
    for place, axis in sorted(zip(places, moved, strict=True)):
        order.insert(place, axis)
    return op("Transpose", x, perm=tuple(order))


@function("x")
def expand_dims(x: Any, axis: int) -> Any:
    """Return an array with a new axis of size one."""
    return op("Unsqueeze", x, [checked_axis("expand_dims", axis, len(shape_of(x)) + 1)])


@function("x")
def squeeze(x: Any, axis: Any = None) -> Any:
    """Return an array without axes of size one, by default without any."""
    shape = shape_of(x)
    if axis is None:
        axes = [i for i, size in enumerate(shape) if size == 1]
    else:
        given = (axis,) if isinstance(axis, int) else axis
        if not isinstance(given, tuple):
            raise TypeError("axis must be None, int or tuple of ints")
        axes = [checked_axis("squeeze", one, len(shape)) for one in given]
        for one in axes:
            if shape[one] != 1:
                raise type_check.refuse("squeeze", f"x.shape[{one}] == 1", f"x.shape == {shape}")
    return op("Squeeze", x, np.array(axes, np.int64)) if axes else x


@function("x")
def broadcast_to(x: Any, shape: Any) -> Any:
    """Return an array repeated along axes of size one until it has the sizes ``shape``."""
    wanted = tuple(shape)
    if isinstance(x, Variable):
        if x.shape == wanted:
            return x
        try:
            if np.broadcast_shapes(x.shape, wanted) != wanted:
                raise ValueError
        except ValueError:
            raise type_check.refuse(
                "broadcast_to", f"x to broadcast to {wanted}", f"x.shape == {x.shape}"
            ) from None
    return op("Expand", x, list(wanted))


@function("*args")
def broadcast(*args: Any) -> Any:
    """Return arrays broadcast to common sizes, as a tuple; one array comes bare."""
    if not args:
        raise type_check.refuse("broadcast", "one array or more", "none")
    if len(args) == 1:
        return args[0]
    args = tuple(op("Identity", x) for x in args)
    try:
        shape = np.broadcast_shapes(*(shape_of(x) for x in args))
    except ValueError:
        shapes = ", ".join(str(shape_of(x)) for x in args)
        raise type_check.refuse("broadcast", "shapes that broadcast", shapes) from None
    return tuple(broadcast_to(x, shape) for x in args)


@function("x")
def flip(x: Any, axis: int) -> Any:
    """Return an array with the order along an axis reversed."""
    if not isinstance(axis, int):
        raise TypeError("axis must be int")
    shape = shape_of(x)
    place = checked_axis("flip", axis, len(shape))
    return op("Slice", x, [-1], [np.iinfo(np.int64).min + 1], [place], [-1])


@function("a")
def fliplr(a: Any) -> Any:
    """Return an array with the order along the second axis reversed."""
    require("fliplr", "a", lift(a), at_least=2)
    return flip(a, 1)


@function("a")
def flipud(a: Any) -> Any:
    """Return an array with the order along the first axis reversed."""
    require("flipud", "a", lift(a), at_least=1)
    return flip(a, 0)


@function("x")
def diagonal(x: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    """Return the diagonals of an array over two axes, as a new last axis."""
    require("diagonal", "x", x, at_least=2)
    shape = shape_of(x)
    rank = len(shape)
    a, b = checked_axis("diagonal", axis1, rank), checked_axis("diagonal", axis2, rank)
    if a == b:
        raise ValueError("axis1 and axis2 cannot be the same")
    rest = [i for i in range(rank) if i not in (a, b)]
    moved = op("Transpose", x, perm=(*rest, a, b))
    rows, columns = shape[a], shape[b]
    start = offset if offset >= 0 else -offset * columns
    count = max(min(rows, columns - offset) if offset >= 0 else min(rows + offset, columns), 0)
    indices = start + np.arange(count) * (columns + 1)
    flat = reshape(moved, (*(shape[i] for i in rest), rows * columns))
    return op("Gather", flat, indices.astype(np.int64), axis=len(rest))


@function("x")
def permutate(x: Any, indices: Any, axis: int = 0, inv: bool = False) -> Any:
    """Return an array with the elements along an axis in another order.

    Args:
        x: An array.
        indices: The places, each once.
        axis: The axis.
        inv: Whether elements go to these places rather than come from there.
    """
    order = array_of(indices)
    shape = shape_of(x)
    place = checked_axis("permutate", axis, len(shape))
    if order.dtype.kind != "i" or order.ndim != 1 or len(order) != shape[place]:
        raise type_check.refuse(
            "permutate",
            f"indices to be {shape[place]} integers",
            f"{order.dtype} of shape {order.shape}",
        )
    if sorted(order.tolist()) != list(range(len(order))):
        raise OutOfRange(
            f"permutate: expected each index of {len(order)} once, got {order}{at_place()}"
        )
    if inv:
        order = np.argsort(order)
    return op("Gather", x, order.astype(np.int64), axis=place)


@function("x", ":t")
def select_item(x: Any, t: Any) -> Any:
    """Return ``x[i, t[i]]`` for each row ``i``."""
    require("select_item", "x", x, kind="f", ndim=2)
    indices = array_of(t)
    if indices.dtype.kind != "i" or indices.shape != shape_of(x)[:1]:
        raise type_check.refuse(
            "select_item", f"t: {shape_of(x)[0]} integers", f"{indices.dtype} {indices.shape}"
        )
    check_indices("select_item", "t", indices, shape_of(x)[1])
    found = op("GatherElements", x, indices.astype(np.int64)[:, None], axis=1)
    return op("Squeeze", found, [1])


@function("x", "y")
def where(condition: Any, x: Any, y: Any) -> Any:
    """Return elements of ``x`` where a condition holds, else of ``y``; all broadcast."""
    chosen = array_of(condition)
    if chosen.dtype != np.bool_:
        raise type_check.refuse("where", "condition.dtype == bool", f"{chosen.dtype}")
    if not isinstance(x, Variable) and isinstance(y, Variable):
        x = lift(constant_like(x, y))
    if not isinstance(y, Variable) and isinstance(x, Variable):
        y = lift(constant_like(y, x))
    require("where", "x", x, dtype_as=("y", y))
    if isinstance(x, Variable) and isinstance(y, Variable):
        try:
            np.broadcast_shapes(chosen.shape, x.shape, y.shape)
        except ValueError:
            raise type_check.refuse(
                "where",
                "condition, x and y to broadcast together",
                f"{chosen.shape}, {x.shape}, {y.shape}",
            ) from None
    return op("Where", chosen, x, y)


@function("x")
def cast(x: Any, typ: Any) -> Any:
    """Return an array with its elements converted to an element type."""
    wanted = np.dtype(typ)
    # Where gradients may be asked for, each result has one of its own.
    recorded = isinstance(x, Variable) and x.requires_grad and read("enable_backprop")
    if isinstance(x, Variable) and x.dtype == wanted and not recorded:
        return x
    return op("Cast", x, to=array_dtype(np.empty(0, wanted)))


@function("x")
def copy(x: Any, dst: Any = -1) -> Any:
    """Return a copy on a device: this machine."""
    from hagane.nn.autograd.devices import get_device

    get_device(dst)
    return op("Identity", x)


@function("*inputs")
def identity(*inputs: Any) -> Any:
    """Return the inputs; one comes bare, several as a tuple."""
    found = tuple(op("Identity", x) for x in inputs)
    return found[0] if len(found) == 1 else found


@function("X")
def depth2space(X: Any, r: int) -> Any:
    """Return pixels from channels (Shi et al. 2016): (n, r²c, h, w) to (n, c, rh, rw)."""
    require("depth2space", "X", X, kind="f", ndim=4)
    n, depth, h, w = shape_of(X)
    c = depth // (r * r)
    split = reshape(X, (n, r, r, c, h, w))
    return reshape(op("Transpose", split, perm=(0, 3, 4, 1, 5, 2)), (n, c, h * r, w * r))


@function("X")
def space2depth(X: Any, r: int) -> Any:
    """Return channels from pixels: (n, c, rh, rw) to (n, r²c, h, w)."""
    require("space2depth", "X", X, kind="f", ndim=4)
    n, c, h, w = shape_of(X)
    split = reshape(X, (n, c, h // r, r, w // r, r))
    moved = op("Transpose", split, perm=(0, 3, 5, 1, 2, 4))
    return reshape(moved, (n, r * r * c, h // r, w // r))
