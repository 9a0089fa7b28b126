"""The native engine: graph parts to C, to machine code, to results.

Names load their modules when they are first used: a session from the cache needs few.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hagane.native.kernels.control import Mark
    from hagane.native.lowering.choices import Choice, Choices
    from hagane.native.lowering.choices import from_json as choice_from_json
    from hagane.native.lowering.choices import to_json as choice_to_json
    from hagane.native.lowering.facts import AT_RUN_TIME
    from hagane.native.plan.apply_rules import has_rule
    from hagane.native.plan.listing import assembly_listing, c_listing
    from hagane.native.plan.partition import Draft, Target, draft_nodes
    from hagane.native.plan.widen_halves import HALVES, widen_halves
    from hagane.native.ready.caller import Caller, entry_of, make_entry, make_frame
    from hagane.native.ready.context import ShapeMismatch
    from hagane.native.ready.mapped import WeightStore
    from hagane.native.ready.outputs import OutputPool, is_pooled
    from hagane.native.rules.control.operators import grown_outputs
    from hagane.native.rules.onednn.binding import obstacle as library_obstacle
    from hagane.native.run.compiled import Compiled
    from hagane.native.run.context import Spent
    from hagane.native.run.engine import begin_engine
    from hagane.native.run.files import load_compiled, save_compiled
    from hagane.native.run.loaded import Loaded
    from hagane.native.tuning.measure import Settings, Tuned, has_numbers, tune
    from hagane.native.tuning.peak import peak_flops

__all__ = [
    "AT_RUN_TIME",
    "HALVES",
    "Caller",
    "Choice",
    "Choices",
    "Compiled",
    "Draft",
    "Loaded",
    "Mark",
    "OutputPool",
    "Settings",
    "ShapeMismatch",
    "Spent",
    "Target",
    "Tuned",
    "WeightStore",
    "assembly_listing",
    "begin_engine",
    "c_listing",
    "choice_from_json",
    "choice_to_json",
    "draft_nodes",
    "entry_of",
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

# The module and the original name of each name.
_PLACES = {
    "HALVES": ("hagane.native.plan.widen_halves", "HALVES"),
    "WeightStore": ("hagane.native.ready.mapped", "WeightStore"),
    "AT_RUN_TIME": ("hagane.native.lowering.facts", "AT_RUN_TIME"),
    "Caller": ("hagane.native.ready.caller", "Caller"),
    "Choice": ("hagane.native.lowering.choices", "Choice"),
    "Choices": ("hagane.native.lowering.choices", "Choices"),
    "Compiled": ("hagane.native.run.compiled", "Compiled"),
    "Draft": ("hagane.native.plan.partition", "Draft"),
    "Loaded": ("hagane.native.run.loaded", "Loaded"),
    "Mark": ("hagane.native.kernels.control", "Mark"),
    "OutputPool": ("hagane.native.ready.outputs", "OutputPool"),
    "Settings": ("hagane.native.tuning.measure", "Settings"),
    "ShapeMismatch": ("hagane.native.ready.context", "ShapeMismatch"),
    "Spent": ("hagane.native.run.context", "Spent"),
    "Target": ("hagane.native.plan.partition", "Target"),
    "Tuned": ("hagane.native.tuning.measure", "Tuned"),
    "assembly_listing": ("hagane.native.plan.listing", "assembly_listing"),
    "begin_engine": ("hagane.native.run.engine", "begin_engine"),
    "c_listing": ("hagane.native.plan.listing", "c_listing"),
    "choice_from_json": ("hagane.native.lowering.choices", "from_json"),
    "choice_to_json": ("hagane.native.lowering.choices", "to_json"),
    "draft_nodes": ("hagane.native.plan.partition", "draft_nodes"),
    "grown_outputs": ("hagane.native.rules.control.operators", "grown_outputs"),
    "has_numbers": ("hagane.native.tuning.measure", "has_numbers"),
    "has_rule": ("hagane.native.plan.apply_rules", "has_rule"),
    "is_pooled": ("hagane.native.ready.outputs", "is_pooled"),
    "library_obstacle": ("hagane.native.rules.onednn.binding", "obstacle"),
    "load_compiled": ("hagane.native.run.files", "load_compiled"),
    "entry_of": ("hagane.native.ready.caller", "entry_of"),
    "make_entry": ("hagane.native.ready.caller", "make_entry"),
    "make_frame": ("hagane.native.ready.caller", "make_frame"),
    "peak_flops": ("hagane.native.tuning.peak", "peak_flops"),
    "save_compiled": ("hagane.native.run.files", "save_compiled"),
    "tune": ("hagane.native.tuning.measure", "tune"),
    "widen_halves": ("hagane.native.plan.widen_halves", "widen_halves"),
}


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, known = _PLACES[name]
    found = globals()[name] = getattr(importlib.import_module(module), known)
    return found
