"""The engines, and which one a unit gets."""

from __future__ import annotations

from dataclasses import dataclass

from hagane.errors import InvalidArgument
from hagane.tools.prob.dynamic import run_dynamic
from hagane.tools.prob.ledger import Ledger, Limits, Unit
from hagane.tools.prob.program import Program

ENGINES = ("dynamic",)


@dataclass(frozen=True, slots=True)
class Choice:
    """A ledger, the engine that made it, and why that one."""

    ledger: Ledger
    engine: str
    reason: str


def run_unit(program: Program, unit: Unit, engine: str, limits: Limits) -> Choice:
    """Run a unit on an engine, or on one chosen by the unit's size."""
    if engine not in ("auto", *ENGINES):
        raise InvalidArgument(f"--engine: expected auto, {', '.join(ENGINES)}, got '{engine}'")
    return Choice(run_dynamic(program, unit, limits), "dynamic", "")
