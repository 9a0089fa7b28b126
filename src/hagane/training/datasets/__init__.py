"""Datasets: objects with ``__len__`` and ``__getitem__``, and ways to put them together."""

from __future__ import annotations

from hagane.training.datasets.columns import DictDataset, TupleDataset

__all__ = ["DictDataset", "TupleDataset"]
