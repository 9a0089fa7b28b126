"""Common parts of datasets: one sample, or several, by index."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any, Generic, TypeVar

import numpy as np

from hagane.training.errors import DatasetError, NoSuchData

T = TypeVar("T")


def many(index: Any) -> bool:
    """Say whether an index asks for several samples: a slice, a list or an array."""
    return isinstance(index, slice | list) or (isinstance(index, np.ndarray) and index.ndim > 0)


def normal_index(index: Any, length: int, what: str) -> int:
    """Return an index from the front.

    Raises:
        IndexError: There is no such sample.
    """
    number = int(index)
    if not -length <= number < length:
        raise IndexError(f"{what}: expected an index below {length}, got {number}")
    return number + length if number < 0 else number


class DatasetMixin:
    """Base of datasets that define ``__len__`` and ``get_example``.

    ``dataset[i]`` is an example; a slice, a list or an array of indices gives a list of them.
    """

    def __len__(self) -> int:
        raise NotImplementedError(f"{type(self).__name__} lacks __len__")

    def get_example(self, i: int) -> Any:
        """Return the example at an index from 0 to the length."""
        raise NotImplementedError(f"{type(self).__name__} lacks get_example(i)")

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self.get_example(i) for i in range(*index.indices(len(self)))]
        if many(index):
            chosen = np.asarray(index)
            if chosen.dtype == bool:
                chosen = np.flatnonzero(chosen)
            return [self._example(i) for i in chosen.tolist()]
        return self._example(index)

    def _example(self, index: Any) -> Any:
        return self.get_example(normal_index(index, len(self), type(self).__name__))


class PerProcess(Generic[T]):
    """Something opened, such as a file, that processes and threads must not share.

    It opens again in each thread and after a fork, and travels to workers closed.
    """

    def __init__(self, opener: Callable[[], T]):
        self._opener = opener
        self._local = threading.local()
        self._opened: list[T] = []
        self._closed = False

    def get(self) -> T:
        """Return it, opened by this thread of this process.

        Raises:
            DatasetError: It was closed.
        """
        if self._closed:
            raise DatasetError("dataset: it was closed and cannot be read")
        if getattr(self._local, "process", None) != os.getpid():
            self._local.value = self._opener()
            self._local.process = os.getpid()
            self._opened.append(self._local.value)
        value: T = self._local.value
        return value

    def close(self) -> None:
        """Close the files of all threads; the dataset cannot be read after that."""
        self._closed = True
        while self._opened:
            value = self._opened.pop()
            if hasattr(value, "close"):
                value.close()

    def __del__(self) -> None:
        self.close()

    def __reduce__(self) -> tuple[Any, ...]:
        return PerProcess, (self._opener,)


def existing(path: Any) -> str:
    """Return a path as text.

    Raises:
        NoSuchData: There is no file there.
    """
    name = os.fspath(path)
    if not os.path.isfile(name):
        raise NoSuchData(f"dataset: there is no file '{name}'")
    return str(name)
