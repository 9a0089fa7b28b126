"""``ModelCompiler``: a model written in the form that sessions read it in.

hagane compiles when a session is made and keeps the code in the user's cache; a written model holds
no code. So what this writes is the model, checked and simplified as far as its level says, with its
weights where the caller wants them.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper

from hagane.errors import InvalidArgument, KernelError, NoSuchFile
from hagane.graph import load, to_proto, verify
from hagane.machine.whole_files import write_whole
from hagane.onnxruntime.devices import OrtExternalInitializerInfo
from hagane.onnxruntime.enums import OrtCompileApiFlags
from hagane.onnxruntime.options import SessionOptions
from hagane.onnxruntime.raised import as_theirs
from hagane.onnxruntime.values import OrtValue
from hagane.ops.values import tensor_to_array
from hagane.runtime import GraphOptimizationLevel

Placing: TypeAlias = Callable[
    [str, OrtValue, "OrtExternalInitializerInfo | None"], "OrtExternalInitializerInfo | None"
]


class ModelCompiler:
    """Writes a model with its weights inside or in a file beside it.

    Args:
        sess_options: Settings of the session that would run it.
        input_model_path_or_bytes: The model.
        embed_compiled_data_into_model: Has no effect: there is no compiled data.
        external_initializers_file_path: A file for weights, seen from the folder of the output.
        external_initializers_size_threshold: Weights of more bytes are put there.
        flags: ``OrtCompileApiFlags``.
        graph_optimization_level: Whether the model is simplified first.
        get_initializer_location_func: Called with the name, the value and the place so far of each
            weight; returns the place in a file that the caller has written, or None.
    """

    def __init__(
        self,
        sess_options: SessionOptions,
        input_model_path_or_bytes: str | os.PathLike[str] | bytes,
        embed_compiled_data_into_model: bool = False,
        external_initializers_file_path: str | os.PathLike[str] | None = None,
        external_initializers_size_threshold: int = 1024,
        flags: int = OrtCompileApiFlags.NONE,
        graph_optimization_level: GraphOptimizationLevel = GraphOptimizationLevel.ORT_DISABLE_ALL,
        get_initializer_location_func: Placing | None = None,
    ):
        source = input_model_path_or_bytes
        if not isinstance(source, str | os.PathLike | bytes):
            raise TypeError(f"expected a path or the bytes of a model, got {type(source).__name__}")
        if not source:
            raise ValueError(
                f"Input model {'bytes array' if isinstance(source, bytes) else 'path'} is empty"
            )
        outside = external_initializers_file_path
        if outside and not isinstance(outside, str | os.PathLike):
            raise TypeError(
                f"external_initializers_file_path: expected a path, got {type(outside).__name__}"
            )
        if outside and get_initializer_location_func is not None:
            raise ValueError(
                "ModelCompiler: expected external_initializers_file_path or "
                "get_initializer_location_func, got both"
            )
        self._source, self._options = source, sess_options
        self._outside = os.fspath(outside) if outside else ""
        self._threshold = int(external_initializers_size_threshold)
        self._flags, self._level = int(flags), graph_optimization_level
        self._place = get_initializer_location_func

    def compile_to_file(self, output_model_path: str | os.PathLike[str] | None = None) -> None:
        """Write the model.

        Args:
            output_model_path: The file; ``<model>_ctx.onnx`` beside the model if None.

        Raises:
            Fail: The file exists already, or no node was compiled, and the flags forbid it.
            InvalidArgument: The model came as bytes, and no path was given.
        """
        with as_theirs():
            target = self._target(output_model_path)
            if target.exists() and self._flags & OrtCompileApiFlags.ERROR_IF_OUTPUT_FILE_EXISTS:
                raise KernelError(f"the compiled model '{target}' exists already; remove it first")
            data = self._made(target.parent).SerializeToString()
            write_whole(target, data)

    def compile_to_bytes(self) -> bytes:
        """Return the model; a file for weights lies in the current folder."""
        with as_theirs():
            data: bytes = self._made(Path()).SerializeToString()
            return data

    def compile_to_stream(self, write_function: Callable[[bytes], Any]) -> None:
        """Hand the model to a function."""
        write_function(self.compile_to_bytes())

    def set_ep_context_data_write_func(self, write_func: Callable[..., Any]) -> None:
        """Accept a writer of compiled data: there is none."""

    def clear_ep_context_data_write_func(self) -> None:
        """Forget the writer of compiled data."""

    def set_ep_context_binary_information(
        self, output_directory: str | os.PathLike[str], model_name: str
    ) -> None:
        """Accept a place for compiled data: there is none.

        Raises:
            InvalidArgument: One of both is empty.
        """
        if not os.fspath(output_directory) or not model_name:
            with as_theirs():
                raise InvalidArgument(
                    "set_ep_context_binary_information: output_dir or model_name is empty"
                )

    def _target(self, given: str | os.PathLike[str] | None) -> Path:
        if given is not None:
            return Path(given)
        if isinstance(self._source, bytes):
            raise InvalidArgument("compile_to_file: a model of bytes needs the output's path")
        path = Path(self._source)
        return path.with_name(f"{path.stem}_ctx.onnx")

    def _made(self, folder: Path) -> onnx.ModelProto:
        """Return the model, its weights beside it in ``folder`` where they are to lie there."""
        if not isinstance(self._source, bytes) and not Path(self._source).is_file():
            raise NoSuchFile(f"Input model path does not exist: '{self._source}'")
        if self._level == GraphOptimizationLevel.ORT_DISABLE_ALL:
            model = load(self._source)
            verify(model)
        else:
            from hagane.runtime.opened import lightly  # with all passes
            from hagane.runtime.pipeline import read
            from hagane.runtime.settings import settings_of

            settings = settings_of(self._options, logging.getLogger("hagane.onnxruntime"))
            model = lightly(read(self._source, settings))
        if self._flags & OrtCompileApiFlags.ERROR_IF_NO_NODES_COMPILED:
            raise KernelError(
                "Unable to compile any nodes: models run on the CPU, whose code is made when a "
                "session is"
            )
        weights = {
            name: tensor_to_array(value.const_value)
            for name, value in model.graph.initializers.items()
            if value.const_value is not None
        }
        proto = to_proto(model)
        content = bytearray()
        for tensor in proto.graph.initializer:
            self._settle(tensor, weights[tensor.name], content)
        if self._outside:
            write_whole(folder / self._outside, bytes(content))
        return proto

    def _settle(self, tensor: TensorProto, array: Any, content: bytearray) -> None:
        """Put a weight into the model, into ``content``, or where the caller has written it."""
        told = {entry.key: entry.value for entry in tensor.external_data}
        if tensor.data_location == TensorProto.EXTERNAL:
            tensor.CopyFrom(numpy_helper.from_array(np.asarray(array), tensor.name))
        if array.dtype.kind == "O":
            return
        if self._place is not None:
            length = int(told.get("length", array.nbytes))
            before = OrtExternalInitializerInfo(
                told.get("location", ""), int(told.get("offset", 0)), length
            )
            found = self._place(tensor.name, OrtValue(array), before if told else None)
            if found is not None:
                _put(tensor, found)
        elif self._outside and array.nbytes > self._threshold:
            data = numpy_helper.from_array(np.asarray(array)).raw_data
            _put(tensor, OrtExternalInitializerInfo(self._outside, len(content), len(data)))
            content += data


def _put(tensor: TensorProto, place: OrtExternalInitializerInfo) -> None:
    """Say that a weight lies in a file beside its model."""
    kept = TensorProto(name=tensor.name, data_type=tensor.data_type, dims=tensor.dims)
    kept.data_location = TensorProto.EXTERNAL
    for key, value in (
        ("location", place.filepath),
        ("offset", place.file_offset),
        ("length", place.byte_size),
    ):
        kept.external_data.add(key=key, value=str(value))
    tensor.CopyFrom(kept)
