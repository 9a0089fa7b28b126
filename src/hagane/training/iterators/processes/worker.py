"""A worker process: takes draws, makes their samples, writes batches where it is told."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import pickle
import select
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hagane.training.errors import SharedMemoryFull
from hagane.training.iterators.failures import pack_failure
from hagane.training.iterators.processes.gather import gather, gatherable
from hagane.training.iterators.processes.layout import Layout, RaggedColumn
from hagane.training.iterators.processes.memory import HEADER, Descriptor, Slot
from hagane.training.iterators.processes.parcel import Parcel
from hagane.training.iterators.processes.protocol import (
    DONE,
    ENDED,
    FAILED,
    MESSAGE,
    READY,
    RETIRED,
    SKIPPED,
    UNUSABLE,
    Control,
    ResultMessage,
    TaskMessage,
)
from hagane.training.iterators.processes.together import suits
from hagane.training.iterators.processes.writer import BatchWriter, Collate, UnpicklableSample
from hagane.training.iterators.randomness import GlobalGenerators, Loader
from hagane.training.iterators.streams import Stream, WorkerInfo, seed_globals, set_worker_info

_PR_SET_PDEATHSIG = 1


@dataclass(frozen=True, slots=True)
class Work:
    """The workers' use of the dataset.

    Attributes:
        stacked: Whether batches are trees of stacked columns.
        limit: Bytes of arrays in a slot, or None.
        most_tasks: Tasks after which a worker ends, or None.
        workers: Number of workers.
        seed: The start of the global generators, together with a worker's number; None leaves
            them as they are.
        streams: Whether the dataset is iterable, and each worker goes through its own copy.
        drop_last: Whether a stream's last batch is left out if it is short.
        many: Whether the dataset gives a batch of samples at once, by ``__getitems__``.
        apart: Whether batches are dealt out to the workers in turn, and generators that
            ``worker_init`` has set run on from sample to sample, as PyTorch has it.
    """

    stacked: bool
    limit: int | None
    most_tasks: int | None
    workers: int = 1
    seed: int | None = None
    streams: bool = False
    drop_last: bool = False
    many: bool = False
    apart: bool = False

    @property
    def queues(self) -> int:
        """The number of queues of tasks: one for all workers, or one for each."""
        return self.workers if self.streams or self.apart else 1


@dataclass(frozen=True, slots=True)
class Assignment:
    """The start of a worker.

    Attributes:
        number: Its place among the workers.
        memory: The file of the slots.
        tasks: Pipe to read tasks from.
        results: Pipe to write results to.
        close: Descriptors to close first; a forked worker must not keep the parent's ends.
        parent: Process id of the parent.
        tied: Whether the kernel may end the worker with the thread that started it.
        dataset: The dataset, the function of a list of samples, that of the worker's number.
        work: Its use of them.
        collects: Whether it collects garbage by itself, as the parent does.
    """

    number: int
    memory: Descriptor
    tasks: Descriptor
    results: Descriptor
    close: tuple[int, ...]
    parent: int
    tied: bool
    dataset: Parcel
    work: Work
    collects: bool = True


def _single_threaded() -> None:
    """Keep PyTorch, if the dataset brought it, from starting a thread for each core here."""
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.set_num_threads(1)


class _Abandoned(Exception):
    """The batch in the making is no longer wanted."""


def main(assignment: Assignment) -> None:
    """Serve tasks until the parent closes the pipe, or ends."""
    # What the parent has let go may own threads, which a forked process lacks: to delete sessions
    # of some libraries is a crash here.
    gc.freeze()
    if assignment.collects:
        gc.enable()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the parent, which ends us
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    for descriptor in assignment.close:
        with contextlib.suppress(OSError):
            os.close(descriptor)
    _die_with(assignment.parent, assignment.tied)
    worker = _Worker(assignment)
    worker.serve()


def _die_with(parent: int, tied: bool) -> None:
    """Arrange for this process to end when the parent does, however the parent ends."""
    if tied and sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    threading.Thread(target=_watch, args=(parent,), name="parent-watch", daemon=True).start()


def _watch(parent: int) -> None:
    try:
        if hasattr(os, "pidfd_open"):
            poll = select.poll()
            poll.register(os.pidfd_open(parent), select.POLLIN)
            poll.poll()
        else:
            while True:
                os.kill(parent, 0)
                time.sleep(0.5)
    except OSError:
        pass
    os._exit(1)


class _Worker:
    def __init__(self, assignment: Assignment):
        self._assignment = assignment
        self._number = assignment.number
        self._work = assignment.work
        self._tasks = assignment.tasks.number
        self._results = assignment.results.number
        self._control = Control(assignment.memory.number)
        self._words = self._control.words
        self._base = self._control.base(self._number)
        self._slots: dict[int, Slot] = {}
        self._ragged: frozenset[int] = frozenset()
        self._together = False
        self._loader: Loader | None = None
        self._collate: Collate | None = None
        self._sources: Any = None
        self._stream: Stream | None = None

    def serve(self) -> None:
        """Do tasks until there are no more."""
        self._control.clear(self._number)
        try:
            dataset, self._collate, begin = self._assignment.dataset.open()
            self._open(dataset)
        except BaseException:
            self._control.leave_text(traceback.format_exc())
            self._send(UNUSABLE)
            return
        try:
            if begin is not None:
                self._initialise(begin)
        except BaseException:
            self._control.leave_text(traceback.format_exc())
            self._send(UNUSABLE, -1, 1)
            return
        self._send(READY)
        done = 0
        while True:
            data = os.read(self._tasks, MESSAGE.size)
            if len(data) < MESSAGE.size:
                return
            self._do(TaskMessage.unpack(data))
            done += 1
            if done == self._work.most_tasks:
                self._send(RETIRED)
                return

    def _open(self, dataset: Any) -> None:
        work = self._work
        _single_threaded()
        seed = 0
        if work.seed is not None:
            seed = work.seed + self._number
            seed_globals(seed)
        set_worker_info(WorkerInfo(self._number, work.workers, seed, dataset))
        self._loader = Loader(dataset, keep_global=False, many=work.many)
        if work.streams:
            self._stream = Stream(dataset, self._number)
        elif self._collate is None and not work.many:
            self._sources = gatherable(dataset)

    def _initialise(self, begin: Callable[[int], object]) -> None:
        """Call the caller's function; generators that it sets are left to run on."""
        if not self._work.apart:
            begin(self._number)
            return
        generators = GlobalGenerators()
        before = generators.capture()
        begin(self._number)
        if generators.same(before, generators.capture()):
            return
        assert self._loader is not None
        self._loader.use_global = False
        if self._stream is not None:
            self._stream.seeded = True

    def _send(self, kind: int, ticket: int = -1, *place: int) -> None:
        message = ResultMessage(kind, self._number, os.getpid(), ticket, *place)
        try:
            os.write(self._results, message.pack())
        except BrokenPipeError:  # the parent has closed the pool
            os._exit(0)

    def _do(self, task: TaskMessage) -> None:
        words, base = self._words, self._base
        words[base + 1] = 0
        words[base + 2] = time.monotonic_ns()
        words[base] = task.ticket
        slot = self._slots.get(task.slot)
        if slot is None:
            slot = Slot(self._assignment.memory.number, task.slot)
            self._slots[task.slot] = slot
        try:
            self._check_wanted(task, slot)
            place = self._make(task, slot)
            self._check_wanted(task, slot)
            if place is None:
                self._send(ENDED, task.ticket)
            else:
                self._send(DONE, task.ticket, *place)
        except _Abandoned:
            self._send(SKIPPED, task.ticket)
        except UnpicklableSample as error:
            self._fail(task, slot, error.error, error.place)
        except BaseException as error:
            self._fail(task, slot, error, words[base + 1])
        words[base] = -1

    def _check_wanted(self, task: TaskMessage, slot: Slot) -> None:
        """Raise _Abandoned if the batch, or this attempt at it, was given up.

        A slot that was given up is not used again before this worker has said that it saw so;
        its writes meanwhile went to memory that nobody reads.
        """
        if task.ticket < self._words[0] or slot.owner != task.ticket:
            raise _Abandoned

    def _make(self, task: TaskMessage, slot: Slot) -> tuple[int, int, int] | None:
        """Return where the batch's layout lies, or None at the end of a stream."""
        end = HEADER + 8 + 16 * task.samples
        memory = slot.map(end + task.keys)
        head = slot.view(HEADER, (1 + 2 * task.samples,), np.dtype(np.int64)).copy()
        keys = pickle.loads(memory[end : end + task.keys]) if task.keys else None
        seed, indices = int(head[0]), head[1 : 1 + task.samples]
        work = self._work
        writer = BatchWriter(
            slot, task.samples, work.limit, work.stacked, self._ragged, self._together
        )
        layout: Layout | None = None
        if self._sources is not None and keys is None:
            layout = gather(self._sources, indices, writer)
        if layout is None:
            layout = self._load(task, seed, indices, head[1 + task.samples :], keys, writer)
        return None if layout is None else writer.write_layout(layout)

    def _load(
        self,
        task: TaskMessage,
        seed: int,
        indices: Any,
        sweeps: Any,
        keys: Sequence[Any] | None,
        writer: BatchWriter,
    ) -> Layout | None:
        words, slot, clock = self._words, writer.slot, time.monotonic_ns
        at, since = self._base + 1, self._base + 2
        samples: list[Any] = []

        def begin() -> Any:
            samples.clear()
            accept = writer.restart()
            return accept if self._collate is None else samples.append

        def entering(place: int) -> None:
            words[at] = place
            words[since] = clock()
            self._check_wanted(task, slot)

        if self._stream is not None:
            epoch = int(sweeps[0])
            writer.count = self._stream.take(len(indices), seed, epoch, begin(), entering)
            if writer.count == 0 or (self._work.drop_last and writer.count < len(indices)):
                return None
        else:
            assert self._loader is not None
            self._loader.load(seed, indices.tolist(), sweeps.tolist(), begin, entering, keys)
        if self._collate is not None:
            return writer.whole(self._collate(samples))
        layout = writer.finish()
        self._ragged = frozenset(
            number
            for number, column in enumerate(layout.columns)
            if isinstance(column, RaggedColumn)
        )
        self._together = suits(layout)
        return layout

    def _fail(self, task: TaskMessage, slot: Slot, error: BaseException, place: int) -> None:
        if slot.owner != task.ticket:
            self._send(SKIPPED, task.ticket)
            return
        data = pack_failure(error, place)
        slot.used = HEADER
        try:
            offset = slot.reserve(len(data))
            slot.write(offset, data)
        except SharedMemoryFull:
            offset, data = 0, b""
        self._send(FAILED, task.ticket, offset, len(data))
