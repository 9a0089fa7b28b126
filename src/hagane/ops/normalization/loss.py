"""NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.ops.builder import Call, dtype_of, op, shape_of
from hagane.ops.context import InferContext
from hagane.ops.definition import Array, OpDef
from hagane.ops.functions.numbers.elementary import (
    add,
    cast,
    div,
    mask_like,
    mul,
    neg,
    transpose,
    where,
)
from hagane.ops.functions.tensors.shapes import size_as_number
from hagane.ops.normalization.softmax import log_softmax, log_softmax_gradient
from hagane.ops.precision import widened
from hagane.ops.vjp import through


def _negative_log_likelihood(
    log_probability: Array,
    target: Array,
    weight: Array | None,
    ignore_index: int | None,
    reduction: str,
) -> Array:
    classes = log_probability.shape[1]
    if target.shape != (log_probability.shape[0], *log_probability.shape[2:]):
        raise ValueError(
            f"expected one label a score, got labels of shape {target.shape} for scores of shape "
            f"{log_probability.shape}"
        )
    ignored = np.zeros(target.shape, bool) if ignore_index is None else target == ignore_index
    index = np.where(ignored, 0, target)
    wrong = index[(index < 0) | (index >= classes)]
    if wrong.size:
        raise IndexError(f"a target lies outside the {classes} classes: {wrong[0]}")
    chosen = np.take_along_axis(log_probability, index[:, None], axis=1)[:, 0]
    weights = np.ones(target.shape, log_probability.dtype) if weight is None else weight[index]
    weights = np.where(ignored, 0, weights).astype(log_probability.dtype)
    loss = np.where(ignored, 0, -chosen * weights).astype(log_probability.dtype)
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
    pairs = zip((scores[0], *scores[2:]), target, strict=True)
    target = tuple(ctx.unify(left, right, "expected one label a score") for left, right in pairs)
    loss = target if ctx.attr("reduction") == "none" else ()
    return [loss, scores][: ctx.n_outputs]


def composed_nll(
    x: Any,
    target: Any,
    weight: Any = None,
    *,
    ignore_index: int | None = None,
    reduction: str = "mean",
) -> Any:
    """Return the loss of logarithms of probabilities, over the builder."""
    kept = None if ignore_index is None else op("Not", op("Equal", target, ignore_index))
    index = target if kept is None else where(kept, target, 0)
    loss = neg(_chosen(x, _of_classes(index, x)))
    weights = None if weight is None else cast(op("Gather", weight, index), dtype_of(x))
    if weights is not None:
        loss = mul(loss, weights)
    if kept is not None:
        counted = mask_like(kept, x)
        weights = counted if weights is None else mul(weights, counted)
        # (No product with zero: gradients of ignored labels are zeros where the mean is of none.)
        loss = where(kept, loss, np.array(0, dtype_of(x).numpy()))
    if reduction == "none":
        return loss
    if reduction == "mean" and weights is None:
        return op("ReduceMean", loss, keepdims=0)
    total = op("ReduceSum", loss, keepdims=0)
    return total if reduction == "sum" else div(total, op("ReduceSum", weights, keepdims=0))


def _of_classes(index: Any, x: Any) -> Any:
    """Return indices of classes; those below zero, which count from the end elsewhere, fail."""
    count = shape_of(x)[1]
    if isinstance(count, int):
        beyond = op("Sub", index, np.array(count, dtype_of(index).numpy()))
    else:
        beyond = op("Sub", index, size_as_number(x, 1, index))
    return where(op("Less", index, np.array(0, dtype_of(index).numpy())), beyond, index)


def _chosen(x: Any, index: Any) -> Any:
    """Return the number of each label's class; fail in a run that has other scores than labels."""
    batch, _, *places = shape_of(x)
    if (batch, *places) == shape_of(index):
        return op("Squeeze", op("GatherElements", x, op("Unsqueeze", index, [1]), axis=1), [1])
    # (GatherElements takes fewer indices than there are rows.)
    rank = 2 + len(places)
    rows = transpose(x, [0, *range(2, rank), 1]) if places else x
    index = op("Unsqueeze", cast(index, ir.DataType.INT64), [-1])
    return op("GatherND", rows, index, batch_dims=rank - 1)


def _cross_entropy_vjp(call: Call, gradients: Sequence[Any]) -> Sequence[Any]:
    from hagane.ops.gradient import pull_back

    scores, *others = call.inputs
    known = call.outputs[1:]
    log_probability = known[0] if known else op("LogSoftmax", scores, axis=1)
    g, *of_log = gradients
    found: list[Any] = [None] * len(call.inputs)
    if g is not None:
        kept = {"ignore_index": call.attr("ignore_index"), "reduction": call.attr("reduction")}
        _, pull = pull_back(lambda *xs: [composed_nll(*xs, **kept)], log_probability, *others)
        found = pull([g])
    parts = [part for part in (found[0], *of_log) if part is not None]
    return [log_softmax_gradient(add(*parts), log_probability, 1), *found[1:]]


def _composed_cross_entropy(
    scores: Any,
    labels: Any,
    weights: Any = None,
    *,
    ignore_index: int | None = None,
    reduction: str = "mean",
    n_outputs: int = 1,
) -> Any:
    log_probability = op("LogSoftmax", scores, axis=1)
    loss = composed_nll(
        log_probability, labels, weights, ignore_index=ignore_index, reduction=reduction
    )
    return (loss, log_probability)[:n_outputs]


OPERATORS = (
    OpDef(
        "NegativeLogLikelihoodLoss",
        _infer_loss,
        _nll,
        compose=composed_nll,
        vjp=through(composed_nll),
    ),
    OpDef(
        "SoftmaxCrossEntropyLoss",
        _infer_loss,
        _softmax_cross_entropy,
        compose=_composed_cross_entropy,
        vjp=_cross_entropy_vjp,
    ),
)
