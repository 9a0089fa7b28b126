"""Functions of Chainer that move axes and elements."""

from __future__ import annotations

from typing import Any

from hagane.frontends.libraries import indexing
from hagane.frontends.libraries.chainer.operands import axis as checked_axis
from hagane.frontends.libraries.chainer.operands import (
    broadcast_shape,
    computed,
    computed_parts,
    floating,
    kind_of,
    made,
    need_rank,
    numbers,
    per_axis,
    same_shape,
    shape_of,
    sizes,
    variable,
)
from hagane.frontends.libraries.chainer.table import function
from hagane.frontends.libraries.indexing import lies_within
from hagane.frontends.libraries.numpy.methods import item
from hagane.frontends.libraries.numpy.operands import INT64
from hagane.frontends.libraries.numpy.table import NUMPY
from hagane.frontends.libraries.table import call_handler
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.values.values import Tensor, Value
from hagane.ops.builder import op
from hagane.ops.functions.chainer import arrays, images, windows
from hagane.ops.functions.numbers import elementary
from hagane.ops.functions.tensors import parts
from hagane.symbolic import definitely_equal, floordiv, product


@function("reshape")
def reshape(t: Core, x: Value, shape: Value) -> Tensor:
    """Return the variable with another shape, of which one size may be -1."""
    from hagane.frontends.libraries.numpy.operands import reshape as run

    return run(t, variable(t, x), sizes(t, shape))


@function("flatten")
def flatten(t: Core, x: Value) -> Tensor:
    """Return all elements in one axis."""
    found = variable(t, x)
    return computed(t, (found.dtype, (product(shape_of(t, found)),)), parts.flat, found)


@function("transpose")
def transpose(t: Core, x: Value, axes: Value = None) -> Tensor:
    """Return the variable with its axes in another order, reversed without one."""
    from hagane.frontends.libraries.numpy.shaping import permuted

    return permuted(t, variable(t, x), axes)


def _numpys(t: Core, name: str, x: Tensor, *places: Value, **named: Value) -> Tensor:
    """Return the result of NumPy's function of a name, or one of its type."""
    array = x.seen_as("numpy.ndarray")
    handler = NUMPY.functions[f"numpy.{name}"]
    result = call_handler(handler, f"chainer.functions.{name}", t, [array, *places], named)
    assert isinstance(result, Tensor)
    return variable(t, result)


def _as_numpy(name: str) -> None:
    """Register a function that moves axes as NumPy's function of the same name."""

    def run(t: Core, x: Value, *places: Value, **named: Value) -> Tensor:
        return _numpys(t, name, variable(t, x), *places, **named)

    function(name)(run)


for _name in ("swapaxes", "moveaxis", "rollaxis", "expand_dims", "squeeze"):
    _as_numpy(_name)


@function("tile")
def tile(t: Core, x: Value, reps: Value) -> Tensor:
    """Return the variable put side by side along each axis."""
    found, times = variable(t, x), sizes(t, reps)
    promised = _numpys(t, "tile", found, reps)
    missing = max(0, len(times) - found.rank)
    times = [*[1] * (found.rank - len(times)), *times]
    run = lambda x: op("Tile", elementary.unsqueeze(x, list(range(missing))), times)  # noqa: E731
    return computed(t, promised, run, found)


@function("flip")
def flip(t: Core, x: Value, axis: Value) -> Tensor:
    """Return the variable with the order along an axis reversed."""
    found = variable(t, x)
    place = checked_axis(t, axis, len(shape_of(t, found)), found)
    return computed(t, (found.dtype, found.shape), parts.flip, found, [place])


@function("fliplr")
def fliplr(t: Core, a: Value) -> Tensor:
    """Return the variable with the order along axis 1 reversed."""
    return flip(t, a, 1)


@function("flipud")
def flipud(t: Core, a: Value) -> Tensor:
    """Return the variable with the order along axis 0 reversed."""
    return flip(t, a, 0)


@function("broadcast_to")
def broadcast_to(t: Core, x: Value, shape: Value) -> Tensor:
    """Return the variable repeated to a shape that it broadcasts to."""
    found = variable(t, x)
    promised = _numpys(t, "broadcast_to", found, shape)
    return computed(t, promised, arrays.expand, found, shape_of(t, promised))


