"""Python functions with continuous draws: one run for each outcome of draws and comparisons."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from hagane.tools.prob.draws import ObservationFailed, deciding
from hagane.tools.prob.engines.continuous import Continuum, Run, TooManyDraws
from hagane.tools.prob.engines.interpreter import Odds
from hagane.tools.prob.engines.ledger import Unit
from hagane.tools.prob.integrals.real import NotLinear, Real
from hagane.tools.prob.language.floats import fraction_of
from hagane.tools.prob.language.program import Kind
from hagane.tools.prob.language.ratios import Number
from hagane.tools.prob.language.source import ProgramTypeError, Source, Span
from hagane.tools.prob.replay.chance import OtherChance, no_other_chance, refuse_generators
from hagane.tools.prob.replay.functions import failed
from hagane.tools.prob.replay.marked import Marked
from hagane.tools.prob.replay.older import outside
from hagane.tools.prob.replay.reached import reached


class _Decider:
    """The draws of a Python function, decided by a run's world."""

    def __init__(self, world: Continuum):
        self.world = world
        self.uniform = world.uniform
        self.continuous = world.continuous
        self.chance = world.chance

    def weighted(self, chances: Sequence[Number]) -> int:
        return self.world.weighted(Odds.of([Fraction(str(chance)) for chance in chances]))


def integrated(function: Marked, kind: Kind, unit: Unit, source: Source, span: Span) -> Run:
    """Return the runs of a function without arguments.

    Args:
        function: The function.
        kind: The kind of its results.
        unit: The claims about its result.
        source: Its file.
        span: Its place there.
    """
    known = reached(function.function)

    def run(world: Continuum) -> tuple[Any, Sequence[Any]]:
        token = deciding.set(_Decider(world))
        try:
            refuse_generators(outside(function.function))
            with no_other_chance(deciding.get, known):
                value = function.function()
        except ObservationFailed:
            if world.fault is None:
                return None, ()
        except (NotLinear, TooManyDraws):
            raise
        except OtherChance as error:
            raise ProgramTypeError(str(error), source, span) from None
        except Exception as error:
            if world.fault is not None:
                raise world.fault from None
            raise failed(error, function.function, source, span) from error
        finally:
            deciding.reset(token)
        if world.fault is not None:  # which the program caught
            raise world.fault
        value = _number(value) if kind == "real" else value
        if not _is_of(value, kind):
            raise ProgramTypeError(
                f"a possible run returns {value!r}, expected {kind}", source, span
            )
        return value, [(site, (value,)) for site in unit.sites]

    return run


def _number(value: Any) -> Any:
    return fraction_of(value) if isinstance(value, float) else value


def _is_of(value: Any, kind: Kind) -> bool:
    if isinstance(kind, tuple):
        return (
            isinstance(value, tuple)
            and len(value) == len(kind)
            and all(_is_of(item, inner) for item, inner in zip(value, kind, strict=True))
        )
    if kind == "bool":
        return isinstance(value, bool)
    return isinstance(value, int | Fraction | Real) if kind == "real" else isinstance(value, int)
