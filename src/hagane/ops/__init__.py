"""One operator, one place: its type rule, its meaning, its gradient, its native code."""

from hagane.ops.builder import op
from hagane.ops.definition import OpDef, Unsupported
from hagane.ops.inference import GraphTypes, infer_types
from hagane.ops.registry import find, operators, schema_of, unsupported_nodes

__all__ = [
    "GraphTypes",
    "OpDef",
    "Unsupported",
    "find",
    "infer_types",
    "op",
    "operators",
    "schema_of",
    "unsupported_nodes",
]