@function("diagonal")
def diagonal(t: Core, x: Value, offset: Value = 0, axis1: Value = 0, axis2: Value = 1) -> Tensor:
    """Return diagonals over two axes as a new last axis."""
    found = variable(t, x)
    promised = _numpys(t, "diagonal", found, offset, axis1, axis2)
    shape = shape_of(t, found)
    rows, columns = (checked_axis(t, axis, len(shape), found) for axis in (axis1, axis2))
    length = shape_of(t, promised)[-1]
    return computed(t, promised, parts.diagonal, found, offset, rows, columns, length)


@function("pad")
def pad(t: Core, x: Value, pad_width: Value, mode: Value, **keywords: Value) -> Tensor:
    """Return the variable with elements added around it."""
    found = variable(t, x)
    promised = _numpys(t, "pad", found, pad_width, mode, **keywords)
    rank = found.rank
    values = keywords.get("constant_values", 0)
    amounts, filled = _pairs(pad_width, rank), _pairs(values, rank)
    known = all(isinstance(one, int | float) for pair in filled or () for one in pair)
    if (
        mode not in ("constant", "edge", "reflect", "wrap")
        or not amounts
        or not filled
        or not known
    ):
        return promised
    return computed(t, promised, arrays.pad, found, amounts, mode, filled)


def _pairs(given: Value, rank: int) -> list[tuple[Any, Any]] | None:
    """Return the amounts for both sides of each axis, spread as NumPy spreads them."""
    if isinstance(given, Tensor):
        given = given.known.tolist() if given.known is not None else None
    if given is None:
        return None
    rows = list(given) if isinstance(given, tuple | list) else [given]
    if all(not isinstance(row, tuple | list) for row in rows):
        return [(rows[0], rows[-1])] * rank
    found = [(row[0], row[-1]) for row in rows]
    return found * rank if len(found) == 1 else found


@function("repeat")
def repeat(t: Core, x: Value, repeats: Value, axis: Value = None) -> Tensor:
    """Return the variable with each element repeated."""
    found = variable(t, x)
    for count in repeats if isinstance(repeats, tuple | list) else (repeats,):
        if isinstance(count, int) and count < 0:
            t.fail("value", f"expected repeats of 0 or more, got {count}", found)
    promised = _numpys(t, "repeat", found, repeats, axis)
    if axis is None:
        found = flatten(t, found)
    place = checked_axis(t, 0 if axis is None else axis, found.rank, found)
    counts = list(repeats) if isinstance(repeats, tuple | list) else [repeats]
    size = shape_of(t, found)[place]
    if len(counts) == 1 and isinstance(counts[0], int):
        return computed(t, promised, parts.repeat_each, found, place, counts[0])
    if isinstance(size, int) and all(isinstance(count, int) for count in counts):
        return computed(t, promised, arrays.repeat, found, place, counts)
    return promised


@function("broadcast")
def broadcast(t: Core, *args: Value) -> Value:
    """Return variables repeated to their common shape; a tuple if there are several."""
    if not args:
        t.fail("value", "expected at least one variable to broadcast")
    found = [variable(t, x) for x in args]
    shape = broadcast_shape(t, *found)
    results = tuple(computed(t, (x.dtype, shape), arrays.expand, x, shape) for x in found)
    return results[0] if len(results) == 1 else results


@function("sum_to")
def sum_to(t: Core, x: Value, shape: Value) -> Tensor:
    """Return the variable summed until it has a shape that broadcasts to its own."""
    found, wanted = variable(t, x), tuple(sizes(t, shape))
    own = shape_of(t, found)
    if len(own) < len(wanted):
        t.fail("rank", f"expected {len(wanted)} axes or more, got {t.show(found)}", found)
    # Chainer sums where a one is wanted, and compares no other size.
    made_of = [
        1 if definitely_equal(size, 1) else have
        for have, size in zip(own[len(own) - len(wanted) :], wanted, strict=True)
    ]
    return computed(t, (found.dtype, tuple(made_of)), arrays.sum_to, found, wanted)


