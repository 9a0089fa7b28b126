"""Functions of Chainer that move axes and elements."""

from __future__ import annotations

from hagane.frontends.libraries import indexing
from hagane.frontends.libraries.chainer.operands import (
    broadcast_shape,
    floating,
    kind_of,
    made,
    need_rank,
    per_axis,
    shape_of,
    sizes,
    variable,
)
from hagane.frontends.libraries.chainer.table import function
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.values.values import Tensor, Value
from hagane.symbolic import floordiv, product


@function("reshape")
def reshape(t: Core, x: Value, shape: Value) -> Tensor:
    """Return the variable with another shape, of which one size may be -1."""
    from hagane.frontends.libraries.numpy.operands import reshape as run

    return run(t, variable(t, x), sizes(t, shape))


@function("flatten")
def flatten(t: Core, x: Value) -> Tensor:
    """Return all elements in one axis."""
    found = variable(t, x)
    return made(t, "Flatten", [found], found.dtype, (product(shape_of(t, found)),))


@function("transpose")
def transpose(t: Core, x: Value, axes: Value = None) -> Tensor:
    """Return the variable with its axes in another order, reversed without one."""
    from hagane.frontends.libraries.numpy.shaping import permuted

    return permuted(t, variable(t, x), axes)


def _as_numpy(name: str, count: int) -> None:
    """Register a function that moves axes as NumPy's function of the same name."""

    def run(t: Core, x: Value, *places: Value, **named: Value) -> Tensor:
        from hagane.frontends.libraries.numpy.table import NUMPY
        from hagane.frontends.libraries.table import call_handler

        found = variable(t, x)
        array = found.seen_as("numpy.ndarray")
        handler = NUMPY.functions[f"numpy.{name}"]
        result = call_handler(handler, f"chainer.functions.{name}", t, [array, *places], named)
        assert isinstance(result, Tensor)
        return variable(t, result)

    del count
    function(name)(run)


for _name in (
    "swapaxes",
    "moveaxis",
    "rollaxis",
    "expand_dims",
    "squeeze",
    "tile",
    "flip",
    "fliplr",
    "flipud",
    "pad",
    "broadcast_to",
    "diagonal",
):
    _as_numpy(_name, 0)


@function("repeat")
def repeat(t: Core, x: Value, repeats: Value, axis: Value = None) -> Tensor:
    """Return the variable with each element repeated."""
    from hagane.frontends.libraries.numpy.operands import to_array
    from hagane.frontends.libraries.numpy.shaping import repeat as run

    return variable(t, run(t, to_array(t, variable(t, x)), repeats, axis))


@function("broadcast")
def broadcast(t: Core, *args: Value) -> Value:
    """Return variables repeated to their common shape; a tuple if there are several."""
    found = [variable(t, x) for x in args]
    shape = broadcast_shape(t, *found)
    results = tuple(made(t, "Expand", [x], x.dtype, shape) for x in found)
    return results[0] if len(results) == 1 else results


@function("sum_to")
def sum_to(t: Core, x: Value, shape: Value) -> Tensor:
    """Return the variable summed until it has a shape that broadcasts to its own."""
    found = variable(t, x)
    return made(t, "SumTo", [found], found.dtype, tuple(sizes(t, shape)))


@function("get_item")
def get_item(t: Core, x: Value, slices: Value) -> Tensor:
    """Return ``x[slices]``."""
    from hagane.frontends.libraries.numpy.methods import item

    return item(t, variable(t, x), slices)


@function("scatter_add")
def scatter_add(t: Core, a: Value, slices: Value, b: Value) -> Tensor:
    """Return ``a`` with ``b`` added at places."""
    x, y = variable(t, a, "a"), variable(t, b, "b")
    indexing.set_item(t, made(t, "Identity", [x], x.dtype, x.shape), slices, y)
    return made(t, "ScatterAdd", [x, y], x.dtype, x.shape)


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
    return made(t, "SelectItem", [found, places], found.dtype, own)


