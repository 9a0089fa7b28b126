"""Functions that move elements: shapes and axes, joining and splitting."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from hagane.nn.autograd import type_check
from hagane.nn.autograd.variable import Variable
from hagane.nn.functions.applying import array_of, constant_like, function, lift, require, shape_of
from hagane.nn.functions.indexing import get_item, scatter_add
from hagane.ops.builder import op
from hagane.ops.values import array_dtype

__all__ = ["get_item", "scatter_add"]


def _axis(where: str, axis: Any, rank: int) -> int:
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
        if wanted == x.shape:
            return x
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
        order = tuple(_axis("transpose", axis, rank) for axis in axes)
        if len(set(order)) != rank:
            raise type_check.refuse("transpose", "axes to differ", f"axes == {axes}")
    return op("Transpose", x, perm=order)


@function("x")
def swapaxes(x: Any, axis1: int, axis2: int) -> Any:
    """Return an array with two axes exchanged."""
    rank = len(shape_of(x))
    order = list(range(rank))
    a, b = _axis("swapaxes", axis1, rank), _axis("swapaxes", axis2, rank)
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
    a, b = _axis("rollaxis", axis, rank), start % rank if start < 0 else start
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
    moved = [_axis("moveaxis", axis, rank) for axis in sources]
    places = [_axis("moveaxis", axis, rank) for axis in targets]
    if len(set(moved)) != len(moved) or len(set(places)) != len(places):
        raise ValueError(f"moveaxis: axes repeat in {sources} or {targets}")
    order = [i for i in range(rank) if i not in moved]
    for place, axis in sorted(zip(places, moved, strict=True)):
        order.insert(place, axis)
    return op("Transpose", x, perm=tuple(order))


@function("x")
def expand_dims(x: Any, axis: int) -> Any:
    """Return an array with a new axis of size one."""
    return op("Unsqueeze", x, [_axis("expand_dims", axis, len(shape_of(x)) + 1)])


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
        axes = [_axis("squeeze", one, len(shape)) for one in given]
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
    if len(args) == 1:
        return args[0]
    try:
        shape = np.broadcast_shapes(*(shape_of(x) for x in args))
    except ValueError:
        shapes = ", ".join(str(shape_of(x)) for x in args)
        raise type_check.refuse("broadcast", "shapes that broadcast", shapes) from None
    return tuple(broadcast_to(x, shape) for x in args)


def _checked_row(where: str, xs: Any, axis: int) -> list[Any]:
    if not isinstance(xs, list | tuple):
        xs = list(xs)
    if not xs:
        raise type_check.refuse(where, "one or more arrays", "none")
    found = [lift(x) for x in xs]
    first = found[0]
    for i, x in enumerate(found):
        require(where, f"xs[{i}]", x, dtype_as=("xs[0]", first))
        if isinstance(x, Variable) and isinstance(first, Variable):
            expected = [None if j == axis else n for j, n in enumerate(first.shape)]
            require(where, f"xs[{i}]", x, shape=expected)
    return found


@function("*xs")
def concat(xs: Any, axis: int = 1) -> Any:
    """Return arrays joined along an axis."""
    xs = list(xs)
    if not xs:
        raise type_check.refuse("concat", "one or more arrays", "none")
    place = _axis("concat", axis, len(shape_of(lift(xs[0]))))
    return op("Concat", *_checked_row("concat", xs, place), axis=place)


@function("*xs")
def stack(xs: Any, axis: int = 0) -> Any:
    """Return arrays of equal sizes joined along a new axis."""
    xs = [lift(x) for x in xs]
    if not xs:
        raise type_check.refuse("stack", "one or more arrays", "none")
    place = _axis("stack", axis, len(shape_of(xs[0])) + 1)
    row = _checked_row("stack", xs, -1)
    return op("Concat", *[op("Unsqueeze", x, [place]) for x in row], axis=place)


@function("*xs")
def hstack(xs: Any) -> Any:
    """Return arrays joined along the second axis; along the first where there is one only."""
    row = [_at_least(lift(x), 1) for x in xs]
    return concat(row, axis=0 if len(shape_of(row[0])) == 1 else 1)


@function("*xs")
def vstack(xs: Any) -> Any:
    """Return arrays, of two or more axes, joined along the first."""
    return concat([_at_least(lift(x), 2) for x in xs], axis=0)


@function("*xs")
def dstack(xs: Any) -> Any:
    """Return arrays, of three or more axes, joined along the third."""
    return concat([_at_least(lift(x), 3) for x in xs], axis=2)


def _at_least(x: Any, rank: int) -> Any:
    found = len(shape_of(x))
    if found >= rank:
        return x
    axes = {0: [0, 1, 2], 1: [0, 2], 2: [2]}[found] if rank == 3 else list(range(rank - found))
    return op("Unsqueeze", x, np.array(axes, np.int64))


@function("x")
def split_axis(x: Any, indices_or_sections: Any, axis: int, force_tuple: bool = True) -> Any:
    """Return the pieces of an array along an axis.

    Args:
        x: An array.
        indices_or_sections: The number of equal pieces, or where they begin.
        axis: The axis.
        force_tuple: Whether one piece comes as a tuple too.
    """
    shape = shape_of(x)
    place = _axis("split_axis", axis, len(shape))
    total = shape[place]
    if isinstance(indices_or_sections, int | np.integer):
        count = int(indices_or_sections)
        if count <= 0 or total % count:
            raise type_check.refuse(
                "split_axis", f"x.shape[{place}] % {count} == 0", f"x.shape == {shape}"
            )
        sizes = [total // count] * count
    else:
        indices = indices_or_sections
        if isinstance(indices, np.ndarray) and indices.ndim == 0:
            return split_axis(x, int(indices), axis, force_tuple)
        if not isinstance(indices, Sequence | np.ndarray):
            raise TypeError("indices_or_sections must be integer or 1-D array")
        bounds = [0, *map(int, indices), total]
        if any(b > total for b in bounds[1:-1]) or any(
            a > b for a, b in itertools.pairwise(bounds)
        ):
            raise type_check.refuse(
                "split_axis", f"rising indices up to {total}", f"indices == {bounds[1:-1]}"
            )
        sizes = [b - a for a, b in itertools.pairwise(bounds)]
    if len(sizes) == 1:
        return (x,) if force_tuple else x
    return op("Split", x, np.array(sizes, np.int64), axis=place, outputs=len(sizes))


@function("x")
def separate(x: Any, axis: int = 0) -> Any:
    """Return the slices of an array along an axis, without it, as a tuple."""
    shape = shape_of(x)
    place = _axis("separate", axis, len(shape))
    pieces = split_axis(x, shape[place], place)
    return tuple(op("Squeeze", piece, [place]) for piece in pieces)


@function("x")
def tile(x: Any, reps: Any) -> Any:
    """Return an array repeated as a whole, ``reps`` times along each axis."""
    counts = (reps,) if isinstance(reps, int) else tuple(reps)
    if not all(isinstance(n, int | np.integer) for n in counts):
        raise TypeError(f"reps must be int or tuple of ints, got {reps!r}")
    if any(n < 0 for n in counts):
        raise ValueError(f"all elements in reps must be zero or larger, got {counts}")
    rank = max(len(shape_of(x)), len(counts))
    counts = (1,) * (rank - len(counts)) + counts
    missing = rank - len(shape_of(x))
    if missing:
        x = op("Unsqueeze", x, list(range(missing)))
    return op("Tile", x, list(counts))


@function("x")
def repeat(x: Any, repeats: Any, axis: Any = None) -> Any:
    """Return an array with each element repeated along an axis, or flat if that is None."""
    counts = (repeats,) if isinstance(repeats, int) else repeats
    if not isinstance(counts, tuple) or not all(isinstance(n, int) for n in counts):
        raise TypeError("repeats must be int or tuple of ints")
    if any(n < 0 for n in counts):
        raise ValueError("all elements in repeats must be zero or larger")
    if axis is not None and (not isinstance(axis, int) or isinstance(axis, bool)):
        raise TypeError("axis must be int or None")
    if axis is None:
        x, axis = flatten(x), 0
    shape = shape_of(x)
    place = _axis("repeat", axis, len(shape))
    if len(counts) not in (1, shape[place]):
        raise type_check.refuse(
            "repeat", f"len(repeats) in (1, {shape[place]})", f"len(repeats) == {len(counts)}"
        )
    indices = np.repeat(np.arange(shape[place]), counts[0] if len(counts) == 1 else counts)
    return op("Gather", x, indices.astype(np.int64), axis=place)


@function("x")
def pad(x: Any, pad_width: Any, mode: str, **keywords: Any) -> Any:
    """Return an array with elements added at both ends of each axis.

    Args:
        x: An array.
        pad_width: As for ``numpy.pad``: a number, a pair, or a pair for each axis.
        mode: ``constant``, ``edge``, ``reflect`` or ``wrap``.
        keywords: ``constant_values``: a number, or pairs of them.
    """
    rank = len(shape_of(x))
    pairs = np.broadcast_to(np.asarray(pad_width, dtype=np.int64), (rank, 2))
    if mode != "constant":
        return op("Pad", x, pairs.T.reshape(-1).copy(), mode=mode)
    values = np.broadcast_to(np.asarray(keywords.get("constant_values", 0)), (rank, 2))
    if (values == values.reshape(-1)[0]).all() if rank else True:
        value = values.reshape(-1)[0] if rank else 0
        return op("Pad", x, pairs.T.reshape(-1).copy(), constant_like(value, x), mode="constant")
    for axis in range(rank):
        for side in range(2):
            amounts = np.zeros((2, rank), np.int64)
            amounts[side, axis] = pairs[axis, side]
            x = op("Pad", x, amounts.reshape(-1), constant_like(values[axis, side], x))
    return x


def pad_sequence(xs: Any, length: int | None = None, padding: Any = 0) -> Any:
    """Return arrays of different lengths as one, filled up.

    Args:
        xs: Arrays of shape (length, …).
        length: The common length, by default the largest.
        padding: The filler.

    Returns:
        An array of shape (number of arrays, length, …).
    """
    row = [lift(x) for x in xs]
    if not row:
        raise type_check.refuse("pad_sequence", "one or more arrays", "none")
    for i, x in enumerate(row):
        require("pad_sequence", f"xs[{i}]", x, at_least=1, dtype_as=("xs[0]", row[0]))
        require("pad_sequence", f"xs[{i}]", x, shape=[None, *row[0].shape[1:]])
    longest = max(len(x) for x in row)
    total = longest if length is None else length
    if total < longest:
        raise type_check.refuse("pad_sequence", f"length >= {longest}", f"length == {total}")
    filled = []
    for x in row:
        widths = [(0, total - len(x))] + [(0, 0)] * (x.ndim - 1)
        filled.append(pad(x, widths, "constant", constant_values=padding))
    return stack(filled)


def transpose_sequence(xs: Any) -> Any:
    """Return the arrays of each time from arrays of each sequence, the longest first.

    Args:
        xs: Arrays of shape (length, …), lengths not rising.
    """
    row = [lift(x) for x in xs]
    if not row:
        return ()
    lengths = [len(x) for x in row]
    for i, (a, b) in enumerate(itertools.pairwise(lengths)):
        if a < b:
            raise type_check.refuse(
                "transpose_sequence", f"xs[{i}].shape[0] >= xs[{i + 1}].shape[0]", f"{a} < {b}"
            )
    pieces = [separate(x, axis=0) if len(x) else () for x in row]
    return tuple(stack([piece[t] for piece in pieces if len(piece) > t]) for t in range(lengths[0]))


@function("x")
def flip(x: Any, axis: int) -> Any:
    """Return an array with the order along an axis reversed."""
    if not isinstance(axis, int):
        raise TypeError("axis must be int")
    shape = shape_of(x)
    place = _axis("flip", axis, len(shape))
    return op("Slice", x, [-1], [np.iinfo(np.int64).min + 1], [place], [-1])


def fliplr(a: Any) -> Any:
    """Return an array with the order along the second axis reversed."""
    require("fliplr", "a", lift(a), at_least=2)
    return flip(a, 1)


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
    a, b = _axis("diagonal", axis1, rank), _axis("diagonal", axis2, rank)
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
    place = _axis("permutate", axis, len(shape))
    if order.dtype.kind != "i" or order.ndim != 1 or len(order) != shape[place]:
        raise type_check.refuse(
            "permutate",
            f"indices to be {shape[place]} integers",
            f"{order.dtype} of shape {order.shape}",
        )
    if sorted(order.tolist()) != list(range(len(order))):
        raise ValueError(f"permutate: expected each index of {len(order)} once, got {order}")
    if inv:
        order = np.argsort(order)
    return op("Gather", x, order.astype(np.int64), axis=place)


@function("x")
def select_item(x: Any, t: Any) -> Any:
    """Return ``x[i, t[i]]`` for each row ``i``."""
    require("select_item", "x", x, kind="f", ndim=2)
    indices = array_of(t)
    if indices.dtype.kind != "i" or indices.shape != shape_of(x)[:1]:
        raise type_check.refuse(
            "select_item", f"t: {shape_of(x)[0]} integers", f"{indices.dtype} {indices.shape}"
        )
    if indices.size and (indices.min() < 0 or indices.max() >= shape_of(x)[1]):
        raise ValueError(f"select_item: expected 0 <= t < {shape_of(x)[1]}, got {indices}")
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
    if isinstance(x, Variable) and x.dtype == wanted:
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
