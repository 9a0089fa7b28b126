"""Loss functions."""

from __future__ import annotations

from typing import Any

import numpy as np

from hagane.nn.autograd import type_check
from hagane.nn.autograd.variable import Variable
from hagane.nn.functions.applying import array_of, constant_like, function, lift, require, shape_of
from hagane.ops.builder import op


def check_reduce(where: str, reduce: str, *allowed: str) -> None:
    """Check the option ``reduce``.

    Raises:
        ValueError: It is none of those allowed.
    """
    if reduce not in allowed:
        texts = ", ".join(map(repr, allowed))
        raise ValueError(f"{where}: only {texts} are valid for 'reduce', but {reduce!r} is given")


def mean_of(x: Any) -> Any:
    """Return the mean of all elements."""
    size = int(np.prod(shape_of(x), dtype=np.int64))
    return op("ReduceSum", op("Mul", x, constant_like(1 / size if size else np.nan, x)), keepdims=0)


def total(x: Any) -> Any:
    """Return the sum of all elements."""
    return op("ReduceSum", x, keepdims=0)


def folded(x: Any, reduce: str) -> Any:
    """Return losses as they are, their mean or their sum."""
    return mean_of(x) if reduce == "mean" else total(x) if reduce == "sum" else x


def _same(where: str, **arrays: Any) -> None:
    (first, x), *rest = arrays.items()
    require(where, first, x, kind="f")
    for name, y in rest:
        require(where, name, y, dtype_as=(first, x), shape_as=(first, x))


@function("x")
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
        cache_score: Kept for programs that set it.
        class_weight: A weight for each class.
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
        if weights.dtype != x.dtype or len(weights) != shape[1]:
            raise type_check.refuse(
                where, f"class_weight: {x.dtype}, {shape[1]}", f"{weights.dtype}, {weights.shape}"
            )
    if labels.dtype.kind == "f" and labels.shape == shape:
        return _soft_targets(x, t, weights, reduce, soft_target_loss)
    if labels.dtype.kind != "i":
        raise type_check.refuse(where, "t.dtype.kind == 'i'", f"t.dtype == {labels.dtype}")
    if labels.shape != (shape[0], *shape[2:]):
        raise type_check.refuse(
            where, f"t.shape == {(shape[0], *shape[2:])}", f"t.shape == {labels.shape}"
        )
    valid = labels != ignore_label
    wrong = valid & ((labels < 0) | (labels >= shape[1]))
    if wrong.any():
        raise ValueError(
            f"Each label `t` need to satisfy `0 <= t < x.shape[1]` (= {shape[1]}) or to be "
            f"ignore_label ({ignore_label}), got {labels[wrong][0]}"
        )
    scores = op("LogSoftmax", x, axis=1)
    if weights is not None:
        scores = op("Mul", scores, weights.reshape(-1, *(1,) * (len(shape) - 2)))
    places = np.where(valid, labels, 0).astype(np.int64)[:, None]
    found = op("Squeeze", op("GatherElements", scores, places, axis=1), [1])
    if reduce == "no":
        return op("Mul", found, np.where(valid, -1, 0).astype(x.dtype))
    count = max(int(valid.sum()) if normalize else shape[0], 1)
    factors = np.where(valid, -1 / count, 0).astype(x.dtype)
    return total(op("Mul", found, factors))


def _soft_targets(x: Any, t: Any, weights: Any, reduce: str, kind: str) -> Any:
    if kind not in ("cross-entropy", "kl-divergence"):
        raise ValueError(
            f"soft_target_loss must be 'cross-entropy' or 'kl-divergence', but {kind!r} is given."
        )
    target = lift(t) if isinstance(t, np.ndarray) else t
    scores = op("LogSoftmax", x, axis=1)
    if weights is not None:
        scores = op("Mul", scores, weights.reshape(-1, *(1,) * (len(shape_of(x)) - 2)))
    loss = op("Neg", op("ReduceSum", op("Mul", target, scores), [1], keepdims=0))
    if kind == "kl-divergence":
        eps = constant_like(1e-7, target)
        entropy = op("Mul", target, op("Log", op("Add", target, eps)))
        loss = op("Add", loss, op("ReduceSum", entropy, [1], keepdims=0))
    return folded(loss, reduce)


