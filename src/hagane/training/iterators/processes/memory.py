"""Shared memory for batches that no accident can leave behind.

One sparse, nameless file is cut into slots that are far larger than any batch; only the pages
that are written exist. A slot therefore grows where it is, without anyone being told, and the
memory goes back to the system with the last process that has the file open, however it ends.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import tempfile
from multiprocessing import reduction
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from hagane.training.errors import SharedMemoryFull

SPAN = 1 << 36  # bytes of file that a slot may fill: 64 GiB
CONTROL_BYTES = mmap.PAGESIZE * 16  # before the first slot: words that need no message
HEADER = 64  # bytes at the start of a slot: which attempt it belongs to
_ALIGNMENT = 64
_FIRST_MAPPING = 1 << 16
# A growth below this is not checked against the memory that is left.
_WORTH_CHECKING = 1 << 24


class Descriptor:
    """A file descriptor that travels to a worker among the arguments of its process."""

    def __init__(self, number: int):
        self.number = number

    def __reduce__(self) -> tuple[Any, ...]:
        return _received, (reduction.DupFd(self.number),)


def _received(duplicate: Any) -> Descriptor:
    return Descriptor(duplicate.detach())


def create(slots: int, folder: str | None = None) -> int:
    """Return the descriptor of a nameless file with room for some slots and the control words.

    Args:
        slots: Number of slots.
        folder: See ``sparse_file``.

    Raises:
        SharedMemoryFull: The system refuses the file.
    """
    descriptor = sparse_file("hagane-batches", CONTROL_BYTES + slots * SPAN, folder)
    try:
        what = f"the words that workers share need {CONTROL_BYTES:,} bytes"
        _fill(descriptor, 0, CONTROL_BYTES, what)
    except SharedMemoryFull:
        os.close(descriptor)
        raise
    return descriptor


def extend(descriptor: int, slots: int) -> None:
    """Give the file room for more slots; present slots keep their places.

    Raises:
        SharedMemoryFull: The system refuses it.
    """
    try:
        os.ftruncate(descriptor, CONTROL_BYTES + slots * SPAN)
    except OSError as error:
        raise SharedMemoryFull(_full(f"{slots} slots of a sparse file", error.strerror)) from error


def sparse_file(name: str, length: int, folder: str | None) -> int:
    """Return the descriptor of a file that no folder lists.

    Args:
        name: Its name in the system's lists of open files.
        length: Bytes that may be written; none of them exist yet.
        folder: Where the file lives; None takes anonymous memory where the system has it (Linux),
            else ``/dev/shm``, else the folder for temporary files.

    Raises:
        SharedMemoryFull: The system refuses the file.
    """
    descriptor = -1
    try:
        descriptor = _open(name, folder)
        os.ftruncate(descriptor, length)
    except OSError as error:
        if descriptor >= 0:
            os.close(descriptor)
        raise SharedMemoryFull(
            f"shared memory: cannot make a sparse file of {length:,} bytes in "
            f"{folder or 'anonymous memory'}: {error.strerror}; check 'ulimit -f' and 'ulimit -n'"
        ) from error
    return descriptor


def solid_file(name: str, length: int, folder: str | None) -> int:
    """Return the descriptor of a file like ``sparse_file``, all of whose bytes exist.

    Raises:
        SharedMemoryFull: There is no memory for them.
    """
    descriptor = sparse_file(name, length, folder)
    try:
        _fill(descriptor, 0, length, f"the dataset, sent to the workers, needs {length:,} bytes")
    except SharedMemoryFull:
        os.close(descriptor)
        raise
    return descriptor


def _fill(descriptor: int, offset: int, length: int, what: str) -> None:
    left = memory_left() if length >= _WORTH_CHECKING else None
    if left is not None and length > left:
        raise SharedMemoryFull(_full(what, f"{left:,} bytes of memory are left"))
    try:
        _allocate(descriptor, offset, length)
    except OSError as error:
        raise SharedMemoryFull(_full(what, error.strerror)) from error


def _open(name: str, folder: str | None) -> int:
    if folder is None and hasattr(os, "memfd_create"):
        return os.memfd_create(name, os.MFD_CLOEXEC)
    place = folder or ("/dev/shm" if Path("/dev/shm").is_dir() else tempfile.gettempdir())
    if hasattr(os, "O_TMPFILE"):
        try:
            return os.open(place, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o600)
        except OSError:
            if not Path(place).is_dir():
                raise
    descriptor, path = tempfile.mkstemp(prefix=name, dir=place)
    os.unlink(path)
    return descriptor


def _allocate(descriptor: int, offset: int, length: int) -> None:
    """Have pages there now, so that lack of memory is an error here and not a signal later."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(descriptor, offset, length)


