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


def remote_failure(data: bytes, draw: Draw, worker: int, process: int) -> Exception:
    """Return the error that a worker wrote, ready to be raised."""
    if not data:
        return SharedMemoryFull(
            "shared memory is full: a worker found no room for a batch; take a smaller batch_size "
            "or n_prefetch, or fewer n_processes"
        )
    place, text, kind, message = pickle.loads(data)
    if kind is not None and issubclass(kind, SharedMemoryFull):
        return SharedMemoryFull(message)
    index = int(draw.indices[place])
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
