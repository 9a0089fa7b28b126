"""A trainer whose updater does nothing, for tests of extensions and triggers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hagane.training.trainer import Trainer


def get_trainer_with_mock_updater(
    stop_trigger: Any = (10, "iteration"), iter_per_epoch: int = 10, extensions: Any = None
) -> Trainer:
    """Return a trainer whose updater is a ``unittest.mock.Mock`` that counts.

    ``updater.update_core`` is called in each iteration, and may be given an effect.

    Args:
        stop_trigger: When the run ends.
        iter_per_epoch: How many iterations an epoch has.
        extensions: Those of the trainer.
    """
    from unittest.mock import Mock

    updater = Mock()
    updater.get_all_optimizers.return_value = {}
    updater.iteration = updater.epoch = updater.epoch_detail = 0
    updater.is_new_epoch = True
    updater.previous_epoch_detail = None

    def update() -> None:
        updater.update_core()
        before = updater.iteration
        updater.iteration = before + 1
        updater.epoch = updater.iteration // iter_per_epoch
        updater.epoch_detail = updater.iteration / iter_per_epoch
        updater.is_new_epoch = before // iter_per_epoch != updater.epoch
        updater.previous_epoch_detail = before / iter_per_epoch

    updater.update = update
    given: Sequence[Any] = () if extensions is None else extensions
    return Trainer(updater, stop_trigger, extensions=given)
