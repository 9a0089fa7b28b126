"""How good predictions are; none of these has a gradient."""

from __future__ import annotations

from typing import Any

import numpy as np

from hagane.nn.autograd import type_check
from hagane.nn.functions.applying import function, require
from hagane.nn.functions.special import Untracked


@function("y", "t")
def accuracy(y: Any, t: Any, ignore_label: int | None = None) -> Any:
    """Return the share of samples whose largest score is that of their class.

    Args:
        y: Scores, (batch, classes, *places).
        t: Classes, integers (batch, *places).
        ignore_label: Samples of this class do not count.
    """
    require("accuracy", "y", y, kind="f", at_least=1)
    require("accuracy", "t", t, kind="i")
    shape, labels = y.shape, t.shape
    if y.ndim != t.ndim + 1:
        rest = y.size // (shape[0] * shape[1]) if len(shape) > 1 and shape[0] * shape[1] else 1
        fits = (
            shape[:1] == labels[:1]
            and (shape[2 : 1 + len(labels)] == labels[1:])
            and rest == (int(np.prod(labels[1:])) if labels else 1)
        )
        if not fits:
            raise type_check.refuse("accuracy", f"y of {t.ndim + 1} axes", f"y.shape == {shape}")
    elif shape[0] != labels[0] or shape[2:] != labels[1:]:
        raise type_check.refuse(
            "accuracy", f"t.shape == {(shape[0], *shape[2:])}", f"t.shape == {labels}"
        )

    def compute(scores: Any, classes: Any) -> Any:
        found = scores.argmax(axis=1).reshape(classes.shape)
        if ignore_label is None:
            return np.asarray((found == classes).mean(dtype=scores.dtype), dtype=scores.dtype)
        counted = classes != ignore_label
        total = counted.sum()
        if total == 0:
            return np.asarray(0.0, dtype=scores.dtype)
        return np.asarray(((found == classes) & counted).sum() / total, dtype=scores.dtype)

    return Untracked("accuracy", compute).apply((y, t))[0]


@function("y", "t")
def binary_accuracy(y: Any, t: Any) -> Any:
    """Return the share of scores whose sign is that of their class.

    Args:
        y: Scores.
        t: 1, 0, or -1 where ignored, of the same sizes.
    """
    require("binary_accuracy", "y", y, kind="f")
    require("binary_accuracy", "t", t, kind="i", shape_as=("y", y))

    def compute(scores: Any, classes: Any) -> Any:
        counted = classes != -1
        right = ((scores >= 0) == classes) & counted
        return np.asarray(right.sum() / max(counted.sum(), 1), dtype=scores.dtype)

    return Untracked("binary_accuracy", compute).apply((y, t))[0]


def _summary(
    y: Any, t: Any, label_num: int | None, beta: float, ignore_label: int
) -> tuple[Any, Any, Any, Any]:
    scores, classes = y.array, t.array
    found = scores.argmax(axis=1).reshape(classes.shape)
    count = int(classes.max(initial=-1)) + 1 if label_num is None else label_num
    kept = classes != ignore_label
    classes, found = classes[kept], found[kept]
    shape = (count,)
    support = np.zeros(shape, np.int64)
    relevant, tp = np.zeros(shape, np.int32), np.zeros(shape, np.int32)
    for i in range(count):
        support[i] = (classes == i).sum()
        relevant[i] = (found == i).sum()
        tp[i] = ((classes == i) & (found == i)).sum()
    with np.errstate(divide="ignore", invalid="ignore"):
        precision = tp / relevant
        recall = tp / support
        square = beta * beta
        score = (1 + square) * precision * recall / (square * precision + recall)
    return precision, recall, score, support


@function("y", "t")
def classification_summary(
    y: Any, t: Any, label_num: int | None = None, beta: float = 1.0, ignore_label: int = -1
) -> Any:
    """Return precision, recall, F score and number of samples of each class.

    Args:
        y: Scores, (batch, classes, *places).
        t: Classes, integers (batch, *places).
        label_num: The number of classes.
        beta: The weight of recall in the F score.
        ignore_label: Samples of this class do not count.
    """
    where = "classification_summary"
    require(where, "y", y, kind="f", at_least=1)
    require(where, "t", t, kind="i")
    if len(y.shape) != len(t.shape) + 1 or (y.shape[0], *y.shape[2:]) != t.shape:
        raise type_check.refuse(
            where, f"t.shape == {(y.shape[0], *y.shape[2:])}", f"t.shape == {t.shape}"
        )
    found = _summary(y, t, label_num, beta, ignore_label)
    return tuple(Untracked(where, lambda *_, part=part: part).apply((y, t))[0] for part in found)


def precision(y: Any, t: Any, label_num: int | None = None, ignore_label: int = -1) -> Any:
    """Return the precision of each class, and the numbers of samples."""
    found = classification_summary(y, t, label_num, 1.0, ignore_label)
    return found[0], found[-1]


def recall(y: Any, t: Any, label_num: int | None = None, ignore_label: int = -1) -> Any:
    """Return the recall of each class, and the numbers of samples."""
    found = classification_summary(y, t, label_num, 1.0, ignore_label)
    return found[1], found[-1]


def f1_score(y: Any, t: Any, label_num: int | None = None, ignore_label: int = -1) -> Any:
    """Return the F1 score of each class, and the numbers of samples."""
    found = classification_summary(y, t, label_num, 1.0, ignore_label)
    return found[2], found[-1]


@function("pred", "true")
def r2_score(
    pred: Any, true: Any, sample_weight: Any = None, multioutput: str = "uniform_average"
) -> Any:
    """Return the coefficient of determination.

    Args:
        pred: Predictions.
        true: The observations, of the same sizes.
        sample_weight: Only None.
        multioutput: ``uniform_average`` of all columns, or ``raw_values``.
    """
    if sample_weight is not None:
        raise NotImplementedError("r2_score: sample_weight is not supported")
    if multioutput not in ("uniform_average", "raw_values"):
        raise ValueError(
            f"multioutput must be 'uniform_average' or 'raw_values', got {multioutput!r}"
        )
    require("r2_score", "pred", pred, kind="f")
    require("r2_score", "true", true, kind="f", shape_as=("pred", pred))

    def compute(found: Any, wanted: Any) -> Any:
        residual = ((found - wanted) ** 2).sum(axis=0)
        spread = ((wanted - wanted.mean(axis=0)) ** 2).sum(axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            score = np.where(spread != 0, 1 - residual / spread, 0.0).astype(found.dtype)
        return score.mean() if multioutput == "uniform_average" else score

    return Untracked("r2_score", compute).apply((pred, true))[0]
