"""``hagane.iterators``: Chainer's iterators, under Chainer's name (see ``hagane.training``)."""

from __future__ import annotations

from hagane.training.iterators import (
    DaliIterator,
    Iterator,
    MultiprocessIterator,
    MultithreadIterator,
    OrderSampler,
    SerialIterator,
    ShuffleOrderSampler,
    sample_random,
)

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
