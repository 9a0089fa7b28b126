"""The parent's side of the workers: hands out draws, takes batches back, replaces the dead.

There is no thread. Tasks wait in a pipe ahead of time, so workers are busy while the caller
computes; everything else happens when the caller asks for a batch.
"""

from __future__ import annotations

import multiprocessing.process
import os
import pickle
import time
import weakref
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from hagane.training.errors import DatasetError, LoadingError, WorkerDied
from hagane.training.iterators.failures import remote_failure
from hagane.training.iterators.processes.crew import Crew, Place, Setting, warn_of_threads
from hagane.training.iterators.processes.memory import create
from hagane.training.iterators.processes.parcel import pack
from hagane.training.iterators.processes.pipes import Plumbing, Queue
from hagane.training.iterators.processes.protocol import (
    DONE,
    ENDED,
    MESSAGE,
    READY,
    RETIRED,
    SKIPPED,
    UNUSABLE,
    Progress,
    ResultMessage,
    TaskMessage,
)
from hagane.training.iterators.processes.ring import Ring
from hagane.training.iterators.state import Draw

# How long the parent sleeps at most between looks at stalls and lost tasks, in milliseconds.
_LOOK = 100
_MOST_ATTEMPTS = 2
_MOST_FAILED_STARTS = 3


@dataclass(slots=True, eq=False)  # one task is no other, be their samples the same
class Task:
    """One batch on its way: its indices, its place, and its progress."""

    draw: Draw
    seed: int
    slot: int
    ticket: int = -1
    attempts: int = 1
    result: ResultMessage | None = None
    failure: Exception | None = None
    warned: bool = False
    worker: int = 0
    keys: bytes = b""

    @property
    def finished(self) -> bool:
        """Whether the batch is there, or will never be."""
        return self.result is not None or self.failure is not None