@function("x")
def sigmoid_cross_entropy(x: Any, t: Any, normalize: bool = True, reduce: str = "mean") -> Any:
    """Return the cross entropy of the sigmoid.

    Args:
        x: Scores.
        t: Of the same sizes: 1, 0, or -1 for what does not count.
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
    valid = labels != -1
    loss = op("Sub", op("Softplus", x), op("Mul", x, np.where(valid, labels, 0).astype(x.dtype)))
    if reduce == "no":
        return op("Mul", loss, valid.astype(x.dtype))
    count = max(int(valid.sum()) if normalize else len(labels), 1)
    return total(op("Mul", loss, (valid / count).astype(x.dtype)))


@function("x0", "x1")
def mean_squared_error(x0: Any, x1: Any) -> Any:
    """Return the mean of squared differences."""
    _same("mean_squared_error", x0=x0, x1=x1)
    difference = op("Sub", x0, x1)
    return mean_of(op("Mul", difference, difference))


@function("x0", "x1")
def mean_absolute_error(x0: Any, x1: Any) -> Any:
    """Return the mean of absolute differences."""
    _same("mean_absolute_error", x0=x0, x1=x1)
    return mean_of(op("Abs", op("Sub", x0, x1)))


@function("x0", "x1")
def absolute_error(x0: Any, x1: Any) -> Any:
    """Return absolute differences, element by element."""
    _same("absolute_error", x0=x0, x1=x1)
    return op("Abs", op("Sub", x0, x1))


@function("x0", "x1")
def squared_error(x0: Any, x1: Any) -> Any:
    """Return squared differences, element by element."""
    _same("squared_error", x0=x0, x1=x1)
    difference = op("Sub", x0, x1)
    return op("Mul", difference, difference)


@function("x", "t")
def huber_loss(x: Any, t: Any, delta: float, reduce: str = "sum_along_second_axis") -> Any:
    """Return squared differences up to ``delta``, beyond it linear (Huber 1964)."""
    check_reduce("huber_loss", reduce, "sum_along_second_axis", "no")
    _same("huber_loss", x=x, t=t)
    size = op("Abs", op("Sub", x, t))
    bound = constant_like(delta, x)
    inner = op("Min", size, bound)
    half = op("Mul", constant_like(0.5, x), op("Mul", inner, inner))
    loss = op("Add", half, op("Mul", bound, op("Sub", size, inner)))
    return loss if reduce == "no" else op("ReduceSum", loss, [1], keepdims=0)


@function("x")
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
    n, classes = shape_of(x)
    if labels.dtype.kind != "i" or labels.shape != (n,):
        raise type_check.refuse("hinge", f"t: {n} integers", f"{labels.dtype} {labels.shape}")
    signs = np.ones((n, classes), x.dtype)
    signs[np.arange(n), labels] = -1
    bottom = op("Relu", op("Add", constant_like(1, x), op("Mul", x, signs)))
    if norm == "L2":
        bottom = op("Mul", bottom, bottom)
    if reduce == "no":
        return bottom
    return op("Mul", total(bottom), constant_like(1 / n, x))


@function("x0", "x1")
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
    square = op("ReduceSumSquare", op("Sub", x0, x1), [1], keepdims=0)
    # The root has no slope at zero, where its gradient is not asked for either.
    far = op(
        "Relu",
        op(
            "Sub",
            constant_like(margin, x0),
            op("Sqrt", op("Max", square, constant_like(np.finfo(x0.dtype).tiny, x0))),
        ),
    )
    weights = alike.astype(x0.dtype)
    loss = op("Add", op("Mul", square, weights), op("Mul", op("Mul", far, far), 1 - weights))
    loss = op("Mul", loss, constant_like(0.5, x0))
    return folded(loss, reduce)


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
    near = op("ReduceSumSquare", op("Sub", anchor, positive), [1], keepdims=0)
    far = op("ReduceSumSquare", op("Sub", anchor, negative), [1], keepdims=0)
    return folded(
        op("Relu", op("Add", op("Sub", near, far), constant_like(margin, anchor))), reduce
    )


@function("mean", "ln_var")
def gaussian_kl_divergence(mean: Any, ln_var: Any, reduce: str = "sum") -> Any:
    """Return the divergence of Gaussians from the standard one.

    Args:
        mean: Their means.
        ln_var: Logarithms of their variances.
        reduce: ``sum``, ``mean`` or ``no``.
    """
    check_reduce("gaussian_kl_divergence", reduce, "sum", "mean", "no")
    _same("gaussian_kl_divergence", mean=mean, ln_var=ln_var)
    parts = op("Add", op("Mul", mean, mean), op("Exp", ln_var))
    parts = op("Sub", op("Sub", parts, ln_var), constant_like(1, mean))
    return folded(op("Mul", parts, constant_like(0.5, mean)), reduce)


@function("x", "mean", "ln_var")
def gaussian_nll(x: Any, mean: Any, ln_var: Any, reduce: str = "sum") -> Any:
    """Return the negative logarithm of the density of Gaussians."""
    check_reduce("gaussian_nll", reduce, "sum", "mean", "no")
    _same("gaussian_nll", x=x, mean=mean, ln_var=ln_var)
    difference = op("Sub", x, mean)
    power = op("Mul", op("Mul", difference, difference), op("Exp", op("Neg", ln_var)))
    loss = op("Add", op("Add", ln_var, constant_like(np.log(2 * np.pi), x)), power)
    return folded(op("Mul", loss, constant_like(0.5, x)), reduce)


@function("x", "y")
def bernoulli_nll(x: Any, y: Any, reduce: str = "sum") -> Any:
    """Return the negative logarithm of Bernoulli probabilities ``sigmoid(y)`` of ``x``."""
    check_reduce("bernoulli_nll", reduce, "sum", "mean", "no")
    _same("bernoulli_nll", x=x, y=y)
    return folded(op("Sub", op("Softplus", y), op("Mul", x, y)), reduce)


@function("y", "z")
def cross_covariance(y: Any, z: Any, reduce: str = "half_squared_sum") -> Any:
    """Return the cross covariance of features, as its halved sum of squares or as a matrix."""
    check_reduce("cross_covariance", reduce, "half_squared_sum", "no")
    require("cross_covariance", "y", y, kind="f", ndim=2)
    require("cross_covariance", "z", z, ndim=2, dtype_as=("y", y), shape=(shape_of(y)[0], None))
    covariance = _covariance(y, z)
    if reduce == "no":
        return covariance
    return op("Mul", total(op("Mul", covariance, covariance)), constant_like(0.5, y))


def _covariance(y: Any, z: Any) -> Any:
    n = shape_of(y)[0]
    left = op("Sub", y, op("ReduceMean", y, [0], keepdims=1))
    right = op("Sub", z, op("ReduceMean", z, [0], keepdims=1))
    product = op("MatMul", op("Transpose", left, perm=(1, 0)), right)
    return op("Mul", product, constant_like(1 / n, y))


@function("h")
def decov(h: Any, reduce: str = "half_squared_sum") -> Any:
    """Return the covariance of different features (Cogswell et al. 2016)."""
    check_reduce("decov", reduce, "half_squared_sum", "no")
    require("decov", "h", h, kind="f", ndim=2)
    covariance = op("Mul", _covariance(h, h), 1 - np.eye(shape_of(h)[1], dtype=h.dtype))
    if reduce == "no":
        return covariance
    return op("Mul", total(op("Mul", covariance, covariance)), constant_like(0.5, h))
