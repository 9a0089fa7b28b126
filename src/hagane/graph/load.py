"""Read a model from any source, refuse broken ones, hand out an ``onnx_ir.Model``."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import TypeAlias

import google.protobuf.message
import onnx
import onnx_ir as ir
from onnx_ir.passes.common import InlinePass

from hagane.errors import ExternalDataError, InvalidGraph, InvalidModel, NoSuchFile
from hagane.graph.ort_format import is_ort, read_ort
from hagane.graph.types import DECLARED, MapType, OptionalType, SequenceType, TensorType, Type
from hagane.graph.verify import verify
from hagane.graph.walk import all_nodes
from hagane.graph.weights import StoredTensor, WeightStore
from hagane.graph.wire import Irregular, without_weights
from hagane.machine import is_of_handler

# Weights of fewer bytes are read with the graph.
_LEAST_STORED = 4096
_BESIDE = "hagane.beside"

ModelSource: TypeAlias = "str | os.PathLike[str] | bytes | onnx.ModelProto | ir.Model"


def load(source: ModelSource) -> ir.Model:
    """Return the model in ``source`` with its functions inlined, verified.

    Args:
        source: A path of an ``.onnx`` or ``.ort`` file, the bytes of one, an ``onnx.ModelProto`` or
            an ``onnx_ir.Model``. None of them is changed. Weights in a file, or beside it, are
            mapped when they are needed: it may be removed, but not be written to, while the
            model is in use.

    Raises:
        NoSuchFile: ``source`` is a path that does not exist.
        InvalidModel: The bytes are truncated, corrupted or no ONNX model.
        ExternalDataError: External weights are missing, too short or outside the model's folder.
        InvalidGraph: The graph has cycles, undefined names or repeated names.
    """
    if isinstance(source, ir.Model):
        model = source.clone()
    elif isinstance(source, onnx.ModelProto):
        model = _from_proto(source, "the given ModelProto", None)
    elif isinstance(source, bytes | bytearray | memoryview):
        model = _from_bytes(WeightStore(data=memoryview(source)), "the given bytes", None)
    elif isinstance(source, str | os.PathLike):
        model = _load_file(Path(source))
    else:
        raise InvalidModel(
            "a model is a path, bytes, an onnx.ModelProto or an onnx_ir.Model; "
            f"got {type(source).__name__}"
        )
    if model.functions:
        _align_functions(model)
        try:
            InlinePass()(model)
        except Exception as error:
            if is_of_handler(error):
                raise
            raise InvalidGraph(f"the model's functions cannot be inlined: {error}") from error
    _check_outputs(model.graph)
    verify(model)
    return model


def as_it_is(source: ModelSource) -> ModelSource:
    """Return a source that stays as it is now where the caller edits the given one.

    Files are watched instead. Arrays that an ``onnx_ir.Model`` holds are shared with it.
    """
    if isinstance(source, onnx.ModelProto):
        copy = onnx.ModelProto()
        copy.CopyFrom(source)
        return copy
    if isinstance(source, ir.Model):
        return source.clone()
    if isinstance(source, bytearray) or (isinstance(source, memoryview) and not source.readonly):
        return bytes(source)
    return source


def _align_functions(model: ir.Model) -> None:
    """Let functions import the model's versions of domains whose operators are the same in both."""
    for function in model.functions.values():
        for domain, version in list(function.opset_imports.items()):
            wanted = model.opset_imports.get(domain, version)
            names = {node.op_type for node in all_nodes(function) if node.domain == domain}
            if version != wanted and all(
                _since(name, domain, version) == _since(name, domain, wanted) for name in names
            ):
                function.opset_imports[domain] = wanted


def _since(name: str, domain: str, version: int) -> int | None:
    """Return the version in which an operator became as it is in another; None if unknown."""
    try:
        since: int = onnx.defs.get_schema(name, version, domain).since_version
    except onnx.defs.SchemaError:
        return None
    return since


def _check_outputs(graph: ir.Graph) -> None:
    if not graph.outputs:
        raise InvalidGraph("the model's graph has no outputs: a run would give nothing")


