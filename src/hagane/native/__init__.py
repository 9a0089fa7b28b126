"""The native engine: graph parts to C, to machine code, to results."""

from hagane.native.caller import Caller, make_caller
from hagane.native.partition import NativePart, Plan, SizesUnknown, plan_graph, reference_nodes
from hagane.native.peak import peak_flops
from hagane.native.segment import Segment, ShapeMismatch
from hagane.native.widen import widen_halves

__all__ = [
    "Caller",
    "NativePart",
    "Plan",
    "Segment",
    "ShapeMismatch",
    "SizesUnknown",
    "make_caller",
    "peak_flops",
    "plan_graph",
    "reference_nodes",
    "widen_halves",
]
