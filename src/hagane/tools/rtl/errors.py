"""Errors of a circuit or of the simulator that replays its tests."""

from __future__ import annotations

from collections.abc import Sequence

from hagane.errors import HaganeError


class RtlError(HaganeError):
    """A circuit that cannot be worked on."""


class InvalidDesign(RtlError, ValueError):
    """The sources don't elaborate; the message is the front end's, with positions."""


class UnsupportedDesign(RtlError, NotImplementedError):
    """The circuit uses the language beyond the subset; every place is listed."""

    def __init__(self, problems: Sequence[str]):
        self.problems = tuple(problems)
        lines = "\n".join(f"  - {problem}" for problem in problems)
        super().__init__(f"the circuit goes beyond what hagane rtl takes:\n{lines}")


class SimulatorError(RtlError, RuntimeError):
    """The simulator is missing or failed; the message ends with its output."""
