"""The parent's side of the workers: hands out draws, takes batches back, replaces the dead.

There is no thread. Tasks wait in a pipe ahead of time, so workers are busy while the caller
computes; everything else happens when the caller asks for a batch.
"""

from __future__ import annotations

import collections
import contextlib
import fcntl
import multiprocessing
import os
import pickle
import select
import signal
import struct
import termios
import threading
import time
import warnings
import weakref
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from multiprocessing import process
from typing import Any

import numpy as np

from hagane.training.errors import DatasetError, LoadingError, WorkerDied
from hagane.training.iterators.failures import remote_failure
from hagane.training.iterators.processes import worker as worker_module
from hagane.training.iterators.processes.memory import HEADER, Descriptor, Slot, create, extend
from hagane.training.iterators.processes.parcel import Parcel, pack
from hagane.training.iterators.processes.protocol import (
    DONE,
    ENDED,
    MESSAGE,
    READY,
    RETIRED,
    SKIPPED,
    UNUSABLE,
    Control,
    Progress,
    ResultMessage,
    TaskMessage,
)
from hagane.training.iterators.processes.worker import Assignment, Work
from hagane.training.iterators.processes.writer import Collate
from hagane.training.iterators.state import Draw

# How long the parent sleeps at most between looks at stalls and lost tasks, in milliseconds.
_LOOK = 100
_MOST_ATTEMPTS = 2
_MOST_FAILED_STARTS = 3


@dataclass(frozen=True, slots=True)
class Setting:
    """How a pool makes batches.

    Attributes:
        workers: Number of processes.
        slots: Number of batches there is room for.
        collate: Called in the worker on the list of samples; None leaves the samples as columns.
        begin: Called in each worker with its number, or None.
        work: The work of the workers.
        method: ``forkserver``, ``spawn`` or ``fork``.
        folder: Where shared memory lives; None is anonymous memory.
        warns: Whether ``fork`` beside threads is warned of.
    """

    workers: int
    slots: int
    collate: Collate | None
    begin: Callable[[int], object] | None
    work: Work
    method: str
    folder: str | None
    warns: bool = True


@dataclass(slots=True)
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


class _Queue:
    """A pipe of tasks; tasks beyond its room wait here."""

    def __init__(self, read: int, write: int):
        self.read = read
        self.write = write
        self.unsent: collections.deque[bytes] = collections.deque()
        os.set_blocking(write, False)

    def put(self, message: bytes) -> None:
        self.unsent.append(message)
        self.flush()

    def flush(self) -> None:
        try:
            while self.unsent:
                os.write(self.write, self.unsent[0])
                self.unsent.popleft()
        except BlockingIOError:
            pass

    def waiting(self) -> int:
        """Return the number of bytes that no worker has taken."""
        return int(struct.unpack("i", fcntl.ioctl(self.read, termios.FIONREAD, b"\0" * 4))[0])


@dataclass(slots=True)
class _Place:
    """One worker's place: processes that die leave it to the next."""

    number: int
    process: Any
    ready: bool = False
    retired: bool = False


@dataclass(slots=True)
class _Revoked:
    """The slot of an attempt that was given up, and the processes that may still write there."""

    slot: int
    holders: set[int]


@dataclass(slots=True)
class _Plumbing:
    """The resources to give back in any case; apart from the pool, so that they can outlive it."""

    owner: int
    descriptors: list[int] = field(default_factory=list)
    processes: list[Any] = field(default_factory=list)
    parcel: Parcel | None = None

    def close(self) -> None:
        """End the workers and close the pipes: ask, then SIGTERM, then SIGKILL."""
        descriptors, self.descriptors = self.descriptors, []
        for descriptor in descriptors:
            with contextlib.suppress(OSError):
                os.close(descriptor)
        processes, self.processes = self.processes, []
        if self.parcel is not None:
            self.parcel.close()
        if os.getpid() != self.owner:  # a fork of the parent: the workers aren't its children
            return
        for end, patience in ((None, 0.05), ("terminate", 0.3), ("kill", 5.0)):
            for each in processes:
                if end is not None:
                    getattr(each, end)()
            deadline = time.monotonic() + patience
            for each in processes:
                each.join(max(0.0, deadline - time.monotonic()))
            processes = [each for each in processes if each.is_alive()]


