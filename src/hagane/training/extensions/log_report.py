"""The log of observations."""

from __future__ import annotations

import json
import logging
import os
import warnings
from collections.abc import Callable, Iterable
from math import isfinite
from typing import Any

from hagane.machine.whole_files import write_whole
from hagane.nn.reporter import DictSummary
from hagane.nn.serializers.serializer import Serializer
from hagane.training.expected import need_callable, texts
from hagane.training.extension import Extension
from hagane.training.triggers import get_trigger

_logger = logging.getLogger("hagane.training")


class LogReport(Extension):
    """Writes the means of observed values over intervals to a file of JSON.

    Args:
        keys: The names of the values, all if None.
        trigger: When an interval ends.
        postprocess: Called with each new entry, which it may change.
        filename: The file in the trainer's folder, a format string of the entry; None for none.
        log_name: Another name of ``filename``.
    """

    observes = True

    def __init__(
        self,
        keys: Iterable[str] | None = None,
        trigger: Any = (1, "epoch"),
        postprocess: Callable[[dict[str, Any]], None] | None = None,
        filename: str | None = None,
        *,
        log_name: str | None = "log",
    ):
        need_callable("LogReport: postprocess", postprocess, optional=True)
        self._keys = None if keys is None else texts("LogReport: keys", keys)
        self._trigger: Any = get_trigger(trigger)
        self._postprocess = postprocess
        self._filename = log_name if filename is None else filename
        self._log: list[dict[str, Any]] = []
        self._summary = DictSummary()
        self._told = False

    def __call__(self, trainer: Any) -> None:
        """Add the observed values, and write an entry at the end of an interval."""
        observation = trainer.observation
        if self._keys is not None:
            observation = {key: observation[key] for key in self._keys if key in observation}
        self._summary.add(observation)
        if not (trainer.is_before_training or self._trigger(trainer)):
            return
        entry = {key: float(mean) for key, mean in self._summary.compute_mean().items()}
        entry["epoch"] = trainer.updater.epoch
        entry["iteration"] = trainer.updater.iteration
        entry["elapsed_time"] = trainer.elapsed_time
        if self._postprocess is not None:
            self._postprocess(entry)
        self._log.append(entry)
        self._tell_lost(entry)
        if self._filename is not None:
            _write(trainer.out, self._filename.format(**entry), self._log)
        self._summary = DictSummary()

    def _tell_lost(self, entry: dict[str, Any]) -> None:
        """Warn, once, of a mean loss that is not finite."""
        lost = [key for key, mean in entry.items() if key.endswith("loss") and not isfinite(mean)]
        if lost and not self._told:
            self._told = True
            _logger.warning(
                f"{lost[0]} is {entry[lost[0]]} up to iteration {entry['iteration']}: "
                "hagane.config.debug = True names the function that made the first such number, "
                "extensions.FailOnNonNumber() ends a run whose parameters hold one"
            )

    @property
    def log(self) -> list[dict[str, Any]]:
        """The entries so far."""
        return self._log

    def serialize(self, serializer: Any) -> None:
        """Read or write the entries and the sums of the interval."""
        if hasattr(self._trigger, "serialize"):
            self._trigger.serialize(serializer["_trigger"])
        try:
            self._summary.serialize(serializer["_summary"])
        except KeyError:
            warnings.warn("The statistics are not saved.", stacklevel=2)
        if isinstance(serializer, Serializer):
            serializer("_log", json.dumps(self._log))
        else:
            self._log = json.loads(serializer("_log", "") or "[]")


def _write(folder: str, name: str, log: Any) -> None:
    """Write a log; the one that was there stays until the new one is whole."""
    write_whole(os.path.join(folder, name), json.dumps(log, indent=4))
