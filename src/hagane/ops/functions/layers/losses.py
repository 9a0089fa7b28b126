"""Losses, each element or sample by itself; ``reduced`` makes one number of them.

Formulas are those of PyTorch's documentation. Inputs and targets of elementwise losses have one
floating-point type and broadcast against each other.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.ops.builder import op, rank_of, shape_of
from hagane.ops.functions.numbers.activations import at_least, log1p, number_like
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
    sum_over,
    unsqueeze,
    where,
)
from hagane.ops.functions.sums.statistics import norm
from hagane.ops.functions.tensors.shapes import size_as_number
from hagane.ops.layout.stopping import stopped

# The logarithm of a probability counts as no less, so that the loss of 0 is finite.
_LEAST_LOGARITHM = -100.0


def reduced(loss: Any, reduction: str) -> Any:
    """Return a loss itself, or its sum, its mean, or its sum over the first size.

    Args:
        loss: Losses of elements or samples.
        reduction: ``none``, ``sum``, ``mean`` or ``batchmean``.
    """
    if reduction == "none":
        return loss
    if reduction == "mean":
        return op("ReduceMean", loss, keepdims=0)
    total = op("ReduceSum", loss, keepdims=0)
    if reduction != "batchmean" or not shape_of(loss):
        return total
    return div(total, size_as_number(loss, 0, loss))


def weighted(loss: Any, weight: Any) -> Any:
    """Return a loss times weights that broadcast against it; None are ones."""
    return loss if weight is None else mul(loss, weight)


def squared_error(x: Any, y: Any) -> Any:
    """Return ``(x - y) ** 2``."""
    return square(sub(x, y))


def absolute_error(x: Any, y: Any) -> Any:
    """Return ``|x - y|``."""
    return op("Abs", sub(x, y))


def smooth_l1(x: Any, y: Any, beta: float) -> Any:
    """Return errors: squared, over ``2 beta``, below ``beta``, absolute less ``beta / 2`` above."""
    error = absolute_error(x, y)
    if beta == 0:
        return error
    close = op("Less", error, number_like(beta, x))
    near = div(mul(_squared_where(close, error), 0.5), number_like(beta, x))
    return where(close, near, sub(error, number_like(beta / 2, x)))


def _squared_where(condition: Any, x: Any) -> Any:
    """Return the square of ``x`` where a condition holds; elsewhere x may be infinite."""
    return square(where(condition, x, number_like(0, x)))


def huber(x: Any, y: Any, delta: float) -> Any:
    """Return half the squared error up to ``delta``, ``delta`` times the absolute one beyond."""
    error = absolute_error(x, y)
    far = mul(sub(error, number_like(delta / 2, x)), number_like(delta, x))
    close = op("LessOrEqual", error, number_like(delta, x))
    return where(close, mul(_squared_where(close, error), 0.5), far)


def divergence(x: Any, y: Any, log_target: bool) -> Any:
    """Return the terms of the Kullback-Leibler divergence of ``x``, a logarithm, from ``y``."""
    if log_target:
        return mul(exp(y), sub(y, x))
    zero = number_like(0, x)
    some = op("Not", op("Equal", y, zero))
    entropy = where(some, mul(y, log(where(some, y, number_like(1, x)))), zero)
    return sub(entropy, mul(y, x))


def soft_margin(x: Any, y: Any) -> Any:
    """Return ``log(1 + exp(-x y))``."""
    return op("Softplus", neg(mul(x, y)))


def poisson(x: Any, y: Any, log_input: bool, full: bool, epsilon: float) -> Any:
    """Return the negative log-likelihood of Poisson distributions.

    Args:
        x: Their rates, or the logarithms of them.
        y: Counts.
        log_input: Whether ``x`` are logarithms.
        full: Whether to add Stirling's approximation of the logarithm of ``y!``.
        epsilon: Added to rates before their logarithm is taken.
    """
    if log_input:
        loss = sub(exp(x), mul(x, y))
    else:
        loss = sub(x, mul(y, log(add(x, number_like(epsilon, x)))))
    if not full:
        return loss
    counted = op("Greater", y, number_like(1, y))
    safe = where(counted, y, number_like(1, y))
    more = add(
        sub(mul(safe, log(safe)), safe), mul(log(mul(safe, number_like(2 * math.pi, y))), 0.5)
    )
    return add(loss, where(counted, more, number_like(0, y)))


def hinge_embedding(x: Any, y: Any, margin: float) -> Any:
    """Return ``x`` where ``y`` is 1, and the distance to a margin where ``y`` is -1."""
    zero = number_like(0, x)
    apart = at_least(sub(number_like(margin, x), x), 0)
    near = where(op("Equal", y, number_like(1, y)), zero, apart)
    return add(near, where(op("Equal", y, number_like(-1, y)), zero, x))


def binary_cross_entropy(x: Any, y: Any) -> Any:
    """Return the cross entropy of probabilities ``x``; logarithms count as -100 at least."""
    one = number_like(1, x)
    there = mul(y, _bounded_logarithm(x))
    absent = mul(sub(one, y), _bounded_logarithm(sub(one, x)))
    return neg(add(there, absent))


def _bounded_logarithm(x: Any) -> Any:
    """Return -100 at least; of zero, where a logarithm's gradient is infinite, there is none."""
    low = number_like(_LEAST_LOGARITHM, x)
    zero = op("Equal", x, number_like(0, x))
    return where(zero, low, op("Max", log(where(zero, number_like(1, x), x)), low))


