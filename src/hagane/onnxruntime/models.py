"""Models with weights of the caller beside weights that hagane loads itself."""

from __future__ import annotations

import copy
import json
import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import google.protobuf.message
import numpy as np
import onnx
from onnx import TensorProto, numpy_helper

from hagane.errors import (
    ExternalDataError,
    InvalidArgument,
    InvalidModel,
    NoSuchFile,
    UnsupportedModel,
)
from hagane.graph.ort_format import is_ort
from hagane.onnxruntime.described import NodeArg
from hagane.onnxruntime.options import RunOptions, SessionOptions
from hagane.onnxruntime.raised import OddFeed
from hagane.ops.values import strings


def with_given(source: Any, options: SessionOptions) -> Any:
    """Return a model in which initializers have the values that the options give them.

    Args:
        source: A path or bytes.
        options: Their initializers and files of weights are used.

    Raises:
        InvalidArgument: An initializer is of another type or shape.
        ExternalDataError: A file in memory is too short for the model's tensors.
    """
    if not options.replaced and not options.held_files:
        return source
    path = Path(os.fspath(source)) if isinstance(source, str | os.PathLike) else None
    try:
        data = source if path is None else path.read_bytes()
        model = onnx.ModelProto()
        model.ParseFromString(data)
    except FileNotFoundError:
        raise NoSuchFile(f"there is no model file '{path}'") from None
    except google.protobuf.message.DecodeError as error:
        raise InvalidModel(f"the given bytes are not an ONNX model: {error}") from error
    _replace(model, {name: value.content for name, value in options.replaced.items()})
    for tensor in _outside(model):
        _bring_in(tensor, options.held_files, None if path is None else path.parent)
    return model


def check_format(source: Any, options: SessionOptions) -> None:
    """Refuse a model in ONNX's format where the options say that it is in ONNX Runtime's own.

    Raises:
        UnsupportedModel: It is.
    """
    if options.entries.get("session.load_model_format") != "ORT":
        return
    data = source if isinstance(source, bytes) else None
    if data is None and Path(os.fspath(source)).is_file():
        with Path(os.fspath(source)).open("rb") as file:
            data = file.read(8)
    if data is not None and not is_ort(data):
        raise UnsupportedModel(
            [
                "session.load_model_format is 'ORT': ORT model verification failed, the model is "
                "not in that format"
            ]
        )


