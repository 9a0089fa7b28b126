"""Training as it goes, on the terminal: progress, throughput, time left, waiting for data."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from hagane.nn.reporter import DictSummary
from hagane.training.extension import PRIORITY_READER, Extension

if TYPE_CHECKING:
    from rich.console import Console
    from rich.live import Live

# Seconds between two drawings.
_PAUSE = 0.25


class LiveDisplay(Extension):
    """Shows how far training is, and the means of the observations of the last epoch.

    With them come iterations a second, the time left and the share of time spent waiting for data.
    On a terminal the display is drawn over; elsewhere one line an epoch is written.

    Args:
        console: Where to draw; the standard error if None.
    """

    name = "LiveDisplay"
    trigger = (1, "iteration")
    priority = PRIORITY_READER

    def __init__(self, console: Console | None = None):
        from rich.console import Console

        self._console = Console(stderr=True) if console is None else console
        self._live: Live | None = None
        self._summary = DictSummary()
        self._means: dict[str, float] = {}
        self._drawn = 0.0
        self._since: tuple[float, float, float] | None = None

    def initialize(self, trainer: Any) -> None:
        """Begin to draw."""
        from rich.live import Live

        updater = trainer.updater
        self._since = time.monotonic(), updater.iteration, _waited(updater)
        if self._console.is_terminal:
            self._live = Live(console=self._console, auto_refresh=False)
            self._live.start()

    def __call__(self, trainer: Any) -> None:
        """Take note of an iteration, and draw now and then."""
        from rich.text import Text

        updater = trainer.updater
        numbers = {}
        for key, value in trainer.observation.items():
            array = getattr(value, "array", value)
            if getattr(array, "size", 1) == 1:
                numbers[key] = array
        self._summary.add(numbers)
        if updater.is_new_epoch:
            means = self._summary.compute_mean()
            self._means = {key: float(mean) for key, mean in means.items()}
            self._summary = DictSummary()
            if self._live is None:
                self._console.print(self.line(trainer), highlight=False, soft_wrap=True)
        now = time.monotonic()
        if self._live is not None and (updater.is_new_epoch or now - self._drawn > _PAUSE):
            self._drawn = now
            self._live.update(Text(self.line(trainer)), refresh=True)

    def line(self, trainer: Any) -> str:
        """Return the text of the display."""
        assert self._since is not None
        updater, (then, first, waited) = trainer.updater, self._since
        spent = max(time.monotonic() - then, 1e-9)
        speed = (updater.iteration - first) / spent
        parts = [f"epoch {updater.epoch}", f"iteration {updater.iteration}"]
        length = getattr(trainer.stop_trigger, "get_training_length", lambda: None)()
        if length is not None and updater.iteration:
            total, unit = length
            done = updater.iteration if unit == "iteration" else updater.epoch_detail
            parts[0] = f"epoch {updater.epoch}" + (f"/{total:g}" if unit == "epoch" else "")
            parts.append(f"{min(1.0, done / total):.0%}")
            left = (total - done) * (updater.iteration / max(done, 1e-9)) / max(speed, 1e-9)
            parts.append(f"{_duration(left)} left")
        parts.append(f"{speed:.3g} iterations/s")
        parts.append(f"{(_waited(updater) - waited) / spent:.0%} waiting for data")
        parts += [f"{key} {mean:.4g}" for key, mean in sorted(self._means.items())]
        return "  ".join(parts)

    def finalize(self) -> None:
        """Leave the last drawing on the terminal."""
        if self._live is not None:
            self._live.stop()
            self._live = None


def _waited(updater: Any) -> float:
    return float(getattr(updater, "seconds_waited", 0.0))


def _duration(seconds: float) -> str:
    whole = round(max(0.0, seconds))
    hours, minutes = whole // 3600, whole // 60 % 60
    return f"{hours}:{minutes:02}:{whole % 60:02}" if hours else f"{minutes}:{whole % 60:02}"
