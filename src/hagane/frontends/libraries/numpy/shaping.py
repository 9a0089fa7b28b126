"""Functions of NumPy that move axes and elements."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from hagane.frontends.libraries.computing import built
from hagane.frontends.libraries.numpy.operands import (
    axes,
    axis,
    broadcast_shape,
    elements,
    new,
    reshape,
    shape_of,
    size,
    sizes,
    to_array,
    typed,
)
from hagane.frontends.libraries.numpy.table import NUMPY
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.report.findings import CheckError
from hagane.frontends.python.values.values import Tensor, Value
from hagane.ops.builder import op
from hagane.ops.builder import shape_of as op_shape
from hagane.ops.functions.numbers import elementary
from hagane.ops.functions.tensors import padding, parts
from hagane.symbolic import Dim, product


@NUMPY.function("reshape")
def reshape_function(
    t: Core,
    a: Value,
    shape: Value = None,
    order: Value = "C",
    *,
    newshape: Value = None,
    **_: Value,
) -> Tensor:
    """Return the array with another shape, of which one size may be -1."""
    return read_in_order(t, to_array(t, a), sizes(t, newshape if shape is None else shape), order)


def read_in_order(t: Core, x: Tensor, dims: Sequence[Dim], order: Value) -> Tensor:
    """Return the elements of an array, read in an order, in another shape of the same order.

    Raises:
        CheckError: The order is that of memory, which a graph does not know.
    """
    if order == "F":
        read = reshape(t, permuted(t, x, None), [*dims][::-1])
        return permuted(t, read, None)
    if order != "C" and len(shape_of(t, x)) > 1 and t.emit.builds:
        raise CheckError(
            "capture", f"order={order!r} depends on how an array lies in memory, which a graph "
            "does not know; give order='C' or 'F'",
        )  # fmt: skip
    return reshape(t, x, dims)


@NUMPY.function("lib.stride_tricks.sliding_window_view")
def sliding_window_view(
    t: Core, x: Value, window_shape: Value, axis: Value = None, **_: Value
) -> Tensor:
    """Return all windows along axes; their elements are new last axes."""
    found = to_array(t, x)
    windows = sizes(t, window_shape)
    rank = len(shape_of(t, found))
    chosen = axis if isinstance(axis, tuple | list) else (axis,)
    places = range(rank) if axis is None else axes(t, tuple(chosen), rank, found)
    if len(windows) != len(places):
        t.fail("argument", f"expected a window for each of {len(places)} axes, got {len(windows)}: "
               f"{t.show(found)}", found)  # fmt: skip
    for place, window in zip(places, windows, strict=True):
        found = _windows(t, found, place, window)
    return found


def _windows(t: Core, x: Tensor, place: int, window: Dim) -> Tensor:
    shape = list(shape_of(t, x))
    t.emit.require_size(shape[place] - window, 0, f"axis {place} minus the window of {window}")
    count = shape[place] = shape[place] - window + 1
    return built(
        t, (x.dtype, (*shape, window)),
        lambda x: parts.windows_along(x, place, window, 1, count), x,
    )  # fmt: skip


@NUMPY.function("ravel", methods=("ravel", "flatten"))
def ravel(t: Core, a: Value, order: Value = "C") -> Tensor:
    """Return all elements in one axis."""
    return read_in_order(t, to_array(t, a), [-1], order)


@NUMPY.function("transpose", "permute_dims")
def transpose(t: Core, a: Value, axes: Value = None) -> Tensor:
    """Return the array with its axes in another order, reversed without one."""
    return permuted(t, to_array(t, a), axes)


def permuted(t: Core, x: Tensor, order: Value) -> Tensor:
    """Return the array with its axes in another order."""
    shape = shape_of(t, x)
    if order is None:
        places = list(range(len(shape)))[::-1]
    else:
        places = axes(t, tuple(order), len(shape), x)
        if len(places) != len(shape):
            t.fail("axis", f"expected {len(shape)} axes to permute, got {order}: {t.show(x)}", x)
    known = None if x.known is None else x.known.transpose(places)
    made: Tensor = t.op("Transpose", x, perm=places) if places else x
    if known is not None and made is not x:
        made.known = known
    return made


@NUMPY.function("matrix_transpose", "linalg.matrix_transpose")
def matrix_transpose(t: Core, x: Value) -> Tensor:
    """Return the array with its last two axes swapped."""
    found = to_array(t, x)
    if len(shape_of(t, found)) < 2:
        t.fail("rank", f"expected at least two axes, got {t.show(found)}", found)
    return swapaxes(t, found, -1, -2)


@NUMPY.function("swapaxes", methods=("swapaxes",))
def swapaxes(t: Core, a: Value, axis1: Value, axis2: Value) -> Tensor:
    """Return the array with two axes swapped."""
    x = to_array(t, a)
    rank = len(shape_of(t, x))
    order = list(range(rank))
    first, second = axis(t, axis1, rank, x), axis(t, axis2, rank, x)
    order[first], order[second] = second, first
    return permuted(t, x, order)


@NUMPY.function("moveaxis")
def moveaxis(t: Core, a: Value, source: Value, destination: Value) -> Tensor:
    """Return the array with axes moved to other places."""
    x = to_array(t, a)
    rank = len(shape_of(t, x))
    froms, tos = axes(t, source, rank, x), axes(t, destination, rank, x)
    if len(froms) != len(tos):
        t.fail("value", "expected as many sources as destinations of axes", x)
    order = [i for i in range(rank) if i not in froms]
    for to, place in sorted(zip(tos, froms, strict=True)):
        order.insert(to, place)
    return permuted(t, x, order)


@NUMPY.function("rollaxis")
def rollaxis(t: Core, a: Value, axis: Value, start: Value = 0) -> Tensor:
    """Return the array with one axis rolled backwards."""
    from hagane.frontends.libraries.numpy.operands import axis as checked

    x = to_array(t, a)
    rank = len(shape_of(t, x))
    place = checked(t, axis, rank, x)
    if not isinstance(start, int) or not -rank <= start <= rank:
        t.fail("axis", f"start {t.show(t.wrap(start))} is out of bounds for {t.show(x)}", x)
    to = start + rank if start < 0 else start
    order = [i for i in range(rank) if i != place]
    order.insert(to - 1 if place < to else to, place)
    return permuted(t, x, order)


@NUMPY.function("expand_dims")
def expand_dims(t: Core, a: Value, axis: Value) -> Tensor:
    """Return the array with new axes of size 1."""
    from hagane.frontends.libraries.numpy.operands import axis as checked

    x = to_array(t, a)
    given = list(axis) if isinstance(axis, tuple | list) else [axis]
    rank = len(shape_of(t, x))
    places = [checked(t, one, rank, x, extra=len(given)) for one in given]
    if len(set(places)) != len(places):
        t.fail("axis", f"axis={axis} names an axis twice for {t.show(x)}", x)
    made: Tensor = t.op("Unsqueeze", x, np.array(places, dtype=np.int64))
    return made


@NUMPY.function("squeeze", methods=("squeeze",))
def squeeze(t: Core, a: Value, axis: Value = None) -> Tensor:
    """Return the array without axes of size 1."""
    x = to_array(t, a)
    shape = shape_of(t, x)
    places = axes(t, axis, len(shape), x)
    if axis is None:
        rest = tuple(n for n in shape if n != 1)
        for place, size in enumerate(shape):
            if not isinstance(size, int):
                t.emit.suppose_not_one(size, f"axis {place}, which squeeze would drop")
        ones = [i for i, n in enumerate(shape) if n == 1]
        return typed(t, "Squeeze", [x], x.dtype, rest, None, lambda x: elementary.squeeze(x, ones))
    for place in places:
        if t.emit.differ(shape[place], 1):
            t.fail("shape-mismatch", f"axis {place} is not of size 1: {t.show(x)}", x)
    rest = tuple(n for i, n in enumerate(shape) if i not in places)
    return typed(t, "Squeeze", [x], x.dtype, rest, None, lambda x: elementary.squeeze(x, places))


@NUMPY.function("broadcast_to")
def broadcast_to(t: Core, array: Value, shape: Value, subok: Value = False) -> Tensor:
    """Return the array repeated to a shape that it broadcasts to."""
    x = to_array(t, array)
    wanted = sizes(t, shape)
    own = shape_of(t, x)
    fits = len(own) <= len(wanted) and not any(
        a != 1 and t.emit.differ(a, b) for a, b in zip(own[::-1], wanted[::-1], strict=False)
    )
    if not fits:
        target = ", ".join(map(str, wanted))
        t.fail("shape-mismatch", f"{t.show(x)} does not broadcast to ({target})", x)
    return typed(t, "Expand", [x], x.dtype, tuple(wanted), None, lambda x: op("Expand", x, wanted))


@NUMPY.function("broadcast_arrays")
def broadcast_arrays(t: Core, *args: Value, **_: Value) -> Value:
    """Return arrays repeated to their common shape."""
    arrays = [to_array(t, a) for a in args]
    shape = broadcast_shape(t, *arrays)
    sizes_ = list(shape)
    return tuple(
        typed(t, "Expand", [x], x.dtype, shape, None, lambda x: op("Expand", x, sizes_))
        for x in arrays
    )


@NUMPY.function("broadcast_shapes")
def broadcast_shapes(t: Core, *args: Value) -> Value:
    """Return the shape that shapes broadcast to."""
    from hagane.frontends.libraries.numpy.operands import FLOAT

    return tuple(broadcast_shape(t, *[new(t, FLOAT, sizes(t, a)) for a in args]))


@NUMPY.function("flip")
def flip(t: Core, m: Value, axis: Value = None) -> Tensor:
    """Return the array with the order of axes' elements reversed."""
    x = to_array(t, m)
    turned = axes(t, axis, len(shape_of(t, x)), x)
    return typed(t, "Flip", [x], x.dtype, x.shape, None, lambda x: parts.flip(x, turned))


