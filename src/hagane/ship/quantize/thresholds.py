"""Ranges of activations from histograms of their magnitudes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from hagane.errors import InvalidArgument
from hagane.ops.definition import Array

BINS = 2048
# Methods that need a histogram.
COUNTED = frozenset({"entropy", "percentile", "mse"})
# Levels of a quantised magnitude, as TensorRT counts them.
_LEVELS = 128
# Candidates for a threshold by squared error.
_CANDIDATES = 128


@dataclass
class Observed:
    """The numbers that one tensor had over all feeds.

    Attributes:
        least: The smallest.
        most: The largest.
        counts: How many have a magnitude in each of equal bins from 0 to ``reach``.
    """

    least: float = np.inf
    most: float = -np.inf
    counts: Array = field(default_factory=lambda: np.zeros(BINS, np.int64))

    @property
    def reach(self) -> float:
        """The largest magnitude."""
        return max(abs(self.least), abs(self.most))

    def note_range(self, array: Array) -> None:
        """Widen the range by an array."""
        if array.size:
            self.least = min(self.least, float(array.min()))
            self.most = max(self.most, float(array.max()))

    def note_counts(self, array: Array) -> None:
        """Count the magnitudes of an array; the range is known."""
        bins = np.abs(array).ravel() * (BINS / (self.reach or 1.0))
        self.counts += np.bincount(np.minimum(bins, BINS - 1).astype(np.int32), minlength=BINS)


def entropy_threshold(counts: Array, levels: int = _LEVELS) -> int:
    """Return how many bins to keep so that the least information is lost.

    The reference is the histogram cut off, with all beyond in its last bin; the candidate is
    the same in ``levels`` levels, spread over the bins that are not empty. The cut with the least
    Kullback-Leibler divergence wins ("8-bit Inference with TensorRT", S. Migacz, GTC 2017). As
    there, a histogram of more bins than levels is cut by one bin at least.

    Args:
        counts: Of equal bins of the magnitude from 0 on, ``(bins,)``.
        levels: Of the quantised magnitude.
    """
    counts = np.asarray(counts, np.float64)
    beyond = counts.sum() - np.cumsum(counts)
    best, found = np.inf, len(counts)
    for size in range(levels, len(counts)):
        kept = counts[:size]
        reference = kept.copy()
        reference[-1] += beyond[size - 1]
        divergence = _divergence(reference, spread(kept, levels))
        if divergence < best:
            best, found = divergence, size
    return found


def _without_zeros(counts: Array) -> Array:
    """Return counts whose first bin is like the second.

    Zero has a level of its own under every threshold: its numbers, of which a Relu makes many,
    would decide alone. NVIDIA's calibrators leave them out as well.
    """
    found = counts.copy()
    found[0] = found[1]
    return found


def spread(counts: Array, levels: int) -> Array:
    """Return counts merged into levels, and these spread over the bins that are not empty."""
    starts = np.arange(levels) * len(counts) // levels
    filled = counts != 0
    sums = np.add.reduceat(counts, starts)
    numbers = np.add.reduceat(filled.astype(np.float64), starts)
    means = np.divide(sums, numbers, out=np.zeros(levels), where=numbers != 0)
    found: Array = np.repeat(means, np.diff([*starts, len(counts)])) * filled
    return found


def _divergence(reference: Array, candidate: Array) -> float:
    """Return the Kullback-Leibler divergence of two histograms; infinite where one is empty."""
    total, other = reference.sum(), candidate.sum()
    if total == 0 or other == 0:
        return float(np.inf)
    p, q = reference / total, candidate / other
    known = p > 0
    if (q[known] == 0).any():
        return float(np.inf)
    return float(np.sum(p[known] * np.log(p[known] / q[known])))


def percentile_threshold(counts: Array, percentile: float) -> int:
    """Return how many bins hold a share of all numbers, in per cent."""
    share = np.cumsum(counts) / max(1, int(counts.sum()))
    return int(np.searchsorted(share, percentile / 100)) + 1


def mse_threshold(counts: Array, levels: int = _LEVELS) -> int:
    """Return how many bins to keep so that rounding and clipping have the least squared error."""
    centres = np.arange(len(counts)) + 0.5
    best, found = np.inf, len(counts)
    for size in np.linspace(len(counts) / _CANDIDATES, len(counts), _CANDIDATES):
        step = size / levels
        rounded = np.minimum(np.round(centres / step) * step, size)
        error = float(np.sum(counts * (centres - rounded) ** 2))
        if error < best:
            best, found = error, int(np.ceil(size))
    return found


def range_of(observed: Observed, method: str, percentile: float) -> tuple[float, float]:
    """Return the smallest and the largest number that shall not be clipped.

    Args:
        observed: The observations of a tensor.
        method: ``minmax``, ``entropy``, ``percentile`` or ``mse``.
        percentile: For that method.
    """
    choose: Mapping[str, Callable[[], float]] = {
        "minmax": lambda: BINS,
        # (Half a bin more, as TensorRT has it.)
        "entropy": lambda: min(BINS, entropy_threshold(_without_zeros(observed.counts)) + 0.5),
        "percentile": lambda: percentile_threshold(observed.counts, percentile),
        "mse": lambda: mse_threshold(observed.counts),
    }
    if method not in choose:
        raise InvalidArgument(f"--method: expected one of {', '.join(choose)}, got '{method}'")
    limit = observed.reach * choose[method]() / BINS
    return max(observed.least, -limit), min(observed.most, limit)
