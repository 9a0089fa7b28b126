"""The worker processes: started, polled, and replaced when they end."""

from __future__ import annotations

import gc
import multiprocessing
import os
import select
import signal
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from hagane.training.iterators.processes import worker as worker_module
from hagane.training.iterators.processes.memory import Descriptor
from hagane.training.iterators.processes.parcel import Parcel
from hagane.training.iterators.processes.pipes import Plumbing, Queue
from hagane.training.iterators.processes.protocol import Control, Progress
from hagane.training.iterators.processes.worker import Assignment, Work
from hagane.training.iterators.processes.writer import Collate


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
class Place:
    """One worker's place: processes that die leave it to the next."""

    number: int
    process: Any
    ready: bool = False
    retired: bool = False

    @property
    def end(self) -> str:
        """The manner in which the process ended, as the predicate of a sentence."""
        code = self.process.exitcode
        if code >= 0:
            return f"exited with status {code}"
        try:
            return f"was killed by {signal.Signals(-code).name}"
        except ValueError:
            return f"was killed by signal {-code}"

    @property
    def hint(self) -> str:
        """The next step in the search for the cause of the end."""
        if self.process.exitcode == -signal.SIGKILL:
            return "SIGKILL is what a system short of memory sends: look at the kernel's log."
        if self.process.exitcode == -signal.SIGBUS:
            return "SIGBUS comes from a file that shrank, or from shared memory that is full."
        return "Read that sample in the main process to see why."


class Crew:
    """Worker processes, one a place.

    Args:
        setting: The pool's.
        plumbing: Takes the processes, to end them in any case.
        memory: Descriptor of the memory that batches are written into.
        parcel: The dataset.
        queues: Pipes of tasks: one for all workers, or one each.
        results: Both ends of the pipe of results.
    """

    def __init__(
        self,
        setting: Setting,
        plumbing: Plumbing,
        memory: int,
        parcel: Parcel,
        queues: Sequence[Queue],
        results: tuple[int, int],
    ):
        self._setting = setting
        self._plumbing = plumbing
        self._memory = memory
        self._parcel = parcel
        self._queues = queues
        self._results = results
        self.control = Control(memory)
        self._context: Any = multiprocessing.get_context(setting.method)
        self._poll = select.poll()
        self._poll.register(results[0], select.POLLIN)
        if setting.method == "forkserver":
            self._context.set_forkserver_preload(["__main__", worker_module.__name__])
        self.places = [Place(each, self._started(each)) for each in range(setting.workers)]

    def _started(self, number: int) -> Any:
        self.control.clear(number)
        read, write = self._results
        collects = gc.isenabled()
        parents_ends = (*(queue.write for queue in self._queues), read)
        assignment = Assignment(
            number,
            Descriptor(self._memory),
            Descriptor(self._queues[number % len(self._queues)].read),
            Descriptor(write),
            parents_ends if self._setting.method == "fork" else (),
            os.getpid(),
            # The kernel's signal comes with the end of the thread that started the process.
            self._setting.method == "forkserver"
            or threading.current_thread() is threading.main_thread(),
            self._parcel,
            self._setting.work,
            collects,
        )
        started = self._context.Process(
            target=worker_module.main,
            args=(assignment,),
            name=f"hagane-loader-{number}",
            daemon=True,
        )
        if self._setting.method == "fork":
            gc.disable()  # until the worker has set aside what it inherits
        try:
            started.start()
        finally:
            if collects:
                gc.enable()
        self._plumbing.processes.append(started)
        self._poll.register(started.sentinel, select.POLLIN)
        return started

    def pids(self) -> list[int]:
        """Return the process ids of the workers."""
        return [place.process.pid for place in self.places]

    def wait(self, milliseconds: float) -> bool:
        """Wait for a result or the end of a process; return whether there is one."""
        return bool(self._poll.poll(milliseconds))

    def progress(self) -> list[Progress]:
        """Return the progress of each worker."""
        return [self.control.progress(number) for number in range(len(self.places))]

    def all_ready(self) -> bool:
        """Say whether every worker has opened the dataset."""
        return all(place.ready for place in self.places)

    def ended(self) -> Iterator[Place]:
        """Yield the place of each process that has ended."""
        for place in list(self.places):
            if place.process.exitcode is not None:
                yield place

    def dismiss(self, place: Place) -> None:
        """Forget a process that ended."""
        self._poll.unregister(place.process.sentinel)
        self._plumbing.processes.remove(place.process)

    def replace(self, place: Place) -> None:
        """Start a process in the place of a dismissed one."""
        self.places[place.number] = Place(place.number, self._started(place.number))


def warn_of_threads(setting: Setting) -> None:
    """Warn if processes are to be forked while other threads run."""
    own = threading.current_thread()
    # That of eager programs is none of the child's, which makes its locks anew.
    others = [
        each.name
        for each in threading.enumerate()
        if each is not own and each.name != "hagane-programs"
    ]
    if setting.method == "fork" and setting.warns and others:
        warnings.warn(
            f"start_method='fork' while threads run ({', '.join(others[:5])}): a lock that one "
            "of them holds stays locked in the workers for ever; start the iterator before "
            "the threads, or leave start_method at 'forkserver'",
            RuntimeWarning,
            stacklevel=5,
        )
