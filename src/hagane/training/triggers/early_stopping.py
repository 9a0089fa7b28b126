"""The trigger that stops training when a value no longer improves."""

from __future__ import annotations

import operator
import warnings
from typing import Any

from hagane.errors import InvalidArgument
from hagane.nn.reporter import DictSummary
from hagane.training.expected import need_number, need_text
from hagane.training.saved import optional
from hagane.training.triggers.interval import get_trigger


class EarlyStoppingTrigger:
    """Fires when the mean of a value has not improved for several checks.

    Args:
        check_trigger: When means are compared.
        monitor: The name of the value.
        patience: Checks without improvement after which it fires, by default 3.
        mode: ``max``, ``min`` or ``auto``: larger is better where the name has ``accuracy`` in it.
        verbose: Print when it fires.
        max_trigger: When it fires at the latest.
        patients: Another name of ``patience``.

    Raises:
        TypeError: Both names are given.
        InvalidArgument: The mode is another.
    """

    def __init__(
        self,
        check_trigger: Any = (1, "epoch"),
        monitor: str = "main/loss",
        patience: int | None = None,
        mode: str = "auto",
        verbose: bool = False,
        max_trigger: Any = (100, "epoch"),
        *,
        patients: int | None = None,
    ):
        if patience is not None and patients is not None:
            raise TypeError("'patients' is another name of 'patience': give one of them")
        if mode not in ("auto", "max", "min"):
            raise InvalidArgument(
                f"EarlyStoppingTrigger: mode: expected 'auto', 'max' or 'min', got {mode!r}"
            )
        need_text("EarlyStoppingTrigger: monitor", monitor)
        given = patients if patience is None else patience
        need_number("EarlyStoppingTrigger: patience", given, optional=True)
        self.patience = 3 if given is None else given
        self.monitor = monitor
        self.verbose = verbose
        self.count = 0
        larger = mode == "max" or (mode == "auto" and "accuracy" in monitor)
        self._compare = operator.gt if larger else operator.lt
        self.best = float("-inf") if larger else float("inf")
        self._max_trigger: Any = get_trigger(max_trigger)
        self._interval: Any = get_trigger(check_trigger)
        self._summary = DictSummary()

    def __call__(self, trainer: Any) -> bool:
        """Return whether training is to stop."""
        observation = trainer.observation
        if self.monitor in observation:
            self._summary.add({self.monitor: observation[self.monitor]})
        if self._max_trigger(trainer):
            return True
        if not self._interval(trainer):
            return False
        means = self._summary.compute_mean()
        self._summary = DictSummary()
        if self.monitor not in means:
            warnings.warn(
                f"EarlyStoppingTrigger: {self.monitor} is not in observation, so that nothing "
                f"stops training early; observed are {sorted(observation) or 'none'}",
                stacklevel=2,
            )
            return False
        if self._compare(means[self.monitor], self.best):
            self.best = float(means[self.monitor])
            self.count = 0
        else:
            self.count += 1
        if self.count < self.patience:
            return False
        if self.verbose:
            print(f"Epoch {trainer.updater.epoch}: early stopping")
        return True

    def get_training_length(self) -> Any:
        """Return the length at which training stops at the latest."""
        return self._max_trigger.get_training_length()

    def serialize(self, serializer: Any) -> None:
        """Read or write count, best value, sums and triggers; Chainer's snapshots lack them."""
        warning = "early stopping counts anew"
        self.count = optional(serializer, "count", self.count, 0, warning)
        self.best = float(optional(serializer, "best", self.best, self.best))
        for name, trigger in (("check", self._interval), ("max", self._max_trigger)):
            if hasattr(trigger, "serialize"):
                trigger.serialize(serializer[f"{name}_trigger"])
        self._summary.serialize(serializer["summary"])