def _load_file(path: Path) -> ir.Model:
    try:
        # Pipes are read at once, and folders, which then say so.
        regular = path.is_file() or not path.exists()
        store = WeightStore(path=path) if regular else WeightStore(memoryview(path.read_bytes()))
        store.bytes()
    except FileNotFoundError:
        raise NoSuchFile(f"there is no model file '{path}'") from None
    except OSError as error:
        raise InvalidModel(f"cannot read '{path}': {error.strerror or error}") from error
    return _from_bytes(store, f"'{path}'", path.absolute().parent)


def _from_bytes(store: WeightStore, what: str, folder: Path | None) -> ir.Model:
    """Return the model in some bytes, whose large weights stay there."""
    data = store.bytes()
    if is_ort(data):
        return _from_proto(read_ort(data), what, folder)
    # No file can name this location: it is drawn anew for each.
    place = f"weights {secrets.token_hex(16)}"
    try:
        own = without_weights(data, place, _LEAST_STORED)
    except Irregular:
        own = bytes(data)
    return _from_proto(_parse(own, what, len(data)), what, folder, store, place)


def _parse(data: bytes, what: str, size: int) -> onnx.ModelProto:
    if not data:
        raise InvalidModel(f"{what} is empty: expected a serialized ONNX model")
    proto = onnx.ModelProto()
    try:
        proto.ParseFromString(data)
    except (google.protobuf.message.DecodeError, RecursionError) as error:
        raise InvalidModel(
            f"{what} is not an ONNX model, or was truncated ({size} bytes): {error}"
        ) from error
    return proto


def _from_proto(
    proto: onnx.ModelProto,
    what: str,
    folder: Path | None,
    store: WeightStore | None = None,
    place: str = "",
) -> ir.Model:
    if not proto.HasField("graph"):
        raise InvalidModel(f"{what} holds no graph: it is not an ONNX model, or was truncated")
    if not proto.opset_import:
        raise InvalidModel(f"{what} imports no operator set: it is not a complete ONNX model")
    beside: set[str] = set()
    for tensor in _tensors(proto):
        if not _is_stored(tensor, place):
            _check_tensor(tensor, what, folder)
            beside.update(each.value for each in tensor.external_data if each.key == "location")
    for graph in _graphs(proto):
        _check_single_assignment(graph, what)
    if _has_sparse(proto):
        from hagane.graph.sparse import make_dense  # few files have them

        given, proto = proto, onnx.ModelProto()
        proto.CopyFrom(given)
        make_dense(_graphs(proto))
    maps = _map_types(proto.graph)
    if maps:
        proto = _without_map_types(proto)
    try:
        model: ir.Model = ir.from_proto(proto)
        for value, declared in zip(model.graph.inputs, proto.graph.input, strict=True):
            # (onnx_ir takes what an output of the same name says, which may be less.)
            if value.is_graph_output() and declared.type.tensor_type.HasField("shape"):
                ir.serde.deserialize_value_info_proto(declared, value)
        for value in (*model.graph.inputs, *model.graph.outputs):
            if value.name in maps:
                value.meta[DECLARED] = maps[value.name]
        if folder is not None:
            ir.external_data.set_base_dir(model.graph, folder)
            for function in model.functions.values():
                ir.external_data.set_base_dir(function.graph, folder)
        if store is not None:
            _keep_stored(model.graph, store, place)
    except Exception as error:  # onnx_ir raises errors of many classes
        if is_of_handler(error):
            raise
        raise InvalidModel(f"{what} is a damaged ONNX model: {_root_cause(error)}") from error
    model.meta[_BESIDE] = tuple(sorted(beside))
    return model


def files_beside(model: ir.Model) -> tuple[str, ...]:
    """Return the files in which weights of a loaded model lie, as its file names them."""
    found: tuple[str, ...] = model.meta.get(_BESIDE, ())
    return found


def _is_stored(tensor: onnx.TensorProto, place: str) -> bool:
    return bool(place) and any(entry.value == place for entry in tensor.external_data)


