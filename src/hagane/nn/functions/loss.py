"""Loss functions: the checks of Chainer's arguments, around the functions over the builder."""

from __future__ import annotations

import math
from typing import Any

from hagane.errors import OutOfRange
from hagane.nn.autograd import type_check
from hagane.nn.autograd.configuration import using_config
from hagane.nn.autograd.debugging import at_place
from hagane.nn.autograd.variable import Variable
from hagane.nn.functions.activation import softplus
from hagane.nn.functions.applying import (
    array_of,
    check_indices,
    function,
    lift,
    noted,
    require,
    shape_of,
)
from hagane.nn.functions.arithmetic import add, div, mul, neg, sub
from hagane.nn.functions.fusing import fused
from hagane.nn.functions.math import average, exp, sum
from hagane.ops.builder import op
from hagane.ops.functions.chainer import losses


def check_reduce(where: str, reduce: str, *allowed: str) -> None:
    """Check the option ``reduce``.

    Raises:
        ValueError: It is none of those allowed.
    """
    if reduce not in allowed:
        texts = ", ".join(map(repr, allowed))
        raise ValueError(f"{where}: only {texts} are valid for 'reduce', but {reduce!r} is given")


def _same(where: str, **arrays: Any) -> None:
    (first, x), *rest = arrays.items()
    require(where, first, x, kind="f")
    for name, y in rest:
        require(where, name, y, dtype_as=(first, x), shape_as=(first, x))


@function("x", ":t")
def softmax_cross_entropy(
    x: Any,
    t: Any,
    normalize: bool = True,
    cache_score: bool = True,
    class_weight: Any = None,
    ignore_label: int = -1,
    reduce: str = "mean",
    enable_double_backprop: bool = False,
    soft_target_loss: str = "cross-entropy",
) -> Any:
    """Return the cross entropy of the softmax over the second axis.

    Args:
        x: Scores, (batch, classes, *places).
        t: Classes, integers (batch, *places); or probabilities like ``x``.
        normalize: Whether the mean is over labels that are not ignored, else over the batch.
        cache_score: Whether the function that made the loss tells the softmax, as ``y``.
        class_weight: A weight for each class; probabilities are not weighted, as in Chainer.
        ignore_label: Places of this class do not count.
        reduce: ``mean`` or ``no``.
        enable_double_backprop: Kept for programs that set it: it is always possible.
        soft_target_loss: ``cross-entropy`` or ``kl-divergence``, for probabilities.
    """
    where = "softmax_cross_entropy"
    check_reduce(where, reduce, "mean", "no")
    require(where, "x", x, kind="f", at_least=2)
    labels = array_of(t)
    shape = tuple(shape_of(x))
    weights: Any = None if class_weight is None else array_of(class_weight)
    if class_weight is not None:
        if isinstance(class_weight, Variable):
            raise ValueError("class_weight should be a numpy.ndarray, not a Variable")
        if weights.ndim != 1:
            raise ValueError("class_weight.ndim should be 1")
        if weights.dtype.kind != "f":
            raise ValueError("The dtype of class_weight should be 'f'")
        if len(weights) != shape[1]:
            raise type_check.refuse(
                where,
                f"class_weight of {shape[1]} classes",
                f"class_weight.shape == {weights.shape}",
            )
        weights = weights.astype(x.dtype, copy=False)
    if labels.dtype.kind == "f" and labels.shape == shape:
        if soft_target_loss not in ("cross-entropy", "kl-divergence"):
            raise ValueError(
                "soft_target_loss must be 'cross-entropy' or 'kl-divergence', but "
                f"{soft_target_loss!r} is given."
            )
        return losses.soft_cross_entropy(x, lift(labels), reduce, soft_target_loss)
    if labels.dtype.kind != "i":
        raise type_check.refuse(where, "t.dtype.kind == 'i'", f"t.dtype == {labels.dtype}")
    if labels.shape != (shape[0], *shape[2:]):
        raise type_check.refuse(
            where, f"t.shape == {(shape[0], *shape[2:])}", f"t.shape == {labels.shape}"
        )
    wrong = (labels != ignore_label) & ((labels < 0) | (labels >= shape[1]))
    if wrong.any():
        raise OutOfRange(
            f"{where}: Each label `t` need to satisfy `0 <= t < x.shape[1]` (= {shape[1]}) or to "
            f"be ignore_label ({ignore_label}), got {labels[wrong][0]}{at_place()}"
        )
    loss = fused(
        losses.softmax_cross_entropy, x, lift(labels), weights,
        ignored=ignore_label, reduce=reduce, normalize=normalize,
    )  # fmt: skip
    kept = cache_score and not enable_double_backprop
    return noted(loss, y=lambda: _softmax(x) if kept else None)


