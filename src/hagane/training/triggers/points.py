"""Triggers of given times."""

from __future__ import annotations

from typing import Any

from hagane.errors import InvalidArgument
from hagane.training.expected import need_number
from hagane.training.saved import optional
from hagane.training.triggers.progress import Progress, check_unit


class ManualScheduleTrigger:
    """Fires at given iterations or epochs.

    Args:
        points: One number or a list; fractions of epochs are allowed.
        unit: ``iteration`` or ``epoch``.

    Attributes:
        finished: Whether the last point has passed.

    Raises:
        InvalidArgument: The unit is another, or there is no point.
    """

    def __init__(self, points: Any, unit: str):
        check_unit("ManualScheduleTrigger", unit)
        self.points = list(points) if isinstance(points, list | tuple) else [points]
        if not self.points:
            raise InvalidArgument(
                "ManualScheduleTrigger: points: expected at least one, got none: it would never "
                "fire"
            )
        for point in self.points:
            need_number("ManualScheduleTrigger: points", point)
        self.unit = unit
        self.finished = False
        self._unknown = False
        self._progress = Progress(unit)

    def __call__(self, trainer: Any) -> bool:
        """Return whether a point was passed since the last call."""
        before, now = self._progress.step(trainer.updater)
        fire = any(before < point <= now for point in self.points)
        if (fire or self._unknown) and now >= max(self.points):
            self.finished = True
        self._unknown = False
        return fire

    def serialize(self, serializer: Any) -> None:
        """Read or write where training was at the last call."""
        self._progress.serialize(serializer)
        finished = optional(
            serializer, "finished", self.finished, None, "it is found out at the next iteration"
        )
        self._unknown = finished is None
        self.finished = bool(finished)


class OnceTrigger:
    """Fires once.

    Args:
        call_on_resume: Whether it fires once again after a snapshot was loaded.
    """

    def __init__(self, call_on_resume: bool = False):
        self._first = True
        self._resumed = call_on_resume

    @property
    def finished(self) -> bool:
        """Whether it has fired for the last time."""
        return not (self._first or self._resumed)

    def __call__(self, trainer: Any) -> bool:
        """Return whether this is the first call."""
        fire = not self.finished
        self._first = self._resumed = False
        return fire

    def serialize(self, serializer: Any) -> None:
        """Read or write whether it has fired."""
        self._first = optional(
            serializer, "_flag_first", self._first, False, "it is taken to have fired"
        )


class TimeTrigger:
    """Fires each time that so many seconds of training have passed.

    Args:
        period: Seconds.

    Raises:
        InvalidArgument: The period is not positive.
    """

    def __init__(self, period: float):
        need_number("TimeTrigger: period", period)
        if not period > 0:
            raise InvalidArgument(
                f"TimeTrigger: period: expected a positive number of seconds, got {period!r}"
            )
        self._period = period
        self._next_time = period

    def __call__(self, trainer: Any) -> bool:
        """Return whether the next time has come."""
        if self._next_time >= trainer.elapsed_time:
            return False
        self._next_time += self._period
        return True

    def serialize(self, serializer: Any) -> None:
        """Read or write the next time."""
        self._next_time = float(serializer("next_time", self._next_time))