@NUMPY.function("flipud")
def flipud(t: Core, m: Value) -> Tensor:
    """Return the array with its rows in reversed order."""
    return flip(t, m, 0)


@NUMPY.function("fliplr")
def fliplr(t: Core, m: Value) -> Tensor:
    """Return the array with its columns in reversed order."""
    return flip(t, m, 1)


@NUMPY.function("rot90")
def rot90(t: Core, m: Value, k: Value = 1, axes: Value = (0, 1)) -> Tensor:
    """Return the array turned in the plane of two axes."""
    x = to_array(t, m)
    shape = list(shape_of(t, x))
    first, second = (axis(t, place, len(shape), x) for place in axes)
    if first == second:
        t.fail("value", f"ValueError: Axes must be different, got {first} twice", x)
    if isinstance(k, int) and k % 2:
        shape[first], shape[second] = shape[second], shape[first]
    order = list(range(len(shape)))
    order[first], order[second] = second, first
    if not isinstance(k, int):
        return typed(t, "Rotate", [x], x.dtype, tuple(shape))
    turned: dict[int, Callable[[Any], Any]] = {
        0: lambda x: x,
        1: lambda x: elementary.transpose(parts.flip(x, [second]), order),
        2: lambda x: parts.flip(x, [first, second]),
        3: lambda x: parts.flip(elementary.transpose(x, order), [second]),
    }
    return typed(t, "Rotate", [x], x.dtype, tuple(shape), None, turned[k % 4])