def _softmax(x: Any) -> Any:
    with using_config("enable_backprop", False):
        return op("Softmax", x, axis=1).array


@function("x", ":t")
def sigmoid_cross_entropy(x: Any, t: Any, normalize: bool = True, reduce: str = "mean") -> Any:
    """Return the cross entropy of the sigmoid.

    Args:
        x: Scores.
        t: Of the same sizes: 1, 0, or -1 where ignored.
        normalize: Whether the mean is over labels that count, else over the batch.
        reduce: ``mean`` or ``no``.
    """
    where = "sigmoid_cross_entropy"
    check_reduce(where, reduce, "mean", "no")
    require(where, "x", x, kind="f")
    labels = array_of(t)
    if labels.dtype.kind != "i" or labels.shape != tuple(shape_of(x)):
        raise type_check.refuse(
            where, f"t: integers of shape {shape_of(x)}", f"{labels.dtype} {labels.shape}"
        )
    return losses.sigmoid_cross_entropy(x, lift(labels), normalize, reduce)


@function("x0", "x1")
def mean_squared_error(x0: Any, x1: Any) -> Any:
    """Return the mean of squared differences."""
    _same("mean_squared_error", x0=x0, x1=x1)
    return losses.squared_error(x0, x1, "mean")


@function("x0", "x1")
def mean_absolute_error(x0: Any, x1: Any) -> Any:
    """Return the mean of absolute differences."""
    _same("mean_absolute_error", x0=x0, x1=x1)
    return losses.absolute_error(x0, x1, "mean")


@function("x0", "x1")
def absolute_error(x0: Any, x1: Any) -> Any:
    """Return absolute differences, element by element."""
    _same("absolute_error", x0=x0, x1=x1)
    return losses.absolute_error(x0, x1)


@function("x0", "x1")
def squared_error(x0: Any, x1: Any) -> Any:
    """Return squared differences, element by element."""
    _same("squared_error", x0=x0, x1=x1)
    return losses.squared_error(x0, x1)


@function("x", "t")
def huber_loss(x: Any, t: Any, delta: float, reduce: str = "sum_along_second_axis") -> Any:
    """Return squared differences up to ``delta``, beyond it linear (Huber 1964)."""
    check_reduce("huber_loss", reduce, "sum_along_second_axis", "no")
    _same("huber_loss", x=x, t=t)
    return losses.huber(x, t, delta, reduce)


@function("x", ":t")
def hinge(x: Any, t: Any, norm: str = "L1", reduce: str = "mean") -> Any:
    """Return how far scores are from being right by a margin of one.

    Args:
        x: Scores, (batch, classes).
        t: Classes, integers (batch,).
        norm: ``L1`` or ``L2``: the distances or their squares.
        reduce: ``mean``: the sum of a sample's distances, averaged; or ``no``.
    """
    check_reduce("hinge", reduce, "mean", "no")
    if norm not in ("L1", "L2"):
        raise NotImplementedError(f"norm should be either 'L1' or 'L2', got {norm!r}")
    require("hinge", "x", x, kind="f", ndim=2)
    labels = array_of(t)
    n = shape_of(x)[0]
    if labels.dtype.kind != "i" or labels.shape != (n,):
        raise type_check.refuse("hinge", f"t: {n} integers", f"{labels.dtype} {labels.shape}")
    check_indices("hinge", "t", labels, shape_of(x)[1])
    return losses.hinge(x, lift(labels), norm, reduce)


