"""Connectionist temporal classification (Graves et al., 2006): sums over alignments."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.ops.builder import dtype_of, op, rank_of, scan
from hagane.ops.functions.numbers.activations import number_like
from hagane.ops.functions.numbers.elementary import add, cast, mul, neg, sub, unsqueeze, where
from hagane.ops.layout.stopping import stopped

_INT64 = ir.DataType.INT64


def labels_by_row(targets: Any, lengths: Any) -> Any:
    """Return labels that lie behind each other as rows, as long as the longest one.

    Args:
        targets: (sum of lengths,), integers.
        lengths: (batch,), int64.
    """
    ends = op("CumSum", lengths, np.array(0))
    starts = unsqueeze(sub(ends, lengths), [1])
    longest = op("Max", op("ReduceMax", lengths, keepdims=0), np.array(1))
    places = add(starts, op("Range", 0, longest, 1))
    targets = op("Pad", targets, [0, 1], np.array(0, dtype_of(targets).numpy()))
    size = sub(op("Shape", targets), 1)
    places = op("Max", op("Min", places, size), np.array(0))
    return op("Gather", targets, places, axis=0)


def alignment_loss(
    log_probabilities: Any, targets: Any, input_lengths: Any, target_lengths: Any, blank: int,
    *, zero_infinity: bool,
) -> Any:  # fmt: skip
    """Return minus the logarithm of the probability of each label sequence; (batch,).

    Args:
        log_probabilities: (time, batch, classes), floats.
        targets: (batch, labels), integers; those behind a sequence's length don't count.
        input_lengths: (batch,), int64.
        target_lengths: (batch,), int64.
        blank: The class that stands for no label.
        zero_infinity: Whether losses of sequences that no alignment gives are 0.
    """
    labels = cast(targets, _INT64)
    labels = op("Pad", labels, [0, 0, 0, 1], np.array(blank))
    empty = add(mul(labels, 0), blank)
    pairs = op("Concat", unsqueeze(empty, [2]), unsqueeze(labels, [2]), axis=2)
    # blank, first label, blank, second label, …, blank, and one more that nothing reads
    extended = op("Reshape", pairs, op("Concat", op("Shape", labels, start=0, end=1), [-1], axis=0))
    low = number_like(-math.inf, log_probabilities)
    place = op("Range", 0, op("Squeeze", op("Shape", extended, start=1), [0]), 1)
    before = op("Pad", op("Slice", extended, [0], [-2], [1]), [0, 2, 0, 0], np.array(blank))
    skips = op("Not", op("Or", op("Equal", extended, blank), op("Equal", extended, before)))
    zero = number_like(0, log_probabilities)
    start = add(where(op("Equal", place, 0), zero, low),
                op("Expand", zero, op("Shape", extended)))  # fmt: skip
    limits = unsqueeze(input_lengths, [1])

    def step(alpha: Any, number: Any, scores: Any) -> list[Any]:
        one = op("Pad", op("Slice", alpha, [0], [-1], [1]), [0, 1, 0, 0], low)
        two = op("Pad", op("Slice", alpha, [0], [-2], [1]), [0, 2, 0, 0], low)
        two = where(skips, two, low)
        found = add(_log_sum(alpha, one, two), op("GatherElements", scores, extended, axis=1))
        made = where(op("Less", number, limits), found, alpha)
        return [made, add(number, 1)]

    alpha, _ = scan([start, np.array(0)], [log_probabilities], step)
    end = unsqueeze(mul(target_lengths, 2), [1])
    last = op("GatherElements", alpha, end, axis=1)
    label = op("GatherElements", alpha, op("Max", sub(end, 1), np.array(0)), axis=1)
    label = where(op("Greater", end, 0), label, low)
    loss = neg(op("Squeeze", _log_sum(last, label), [1]))
    # Gradients have the term of a softmax, as PyTorch's do: behind log_softmax it comes to nothing.
    term = _sums_of_probabilities(log_probabilities, input_lengths)
    loss = add(loss, sub(term, stopped(term)))
    return where(op("IsInf", loss), zero, loss) if zero_infinity else loss


def _sums_of_probabilities(log_probabilities: Any, lengths: Any) -> Any:
    """Return sums over all steps of a sequence and all classes: (batch,), finite."""
    found = op("Exp", op("Min", log_probabilities, number_like(60, log_probabilities)))
    step = op("Range", 0, op("Squeeze", op("Shape", log_probabilities, end=1), [0]), 1)
    counts = op("Less", unsqueeze(step, [1]), unsqueeze(lengths, [0]))
    return op("ReduceSum", where(unsqueeze(counts, [2]), found, number_like(0, found)), [0, 2],
              keepdims=0)  # fmt: skip


def _log_sum(*values: Any) -> Any:
    """Return the logarithm of the sum of exponentials, of which all may be minus infinity."""
    most = op("Max", *values)
    base = where(op("IsInf", most), number_like(0, most), most)
    total = add(*(op("Exp", sub(value, base)) for value in values))
    # (Where there is nothing to sum the logarithm has no slope, which would be 0 times infinity.)
    none = op("Equal", total, number_like(0, total))
    found = add(op("Log", where(none, number_like(1, total), total)), base)
    return where(none, most, found)


def reduced_alignment_loss(loss: Any, target_lengths: Any, reduction: str) -> Any:
    """Return losses as they are, their sum, or the mean of losses over label counts."""
    if reduction == "none":
        return loss
    axes = list(range(rank_of(loss)))
    if reduction == "sum":
        return op("ReduceSum", loss, axes, keepdims=0)
    count = op("Max", target_lengths, np.array(1))
    shares = op("Div", loss, op("CastLike", count, loss))
    return op("ReduceMean", shares, axes, keepdims=0)