@NUMPY.function("roll")
def roll(t: Core, a: Value, shift: Value, axis: Value = None) -> Tensor:
    """Return the array with elements moved along axes, round and round."""
    x = to_array(t, a)
    listed = axis if isinstance(axis, tuple | list) else [] if axis is None else [axis]
    rank = len(shape_of(t, x))
    axes(t, tuple(dict.fromkeys(listed)) or None, rank, x)
    shifts = list(shift) if isinstance(shift, tuple | list) else [shift] * max(len(listed), 1)

    def rolled(x: Any) -> Any:
        if axis is None:
            return parts.resized(parts.roll(parts.flat(x), size(t, shift), 0), shape_of(t, x))
        for place, moved in zip(listed, shifts, strict=True):
            x = parts.roll(x, size(t, moved), place % rank)
        return x

    return typed(t, "Roll", [x], x.dtype, x.shape, None, rolled)


@NUMPY.function("repeat", methods=("repeat",))
def repeat(t: Core, a: Value, repeats: Value, axis: Value = None) -> Tensor:
    """Return the array with each element repeated."""
    from hagane.frontends.libraries.numpy.operands import axis as checked

    x = to_array(t, a)
    x = reshape(t, x, [-1]) if axis is None else x
    shape = list(shape_of(t, x))
    place = checked(t, 0 if axis is None else axis, len(shape), x)
    counts = repeats
    if isinstance(counts, Tensor) and counts.shape != ():
        counts = None if counts.known is None else counts.known.tolist()
    if counts is None:
        shape[place] = t.emit.fresh("repeated")
    elif isinstance(counts, tuple | list) and len(counts) != 1:
        if t.emit.differ(len(counts), shape[place]):
            t.fail("shape-mismatch", f"{len(counts)} counts for axis {place} of {t.show(x)}", x)
        total: Dim = 0
        for count in counts:
            total = total + size(t, count)
        shape[place] = total
    else:
        one = counts[0] if isinstance(counts, tuple | list) else counts
        shape[place] = shape[place] * size(t, one)
    return built(t, (x.dtype, tuple(shape)), _repeated, x, place, counts, repeats)