def memory_left() -> int | None:
    """Return the bytes that this process may still fill, or None if the system doesn't say."""
    left = None
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                left = int(line.split()[1]) * 1024
        limit = Path("/sys/fs/cgroup/memory.max").read_text().strip()
        if limit != "max":
            free = int(limit) - int(Path("/sys/fs/cgroup/memory.current").read_text())
            left = free if left is None else min(left, free)
    except (OSError, ValueError):
        pass
    return left


class Slot:
    """The memory of one batch, as one process sees it.

    Views stay valid when the slot grows: a longer mapping shows the same pages.
    """

    def __init__(self, descriptor: int, number: int):
        self._descriptor = descriptor
        self._base = CONTROL_BYTES + number * SPAN
        self._mapped = 0
        self._memory: mmap.mmap | None = None
        self._words: memoryview | None = None
        self.used = HEADER

    @property
    def owner(self) -> int:
        """Ticket of the attempt that the slot belongs to; -1 once that was given up.

        The parent sets it; a worker looks before it does anything, and before it says that a
        batch is done.
        """
        return self._header()[0]

    @owner.setter
    def owner(self, ticket: int) -> None:
        self._header()[0] = ticket

    def _header(self) -> memoryview:
        if self._words is None:  # a longer mapping, made later, shows the same page
            self._words = memoryview(self.map(HEADER)).cast("q")
        return self._words

    def reserve(self, nbytes: int) -> int:
        """Return the aligned offset of new room for some bytes."""
        offset = -(-self.used // _ALIGNMENT) * _ALIGNMENT
        self.used = offset + nbytes
        if self.used > self._mapped or self._memory is None:
            self.map(self.used)
        return offset

    def map(self, length: int, there: bool = False) -> mmap.mmap:
        """Return a mapping of at least the first ``length`` bytes.

        ``there`` says that another process has written them, so that memory is not asked for.

        Raises:
            SharedMemoryFull: There is no memory for it.
        """
        if self._memory is not None and length <= self._mapped:
            return self._memory
        if length > SPAN:
            raise SharedMemoryFull(
                f"a batch of {length:,} bytes: expected at most {SPAN:,} bytes a batch; "
                "take a smaller batch_size"
            )
        target = max(_FIRST_MAPPING, length + length // 8)
        target = min(SPAN, -(-target // mmap.PAGESIZE) * mmap.PAGESIZE)
        if not there:
            extra = target - self._mapped
            what = f"a batch needs {length:,} bytes"
            _fill(self._descriptor, self._base + self._mapped, extra, what)
        self._memory = mmap.mmap(self._descriptor, target, offset=self._base)
        self._mapped = target
        return self._memory

    def view(self, offset: int, shape: tuple[int, ...], dtype: np.dtype[Any]) -> npt.NDArray[Any]:
        """Return an array over reserved room."""
        assert self._memory is not None
        return np.ndarray(shape, dtype, buffer=self._memory, offset=offset)

    def write(self, offset: int, data: Any) -> None:
        """Copy bytes into reserved room."""
        assert self._memory is not None
        self._memory[offset : offset + len(data)] = data

    def lease(self, length: int) -> Any:
        """Return an object over the first bytes that every array made on it keeps alive."""
        return (ctypes.c_ubyte * length).from_buffer(self.map(length, there=True))


def _full(what: str, reason: str | None) -> str:
    return (
        f"shared memory is full: {what}, but {reason}; take a smaller batch_size or n_prefetch, "
        "fewer n_processes, or a larger /dev/shm if that is the folder"
    )
