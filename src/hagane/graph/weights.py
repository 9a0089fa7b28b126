"""Weights that stay in their file until they are read."""

from __future__ import annotations

import contextlib
import mmap
import os
from pathlib import Path

import numpy as np
import onnx_ir as ir

from hagane.errors import InvalidModel
from hagane.machine import Lock


class WeightStore:
    """The bytes that weights lie in.

    Args:
        data: The bytes, if they are in memory.
        path: Their file, if not. It is mapped while weights are read; it may be renamed or
            removed meanwhile, but not changed.
    """

    def __init__(self, data: memoryview | None = None, path: Path | None = None):
        self._data, self._path = data, path
        self._map: mmap.mmap | None = None
        self._lock = Lock()
        self._file = -1
        if path is not None:
            self._file = os.open(path, os.O_RDONLY)
            self._state = self._look()

    def __del__(self) -> None:
        if getattr(self, "_file", -1) >= 0:
            with contextlib.suppress(OSError):
                os.close(self._file)

    def _look(self) -> tuple[int, int]:
        status = os.fstat(self._file)
        return status.st_size, status.st_mtime_ns

    def bytes(self) -> memoryview:
        """Return all bytes, without reading them.

        Raises:
            InvalidModel: The file was written to after it was opened.
        """
        if self._data is not None:
            return self._data
        with self._lock:
            if self._map is None:
                if self._look() != self._state:
                    raise InvalidModel(
                        f"'{self._path}' was changed after the model was loaded, and its weights "
                        "are needed again: make a new session"
                    )
                if self._state[0] == 0:
                    return memoryview(b"")
                self._map = mmap.mmap(self._file, 0, access=mmap.ACCESS_READ)
            return memoryview(self._map)

    def forget(self) -> None:
        """Give the pages that were read back to the system; they are read again when needed."""
        with self._lock:
            if self._map is not None and hasattr(mmap, "MADV_DONTNEED"):
                self._map.madvise(mmap.MADV_DONTNEED)

    def close(self) -> None:
        """Give up the mapping as soon as no array looks into it, and the pages read now."""
        self.forget()
        with self._lock:
            self._map = None


class StoredTensor(ir.LazyTensor):
    """A tensor whose content is a part of a ``WeightStore``; arrays of it cannot be written."""

    __slots__ = ("_offset", "store")

    def __init__(
        self, store: WeightStore, offset: int, dtype: ir.DataType, shape: ir.Shape, name: str | None
    ):
        super().__init__(self._read, dtype, shape, name=name)
        self.store, self._offset = store, offset

    def _read(self) -> ir.TensorProtocol:
        array = np.frombuffer(self.store.bytes(), self.dtype.numpy(), self.size, self._offset)
        shape = tuple(int(str(dim)) for dim in self.shape)
        return ir.Tensor(array.reshape(shape), dtype=self.dtype, name=self.name)


def stored_weights(graph: ir.Graph) -> set[WeightStore]:
    """Return where the weights of a graph lie, unless that is in arrays."""
    return {
        value.const_value.store
        for value in graph.initializers.values()
        if isinstance(value.const_value, StoredTensor)
    }
