"""The library oneDNN, if its extra is installed.

Loaded at run time and called through its documented C interface (oneDNN 3.2, "Developer Guide and
Reference": Memory, Primitives, Attributes).
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib.metadata
import os
import threading
from collections.abc import Iterator, Sequence
from functools import cache

from hagane.errors import HaganeError, MissingExtra

PACKAGE = "onednn-cpu-gomp"
_LIBRARY = "libdnnl.so.3"
# Constants of the C interface.
_CPU, _ANY_LAYOUT = 1, 1
_USER_SCRATCHPAD, _STRICT = 1, 0
_AXES = 12

Handle = ctypes.c_void_p
_OUT = ctypes.POINTER(Handle)
_DIMS = ctypes.POINTER(ctypes.c_int64)
_INT, _SIZE, _UNSIGNED = ctypes.c_int, ctypes.c_size_t, ctypes.c_uint
_SIGNATURES: dict[str, tuple[object, ...]] = {
    "engine_create": (_OUT, _INT, _SIZE),
    "stream_create": (_OUT, Handle, _UNSIGNED),
    "stream_destroy": (Handle,),
    "memory_create": (_OUT, Handle, Handle, Handle),
    "memory_destroy": (Handle,),
    "memory_desc_create_with_strides": (_OUT, _INT, _DIMS, _INT, _DIMS),
    "memory_desc_create_with_tag": (_OUT, _INT, _DIMS, _INT, _INT),
    "memory_desc_destroy": (Handle,),
    "primitive_attr_create": (_OUT,),
    "primitive_attr_set_scratchpad_mode": (Handle, _INT),
    "primitive_attr_set_fpmath_mode": (Handle, _INT),
    "primitive_desc_query": (Handle, _INT, _INT, Handle),
    "primitive_desc_destroy": (Handle,),
    "primitive_create": (_OUT, Handle),
    "primitive_destroy": (Handle,),
    "primitive_execute": (Handle, Handle, _INT, Handle),
    "reorder_primitive_desc_create": (_OUT, Handle, Handle, Handle, Handle, Handle),
    "matmul_primitive_desc_create": (_OUT, *(Handle,) * 6),
    "convolution_forward_primitive_desc_create": (
        *(_OUT, Handle, _INT, _INT, *(Handle,) * 4),
        *(*(_DIMS,) * 4, Handle),
    ),
}


class OneDnnError(HaganeError, RuntimeError):
    """A call of oneDNN that failed, or a library that cannot be used.

    Attributes:
        status: The status of the call, if there was one.
    """

    def __init__(self, message: str, status: int = 0):
        super().__init__(message)
        self.status = status


class _Version(ctypes.Structure):
    _fields_ = (("major", _INT), ("minor", _INT), ("patch", _INT))


# oneDNN has locks of its own. A child must not begin while another thread holds one: that thread
# is not there to let go of it.
_making = threading.RLock()
os.register_at_fork(
    before=_making.acquire, after_in_parent=_making.release, after_in_child=_making.release
)


def obstacle() -> str | None:
    """Return why oneDNN cannot be used here, with the remedy; None if it can."""
    try:
        load()
    except (MissingExtra, OneDnnError) as error:
        return str(error)
    return None


@cache
def load() -> OneDnn:
    """Return the library, loaded at the first call.

    Raises:
        MissingExtra: It is not installed.
        OneDnnError: It is, and cannot be loaded, or is of another version.
    """
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
        for file in importlib.metadata.files(PACKAGE) or ():
            if file.name == _LIBRARY:
                return OneDnn(str(file.locate()))
    raise MissingExtra("the library oneDNN", "onednn")


class OneDnn:
    """The functions of the library, and its engine for processors.

    Args:
        path: The shared library.

    Raises:
        OneDnnError: It cannot be loaded, or is of another version.
    """

    def __init__(self, path: str):
        try:
            library = ctypes.CDLL(path)
        except OSError as error:
            raise OneDnnError(
                f"oneDNN cannot be loaded: {error}; it needs the system's libgomp.so.1 "
                "(package libgomp1 or libgomp)"
            ) from None
        library.dnnl_version.restype = ctypes.POINTER(_Version)
        version = library.dnnl_version().contents
        if version.major != 3:
            raise OneDnnError(
                f"oneDNN '{path}': expected version 3, got {version.major}.{version.minor}: "
                f"pip install 'hagane[onednn]'"
            )
        self._functions: dict[str, ctypes._NamedFuncPointer] = {}
        for name, arguments in _SIGNATURES.items():
            function = getattr(library, f"dnnl_{name}")
            function.argtypes, function.restype = list(arguments), _INT
            self._functions[name] = function
        self._query = library.dnnl_primitive_desc_query_md
        self._query.argtypes, self._query.restype = [Handle, _INT, _INT], Handle
        self._size = library.dnnl_memory_desc_get_size
        self._size.argtypes, self._size.restype = [Handle], _SIZE
        # Libraries loaded for all come before the library's own libgomp when names are bound.
        everywhere = ctypes.CDLL(None)
        openmp = everywhere if hasattr(everywhere, "omp_set_num_threads") else library
        self._threads, self._set_threads = openmp.omp_get_max_threads, openmp.omp_set_num_threads
        self._set_threads.argtypes, self._set_threads.restype = [_INT], None
        self.engine = self.make("engine_create", _CPU, 0)
        self.attributes = self.make("primitive_attr_create")
        self.call("primitive_attr_set_scratchpad_mode", self.attributes, _USER_SCRATCHPAD)
        self.call("primitive_attr_set_fpmath_mode", self.attributes, _STRICT)

    def call(self, name: str, *arguments: object) -> None:
        """Call a function.

        Raises:
            OneDnnError: It returned another status than success.
        """
        status = self._functions[name](*arguments)
        if status:
            raise OneDnnError(f"oneDNN: dnnl_{name} failed with status {status}", status)

    def make(self, name: str, *arguments: object) -> Handle:
        """Return the handle that a function creates in its first argument."""
        made = Handle()
        self.call(name, ctypes.byref(made), *arguments)
        return made

    def functions(self) -> list[int]:
        """Return the addresses that ``hg_onednn`` in ``c/onednn.h`` holds, in its order."""
        names = ("primitive_execute", "memory_create", "memory_destroy", "stream_create")
        called = [self._functions[name] for name in (*names, "stream_destroy")]
        return [
            *(_address(function) for function in (*called, self._threads, self._set_threads)),
            self.engine.value or 0,
        ]

    @contextlib.contextmanager
    def one_thread(self) -> Iterator[None]:
        """Let primitives that are made or run meanwhile use the calling thread alone."""
        with _making:
            before = self._threads()
            self._set_threads(1)
            try:
                yield
            finally:
                self._set_threads(before)

    @contextlib.contextmanager
    def described(
        self, shape: Sequence[int], dtype: int, strides: Sequence[int] | None = None
    ) -> Iterator[Handle]:
        """Yield the description of an array; its layout is left to oneDNN if strides are None."""
        if strides is None:
            name, last = "memory_desc_create_with_tag", ctypes.c_int(_ANY_LAYOUT)
        else:
            name, last = "memory_desc_create_with_strides", dims(strides)  # type: ignore[assignment]
        made = self.make(name, len(shape), dims(shape), dtype, last)
        try:
            yield made
        finally:
            self.call("memory_desc_destroy", made)

    def query(self, description: Handle, what: int, index: int = 0) -> int:
        """Return the address of the description of an operand of a primitive."""
        return int(self._query(description, what, index) or 0)

    def size(self, description: int) -> int:
        """Return the bytes of the memory that is described."""
        return int(self._size(description))


def dims(numbers: Sequence[int]) -> ctypes.Array[ctypes.c_int64]:
    """Return numbers as oneDNN takes them."""
    return (ctypes.c_int64 * _AXES)(*numbers)


def _address(function: ctypes._NamedFuncPointer) -> int:
    return ctypes.cast(function, Handle).value or 0
