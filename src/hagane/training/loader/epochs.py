"""One way through a ``DataLoader``: in this process, or with workers."""

from __future__ import annotations

import collections
import itertools
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from hagane.training.errors import LoadingTimeout
from hagane.training.iterators.failures import local_failure
from hagane.training.iterators.processes.crew import Setting
from hagane.training.iterators.processes.layout import Layout, assemble
from hagane.training.iterators.processes.lending import LEASES, MOST_SLOTS, Lender
from hagane.training.iterators.processes.pool import Pool, Task
from hagane.training.iterators.processes.protocol import ENDED
from hagane.training.iterators.processes.worker import Work
from hagane.training.iterators.randomness import Loader
from hagane.training.iterators.state import Draw
from hagane.training.loader.collation import collate_layout, collate_samples, convert
from hagane.training.loader.sampling import base_seed

if TYPE_CHECKING:
    from hagane.training.loader.data_loader import DataLoader


class FirstOf:
    """Calls a function on the only sample of a list; ``None`` returns that sample."""

    def __init__(self, function: Callable[[Any], Any] | None):
        self._function = function

    def __call__(self, samples: list[Any]) -> Any:
        """Return the function's result for the first sample."""
        return samples[0] if self._function is None else self._function(samples[0])


class Epoch:
    """An iterator over the batches of one epoch.

    Raises from ``__next__``:
        SampleError: The dataset, the sampler's keys or ``collate_fn`` raised; also of the class
            that was raised. The next call gives the next batch.
        CollationError: Samples that default collation cannot put together.
        LoadingTimeout, WorkerDied, SharedMemoryFull: See ``hagane.training.errors``.
    """

    def __init__(self, loader: DataLoader):
        self._loader = loader
        self._given = 0
        self._draws: Iterator[Any] = iter(())

    def __iter__(self) -> Epoch:
        return self

    def __len__(self) -> int:
        return len(self._loader)

    def __next__(self) -> Any:
        batch = self._next()
        self._given += 1
        self._loader.count(self._given)
        return self._loader.pinned(batch)

    def _next(self) -> Any:
        raise NotImplementedError

    def _keys(self) -> list[Any] | None:
        """Return the next batch's request to the dataset; None at the end."""
        try:
            drawn = next(self._draws)
        except StopIteration:
            return None
        return [drawn] if self._loader.batch_sampler is None else list(drawn)


class EpochHere(Epoch):
    """An epoch whose batches are made in this process, when they are asked for."""

    def __init__(self, loader: DataLoader):
        super().__init__(loader)
        if not loader.iterable:
            self._draws = iter(loader.index_sampler)
        self._seed = base_seed(loader.generator)
        self._samples = iter(loader.dataset) if loader.iterable else iter(())
        self._random = Loader(loader.dataset, keep_global=True, many=loader.many)
        self._ordinal = 0

    def _next(self) -> Any:
        loader = self._loader
        samples = self._streamed() if loader.iterable else self._indexed()
        if loader.own_collation is not None:
            alone = not loader.batched
            return loader.own_collation(samples[0] if alone else samples)
        return collate_samples(samples) if loader.batched else convert(samples[0])

    def _streamed(self) -> list[Any]:
        size = self._loader.batch_size or 1
        samples = list(itertools.islice(self._samples, size))
        if not samples or (self._loader.drop_last and len(samples) < size):
            raise StopIteration
        return samples

    def _indexed(self) -> list[Any]:
        keys = self._keys()
        if keys is None:
            raise StopIteration
        draw = make_draw(keys, self._ordinal)
        self._ordinal += len(keys)
        samples: list[Any] = []

        def begin() -> Any:
            samples.clear()
            return samples.append

        try:
            self._random.load(
                self._seed, draw.indices.tolist(), draw.sweeps.tolist(), begin, None, keys
            )
        except Exception as error:
            place = min(len(samples), len(keys) - 1)
            index = int(draw.indices[place]) if keys else -1
            raise local_failure(error, index) from error
        return samples


def make_draw(keys: list[Any], ordinal: int) -> Draw:
    """Return the draw of some keys, of which the first is number ``ordinal`` of its iterator.

    The number of a sample stands where other iterators have the epoch: a sample that is drawn
    twice in an epoch has random numbers of its own each time.
    """
    plain = all(type(key) is int and -(2**63) <= key < 2**63 for key in keys)
    indices = np.array(keys, np.int64) if plain else np.zeros(len(keys), np.int64)
    numbers = np.arange(ordinal, ordinal + len(keys), dtype=np.int64)
    return Draw(indices, numbers, None if plain else tuple(keys))