def _repeated(x: Tensor, place: int, counts: Value, repeats: Value) -> Any:
    if isinstance(counts, tuple | list) and len(counts) == 1:
        counts = counts[0]
    if isinstance(counts, tuple | list):
        found = parts.places_repeated(op("Identity", np.array(counts, np.int64)))
    elif counts is None:
        found = parts.places_repeated(op("Expand", repeats, [op_shape(x)[place]]))
    elif isinstance(counts, Tensor):
        own = op("Reshape", counts, [1])
        found = parts.places_repeated(op("Expand", own, [op_shape(x)[place]]))
    else:
        return parts.repeat_each(x, place, counts)
    return op("Gather", x, found, axis=place)


@NUMPY.function("tile")
def tile(t: Core, A: Value, reps: Value) -> Tensor:
    """Return the array put side by side along each axis."""
    x = to_array(t, A)
    times, shape = sizes(t, reps), list(shape_of(t, x))
    rank = max(len(times), len(shape))
    times = [*[1] * (rank - len(times)), *times]
    shape = [*[1] * (rank - len(shape)), *shape]
    made = tuple(a * b for a, b in zip(shape, times, strict=True))
    own = list(shape)
    return typed(
        t, "Tile", [x], x.dtype, made, None, lambda x: op("Tile", parts.resized(x, own), times)
    )


@NUMPY.function("resize")
def resize(t: Core, a: Value, new_shape: Value) -> Tensor:
    """Return the elements, repeated or cut, in another shape."""
    x = to_array(t, a)
    wanted = sizes(t, new_shape)

    def resized(x: Any) -> Any:
        places = op("Mod", op("Range", 0, product(wanted), 1), elements(t, x))
        return parts.resized(op("Gather", parts.flat(x), places, axis=0), wanted)

    return typed(t, "Resize", [x], x.dtype, tuple(wanted), None, resized)


_PADDING = (
    "constant", "edge", "empty", "linear_ramp", "maximum", "mean", "median", "minimum", "reflect",
    "symmetric", "wrap",
)  # fmt: skip


