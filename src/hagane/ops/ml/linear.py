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


def _scores(x: Array, coefficients: Sequence[float], intercepts: Sequence[float] | None) -> Array:
    matrix = as_matrix(x)
    weights = np.asarray(coefficients, dtype=matrix.dtype).reshape(-1, matrix.shape[1])
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
    scores = _scores(x, coefficients, intercepts)
    if scores.shape[1] == 1:
        # One margin stands for two classes; the label follows its sign.
        index = (scores[:, 0] > 0).astype(np.int64)
        scores = classes.one_score(scores[:, 0], post_transform, probability=True)
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
    scores = _scores(x, coefficients, intercepts)
    return classes.post_transform(scores, post_transform).astype(np.float32)


def _infer_classifier(ctx: InferContext) -> Sequence[Any]:
    return infer_classifier(ctx, "classlabels_ints")


def _infer_regressor(ctx: InferContext) -> Sequence[Any]:
    shape = ctx.shape(0)
    return [(shape[0] if len(shape) > 1 else 1, ctx.attr("targets"))]


OPERATORS = (
    OpDef("LinearClassifier", _infer_classifier, _classifier, domain=DOMAIN, vjp=CLASSICAL),
    OpDef("LinearRegressor", _infer_regressor, _regressor, domain=DOMAIN, vjp=CLASSICAL),
)
