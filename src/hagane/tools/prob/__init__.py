"""Programs that draw random numbers, and types that bound how likely an outcome is."""

from hagane.tools.prob.claims.checker import check, load_program, solve
from hagane.tools.prob.claims.export import export_prism
from hagane.tools.prob.claims.formulas import Solution
from hagane.tools.prob.claims.verdict import Report, Verdict
from hagane.tools.prob.draws import (
    ObservationFailed,
    Parameter,
    choose,
    exponential,
    flip,
    generator,
    normal,
    observe,
    rand,
    uniform,
)
from hagane.tools.prob.engines.ledger import Limits
from hagane.tools.prob.language.source import ProgramError
from hagane.tools.prob.typed import BrokenClaim, TypedFunction, typed

__all__ = [
    "BrokenClaim",
    "Limits",
    "ObservationFailed",
    "Parameter",
    "ProgramError",
    "Report",
    "Solution",
    "TypedFunction",
    "Verdict",
    "check",
    "choose",
    "exponential",
    "export_prism",
    "flip",
    "generator",
    "load_program",
    "normal",
    "observe",
    "rand",
    "solve",
    "typed",
    "uniform",
]
