"""The pipes between the parent and its workers, and everything that must be given back."""

from __future__ import annotations

import collections
import contextlib
import fcntl
import os
import struct
import termios
import time
from dataclasses import dataclass, field
from typing import Any

from hagane.training.iterators.processes.parcel import Parcel


class Queue:
    """A pipe of tasks; tasks beyond its room wait here."""

    def __init__(self, read: int, write: int):
        self.read = read
        self.write = write
        self.unsent: collections.deque[bytes] = collections.deque()
        os.set_blocking(write, False)

    def put(self, message: bytes) -> None:
        """Send a message, after the waiting ones."""
        self.unsent.append(message)
        self.flush()

    def flush(self) -> None:
        """Send waiting messages as far as there is room."""
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
class Plumbing:
    """The resources to give back in any case; apart from the pool, so that they can outlive it."""

    owner: int
    descriptors: list[int] = field(default_factory=list)
    processes: list[Any] = field(default_factory=list)
    parcel: Parcel | None = None

    def keep(self, descriptor: int) -> int:
        """Note a descriptor to close, and return it."""
        self.descriptors.append(descriptor)
        return descriptor

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