@function("x0", "x1", ":y")
def contrastive(x0: Any, x1: Any, y: Any, margin: float = 1, reduce: str = "mean") -> Any:
    """Return the contrastive loss of pairs (Hadsell, Chopra and LeCun 2006).

    Args:
        x0: (batch, features).
        x1: (batch, features).
        y: 1 for pairs that are alike, else 0, integers (batch,).
        margin: From which distance pairs that differ cost nothing.
        reduce: ``mean`` or ``no``.
    """
    if margin <= 0:
        raise ValueError("margin should be positive value.")
    check_reduce("contrastive", reduce, "mean", "no")
    require("contrastive", "x0", x0, kind="f", ndim=2)
    _same("contrastive", x0=x0, x1=x1)
    alike = array_of(y)
    n = shape_of(x0)[0]
    if alike.dtype.kind != "i" or alike.shape != (n,):
        raise type_check.refuse("contrastive", f"y: {n} integers", f"{alike.dtype} {alike.shape}")
    return losses.contrastive(x0, x1, lift(alike), margin, reduce)


@function("anchor", "positive", "negative")
def triplet(
    anchor: Any, positive: Any, negative: Any, margin: float = 0.2, reduce: str = "mean"
) -> Any:
    """Return the triplet loss (Schroff et al. 2015) of arrays (batch, features)."""
    if margin <= 0:
        raise ValueError("margin should be positive value.")
    check_reduce("triplet", reduce, "mean", "no")
    require("triplet", "anchor", anchor, kind="f", ndim=2)
    _same("triplet", anchor=anchor, positive=positive, negative=negative)
    return losses.triplet(anchor, positive, negative, margin, reduce)


def _folded(x: Any, reduce: str) -> Any:
    """Return losses as they are, their mean or their sum, by calls that programs see."""
    if reduce == "no":
        return x
    return sum(x) if reduce == "sum" else average(x)


@function("mean", "ln_var", composed=True)
def gaussian_kl_divergence(mean: Any, ln_var: Any, reduce: str = "sum") -> Any:
    """Return the divergence of Gaussians from the standard one.

    Args:
        mean: Their means.
        ln_var: Logarithms of their variances.
        reduce: ``sum``, ``mean`` or ``no``.
    """
    check_reduce("gaussian_kl_divergence", reduce, "sum", "mean", "no")
    _same("gaussian_kl_divergence", mean=mean, ln_var=ln_var)
    variance = exp(ln_var)
    parts = add(sub(add(mul(mean, mean), variance), ln_var), -1)
    return _folded(mul(parts, 0.5), reduce)


@function("x", "mean", "ln_var", composed=True)
def gaussian_nll(x: Any, mean: Any, ln_var: Any, reduce: str = "sum") -> Any:
    """Return the negative logarithm of the density of Gaussians."""
    check_reduce("gaussian_nll", reduce, "sum", "mean", "no")
    _same("gaussian_nll", x=x, mean=mean, ln_var=ln_var)
    precision = exp(neg(ln_var))
    difference = sub(x, mean)
    power = mul(mul(mul(difference, difference), precision), -0.5)
    return _folded(sub(div(add(ln_var, math.log(2 * math.pi)), 2), power), reduce)


@function("x", "y", composed=True)
def bernoulli_nll(x: Any, y: Any, reduce: str = "sum") -> Any:
    """Return the negative logarithm of Bernoulli probabilities ``sigmoid(y)`` of ``x``."""
    check_reduce("bernoulli_nll", reduce, "sum", "mean", "no")
    _same("bernoulli_nll", x=x, y=y)
    return _folded(sub(softplus(y), mul(x, y)), reduce)


@function("y", "z")
def cross_covariance(y: Any, z: Any, reduce: str = "half_squared_sum") -> Any:
    """Return the cross covariance of features, as its halved sum of squares or as a matrix."""
    check_reduce("cross_covariance", reduce, "half_squared_sum", "no")
    require("cross_covariance", "y", y, kind="f", ndim=2)
    require("cross_covariance", "z", z, ndim=2, dtype_as=("y", y), shape=(shape_of(y)[0], None))
    return losses.cross_covariance(y, z, reduce)


@function("h")
def decov(h: Any, reduce: str = "half_squared_sum") -> Any:
    """Return the covariance of different features (Cogswell et al. 2016)."""
    check_reduce("decov", reduce, "half_squared_sum", "no")
    require("decov", "h", h, kind="f", ndim=2)
    return losses.decov(h, reduce)
