"""Builds in Python, through the same C interface that other programs use."""

from __future__ import annotations

import ctypes
import os
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import onnx_ir as ir

from hagane.errors import (
    HaganeError,
    InvalidArgument,
    InvalidFeed,
    InvalidModel,
    KernelError,
    NoSuchFile,
    OutOfMemory,
    UnsupportedModel,
)
from hagane.graph.types import TensorType
from hagane.native import OutputPool
from hagane.native.ready.extension import load_module
from hagane.ops.definition import Array
from hagane.runtime.values.described import NodeArg
from hagane.runtime.values.feeds import Input, bind
from hagane.ship.manifest import read_manifest
from hagane.ship.sum import sum_of
from hagane.symbolic import symbol

_AXES = 16
_ERRORS: Mapping[int, type[HaganeError]] = {
    1: InvalidArgument,
    2: NoSuchFile,
    3: InvalidModel,
    4: InvalidFeed,
    5: InvalidFeed,
    7: OutOfMemory,
    8: InvalidModel,
}
_CPU, _INVALID, _MEMORY = 6, 1, 7
# In place of a module that nobody has asked for yet.
_UNKNOWN = object()
# Shapes of inputs for which arguments are kept.
_MOST_READY = 256


class _Tensor(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("type", ctypes.c_int32),
        ("rank", ctypes.c_int32),
        ("shape", ctypes.c_int64 * _AXES),
        ("data", ctypes.c_void_p),
        ("bytes", ctypes.c_size_t),
    )


class _Options(ctypes.Structure):
    _fields_ = (
        ("size", ctypes.c_size_t),
        ("threads", ctypes.c_int32),
        ("context", ctypes.c_void_p),
        ("allocate", ctypes.c_void_p),
        ("release", ctypes.c_void_p),
        ("log", ctypes.c_void_p),
        ("parallel", ctypes.c_void_p),
        ("cancel", ctypes.c_void_p),
    )


@dataclass(frozen=True, slots=True)
class _Ready:
    """Arguments of a run for inputs of some shapes, but for the places of arrays.

    Attributes:
        names: Inputs, in the order of ``inputs``.
        dtypes: Their element types.
        inputs: Their descriptions.
        kinds: The shapes and element types that results had.
        outputs: Their descriptions.
        held: Holders of the texts that descriptions point to.
    """

    names: tuple[str, ...]
    dtypes: tuple[np.dtype[Any], ...]
    inputs: bytes
    kinds: tuple[tuple[tuple[int, ...], np.dtype[Any]], ...]
    outputs: bytes
    held: Any


