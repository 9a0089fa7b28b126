"""The one builder: operators applied to values, whose meaning an interpreter gives.

``op`` on arrays computes; on values of a graph, inside ``interpreting(Nodes(graph))``, it adds
nodes; on types it infers. Functions written over it serve all of these.
"""

from hagane.ops.builder.apply import (
    content_of,
    dtype_of,
    is_continuous,
    op,
    rank_of,
    shape_of,
    size_of,
    tensor_type,
    type_of,
)
from hagane.ops.builder.control import argument_types, branch, loop, scan
from hagane.ops.builder.eager import EAGER, Eager
from hagane.ops.builder.interpreter import Call, Interpreter, interpreter_of, interpreting
from hagane.ops.builder.node import file_node, library_node, node_of
from hagane.ops.builder.nodes import Nodes, new_input
from hagane.ops.builder.types import TYPES, Typed, Types

__all__ = [
    "EAGER",
    "TYPES",
    "Call",
    "Eager",
    "Interpreter",
    "Nodes",
    "Typed",
    "Types",
    "argument_types",
    "branch",
    "content_of",
    "dtype_of",
    "file_node",
    "interpreter_of",
    "interpreting",
    "is_continuous",
    "library_node",
    "loop",
    "new_input",
    "node_of",
    "op",
    "rank_of",
    "scan",
    "shape_of",
    "size_of",
    "tensor_type",
    "type_of",
]
