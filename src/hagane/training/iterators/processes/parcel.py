"""The dataset on its way to the workers.

It is pickled once, its arrays beside the pickle in shared memory, and every worker sees the same
pages, copied only where it writes: a dataset in memory is there once, for any number of
workers.
"""

from __future__ import annotations

import mmap
import os
import pickle
from collections.abc import Callable
from multiprocessing import reduction
from typing import Any

from hagane.training.errors import DatasetError
from hagane.training.iterators.processes.memory import Descriptor, solid_file

_ALIGNMENT = 64


class Parcel:
    """A dataset and two functions, for samples and for workers; the parent packs, a worker opens.

    Exactly one of three ways: the content itself (``fork``), a file of shared memory, or, for
    objects that only travel while a process starts (locks, connections), the standard way.
    """

    def __init__(
        self,
        content: Any = None,
        memory: Descriptor | None = None,
        spans: tuple[tuple[int, int], ...] = (),
    ):
        self._content = content
        self._memory = memory
        self._spans = spans

    def __reduce__(self) -> tuple[Any, ...]:
        if self._memory is not None:
            return Parcel, (None, self._memory, self._spans)
        return _late, (bytes(reduction.ForkingPickler.dumps(self._content)),)

    def open(self) -> Any:
        """Return the content."""
        if self._memory is None:
            return self._content() if isinstance(self._content, _Late) else self._content
        # A private mapping: a dataset's writes into its arrays stay with this worker.
        memory = memoryview(mmap.mmap(self._memory.number, 0, access=mmap.ACCESS_COPY))
        parts = [memory[begin : begin + length] for begin, length in self._spans]
        return pickle.loads(parts[0], buffers=parts[1:])

    def close(self) -> None:
        """Give up the parent's hold on the memory."""
        if self._memory is not None:
            os.close(self._memory.number)
            self._memory = None


class _Late:
    """Bytes that are unpickled by the worker's own code, which reports failures."""

    def __init__(self, data: bytes):
        self._data = data

    def __call__(self) -> Any:
        return pickle.loads(self._data)


def _late(data: bytes) -> Parcel:
    return Parcel(_Late(data))


def pack(
    dataset: Any,
    collate: Callable[[list[Any]], Any] | None,
    begin: Callable[[int], object] | None,
    method: str,
    folder: str | None,
) -> Parcel:
    """Return the parcel for a way of starting processes.

    Raises:
        DatasetError: The dataset, ``collate`` or ``begin`` cannot be pickled.
    """
    content = (dataset, collate, begin)
    if method == "fork":
        return Parcel(content)
    buffers: list[pickle.PickleBuffer] = []
    try:
        data = pickle.dumps(content, protocol=5, buffer_callback=buffers.append)
    except RuntimeError:  # locks and connections travel only while a process is started
        return Parcel(content)
    except Exception as error:
        what = "worker_init" if _picklable((dataset, collate)) else "collate"
        if not _picklable(dataset):
            what = f"the dataset ({type(dataset).__name__})"
        raise DatasetError(
            f"{what} cannot be pickled, as start_method='{method}' needs: {error}; define it at "
            "the top level of a module, or pass start_method='fork'"
        ) from error
    spans, end = [], 0
    parts = [memoryview(data), *(buffer.raw() for buffer in buffers)]
    for part in parts:
        start = -(-end // _ALIGNMENT) * _ALIGNMENT
        spans.append((start, part.nbytes))
        end = start + part.nbytes
    descriptor = solid_file("hagane-dataset", end, folder)
    with mmap.mmap(descriptor, end) as memory:
        for (start, length), part in zip(spans, parts, strict=True):
            memory[start : start + length] = part
    return Parcel(None, Descriptor(descriptor), tuple(spans))


def _picklable(dataset: Any) -> bool:
    try:
        pickle.dumps(dataset, protocol=5, buffer_callback=lambda _: None)
    except Exception:
        return False
    return True
