"""From scores to classes: post-transforms, labels, the one-score form of binary classifiers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.graph.types import TensorType
from hagane.ops.context import InferContext
from hagane.ops.definition import Array
from hagane.ops.elementwise.activation import sigmoid
from hagane.ops.normalization.softmax import softmax
from hagane.ops.values import strings

DOMAIN = "ai.onnx.ml"


def post_transform(scores: Array, name: str) -> Array:
    """Return ``scores``, (rows, classes), after a transform by its ONNX name.

    Raises:
        ValueError: The name is unknown.
    """
    match name:
        case "NONE":
            return scores
        case "LOGISTIC":
            return sigmoid(scores)
        case "SOFTMAX":
            return softmax(scores, axis=-1)
        case "SOFTMAX_ZERO":
            return _softmax_zero(scores)
        case "PROBIT":
            return math.sqrt(2) * _inverse_erf(2 * scores - 1)
    raise ValueError(f"unknown post_transform '{name}'")


def of_regression(count: int, name: str) -> str:
    """Return the post-transform that a regressor of ``count`` scores applies.

    Of one score ONNX Runtime applies PROBIT alone; the specification leaves it open.
    """
    return "NONE" if count == 1 and name != "PROBIT" else name


def one_score(score: Array, name: str, *, probability: bool) -> Array:
    """Return the scores of both classes, (rows, 2), of a binary classifier that has one score.

    Points that the specification leaves open follow ONNX Runtime: LOGISTIC makes both
    probabilities of a margin, PROBIT applies to both, any other transform is passed over.

    Args:
        score: (rows,).
        name: The post-transform.
        probability: Whether the score is the positive class's share, not a margin.
    """
    if name == "LOGISTIC":
        return post_transform(np.stack([-score, score], axis=1), name)
    pair = np.stack([1 - score if probability else -score, score], axis=1)
    return post_transform(pair, name) if name == "PROBIT" else pair


def _softmax_zero(scores: Array) -> Array:
    """Softmax in which scores of zero keep weight zero."""
    top = scores.max(axis=-1, keepdims=True)
    zero = np.abs(scores) <= 1e-7
    weights = np.where(zero, scores * np.exp(-top), np.exp(scores - top))
    total = weights.sum(axis=-1, keepdims=True)
    return np.where(total == 0, 0.5, weights / np.where(total == 0, 1, total)).astype(scores.dtype)


def _inverse_erf(x: Array) -> Array:
    """Winitzki's approximation (2008), which ONNX Runtime uses for PROBIT."""
    logarithm = np.log((1 - x) * (1 + x))
    v = 2 / (math.pi * 0.147) + 0.5 * logarithm
    return np.sign(x) * np.sqrt(np.sqrt(v * v - logarithm / 0.147) - v)


def labels_of(index: Array, ints: Sequence[int] | None, texts: Sequence[str] | None) -> Array:
    """Return the labels that stand at ``index``."""
    if texts:
        return strings([texts[i] for i in index])
    return np.asarray(ints if ints else np.arange(index.max(initial=0) + 1), dtype=np.int64)[index]


def infer_classifier(ctx: InferContext, ints: str, n_scores: Any = None) -> Sequence[Any]:
    """Infer labels (rows,) and scores (rows, classes) of a classifier."""
    shape = ctx.shape(0)
    rows = shape[0] if len(shape) > 1 else 1
    texts, numbers = ctx.attr("classlabels_strings"), ctx.attr(ints)
    count = len(texts or numbers or ())
    if texts and numbers:
        ctx.fail(f"expected either {ints} or classlabels_strings, got both")
    dtype = ir.DataType.STRING if texts else ir.DataType.INT64
    scores = n_scores or (max(count, 2) if count else ctx.fresh("classes"))
    return [TensorType(dtype, (rows,)), TensorType(ir.DataType.FLOAT, (rows, scores))]


def as_matrix(x: Array) -> Array:
    """Return rows of features as floats; a vector is one row."""
    matrix = x.reshape(1, -1) if x.ndim == 1 else x
    return matrix if matrix.dtype == np.float64 else matrix.astype(np.float32)
