"""Errors of making batches.

The tree continues that of ``hagane.errors``::

    HaganeError
    ├── InvalidArgument (ValueError)
    │   ├── DatasetError                        a dataset cannot be used as one
    │   │   └── NoSuchData (FileNotFoundError)  a file that it names is not there
    │   └── InvalidState                        a saved state does not fit the iterator
    ├── Diverged          (RuntimeError)        parameters, or a loss, are no longer finite
    ├── NotProvided       (NotImplementedError) a part of Chainer that hagane lacks
    └── LoadingError      (RuntimeError)        a batch could not be made
        ├── SampleError                         the dataset raised; also of the type it raised
        ├── CollationError (TypeError)          samples that make no batch
        ├── LoadingTimeout                      a batch took longer than ``timeout``
        ├── WorkerDied                          a process ended twice over the same batch
        ├── SharedMemoryFull (MemoryError)      no room for another batch
        └── IteratorFinalized (NotImplementedError)  used after ``finalize``
"""

from __future__ import annotations

from hagane.errors import HaganeError, InvalidArgument


class DatasetError(InvalidArgument):
    """A dataset, or an index into one, that cannot be used."""


class NoSuchData(DatasetError, FileNotFoundError):
    """A file of a dataset that does not exist."""


class InvalidState(InvalidArgument):
    """A saved state that does not fit the iterator it is loaded into."""


class NotProvided(HaganeError, NotImplementedError):
    """Something of Chainer's interface that hagane does not have."""


class Diverged(HaganeError, RuntimeError):
    """Parameters that hold a NaN or an infinity, or a loss that is NaN."""


class LoadingError(HaganeError, RuntimeError):
    """A batch that could not be made."""


class SampleError(LoadingError):
    """The dataset raised while it made a sample.

    Errors of an iterator are of this class and, where Python allows it, also of the class that
    the dataset raised, so that ``except ValueError`` catches a ``ValueError`` from a worker. A
    class that only the worker can import is left out; its name is in the text.

    Attributes:
        index: Index that the dataset was asked for.
        remote_traceback: Text of the traceback where the sample was made.
    """

    def __init__(self, message: str, index: int = -1, remote_traceback: str = ""):
        Exception.__init__(self, message)
        self.message = message
        self.index = index
        self.remote_traceback = remote_traceback

    def __str__(self) -> str:
        return self.message

    def __reduce__(self) -> tuple[object, ...]:
        return SampleError, (self.message, self.index, self.remote_traceback)


class CollationError(LoadingError, TypeError):
    """Samples that default collation cannot put together."""


class LoadingTimeout(LoadingError):
    """A batch that took longer than a loader's ``timeout``."""


class WorkerDied(LoadingError):
    """A worker process ended, twice, while it made the same batch."""


class SharedMemoryFull(LoadingError, MemoryError):
    """The shared memory that holds batches cannot grow."""


class IteratorFinalized(LoadingError, NotImplementedError):
    """An iterator used after ``finalize``."""


def sample_error_class(original: type[BaseException]) -> type[SampleError]:
    """Return a class that is both ``SampleError`` and the class of the original error.

    StopIteration and errors that end programs are left out: raised from ``__next__`` they would
    end a loop, or the program, as if nothing had happened.
    """
    if original not in _made:
        _made[original] = _sample_error_class(original)
    return _made[original]


_made: dict[type[BaseException], type[SampleError]] = {}


def _sample_error_class(original: type[BaseException]) -> type[SampleError]:
    if not issubclass(original, Exception) or issubclass(original, StopIteration):
        return SampleError
    if issubclass(original, SampleError):
        return SampleError
    try:
        return type(original.__name__, (SampleError, original), {"__module__": original.__module__})
    except Exception:  # two C layouts that do not go together, or a class that is not to be derived
        return SampleError