class EpochOfWorkers(Epoch):
    """Epochs whose batches worker processes make ahead of time; one after the other."""

    def __init__(self, loader: DataLoader):
        super().__init__(loader)
        self._lender = Lender()
        self._tasks: collections.deque[Task] = collections.deque()
        self._pool: Pool | None = None
        self._ordinal = 0
        self._epoch = -1
        self._begin()
        self._seed = base_seed(loader.generator)
        self._pool = Pool(loader.dataset, self._setting())
        self._fill()

    def _begin(self) -> None:
        loader = self._loader
        self._epoch += 1
        self._given = 0
        self._active = [True] * loader.num_workers
        self._turn = 0
        self._taken = [0] * loader.num_workers
        if not loader.iterable:
            self._draws = iter(loader.index_sampler)

    def restart(self) -> EpochOfWorkers:
        """Go to the start of another epoch, with the same workers."""
        if self._pool is None:
            raise LoadingTimeout("DataLoader: its workers were ended; make a new iterator")
        self._pool.abandon(self._tasks)
        self._tasks.clear()
        self._begin()
        self._fill()
        return self

    def _setting(self) -> Setting:
        loader = self._loader
        collate = loader.own_collation
        if not loader.batched:
            collate = FirstOf(collate)
        return Setting(
            workers=loader.num_workers,
            slots=min(MOST_SLOTS, self._most()) + LEASES,
            collate=collate,
            begin=loader.worker_init_fn,
            work=Work(
                stacked=collate is None,
                limit=None,
                most_tasks=None,
                workers=loader.num_workers,
                seed=self._seed,
                streams=loader.iterable,
                drop_last=loader.drop_last,
                many=loader.many,
                apart=loader.worker_init_fn is not None,
            ),
            method=loader.start_method,
            folder=None,
            warns=loader.multiprocessing_context is not None,
        )

    def _most(self) -> int:
        return self._loader.num_workers * (self._loader.prefetch_factor or 1)

    def _fill(self) -> None:
        """Keep as many batches in the making as the caller asked for."""
        while len(self._tasks) < self._most() and self._submit():
            pass

    def _submit(self) -> bool:
        """Have one more batch made; return whether there is one, and room for it."""
        assert self._pool is not None
        if not self._pool.free_slots():
            if self._tasks:
                return False
            self._pool.wait_for_slot()
        if not self._loader.iterable:
            keys = self._keys()
            if keys is None:
                return False
            draw = make_draw(keys, self._ordinal)
            self._ordinal += len(keys)
            worker, self._turn = self._turn, (self._turn + 1) % self._loader.num_workers
            self._tasks.append(self._pool.submit(draw, self._seed, worker))
            return True
        if not any(self._active):
            return False
        while not self._active[self._turn]:
            self._turn = (self._turn + 1) % len(self._active)
        worker = self._turn
        self._turn = (self._turn + 1) % len(self._active)
        size = self._loader.batch_size or 1
        numbers = np.arange(self._taken[worker], self._taken[worker] + size, dtype=np.int64)
        self._taken[worker] += size
        draw = Draw(numbers, np.full(size, self._epoch, np.int64))
        self._tasks.append(self._pool.submit(draw, self._seed, worker))
        return True

    def _next(self) -> Any:
        while self._tasks:
            assert self._pool is not None
            task = self._wait(self._pool)
            self._tasks.remove(task)
            if task.failure is not None:
                self._pool.release(task.slot)
                self._fill()
                raise task.failure
            assert task.result is not None
            if task.result.kind == ENDED:
                self._pool.release(task.slot)
                self._active[task.worker] = False
                self._fill()
                continue
            batch, _ = self._lender.give_out(self._pool, task, False, self._build)
            self._fill()
            return batch
        if not self._loader.persistent_workers:
            self.close()
        raise StopIteration

    def _wait(self, pool: Pool) -> Task:
        """Return the next batch in order, or the first that is done."""
        first = self._tasks[0]
        limit = self._loader.timeout
        deadline = time.monotonic() + limit if limit else None
        while True:
            for task in itertools.islice(self._tasks, None if not self._loader.in_order else 1):
                if task.finished:
                    return task
            left = 3600.0 if deadline is None else deadline - time.monotonic()
            if left <= 0:
                raise self._late(pool, first, limit)
            pool.wait(first, left if self._loader.in_order else min(left, 0.05))

    def _late(self, pool: Pool, task: Task, limit: float) -> LoadingTimeout:
        at = "no worker is at any sample"
        found = pool.awaited(task)
        if found is not None:
            index = int(found[0].draw.indices[found[1].place])
            at = f"a worker is at the sample of index {index}"
        return LoadingTimeout(
            f"DataLoader: no batch came within timeout={limit:g} seconds; {at}; the next call "
            "waits for it again"
        )

    def _build(self, layout: Layout, memory: Any) -> Any:
        if self._loader.own_collation is not None:
            return assemble(layout, memory)
        return (
            collate_layout(layout, memory)
            if self._loader.batched
            else convert(assemble(layout, memory))
        )

    def close(self) -> None:
        """End the workers; batches that were given out stay valid."""
        pool, self._pool = getattr(self, "_pool", None), None
        self._tasks = collections.deque()
        if pool is not None:
            pool.close()

    def __del__(self) -> None:
        self.close()