def _keep_stored(graph: ir.Graph, store: WeightStore, place: str) -> None:
    """Point weights that were left out, or lie in files beside the model, at their bytes."""
    beside: dict[Path, WeightStore] = {}

    def kept(tensor: ir.ExternalTensor) -> ir.TensorProtocol:
        found = store
        if str(tensor.location) != place:
            path = Path(tensor.path)
            if path not in beside:
                beside[path] = WeightStore(path=path)
            found = beside[path]
        made = StoredTensor(found, tensor.offset or 0, tensor.dtype, tensor.shape, tensor.name)
        made.doc_string = tensor.doc_string
        return made

    for value in graph.initializers.values():
        tensor = value.const_value
        if isinstance(tensor, ir.ExternalTensor) and tensor.dtype.bitwidth >= 8:
            value.const_value = kept(tensor)
    for node in graph:
        for name, attribute in node.attributes.items():
            if attribute.type != ir.AttributeType.TENSOR:
                continue
            tensor = attribute.value
            if isinstance(tensor, ir.ExternalTensor) and tensor.dtype.bitwidth >= 8:
                node.attributes[name] = ir.AttrTensor(name, kept(tensor))


def _root_cause(error: BaseException) -> str:
    while error.__cause__ is not None:
        error = error.__cause__
    return f"{type(error).__name__}: {error}"


def _graphs(proto: onnx.ModelProto) -> Iterator[onnx.GraphProto | onnx.FunctionProto]:
    pending: list[onnx.GraphProto | onnx.FunctionProto] = [proto.graph, *proto.functions]
    while pending:
        graph = pending.pop()
        yield graph
        for node in graph.node:
            for attribute in node.attribute:
                if attribute.HasField("g"):
                    pending.append(attribute.g)
                pending.extend(attribute.graphs)


def _check_single_assignment(graph: onnx.GraphProto | onnx.FunctionProto, what: str) -> None:
    if isinstance(graph, onnx.GraphProto):
        weights = [*graph.initializer, *(sparse.values for sparse in graph.sparse_initializer)]
        seen: set[str] = set()
        for tensor in weights:
            if tensor.name in seen:
                raise InvalidGraph(f"the initializer '{tensor.name}' of {what} is given twice")
            seen.add(tensor.name)
    writers: dict[str, str] = {}
    for node in graph.node:
        label = f"{node.op_type} '{node.name}'" if node.name else node.op_type
        for name in node.output:
            if name and name in writers:
                raise InvalidGraph(
                    f"'{name}' of {what} is defined twice: by {writers[name]} and by {label}"
                )
            writers[name] = label


def _has_sparse(proto: onnx.ModelProto) -> bool:
    return any(
        (isinstance(graph, onnx.GraphProto) and (graph.sparse_initializer or _is_declared(graph)))
        or any(each.HasField("sparse_tensor") for node in graph.node for each in node.attribute)
        for graph in _graphs(proto)
    )


def _is_declared(graph: onnx.GraphProto) -> bool:
    """Return whether an input or output is a sparse tensor."""
    ends = (*graph.input, *graph.output)
    return any(value.type.HasField("sparse_tensor_type") for value in ends)


def _tensors(proto: onnx.ModelProto) -> Iterator[onnx.TensorProto]:
    for graph in _graphs(proto):
        if isinstance(graph, onnx.GraphProto):
            yield from graph.initializer
        for node in graph.node:
            for attribute in node.attribute:
                if attribute.HasField("t"):
                    yield attribute.t
                yield from attribute.tensors


def _values(graph: onnx.GraphProto) -> Iterator[onnx.ValueInfoProto]:
    yield from graph.input
    yield from graph.output
    yield from graph.value_info


def _holds_map(type_: onnx.TypeProto) -> bool:
    kind = type_.WhichOneof("value")
    if kind == "sequence_type":
        return _holds_map(type_.sequence_type.elem_type)
    if kind == "optional_type":
        return _holds_map(type_.optional_type.elem_type)
    return bool(kind == "map_type")


def _map_types(graph: onnx.GraphProto) -> dict[str, Type]:
    """Return the types of maps, and of what holds them, by the names of values."""
    return {value.name: _type_of(value.type) for value in _values(graph) if _holds_map(value.type)}


def _type_of(proto: onnx.TypeProto) -> Type:
    match proto.WhichOneof("value"):
        case "sequence_type":
            return SequenceType(_type_of(proto.sequence_type.elem_type))
        case "optional_type":
            return OptionalType(_type_of(proto.optional_type.elem_type))
        case "map_type":
            inside = proto.map_type
            return MapType(ir.DataType(inside.key_type), _type_of(inside.value_type))
    dims = proto.tensor_type.shape.dim if proto.tensor_type.HasField("shape") else None
    shape = None if dims is None else tuple(dim.dim_value for dim in dims)
    return TensorType(ir.DataType(proto.tensor_type.elem_type), shape)


