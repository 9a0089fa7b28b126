"""How far training was when a trigger was last asked."""

from __future__ import annotations

from typing import Any

from hagane.errors import InvalidArgument
from hagane.training.saved import optional

UNITS = ("epoch", "iteration")


def check_unit(kind: str, unit: Any) -> None:
    """Refuse a unit of time that there is not."""
    if unit not in UNITS:
        raise InvalidArgument(f"{kind}: unit: expected 'epoch' or 'iteration', got {unit!r}")


class Progress:
    """Iterations and epochs at the last two times that a trigger was asked.

    Args:
        unit: ``epoch`` or ``iteration``.
    """

    def __init__(self, unit: str):
        self.unit = unit
        self.iteration = 0
        self.epoch_detail = 0.0

    def step(self, updater: Any) -> tuple[float, float]:
        """Return where training was when last asked, and where it is, in the unit."""
        if self.unit == "epoch":
            before, now = self.epoch_detail, updater.epoch_detail
            if before < 0:
                before = updater.previous_epoch_detail
        else:
            before, now = self.iteration, updater.iteration
            if before < 0:
                before = now - 1
        self.iteration = updater.iteration
        if hasattr(updater, "epoch_detail"):
            self.epoch_detail = updater.epoch_detail
        return before, now

    def serialize(self, serializer: Any) -> None:
        """Read or write; a value absent from a snapshot comes from the updater at the next step."""
        warning = "it is taken from the updater, which is right for triggers asked each iteration"
        self.iteration = optional(serializer, "previous_iteration", self.iteration, -1, warning)
        self.epoch_detail = optional(
            serializer, "previous_epoch_detail", self.epoch_detail, -1.0, warning
        )
