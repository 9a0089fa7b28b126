"""LinearClassifier, LinearRegressor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hagane.ops.context import InferContext
from hagane.ops.definition import Array, OpDef
from hagane.ops.ml import classes
from hagane.ops.ml.classes import DOMAIN, as_matrix, infer_classifier, labels_of
from hagane.ops.vjp import CLASSICAL


def weights_of(coefficients: Sequence[float], features: int, scores: int) -> Array:
    """Return coefficients as (scores, features).

    Coefficients beyond those that the scores need are not read, as in ONNX Runtime: its own
    example ``logreg_iris.onnx`` has twice as many.

    Args:
        coefficients: In order of scores.
        features: How many each score has.
        scores: How many there are; 0 for as many as the coefficients give.

    Raises:
        ValueError: They are no rows of features, or too few.
    """
    given = np.asarray(coefficients, np.float64)
    partial = len(given) % (scores or max(features, 1))
    if not features or partial or len(given) < scores * features:
        raise ValueError(
            f"expected coefficients for {features} features"
            f"{f' and {scores} scores' if scores else ''}, got {len(given)}"
        )
    count = scores or len(given) // features
    return given[: count * features].reshape(count, features)


def _scores(
    x: Array, coefficients: Sequence[float], intercepts: Sequence[float] | None, count: int
) -> Array:
    matrix = as_matrix(x)
    weights = weights_of(coefficients, matrix.shape[1], count).astype(matrix.dtype)
    scores = matrix @ weights.T
    if intercepts:
        scores = scores + np.asarray(intercepts, dtype=matrix.dtype)
    return scores


def _classifier(
    x: Array,
    *,
    classlabels_ints: Sequence[int] | None = None,
    classlabels_strings: Sequence[str] | None = None,
    coefficients: Sequence[float],
    intercepts: Sequence[float] | None = None,
    multi_class: int = 0,
    post_transform: str = "NONE",
) -> tuple[Array, Array]:
    scores = _scores(x, coefficients, intercepts, len(intercepts or ()))
    count, labels = scores.shape[1], len(classlabels_strings or classlabels_ints or ())
    if labels not in (0, count) and (count, labels) != (1, 2):
        raise ValueError(f"expected a label for each of {count} scores, got {labels}")
    if scores.shape[1] == 1:
        # One margin stands for two classes; the label follows its sign.
        index = (scores[:, 0] > 0).astype(np.int64)
        if labels:
            scores = classes.one_score(scores[:, 0], post_transform, probability=True)
        elif post_transform == "PROBIT":  # the one transform of a score that stays alone
            scores = classes.post_transform(scores, post_transform)
    else:
        index = scores.argmax(axis=1)
        scores = classes.post_transform(scores, post_transform)
    return labels_of(index, classlabels_ints, classlabels_strings), scores.astype(np.float32)


def _regressor(
    x: Array,
    *,
    coefficients: Sequence[float],
    intercepts: Sequence[float] | None = None,
    post_transform: str = "NONE",
    targets: int = 1,
) -> Array:
    if len(intercepts or ()) not in (0, targets):
        raise ValueError(
            f"expected {targets} intercepts, one a target, got {len(intercepts or ())}"
        )
    scores = _scores(x, coefficients, intercepts, targets)
    applied = classes.of_regression(targets, post_transform)
    return classes.post_transform(scores, applied).astype(np.float32)


def _infer_classifier(ctx: InferContext) -> Sequence[Any]:
    return infer_classifier(ctx, "classlabels_ints")


def _infer_regressor(ctx: InferContext) -> Sequence[Any]:
    shape = ctx.shape(0)
    return [(shape[0] if len(shape) > 1 else 1, ctx.attr("targets"))]


OPERATORS = (
    OpDef("LinearClassifier", _infer_classifier, _classifier, domain=DOMAIN, vjp=CLASSICAL),
    OpDef("LinearRegressor", _infer_regressor, _regressor, domain=DOMAIN, vjp=CLASSICAL),
)