@NUMPY.function("pad")
def pad(
    t: Core, array: Value, pad_width: Value, mode: Value = "constant", *,
    constant_values: Value = 0, **other: Value,
) -> Tensor:  # fmt: skip
    """Return the array with elements added around it."""
    x = to_array(t, array)
    shape = list(shape_of(t, x))
    if isinstance(mode, str) and mode not in _PADDING:
        t.fail("value", f"expected mode to be one of {', '.join(_PADDING)}, got {mode!r}", x)
    pairs = _pairs(t, pad_width, len(shape), x)
    for amount in (amount for pair in pairs for amount in pair):
        t.emit.require_size(amount, 0, "number of elements to add")
    padded = [n + before + after for n, (before, after) in zip(shape, pairs, strict=True)]
    amounts = [*(before for before, _ in pairs), *(after for _, after in pairs)]
    name = {"constant": "constant", "edge": "edge", "reflect": "reflect", "wrap": "wrap"}.get(mode)
    value = constant_values if mode == "constant" else 0
    if name is None or other or not isinstance(value, int | float):
        return typed(t, "Pad", [x], x.dtype, tuple(padded))
    return typed(t, "Pad", [x], x.dtype, tuple(padded), None,
                 lambda x: padding.padded_around(x, amounts, value, name))  # fmt: skip


def _pairs(t: Core, width: Value, rank: int, x: Tensor) -> list[tuple[Dim, Dim]]:
    """Return the amounts before and after each axis, spread as NumPy spreads them."""
    if isinstance(width, Tensor):
        width = width.known.tolist() if width.known is not None else width
    if not isinstance(width, tuple | list):
        amount = size(t, width)
        return [(amount, amount)] * rank
    rows = [row if isinstance(row, tuple | list) else None for row in width]
    if all(row is None for row in rows):
        if len(width) == 2:
            return [(size(t, width[0]), size(t, width[1]))] * rank
        if len(width) == 1:
            return [(size(t, width[0]),) * 2] * rank
    found = [
        (size(t, row[0]), size(t, row[-1])) for row in rows if row is not None and 0 < len(row) < 3
    ]
    if len(found) == 1 and len(width) == 1:
        return found * rank
    if len(found) != len(width) or len(found) != rank:
        t.fail(
            "shape-mismatch",
            f"expected the amounts (before, after) for each of the {rank} axes, got {len(width)} "
            f"of them: {t.show(x)}",
            x,
        )
    return found


for _name, _rank in (("atleast_1d", 1), ("atleast_2d", 2), ("atleast_3d", 3)):

    def _at_least(t: Core, *arys: Value, rank: int = _rank) -> Value:
        found = []
        for ary in arys:
            x = to_array(t, ary)
            shape = shape_of(t, x)
            if len(shape) < rank:
                if rank == 3:
                    whole = {0: (1, 1, 1), 1: (1, *shape, 1), 2: (*shape, 1)}[len(shape)]
                else:
                    whole = (*[1] * (rank - len(shape)), *shape)
                known = x.known
                if known is not None:
                    known = known.reshape([int(str(n)) for n in whole])
                x = typed(t, "Reshape", [x], x.dtype, whole, known,
                          lambda x, whole=whole: parts.resized(x, whole))  # fmt: skip
            found.append(x)
        return found[0] if len(found) == 1 else tuple(found)

    NUMPY.function(_name)(_at_least)


@NUMPY.function("shape")
def shape_function(t: Core, a: Value) -> Value:
    """Return the sizes."""
    return shape_of(t, to_array(t, a))


@NUMPY.function("ndim")
def ndim(t: Core, a: Value) -> Value:
    """Return the number of axes."""
    return len(shape_of(t, to_array(t, a)))


@NUMPY.function("size")
def size_function(t: Core, a: Value, axis: Value = None) -> Value:
    """Return the number of elements, or the size of one axis."""
    x = to_array(t, a)
    if axis is None:
        return elements(t, x)
    return product([shape_of(t, x)[place] for place in axes(t, axis, len(shape_of(t, x)), x)])