@function("get_item")
def get_item(t: Core, x: Value, slices: Value) -> Tensor:
    """Return ``x[slices]``."""
    return item(t, variable(t, x), slices)


@function("scatter_add")
def scatter_add(t: Core, a: Value, slices: Value, b: Value) -> Tensor:
    """Return ``a`` with ``b`` added at places."""
    x, y = variable(t, a, "a"), variable(t, b, "b")
    size = product(shape_of(t, x))
    numbers = computed(t, (INT64, x.shape), arrays.numbered, x, size)
    places = item(t, numbers, slices)
    with t.emit.types_only():
        indexing.set_item(t, made(t, "Identity", [x], x.dtype, x.shape), slices, y)
    return computed(t, (x.dtype, x.shape), arrays.scatter_add, x, places, y)


@function("select_item")
def select_item(t: Core, x: Value, t_: Value) -> Tensor:
    """Return one element of each row of (batch, classes)."""
    found, places = variable(t, x), variable(t, t_, "t")
    shape, own = need_rank(t, found, 2, "x"), need_rank(t, places, 1, "t")
    if kind_of(places) != "i":
        t.fail("dtype-mismatch", f"expected integers as 't', got {t.show(places)}", places)
    if t.emit.differ(shape[0], own[0]):
        t.fail(
            "shape-mismatch",
            f"expected one batch size, got {t.show(found)} and {t.show(places)}",
            found,
            places,
        )
    return computed(t, (found.dtype, own), arrays.select_item, found, places)


@function("permutate")
def permutate(t: Core, x: Value, indices: Value, axis: Value = 0, inv: Value = False) -> Tensor:
    """Return the variable with the elements of an axis in another order."""
    from hagane.frontends.libraries.chainer.operands import axis as checked
    from hagane.frontends.libraries.numpy.operands import to_array

    found, places = variable(t, x), to_array(t, indices)
    place = checked(t, axis, len(shape_of(t, found)), found)
    own = need_rank(t, places, 1, "indices")
    if kind_of(places) != "i":
        t.fail("dtype-mismatch", f"expected indices as integers, got {t.show(places)}", places)
    shape = shape_of(t, found)
    if inv and t.emit.differ(own[0], shape[place]):
        t.fail(
            "shape-mismatch", f"{t.show(places)} does not permute {t.show(found)}", found, places
        )
    count = shape[place]
    if not inv and places.known is not None and places.known.dtype.kind in "iu":
        for index in {int(places.known.min(initial=0)), int(places.known.max(initial=-1))}:
            if not t.emit.may_reach(index, count, f"index of axis {place}"):
                t.fail("index", f"index {index} is beyond axis {place} of {t.show(found)}", found)
    taken = (*shape[:place], own[0], *shape[place + 1 :])  # of any number where not inverse
    promised = (found.dtype, taken)
    return computed(t, promised, arrays.permutate, found, places, place, bool(inv))


@function("as_strided")
def as_strided(t: Core, x: Value, shape: Value, strides: Value, *_: Value) -> Tensor:
    """Return a view of another shape."""
    found, own = variable(t, x), tuple(sizes(t, shape))
    lies_within(t, found, own, tuple(sizes(t, strides)), 0)
    return made(t, "AsStrided", [found], found.dtype, own)


@function("depth2space")
def depth2space(t: Core, X: Value, r: Value) -> Tensor:
    """Return channels moved into space: (batch, C / r^2, H r, W r)."""
    x = floating(t, X, "X")
    batch, channels, height, width = need_rank(t, x, 4, "X")
    t.emit.require_size(r, 1, "r")
    if t.emit.indivisible(channels, r * r, "channels"):
        t.fail("shape-mismatch", f"expected channels divisible by {r * r}, got {t.show(x)}", x)
    shape = (batch, floordiv(channels, r * r), height * r, width * r)
    return computed(t, (x.dtype, shape), arrays.depth_to_space, x, r)