@function("permutate")
def permutate(t: Core, x: Value, indices: Value, axis: Value = 0, inv: Value = False) -> Tensor:
    """Return the variable with the elements of an axis in another order."""
    from hagane.frontends.libraries.chainer.operands import axis as checked
    from hagane.frontends.libraries.numpy.operands import to_array

    found, places = variable(t, x), to_array(t, indices)
    place = checked(t, axis, len(shape_of(t, found)), found)
    own = need_rank(t, places, 1, "indices")
    if t.emit.differ(own[0], shape_of(t, found)[place]):
        t.fail(
            "shape-mismatch", f"{t.show(places)} does not permute {t.show(found)}", found, places
        )
    return made(t, "Permutate", [found], found.dtype, found.shape)


@function("as_strided")
def as_strided(t: Core, x: Value, shape: Value, strides: Value, *_: Value) -> Tensor:
    """Return a view of another shape."""
    found = variable(t, x)
    return made(t, "AsStrided", [found], found.dtype, tuple(sizes(t, shape)))


@function("depth2space")
def depth2space(t: Core, X: Value, r: Value) -> Tensor:
    """Return channels moved into space: (batch, C / r^2, H r, W r)."""
    x = floating(t, X, "X")
    batch, channels, height, width = need_rank(t, x, 4, "X")
    if t.emit.differ(floordiv(channels, r * r) * r * r, channels):
        t.fail("shape-mismatch", f"expected channels divisible by {r * r}, got {t.show(x)}", x)
    shape = (batch, floordiv(channels, r * r), height * r, width * r)
    return made(t, "DepthToSpace", [x], x.dtype, shape)


@function("space2depth")
def space2depth(t: Core, X: Value, r: Value) -> Tensor:
    """Return space moved into channels: (batch, C r^2, H / r, W / r)."""
    x = floating(t, X, "X")
    batch, channels, height, width = need_rank(t, x, 4, "X")
    for dim in (height, width):
        if t.emit.differ(floordiv(dim, r) * r, dim):
            t.fail("shape-mismatch", f"expected sizes divisible by {r}, got {t.show(x)}", x)
    shape = (batch, channels * r * r, floordiv(height, r), floordiv(width, r))
    return made(t, "SpaceToDepth", [x], x.dtype, shape)


@function("resize_images")
def resize_images(t: Core, x: Value, output_shape: Value, *_: Value, **__: Value) -> Tensor:
    """Return (batch, channels, height, width) resized."""
    found = floating(t, x)
    shape = need_rank(t, found, 4, "x")
    target = per_axis(t, output_shape, 2, "output_shape")
    for dim in target:
        t.emit.require_size(dim, 1, "size to resize to")
    return made(t, "Resize", [found], found.dtype, (*shape[:2], *target))


@function("spatial_transformer_grid")
def spatial_transformer_grid(t: Core, theta: Value, output_shape: Value, **_: Value) -> Tensor:
    """Return a grid (batch, 2, height, width) of places to sample."""
    found = floating(t, theta, "theta")
    shape = need_rank(t, found, 3, "theta")
    if t.emit.differ(shape[1], 2) or t.emit.differ(shape[2], 3):
        t.fail("shape-mismatch", f"expected (batch, 2, 3), got {t.show(found)}", found)
    return made(t, "AffineGrid", [found], found.dtype, (shape[0], 2, *sizes(t, output_shape)))


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
    return made(t, "GridSample", [found, places], found.dtype, (*shape[:2], *own[2:]))


@function("shift")
def shift(t: Core, x: Value, ksize: Value = 3, dilate: Value = 1) -> Tensor:
    """Return channels shifted in space."""
    found = floating(t, x)
    need_rank(t, found, 4, "x")
    return made(t, "Shift", [found], found.dtype, found.shape)


@function("fft", "ifft")
def fft(t: Core, x: Value) -> Value:
    """Return a Fourier transform of (real, imaginary)."""
    real, imaginary = (floating(t, part) for part in x)
    return (
        made(t, "DFT", [real], real.dtype, real.shape),
        made(t, "DFT", [imaginary], imaginary.dtype, imaginary.shape),
    )
