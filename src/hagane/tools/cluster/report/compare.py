"""Two configurations over the same seeds: paired differences with confidence intervals."""

from __future__ import annotations

import html
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
    """What B has more than A in one metric.

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


def numbers(summary: Mapping[str, Any], prefix: str = "") -> dict[str, float]:
    """Return the numbers of nested sums by dotted name."""
    out: dict[str, float] = {}
    for name, value in summary.items():
        if isinstance(value, Mapping):
            out |= numbers(value, f"{prefix}{name}.")
        elif isinstance(value, int | float):
            out[prefix + name] = float(value)
    return out


def plot(differences: Sequence[Difference], a: str, b: str) -> str:
    """Return a self-contained page: each metric's pairs as lines from A to B."""
    parts = []
    for item in differences:
        values = [v for pair in item.pairs for v in pair]
        low, high = min(values), max(values)
        span = (high - low) or 1.0

        def height(value: float, low: float = low, span: float = span) -> float:
            return 110 - 100 * (value - low) / span

        lines = "".join(
            f'<line x1="60" x2="200" y1="{height(x):.1f}" y2="{height(y):.1f}"/>'
            for x, y in item.pairs
        )
        mean = (
            f'<line class="mean" x1="60" x2="200" y1="{height(item.a):.1f}" '
            f'y2="{height(item.b):.1f}"/>'
        )
        mark = " *" if item.significant else ""
        parts.append(
            f"<figure><svg viewBox='0 0 260 130'>{lines}{mean}"
            f"<text x='40' y='126'>A</text><text x='205' y='126'>B</text></svg>"
            f"<figcaption>{item.metric}{mark}<br>{item.difference:+.4g} "
            f"[{item.low:+.4g}, {item.high:+.4g}]</figcaption></figure>"
        )
    return (
        "<!doctype html><meta charset='utf-8'><title>hagane cluster compare</title><style>"
        "body{font:14px system-ui;margin:2em auto;max-width:70em}figure{display:inline-block;"
        "width:15em;margin:.5em}line{stroke:#9ab;stroke-width:1}.mean{stroke:#b30;stroke-width:3}"
        f"</style><h1>Paired differences</h1><p>A: {html.escape(a)}<br>B: {html.escape(b)}<br>"
        "B - A with its confidence interval; * leaves zero out.</p>" + "".join(parts)
    )
