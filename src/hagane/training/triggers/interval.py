"""The trigger of fixed intervals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from hagane.errors import InvalidArgument
from hagane.training.triggers.progress import Progress, check_unit


class IntervalTrigger:
    """Fires once every so many iterations or epochs.

    Args:
        period: Length of the interval; fractions of epochs are allowed.
        unit: ``iteration`` or ``epoch``.

    Raises:
        InvalidArgument: The unit is another, or the period is not positive.
    """

    def __init__(self, period: float, unit: str):
        check_unit("IntervalTrigger", unit)
        if not isinstance(period, int | float | np.number) or not period > 0:
            raise InvalidArgument(
                f"IntervalTrigger: period: expected a positive number, got {period!r}"
            )
        self.period = period
        self.unit = unit
        self.count: float = 0
        self._progress = Progress(unit)

    def __call__(self, trainer: Any) -> bool:
        """Return whether a multiple of the period was reached since the last call."""
        before, now = self._progress.step(trainer.updater)
        if self.unit == "epoch":
            self.count = now // self.period
        return bool(before // self.period != now // self.period)

    def serialize(self, serializer: Any) -> None:
        """Read or write where training was at the last call."""
        self._progress.serialize(serializer)

    def get_training_length(self) -> tuple[float, str]:
        """Return period and unit: the length of training, of a trigger that stops it."""
        return self.period, self.unit

    def is_over(self, updater: Any) -> bool:
        """Return whether training is as long as the period already, as after a longer run."""
        done = updater.epoch_detail if self.unit == "epoch" else updater.iteration
        return bool(done >= self.period)

    def __str__(self) -> str:
        return f"{type(self).__name__}({self.period}, '{self.unit}')"


def get_trigger(trigger: Any) -> Callable[[Any], bool]:
    """Return a trigger.

    Args:
        trigger: A callable, returned as it is; None for one that never fires; a pair of period and
            unit for an ``IntervalTrigger``.

    Raises:
        InvalidArgument: It is none of these.
    """
    if isinstance(trigger, type):  # whose objects would fire each time that one is made
        raise InvalidArgument(
            f"trigger: expected a trigger, got the class {trigger.__name__}: make one, as in "
            f"{trigger.__name__}(...)"
        )
    if callable(trigger):
        return trigger  # type: ignore[no-any-return]
    if trigger is None:
        return never
    if not isinstance(trigger, tuple | list) or len(trigger) != 2:
        raise InvalidArgument(
            f"trigger: expected a callable, None or a pair such as (1, 'epoch'), got {trigger!r}"
        )
    return IntervalTrigger(*trigger)


def never(trainer: Any) -> bool:
    """Return False."""
    return False
