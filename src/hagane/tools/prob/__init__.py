"""Programs that draw random numbers, and types that bound how likely an outcome is."""

from hagane.tools.prob.claims.checker import check, load_program
from hagane.tools.prob.claims.export import export_prism
from hagane.tools.prob.claims.verdict import Report, Verdict
from hagane.tools.prob.draws import (
    ObservationFailed,
    choose,
    flip,
    generator,
    observe,
    rand,
)
from hagane.tools.prob.engines.ledger import Limits
from hagane.tools.prob.language.source import ProgramError
from hagane.tools.prob.typed import BrokenClaim, TypedFunction, typed

__all__ = [
    "BrokenClaim",
    "Limits",
    "ObservationFailed",
    "ProgramError",
    "Report",
    "TypedFunction",
    "Verdict",
    "check",
    "choose",
    "export_prism",
    "flip",
    "generator",
    "load_program",
    "observe",
    "rand",
    "typed",
]
