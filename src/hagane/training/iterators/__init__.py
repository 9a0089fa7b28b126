"""Batches from datasets: in this thread, in threads, or in worker processes.

Any object with ``__len__`` and ``__getitem__`` is a dataset, and any framework takes the batches:
they are lists and NumPy arrays.
"""

from __future__ import annotations

from hagane.training.iterators.dali import DaliIterator
from hagane.training.iterators.multiprocess import MultiprocessIterator
from hagane.training.iterators.multithread import MultithreadIterator
from hagane.training.iterators.orders import OrderSampler, ShuffleOrderSampler
from hagane.training.iterators.protocol import Iterator
from hagane.training.iterators.randomness import sample_random
from hagane.training.iterators.serial import SerialIterator

__all__ = [
    "DaliIterator",
    "Iterator",
    "MultiprocessIterator",
    "MultithreadIterator",
    "OrderSampler",
    "SerialIterator",
    "ShuffleOrderSampler",
    "sample_random",
]