class Pool:
    """Worker processes and the ring of slots that they write batches into."""

    def __init__(self, dataset: Any, setting: Setting):
        if getattr(multiprocessing.process.current_process(), "_inheriting", False):
            raise LoadingError(
                "worker processes were asked for while a worker was importing the main module: "
                "put the code that runs under  if __name__ == '__main__':"
            )
        warn_of_threads(setting)
        self.setting = setting
        plumbing = Plumbing(os.getpid())
        self._finalizer = weakref.finalize(self, plumbing.close)
        memory = plumbing.keep(create(setting.slots, setting.folder))
        parcel = pack(dataset, setting.collate, setting.begin, setting.method, setting.folder)
        plumbing.parcel = parcel
        queues = range(setting.work.queues)
        self._queues = [Queue(*map(plumbing.keep, os.pipe())) for _ in queues]
        results = os.pipe()
        self._results, _ = map(plumbing.keep, results)
        os.set_blocking(self._results, False)
        self._ring = Ring(memory, setting.slots)
        self._tickets: dict[int, Task] = {}
        self._next_ticket = 0
        self._failed_starts = 0
        self._suspects: set[int] = set()
        self._broken: Exception | None = None
        self._crew = Crew(setting, plumbing, memory, parcel, self._queues, results)
        self._control = self._crew.control

    def close(self) -> None:
        """End the workers; batches that were given out stay valid."""
        self._finalizer()

    def pids(self) -> list[int]:
        """Return the process ids of the workers."""
        return self._crew.pids()

    def free_slots(self) -> int:
        """Return how many more tasks may be submitted."""
        return self._ring.free()

    def release(self, slot: int) -> None:
        """Give a slot back; may be called from any thread and by the garbage collector."""
        self._ring.release(slot)

    def lease(self, task: Task, copy: bool) -> tuple[bytes, list[Any], Any, Any]:
        """Return a finished batch: pickled layout, its buffers, the memory, and its leaseholder.

        With ``copy`` the memory is a copy, and the slot is free again.
        """
        assert task.result is not None
        return self._ring.lease(task.slot, task.result, copy)

    def submit(self, draw: Draw, seed: int, worker: int = 0) -> Task:
        """Queue a draw; there should be a free slot. Where each has its own, name one."""
        keys = b"" if draw.keys is None else pickle.dumps(draw.keys, protocol=5)
        task = Task(draw, seed, self._ring.take(), worker=worker, keys=keys)
        self._send(task)
        return task

    def _send(self, task: Task) -> None:
        task.ticket = self._next_ticket
        self._next_ticket += 1
        self._tickets[task.ticket] = task
        self._ring.assign(task.slot, task.ticket, task.draw, task.seed, task.keys)
        count = len(task.draw.indices)
        message = TaskMessage(task.ticket, task.slot, count, len(task.keys))
        self._queues[task.worker % len(self._queues)].put(message.pack())

    def abandon(self, tasks: Iterable[Task]) -> None:
        """Forget tasks; the slots of those in the making come back as workers reach them."""
        self._control.floor = self._next_ticket
        for task in tasks:
            if task.finished:
                self.release(task.slot)
        self._suspects.clear()

    def wait_for_slot(self) -> None:
        """Wait until a task may be submitted."""
        while not self._ring.free():
            self._turn(None, _LOOK)

    def wait(self, task: Task, seconds: float) -> bool:
        """Wait for a task; return whether it finished in that time.

        Raises:
            DatasetError: A worker cannot open the dataset.
            WorkerDied: Workers end before they are ready.
        """
        deadline = time.monotonic() + seconds
        self._receive()
        while not task.finished:
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            self._turn(task, min(_LOOK, left * 1000 + 1))
        return True

    def _turn(self, task: Task | None, milliseconds: float) -> None:
        """Wait for something to happen and deal with it."""
        if self._broken is not None:
            raise self._broken
        for queue in self._queues:
            queue.flush()
        if self._crew.wait(milliseconds):
            self._receive()
            self._bury()
        else:
            self._look_for_lost()

    def awaited(self, task: Task) -> tuple[Task, Progress] | None:
        """Return the need of a task, and how far the worker at it has come.

        That is the task itself or, while no worker is at it, the one that has been longest at its
        sample; it may be one that was abandoned. None if no worker is at anything.
        """
        each = self._crew.progress()
        busy = [progress for progress in each if progress.ticket in self._tickets]
        if not busy:
            return None
        chosen = min(busy, key=lambda progress: (progress.ticket != task.ticket, progress.since))
        return self._tickets[chosen.ticket], chosen

    def abandoned(self, task: Task) -> bool:
        """Say whether a task was forgotten while a worker was at it."""
        return task.ticket < self._control.floor

    def all_ready(self) -> bool:
        """Say whether every worker has opened the dataset."""
        return self._crew.all_ready()

    def _receive(self) -> None:
        """Read every result there is."""
        while True:
            try:
                data = os.read(self._results, MESSAGE.size * 64)
            except BlockingIOError:
                return
            for begin in range(0, len(data), MESSAGE.size):
                self._take(ResultMessage.unpack(data[begin : begin + MESSAGE.size]))
            if len(data) < MESSAGE.size * 64:
                return

    def _take(self, result: ResultMessage) -> None:
        # A worker does one thing after the other, and all it said before an attempt was revoked
        # was read before: its messages from now on come after that attempt.
        self._ring.clear(result.process, result.ticket)
        if result.kind == READY:
            self._crew.places[result.worker].ready = True
            self._failed_starts = 0
        elif result.kind == RETIRED:
            self._crew.places[result.worker].retired = True
        elif result.kind == UNUSABLE and result.offset:
            self._broken = LoadingError(
                f"worker_init raised in worker {result.worker}, which makes no batches without "
                f"it\n\n{self._control.text()}"
            )
        elif result.kind == UNUSABLE:
            self._broken = DatasetError(
                "a worker cannot open the dataset that it was sent; define it in a module that "
                f"workers can import, or pass start_method='fork'\n\n{self._control.text()}"
            )
        else:
            task = self._tickets.pop(result.ticket, None)
            if task is None:
                return
            if result.ticket < self._control.floor or task.ticket != result.ticket:
                self.release(task.slot)
            elif result.kind in (DONE, ENDED):
                task.result = result
            elif result.kind == SKIPPED:  # an attempt that was not given up is never skipped
                self._send(task)
            else:
                task.failure = self._failure(task, result)

    def _failure(self, task: Task, result: ResultMessage) -> Exception:
        data = self._ring.message(task.slot, result)
        try:
            return remote_failure(data, task.draw, result.worker, result.process)
        except Exception as error:  # of any kind: the caller must not wait for ever
            return LoadingError(f"a worker's error cannot be read in this process: {error!r}")

    def _bury(self) -> None:
        """Replace processes that ended, and have their batches made again."""
        for place in self._crew.ended():
            self._receive()  # it may have finished its batch first
            self._crew.dismiss(place)
            self._ring.clear(place.process.pid)
            progress = self._control.progress(place.number)
            if self._broken is None:
                if not place.retired:
                    self._mourn(place, progress)
                self._crew.replace(place)

    def _mourn(self, place: Place, progress: Progress) -> None:
        if not place.ready:
            self._failed_starts += 1
            if self._failed_starts >= _MOST_FAILED_STARTS:
                self._broken = WorkerDied(
                    f"worker processes end before they are ready, {self._failed_starts} times "
                    f"in a row (the last {place.end}); the reason is on standard error. If the "
                    "program starts at its top level, put that under  if __name__ == '__main__':"
                )
            return
        if self.setting.work.streams:
            self._broken = WorkerDied(
                f"worker {place.number} (pid {place.process.pid}) {place.end} on its way through "
                "an iterable dataset, which cannot be taken up again in the middle. "
                f"{place.hint}"
            )
            return
        task = self._tickets.pop(progress.ticket, None)
        if task is None:
            return
        if progress.ticket < self._control.floor:
            self.release(task.slot)
        elif task.attempts < _MOST_ATTEMPTS:
            self._again(task)
        else:
            index = int(task.draw.indices[min(progress.place, len(task.draw.indices) - 1)])
            task.failure = WorkerDied(
                f"a worker process (pid {place.process.pid}) {place.end} while it made the sample "
                f"at dataset index {index}; so did the one before it, over the same batch. "
                f"{place.hint}"
            )

    def _again(self, task: Task) -> None:
        task.attempts += 1
        dead, task.slot = task.slot, self._ring.take()
        self.release(dead)
        self._send(task)

    def _look_for_lost(self) -> None:
        """Send again the tasks that a worker took from the pipe before it died unannounced.

        A ticket is lost if, at two looks, nothing waits in the pipes, all workers are ready and
        none is at it.
        """
        if self.setting.work.streams:  # a task for one worker is not lost while that one lives
            return
        if not self.all_ready() or any(queue.unsent or queue.waiting() for queue in self._queues):
            self._suspects.clear()
            return
        at_work = {progress.ticket for progress in self._crew.progress()}
        missing = set(self._tickets) - at_work
        lost, self._suspects = self._suspects & missing, missing
        if lost:
            self._receive()
        for ticket in sorted(lost & set(self._tickets)):
            task = self._tickets.pop(ticket)
            self._ring.revoke(task.slot, task.ticket, self.pids())
            if ticket >= self._control.floor:
                task.slot = self._ring.take()
                self._send(task)
