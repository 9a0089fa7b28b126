"""``hagane.prob``: probabilistic types, under their short name (see ``hagane.tools.prob``)."""

from hagane.tools.prob import (
    BrokenClaim,
    Limits,
    ObservationFailed,
    ProgramError,
    Report,
    TypedFunction,
    Verdict,
    check,
    choose,
    export_prism,
    flip,
    generator,
    load_program,
    observe,
    rand,
    typed,
)

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