@function("space2depth")
def space2depth(t: Core, X: Value, r: Value) -> Tensor:
    """Return space moved into channels: (batch, C r^2, H / r, W / r)."""
    x = floating(t, X, "X")
    batch, channels, height, width = need_rank(t, x, 4, "X")
    t.emit.require_size(r, 1, "r")
    for dim in (height, width):
        if t.emit.indivisible(dim, r, "height and width"):
            t.fail("shape-mismatch", f"expected sizes divisible by {r}, got {t.show(x)}", x)
    shape = (batch, channels * r * r, floordiv(height, r), floordiv(width, r))
    return computed(t, (x.dtype, shape), arrays.space_to_depth, x, r)


@function("resize_images")
def resize_images(
    t: Core, x: Value, output_shape: Value, *, mode: Value = "bilinear",
    align_corners: Value = True,
) -> Tensor:  # fmt: skip
    """Return (batch, channels, height, width) resized."""
    found = floating(t, x)
    shape = need_rank(t, found, 4, "x")
    target = per_axis(t, output_shape, 2, "output_shape")
    for dim in target:
        t.emit.require_size(dim, 1, "size to resize to")
    if mode not in ("bilinear", "nearest"):
        t.fail("value", f"expected mode to be 'bilinear' or 'nearest', got {t.show(t.wrap(mode))}")
    result = (found.dtype, (*shape[:2], *target))
    return computed(t, result, images.resized, found, target, mode, bool(align_corners))


@function("spatial_transformer_grid")
def spatial_transformer_grid(t: Core, theta: Value, output_shape: Value, **_: Value) -> Tensor:
    """Return a grid (batch, 2, height, width) of places to sample."""
    found = floating(t, theta, "theta")
    shape = need_rank(t, found, 3, "theta")
    if t.emit.differ(shape[1], 2) or t.emit.differ(shape[2], 3):
        t.fail("shape-mismatch", f"expected (batch, 2, 3), got {t.show(found)}", found)
    target = per_axis(t, output_shape, 2, "output_shape")
    result = (found.dtype, (shape[0], 2, *target))
    if not all(isinstance(size, int) for size in target):
        return made(t, "AffineGrid", [found], *result)
    return computed(t, result, images.affine_grid, found, *target)


@function("spatial_transformer_sampler")
def spatial_transformer_sampler(t: Core, x: Value, grid: Value, **_: Value) -> Tensor:
    """Return the input sampled at the places of a grid."""
    found, places = floating(t, x), floating(t, grid, "grid")
    shape, own = need_rank(t, found, 4, "x"), need_rank(t, places, 4, "grid")
    if t.emit.differ(own[1], 2) or t.emit.differ(own[0], shape[0]):
        t.fail(
            "shape-mismatch",
            f"the grid {t.show(places)} does not fit {t.show(found)}",
            found,
            places,
        )
    return computed(t, (found.dtype, (*shape[:2], *own[2:])), images.sampled, found, places)


@function("shift")
def shift(t: Core, x: Value, ksize: Value = 3, dilate: Value = 1) -> Tensor:
    """Return channels shifted in space."""
    found = floating(t, x)
    channels = need_rank(t, found, 4, "x")[1]
    kernel, dilations = per_axis(t, ksize, 2, "ksize"), per_axis(t, dilate, 2, "dilate")
    known = numbers([*kernel, *dilations, channels])
    if known is None:
        return made(t, "Shift", [found], found.dtype, found.shape)
    if not known[0] % 2 or not known[1] % 2 or known[4] < known[0] * known[1]:
        t.fail("value", f"expected odd ksize and as many channels as places in it: {t.show(found)}",
               found)  # fmt: skip
    return computed(t, found, windows.shifted, found, known[:2], known[2:4], known[4])


def _fourier(name: str, inverse: bool) -> None:
    def run(t: Core, x: Value) -> Value:
        if not isinstance(x, tuple | list) or len(x) != 2:
            t.fail("type", f"expected a real and an imaginary part, got {t.show(t.wrap(x))}")
        real, imaginary = (floating(t, part) for part in x)
        same_shape(t, real, imaginary, "the real and the imaginary part")
        promised = [(real.dtype, real.shape)] * 2
        return tuple(computed_parts(t, promised, arrays.fourier, real, imaginary, inverse))

    function(name)(run)


_fourier("fft", inverse=False)
_fourier("ifft", inverse=True)
