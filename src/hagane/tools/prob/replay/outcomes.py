"""What the runs of a function come to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from hagane.tools.prob.language.ratios import Ratio


@dataclass(frozen=True, slots=True)
class Outcomes:
    """The results of a function.

    Attributes:
        weights: The probability of each result; of results that count, of their mean.
        holds_means: Whether there are such.
        unending: The probability of the runs that never end.
        open: The probability of the runs that were not followed to their end.
        rejected: Whether some run is rejected by an observation.
        states: How many states the chain has.
        pivots: Those of its equations.
        shares: The probabilities of draws that depend on parameters.
    """

    weights: Mapping[Any, Fraction]
    holds_means: bool
    unending: Fraction
    open: Fraction
    rejected: bool
    states: int
    pivots: tuple[Any, ...] = ()
    shares: tuple[Ratio, ...] = ()