def binary_cross_entropy_with_logits(x: Any, y: Any, positive_weight: Any) -> Any:
    """Return the cross entropy of the sigmoids of ``x``, for logits of any size.

    Args:
        x: Logits.
        y: Targets from 0 to 1.
        positive_weight: Weights of targets of 1, which broadcast; None are ones.
    """
    one = number_like(1, x)
    tail = add(log1p(exp(neg(op("Abs", x)))), op("Max", neg(x), number_like(0, x)))
    if positive_weight is not None:
        tail = mul(add(one, mul(sub(positive_weight, one), y)), tail)
    return add(mul(sub(one, y), x), tail)


def gaussian(x: Any, y: Any, variance: Any, full: bool, epsilon: float) -> Any:
    """Return the negative log-likelihood of normal distributions of mean ``x``.

    Args:
        x: Means.
        y: Observations.
        variance: Variances, which count as ``epsilon`` at least; gradients go through those too.
        full: Whether to add the constant term.
        epsilon: The least variance.
    """
    more = sub(op("Max", variance, number_like(epsilon, x)), variance)
    spread = add(variance, stopped(more))
    loss = mul(add(log(spread), div(square(sub(x, y)), spread)), 0.5)
    return add(loss, number_like(0.5 * math.log(2 * math.pi), x)) if full else loss


def margin_ranking(x: Any, other: Any, y: Any, margin: float) -> Any:
    """Return by how much ``x`` fails to rank above ``other`` where ``y`` is 1, below at -1."""
    return at_least(add(neg(mul(y, sub(x, other))), number_like(margin, x)), 0)


def cosine_embedding(x: Any, other: Any, y: Any, margin: float) -> Any:
    """Return ``1 - cos`` where ``y`` is 1, and the cosine beyond a margin where ``y`` is -1.

    Args:
        x: Vectors along the last axis.
        other: Vectors of the same shape.
        y: One number a pair of vectors.
        margin: Cosines up to it cost nothing.
    """
    last, tiny = [rank_of(x) - 1], number_like(1e-12, x)  # PyTorch's guard of vectors of length 0
    lengths = [add(sum_over(square(v), last, keepdims=False), tiny) for v in (x, other)]
    product = sum_over(mul(x, other), last, keepdims=False)
    cosine = div(product, op("Sqrt", mul(*lengths)))
    zero = number_like(0, x)
    apart = at_least(sub(cosine, number_like(margin, x)), 0)
    near = where(op("Equal", y, number_like(1, y)), sub(number_like(1, x), cosine), zero)
    return add(near, where(op("Equal", y, number_like(-1, y)), apart, zero))


