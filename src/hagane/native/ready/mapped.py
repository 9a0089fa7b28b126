"""Machine code and memory in this process: the engine, models' libraries, files, packed weights."""

from __future__ import annotations

import ctypes
import mmap
from pathlib import Path
from typing import NamedTuple
from weakref import WeakValueDictionary

import numpy as np

from hagane.machine import Lock


class Engine:
    """The functions of the C files that make the engine."""

    def __init__(self, library: Path):
        self.path = library
        self.library = ctypes.CDLL(str(library))
        pointer, number = ctypes.c_void_p, ctypes.c_int64
        self.create = self._function("hg_create", pointer, number, number, number)
        self.destroy = self._function("hg_destroy", None, pointer)
        self.set_phase = self._function(
            "hg_set_phase", None, pointer, number, pointer, pointer, pointer, number, number
        )
        self.add_border = self._function("hg_add_border", number, pointer, number, pointer)
        self.open = self._function("hg_open", pointer, pointer, pointer, number, pointer)
        self.close = self._function("hg_close", None, pointer)
        self.fit = self._function("hg_fit", number, pointer, pointer)
        self.measure = self._function("hg_measure", number, pointer, pointer, pointer)
        self.tell = self._function("hg_tell", None, pointer, pointer)
        self.list = self._function(
            "hg_list", None, pointer, pointer, number, pointer, pointer, pointer
        )
        self.clear_more = self._function("hg_clear_more", None, pointer, ctypes.c_double)
        self.point = self._function("hg_point", None, pointer, pointer, pointer)
        self.shape = self._function("hg_shape", None, pointer, number, pointer)
        self.shapes = self._function("hg_shapes", None, pointer, pointer)
        self.grown = self._function("hg_grown", pointer, pointer, number, pointer)
        self.failed = self._function("hg_failed", number, pointer, number, pointer)
        self.run = self._function(
            "hg_run", ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p
        )
        self.failure_value = self._function("hg_failure_value", ctypes.c_int64, ctypes.c_void_p)
        self.watch = self._function(
            "hg_watch", None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p
        )
        self.allocate = self._function("hg_allocate", ctypes.c_void_p, ctypes.c_size_t)
        self.allocated = self._function("hg_allocated", ctypes.c_int64)
        self.release = self._function("hg_release", None, ctypes.c_void_p, ctypes.c_size_t)

    def address(self, name: str) -> int:
        """Return where a function lies."""
        return ctypes.cast(getattr(self.library, name), ctypes.c_void_p).value or 0

    def _function(self, name: str, result: object, *arguments: object) -> ctypes._NamedFuncPointer:
        function = getattr(self.library, name)
        function.restype = result
        function.argtypes = list(arguments)
        return function  # type: ignore[no-any-return]


class Memory:
    """Zeroed memory from the engine, given back with the object."""

    def __init__(self, engine: Engine, size: int):
        self._engine, self.size = engine, size
        self.address: int = engine.allocate(size) or 0
        if not self.address:
            raise MemoryError(f"{size} bytes for a model's values or weights")

    def __del__(self) -> None:
        if getattr(self, "address", 0):
            self._engine.release(self.address, self.size)


class Mapped:
    """A file as memory that nobody writes to, shared between processes."""

    def __init__(self, path: Path):
        with path.open("rb") as file:
            self._map = mmap.mmap(file.fileno(), 0, mmap.MAP_SHARED, mmap.PROT_READ)
        self.size = len(self._map)
        self.address = int(np.frombuffer(self._map, np.uint8).ctypes.data)


_lock = Lock()
_engines: dict[Path, Engine] = {}


def open_engine(path: Path) -> Engine:
    """Return the engine of a library; each is mapped once, with one pool of threads."""
    with _lock:
        if path not in _engines:
            _engines[path] = Engine(path)
        return _engines[path]


def known_engine(engine: Engine) -> Engine:
    """Return the engine that is mapped from the same library already, or this one."""
    with _lock:
        return _engines.setdefault(engine.path, engine)


def open_library(path: Path) -> Library:
    """Return compiled kernels that are there already."""
    return Library(ctypes.CDLL(str(path)), path, cached=True)


class Library(NamedTuple):
    """A model's compiled kernels."""

    handle: ctypes.CDLL
    path: Path
    cached: bool

    def address(self, name: str) -> int:
        """Return where a function lies."""
        return ctypes.cast(getattr(self.handle, name), ctypes.c_void_p).value or 0


class Packed:
    """A packed weight in memory, which is kept as long as this is."""

    def __init__(self, memory: Memory | Mapped | None, address: int):
        self.memory, self.address = memory, address


class WeightStore:
    """Packed weights by marks of recipe and content; each is kept as long as a program reads it."""

    def __init__(self) -> None:
        self._found: WeakValueDictionary[str, Packed] = WeakValueDictionary()
        self._lock = Lock()

    def get(self, key: str | None) -> Packed | None:
        """Return a weight that was packed before."""
        with self._lock:
            return None if key is None else self._found.get(key)

    def put(self, key: str | None, packed: Packed) -> None:
        """Offer a packed weight to others."""
        if key is not None:
            with self._lock:
                self._found.setdefault(key, packed)

    def marks(self) -> list[str]:
        """Return the marks of all weights that are here."""
        with self._lock:
            return list(self._found)
