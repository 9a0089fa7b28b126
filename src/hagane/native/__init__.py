"""The native engine: graph parts to C, to machine code, to results."""

from hagane.native.kernels.control import Mark
from hagane.native.lowering.choices import Choice, Choices
from hagane.native.lowering.choices import from_json as choice_from_json
from hagane.native.lowering.choices import to_json as choice_to_json
from hagane.native.lowering.facts import AT_RUN_TIME
from hagane.native.plan.apply_rules import has_rule
from hagane.native.plan.listing import assembly_listing, c_listing
from hagane.native.plan.partition import Draft, Target, draft_nodes
from hagane.native.plan.widen_halves import widen_halves
from hagane.native.rules.control.operators import grown_outputs
from hagane.native.rules.onednn.binding import obstacle as library_obstacle
from hagane.native.run.caller import Caller, make_entry, make_frame
from hagane.native.run.compiled import Compiled
from hagane.native.run.context import Spent
from hagane.native.run.files import load_compiled, save_compiled
from hagane.native.run.loaded import Loaded, ShapeMismatch
from hagane.native.run.outputs import is_pooled
from hagane.native.tuning.measure import Settings, Tuned, has_numbers, tune
from hagane.native.tuning.peak import peak_flops

__all__ = [
    "AT_RUN_TIME",
    "Caller",
    "Choice",
    "Choices",
    "Compiled",
    "Draft",
    "Loaded",
    "Mark",
    "Settings",
    "ShapeMismatch",
    "Spent",
    "Target",
    "Tuned",
    "assembly_listing",
    "c_listing",
    "choice_from_json",
    "choice_to_json",
    "draft_nodes",
    "grown_outputs",
    "has_numbers",
    "has_rule",
    "is_pooled",
    "library_obstacle",
    "load_compiled",
    "make_entry",
    "make_frame",
    "peak_flops",
    "save_compiled",
    "tune",
    "widen_halves",
]
