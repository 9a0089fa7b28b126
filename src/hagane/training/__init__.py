"""Feeding and running the training of models; depends on NumPy alone."""

from __future__ import annotations

from hagane.training import datasets, iterators
from hagane.training.measurement import Measurement, measure

__all__ = ["Measurement", "datasets", "iterators", "measure"]
