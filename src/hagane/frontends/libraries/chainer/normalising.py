"""Normalisations of Chainer."""

from __future__ import annotations

from hagane.frontends.libraries.chainer.operands import (
    axes,
    computed,
    floating,
    made,
    need_rank,
    same_dtype,
    same_shape,
    shape_of,
    variable,
)
from hagane.frontends.libraries.chainer.table import function
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.values.values import Tensor, Value
from hagane.ops.functions.chainer import normalizing as functions
from hagane.ops.functions.sums import normalizing


def key_axes(rank: int, own: int, axis: Value) -> tuple[int, ...]:
    """Return the axes that have a mean of their own each."""
    if axis is None:
        return tuple(range(1, own + 1))
    gone = (axis,) if isinstance(axis, int) else tuple(axis)
    gone = tuple(a % rank for a in gone)
    return tuple(i for i in range(rank) if i not in gone)


def checked(
    t: Core, x: Value, gamma: Value, beta: Value, axis: Value
) -> tuple[Tensor, Tensor, Tensor, list[int]]:
    """Return the input, scale and shift, and the axes over which is averaged."""
    found, scale, shift = floating(t, x), floating(t, gamma, "gamma"), floating(t, beta, "beta")
    same_dtype(t, scale, shift, "gamma and beta")
    same_shape(t, scale, shift, "gamma and beta")
    shape, own = shape_of(t, found), shape_of(t, scale)
    if axis is not None:
        axes(t, axis, len(shape), found)
    places = key_axes(len(shape), len(own), axis)
    fits = len(places) == len(own) and all(place < len(shape) for place in places)
    if not fits:
        t.fail(
            "rank",
            f"expected as many axes as the parameters {t.show(scale)} have besides the batch, got "
            f"{t.show(found)}",
            found,
        )
    for place, expected in zip(places, own, strict=True):
        if t.emit.differ(shape[place], expected):
            t.fail(
                "shape-mismatch",
                f"expected {expected} channels in axis {place}, got {shape[place]}: "
                f"{t.show(found)}",
                found,
            )
    return found, scale, shift, [axis for axis in range(len(shape)) if axis not in places]


def normalised(t: Core, x: Value, gamma: Value, beta: Value, axis: Value, eps: Value) -> Tensor:
    """Return the input normalised over its batch and the axes without parameters."""
    found, scale, shift, gone = checked(t, x, gamma, beta, axis)
    run = functions.batch_normalization
    return computed(t, found, run, found, scale, shift, gone, eps)


def normalised_by(
    t: Core, x: Value, gamma: Value, beta: Value, mean: Value, var: Value, axis: Value, eps: Value
) -> Tensor:
    """Return the input normalised by given statistics."""
    found, scale, shift, gone = checked(t, x, gamma, beta, axis)
    given = (scale, shift, variable(t, mean, "mean"), variable(t, var, "var"))
    return computed(t, found, functions.fixed_batch_normalization, found, *given, gone, eps)


@function("batch_normalization")
def batch_normalization(
    t: Core, x: Value, gamma: Value, beta: Value, eps: Value = 2e-5, running_mean: Value = None,
    running_var: Value = None, decay: Value = 0.9, axis: Value = None,
) -> Tensor:  # fmt: skip
    """Return the input normalised by the statistics of the batch."""
    return normalised(t, x, gamma, beta, axis, eps)


@function("fixed_batch_normalization")
def fixed_batch_normalization(
    t: Core, x: Value, gamma: Value, beta: Value, mean: Value, var: Value, eps: Value = 2e-5,
    axis: Value = None,
) -> Tensor:  # fmt: skip
    """Return the input normalised by given statistics."""
    for value, name in ((mean, "mean"), (var, "var")):
        same_shape(t, floating(t, gamma, "gamma"), floating(t, value, name), f"gamma and {name}")
    return normalised_by(t, x, gamma, beta, mean, var, axis, eps)


