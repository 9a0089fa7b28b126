"""Learning curves over seeds: interquartile means with stratified bootstrap intervals.

Deep Reinforcement Learning at the Edge of the Statistical Precipice, Agarwal et al. 2021.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

import numpy as np
import numpy.typing as npt

from hagane.tools.rl.errors import InvalidLog

Scores = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Curve:
    """One agent's returns while it was trained.

    Attributes:
        name: of the agent.
        environment: where it was trained.
        steps: of the environment at each evaluation.
        returns: ``(seeds, evaluations)``.
    """

    name: str
    environment: str
    steps: tuple[int, ...]
    returns: Scores


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate and the bounds of its confidence interval."""

    value: float
    low: float
    high: float


def interquartile_mean(scores: Scores) -> float:
    """Return the mean of the middle half of all scores, the outer ones weighed by their share.

    rliable, which drops a quarter of the scores rounded down on either side, gives the same for
    multiples of four.
    """
    return float(_middle(scores.reshape(1, -1))[0])


def _middle(scores: Scores) -> Scores:
    """Return the interquartile mean of each row."""
    ordered = np.sort(scores, axis=1)
    count = ordered.shape[1]
    cut = count / 4
    places = np.arange(count)
    weights = np.clip(places + 1 - cut, 0, 1) * np.clip(count - cut - places, 0, 1)
    return np.asarray(ordered @ weights / weights.sum())


def bootstrap(
    strata: Sequence[Scores], draws: int = 2000, confidence: float = 0.95, seed: int = 0
) -> Interval:
    """Return the interquartile mean over all strata with its percentile interval.

    Args:
        strata: scores by task, one a run; runs are drawn anew within each task.
        draws: of the bootstrap.
        confidence: of the interval.
        seed: of the draws.
    """
    generator = np.random.default_rng(seed)
    again = [task[generator.integers(0, len(task), (draws, len(task)))] for task in strata]
    found = _middle(np.concatenate(again, axis=1))
    low, high = np.quantile(found, [(1 - confidence) / 2, (1 + confidence) / 2])
    return Interval(interquartile_mean(np.concatenate(strata)), float(low), float(high))


def load_curves(path: Path) -> list[Curve]:
    """Return the curves in a file: ``{name: {"environment", "steps", "returns"}}``.

    Raises:
        InvalidLog: the file cannot be read, or a curve's returns don't fit its steps.
    """
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
        return [_curve(name, facts) for name, facts in raw.items()]
    except OSError as error:
        raise InvalidLog(f"{path}: cannot be read: {error.strerror}") from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        if isinstance(error, InvalidLog):
            raise InvalidLog(f"{path}: {error}") from None
        raise InvalidLog(
            f"{path}: expected curves by name, each with 'environment', 'steps' and 'returns': "
            f"{type(error).__name__}: {error}"
        ) from None


def _curve(name: str, facts: Mapping[str, object]) -> Curve:
    steps = tuple(int(step) for step in facts["steps"])  # type: ignore[attr-defined]
    returns = np.asarray(facts["returns"], np.float64)
    if returns.ndim != 2 or returns.shape[1] != len(steps) or not returns.size:
        raise InvalidLog(
            f"{name}: expected returns of shape (seeds, {len(steps)}), got {list(returns.shape)}"
        )
    return Curve(name, str(facts["environment"]), steps, returns)


def intervals(curve: Curve) -> list[Interval]:
    """Return the interquartile mean and its interval at each evaluation."""
    return [bootstrap([curve.returns[:, at]]) for at in range(len(curve.steps))]


def drawing(curves: Sequence[Curve]) -> str:
    """Return a page with a drawing of each curve: mean as a line, interval as a band."""
    figures = "\n".join(_figure(curve) for curve in curves)
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        "<title>Learning curves</title>"
        '<meta name="viewport" content="width=device-width">'
        "<style>:root{color-scheme:light dark}"
        "body{font:15px system-ui;margin:1.5rem;display:flex;flex-wrap:wrap;gap:1.5rem}"
        "figure{margin:0;max-width:370px}svg{max-width:100%;height:auto}"
        "text{font:12px system-ui;fill:currentColor}</style></head><body>\n"
        f"{figures}\n</body></html>\n"
    )


def _figure(curve: Curve) -> str:
    found = intervals(curve)
    low, high = min(i.low for i in found), max(i.high for i in found)
    reach, most = (high - low) or 1.0, max(curve.steps)

    def place(step: int, value: float) -> str:
        return f"{50 + 300 * step / most:.1f},{170 - 150 * (value - low) / reach:.1f}"

    pairs = list(zip(curve.steps, found, strict=True))
    band = [place(s, i.high) for s, i in pairs] + [place(s, i.low) for s, i in reversed(pairs)]
    line = [place(s, i.value) for s, i in pairs]
    last = found[-1]
    words = f"{curve.name} in {curve.environment}, {len(curve.returns)} seeds: "
    words += f"{last.value:.1f} [{last.low:.1f}, {last.high:.1f}]"
    return (
        f"<figure><figcaption>{escape(words)}</figcaption>"
        f'<svg width="370" height="195" viewBox="0 0 370 195" role="img" '
        f'aria-label="{escape(words)}"><polygon points="{" ".join(band)}" fill="#2f7de1" '
        f'opacity="0.25"/><polyline points="{" ".join(line)}" fill="none" stroke="#2f7de1" '
        f'stroke-width="2"/><text x="4" y="24">{high:.0f}</text>'
        f'<text x="4" y="170">{low:.0f}</text>'
        f'<text x="350" y="188" text-anchor="end">{most:,} steps</text></svg></figure>'
    )
