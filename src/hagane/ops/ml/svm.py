"""SVMClassifier, SVMRegressor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hagane.ops.context import InferContext
from hagane.ops.definition import Array, OpDef
from hagane.ops.ml import classes
from hagane.ops.ml.classes import DOMAIN, as_matrix, infer_classifier, labels_of
from hagane.ops.vjp import CLASSICAL


def kernel(x: Array, supports: Array, kind: str, parameters: Sequence[float] | None) -> Array:
    """Return the kernel of each row with each support vector, (rows, supports)."""
    gamma, coefficient, degree = (*(parameters or ()), 0.0, 0.0, 0.0)[:3]
    match kind:
        case "LINEAR":
            return x @ supports.T
        case "POLY":
            return (gamma * (x @ supports.T) + coefficient) ** degree
        case "RBF":
            squares = ((x[:, None] - supports[None]) ** 2).sum(axis=2)
            return np.exp(-gamma * squares)
        case "SIGMOID":
            return np.tanh(gamma * (x @ supports.T) + coefficient)
    raise ValueError(f"unknown kernel_type '{kind}'")


def _regressor(
    x: Array,
    *,
    coefficients: Sequence[float],
    kernel_params: Sequence[float] | None = None,
    kernel_type: str = "LINEAR",
    n_supports: int = 0,
    one_class: int = 0,
    post_transform: str = "NONE",
    rho: Sequence[float] = (0.0,),
    support_vectors: Sequence[float] | None = None,
) -> Array:
    matrix = as_matrix(x).astype(np.float64)
    weights = np.asarray(coefficients, dtype=np.float64)
    if n_supports:
        supports = np.asarray(support_vectors, dtype=np.float64).reshape(n_supports, -1)
        scores = kernel(matrix, supports, kernel_type, kernel_params) @ weights
    else:
        scores = kernel(matrix, weights.reshape(1, -1), kernel_type, kernel_params)[:, 0]
    scores = (scores + rho[0])[:, None]
    if one_class:
        return np.where(scores > 0, 1, -1).astype(np.float32)
    # The specification leaves transforms of one score open; ONNX Runtime applies none.
    return scores.astype(np.float32)


def _classifier(
    x: Array,
    *,
    classlabels_ints: Sequence[int] | None = None,
    classlabels_strings: Sequence[str] | None = None,
    coefficients: Sequence[float],
    kernel_params: Sequence[float] | None = None,
    kernel_type: str = "LINEAR",
    post_transform: str = "NONE",
    prob_a: Sequence[float] | None = None,
    prob_b: Sequence[float] | None = None,
    rho: Sequence[float] = (0.0,),
    support_vectors: Sequence[float] | None = None,
    vectors_per_class: Sequence[int] | None = None,
) -> tuple[Array, Array]:
    matrix = as_matrix(x).astype(np.float64)
    n_classes = len(classlabels_strings or classlabels_ints or ())
    if not vectors_per_class:
        weights = np.asarray(coefficients, dtype=np.float64).reshape(n_classes, -1)
        scores = kernel(matrix, weights, kernel_type, kernel_params) + rho[0]
        index = scores.argmax(axis=1)
        scores = classes.post_transform(scores, post_transform)
    else:
        margins = _margins(
            matrix,
            coefficients,
            kernel_type,
            kernel_params,
            rho,
            support_vectors,
            vectors_per_class,
        )
        index = _votes(margins, n_classes).argmax(axis=1)
        if n_classes == 2 and not prob_a:
            share = post_transform != "NONE"
            scores = classes.one_score(margins[:, 0], post_transform, probability=share)
        else:
            scores = margins
            if prob_a:
                scores = _probabilities(margins, prob_a, prob_b or (), n_classes)
            scores = classes.post_transform(scores, post_transform)
    return labels_of(index, classlabels_ints, classlabels_strings), scores.astype(np.float32)


def _margins(
    x: Array,
    coefficients: Sequence[float],
    kernel_type: str,
    kernel_params: Sequence[float] | None,
    rho: Sequence[float],
    support_vectors: Sequence[float] | None,
    vectors_per_class: Sequence[int],
) -> Array:
    """Return the margin of each pair of classes, (rows, pairs), as libsvm orders them."""
    total = sum(vectors_per_class)
    supports = np.asarray(support_vectors, dtype=np.float64).reshape(total, -1)
    weights = np.asarray(coefficients, dtype=np.float64).reshape(-1, total)
    values = kernel(x, supports, kernel_type, kernel_params)
    ends = np.cumsum(vectors_per_class)
    spans = [slice(end - count, end) for end, count in zip(ends, vectors_per_class, strict=True)]
    columns: list[Array] = []
    for i, first in enumerate(spans):
        for j in range(i + 1, len(spans)):
            second = spans[j]
            margin = values[:, first] @ weights[j - 1, first]
            margin = margin + values[:, second] @ weights[i, second]
            columns.append(margin + rho[len(columns)])
    return np.stack(columns, axis=1)


def _votes(margins: Array, n_classes: int) -> Array:
    votes = np.zeros((len(margins), n_classes))
    pair = 0
    for i in range(n_classes):
        for j in range(i + 1, n_classes):
            wins = margins[:, pair] > 0
            votes[:, i] += wins
            votes[:, j] += ~wins
            pair += 1
    return votes


def _probabilities(
    margins: Array, prob_a: Sequence[float], prob_b: Sequence[float], n_classes: int
) -> Array:
    """Couple pairwise probabilities (Wu, Lin and Weng, 2004, second method)."""
    pairwise = np.zeros((len(margins), n_classes, n_classes))
    pair = 0
    for i in range(n_classes):
        for j in range(i + 1, n_classes):
            exponent = margins[:, pair] * prob_a[pair] + prob_b[pair]
            probability = np.clip(1 / (1 + np.exp(exponent)), 1e-7, 1 - 1e-7)
            pairwise[:, i, j], pairwise[:, j, i] = probability, 1 - probability
            pair += 1
    return np.array([_couple(r) for r in pairwise]).reshape(len(margins), n_classes)


def _couple(r: Array) -> Array:
    k = len(r)
    q = -r.T * r
    np.fill_diagonal(q, (r.T**2).sum(axis=1))
    p = np.full(k, 1 / k)
    for _ in range(max(100, k)):
        qp = q @ p
        pqp = p @ qp
        if np.abs(qp - pqp).max() < 0.005 / k:
            break
        for t in range(k):
            difference = (pqp - qp[t]) / q[t, t]
            p[t] += difference
            pqp = (pqp + difference * (difference * q[t, t] + 2 * qp[t])) / (1 + difference) ** 2
            qp = (qp + difference * q[t]) / (1 + difference)
            p /= 1 + difference
    return p


def _infer_classifier(ctx: InferContext) -> Sequence[Any]:
    count = len(ctx.attr("classlabels_strings") or ctx.attr("classlabels_ints") or ())
    pairs = None
    if count > 2 and ctx.attr("vectors_per_class") and not ctx.attr("prob_a"):
        pairs = count * (count - 1) // 2
    return infer_classifier(ctx, "classlabels_ints", pairs)


def _infer_regressor(ctx: InferContext) -> Sequence[Any]:
    shape = ctx.shape(0)
    return [(shape[0] if len(shape) > 1 else 1, 1)]


OPERATORS = (
    OpDef("SVMClassifier", _infer_classifier, _classifier, domain=DOMAIN, vjp=CLASSICAL),
    OpDef("SVMRegressor", _infer_regressor, _regressor, domain=DOMAIN, vjp=CLASSICAL),
)