def _without_map_types(proto: onnx.ModelProto) -> onnx.ModelProto:
    """Clear the map types that onnx_ir cannot hold; inputs and outputs keep them beside."""
    copy = onnx.ModelProto()
    copy.CopyFrom(proto)
    for value in _values(copy.graph):
        if _holds_map(value.type):
            value.ClearField("type")
    return copy


def _check_tensor(tensor: onnx.TensorProto, what: str, folder: Path | None) -> None:
    """Refuse a tensor whose data do not fit its shape and element type."""
    name = tensor.name or "(unnamed)"
    if tensor.data_type not in _BITS:
        raise InvalidModel(f"tensor '{name}' of {what}: unknown element type {tensor.data_type}")
    if any(dim < 0 for dim in tensor.dims):
        raise InvalidModel(
            f"tensor '{name}' of {what}: negative dimension in shape {list(tensor.dims)}"
        )
    size = 1
    for dim in tensor.dims:
        size *= dim
    if tensor.data_location == onnx.TensorProto.EXTERNAL:
        _check_external(tensor, name, what, folder, (size * _BITS[tensor.data_type] + 7) // 8)
        return
    if tensor.data_type == onnx.TensorProto.STRING:
        found, expected, unit = len(tensor.string_data), size, "strings"
    elif tensor.HasField("raw_data"):
        found, unit = len(tensor.raw_data), "bytes"
        expected = (size * _BITS[tensor.data_type] + 7) // 8
    else:
        found, unit = _typed_count(tensor), "numbers"
        expected = _typed_expected(tensor.data_type, size)
    if found != expected:
        raise InvalidModel(
            f"tensor '{name}' of {what}: shape {list(tensor.dims)} needs {expected} {unit}, "
            f"the file holds {found}"
        )


_BITS = {
    onnx.TensorProto.STRING: 0,
    **{
        int(dtype): int(dtype.itemsize * 8)
        for dtype in ir.DataType
        if dtype not in (ir.DataType.UNDEFINED, ir.DataType.STRING)
    },
}


def _typed_count(tensor: onnx.TensorProto) -> int:
    return sum(
        len(field)
        for field in (
            tensor.float_data,
            tensor.int32_data,
            tensor.int64_data,
            tensor.double_data,
            tensor.uint64_data,
        )
    )


def _typed_expected(data_type: int, size: int) -> int:
    if data_type in (onnx.TensorProto.COMPLEX64, onnx.TensorProto.COMPLEX128):
        return 2 * size
    bits = _BITS[data_type]
    return (size * bits + 7) // 8 if bits < 8 else size


def _check_external(
    tensor: onnx.TensorProto, name: str, what: str, folder: Path | None, nbytes: int
) -> None:
    entries = {entry.key: entry.value for entry in tensor.external_data}
    location = entries.get("location", "")
    if folder is None:
        raise ExternalDataError(
            f"tensor '{name}' of {what} keeps its data in the file '{location}', but a model "
            "given as bytes has no folder: pass the path of the model file instead"
        )
    path = Path(os.path.realpath(folder / location))
    if not location or Path(location).is_absolute() or not path.is_relative_to(folder.resolve()):
        raise ExternalDataError(
            f"tensor '{name}' of {what}: external data '{location}' lies outside the model's "
            f"folder '{folder}'; only files inside it are read"
        )
    if not path.is_file():
        raise ExternalDataError(f"tensor '{name}' of {what}: there is no external file '{path}'")
    try:
        offset = int(entries.get("offset", 0))
        length = int(entries.get("length", nbytes))
    except ValueError as error:
        raise ExternalDataError(
            f"tensor '{name}' of {what}: offset and length of external data are integers; {error}"
        ) from None
    if offset < 0 or length != nbytes or offset + nbytes > path.stat().st_size:
        raise ExternalDataError(
            f"tensor '{name}' of {what}: shape {list(tensor.dims)} needs {nbytes} bytes at offset "
            f"{offset}, '{location}' holds {path.stat().st_size} (declared length {length})"
        )
