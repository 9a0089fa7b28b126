"""Observed values as event files, which TensorBoard shows."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

import numpy as np

from hagane.errors import MissingExtra
from hagane.nn.autograd.variable import Variable
from hagane.training.expected import texts
from hagane.training.extension import Extension


class TensorBoard(Extension):
    """Writes observed numbers by iteration into a folder that ``tensorboard --logdir`` shows.

    Needs the extra ``tensorboard``. A run that was resumed hides what the run before it wrote of
    later iterations. Values that are not one number are left out.

    Args:
        keys: The names of the values, all if None.
        trigger: When to write; the values are those of that iteration, not means of an interval.
        folder: The folder of the event files within the trainer's.

    Raises:
        MissingExtra: The library that writes event files is not installed.
    """

    name = "TensorBoard"
    priority = -50

    def __init__(
        self,
        keys: Iterable[str] | None = None,
        trigger: Any = (1, "iteration"),
        folder: str = "events",
    ):
        _writer_class()
        self.trigger = trigger
        self._keys = None if keys is None else frozenset(texts("TensorBoard: keys", keys))
        self._folder = folder
        self._writer: Any = None

    def initialize(self, trainer: Any) -> None:
        """Begin an event file."""
        iteration = trainer.updater.iteration
        folder = os.path.join(trainer.out, self._folder)
        self._writer = _writer_class()(
            folder,
            purge_step=iteration + 1 if iteration else None,
            filename_suffix=f".{iteration}",  # files of one second would have one name
        )

    def __call__(self, trainer: Any) -> None:
        """Write the values of this iteration."""
        for key, value in trainer.observation.items():
            array = np.asarray(value.array if isinstance(value, Variable) else value)
            if array.size == 1 and array.dtype.kind in "biuf" and self._wants(key):
                number = float(array.reshape(()))
                self._writer.add_scalar(key, number, trainer.updater.iteration)
        self._writer.flush()

    def _wants(self, key: str) -> bool:
        return self._keys is None or key in self._keys

    def finalize(self) -> None:
        """Close the file."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None


def _writer_class() -> Any:
    try:
        from tensorboardX import SummaryWriter
    except ImportError:
        raise MissingExtra("event files of TensorBoard", "tensorboard") from None
    return SummaryWriter
