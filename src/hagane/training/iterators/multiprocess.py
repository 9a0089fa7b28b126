"""Batches made by worker processes while the caller computes."""

from __future__ import annotations

import collections
import os
import time
import warnings
from collections.abc import Callable, Iterable
from typing import Any

from hagane.errors import InvalidArgument
from hagane.training.errors import IteratorFinalized, LoadingError
from hagane.training.iterators.base import BatchIterator, Collation
from hagane.training.iterators.batch import make_batch
from hagane.training.iterators.cores import default_worker_count
from hagane.training.iterators.orders import OrderFunction
from hagane.training.iterators.processes.crew import Setting
from hagane.training.iterators.processes.layout import assemble
from hagane.training.iterators.processes.lending import LEASES, MOST_SLOTS, Lender
from hagane.training.iterators.processes.pool import Pool, Task
from hagane.training.iterators.processes.protocol import MOST_WORKERS
from hagane.training.iterators.processes.worker import Work
from hagane.training.iterators.randomness import Loader
from hagane.training.iterators.state import IteratorState

# Seconds that workers may take to start and open the dataset, independent of dataset_timeout.
_START_TIMEOUT = 30.0
_METHODS = ("forkserver", "spawn", "fork")


class MultiprocessIterator(BatchIterator):
    """Makes batches in worker processes, ahead of time and in order.

    Workers write into a ring of buffers in shared memory; arrays of a batch are views of them.
    A buffer returns to the ring when the last array over it is gone. Batches are copies once the
    ring has no more to lend.

    Args:
        dataset: Has ``__len__`` and ``__getitem__``; it is sent to the workers.
        batch_size: Samples in a batch.
        repeat: Go on into the next epoch; else stop after one, with a short last batch.
        shuffle: Shuffle each epoch; None does so too unless ``order_sampler`` is given.
        n_processes: Number of workers; None takes this process's share of the machine's
            cores, 0 makes batches in this process.
        n_prefetch: Batches that wait, finished, beside the one that each worker is at.
        shared_mem: Bytes of shared memory for a sample; a larger one travels pickled. None
            takes the size that the samples need.
        order_sampler: Called with the current order and position, returns the next order.
        dataset_timeout: Seconds after which a sample that is still in the making is reported by
            a ``TimeoutWarning``; None never does.
        maxtasksperchild: Batches after which a worker is replaced by a fresh one.
        seed: Settles the orders, and the random state of each sample together with epoch and
            index. None draws one from NumPy's global generator.
        collate: None gives lists of samples, ``"stack"`` one tree of stacked arrays; a function
            is called, in the worker, with the list.
        copy: Give out copies in place of views of shared memory.
        start_method: ``"forkserver"``, ``"spawn"`` or ``"fork"``; None is that of
            ``default_start_method``.
        memory_folder: Folder of the shared memory; None takes anonymous memory, which no limit
            on ``/dev/shm`` concerns.
        drop_last: Leave out the samples of an epoch that fill no batch.
        shard: (rank, number of ranks): give only this rank's share of each epoch.
        worker_init: Called in each worker with its number, before the first sample.

    Attributes:
        default_start_method: Returns the start method of iterators that name none.
    """

    default_start_method: Callable[[], str] = staticmethod(lambda: "forkserver")

    class TimeoutWarning(RuntimeWarning):
        """A sample takes longer than ``dataset_timeout``."""

    class SharedMemoryWarning(UserWarning):
        """Samples travel pickled and not through shared memory."""

    def __init__(
        self,
        dataset: Any,
        batch_size: int,
        repeat: bool = True,
        shuffle: bool | None = None,
        n_processes: int | None = None,
        n_prefetch: int = 1,
        shared_mem: int | None = None,
        order_sampler: OrderFunction | Iterable[int] | None = None,
        dataset_timeout: float | None = 30.0,
        maxtasksperchild: int | None = None,
        *,
        seed: int | None = None,
        collate: Collation = None,
        copy: bool = False,
        start_method: str | None = None,
        memory_folder: str | None = None,
        drop_last: bool = False,
        shard: tuple[int, int] | None = None,
        worker_init: Callable[[int], object] | None = None,
    ):
        super().__init__(
            dataset, batch_size, repeat, shuffle, order_sampler, seed, collate, drop_last, shard
        )
        if start_method is not None and start_method not in _METHODS:
            raise InvalidArgument(
                f"start_method: expected one of {', '.join(_METHODS)}, got {start_method!r}"
            )
        _check(n_processes, n_prefetch, shared_mem, dataset_timeout, maxtasksperchild)
        self.n_processes = default_worker_count() if n_processes is None else n_processes
        self.n_prefetch = max(n_prefetch, 1)
        self.shared_mem = shared_mem
        self.dataset_timeout = dataset_timeout
        self.maxtasksperchild = maxtasksperchild
        self.copy = copy
        self.start_method = start_method or self.default_start_method()
        self._warns = start_method is not None
        self.memory_folder = memory_folder
        if worker_init is not None and not callable(worker_init):
            raise InvalidArgument(
                f"worker_init: expected None or a function of a worker's number, "
                f"got {worker_init!r}"
            )
        self.worker_init = worker_init
        self._begin()

    def _begin(self) -> None:
        self._pool: Pool | None = None
        self._loader = Loader(self.dataset, keep_global=True)
        self._tasks: collections.deque[tuple[Task, IteratorState]] = collections.deque()
        self._ahead = self._state
        self._lender = Lender()
        self._noticed = False
        self._owner = os.getpid()

    def _setting(self) -> Setting:
        ahead = min(MOST_SLOTS, self.n_processes + self.n_prefetch)
        return Setting(
            workers=self.n_processes,
            slots=ahead + LEASES,
            collate=self.collate if callable(self.collate) else None,
            begin=self.worker_init,
            work=Work(
                stacked=self.collate == "stack",
                limit=None if self.shared_mem is None else self.shared_mem * self.batch_size,
                most_tasks=self.maxtasksperchild,
                workers=self.n_processes,
            ),
            method=self.start_method,
            folder=self.memory_folder,
            warns=self._warns,
        )

    def __next__(self) -> Any:
        self._check_usable()
        if self.n_processes == 0:
            return self._make_here()
        if self._pool is None:
            self._pool = Pool(self.dataset, self._setting())
        pool = self._pool
        self._submit(pool)
        if not self._tasks:
            self._consume(self._ahead)
            raise StopIteration
        task, state = self._tasks[0]
        self._await(pool, task)
        self._tasks.popleft()
        self._consume(state)
        if task.failure is not None:
            pool.release(task.slot)
            self._submit(pool)
            raise task.failure
        batch, notice = self._lender.give_out(pool, task, self.copy, assemble)
        if notice and not self._noticed:
            self._noticed = True
            warnings.warn(notice, self.SharedMemoryWarning, stacklevel=2)
        self._submit(pool)
        return batch

    def _make_here(self) -> Any:
        state, draw = self._step(self._state)
        self._consume(state)
        if draw is None:
            raise StopIteration
        return make_batch(self._loader, self.seed, draw, self.collate)

    def _check_usable(self) -> None:
        if self._finalized:
            raise IteratorFinalized(
                "MultiprocessIterator was finalized and gives no more batches; make a new one"
            )
        if os.getpid() != self._owner:
            raise LoadingError(
                "a MultiprocessIterator was carried into a forked process, whose parent reads its "
                "workers' results; make one in this process"
            )

    def _submit(self, pool: Pool) -> None:
        """Keep as many batches in the making as there is room for."""
        most = pool.setting.slots - LEASES
        while len(self._tasks) < most:
            if not pool.free_slots():
                if self._tasks:
                    return
                pool.wait_for_slot()
            ahead, draw = self._step(self._ahead)
            if draw is None:
                return
            self._tasks.append((pool.submit(draw, self.seed), ahead))
            self._ahead = ahead

    def _await(self, pool: Pool, task: Task) -> None:
        """Wait for a batch; complain of a sample that takes too long."""
        timeout = self.dataset_timeout
        if timeout is None:
            while not pool.wait(task, 3600.0):
                pass
            return
        wait, begun = timeout, time.monotonic()
        while not pool.wait(task, wait):
            wait = timeout
            found = pool.awaited(task)
            if found is None:
                if task.warned:
                    continue
                waited = time.monotonic() - begun
                if waited > max(timeout, _START_TIMEOUT) and not pool.all_ready():
                    task.warned = True
                    warnings.warn(
                        f"worker processes have not opened the dataset within {waited:.0f} s",
                        self.TimeoutWarning,
                        stacklevel=3,
                    )
                continue
            at, progress = found
            if at.warned:
                continue
            elapsed = (time.monotonic_ns() - progress.since) / 1e9
            if elapsed < timeout:
                wait = max(0.001, timeout - elapsed)
                continue
            at.warned = True
            index = int(at.draw.indices[progress.place])
            whose = " for a batch that is no longer wanted" if pool.abandoned(at) else ""
            warnings.warn(
                f"the dataset has been making the sample at index {index} for {elapsed:.1f} s"
                f"{whose}, longer than dataset_timeout={timeout}",
                self.TimeoutWarning,
                stacklevel=3,
            )

    # Going back

    def _place(self, state: IteratorState) -> None:
        if self._finalized:
            raise IteratorFinalized("MultiprocessIterator was finalized; make a new one")
        if self._pool is not None:
            self._pool.abandon(task for task, _ in self._tasks)
        self._tasks.clear()
        self._state = self._ahead = state

    def finalize(self) -> None:
        """End the workers; batches that were given out stay valid."""
        self._finalized = True
        pool, self._pool = getattr(self, "_pool", None), None
        if pool is not None:
            pool.close()

    def __del__(self) -> None:
        self.finalize()

    def __copy__(self) -> MultiprocessIterator:
        other = type(self).__new__(type(self))
        other.__setstate__(self.__getstate__())
        return other

    def __getstate__(self) -> dict[str, Any]:
        gone = ("_pool", "_tasks", "_ahead", "_lender", "_loader", "_owner")
        return {name: value for name, value in self.__dict__.items() if name not in gone}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._begin()


def _check(
    n_processes: int | None,
    n_prefetch: int,
    shared_mem: int | None,
    dataset_timeout: float | None,
    maxtasksperchild: int | None,
) -> None:
    """Refuse arguments that would go wrong later, and elsewhere."""
    for name, value, least, most, expected in (
        ("n_processes", n_processes, 0, MOST_WORKERS, f"an integer from 0 to {MOST_WORKERS}"),
        ("shared_mem", shared_mem, 0, None, "a number of bytes"),
        ("maxtasksperchild", maxtasksperchild, 1, None, "a positive integer"),
    ):
        fits = isinstance(value, int) and least <= value and (most is None or value <= most)
        if value is not None and not fits:
            raise InvalidArgument(f"{name}: expected None or {expected}, got {value!r}")
    if not isinstance(n_prefetch, int):
        raise InvalidArgument(f"n_prefetch: expected an integer, got {n_prefetch!r}")
    if dataset_timeout is not None and not dataset_timeout > 0:
        raise InvalidArgument(
            f"dataset_timeout: expected None or a positive number of seconds, "
            f"got {dataset_timeout!r}"
        )
