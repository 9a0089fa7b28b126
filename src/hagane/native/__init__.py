"""The native engine: graph parts to C, to machine code, to results."""

from hagane.native.caller import Caller, make_caller
from hagane.native.choices import Choice, Choices
from hagane.native.choices import from_json as choice_from_json
from hagane.native.choices import to_json as choice_to_json
from hagane.native.context import Spent
from hagane.native.control import Mark
from hagane.native.lowering import AT_RUN_TIME
from hagane.native.members import has_rule
from hagane.native.onednn import obstacle as library_obstacle
from hagane.native.outputs import is_pooled
from hagane.native.partition import Draft, Target, draft_nodes
from hagane.native.peak import peak_flops
from hagane.native.rules.control import grown_outputs
from hagane.native.segment import Segment, ShapeMismatch
from hagane.native.tuning import Settings, Tuned, has_numbers, tune
from hagane.native.widen import widen_halves

__all__ = [
    "AT_RUN_TIME",
    "Caller",
    "Choice",
    "Choices",
    "Draft",
    "Mark",
    "Segment",
    "Settings",
    "ShapeMismatch",
    "Spent",
    "Target",
    "Tuned",
    "choice_from_json",
    "choice_to_json",
    "draft_nodes",
    "grown_outputs",
    "has_numbers",
    "has_rule",
    "is_pooled",
    "library_obstacle",
    "make_caller",
    "peak_flops",
    "tune",
    "widen_halves",
]
