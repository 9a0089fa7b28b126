"""Chainer's tables: a base for those of users, and tables made of lists, arrays and functions."""

from hagane.training.datasets.examples import TabularDataset
from hagane.training.datasets.given import DelegateDataset, from_data

__all__ = ["DelegateDataset", "TabularDataset", "from_data"]