class BuiltModel:
    """A build that is open; ``run`` may be called from several threads at once.

    Args:
        folder: The folder that ``hagane build`` wrote.
        threads: How many threads a run uses; all cores that this process may use if 0.

    Raises:
        NoSuchFile: There is no build.
        InvalidModel: It is damaged, or of another version.
        UnsupportedModel: It is an archive, or for other processors.
    """

    def __init__(self, folder: str | os.PathLike[str], threads: int = 0):
        if not isinstance(folder, (str, os.PathLike)):
            raise InvalidArgument(f"expected the folder of a build, got {folder!r}")
        if not isinstance(threads, (int, np.integer)):
            raise InvalidArgument(f"threads: expected a whole number, got {threads!r}")
        self.folder = Path(folder)
        self.manifest = read_manifest(self.folder)
        library = self.folder / str(self.manifest["library"])
        if library.suffix == ".a":
            raise UnsupportedModel(
                [f"'{library}' is an archive for programs in C: build the model with --shared"]
            )
        self._library = _library(library, self.manifest["sums"]["library"])
        self._handle = ctypes.c_void_p()
        options = _Options(size=ctypes.sizeof(_Options), threads=threads)
        self._check(
            self._library.hagane_open(
                os.fsencode(self.folder), ctypes.byref(options), ctypes.byref(self._handle)
            )
        )
        self._run = ctypes.cast(self._library.hagane_run, ctypes.c_void_p).value
        self._close = weakref.finalize(self, self._library.hagane_close, self._handle)
        self._closed = False
        self._runs: list[None] = []  # an item for each that goes on
        self._inputs = [_argument(each) for each in self.manifest["inputs"]]
        self._outputs = [_argument(each) for each in self.manifest["outputs"]]
        self._types = [Input(item.name, _type(item)) for item in self._inputs]
        self._names = [item.name for item in self._outputs]
        self._ready: dict[Any, _Ready] = {}
        self._last: _Ready | None = None  # of all outputs
        self._again: Any = _UNKNOWN
        self._pool = OutputPool()

    def get_inputs(self) -> list[NodeArg]:
        """Return the inputs; sizes that a run tells are texts."""
        return list(self._inputs)

    def get_outputs(self) -> list[NodeArg]:
        """Return the outputs."""
        return list(self._outputs)

    def run(self, output_names: Sequence[str] | None, input_feed: Mapping[str, Any]) -> list[Array]:
        """Run the model.

        Args:
            output_names: Which outputs to return, in which order; all if None or empty.
            input_feed: An array for each input by name.

        Returns:
            Arrays that the caller owns.

        Raises:
            InvalidFeed: The feed does not fit, or a size is outside the range of the build.
            InvalidArgument: An output name is unknown, or the model is closed.
            KernelError: A node failed; the message names it.
        """
        self._runs.append(None)
        try:
            if self._closed:
                raise InvalidArgument(f"the build '{self.folder}' is closed")
            return self._run_open(output_names, input_feed)
        finally:
            self._runs.pop()
            if self._closed and not self._runs:
                self._close()

    def _run_open(
        self, output_names: Sequence[str] | None, input_feed: Mapping[str, Any]
    ) -> list[Array]:
        if type(input_feed) is not dict and not isinstance(input_feed, Mapping):
            raise InvalidFeed(
                f"expected the feed to map input names to arrays, got {type(input_feed).__name__}"
            )
        last = self._last
        if last is not None and not output_names:
            found = self._run_again(last, input_feed)
            if found is not None:
                return found
        key = _key(output_names, input_feed)
        ready = self._ready.get(key)
        if ready is not None and ready is not last:
            found = self._run_again(ready, input_feed)
            if found is not None:
                self._last = self._last if output_names else ready
                return found
        names = list(output_names or self._names)
        unknown = [name for name in names if name not in self._names]
        if unknown:
            raise InvalidArgument(
                f"unknown output {', '.join(map(repr, unknown))}; the model has: "
                f"{', '.join(self._names)}"
            )
        values = bind(self._types, {}, input_feed)
        arrays = {name: np.asarray(value, order="C") for name, value in values.items()}
        inputs = (_Tensor * (len(arrays) + 1))()
        for i, (name, array) in enumerate(arrays.items()):
            inputs[i].name = name.encode("utf-8", "surrogatepass")
            inputs[i].type = _code(array.dtype)
            inputs[i].rank = array.ndim
            inputs[i].shape[: array.ndim] = array.shape
            inputs[i].data, inputs[i].bytes = array.ctypes.data, array.nbytes
        outputs = (_Tensor * (len(names) + 1))()
        for i, name in enumerate(names):
            outputs[i].name = name.encode("utf-8", "surrogatepass")
        code = self._library.hagane_run(self._handle, inputs, len(arrays), outputs, len(names))
        self._check(code, running=True)
        results = [self._taken(outputs[i]) for i in range(len(names))]
        if key is not None and all(arrays[name] is input_feed[name] for name in arrays):
            if len(self._ready) >= _MOST_READY:
                self._ready.clear()
            kinds = tuple((array.shape, array.dtype) for array in results)
            dtypes = tuple(array.dtype for array in arrays.values())
            self._ready[key] = _Ready(
                tuple(arrays), dtypes, bytes(inputs), kinds, bytes(outputs), (inputs, outputs)
            )
        return results

    def _run_again(self, ready: _Ready, feed: Mapping[str, Any]) -> list[Array] | None:
        """Run into arrays of the shapes that results had before; None where they have others.

        It is None as well for a feed of other types or shapes.
        """
        if self._again is _UNKNOWN:
            self._again = load_module("build_call", _call_source)
        if self._again is None:
            return self._run_by_ctypes(ready, feed)
        found: list[Array] | int | None = self._again.again(
            self._run, self._handle.value, ready.names, ready.dtypes, ready.inputs, ready.kinds,
            ready.outputs, self._pool.empty, feed,
        )  # fmt: skip
        if isinstance(found, int) and found != _MEMORY:
            self._check(found, running=True)
        return found if isinstance(found, list) else None

    def _run_by_ctypes(self, ready: _Ready, feed: Mapping[str, Any]) -> list[Array] | None:
        """Do the same where there is no compiler, or no header of Python."""
        inputs = (_Tensor * (len(ready.names) + 1)).from_buffer_copy(ready.inputs)
        outputs = (_Tensor * (len(ready.kinds) + 1)).from_buffer_copy(ready.outputs)
        if len(feed) != len(ready.names):
            return None
        for i, (name, dtype) in enumerate(zip(ready.names, ready.dtypes, strict=True)):
            array = feed.get(name)
            if type(array) is not np.ndarray or array.dtype != dtype:
                return None
            if not (array.flags.c_contiguous and array.flags.aligned):
                return None
            if array.shape != tuple(inputs[i].shape[: inputs[i].rank]):
                return None
            inputs[i].data = _place(array)
        made = [self._pool.empty(shape, dtype) for shape, dtype in ready.kinds]
        for i, array in enumerate(made):
            outputs[i].data, outputs[i].bytes = _place(array), array.nbytes
        count = len(ready.names)
        code = self._library.hagane_run(self._handle, inputs, count, outputs, len(made))
        if code == _MEMORY:
            return None
        self._check(code, running=True)
        for i, (shape, _) in enumerate(ready.kinds):
            if tuple(outputs[i].shape[: outputs[i].rank]) != shape:
                return None
        return made

    def close(self) -> None:
        """Close the model, once the runs of other threads have ended; none can be begun."""
        self._closed = True
        if not self._runs:
            self._close()

    def __enter__(self) -> BuiltModel:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _taken(self, tensor: _Tensor) -> Array:
        """Return an output as an array of the caller's own."""
        dtype = np.dtype(ir.DataType(tensor.type).numpy())
        shape = tuple(tensor.shape[: tensor.rank])
        found = np.empty(shape, dtype)
        ctypes.memmove(found.ctypes.data, tensor.data, tensor.bytes)
        self._library.hagane_release(self._handle, ctypes.byref(tensor), 1)
        return found

    def _check(self, code: int, *, running: bool = False) -> None:
        if code != 0:
            message = self._library.hagane_message().decode("utf-8", "replace")
            _raise(code, message, running)


