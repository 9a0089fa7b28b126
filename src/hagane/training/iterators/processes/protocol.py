"""Messages between the parent and its workers, of fixed size, and a control page.

Tasks go through one pipe that all workers read, results through one that all write. Reads and
writes of a pipe that are no longer than ``PIPE_BUF`` are atomic, so a worker that is killed at
any moment holds no lock and leaves no half message.
"""

from __future__ import annotations

import mmap
import struct
from dataclasses import dataclass
from typing import NamedTuple

from hagane.training.iterators.processes.memory import CONTROL_BYTES

MESSAGE = struct.Struct("<8q")
_ENTRY = 8  # control words of a worker
MOST_WORKERS = 511
_TEXT_BEGIN = (MOST_WORKERS + 1) * _ENTRY * 8

READY, DONE, FAILED, SKIPPED, RETIRED, UNUSABLE, ENDED = range(7)


class TaskMessage(NamedTuple):
    """Make the batch whose indices and sweeps stand at the start of ``slot``.

    Attributes:
        ticket: Unique to one attempt at one batch; its slot bears it as owner.
        slot: Slot to read the draw from and write the batch to.
        samples: Number of samples.
        keys: Bytes of a pickle, behind the draw, of the dataset's keys; 0 if that
            are the indices.
    """

    ticket: int
    slot: int
    samples: int
    keys: int = 0

    def pack(self) -> bytes:
        """Return the bytes of the message."""
        return MESSAGE.pack(*self, 0, 0, 0, 0)

    @classmethod
    def unpack(cls, data: bytes) -> TaskMessage:
        """Return the message that bytes hold."""
        return cls(*MESSAGE.unpack(data)[:4])


class ResultMessage(NamedTuple):
    """The outcome of a task.

    Attributes:
        kind: READY, DONE, FAILED, SKIPPED, RETIRED, UNUSABLE or ENDED; the last says that the
            worker's part of an iterable dataset has no more batches.
        worker: Number of the worker's place.
        process: Process id of the worker.
        ticket: The task's ticket; -1 where there is no task.
        offset: Where in the slot the layout, or the pickled failure, begins. With UNUSABLE 1 if
            it was ``worker_init`` that raised.
        length: Its length in bytes.
        buffers: Number of out-of-band buffers listed behind it.
    """

    kind: int
    worker: int
    process: int
    ticket: int = -1
    offset: int = 0
    length: int = 0
    buffers: int = 0

    def pack(self) -> bytes:
        """Return the bytes of the message."""
        return MESSAGE.pack(*self, 0)

    @classmethod
    def unpack(cls, data: bytes) -> ResultMessage:
        """Return the message that bytes hold."""
        return cls(*MESSAGE.unpack(data)[:7])


@dataclass(frozen=True, slots=True)
class Progress:
    """A worker's activity: ``ticket`` is -1 between tasks; ``since`` in nanoseconds."""

    ticket: int
    place: int
    since: int


class Control:
    """Words that parent and workers share without messages.

    The first is the lowest ticket that is still wanted; each worker has words for the task and
    the sample that it is at, so that they can be read also after it was killed.
    """

    def __init__(self, descriptor: int):
        self._memory = mmap.mmap(descriptor, CONTROL_BYTES)
        self.words = memoryview(self._memory).cast("q")

    @property
    def floor(self) -> int:
        """The lowest ticket that is still wanted."""
        return self.words[0]

    @floor.setter
    def floor(self, ticket: int) -> None:
        self.words[0] = ticket

    def clear(self, worker: int) -> None:
        """Say that a worker is at no task."""
        self.words[self.base(worker)] = -1

    def base(self, worker: int) -> int:
        """Return the number of a worker's first word: ticket, place, since."""
        return (worker + 1) * _ENTRY

    def progress(self, worker: int) -> Progress:
        """Return the activity of a worker."""
        base = self.base(worker)
        return Progress(*self.words[base : base + 3].tolist())

    def leave_text(self, text: str) -> None:
        """Leave the end of a text for the parent; a worker that cannot start has no slot."""
        data = text.encode()[-(CONTROL_BYTES - _TEXT_BEGIN) :]
        self._memory[_TEXT_BEGIN:CONTROL_BYTES] = data.ljust(CONTROL_BYTES - _TEXT_BEGIN, b"\0")

    def text(self) -> str:
        """Return the text that was left last."""
        return self._memory[_TEXT_BEGIN:CONTROL_BYTES].rstrip(b"\0").decode(errors="replace")
