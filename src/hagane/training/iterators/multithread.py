"""Batches made by threads while the caller computes."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from hagane.training.iterators.base import BatchIterator, Collation
from hagane.training.iterators.batch import collated
from hagane.training.iterators.failures import local_failure
from hagane.training.iterators.orders import OrderFunction
from hagane.training.iterators.randomness import Loader
from hagane.training.iterators.state import Draw, IteratorState


class MultithreadIterator(BatchIterator):
    """Makes the samples of the next batch in threads; good for datasets that wait for I/O.

    Threads share the global random generators, so these are left as they are: a dataset that
    draws takes its numbers from ``sample_random``.

    Args:
        dataset: Has ``__len__`` and ``__getitem__``, and bears several threads at once.
        batch_size: Samples in a batch.
        repeat: Go on into the next epoch; else stop after one, with a short last batch.
        shuffle: Shuffle each epoch; None does so too unless ``order_sampler`` is given.
        n_threads: Number of threads.
        order_sampler: Called with the current order and position, returns the next order.
        seed: Settles the orders, and the numbers of ``sample_random``.
        collate: None gives lists of samples, ``"stack"`` one tree of stacked arrays; a function
            is called with the list.
        drop_last: Leave out the samples of an epoch that fill no batch.
        shard: (rank, number of ranks): give only this rank's share of each epoch.
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: int,
        repeat: bool = True,
        shuffle: bool | None = None,
        n_threads: int = 1,
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
        self.n_threads = n_threads
        self._threads: ThreadPoolExecutor | None = None
        self._pending: tuple[IteratorState, Draw | None, list[Future[Any]]] | None = None

    def __next__(self) -> Any:
        state, draw, futures = self._pending or self._prefetch(self._state)
        self._pending = None
        samples = []
        failure: Exception | None = None
        for place, future in enumerate(futures):
            try:
                samples.append(future.result())
            except Exception as error:
                assert draw is not None
                failure = local_failure(error, int(draw.indices[place]))
                break
        self._consume(state)
        self._pending = self._prefetch(state)
        if failure is not None:
            raise failure
        if draw is None:
            raise StopIteration
        return collated(samples, self.collate)

    def _prefetch(
        self, state: IteratorState
    ) -> tuple[IteratorState, Draw | None, list[Future[Any]]]:
        after, draw = self._step(state)
        if draw is None:
            return after, None, []
        if self._threads is None:
            self._threads = ThreadPoolExecutor(self.n_threads, thread_name_prefix="hagane-loader")
        pairs = zip(draw.indices.tolist(), draw.sweeps.tolist(), strict=True)
        futures = [
            self._threads.submit(_sample, self.dataset, self.seed, index, sweep)
            for index, sweep in pairs
        ]
        return after, draw, futures

    def _place(self, state: IteratorState) -> None:
        self._state = state
        if self._pending is not None:
            for future in self._pending[2]:
                future.cancel()
        self._pending = None

    def finalize(self) -> None:
        """End the threads; another batch would start new ones."""
        self._pending = None
        threads, self._threads = getattr(self, "_threads", None), None
        if threads is not None:
            threads.shutdown(wait=False, cancel_futures=True)

    def __del__(self) -> None:
        self.finalize()

    def __copy__(self) -> MultithreadIterator:
        other = type(self).__new__(type(self))
        other.__setstate__(self.__getstate__())
        return other

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_threads": None, "_pending": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)


def _sample(dataset: Any, seed: int, index: int, sweep: int) -> Any:
    made: list[Any] = []
    loader = Loader(dataset, keep_global=False, use_global=False)
    loader.load(seed, (index,), (sweep,), lambda: made.append)
    return made[0]
