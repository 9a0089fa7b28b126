"""The native engine: graph parts to C, to machine code, to results."""

from hagane.native.partition import NativePart, Plan, plan_graph
from hagane.native.segment import Segment, ShapeMismatch

__all__ = ["NativePart", "Plan", "Segment", "ShapeMismatch", "plan_graph"]
