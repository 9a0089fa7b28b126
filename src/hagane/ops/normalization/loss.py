"""NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hagane.ops.context import InferContext
from hagane.ops.definition import Array, OpDef
from hagane.ops.normalization.softmax import log_softmax
from hagane.ops.precision import widened


def _negative_log_likelihood(
    log_probability: Array,
    target: Array,
    weight: Array | None,
    ignore_index: int | None,
    reduction: str,
) -> Array:
    classes = log_probability.shape[1]
    ignored = np.zeros(target.shape, bool) if ignore_index is None else target == ignore_index
    index = np.where(ignored, 0, target)
    if index.size and not (index.min() >= -classes and index.max() < classes):
        raise IndexError(f"a target lies outside the {classes} classes")
    chosen = np.take_along_axis(log_probability, index[:, None], axis=1)[:, 0]
    weights = np.ones(target.shape, log_probability.dtype) if weight is None else weight[index]
    weights = np.where(ignored, 0, weights).astype(log_probability.dtype)
    loss = -chosen * weights
    if reduction == "none":
        return loss
    if reduction == "sum":
        return np.asarray(loss.sum(), dtype=loss.dtype)
    return np.asarray(loss.sum() / weights.sum(), dtype=loss.dtype)


@widened
def _nll(
    x: Array,
    target: Array,
    weight: Array | None = None,
    *,
    ignore_index: int | None = None,
    reduction: str = "mean",
) -> Array:
    return _negative_log_likelihood(x, target, weight, ignore_index, reduction)


@widened
def _softmax_cross_entropy(
    scores: Array,
    labels: Array,
    weights: Array | None = None,
    *,
    ignore_index: int | None = None,
    reduction: str = "mean",
    n_outputs: int = 1,
) -> tuple[Array, ...]:
    log_probability = log_softmax(scores, axis=1)
    loss = _negative_log_likelihood(log_probability, labels, weights, ignore_index, reduction)
    return (loss, log_probability)[:n_outputs]


def _infer_loss(ctx: InferContext) -> Sequence[Any]:
    scores, target = ctx.shape(0), ctx.shape(1)
    if len(scores) != len(target) + 1:
        ctx.fail(f"expected (batch, classes, …) and (batch, …), got {ctx.inputs_text()}")
    if ctx.has(2):
        ctx.unify(ctx.shape(2, rank=1)[0], scores[1], "expected one weight a class")
    loss = target if ctx.attr("reduction") == "none" else ()
    return [loss, scores][: ctx.n_outputs]


OPERATORS = (
    OpDef("NegativeLogLikelihoodLoss", _infer_loss, _nll),
    OpDef("SoftmaxCrossEntropyLoss", _infer_loss, _softmax_cross_entropy),
)
