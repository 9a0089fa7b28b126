"""Feeding and running the training of models; depends on NumPy alone."""

from __future__ import annotations

from hagane.training import datasets, iterators

__all__ = ["datasets", "iterators"]
