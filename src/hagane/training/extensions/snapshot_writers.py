"""How snapshots are written: at once, by a thread or by a process."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import queue
import threading
from collections.abc import Callable
from multiprocessing.reduction import ForkingPickler
from typing import Any

import numpy as np

from hagane.errors import InvalidArgument
from hagane.machine.whole_files import written_whole
from hagane.nn.serializers.npz import save_npz

# A worker whose trainer was killed has so long to write the snapshots that it got.
_SECONDS_TO_END = 60.0


class Writer:
    """Base of writers of snapshots: called with name of the file, folder and values by path."""

    def __init__(self) -> None:
        self._hooks: list[Callable[[], None]] = []

    def __call__(self, filename: str, outdir: str, target: Any) -> None:
        """Write a snapshot."""
        raise NotImplementedError(f"{type(self).__name__} does not define __call__")

    def finalize(self) -> None:
        """Wait until all is written."""

    def save(
        self, filename: str, outdir: str, target: Any, savefun: Callable[..., None], **kwds: Any
    ) -> None:
        """Write a snapshot beside its place, and put it there when it is whole.

        An earlier file of that name stays until then, in every failure.
        """
        try:
            with written_whole(os.path.join(outdir, filename)) as begun:
                path = str(begun)
                savefun(path, target, **kwds)
                if os.path.isfile(path):
                    with open(path, "rb") as written:
                        os.fsync(written.fileno())
        except OSError as error:
            whole = os.path.join(outdir, filename)
            error.add_note(f"the snapshot '{whole}' was not written; those before it stay")
            raise
        for hook in self._hooks:
            hook()

    def add_cleanup_hook(self, hook: Callable[[], None]) -> None:
        """Have a function called after each snapshot."""
        self._hooks.append(hook)


class SimpleWriter(Writer):
    """Writes at once.

    Args:
        savefun: Called with a path, the values and ``kwds``.
        kwds: Further arguments of it.
    """

    def __init__(self, savefun: Callable[..., None] = save_npz, **kwds: Any):
        super().__init__()
        self._savefun = savefun
        self._kwds = kwds

    def __call__(self, filename: str, outdir: str, target: Any) -> None:
        """Write a snapshot."""
        self.save(filename, outdir, target, self._savefun, **self._kwds)


def _own(target: Any) -> Any:
    """Return values that training does not change while they are written."""
    if not isinstance(target, dict):
        return target
    return {key: np.array(value) for key, value in target.items()}


class StandardWriter(Writer):
    """Base of writers that start a worker for each snapshot; one at a time is at work.

    Args:
        savefun: Called with a path, the values and ``kwds``.
        kwds: Further arguments of it.
    """

    def __init__(self, savefun: Callable[..., None] = save_npz, **kwds: Any):
        super().__init__()
        self._savefun = savefun
        self._kwds = kwds
        self._worker: Any = None

    def __call__(self, filename: str, outdir: str, target: Any) -> None:
        """Start to write a snapshot, after the last one is written."""
        self._wait()
        self._worker = self.create_worker(filename, outdir, _own(target), **self._kwds)
        self._worker.start()

    def create_worker(self, filename: str, outdir: str, target: Any, **kwds: Any) -> Any:
        """Return a worker with ``start`` and ``join``."""
        raise NotImplementedError(f"{type(self).__name__} does not define create_worker")

    def _wait(self) -> None:
        worker, self._worker = self._worker, None
        if worker is not None:
            worker.join()
            self._check(worker)

    def _check(self, worker: Any) -> None:
        """Raise if a worker failed."""

    def finalize(self) -> None:
        """Wait until the last snapshot is written."""
        self._wait()


class ThreadWriter(StandardWriter):
    """Writes in a thread; an error is raised at the next snapshot, or at the end."""

    _error: BaseException | None = None

    def create_worker(self, filename: str, outdir: str, target: Any, **kwds: Any) -> Any:
        """Return a thread."""
        return threading.Thread(target=self._work, args=(filename, outdir, target), kwargs=kwds)

    def _work(self, filename: str, outdir: str, target: Any, **kwds: Any) -> None:
        try:
            self.save(filename, outdir, target, self._savefun, **kwds)
        except BaseException as error:
            self._error = error

    def _check(self, worker: Any) -> None:
        error, self._error = self._error, None
        if error is not None:
            raise error


class ProcessWriter(StandardWriter):
    """Writes in a process."""

    def create_worker(self, filename: str, outdir: str, target: Any, **kwds: Any) -> Any:
        """Return a process."""
        return multiprocessing.Process(
            target=self.save, args=(filename, outdir, target, self._savefun), kwargs=kwds
        )

    def _check(self, worker: Any) -> None:
        if worker.exitcode:
            raise OSError(
                "a snapshot could not be written: its process ended with status "
                f"{worker.exitcode}; its error was printed"
            )


class QueueWriter(Writer):
    """Base of writers with one worker that writes snapshots in their order.

    Args:
        savefun: Called with a path and the values.
        task: The writer, called as a writer is; by default a ``SimpleWriter`` of ``savefun``.
    """

    def __init__(self, savefun: Callable[..., None] = save_npz, task: Any = None):
        super().__init__()
        self._savefun = savefun
        self._task = self.create_task(savefun) if task is None else task
        self._queue: Any = None
        self._consumer: Any = None

    def add_cleanup_hook(self, hook: Callable[[], None]) -> None:
        """Have a function called after each snapshot."""
        self._task.add_cleanup_hook(hook)

    def __call__(self, filename: str, outdir: str, target: Any) -> None:
        """Queue a snapshot."""
        if self._consumer is None:
            self._queue = self.create_queue()
            self._consumer = self.create_consumer(self._queue)
            self._consumer.start()
        self._queue.put([self._task, filename, outdir, _own(target)])

    def create_task(self, savefun: Callable[..., None]) -> Any:
        """Return the writer."""
        return SimpleWriter(savefun=savefun)

    def create_queue(self) -> Any:
        """Return a queue."""
        raise NotImplementedError(f"{type(self).__name__} does not define create_queue")

    def create_consumer(self, q: Any) -> Any:
        """Return a worker that calls ``consume``."""
        raise NotImplementedError(f"{type(self).__name__} does not define create_consumer")

    def consume(self, q: Any) -> None:
        """Write the snapshots of a queue until None comes.

        Args:
            q: Gives a writer with its arguments, or None at the end; its ``task_done`` is called
                for each.

        Raises:
            OSError: Snapshots could not be written; the others are written first.
        """
        failed: BaseException | None = None
        while (item := q.get()) is not None:
            try:
                item[0](*item[1:])
            except Exception as error:
                failed = error
            finally:
                q.task_done()
        q.task_done()
        if failed is not None:
            raise failed

    def finalize(self) -> None:
        """Wait until all snapshots are written."""
        consumer, self._consumer = self._consumer, None
        if consumer is not None:
            self._queue.put(None)
            consumer.join()
            self._check(consumer)
            self._queue.join()  # which would wait for ever for a worker that was killed

    def _check(self, consumer: Any) -> None:
        """Raise if the worker failed."""


class ThreadQueueWriter(QueueWriter):
    """Writes in one thread; an error is raised at the end."""

    _error: BaseException | None = None

    def create_queue(self) -> Any:
        """Return a queue."""
        return queue.Queue()

    def create_consumer(self, q: Any) -> Any:
        """Return a thread."""
        return threading.Thread(target=self._consume, args=(q,))

    def _consume(self, q: Any) -> None:
        try:
            self.consume(q)
        except BaseException as error:
            self._error = error

    def _check(self, consumer: Any) -> None:
        error, self._error = self._error, None
        if error is not None:
            raise error


def _end_after_parent(q: Any, ended: threading.Event) -> None:
    """End this process once that which started it is gone, and what it queued is written."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    q.put(None)
    if not ended.wait(_SECONDS_TO_END):  # it was killed while it sent something
        os._exit(1)


class ProcessQueueWriter(QueueWriter):
    """Writes in one process."""

    def create_queue(self) -> Any:
        """Return a queue between processes."""
        return multiprocessing.JoinableQueue()

    def create_consumer(self, q: Any) -> Any:
        """Return a process.

        Raises:
            InvalidArgument: It cannot be handed the writer.
        """
        try:  # The queue itself would lose snapshots that it cannot send.
            ForkingPickler.dumps(self._task)
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            raise InvalidArgument(
                "ProcessQueueWriter: expected functions of modules as savefun, task and hooks, "
                f"which another process can be handed, got one that it cannot ({error}); use "
                "ThreadQueueWriter"
            ) from error
        return multiprocessing.Process(target=self._consume, args=(q,))

    def _consume(self, q: Any) -> None:
        ended = threading.Event()
        threading.Thread(target=_end_after_parent, args=(q, ended), daemon=True).start()
        try:
            self.consume(q)
        finally:
            ended.set()

    def _check(self, consumer: Any) -> None:
        if consumer.exitcode:
            raise OSError(
                "a snapshot could not be written: its process ended with status "
                f"{consumer.exitcode}; its error was printed"
            )
