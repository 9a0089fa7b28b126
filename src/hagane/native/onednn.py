"""oneDNN, if its extra is installed: primitives of products and convolutions for one thread.

Loaded at run time and called through its documented C interface (oneDNN 3.2, "Developer Guide and
Reference": Memory, Primitives, Attributes). A primitive is made to run on the thread that calls
it, with scratch memory that the caller gives, so that any thread of a session may run it.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib.metadata
import os
import threading
import weakref
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache

import numpy as np

from hagane.errors import HaganeError, MissingExtra
from hagane.ops.definition import Array

PACKAGE = "onednn-cpu-gomp"
_LIBRARY = "libdnnl.so.3"
# Constants of the C interface.
_CPU, _IN_ORDER, _ANY_LAYOUT, _INFERENCE, _DIRECT = 1, 1, 1, 96, 1
_BFLOAT16, _FLOAT32 = 2, 3
_USER_SCRATCHPAD, _STRICT = 1, 0
_IMPLEMENTATION, _SOURCE, _WEIGHTS, _RESULT, _SCRATCHPAD = 8, 129, 131, 133, 136
_REORDER_FROM, _REORDER_TO = 1, 17
_UNIMPLEMENTED = 3
_AXES = 12
# Primitives that are kept for layers of equal sizes.
_KEPT = 256

_Handle = ctypes.c_void_p
_OUT = ctypes.POINTER(_Handle)
_DIMS = ctypes.POINTER(ctypes.c_int64)
_INT, _SIZE, _UNSIGNED = ctypes.c_int, ctypes.c_size_t, ctypes.c_uint
_SIGNATURES: dict[str, tuple[object, ...]] = {
    "engine_create": (_OUT, _INT, _SIZE),
    "stream_create": (_OUT, _Handle, _UNSIGNED),
    "stream_destroy": (_Handle,),
    "memory_create": (_OUT, _Handle, _Handle, _Handle),
    "memory_destroy": (_Handle,),
    "memory_desc_create_with_strides": (_OUT, _INT, _DIMS, _INT, _DIMS),
    "memory_desc_create_with_tag": (_OUT, _INT, _DIMS, _INT, _INT),
    "memory_desc_destroy": (_Handle,),
    "primitive_attr_create": (_OUT,),
    "primitive_attr_set_scratchpad_mode": (_Handle, _INT),
    "primitive_attr_set_fpmath_mode": (_Handle, _INT),
    "primitive_desc_query": (_Handle, _INT, _INT, _Handle),
    "primitive_desc_destroy": (_Handle,),
    "primitive_create": (_OUT, _Handle),
    "primitive_destroy": (_Handle,),
    "primitive_execute": (_Handle, _Handle, _INT, _Handle),
    "reorder_primitive_desc_create": (_OUT, _Handle, _Handle, _Handle, _Handle, _Handle),
    "matmul_primitive_desc_create": (_OUT, *(_Handle,) * 6),
    "convolution_forward_primitive_desc_create": (
        *(_OUT, _Handle, _INT, _INT, *(_Handle,) * 4),
        *(*(_DIMS,) * 4, _Handle),
    ),
}


class OneDnnError(HaganeError, RuntimeError):
    """A call of oneDNN that failed, or a library that cannot be used.

    Attributes:
        status: What the call returned, if it was one.
    """

    def __init__(self, message: str, status: int = 0):
        super().__init__(message)
        self.status = status


class _Version(ctypes.Structure):
    _fields_ = (("major", _INT), ("minor", _INT), ("patch", _INT))


class _Argument(ctypes.Structure):
    _fields_ = (("argument", _INT), ("memory", _Handle))


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
        self._query.argtypes, self._query.restype = [_Handle, _INT, _INT], _Handle
        self._size = library.dnnl_memory_desc_get_size
        self._size.argtypes, self._size.restype = [_Handle], _SIZE
        # What is loaded for all comes before the library's own libgomp when names are bound.
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

    def make(self, name: str, *arguments: object) -> _Handle:
        """Return what a function creates in its first argument."""
        made = _Handle()
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
        """Let what is made or run meanwhile use the calling thread alone."""
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
    ) -> Iterator[_Handle]:
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

    def query(self, description: _Handle, what: int, index: int = 0) -> int:
        """Return the address of the description of something that a primitive uses."""
        return int(self._query(description, what, index) or 0)

    def size(self, description: int) -> int:
        """Return the bytes of what is described."""
        return int(self._size(description))


def dims(numbers: Sequence[int]) -> ctypes.Array[ctypes.c_int64]:
    """Return numbers as oneDNN takes them."""
    return (ctypes.c_int64 * _AXES)(*numbers)


def _address(function: ctypes._NamedFuncPointer) -> int:
    return ctypes.cast(function, _Handle).value or 0


class Operation:
    """A product or convolution of fixed sizes.

    Attributes:
        library: What it was made by.
        implementation: What oneDNN calls the kernel that it chose.
        weights_bytes: Bytes of packed weights.
        scratch_bytes: Bytes of scratch memory for a call.
    """

    def __init__(self, library: OneDnn, description: _Handle):
        self.library, self._description = library, description
        weakref.finalize(self, library.call, "primitive_desc_destroy", description).atexit = False
        name = ctypes.c_char_p()
        library.call("primitive_desc_query", description, _IMPLEMENTATION, 0, ctypes.byref(name))
        self.implementation = (name.value or b"").decode()
        self._weights = library.query(description, _WEIGHTS)
        self.weights_bytes = library.size(self._weights)
        self.scratch_bytes = library.size(library.query(description, _SCRATCHPAD))
        self._primitive: _Handle | None = None

    def addresses(self) -> list[int]:
        """Return what ``hg_onednn_primitive`` in ``c/onednn.h`` holds; valid with this object."""
        library, description = self.library, self._description
        with library.one_thread():
            if self._primitive is None:
                self._primitive = library.make("primitive_create", description)
                end = weakref.finalize(self, library.call, "primitive_destroy", self._primitive)
                end.atexit = False
        queries = ((_SOURCE, 0), (_WEIGHTS, 0), (_WEIGHTS, 1), (_RESULT, 0), (_SCRATCHPAD, 0))
        described = [library.query(description, what, index) for what, index in queries]
        return [self._primitive.value or 0, *described]

    def pack(self, weights: Array) -> Array:
        """Return float32 weights as bytes in the layout and precision that the operation reads."""
        library = self.library
        made = np.zeros(self.weights_bytes + 64, np.uint8)
        packed = made[-made.ctypes.data % 64 :][: self.weights_bytes]
        weights = np.asarray(weights, np.float32)
        strides = [stride // 4 for stride in weights.strides]
        engine, from_to = library.engine, (_REORDER_FROM, _REORDER_TO)
        with contextlib.ExitStack() as stack:
            stack.enter_context(library.one_thread())
            plain = stack.enter_context(library.described(weights.shape, _FLOAT32, strides))

            def make(kind: str, *arguments: object) -> _Handle:
                handle = library.make(f"{kind}_create", *arguments)
                end = "primitive_desc" if kind.endswith("desc") else kind
                stack.callback(library.call, f"{end}_destroy", handle)
                return handle

            places = (plain, engine, self._weights, engine, None)
            reorder = make("primitive", make("reorder_primitive_desc", *places))
            memories = (
                make("memory", plain, engine, weights.ctypes.data),
                make("memory", self._weights, engine, packed.ctypes.data),
            )
            pairs = [
                _Argument(name, memory) for name, memory in zip(from_to, memories, strict=True)
            ]
            arguments = (_Argument * 2)(*pairs)
            stream = make("stream", engine, _IN_ORDER)
            library.call("primitive_execute", reorder, stream, 2, ctypes.addressof(arguments))
        return packed


@lru_cache(maxsize=_KEPT)
def product(rows: int, depth: int, columns: int, half: bool, biased: bool) -> Operation | None:
    """Return ``(rows, depth) × (depth, columns)`` plus a row, or None if oneDNN has no fast form.

    Args:
        rows: Of the left side and the result, which lie in row-major order.
        depth: Columns of the left side.
        columns: Of the weights and the result.
        half: Whether the factors are bfloat16; the row and the result are float32.
        biased: Whether a row is added.
    """
    library, dtype = load(), _BFLOAT16 if half else _FLOAT32
    with contextlib.ExitStack() as stack:
        enter = stack.enter_context
        enter(library.one_thread())
        arrays = (
            enter(library.described((rows, depth), dtype, (depth, 1))),
            enter(library.described((depth, columns), dtype)),
            enter(library.described((1, columns), _FLOAT32, (columns, 1))) if biased else None,
            enter(library.described((rows, columns), _FLOAT32, (columns, 1))),
        )
        return _made("matmul", library.engine, *arrays)


@lru_cache(maxsize=_KEPT)
def convolution(
    source: tuple[int, int, int],
    weights: tuple[int, int, int, int],
    groups: int,
    strides: tuple[int, int],
    dilations: tuple[int, int],
    half: bool,
    biased: bool,
) -> Operation | None:
    """Return a convolution without a border, or None if oneDNN has no fast form of it.

    Args:
        source: Channels, rows and columns of the image, whose channels lie side by side
            (NHWC), as those of the result do.
        weights: ``(out, in / groups, rows, columns)``.
        groups: Of channels.
        strides: Along rows and columns.
        dilations: The same; one for neighbouring taps.
        half: Whether the factors are bfloat16; bias and result are float32.
        biased: Whether a number is added to each channel.
    """
    library, dtype = load(), _BFLOAT16 if half else _FLOAT32
    out, depth, *taps = weights
    size = [
        (have - (tap - 1) * dilation - 1) // stride + 1
        for have, tap, stride, dilation in zip(source[1:], taps, strides, dilations, strict=True)
    ]
    kernel = (out, depth, *taps) if groups == 1 else (groups, out // groups, depth, *taps)

    def image(channels: int, rows: int, columns: int, dtype: int) -> _Handle:
        whole = channels * rows * columns
        lies = (whole, 1, columns * channels, channels)
        return enter(library.described((1, channels, rows, columns), dtype, lies))

    with contextlib.ExitStack() as stack:
        enter = stack.enter_context
        enter(library.one_thread())
        arrays = (
            image(*source, dtype),
            enter(library.described(kernel, dtype)),
            enter(library.described((out,), _FLOAT32, (1,))) if biased else None,
            image(out, size[0], size[1], _FLOAT32),
        )
        gaps = dims([dilation - 1 for dilation in dilations])
        window = (dims(strides), gaps, dims((0, 0)), dims((0, 0)))
        kinds = (library.engine, _INFERENCE, _DIRECT)
        return _made("convolution_forward", *kinds, *arrays, *window)


def _made(kind: str, *arguments: object) -> Operation | None:
    library = load()
    try:
        description = library.make(f"{kind}_primitive_desc_create", *arguments, library.attributes)
    except OneDnnError as error:
        if error.status != _UNIMPLEMENTED:
            raise
        return None
    made = Operation(library, description)
    return None if made.implementation.startswith("ref") else made