@function("batch_renormalization")
def batch_renormalization(
    t: Core, x: Value, gamma: Value, beta: Value, *_: Value, **__: Value
) -> Tensor:
    """Return the input normalised by the statistics of the batch, corrected."""
    found = checked(t, x, gamma, beta, None)[0]
    return made(t, "BatchRenormalization", [found], found.dtype, found.shape)


@function("fixed_batch_renormalization")
def fixed_batch_renormalization(
    t: Core, x: Value, gamma: Value, beta: Value, mean: Value, var: Value, eps: Value = 2e-5
) -> Tensor:
    """Return the input normalised by given statistics."""
    return fixed_batch_normalization(t, x, gamma, beta, mean, var, eps)


@function("decorrelated_batch_normalization", "fixed_decorrelated_batch_normalization")
def decorrelated(t: Core, x: Value, *_: Value, **__: Value) -> Tensor:
    """Return the input whitened over the batch."""
    found = floating(t, x)
    return made(t, "BatchNormalization", [found], found.dtype, found.shape)


@function("layer_normalization")
def layer_normalization(t: Core, x: Value, gamma: Value, beta: Value, eps: Value = 1e-5) -> Tensor:
    """Return (batch, features) with each sample normalised."""
    found, scale, shift = floating(t, x), variable(t, gamma, "gamma"), variable(t, beta, "beta")
    shape = shape_of(t, found)
    if len(shape) != 2:
        t.fail(
            "rank",
            f"layer normalization expects (batch, features), got {t.show(found)}",
            found,
            remedy="reshape it first: F.reshape(x, (-1, x.shape[-1]))",
        )
    same_dtype(t, found, scale, "x and gamma")
    same_shape(t, scale, shift, "gamma and beta")
    own = need_rank(t, scale, 1, "gamma")
    if t.emit.differ(shape[1], own[0]):
        t.fail(
            "shape-mismatch", f"expected {own[0]} features, got {shape[1]}: {t.show(found)}", found
        )
    run = normalizing.layer_norm
    return computed(t, (found.dtype, shape), run, found, 1, scale, shift, eps)


@function("group_normalization")
def group_normalization(
    t: Core, x: Value, groups: Value, gamma: Value, beta: Value, eps: Value = 1e-5
) -> Tensor:
    """Return the input normalised over groups of channels."""
    found, scale = floating(t, x), floating(t, gamma, "gamma")
    shift = floating(t, beta, "beta")
    shape = shape_of(t, found)
    if len(shape) < 2:
        t.fail("rank", f"expected (batch, channels, ...), got {t.show(found)}", found)
    same_shape(t, scale, shift, "gamma and beta")
    if t.emit.differ(need_rank(t, scale, 1, "gamma")[0], shape[1]):
        t.fail("shape-mismatch", f"{t.show(scale)} does not fit {t.show(found)}", found, scale)
    t.emit.require_size(groups, 1, "groups")
    if t.emit.indivisible(shape[1], groups, "channels in groups"):
        t.fail(
            "shape-mismatch", f"expected channels divisible by {groups}, got {t.show(found)}", found
        )
    if not isinstance(groups, int):
        return made(t, "GroupNormalization", [found], found.dtype, shape)
    return computed(t, found, normalizing.group_norm, found, groups, scale, shift, eps)


@function("local_response_normalization")
def local_response_normalization(t: Core, x: Value, n: Value = 5, k: Value = 2, alpha: Value = 1e-4,
                                 beta: Value = 0.75) -> Tensor:  # fmt: skip
    """Return the input normalised over neighbouring channels."""
    found = floating(t, x)
    if len(shape_of(t, found)) < 2:
        t.fail("rank", f"expected (batch, channels, ...), got {t.show(found)}", found)
    if not isinstance(n, int):
        t.fail("type", f"expected n to be an integer, got {t.show(t.wrap(n))}", found)
    run = functions.local_response_normalization
    return computed(t, found, run, found, n, float(k), float(alpha), float(beta))