def _raise(code: int, message: str, running: bool) -> NoReturn:
    if code == _CPU:
        raise UnsupportedModel([message])
    if code == _INVALID and running:
        raise KernelError(message)  # names were checked: a node found its data out of range
    raise _ERRORS.get(code, KernelError)(message)


def _library(path: Path, checksum: str) -> ctypes.CDLL:
    if not path.is_file():
        raise NoSuchFile(f"there is no file '{path}': build the model again")
    # (The loader of a system maps files as they are: one that was cut off ends the process.)
    if sum_of(path.read_bytes()) != checksum:
        raise InvalidModel(f"'{path}' is damaged, or of another build: build the model again")
    try:
        library = ctypes.CDLL(str(path.absolute()))
    except OSError as error:
        raise InvalidModel(f"'{path}' cannot be loaded: {error}") from None
    pointer, size = ctypes.c_void_p, ctypes.c_size_t
    for name, result, arguments in (
        ("hagane_open", ctypes.c_int32, (ctypes.c_char_p, pointer, pointer)),
        ("hagane_close", None, (pointer,)),
        ("hagane_run", ctypes.c_int32, (pointer, pointer, size, pointer, size)),
        ("hagane_release", None, (pointer, pointer, size)),
        ("hagane_message", ctypes.c_char_p, ()),
    ):
        function = getattr(library, name)
        function.restype, function.argtypes = result, list(arguments)
    return library


def _call_source() -> str:
    folder = resources.files("hagane.ship.c")
    header = (folder / "hagane.h").read_text(encoding="utf-8")
    text = (folder / "call.c").read_text(encoding="utf-8")
    return text.replace('#include "hagane.h"', header)


def _key(names: Sequence[str] | None, feed: Mapping[str, Any]) -> Any:
    """Return all that arguments of a run depend on but for content; None where it is not told."""
    arrays = feed.values()
    if not all(type(a) is np.ndarray and a.flags.c_contiguous for a in arrays):
        return None
    return tuple(names or ()), *((k, a.shape, a.dtype) for k, a in feed.items())


def _place(array: Array) -> int:
    # (``array.ctypes.data`` takes several times as long.)
    return int(array.__array_interface__["data"][0])


def _code(dtype: np.dtype[Any]) -> int:
    return int(ir.DataType.from_numpy(dtype).value)


def _argument(item: Mapping[str, Any]) -> NodeArg:
    type_ = ir.DataType(int(item["type"]))
    name = {"float32": "float", "float64": "double"}.get(item["dtype"], item["dtype"])
    del type_
    return NodeArg(str(item["name"]), f"tensor({name})", list(item["shape"]))


def _type(item: NodeArg) -> TensorType:
    from hagane.ops.schema import tensor_dtype

    dtype = tensor_dtype(item.type)
    assert dtype is not None
    dims = tuple(dim if isinstance(dim, int) else symbol(str(dim)) for dim in item.shape)
    return TensorType(dtype, dims)


def load_built(folder: str | os.PathLike[str], *, threads: int = 0) -> BuiltModel:
    """Return a build as a model that runs; arguments and errors are those of ``BuiltModel``."""
    return BuiltModel(folder, threads)
