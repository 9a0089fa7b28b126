"""Programs that draw random numbers, and types that bound how likely an outcome is."""

from hagane.tools.prob.checker import Report, Verdict, check, load_program

__all__ = ["Report", "Verdict", "check", "load_program"]
