"""Triggers of the best value so far."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hagane.errors import InvalidArgument
from hagane.nn.reporter import DictSummary
from hagane.training.expected import need_callable, need_text
from hagane.training.saved import number
from hagane.training.triggers.interval import get_trigger


class BestValueTrigger:
    """Fires when the mean of an observed value over an interval is the best so far.

    Args:
        key: The name of the value.
        compare: Called with the best so far and the new mean; returns whether the latter is better.
        trigger: When means are compared; a pair of period and unit, or a trigger.
    """

    def __init__(
        self,
        key: str,
        compare: Callable[[float, float], bool],
        trigger: Any = (1, "epoch"),
    ):
        need_text(f"{type(self).__name__}: key", key)
        need_callable(f"{type(self).__name__}: compare", compare)
        self._key = key
        self._compare = compare
        self._best: float | None = None
        self._interval: Any = get_trigger(trigger)
        self._summary = DictSummary()

    def __call__(self, trainer: Any) -> bool:
        """Return whether an interval has ended whose mean is the best.

        Raises:
            InvalidArgument: The value was not observed in the interval.
        """
        if self._key in trainer.observation:
            self._summary.add({self._key: trainer.observation[self._key]})
        if not self._interval(trainer):
            return False
        means = self._summary.compute_mean()
        if self._key not in means:
            raise InvalidArgument(
                f"{type(self).__name__}: '{self._key}' was not observed in the interval; the last "
                f"iteration observed {sorted(trainer.observation)}"
            )
        value = float(means[self._key])
        self._summary = DictSummary()
        if self._best is not None and not self._compare(self._best, value):
            return False
        self._best = value
        return True

    def serialize(self, serializer: Any) -> None:
        """Read or write interval, sums and the best value."""
        if hasattr(self._interval, "serialize"):
            self._interval.serialize(serializer["interval_trigger"])
        self._summary.serialize(serializer["summary"])
        self._best = number(serializer("best_value", self._best))


class MaxValueTrigger(BestValueTrigger):
    """Fires when the mean of a value is the largest so far.

    Args:
        key: The name of the value.
        trigger: When means are compared.
    """

    def __init__(self, key: str, trigger: Any = (1, "epoch")):
        super().__init__(key, lambda best, new: new > best, trigger)


class MinValueTrigger(BestValueTrigger):
    """Fires when the mean of a value is the smallest so far.

    Args:
        key: The name of the value.
        trigger: When means are compared.
    """

    def __init__(self, key: str, trigger: Any = (1, "epoch")):
        super().__init__(key, lambda best, new: new < best, trigger)
