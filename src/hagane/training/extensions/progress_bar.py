"""How far training is, on the terminal."""

from __future__ import annotations

from typing import Any

from hagane.errors import InvalidArgument
from hagane.training.extension import Extension
from hagane.training.extensions.terminal import Bar


class ProgressBar(Extension):
    """Shows how far training is, its speed and the time left.

    Args:
        training_length: Length and unit of training, by default those of the stop trigger.
        update_interval: Iterations between two drawings.
        bar_length: Characters of a bar.
        out: A stream, the standard output if None.
    """

    def __init__(
        self,
        training_length: tuple[float, str] | None = None,
        update_interval: int = 100,
        bar_length: int = 50,
        out: Any = None,
    ):
        self._training_length = training_length
        self._update_interval = update_interval
        self._bar = Bar(bar_length, out)

    def __call__(self, trainer: Any) -> None:
        """Draw, every so many iterations.

        Raises:
            InvalidArgument: No length is given, and the stop trigger has none.
        """
        updater = trainer.updater
        if updater.iteration % self._update_interval:
            return
        if self._training_length is None:
            if not hasattr(trainer.stop_trigger, "get_training_length"):
                raise InvalidArgument(
                    "ProgressBar: the stop trigger has no length: pass "
                    "training_length=(20, 'epoch') or such"
                )
            self._training_length = trainer.stop_trigger.get_training_length()
        length, unit = self._training_length
        detail = updater.epoch_detail
        done = updater.iteration if unit == "iteration" else detail
        iterations, epochs = self._bar.speed(updater.iteration, detail)
        speed = iterations if unit == "iteration" else epochs
        lines = [
            self._bar.draw("     total", min(done / length, 1.0)),
            self._bar.draw("this epoch", detail - int(detail)),
            f"{updater.iteration:10} iter, {updater.epoch} epoch / {length} {unit}s\n",
            self._bar.remaining(length - done, speed, iterations),
        ]
        self._bar.show(lines)

    def finalize(self) -> None:
        """Erase the lines."""
        self._bar.close()
