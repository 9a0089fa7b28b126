"""Batches made in the calling thread."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from hagane.training.iterators.base import BatchIterator, Collation
from hagane.training.iterators.batch import make_batch
from hagane.training.iterators.orders import OrderFunction
from hagane.training.iterators.randomness import Loader


class SerialIterator(BatchIterator):
    """Makes each batch when it is asked for.

    Args:
        dataset: Has ``__len__`` and ``__getitem__``.
        batch_size: Samples in a batch.
        repeat: Go on into the next epoch; else stop after one, with a short last batch.
        shuffle: Shuffle each epoch; None does so too unless ``order_sampler`` is given.
        order_sampler: Called with the current order and position, returns the next order.
        seed: Settles the orders, and the random state of each sample together with epoch and
            index. Without one, orders are drawn from NumPy's global generator as Chainer draws
            them, up to a million samples, and samples from the program's generators.
        collate: None gives lists of samples, ``"stack"`` one tree of stacked arrays; a function
            is called with the list.
        drop_last: Leave out the samples of an epoch that fill no batch.
        shard: (rank, number of ranks): give only this rank's share of each epoch.
    """

    _draws = True

    def __init__(
        self,
        dataset: Any,
        batch_size: int,
        repeat: bool = True,
        shuffle: bool | None = None,
        order_sampler: OrderFunction | Iterable[int] | None = None,
        *,
        seed: int | None = None,
        collate: Collation = None,
        drop_last: bool = False,
        shard: tuple[int, int] | None = None,
    ):
        super().__init__(
            dataset, batch_size, repeat, shuffle, order_sampler, seed, collate, drop_last, shard
        )
        # Without a seed, datasets draw from the generators of the program, in Chainer's order.
        self._loader = Loader(dataset, keep_global=True, use_global=seed is not None)

    def __next__(self) -> Any:
        state, draw = self._step(self._state)
        self._consume(state)
        if draw is None:
            raise StopIteration
        return make_batch(self._loader, self.seed, draw, self.collate)
