"""Programs that draw random numbers, and types that bound how likely an outcome is."""

from hagane.tools.prob.checker import check, load_program
from hagane.tools.prob.ledger import Limits
from hagane.tools.prob.verdict import Report, Verdict

__all__ = ["Limits", "Report", "Verdict", "check", "load_program"]
