"""Feeding and running the training of models.

Datasets, iterators and loaders depend on NumPy alone; the trainer's names, which are Chainer's,
load ``hagane.nn`` when they are first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from hagane.training import datasets, iterators
from hagane.training.iterators.streams import WorkerInfo, get_worker_info
from hagane.training.loader import DataLoader, DistributedSampler
from hagane.training.measurement import Measurement, measure

if TYPE_CHECKING:
    from hagane.training import extensions, triggers, updaters
    from hagane.training.extension import (
        PRIORITY_EDITOR,
        PRIORITY_READER,
        PRIORITY_WRITER,
        Extension,
        make_extension,
    )
    from hagane.training.trainer import Trainer
    from hagane.training.triggers import IntervalTrigger, get_trigger
    from hagane.training.updaters import ParallelUpdater, StandardUpdater, Updater

# The last three are the names of files of Chainer's.
_MODULES = {
    "extensions": "extensions",
    "triggers": "triggers",
    "updaters": "updaters",
    "trigger": "triggers",
    "updater": "updaters",
    "util": "triggers",
}
_LATE = {
    "Extension": "extension",
    "IntervalTrigger": "triggers",
    "PRIORITY_EDITOR": "extension",
    "PRIORITY_READER": "extension",
    "PRIORITY_WRITER": "extension",
    "ParallelUpdater": "updaters",
    "StandardUpdater": "updaters",
    "Trainer": "trainer",
    "Updater": "updaters",
    "get_trigger": "triggers",
    "make_extension": "extension",
}

__all__ = [
    "PRIORITY_EDITOR",
    "PRIORITY_READER",
    "PRIORITY_WRITER",
    "DataLoader",
    "DistributedSampler",
    "Extension",
    "IntervalTrigger",
    "Measurement",
    "ParallelUpdater",
    "StandardUpdater",
    "Trainer",
    "Updater",
    "WorkerInfo",
    "datasets",
    "extensions",
    "get_trigger",
    "get_worker_info",
    "iterators",
    "make_extension",
    "measure",
    "triggers",
    "updaters",
]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"hagane.training.{_MODULES[name]}")
    if name in _LATE:
        value = getattr(importlib.import_module(f"hagane.training.{_LATE[name]}"), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'hagane.training' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES, *_LATE})
