"""The one graph: ``onnx_ir.Model``, with the needs of all its readers and writers."""

from hagane.graph.load import ModelSource, as_it_is, files_beside, load
from hagane.graph.opsets import CURRENT_OPSETS
from hagane.graph.save import save, to_proto, write
from hagane.graph.text import to_text
from hagane.graph.types import (
    MapType,
    OptionalType,
    SequenceType,
    Shape,
    TensorType,
    Type,
    dtype_name,
)
from hagane.graph.verify import verify

__all__ = [
    "CURRENT_OPSETS",
    "MapType",
    "ModelSource",
    "OptionalType",
    "SequenceType",
    "Shape",
    "TensorType",
    "Type",
    "as_it_is",
    "dtype_name",
    "files_beside",
    "load",
    "save",
    "to_proto",
    "to_text",
    "verify",
    "write",
]