class Pool:
    """Worker processes and the ring of slots that they write batches into."""

    def __init__(self, dataset: Any, setting: Setting):
        if getattr(process.current_process(), "_inheriting", False):
            raise LoadingError(
                "worker processes were asked for while a worker was importing the main module: "
                "put the code that runs under  if __name__ == '__main__':"
            )
        self.setting = setting
        self._context: Any = multiprocessing.get_context(setting.method)
        self._warn_of_threads()
        self._plumbing = _Plumbing(os.getpid())
        self._finalizer = weakref.finalize(self, self._plumbing.close)
        self._memory = self._keep(create(setting.slots, setting.folder))
        self._control = Control(self._memory)
        self._parcel = pack(dataset, setting.collate, setting.begin, setting.method, setting.folder)
        self._plumbing.parcel = self._parcel
        # One queue for all workers; one for each where they go through copies of a stream.
        queues = setting.workers if setting.work.streams else 1
        self._queues = [_Queue(*map(self._keep, os.pipe())) for _ in range(queues)]
        self._results_read, self._results_write = map(self._keep, os.pipe())
        os.set_blocking(self._results_read, False)
        self._slots = [Slot(self._memory, number) for number in range(setting.slots)]
        self._free = collections.deque(range(setting.slots))
        self._tickets: dict[int, Task] = {}
        self._next_ticket = 0
        self._failed_starts = 0
        self._suspects: set[int] = set()
        self._revoked: dict[int, _Revoked] = {}
        self._broken: Exception | None = None
        self._poll = select.poll()
        self._poll.register(self._results_read, select.POLLIN)
        if setting.method == "forkserver":
            self._context.set_forkserver_preload(["__main__", worker_module.__name__])
        self._places = [_Place(each, self._started(each)) for each in range(setting.workers)]

    def _keep(self, descriptor: int) -> int:
        self._plumbing.descriptors.append(descriptor)
        return descriptor

    def _warn_of_threads(self) -> None:
        others = [
            each.name for each in threading.enumerate() if each is not threading.current_thread()
        ]
        if self.setting.method == "fork" and self.setting.warns and others:
            warnings.warn(
                f"start_method='fork' while threads run ({', '.join(others[:5])}): a lock that one "
                "of them holds stays locked in the workers for ever; start the iterator before "
                "the threads, or leave start_method at 'forkserver'",
                RuntimeWarning,
                stacklevel=5,
            )

    def _started(self, number: int) -> Any:
        self._control.clear(number)
        parents_ends = (*(queue.write for queue in self._queues), self._results_read)
        assignment = Assignment(
            number,
            Descriptor(self._memory),
            Descriptor(self._queues[number % len(self._queues)].read),
            Descriptor(self._results_write),
            parents_ends if self.setting.method == "fork" else (),
            os.getpid(),
            # The kernel's signal comes with the end of the thread that started the process.
            self.setting.method == "forkserver"
            or threading.current_thread() is threading.main_thread(),
            self._parcel,
            self.setting.work,
        )
        started = self._context.Process(
            target=worker_module.main,
            args=(assignment,),
            name=f"hagane-loader-{number}",
            daemon=True,
        )
        started.start()
        self._plumbing.processes.append(started)
        self._poll.register(started.sentinel, select.POLLIN)
        return started

    def close(self) -> None:
        """End the workers; batches that were given out stay valid."""
        self._finalizer()

    def pids(self) -> list[int]:
        """Return the process ids of the workers."""
        return [place.process.pid for place in self._places]

    # Slots

    def free_slots(self) -> int:
        """Return how many more tasks may be submitted."""
        return len(self._free)

    def release(self, slot: int) -> None:
        """Give a slot back; may be called from any thread and by the garbage collector."""
        self._free.append(slot)

    def lease(self, task: Task, copy: bool) -> tuple[bytes, list[Any], Any, Any]:
        """Return a finished batch: pickled layout, its buffers, the memory, and its leaseholder.

        With ``copy`` the memory is a copy, and the slot is free again.
        """
        result = task.result
        assert result is not None
        slot = self._slots[task.slot]
        padded = -(-result.length // 8) * 8
        length = result.offset + padded + 16 * result.buffers
        lease = slot.lease(length)
        memory = bytearray(lease) if copy else lease
        whole = memoryview(memory).cast("B")
        data = bytes(whole[result.offset : result.offset + result.length])
        table = np.frombuffer(whole, np.int64, 2 * result.buffers, result.offset + padded)
        buffers = [whole[begin : begin + size] for begin, size in table.reshape(-1, 2).tolist()]
        return data, buffers, memory, None if copy else lease

    def _free_slot(self) -> int:
        """Return a slot that nobody writes to or reads: a new one if need be."""
        if not self._free:
            extend(self._memory, len(self._slots) + 1)
            self._slots.append(Slot(self._memory, len(self._slots)))
            return len(self._slots) - 1
        return self._free.popleft()

    def _revoke(self, task: Task) -> None:
        """Give up an attempt that some worker may have begun without saying so.

        Its slot is used again only when that worker, whichever it is, has answered or is dead: a
        process that the system stopped may go on at any later time and write.
        """
        self._slots[task.slot].owner = -1
        self._revoked[task.ticket] = _Revoked(task.slot, set(self.pids()))

    def _clear(self, process: int, ticket: int = -1) -> None:
        """Note that a process holds no attempt but, at most, those sent after this."""
        for old, revoked in list(self._revoked.items()):
            revoked.holders.discard(process)
            if old == ticket or not revoked.holders:
                del self._revoked[old]
                self.release(revoked.slot)

    # Tasks

    def submit(self, draw: Draw, seed: int, worker: int = 0) -> Task:
        """Queue a draw; there should be a free slot. Where workers have streams, name one."""
        keys = b"" if draw.keys is None else pickle.dumps(draw.keys, protocol=5)
        task = Task(draw, seed, self._free_slot(), worker=worker, keys=keys)
        self._send(task)
        return task

    def _send(self, task: Task) -> None:
        count = len(task.draw.indices)
        slot = self._slots[task.slot]
        end = HEADER + 8 + 16 * count
        memory = slot.map(end + len(task.keys))
        head = slot.view(HEADER, (1 + 2 * count,), np.dtype(np.int64))
        head[0] = task.seed
        head[1 : 1 + count] = task.draw.indices
        head[1 + count :] = task.draw.sweeps
        memory[end : end + len(task.keys)] = task.keys
        task.ticket = self._next_ticket
        self._next_ticket += 1
        self._tickets[task.ticket] = task
        slot.owner = task.ticket
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
        while not self._free:
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
        if self._poll.poll(milliseconds):
            self._receive()
            self._bury()
        else:
            self._look_for_lost()

    def awaited(self, task: Task) -> tuple[Task, Progress] | None:
        """Return the need of a task, and how far the worker at it has come.

        That is the task itself or, while no worker is at it, the one that has been longest at its
        sample; it may be one that was abandoned. None if no worker is at anything.
        """
        each = [self._control.progress(number) for number in range(len(self._places))]
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
        return all(place.ready for place in self._places)

    def _receive(self) -> None:
        """Read every result there is."""
        while True:
            try:
                data = os.read(self._results_read, MESSAGE.size * 64)
            except BlockingIOError:
                return
            for begin in range(0, len(data), MESSAGE.size):
                self._take(ResultMessage.unpack(data[begin : begin + MESSAGE.size]))
            if len(data) < MESSAGE.size * 64:
                return

    def _take(self, result: ResultMessage) -> None:
        # A worker does one thing after the other, and all it said before an attempt was revoked
        # was read before: its messages from now on come after that attempt.
        self._clear(result.process, result.ticket)
        if result.kind == READY:
            self._places[result.worker].ready = True
            self._failed_starts = 0
        elif result.kind == RETIRED:
            self._places[result.worker].retired = True
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
        slot = self._slots[task.slot]
        memory = slot.map(result.offset + result.length, there=True)
        data = memory[result.offset : result.offset + result.length]
        try:
            return remote_failure(data, task.draw, result.worker, result.process)
        except Exception as error:  # of any kind: the caller must not wait for ever
            return LoadingError(f"a worker's error cannot be read in this process: {error!r}")

    def _bury(self) -> None:
        """Replace processes that ended, and have their batches made again."""
        for number, place in enumerate(self._places):
            if place.process.exitcode is None:
                continue
            self._receive()  # it may have finished its batch first
            self._poll.unregister(place.process.sentinel)
            self._plumbing.processes.remove(place.process)
            self._clear(place.process.pid)
            progress = self._control.progress(number)
            if self._broken is None:
                if not place.retired:
                    self._mourn(place, progress)
                self._places[number] = _Place(number, self._started(number))

    def _mourn(self, place: _Place, progress: Progress) -> None:
        how = _manner(place.process.exitcode)
        if not place.ready:
            self._failed_starts += 1
            if self._failed_starts >= _MOST_FAILED_STARTS:
                self._broken = WorkerDied(
                    f"worker processes end before they are ready, {self._failed_starts} times "
                    f"in a row (the last {how}); the reason is on standard error. If the program "
                    "starts at its top level, put that under  if __name__ == '__main__':"
                )
            return
        if self.setting.work.streams:
            self._broken = WorkerDied(
                f"worker {place.number} (pid {place.process.pid}) {how} on its way through an "
                "iterable dataset, which cannot be taken up again in the middle. "
                f"{_hint(place.process.exitcode)}"
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
                f"a worker process (pid {place.process.pid}) {how} while it made the sample at "
                f"dataset index {index}; so did the one before it, over the same batch. "
                f"{_hint(place.process.exitcode)}"
            )

    def _again(self, task: Task) -> None:
        task.attempts += 1
        dead, task.slot = task.slot, self._free_slot()
        self.release(dead)
        self._send(task)

    def _look_for_lost(self) -> None:
        """Send again the tasks that a worker took from the pipe before it died unannounced.

        A ticket is lost if, at two looks, nothing waits in the pipes, all workers are ready and
        none is at it.
        """
        if self.setting.work.streams:  # a task for one worker is not lost while that one lives
            return
        (queue,) = self._queues
        if queue.unsent or not self.all_ready() or queue.waiting():
            self._suspects.clear()
            return
        at_work = {self._control.progress(number).ticket for number in range(len(self._places))}
        missing = set(self._tickets) - at_work
        lost, self._suspects = self._suspects & missing, missing
        if lost:
            self._receive()
        for ticket in sorted(lost & set(self._tickets)):
            task = self._tickets.pop(ticket)
            self._revoke(task)
            if ticket >= self._control.floor:
                task.slot = self._free_slot()
                self._send(task)


def _manner(exitcode: int) -> str:
    if exitcode >= 0:
        return f"exited with status {exitcode}"
    try:
        return f"was killed by {signal.Signals(-exitcode).name}"
    except ValueError:
        return f"was killed by signal {-exitcode}"


def _hint(exitcode: int) -> str:
    if exitcode == -signal.SIGKILL:
        return "SIGKILL is what a system short of memory sends: look at the kernel's log."
    if exitcode == -signal.SIGBUS:
        return "SIGBUS comes from a file that shrank, or from shared memory that is full."
    return "Read that sample in the main process to see why."