def triplet_margin(
    anchor: Any, positive: Any, negative: Any, margin: float, order: float, epsilon: float,
    swap: bool,
) -> Any:  # fmt: skip
    """Return by how much the positive is not nearer to the anchor than the negative.

    Args:
        anchor: Vectors along the last axis.
        positive: Vectors of the same shape.
        negative: Vectors of the same shape.
        margin: How much nearer.
        order: p of the norm.
        epsilon: Added to each difference before its norm is taken.
        swap: Whether the distance of positive and negative counts if it is less.
    """

    def distance(x: Any, y: Any) -> Any:
        return norm(add(sub(x, y), number_like(epsilon, x)), [rank_of(x) - 1], False, order)

    far = distance(anchor, negative)
    if swap:
        far = op("Min", far, distance(positive, negative))
    return at_least(add(sub(distance(anchor, positive), far), number_like(margin, anchor)), 0)


# Classes.


_IGNORED = -100  # no class has this number


def _with_known(classes: Any, ignored: Any) -> tuple[Any, int]:
    """Return classes as int64, and the one of them that costs nothing as a number."""
    classes = cast(classes, ir.DataType.INT64)
    if isinstance(ignored, int):
        return classes, ignored
    return where(op("Equal", classes, ignored), np.array(_IGNORED), classes), _IGNORED


def of_classes(
    scores: Any, classes: Any, weight: Any, ignored: Any, reduction: str, *, logits: bool
) -> Any:
    """Return the negative log-likelihood of classes; means are over the weights of the classes.

    Args:
        scores: Logits or logarithms of probabilities (batch, classes, ...), or (classes,).
        classes: Integers (batch, ...).
        weight: One number a class, or None.
        ignored: A class that costs nothing: a number, or a tensor of one.
        reduction: ``none``, ``sum`` or ``mean``.
        logits: Whether ``scores`` are logits.
    """
    classes, ignored = _with_known(classes, ignored)
    alone = rank_of(scores) == 1
    if alone:
        scores, classes = unsqueeze(scores, [0]), unsqueeze(classes, [0])
    inputs = (scores, classes, *(() if weight is None else (weight,)))
    name = "SoftmaxCrossEntropyLoss" if logits else "NegativeLogLikelihoodLoss"
    found = op(name, *inputs, ignore_index=ignored, reduction=reduction)
    loss = found[0] if isinstance(found, tuple | list) else found
    return squeeze(loss, [0]) if alone and reduction == "none" else loss


def smoothed(
    logits: Any, classes: Any, weight: Any, ignored: Any, reduction: str, smoothing: float
) -> Any:
    """Return the cross entropy of classes that have some probability of being any other.

    Args:
        logits: (batch, classes, ...), or (classes,).
        classes: Integers (batch, ...).
        weight: One number a class, or None.
        ignored: A class that costs nothing: a number, or a tensor of one.
        reduction: ``none``, ``sum`` or ``mean``.
        smoothing: The probability that is shared by all classes.
    """
    classes, ignored = _with_known(classes, ignored)
    exact = of_classes(logits, classes, weight, ignored, reduction, logits=True)
    axis = min(rank_of(logits) - 1, 1)
    scores = op("LogSoftmax", logits, axis=axis)
    count = size_as_number(logits, axis, logits)
    if weight is not None:
        scores = mul(scores, _along(weight, rank_of(logits), axis))
    spread = neg(sum_over(scores, [axis], keepdims=False))
    there = op("Not", op("Equal", classes, np.array(ignored)))
    spread = where(there, spread, number_like(0, logits))
    if reduction != "none":
        spread = op("ReduceSum", spread, keepdims=0)
    if reduction == "mean":
        counted = mask_like(there, logits)
        if weight is not None:
            safe = where(there, classes, np.array(0))
            counted = mul(op("Gather", weight, safe), counted)
        spread = div(spread, op("ReduceSum", counted, keepdims=0))
    share = div(number_like(smoothing, logits), count)
    return add(mul(exact, number_like(1 - smoothing, logits)), mul(spread, share))


