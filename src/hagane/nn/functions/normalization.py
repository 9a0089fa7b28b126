"""Normalizations."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from hagane.nn.autograd import type_check
from hagane.nn.autograd.invalid_type import user_place
from hagane.nn.autograd.variable import Variable
from hagane.nn.functions.applying import (
    array_of,
    constant_like,
    function,
    pop_options,
    require,
    shape_of,
)
from hagane.nn.functions.array import reshape
from hagane.nn.functions.fusing import fused
from hagane.ops.builder import dtype_of, op
from hagane.ops.normalization.trained_rows import ROWS
from hagane.ops.own_schemas import DOMAIN


def _axes(where: str, axis: Any, x: Any, gamma: Any) -> tuple[int, ...]:
    """Return the axes that a normalization averages over: by default the axes that scales lack."""
    if axis is None:
        return (0, *range(len(shape_of(gamma)) + 1, len(shape_of(x))))
    given = (axis,) if isinstance(axis, int) else tuple(axis)
    if not all(isinstance(one, int) for one in given):
        raise RuntimeError(f"{where}: axis must be int, tuple of int or None, got {axis!r}")
    if list(given) != sorted(set(given)):
        raise RuntimeError("numbers in axis must be sorted in ascending order")
    return given


def _shared(x: Any, parameter: Any, axes: tuple[int, ...]) -> Any:
    """Return a parameter with sizes of one where the normalization averages."""
    shape = shape_of(x)
    return reshape(parameter, tuple(1 if i in axes else n for i, n in enumerate(shape)))


def _check(where: str, x: Any, axes: tuple[int, ...], **parameters: Any) -> None:
    require(where, "x", x, kind="f")
    shape = shape_of(x)
    if any(not 0 <= one < len(shape) for one in axes):
        raise type_check.refuse(where, f"axes below {len(shape)}", f"axis == {axes}")
    kept = tuple(n for i, n in enumerate(shape) if i not in axes)
    for name, parameter in parameters.items():
        require(where, name, parameter, kind="f", shape=kept)


def _as(x: Any, like: Any) -> Any:
    """Return a value in the element type of another."""
    wanted = _element_type(like)
    if _element_type(x) != wanted:
        from hagane.nn.functions.array import cast

        return cast(x, wanted)
    return x


@function("x", "gamma", "beta")
def batch_normalization(x: Any, gamma: Any, beta: Any, **kwargs: Any) -> Any:
    """Return each channel with the mean and variance of its batch removed, scaled and moved.

    Args:
        x: (batch, channels, *sizes).
        gamma: Scales, (channels,).
        beta: Offsets, (channels,).
        **kwargs: ``eps`` (2e-5) is added to the variance; ``running_mean`` and ``running_var`` are
            arrays that are updated in place with ``decay`` (0.9); ``axis`` are the axes that are
            averaged over, by default the first and those after the sizes of ``gamma``.
    """
    eps, running_mean, running_var, decay, axis = pop_options(
        "batch_normalization",
        kwargs,
        eps=2e-5,
        running_mean=None,
        running_var=None,
        decay=0.9,
        axis=None,
    )
    require("batch_normalization", "x", x, kind="f", at_least=1)
    axes = _axes("batch_normalization", axis, x, gamma)
    _check("batch_normalization", x, axes, gamma=gamma, beta=beta)
    if all(isinstance(n, int) and n == 1 for n in (shape_of(x)[i] for i in axes)):
        warnings.warn(
            "batch_normalization: each mean is that of one value, so that the result is beta; "
            f"is config.train meant to be False here? At: {user_place()}",
            UserWarning,
            stacklevel=2,
        )
    given = (True, False, False)
    y, mean, var = fused(
        batch_normalized, x, gamma, beta, outputs=3, given=given, eps=eps, axes=axes
    )
    _track(x, axes, mean, var, running_mean, running_var, decay)
    return y


def batch_normalized(
    x: Any, gamma: Any, beta: Any, *, eps: float, axes: tuple[int, ...]
) -> tuple[Any, Any, Any]:
    """Return a batch normalised over axes, and its mean and variance with sizes of one there."""
    mean, var = _moments(x, axes)
    y = _normalized(x, mean, var, eps, _shared(x, gamma, axes), _shared(x, beta, axes))
    return y, mean, var


def _moments(x: Any, axes: tuple[int, ...]) -> tuple[Any, Any]:
    wide = _widened(x)
    mean = op("ReduceMean", wide, list(axes), keepdims=1)
    centred = op("Sub", wide, mean)
    return mean, op("ReduceMean", op("Mul", centred, centred), list(axes), keepdims=1)


def _widened(x: Any) -> Any:
    """Return float16 as float32, in which moments are taken."""
    from hagane.nn.functions.array import cast

    return cast(x, np.float32) if _element_type(x) == np.float16 else x


def _element_type(x: Any) -> Any:
    return x.dtype if isinstance(x, Variable) else dtype_of(x).numpy()


def _normalized(x: Any, mean: Any, var: Any, eps: float, gamma: Any, beta: Any) -> Any:
    wide = _widened(x)
    inverse = op(
        "Div", constant_like(1, wide), op("Sqrt", op("Add", var, constant_like(eps, wide)))
    )
    y = op("Mul", op("Sub", wide, mean), op("Mul", inverse, _as(gamma, wide)))
    return _as(op("Add", y, _as(beta, wide)), x)


def _track(
    x: Any,
    axes: tuple[int, ...],
    mean: Any,
    var: Any,
    running_mean: Any,
    running_var: Any,
    decay: float,
) -> None:
    """Update running moments in place."""
    count = int(np.prod([shape_of(x)[i] for i in axes]))
    unbiased = count / max(count - 1.0, 1.0)
    for running, current, factor in ((running_mean, mean, 1.0), (running_var, var, unbiased)):
        if running is None:
            continue
        array = array_of(running)
        found = array_of(current).reshape(array.shape).astype(array.dtype)
        array *= decay
        array += (1 - decay) * factor * found


@function("x", "gamma", "beta", "mean", "var")
def fixed_batch_normalization(
    x: Any, gamma: Any, beta: Any, mean: Any, var: Any, eps: float = 2e-5, axis: Any = None
) -> Any:
    """Return each channel with a given mean and variance removed, scaled and moved."""
    require("fixed_batch_normalization", "x", x, kind="f", at_least=1)
    axes = _axes("fixed_batch_normalization", axis, x, gamma)
    _check("fixed_batch_normalization", x, axes, gamma=gamma, beta=beta, mean=mean, var=var)
    wide = _widened(x)
    return _normalized(
        x,
        _as(_shared(x, mean, axes), wide),
        _as(_shared(x, var, axes), wide),
        eps,
        _shared(x, gamma, axes),
        _shared(x, beta, axes),
    )


@function("x", "gamma", "beta")
def batch_renormalization(
    x: Any,
    gamma: Any,
    beta: Any,
    rmax: float,
    dmax: float,
    eps: float = 2e-5,
    running_mean: Any = None,
    running_var: Any = None,
    decay: float = 0.9,
    update_statistics: bool = False,
) -> Any:
    """Return a batch normalization corrected towards running moments (Ioffe 2017).

    Args:
        x: (batch, channels, *sizes).
        gamma: Scales, (channels,).
        beta: Offsets, (channels,).
        rmax: The largest correction of the deviation.
        dmax: The largest correction of the mean.
        eps: Added to variances.
        running_mean: (channels,).
        running_var: (channels,).
        decay: Of the running moments.
        update_statistics: Whether these are updated in place.
    """
    require("batch_renormalization", "x", x, kind="f", at_least=2)
    axes = (0, *range(len(shape_of(gamma)) + 1, len(shape_of(x))))
    _check("batch_renormalization", x, axes, gamma=gamma, beta=beta)
    channels = shape_of(gamma)
    mean, var = _moments(x, axes)
    dtype = mean.dtype
    old_mean = np.zeros(channels, dtype) if running_mean is None else array_of(running_mean)
    old_var = np.ones(channels, dtype) if running_var is None else array_of(running_var)
    shape = mean.shape
    deviation = np.sqrt(array_of(var) + dtype.type(eps))
    running = np.sqrt(old_var.reshape(shape).astype(dtype) + dtype.type(eps))
    r = np.clip(deviation / running, 1.0 / rmax, rmax).astype(dtype)
    shift = (array_of(mean) - old_mean.reshape(shape).astype(dtype)) / running
    d = np.clip(shift, -dmax, dmax).astype(dtype)
    if update_statistics:
        _track(x, axes, mean, var, running_mean, running_var, decay)
    wide = _widened(x)
    inverse = op(
        "Div", constant_like(1, wide), op("Sqrt", op("Add", var, constant_like(eps, wide)))
    )
    y = op("Add", op("Mul", op("Mul", op("Sub", wide, mean), inverse), r), d)
    y = op("Mul", y, _as(_shared(x, gamma, axes), wide))
    return _as(op("Add", y, _as(_shared(x, beta, axes), wide)), x)


def fixed_batch_renormalization(
    x: Any, gamma: Any, beta: Any, mean: Any, var: Any, eps: float = 2e-5
) -> Any:
    """Return a batch normalization with given moments."""
    import warnings

    warnings.warn(
        "fixed_batch_renormalization is deprecated. Use fixed_batch_normalization instead.",
        DeprecationWarning,
        stacklevel=2,
    )
    return fixed_batch_normalization(x, gamma, beta, mean, var, eps)


@function("x", "gamma", "beta")
def layer_normalization(x: Any, gamma: Any, beta: Any, eps: float = 1e-5) -> Any:
    """Return each sample with its own mean and variance removed, scaled and moved.

    Args:
        x: (batch, features).
        gamma: Scales, (features,).
        beta: Offsets, (features,).
        eps: Added to the variance.
    """
    where = "layer_normalization"
    require(where, "x", x, kind="f", ndim=2)
    features = shape_of(x)[1]
    require(where, "gamma", gamma, shape=(features,))
    require(where, "beta", beta, shape=(features,), dtype_as=("gamma", gamma))
    return fused(_normalized_in_one, x, gamma, beta, otherwise=rows_normalized, eps=eps)


def _normalized_in_one(x: Any, gamma: Any, beta: Any, *, eps: float) -> Any:
    """Return ``rows_normalized`` by the operator that has it in one kernel."""
    return op(ROWS, x, gamma, beta, axis=-1, epsilon=eps, domain=DOMAIN)


def rows_normalized(x: Any, gamma: Any, beta: Any, *, eps: float) -> Any:
    """Return each row of a matrix with its own mean and variance removed, scaled and moved."""
    mean, var = _moments(x, (1,))
    return _normalized(x, mean, var, eps, gamma, beta)


@function("x", "gamma", "beta")
def layer_norm(x: Any, gamma: Any, beta: Any = None, eps: float = 1e-5) -> Any:
    """Return the last axis with its mean and variance removed, scaled and moved."""
    require("layer_norm", "x", x, kind="f", at_least=1)
    return op("LayerNormalization", x, gamma, beta, axis=-1, epsilon=eps)


@function("x", "gamma")
def rms_norm(x: Any, gamma: Any, eps: float = 1e-6) -> Any:
    """Return the last axis divided by its root mean square, scaled (Zhang and Sennrich 2019)."""
    require("rms_norm", "x", x, kind="f", at_least=1)
    return op("RMSNormalization", x, gamma, axis=-1, epsilon=eps)


@function("x", "gamma", "beta")
def group_normalization(x: Any, groups: int, gamma: Any, beta: Any, eps: float = 1e-5) -> Any:
    """Return groups of channels with their mean and variance removed (Wu and He 2018).

    Args:
        x: (batch, channels, *sizes).
        groups: The number of groups.
        gamma: Scales, (channels,).
        beta: Offsets, (channels,).
        eps: Added to the variance.
    """
    where = "group_normalization"
    shape = tuple(shape_of(x))
    if len(shape) <= 1:
        raise ValueError(
            f"Input dimension must be greater than 1, including batch size dimension, got {shape}"
        )
    if not isinstance(groups, int):
        raise TypeError(f"Argument: 'groups' type must be (int), got {type(groups)}")
    if groups < 1 or shape[1] % groups:
        raise ValueError(
            f"Argument: 'groups' ({groups}) must be a divisor of 'input channels' ({shape[1]})"
        )
    require(where, "x", x, kind="f")
    require(where, "gamma", gamma, kind="f", shape=(shape[1],))
    require(where, "beta", beta, kind="f", shape=(shape[1],))
    rest = int(np.prod(shape[1:])) // groups
    rows = reshape(x, (shape[0], groups, rest))
    wide = _widened(rows)
    mean, var = _moments(rows, (2,))
    inverse = op(
        "Div", constant_like(1, wide), op("Sqrt", op("Add", var, constant_like(eps, wide)))
    )
    y = reshape(op("Mul", op("Sub", wide, mean), inverse), shape)
    more = (1, shape[1], *(1,) * (len(shape) - 2))
    y = op("Mul", y, _as(reshape(gamma, more), wide))
    return _as(op("Add", y, _as(reshape(beta, more), wide)), x)


@function("x")
def local_response_normalization(
    x: Any, n: int = 5, k: float = 2, alpha: float = 1e-4, beta: float = 0.75
) -> Any:
    """Return elements divided by a power of the squares of ``n`` neighbouring channels."""
    require("local_response_normalization", "x", x, kind="f", at_least=2)
    shape = tuple(shape_of(x))
    half = n // 2
    squares = op("Mul", x, x)
    rank = len(shape)
    amounts = [0] * (2 * rank)
    amounts[1] = amounts[rank + 1] = half
    sums = op("CumSum", op("Pad", squares, amounts), np.array(1, np.int64))
    width = shape[1] + 2 * half
    upper = op("Slice", sums, [2 * half], [width], [1])
    lower = op("Pad", op("Slice", sums, [0], [shape[1] - 1], [1]), [0, 1] + [0] * (2 * rank - 2))
    unit = op(
        "Add", constant_like(k, x), op("Mul", constant_like(alpha, x), op("Sub", upper, lower))
    )
    return op("Mul", x, op("Pow", unit, constant_like(-beta, x)))


@function("x")
def normalize(x: Any, eps: float = 1e-5, axis: Any = 1) -> Any:
    """Return vectors along axes divided by their length.

    Args:
        x: An array of two or more axes.
        eps: Added to the length.
        axis: The axes of a vector.
    """
    require("normalize", "x", x, kind="f")
    axes = [axis] if isinstance(axis, int) else list(axis)
    rank = len(shape_of(x))
    for one in axes:
        if not -rank <= one < rank:
            raise type_check.refuse("normalize", f"axis < {rank}", f"axis == {axis}")
    norm = op("ReduceL2", x, axes, keepdims=1)
    return op("Div", x, op("Add", norm, constant_like(eps, x)))
