"""Chainer's losses and measures of predictions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.ops.builder import dtype_of, op, rank_of, shape_of
from hagane.ops.functions.numbers.activations import number_like
from hagane.ops.functions.numbers.elementary import (
    add,
    cast,
    div,
    exp,
    log,
    mask_like,
    mul,
    neg,
    square,
    squeeze,
    sub,
    transpose,
    unsqueeze,
    where,
)
from hagane.ops.functions.tensors.shapes import size_as_number

_INT64 = ir.DataType.INT64


def total(x: Any) -> Any:
    """Return the sum of all elements."""
    return op("ReduceSum", x, keepdims=0)


def folded(x: Any, reduce: str) -> Any:
    """Return losses as they are, their mean or their sum."""
    if reduce == "mean":
        return op("ReduceMean", x, keepdims=0)
    return total(x) if reduce == "sum" else x


def _over_valid(loss: Any, valid: Any, normalize: bool) -> Any:
    """Return the sum of losses over the number of valid ones, or over the size of the batch."""
    # Counts of more than 2,048 are not exact in half precision, and sums of so many overflow.
    wide = loss if dtype_of(loss) == ir.DataType.DOUBLE else cast(loss, ir.DataType.FLOAT)
    mask = mask_like(valid, wide)
    count = total(mask) if normalize else size_as_number(loss, 0, wide)
    found = div(total(mul(wide, mask)), op("Max", count, number_like(1, wide)))
    return cast(found, dtype_of(loss))


def softmax_cross_entropy(
    x: Any, labels: Any, weight: Any, ignored: int, reduce: str, normalize: bool
) -> Any:
    """Return the cross entropy of the softmax over axis 1.

    Args:
        x: Scores, (batch, classes, ...).
        labels: Classes, integers (batch, ...).
        weight: Of each class, or None.
        ignored: Places of this class do not count.
        reduce: ``mean`` or ``no``.
        normalize: Whether the mean is over places that count, else over the batch.
    """
    valid = op("Not", op("Equal", labels, np.array(ignored, dtype_of(labels).numpy())))
    scores = _class_scores(x, weight)
    places = cast(where(valid, labels, np.array(0, dtype_of(labels).numpy())), _INT64)
    loss = neg(squeeze(op("GatherElements", scores, unsqueeze(places, [1]), axis=1), [1]))
    return mul(loss, mask_like(valid, x)) if reduce == "no" else _over_valid(loss, valid, normalize)


def _class_scores(x: Any, weight: Any) -> Any:
    scores = op("LogSoftmax", x, axis=1)
    if weight is None:
        return scores
    return mul(scores, unsqueeze(weight, [0, *range(2, rank_of(x))]))


def soft_cross_entropy(x: Any, targets: Any, reduce: str, kind: str) -> Any:
    """Return the cross entropy of the softmax over axis 1 against probabilities.

    Args:
        x: Scores, (batch, classes, ...).
        targets: Probabilities of the same shape.
        reduce: ``mean`` or ``no``.
        kind: ``cross-entropy``, or ``kl-divergence``, which is less by the targets' entropy.
    """
    loss = neg(op("ReduceSum", mul(targets, op("LogSoftmax", x, axis=1)), [1], keepdims=0))
    if kind == "kl-divergence":
        entropy = mul(targets, log(add(targets, number_like(1e-7, targets))))
        loss = add(loss, op("ReduceSum", entropy, [1], keepdims=0))
    return folded(loss, reduce)


def sigmoid_cross_entropy(x: Any, labels: Any, normalize: bool, reduce: str) -> Any:
    """Return the cross entropy of the sigmoid; labels are 1, 0, or -1 where ignored."""
    valid = op("Not", op("Equal", labels, np.array(-1, dtype_of(labels).numpy())))
    loss = sub(op("Softplus", x), mul(x, mul(cast(labels, dtype_of(x)), mask_like(valid, x))))
    return mul(loss, mask_like(valid, x)) if reduce == "no" else _over_valid(loss, valid, normalize)


def squared_error(x: Any, y: Any, reduce: str = "no") -> Any:
    """Return squared differences, or their mean."""
    return folded(square(sub(x, y)), reduce)


def absolute_error(x: Any, y: Any, reduce: str = "no") -> Any:
    """Return absolute differences, or their mean."""
    return folded(op("Abs", sub(x, y)), reduce)


def huber(x: Any, y: Any, delta: float, reduce: str) -> Any:
    """Return squared differences up to ``delta``, beyond it linear (Huber, 1964)."""
    apart, bound = sub(x, y), number_like(delta, x)
    size = op("Abs", apart)
    inner, outer = mul(square(apart), 0.5), mul(bound, sub(size, mul(bound, 0.5)))
    loss = where(op("LessOrEqual", size, bound), inner, outer)
    return loss if reduce == "no" else op("ReduceSum", loss, [1], keepdims=0)


def hinge(x: Any, labels: Any, norm: str, reduce: str) -> Any:
    """Return how far scores (batch, classes) are from being right by a margin of one."""
    own = op("Equal", unsqueeze(cast(labels, _INT64), [1]), op("Range", 0, shape_of(x)[1], 1))
    signs = where(own, number_like(-1, x), number_like(1, x))
    loss = op("Relu", add(number_like(1, x), mul(x, signs)))
    loss = square(loss) if norm == "L2" else loss
    return loss if reduce == "no" else div(total(loss), size_as_number(x, 0, x))


def contrastive(x: Any, y: Any, alike: Any, margin: float, reduce: str) -> Any:
    """Return the contrastive loss of pairs (Hadsell et al., 2006).

    Args:
        x: (batch, features).
        y: (batch, features).
        alike: 1 for pairs that are alike, else 0: (batch,).
        margin: From which distance pairs that differ cost nothing.
        reduce: ``mean`` or ``no``.
    """
    near = op("ReduceSumSquare", sub(x, y), [1], keepdims=0)
    # The root has no slope at zero, where its gradient is not asked for either.
    least = number_like(float(np.finfo(dtype_of(x).numpy()).tiny), x)
    far = op("Relu", sub(number_like(margin, x), op("Sqrt", op("Max", near, least))))
    share = cast(alike, dtype_of(x))
    loss = add(mul(near, share), mul(square(far), sub(number_like(1, x), share)))
    return folded(mul(loss, 0.5), reduce)


def triplet(anchor: Any, positive: Any, negative: Any, margin: float, reduce: str) -> Any:
    """Return the triplet loss of (batch, features) (Schroff et al., 2015)."""
    near = op("ReduceSumSquare", sub(anchor, positive), [1], keepdims=0)
    far = op("ReduceSumSquare", sub(anchor, negative), [1], keepdims=0)
    return folded(op("Relu", add(sub(near, far), number_like(margin, anchor))), reduce)


def gaussian_kl_divergence(mean: Any, ln_var: Any, reduce: str) -> Any:
    """Return the divergence of Gaussians from the standard one."""
    parts = sub(add(square(mean), exp(ln_var)), add(ln_var, number_like(1, ln_var)))
    return folded(mul(parts, 0.5), reduce)


def gaussian_nll(x: Any, mean: Any, ln_var: Any, reduce: str) -> Any:
    """Return the negative logarithm of the density of Gaussians."""
    power = mul(square(sub(x, mean)), exp(neg(ln_var)))
    constant = number_like(math.log(2 * math.pi), ln_var)
    return folded(mul(add(add(ln_var, constant), power), 0.5), reduce)


def bernoulli_nll(x: Any, y: Any, reduce: str) -> Any:
    """Return the negative logarithm of Bernoulli probabilities ``sigmoid(y)`` of ``x``."""
    return folded(sub(op("Softplus", y), mul(x, y)), reduce)


def covariance(y: Any, z: Any) -> Any:
    """Return the covariance of features: (features of y, features of z)."""
    left = sub(y, op("ReduceMean", y, [0], keepdims=1))
    right = sub(z, op("ReduceMean", z, [0], keepdims=1))
    return div(op("MatMul", transpose(left, [1, 0]), right), size_as_number(y, 0, y))


def cross_covariance(y: Any, z: Any, reduce: str) -> Any:
    """Return the covariance of features, or the half of its sum of squares."""
    found = covariance(y, z)
    return found if reduce == "no" else mul(total(square(found)), 0.5)


def decov(h: Any, reduce: str) -> Any:
    """Return the covariance of different features, or the half of its sum of squares."""
    places = op("Range", 0, shape_of(h)[1], 1)
    same = op("Equal", unsqueeze(places, [0]), unsqueeze(places, [1]))
    found = where(same, number_like(0, h), covariance(h, h))
    return found if reduce == "no" else mul(total(square(found)), 0.5)


# Measures.


def accuracy(y: Any, labels: Any, ignored: int | None) -> Any:
    """Return the share of places (batch, ...) whose highest score is that of their class."""
    found = op("Reshape", op("ArgMax", y, axis=1, keepdims=0), op("Shape", labels), allowzero=1)
    classes = cast(labels, _INT64)
    right = op("Equal", found, classes)
    if ignored is None:
        return op("ReduceMean", mask_like(right, y), keepdims=0)
    return _share(right, op("Not", op("Equal", classes, ignored)), y)


def _share(right: Any, counted: Any, like: Any) -> Any:
    """Return how many of the counted places are right; 0 of none."""
    count = total(mask_like(counted, like))
    found = total(mask_like(op("And", right, counted), like))
    return div(found, op("Max", count, number_like(1, like)))


def binary_accuracy(y: Any, labels: Any) -> Any:
    """Return the share of scores whose sign fits labels 0 and 1; -1 does not count."""
    classes = cast(labels, _INT64)
    positive = cast(op("GreaterOrEqual", y, number_like(0, y)), _INT64)
    return _share(op("Equal", positive, classes), op("Not", op("Equal", classes, -1)), y)


def r2_score(predicted: Any, true: Any, average: bool) -> Any:
    """Return the coefficient of determination of each column, or the mean of all."""
    rest = op("ReduceSumSquare", sub(predicted, true), [0], keepdims=0)
    centred = sub(true, op("ReduceMean", true, [0], keepdims=1))
    spread = op("ReduceSumSquare", centred, [0], keepdims=0)
    zero = number_like(0, predicted)
    flat = op("Equal", spread, zero)
    divisor = where(flat, number_like(1, predicted), spread)
    score = where(flat, zero, sub(number_like(1, predicted), div(rest, divisor)))
    return op("ReduceMean", score, keepdims=0) if average else score


def class_summary(y: Any, labels: Any, count: int, beta: float, ignored: int) -> tuple[Any, ...]:
    """Return precision, recall, F score and number of places of each class.

    Args:
        y: Scores, (batch, classes, ...).
        labels: Classes, integers (batch, ...).
        count: The number of classes.
        beta: The weight of recall in the F score.
        ignored: Places of this class do not count.
    """
    dtype = ir.DataType.DOUBLE
    classes = op("Reshape", cast(labels, _INT64), [-1])
    found = op("Reshape", op("ArgMax", y, axis=1, keepdims=0), [-1])
    left_out = op("Equal", classes, ignored)
    classes, found = (where(left_out, np.array(-1), places) for places in (classes, found))
    numbers = np.arange(count).reshape(count, 1)
    wanted, told = op("Equal", classes, numbers), op("Equal", found, numbers)

    def counted(truths: Any) -> Any:
        return op("ReduceSum", cast(truths, dtype), [1], keepdims=0)

    right, support = counted(op("And", wanted, told)), counted(wanted)
    precision, recall = div(right, counted(told)), div(right, support)
    weight = beta * beta
    both = add(mul(precision, weight), recall)
    score = div(mul(mul(precision, recall), 1 + weight), both)
    return precision, recall, score, cast(support, _INT64)
