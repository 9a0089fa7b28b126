"""Losses over drawn classes, chains of labels and alignments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hagane.nn.autograd import type_check
from hagane.nn.autograd.variable import Variable
from hagane.nn.functions.applying import (
    array_of,
    check_indices,
    constant_like,
    function,
    lift,
    require,
)
from hagane.nn.functions.array import reshape
from hagane.nn.functions.joining import concat, separate, split_axis, stack
from hagane.nn.functions.loss import check_reduce
from hagane.nn.functions.math import logsumexp, sum
from hagane.nn.functions.products import embed_id
from hagane.ops.builder import op
from hagane.ops.functions.chainer.losses import folded, total


@function("x", ":t", "W")
def negative_sampling(
    x: Any, t: Any, W: Any, sampler: Any, sample_size: int, reduce: str = "sum", **kwargs: Any
) -> Any:
    """Return the loss of right classes against drawn ones (Mikolov et al. 2013).

    Args:
        x: (batch, features).
        t: Classes, integers (batch,); -1 for samples that do not count.
        W: A vector for each class.
        sampler: Draws classes: from a shape to integers.
        sample_size: How many are drawn for each sample.
        reduce: ``sum`` or ``no``.
        kwargs: ``samples`` gives the classes, the right ones first; with ``return_samples`` they
            are returned too.
    """
    samples = kwargs.pop("samples", None)
    return_samples = kwargs.pop("return_samples", False)
    if kwargs:
        raise TypeError(f"negative_sampling: unexpected arguments {', '.join(kwargs)}")
    check_reduce("negative_sampling", reduce, "sum", "no")
    require("negative_sampling", "x", x, kind="f", ndim=2)
    labels = array_of(t)
    n, features = x.shape
    if labels.dtype.kind != "i" or labels.shape != (n,):
        raise type_check.refuse(
            "negative_sampling", f"t: {n} integers", f"{labels.dtype} {labels.shape}"
        )
    require("negative_sampling", "W", W, ndim=2, dtype_as=("x", x), shape=(None, features))
    if samples is None:
        drawn = sampler((n, sample_size + 1))
        drawn[:, 0] = labels
        samples = drawn
    valid = labels != -1
    chosen = np.where(valid[:, None], array_of(samples), 0)
    vectors = embed_id(chosen, W)
    scores = op("Squeeze", op("MatMul", vectors, op("Unsqueeze", x, [2])), [2])
    signs = np.ones(chosen.shape, x.dtype)
    signs[:, 0] = -1
    losses = op("Softplus", op("Mul", scores, signs))
    losses = op("Mul", losses, valid[:, None].astype(x.dtype))
    loss = total(losses) if reduce == "sum" else op("ReduceSum", losses, [1], keepdims=0)
    return (loss, samples) if return_samples else loss


@function("x", "W")
def black_out(x: Any, t: Any, W: Any, samples: Any, reduce: str = "mean") -> Any:
    """Return the loss of right classes against drawn ones (Ji et al. 2015).

    Args:
        x: (batch, features).
        t: Classes, integers (batch,).
        W: A vector for each class.
        samples: Drawn classes, (batch, number).
        reduce: ``mean`` or ``no``.
    """
    check_reduce("black_out", reduce, "mean", "no")
    chosen = np.concatenate([array_of(t)[:, None], array_of(samples)], axis=1)
    vectors = embed_id(chosen, W)
    scores = op("Squeeze", op("MatMul", vectors, op("Unsqueeze", x, [2])), [2])
    log_p = op("LogSoftmax", scores, axis=1)
    right, wrong = split_axis(log_p, [1], 1)
    eps = constant_like(np.finfo(np.float32).tiny, x)
    others = op("Log", op("Add", op("Sub", constant_like(1, x), op("Exp", wrong)), eps))
    loss = op("Neg", op("Add", op("Squeeze", right, [1]), op("ReduceSum", others, [1], keepdims=0)))
    return folded(loss, reduce)


def crf1d(cost: Any, xs: Sequence[Any], ys: Sequence[Any], reduce: str = "mean") -> Any:
    """Return the negative log-likelihood of chains of labels (Lafferty et al. 2001).

    Args:
        cost: Of each pair of labels that follow each other, (labels, labels).
        xs: Costs of labels at each time, (batch at that time, labels); batches do not grow.
        ys: Labels at each time, integers.
        reduce: ``mean`` or ``no``.
    """
    check_reduce("crf1d", reduce, "mean", "no")
    cost, row = lift(cost), [lift(x) for x in xs]
    labels = [array_of(y) for y in ys]
    if not row:
        raise ValueError("crf1d: expected one or more times, got none")
    size = cost.shape[0]
    if cost.shape != (size, size) or any(x.shape[1] != size for x in row):
        raise type_check.refuse(
            "crf1d", f"xs of {size} labels", f"cost.shape == {cost.shape}, xs: {row[0].shape}"
        )
    n = row[0].shape[0]
    alpha: Any = row[0]
    ended: list[Any] = []
    for x in row[1:]:
        batch = x.shape[0]
        if alpha.shape[0] > batch:
            alpha, rest = split_axis(alpha, [batch], 0)
            ended.append(logsumexp(rest, axis=1))
        ways = op("Add", op("Unsqueeze", alpha, [2]), op("Unsqueeze", cost, [0]))
        alpha = logsumexp(ways, axis=1) + x
    ended.append(logsumexp(alpha, axis=1))
    losses = _joined(ended) - _scores_of(cost, row, labels)
    return losses if reduce == "no" else sum(losses) * (1 / n)


def _scores_of(cost: Any, row: Sequence[Any], labels: Sequence[Any]) -> Any:
    """Return the scores of chains with some labels at each time."""
    size = cost.shape[0]
    flat = reshape(cost, (size * size,))
    ended: list[Any] = []
    score: Any = _picked(row[0], labels[0])
    for x, before, now in zip(row[1:], labels, labels[1:], strict=False):
        batch = x.shape[0]
        if score.shape[0] > batch:
            score, rest = split_axis(score, [batch], 0)
            ended.append(rest)
        steps = op("Gather", flat, before[:batch].astype(np.int64) * size + now, axis=0)
        score = score + _picked(x, now) + steps
    return _joined([*ended, score])


def _joined(ended: Sequence[Any]) -> Any:
    """Return values of chains, those that ended last first."""
    return concat(ended[::-1], axis=0) if len(ended) > 1 else ended[0]


def _picked(x: Any, labels: Any) -> Any:
    found = op("GatherElements", x, labels.astype(np.int64)[:, None], axis=1)
    return op("Squeeze", found, [1])


def argmax_crf1d(cost: Any, xs: Sequence[Any]) -> Any:
    """Return the best scores of chains, and their labels at each time (Viterbi 1967).

    Gradients of scores are those of the chains with these labels.

    Args:
        cost: Of each pair of labels, (labels, labels).
        xs: Costs of labels at each time; batches do not grow.
    """
    weights, row = array_of(cost), [array_of(x) for x in xs]
    alpha = row[0]
    ends: list[Any] = []
    backs: list[Any] = []
    for x in row[1:]:
        batch = x.shape[0]
        if alpha.shape[0] > batch:
            ends.append(alpha[batch:].argmax(axis=1))
            alpha = alpha[:batch]
        else:
            ends.append(None)
        ways = alpha[:, :, None] + weights
        backs.append(ways.argmax(axis=1))
        alpha = ways.max(axis=1) + x
    path = [alpha.argmax(axis=1).astype(np.int32)]
    for back, end in zip(reversed(backs), reversed(ends), strict=True):
        before = back[np.arange(len(path[-1])), path[-1]]
        if end is not None:
            before = np.concatenate([before, end])
        path.append(before.astype(np.int32))
    path.reverse()
    return _scores_of(lift(cost), [lift(x) for x in xs], path), path


def connectionist_temporal_classification(
    x: Sequence[Any],
    t: Any,
    blank_symbol: int,
    input_length: Any = None,
    label_length: Any = None,
    reduce: str = "mean",
) -> Any:
    """Return the negative log-likelihood of labels of sequences without alignment (Graves 2006).

    Args:
        x: Scores at each time, (batch, classes) each.
        t: Labels, integers (batch, largest number of labels).
        blank_symbol: The class that stands for no label.
        input_length: The number of times of each sequence; all if None.
        label_length: The number of labels of each sequence; all if None.
        reduce: ``mean`` or ``no``.
    """
    where = "connectionist_temporal_classification"
    if not isinstance(x, Sequence):
        raise TypeError("x must be a list of Variables")
    if not isinstance(blank_symbol, int):
        raise TypeError("blank_symbol must be non-negative integer.")
    check_reduce(where, reduce, "mean", "no")
    if not 0 <= blank_symbol < x[0].shape[1]:
        raise AssertionError(
            f"blank_symbol: expected 0 <= it < {x[0].shape[1]}, got {blank_symbol}"
        )
    labels = array_of(t)
    if labels.dtype.kind != "i":
        raise type_check.refuse(where, "t.dtype.kind == 'i'", f"t.dtype == {labels.dtype}")
    if labels.ndim != 2 or len(labels) != x[0].shape[0]:
        raise type_check.refuse(
            where,
            f"t of shape ({x[0].shape[0]}, labels), as x has the batch",
            f"t.shape == {labels.shape}, x[0].shape == {x[0].shape}",
        )
    n, most = labels.shape
    times = np.full(n, len(x)) if input_length is None else array_of(input_length)
    counts = np.full(n, most) if label_length is None else array_of(label_length)
    for name, one, bound in (("input_length", times, len(x)), ("label_length", counts, most)):
        if one.dtype.kind != "i" or one.shape != (n,):
            raise type_check.refuse(where, f"{name}: {n} integers", f"{one.dtype} {one.shape}")
        check_indices(where, name, one, bound + 1)
    used = np.where(np.arange(most) < counts[:, None], labels, blank_symbol)
    check_indices(where, "t", used, x[0].shape[1])
    return _aligned(times, counts, used, stack(list(x)), blank_symbol, reduce)


@function(":times", ":counts", ":used", "xs", name="connectionist_temporal_classification")
def _aligned(times: Any, counts: Any, used: Any, xs: Any, blank_symbol: int, reduce: str) -> Any:
    """Return the loss of scores (times, batch, classes), of labels filled up with blanks."""
    x = separate(xs)
    n, most = used.shape
    dtype = x[0].dtype
    # Labels with blanks between and around: (batch, 2 labels + 1).
    width = 2 * most + 1
    path = np.full((n, width), blank_symbol, np.int64)
    path[:, 1::2] = used
    skips = np.zeros((n, width), bool)
    skips[:, 2:] = (path[:, 2:] != blank_symbol) & (path[:, 2:] != path[:, :-2])
    never = dtype.type(-1e10 if dtype != np.float16 else -3e4)
    scores = [op("GatherElements", op("LogSoftmax", one, axis=1), path, axis=1) for one in x]
    first = np.full((n, width), never, dtype)
    first[:, :2] = 0
    alpha: Any = op("Add", scores[0], first)
    kept: Any = [alpha]
    hidden = np.where(skips, 0, never).astype(dtype)
    for score in scores[1:]:
        one = op("Pad", op("Slice", alpha, [0], [width - 1], [1]), [0, 1, 0, 0], never)
        two = op(
            "Pad",
            op("Slice", alpha, [0], [max(width - 2, 0)], [1]),
            [0, min(2, width), 0, 0],
            never,
        )
        ways = stack([alpha, one, op("Add", two, hidden)], axis=0)
        alpha = op("Add", logsumexp(ways, axis=0), score)
        kept.append(alpha)
    whole = stack(kept, axis=1) if len(kept) > 1 else op("Unsqueeze", kept[0], [1])
    rows = np.arange(n)
    from hagane.nn.functions.indexing import get_item

    last = get_item(whole, (rows, times.astype(np.int64) - 1, 2 * counts))
    inner = get_item(whole, (rows, times.astype(np.int64) - 1, np.maximum(2 * counts - 1, 0)))
    # Without labels there is one way only, which must not count twice.
    inner = op("Add", inner, np.where(counts > 0, 0, never).astype(dtype))
    loss = op("Neg", logsumexp(stack([last, inner], axis=0), axis=0))
    return folded(loss, reduce)


@function("embeddings")
def discriminative_margin_based_clustering_loss(
    embeddings: Any,
    labels: Any,
    delta_v: float,
    delta_d: float,
    max_embedding_dim: int,
    norm: int = 1,
    alpha: float = 1.0,
    beta: float = 1.0,
    gamma: float = 0.001,
) -> Any:
    """Return the losses of clusters: spread, distance and size (De Brabandere et al. 2017).

    Args:
        embeddings: (batch, dimensions, height, width).
        labels: Instances, integers (batch, height, width): from 1 to ``max_embedding_dim``; others,
            0 for the background among them, count for none.
        delta_v: The radius within which spread costs nothing.
        delta_d: Half the distance from which clusters cost nothing.
        max_embedding_dim: The number of instances, and of dimensions.
        norm: 1 or 2: the distance.
        alpha: Factor of the spread.
        beta: Factor of the distance.
        gamma: Factor of the size.

    Returns:
        The three losses.
    """
    where, ids = "discriminative_margin_based_clustering_loss", array_of(labels)
    n, dimensions, *places = embeddings.shape
    if ids.shape != (n, *places):
        raise type_check.refuse(where, f"labels.shape == {(n, *places)}", f"{ids.shape}")
    if max_embedding_dim != dimensions:
        raise type_check.refuse(
            where,
            f"embeddings.shape[1] == {max_embedding_dim}, the number of instances",
            f"embeddings.shape == {embeddings.shape}",
        )
    if norm not in (1, 2):
        raise ValueError(f"norm: expected 1 or 2, got {norm}")

    dtype, instances = embeddings.dtype, range(1, dimensions + 1)

    def length(v: Any, axis: Any) -> Any:
        if norm == 1:
            return sum(op("Abs", v), axis=axis)
        squares = sum(v * v, axis=axis)
        none = (array_of(squares) == 0).astype(dtype)  # where a root has no derivative
        return op("Sqrt", squares + none) - none

    masks = np.stack([ids.reshape(n, 1, -1) == one for one in instances]).astype(dtype)
    flat = reshape(embeddings, (1, n, dimensions, -1))
    # (instances, batch, dimensions), zeros where a sample lacks an instance.
    means = sum(flat * masks, axis=3) * (1 / np.maximum(masks.sum(axis=3), 1)).astype(dtype)
    away = length((reshape(means, (dimensions, n, dimensions, 1)) - flat) * masks, 2)
    over = op("Relu", away - delta_v)
    counts = np.maximum(masks.sum(axis=(1, 2, 3)), 1)
    spread = sum(sum(over * over, axis=(1, 2)) * (1 / counts).astype(dtype)) / dimensions
    apart: Any = Variable(np.zeros((), dtype))
    for i in range(dimensions):
        for j in range(i + 1, dimensions):
            near = op("Relu", 2 * delta_d - length(means[i] - means[j], 1))
            apart = apart + sum(near * near)
    apart = apart / max(dimensions * (dimensions - 1) // 2 * n, 1)
    size = sum(length(means, (1, 2))) / (dimensions * n)
    return alpha * spread, beta * apart, gamma * size
