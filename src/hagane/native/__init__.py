"""The native engine: graph parts to C, to machine code, to results."""

from hagane.native.caller import Caller, make_caller
from hagane.native.choices import Choice, Choices
from hagane.native.choices import from_json as choice_from_json
from hagane.native.choices import to_json as choice_to_json
from hagane.native.context import Spent
from hagane.native.control import Mark
from hagane.native.onednn import obstacle as library_obstacle
from hagane.native.outputs import is_pooled
from hagane.native.partition import NativePart, Plan, SizesUnknown, plan_graph, reference_nodes
from hagane.native.peak import peak_flops
from hagane.native.segment import Segment, ShapeMismatch
from hagane.native.tuning import Settings, Tuned, has_numbers, tune
from hagane.native.widen import widen_halves

__all__ = [
    "Caller",
    "Choice",
    "Choices",
    "Mark",
    "NativePart",
    "Plan",
    "Segment",
    "Settings",
    "ShapeMismatch",
    "SizesUnknown",
    "Spent",
    "Tuned",
    "choice_from_json",
    "choice_to_json",
    "has_numbers",
    "is_pooled",
    "library_obstacle",
    "make_caller",
    "peak_flops",
    "plan_graph",
    "reference_nodes",
    "tune",
    "widen_halves",
]
