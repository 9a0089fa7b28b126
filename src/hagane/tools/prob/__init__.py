"""Programs that draw random numbers, and types that bound how likely an outcome is."""

from typing import TYPE_CHECKING, Any

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

# Python functions need an interpreter of Python, which programs in files do not.
if TYPE_CHECKING:
    from hagane.tools.prob.decorator import BrokenClaim, TypedFunction, typed

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


def __getattr__(name: str) -> Any:
    if name in ("BrokenClaim", "TypedFunction", "typed"):
        from hagane.tools.prob import decorator

        return getattr(decorator, name)
    raise AttributeError(f"module 'hagane.tools.prob' has no attribute '{name}'")
