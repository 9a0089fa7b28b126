"""Feeding and running the training of models; depends on NumPy alone."""

from __future__ import annotations

from hagane.training import datasets, iterators
from hagane.training.iterators.streams import WorkerInfo, get_worker_info
from hagane.training.loader import DataLoader, DistributedSampler
from hagane.training.measurement import Measurement, measure

__all__ = [
    "DataLoader",
    "DistributedSampler",
    "Measurement",
    "WorkerInfo",
    "datasets",
    "get_worker_info",
    "iterators",
    "measure",
]
