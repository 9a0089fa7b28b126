"""Write a model so that other tools read it."""

from __future__ import annotations

import os
from pathlib import Path

import onnx
import onnx_ir as ir

from hagane.errors import InvalidArgument
from hagane.graph.names import separate_names
from hagane.graph.walk import all_graphs

# The newest file format that released runtimes read; onnx itself may already write a later one.
MAX_IR_VERSION = 13
# Protobuf refuses messages of 2 GiB; a graph without its weights is far below the margin left.
_EMBEDDED_LIMIT = 2**31 - 2**24


def to_proto(model: ir.Model) -> onnx.ModelProto:
    """Return ``model`` as an ``onnx.ModelProto`` that released runtimes can read."""
    proto = ir.to_proto(model)
    proto.ir_version = min(proto.ir_version, MAX_IR_VERSION)
    return proto


def save(model: ir.Model, path: str | os.PathLike[str], *, external_data: bool = False) -> None:
    """Write ``model`` to ``path``.

    Args:
        model: The model; it is not changed.
        path: The ``.onnx`` file to write.
        external_data: Put the weights into ``<path>.data`` beside the file. Models too large
            for one file (2 GiB) are always written that way.
    """
    path = Path(path)
    if path.suffix != ".onnx":
        raise InvalidArgument(f"models are written to '.onnx' files, got '{path}'")
    write(model, path, external_data=external_data)


def write(
    model: ir.Model,
    path: str | os.PathLike[str],
    *,
    external_data: bool = False,
    weights: str = "",
    smallest: int = 256,
    ort_format: bool = False,
) -> None:
    """Write ``model`` to a file of any name.

    Args:
        model: The model; it is not changed.
        path: The file to write.
        external_data: As for ``save``.
        weights: The file for weights, seen from the folder of the model; ``<path>.data`` if empty.
            A name puts them there, whatever ``external_data`` says.
        smallest: The bytes from which on weights are put there.
        ort_format: Write ONNX Runtime's own format, weights included.

    Raises:
        InvalidArgument: The model does not fit into ONNX Runtime's format.
    """
    from hagane.machine.whole_files import write_whole, written_whole  # sessions need none

    path = Path(path)
    size = sum(
        value.const_value.nbytes
        for graph in all_graphs(model.graph)
        for value in graph.initializers.values()
        if value.const_value is not None
    )
    copy = model.clone()
    separate_names(copy.graph)
    copy.ir_version = min(copy.ir_version, MAX_IR_VERSION)
    if ort_format:
        from hagane.graph.ort_written import write_ort

        write_whole(path, write_ort(ir.to_proto(copy)))
        return
    outside = external_data or weights or size > _EMBEDDED_LIMIT
    name = (weights or f"{path.name}.data") if outside else None
    if name is not None and (Path(name).is_absolute() or ".." in Path(name).parts):
        raise InvalidArgument(
            f"weights lie in the folder of their model, or below it: expected a name for '{path}' "
            f"without '..', got '{name}'"
        )
    with written_whole(path) as begun:
        if name is not None:
            (begun.parent / name).parent.mkdir(parents=True, exist_ok=True)
        ir.save(copy, begun, external_data=name, size_threshold_bytes=smallest)