def of_probabilities(
    logits: Any, targets: Any, weight: Any, reduction: str, smoothing: float
) -> Any:
    """Return the cross entropy of logits against probabilities; means are over samples.

    Args:
        logits: (batch, classes, ...), or (classes,).
        targets: Probabilities of the same shape.
        weight: One number a class, or None.
        reduction: ``none``, ``sum`` or ``mean``.
        smoothing: The probability that is shared by all classes.
    """
    axis = min(rank_of(logits) - 1, 1)
    if smoothing:
        share = div(number_like(smoothing, logits), size_as_number(logits, axis, logits))
        targets = add(mul(targets, number_like(1 - smoothing, logits)), share)
    terms = mul(op("LogSoftmax", logits, axis=axis), targets)
    if weight is not None:
        terms = mul(terms, _along(weight, rank_of(logits), axis))
    return reduced(neg(sum_over(terms, [axis], keepdims=False)), reduction)


def _along(weight: Any, rank: int, axis: int) -> Any:
    """Return a vector along an axis of a tensor of a rank."""
    return unsqueeze(weight, [place for place in range(rank) if place != axis])


def multi_margin(x: Any, classes: Any, order: int, margin: float, weight: Any) -> Any:
    """Return the hinge of the scores of other classes over the score of the class, one a sample.

    Args:
        x: Scores (batch, classes), or (classes,).
        classes: Integers (batch,).
        order: The power of each hinge, 1 or 2.
        margin: By how much the class should lead.
        weight: One number a class, or None.
    """
    last = rank_of(x) - 1
    places = unsqueeze(cast(classes, ir.DataType.INT64), [last])
    lead = sub(x, op("GatherElements", x, places, axis=last))
    hinge = op("Relu", add(lead, number_like(margin, x)))
    terms = square(hinge) if order == 2 else hinge
    if weight is not None:
        terms = mul(terms, unsqueeze(op("Gather", weight, classes), [last]))
    others = op("Range", 0, shape_of(x)[last], 1)
    others = op("Not", op("Equal", others, places))
    total = sum_over(where(others, terms, number_like(0, x)), [last], keepdims=False)
    return div(total, size_as_number(x, last, x))


def multilabel_margin(x: Any, labels: Any) -> Any:
    """Return the hinges of the scores of all other classes over each label's, one a sample.

    Args:
        x: Scores (batch, classes), or (classes,).
        labels: Integers in the same shape, those of a sample in front of the first negative one.
    """
    last = rank_of(x) - 1
    zero = number_like(0, x)
    labels = cast(labels, ir.DataType.INT64)
    ended = op("CumSum", cast(op("Less", labels, 0), ir.DataType.INT64), np.array(last))
    given = op("Equal", ended, 0)
    places = op("Max", labels, 0)
    # Along the axes behind the batch: labels, classes.
    ranked = unsqueeze(op("GatherElements", x, places, axis=last), [last + 1])
    named = op("Equal", unsqueeze(places, [last + 1]), op("Range", 0, shape_of(x)[last], 1))
    named = op("And", named, unsqueeze(given, [last + 1]))
    own = op("ReduceMax", cast(named, ir.DataType.INT64), [last], keepdims=1)
    hinge = op("Relu", add(sub(unsqueeze(x, [last]), ranked), number_like(1, x)))
    counted = op("And", unsqueeze(given, [last + 1]), op("Equal", own, 0))
    total = sum_over(where(counted, hinge, zero), [last, last + 1], keepdims=False)
    return div(total, size_as_number(x, last, x))


def multilabel_soft_margin(x: Any, y: Any, weight: Any) -> Any:
    """Return the mean of the binary cross entropies of labels, one number a sample.

    Args:
        x: Logits, labels along the last axis.
        y: 0 or 1.
        weight: Weights that broadcast, or None.
    """
    terms = weighted(binary_cross_entropy_with_logits(x, y, None), weight)
    return op("ReduceMean", terms, [rank_of(x) - 1], keepdims=0)
