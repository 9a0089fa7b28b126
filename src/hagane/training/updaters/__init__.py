"""Updaters: one iteration of training."""

from hagane.training.updaters.parallel import MultiprocessParallelUpdater, ParallelUpdater
from hagane.training.updaters.standard import StandardUpdater
from hagane.training.updaters.updater import Updater

__all__ = ["MultiprocessParallelUpdater", "ParallelUpdater", "StandardUpdater", "Updater"]
