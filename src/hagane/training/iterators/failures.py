"""Errors on their way from the place where a sample is made to the caller."""

from __future__ import annotations

import pickle
import traceback

from hagane.training.errors import SampleError, SharedMemoryFull, sample_error_class
from hagane.training.iterators.state import Draw


class RemoteTraceback(Exception):
    """The traceback of another process, shown as the cause of an error."""

    def __init__(self, text: str):
        super().__init__(text)
        self.text = text

    def __str__(self) -> str:
        return f"\n{self.text}"


def pack_failure(error: BaseException, place: int) -> bytes:
    """Return an error as bytes that any process can read.

    The class goes apart from the text, pickled by itself: the reader may not be able to import
    it, and then still has the text.
    """
    try:
        text = "".join(traceback.format_exception(error))
    except Exception:  # a __str__, or a source file, that raises
        text = f"{type(error).__name__} (its traceback cannot be formatted)\n"
    try:
        message = str(error)
    except Exception:
        message = f"{type(error).__name__} (its text cannot be made)"
    try:
        kind = pickle.dumps(type(error), protocol=5)
    except Exception:
        kind = b""
    return pickle.dumps((place, text, kind, message), protocol=5)


def _error_class(data: bytes) -> type[BaseException] | None:
    """Return the class that was pickled, or None if this process cannot import it."""
    try:
        kind = pickle.loads(data)
    except Exception:
        return None
    return kind if isinstance(kind, type) and issubclass(kind, BaseException) else None


def remote_failure(data: bytes, draw: Draw, worker: int, process: int) -> Exception:
    """Return the error that a worker wrote, ready to be raised."""
    if not data:
        return SharedMemoryFull(
            "shared memory is full: a worker found no room for a batch; take a smaller batch_size "
            "or n_prefetch, or fewer n_processes"
        )
    place, text, named, message = pickle.loads(data)
    kind = _error_class(named)
    if kind is not None and issubclass(kind, SharedMemoryFull):
        return SharedMemoryFull(message)
    index = int(draw.indices[place]) if place < len(draw.indices) else -1
    where = f"worker {worker} (pid {process})"
    return sample_failure(kind, message, index, where, text)


def sample_failure(
    kind: type[BaseException] | None, message: str, index: int, where: str, text: str
) -> SampleError:
    """Return the error for a sample that could not be made."""
    name = "error" if kind is None else kind.__name__
    last = text.strip().splitlines()[-1] if text.strip() else f"{name}: {message}"
    cause = RemoteTraceback(text)
    made = SampleError if kind is None else sample_error_class(kind)
    error = made.__new__(made)
    SampleError.__init__(
        error,
        f"the sample at dataset index {index} could not be made, in {where}: {last}\n\n{text}",
        index,
        text,
    )
    error.__cause__ = cause
    return error


def local_failure(error: Exception, index: int) -> SampleError:
    """Return the error for a sample that could not be made in this process."""
    text = "".join(traceback.format_exception(error))
    return sample_failure(type(error), str(error), index, "this process", text)
