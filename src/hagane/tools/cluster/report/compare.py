"""Two configurations over the same seeds: paired differences with confidence intervals."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hagane.errors import InvalidArgument, MissingExtra
from hagane.tools.cluster.sim.config import load_config
from hagane.tools.cluster.sim.setup import prepare

METRICS = (
    "utilisation.gpu",
    "utilisation.cpu",
    "queue_length.mean",
    "waiting_seconds.mean",
    "waiting_seconds.p95",
    "completion_seconds.mean",
    "slowdown.mean",
    "jain_index",
    "finish_time_fairness",
    "dominant_share.max",
    "preempted",
    "lost_gpu_hours",
    "seconds",
    "succeeded",
    "failed",
)


@dataclass(frozen=True, slots=True)
class Difference:
    """The lead of B over A in one metric.

    Attributes:
        a: mean over seeds.
        b: mean over seeds.
        difference: mean of the paired differences B - A.
        low: lower end of its confidence interval.
        high: upper end.
        significant: whether the interval leaves zero out.
        pairs: (a, b) by seed.
    """

    metric: str
    a: float
    b: float
    difference: float
    low: float
    high: float
    significant: bool
    pairs: tuple[tuple[float, float], ...]

    def to_json(self) -> dict[str, Any]:
        """Return the difference as JSON."""
        return {
            "a": self.a,
            "b": self.b,
            "difference": self.difference,
            "low": self.low,
            "high": self.high,
            "significant": self.significant,
            "pairs": [list(p) for p in self.pairs],
        }


def compare(
    a: Path,
    b: Path,
    seeds: int = 20,
    first: int = 0,
    confidence: float = 0.95,
    progress: Callable[[int], None] | None = None,
) -> list[Difference]:
    """Return the differences between two configurations, each run once a seed.

    Both see the same seeds, so chance that both share cancels in the differences.

    Raises:
        InvalidArgument: with fewer than two seeds, or a confidence outside (0, 1).
    """
    if seeds < 2:
        raise InvalidArgument(f"--seeds {seeds}: a confidence interval needs at least 2")
    if not 0 < confidence < 1:
        raise InvalidArgument(f"--confidence {confidence}: expected above 0 and below 1")
    configs = [load_config(a), load_config(b)]
    found: list[list[dict[str, float]]] = [[], []]
    for index in range(seeds):
        for side, config in enumerate(configs):
            summary = prepare(config, first + index, outputs=False).run()
            found[side].append(numbers(summary))
            if progress is not None:
                progress(2 * index + side + 1)
    out = []
    for metric in METRICS:
        pairs = tuple(
            (x[metric], y[metric])
            for x, y in zip(*found, strict=True)
            if metric in x and metric in y
        )
        if len(pairs) >= 2:
            out.append(paired(metric, pairs, confidence))
    return out


def paired(
    metric: str, pairs: Sequence[tuple[float, float]], confidence: float = 0.95
) -> Difference:
    """Return the mean of paired differences with Student's t interval."""
    count = len(pairs)
    deltas = [y - x for x, y in pairs]
    mean = sum(deltas) / count
    variance = sum((d - mean) ** 2 for d in deltas) / (count - 1)
    half = student_quantile((1 + confidence) / 2, count - 1) * math.sqrt(variance / count)
    return Difference(
        metric,
        sum(x for x, _ in pairs) / count,
        sum(y for _, y in pairs) / count,
        mean,
        mean - half,
        mean + half,
        not mean - half <= 0 <= mean + half,
        tuple(pairs),
    )


def student_quantile(probability: float, freedom: int) -> float:
    """Return the quantile of Student's t distribution.

    Raises:
        MissingExtra: without SciPy.
    """
    try:
        from scipy.special import stdtrit
    except ImportError:
        raise MissingExtra("comparing configurations", "cluster") from None
    return float(stdtrit(freedom, probability))


def readable(value: float, sign: str = "") -> str:
    """Return a number in four digits, thousands in full; ``sign`` is "+" to show it always."""
    return f"{value:{sign},.0f}" if abs(value) >= 1000 else f"{value:{sign}.4g}"


def numbers(summary: Mapping[str, Any], prefix: str = "") -> dict[str, float]:
    """Return the numbers of nested sums by dotted name."""
    out: dict[str, float] = {}
    for name, value in summary.items():
        if isinstance(value, Mapping):
            out |= numbers(value, f"{prefix}{name}.")
        elif isinstance(value, int | float):
            out[prefix + name] = float(value)
    return out
