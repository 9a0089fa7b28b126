"""Counts of sampled values, as lines of text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from hagane.tools.prob.engines.run import show_value
from hagane.tools.prob.language.syntax import Value

_BAR, _LEAST_BAR = 50, 8
_MOST_LINES = 40


def draw_histogram(counts: Mapping[Value, int], width: int | None = None) -> list[str]:
    """Return a line for each value, or for each range of integers where there are many.

    Args:
        counts: How often each value came.
        width: Columns of a line, for which bars are shortened; None for no bound.
    """
    bins = _binned(counts)
    total = sum(counts.values())
    widest = max((len(name) for name, _ in bins), default=0)
    most = max((count for _, count in bins), default=1)
    beside = widest + len(f" |   100.0000% ({most})")
    bar = _BAR if width is None else max(_LEAST_BAR, min(_BAR, width - beside))
    return [
        f"{name:>{widest}} | {'#' * round(bar * count / most):<{bar}} {count / total:8.4%}"
        f" ({count})"
        for name, count in bins
    ]


def _binned(counts: Mapping[Value, int]) -> list[tuple[str, int]]:
    reals = [value for value in counts if isinstance(value, float)]
    if reals:
        low, high = min(reals), max(reals)
        width = (high - low) / _MOST_LINES or 1.0
        found = Counter[int]()
        for value in reals:
            found[min(int((value - low) / width), _MOST_LINES - 1)] += counts[value]
        last = max(found)
        return [
            (f"{low + place * width:.4g} to {low + (place + 1) * width:.4g}", found[place])
            for place in range(last + 1)
        ]
    integers = [v for v in counts if isinstance(v, int) and not isinstance(v, bool)]
    if len(integers) < len(counts) or len(counts) <= _MOST_LINES:
        ordered = sorted(counts, key=lambda v: (v if isinstance(v, int) else 0, repr(v)))
        shown = [(show_value(value), counts[value]) for value in ordered[:_MOST_LINES]]
        rest = sum(counts[value] for value in ordered[_MOST_LINES:])
        return [*shown, ("others", rest)] if rest else shown
    low, high = min(integers), max(integers)
    width = -(-(high - low + 1) // _MOST_LINES)
    bins: dict[int, int] = {}
    for value in integers:
        bins[(value - low) // width] = bins.get((value - low) // width, 0) + counts[value]
    return [
        (f"{low + index * width}..{low + (index + 1) * width - 1}", bins[index])
        for index in sorted(bins)
    ]
