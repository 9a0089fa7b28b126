"""The native engine: graph parts to C, to machine code, to results."""

from hagane.native.kernels.control import Mark
from hagane.native.lowering.choices import Choice, Choices
from hagane.native.lowering.choices import from_json as choice_from_json
from hagane.native.lowering.choices import to_json as choice_to_json
from hagane.native.plan.partition import NativePart, Plan, SizesUnknown, plan_graph, reference_nodes
from hagane.native.plan.widen_halves import widen_halves
from hagane.native.rules.onednn.binding import obstacle as library_obstacle
from hagane.native.run.caller import Caller, make_caller
from hagane.native.run.context import Spent
from hagane.native.run.outputs import is_pooled
from hagane.native.run.segment import Segment, ShapeMismatch
from hagane.native.tuning.measure import Settings, Tuned, has_numbers, tune
from hagane.native.tuning.peak import peak_flops

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