def as_texts(inputs: Sequence[NodeArg], feed: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return a feed whose arrays of other objects, for inputs of texts, are texts; None if none is.

    ONNX Runtime's interface takes ``str`` of each element of such an array, and UTF-8 of bytes of
    one length (``numpy.void``), zeros at their end included.
    """
    found: dict[str, Any] = {}
    for item in inputs:
        value = feed.get(item.name)
        if item.type != "tensor(string)":
            continue
        if isinstance(value, list):
            value = np.array(value, object)
        if not isinstance(value, np.ndarray):
            continue
        if value.dtype.kind == "V" and value.dtype.names is None:  # bytes of one length
            parts = [one.tobytes().decode() for one in value.ravel()]
            found[item.name] = strings(parts).reshape(value.shape)
        elif value.dtype.kind == "O" and not all(isinstance(one, str) for one in value.flat):
            found[item.name] = strings([str(one) for one in value.flat]).reshape(value.shape)
    return {**feed, **found} if found else None


def check_keys(item: NodeArg, value: Mapping[Any, Any]) -> None:
    """Refuse a map with keys of another kind than its type has.

    Raises:
        OddFeed: A key is.
    """
    kinds = {"map(int64": (int, np.integer, "int64_t"), "map(string": (str, bytes, "std::string")}
    *kind, told = kinds.get(item.type.partition(",")[0], (object, object, ""))
    wrong = next((key for key in value if not isinstance(key, tuple(kind))), None)
    if wrong is not None:
        raise OddFeed(
            f"Unexpected key type  {type(wrong)}, it cannot be linked to C type {told} for input "
            f"'{item.name}': got the key {wrong!r}"
        )


def adapted(feed: Mapping[str, Any], options: RunOptions) -> Mapping[str, Any]:
    """Return a feed with the values of a run's adapters, which come before those fed."""
    if not isinstance(feed, Mapping):
        return feed
    found = dict(feed)
    for adapter in reversed(options.adapters):
        found |= adapter.values
    return found


_CONFIGURED = (
    "intra_op_num_threads",
    "inter_op_num_threads",
    "execution_mode",
    "graph_optimization_level",
    "enable_profiling",
)


def with_told(source: Any, options: SessionOptions) -> SessionOptions:
    """Return options with those that a model keeps under the key ``ort_config`` of its properties.

    Raises:
        InvalidArgument: They are no JSON, or one is of another kind.
    """
    is_path = isinstance(source, str | os.PathLike)
    try:
        data = Path(os.fspath(source)).read_bytes() if is_path else source
        model = onnx.ModelProto()
        model.ParseFromString(data)
    except (OSError, google.protobuf.message.DecodeError):
        return options  # the session says what is wrong
    text = {entry.key: entry.value for entry in model.metadata_props}.get("ort_config")
    if text is None:
        return options
    try:
        told = json.loads(text).get("session_options", {})
        found = copy.copy(options)
        for name in _CONFIGURED:
            if name not in told:
                continue
            kind, value = type(getattr(options, name)), told[name]
            if not isinstance(value, int):
                raise TypeError(f"{name} must be an integer, got {value!r}")
            setattr(found, name, kind(value))
    except (ValueError, TypeError, AttributeError) as error:
        raise InvalidArgument(
            f"the session options that the model keeps as 'ort_config' cannot be used: {error}; "
            "unset ORT_LOAD_CONFIG_FROM_MODEL to leave them out"
        ) from error
    return found


def _replace(model: onnx.ModelProto, values: Mapping[str, Any]) -> None:
    known = {tensor.name: tensor for tensor in model.graph.initializer}
    for name, value in values.items():
        if name not in known:  # ONNX Runtime says nothing
            warnings.warn(
                f"add_initializer: the model has no initializer '{name}', so that the value has no "
                f"effect; it has {', '.join(sorted(known)[:20]) or 'none'}",
                stacklevel=5,
            )
            continue
        tensor, given = known[name], numpy_helper.from_array(value, name)
        if (tensor.data_type, list(tensor.dims)) != (given.data_type, list(given.dims)):
            raise InvalidArgument(
                f"add_initializer '{name}': expected {_kind(tensor)}, got {_kind(given)}"
            )
        tensor.CopyFrom(given)


def _kind(tensor: TensorProto) -> str:
    return f"{TensorProto.DataType.Name(tensor.data_type).lower()}{list(tensor.dims)}"


def _outside(model: onnx.ModelProto) -> Iterator[TensorProto]:
    """Yield the tensors of a model that lie outside it."""
    graphs = [model.graph]
    while graphs:
        graph = graphs.pop()
        tensors = list(graph.initializer)
        for node in graph.node:
            for attribute in node.attribute:
                tensors += [attribute.t, *attribute.tensors]
                graphs += [attribute.g] if attribute.HasField("g") else []
                graphs += attribute.graphs
        yield from (t for t in tensors if t.data_location == TensorProto.EXTERNAL)


def _bring_in(tensor: TensorProto, files: Mapping[str, memoryview], folder: Path | None) -> None:
    entries = {entry.key: entry.value for entry in tensor.external_data}
    location, start = entries.get("location", ""), int(entries.get("offset", 0))
    held = files.get(location)
    if held is None:
        if folder is None:
            raise ExternalDataError(
                f"'{tensor.name}' lies in '{location}', which was not given; give it with "
                "add_external_initializers_from_files_in_memory, or the model as a path"
            )
        inside = Path(os.path.realpath(folder / location))
        if folder.resolve() not in inside.parents:
            raise ExternalDataError(f"'{tensor.name}' lies outside the model's folder: {location}")
        if not inside.is_file():
            raise ExternalDataError(f"'{tensor.name}' lies in '{inside}', which does not exist")
        with inside.open("rb") as file:
            file.seek(start)
            data = file.read(int(entries["length"])) if "length" in entries else file.read()
    else:
        end = start + int(entries["length"]) if "length" in entries else len(held)
        if end > len(held):
            raise ExternalDataError(
                f"'{tensor.name}' needs bytes {start} to {end} of '{location}', "
                f"which was given with {len(held)}"
            )
        data = bytes(held[start:end])
    tensor.ClearField("external_data")
    tensor.data_location = TensorProto.DEFAULT
    tensor.raw_data = data
