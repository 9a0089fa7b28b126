"""StopGradient: a value through which no gradient goes, of hagane's own.

Captured losses have it where programs detach a tensor or compute without gradients. Once gradients
are there, ``remove_stops`` takes it out.
"""

from __future__ import annotations

from typing import Any

import onnx_ir as ir

from hagane.graph.walk import all_nodes
from hagane.ops.builder import op
from hagane.ops.definition import OpDef
from hagane.ops.own_schemas import DOMAIN, float_schema
from hagane.ops.rules import same_shape
from hagane.ops.traits import Trait

STOP = "StopGradient"


def stopped(x: Any) -> Any:
    """Return ``x``, floats, through which no gradient goes."""
    return op(STOP, x, domain=DOMAIN)


def _composed(x: Any) -> Any:
    return op("Identity", x)


def remove_stops(graph: ir.Graph) -> None:
    """Let values be values again, in bodies too, in place."""
    for node in all_nodes(graph):
        if node.op_type == STOP and node.domain == DOMAIN:
            node.op_type, node.domain = "Identity", ""


OPERATORS = (
    OpDef(
        STOP, same_shape, lambda x: x, domain=DOMAIN, vjp=lambda call, gradients: [None],
        compose=_composed, traits=Trait.ELEMENTWISE,
    ),
)  # fmt: skip
SCHEMAS = {(DOMAIN, STOP): float_schema("X", "Y", {})}
