"""Functions of Chainer as programs over NumPy, interpreted like the user's own.

https://docs.chainer.org/en/v7.8.1/reference/
"""

from __future__ import annotations

from typing import Any

import numpy as np


class CpuDevice:
    """The device of NumPy's arrays, the only one of graphs."""

    name = "@numpy"
    xp = np

    def send(self, arrays: Any) -> Any:
        """Return arrays as they are."""
        return arrays

    def use(self) -> None:
        """Do nothing: it is used already."""


def get_device(device_spec: Any) -> Any:
    """Return the device."""
    return CpuDevice()


def concat_examples(batch: Any, device: Any = None, padding: Any = None) -> Any:
    """Return samples stacked to arrays; where they differ in shape, with padding behind them."""
    if len(batch) == 0:
        raise ValueError("batch is empty")
    first = batch[0]
    if isinstance(first, tuple):
        row = padding if isinstance(padding, tuple) else (padding,) * len(first)
        return tuple([stacked([sample[i] for sample in batch], row[i]) for i in range(len(first))])
    if isinstance(first, dict):
        named = padding if isinstance(padding, dict) else dict.fromkeys(first, padding)
        return {key: stacked([sample[key] for sample in batch], named[key]) for key in first}
    return stacked(batch, padding)


def stacked(values: Any, padding: Any) -> Any:
    """Return arrays or numbers as one array."""
    first = values[0]
    if not isinstance(first, np.ndarray):
        return np.array(values)
    if padding is None:
        return np.stack(values)
    largest = [max([value.shape[axis] for value in values]) for axis in range(first.ndim)]
    rows = []
    for value in values:
        behind = [(0, largest[axis] - value.shape[axis]) for axis in range(value.ndim)]
        rows.append(np.pad(value, behind, constant_values=padding))
    return np.stack(rows)


def crf1d(cost: Any, xs: Any, ys: Any, reduce: Any) -> Any:
    """Return the loss of chains of labels: that of all chains less that of the right one.

    Batches of later times may be smaller: the last samples end before.
    """
    import chainer.functions as F  # type: ignore[import-not-found]  # noqa: N812

    count = cost.shape[0]
    pairs = F.reshape(cost, (count * count, 1))
    alpha, score = xs[0], F.select_item(xs[0], ys[0])
    alphas, scores = [], []
    for place in range(1, len(xs)):
        x, label, before = xs[place], ys[place], ys[place - 1]
        rows = x.shape[0]
        if alpha.shape[0] > rows:
            alphas.append(alpha[rows:])
            scores.append(score[rows:])
            alpha, score, before = alpha[:rows], score[:rows], before[:rows]
        alpha = F.logsumexp(_ways(alpha, cost), axis=1) + x
        pair = F.reshape(F.embed_id(before * count + label, pairs), (rows,))
        score = score + F.select_item(x, label) + pair
    whole = F.concat([alpha, *alphas[::-1]], axis=0) if alphas else alpha
    right = F.concat([score, *scores[::-1]], axis=0) if scores else score
    loss = F.logsumexp(whole, axis=1) - right
    return F.mean(loss) if reduce == "mean" else loss


def argmax_crf1d(cost: Any, xs: Any) -> Any:
    """Return the best scores of chains, and their labels at each time."""
    import chainer.functions as F  # noqa: N812

    alpha = xs[0]
    alphas = []
    ends: dict[int, Any] = {}
    backs = []
    for place in range(1, len(xs)):
        rows = xs[place].shape[0]
        if alpha.shape[0] > rows:
            alphas.append(alpha[rows:])
            ends[place] = F.argmax(alpha[rows:], axis=1).array
            alpha = alpha[:rows]
        ways = _ways(alpha, cost)
        backs.append(F.argmax(ways, axis=1).array)
        alpha = F.max(ways, axis=1) + xs[place]
    path = [F.argmax(alpha, axis=1).array.astype(np.int32)]
    for place in range(len(xs) - 1, 0, -1):
        labels = np.take_along_axis(backs[place - 1], path[0][:, None], 1)[:, 0]
        if place in ends:
            labels = np.concatenate([labels, ends[place]])
        path = [labels.astype(np.int32), *path]
    whole = F.concat([alpha, *alphas[::-1]], axis=0) if alphas else alpha
    return F.max(whole, axis=1), path


def _ways(alpha: Any, cost: Any) -> Any:
    """Return the scores of all pairs of labels, (samples, labels before, labels)."""
    import chainer.functions as F  # noqa: N812

    rows, count = alpha.shape
    shape = (rows, count, count)
    first = F.broadcast_to(F.expand_dims(alpha, 2), shape)
    return first + F.broadcast_to(F.expand_dims(cost, 0), shape)
