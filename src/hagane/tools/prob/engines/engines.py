"""The engines, and which one a unit gets."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TypeAlias

from hagane.errors import InvalidArgument
from hagane.tools.prob.engines.chains.chain import recurses, run_chain
from hagane.tools.prob.engines.chains.storm import run_storm
from hagane.tools.prob.engines.diagram import run_diagram
from hagane.tools.prob.engines.dynamic import run_dynamic
from hagane.tools.prob.engines.enumeration import run_enumeration
from hagane.tools.prob.engines.ledger import DEFAULT_LIMITS, Ledger, Limits, Unit
from hagane.tools.prob.language.idle import without_idle
from hagane.tools.prob.language.program import Apply, Program, walk
from hagane.tools.prob.language.source import EndlessRecursion, PathError, TooLarge, TooManyCalls
from hagane.tools.prob.language.syntax import Choose, Flip, Literal, Rand, Unary

Engine: TypeAlias = Callable[[Program, Unit, Limits], Ledger]

ENGINES: Mapping[str, Engine] = {
    "dynamic": run_dynamic,
    "diagram": run_diagram,
    "enumerate": run_enumeration,
    "chain": run_chain,
    "storm": run_storm,
}

# Other words for them.
_ALIASES = {
    "dp": "dynamic",
    "dynamic-programming": "dynamic",
    "bdd": "diagram",
    "dd": "diagram",
    "diagrams": "diagram",
    "enum": "enumerate",
    "enumeration": "enumerate",
    "brute-force": "enumerate",
    "markov": "chain",
}

# Up to this many runs, running all of them costs less than keeping tables.
_FEW_RUNS = 64
_READABLE = 10**9

# Calls that may be open before recursion is taken for one without a bound.
_OPEN = 64

# Calls that tables follow before the chain is tried: where branches call with arguments that meet
# again later, there are exponentially many ways and few states.
_FEW_CALLS = 100
_FEW_AGAIN = 10

# Rows of the tables that are searched for a run that goes wrong.
_FEW_ROWS = 200_000


@dataclass(frozen=True, slots=True)
class Choice:
    """A ledger, the engine that made it, and why that one."""

    ledger: Ledger
    engine: str
    reason: str


def run_unit(
    program: Program, unit: Unit, engine: str = "auto", limits: Limits = DEFAULT_LIMITS
) -> Choice:
    """Run a unit on an engine, or on one chosen by the unit's size.

    Few runs are enumerated. Otherwise the dynamic programme goes first; where it would need more
    rows than it may have, diagrams follow, and where recursion has no bound, the equations of the
    Markov chain.

    Raises:
        InvalidArgument: There is no such engine.
        PathError: Some possible run goes wrong.
        TooLarge: The unit is beyond the limits of the engine, or of all of them.
    """
    engine = _ALIASES.get(engine, engine)
    if engine != "auto":
        if engine not in ENGINES:
            known = ", ".join(("auto", *ENGINES))
            raise InvalidArgument(f"--engine: expected one of {known}; got '{engine}'")
        return Choice(_run(program, unit, engine, limits), engine, "asked for")
    runs = estimate_runs(unit)
    if runs is not None and runs <= _FEW_RUNS:
        ledger = run_enumeration(program, unit, limits)
        return Choice(ledger, "enumerate", f"at most {runs} run{'' if runs == 1 else 's'}")
    many = "calls functions" if runs is None else f"up to {_shown(runs)} runs"
    unit = replace(unit, expression=without_idle(unit.expression))
    try:
        found = _recursive(program, unit, limits) if recurses(unit) else None
        if found is not None and found[1]:
            states = f"{found[0].size} state{'' if found[0].size == 1 else 's'}"
            return Choice(found[0], "chain", f"{found[1]}, {states}")
        ledger = run_dynamic(program, unit, limits) if found is None else found[0]
    except TooLarge as error:
        why = error.message.partition(" here")[0]
        try:
            ledger = _run(program, unit, "diagram", limits)
        except TooLarge as second:
            raise TooLarge(
                f"{error.message}; and {second.message.partition(';')[0]}; shorten ranges, or keep "
                "fewer variables alive",
                program.source,
                error.span,
            ) from None
        return Choice(ledger, "diagram", f"{many}; {why}")
    return Choice(ledger, "dynamic", f"{many}, {ledger.size} row{'' if ledger.size == 1 else 's'}")


def _recursive(program: Program, unit: Unit, limits: Limits) -> tuple[Ledger, str] | None:
    """Return the ledger of recursion: of the chain with the reason, of tables where they are few.

    None stands for recursion that tables follow at length, and for errors.
    """
    try:
        open_ = min(_OPEN, limits.depth)
        few = replace(limits, depth=open_, calls=_FEW_CALLS, again=_FEW_AGAIN)
        return run_dynamic(program, unit, few, told=False), ""
    except EndlessRecursion:
        with suppress(PathError, TooLarge):
            return run_chain(program, unit, limits), "recursion without a bound"
    except TooManyCalls:
        with suppress(PathError, TooLarge):
            ledger = run_chain(program, unit, limits)
            if not ledger.open:
                return ledger, "calls that meet again"
    except (PathError, TooLarge):
        pass
    return None


def _run(program: Program, unit: Unit, engine: str, limits: Limits) -> Ledger:
    """Run a unit on an engine; an error is told with a run that leads to it."""
    try:
        return ENGINES[engine](program, unit, limits)
    except PathError:
        # Diagrams and Storm know states, not runs.
        if engine in ("diagram", "storm"):
            with suppress(TooLarge):
                run_dynamic(program, unit, replace(limits, states=min(limits.states, _FEW_ROWS)))
        raise


def estimate_runs(unit: Unit) -> int | None:
    """Return a bound on the number of runs, or None where it is not plain from the text."""
    runs = 1
    for node in walk(unit.expression):
        match node:
            case Apply():
                return None
            case Rand():
                low, high = _constant(node.low), _constant(node.high)
                if low is None or high is None:
                    return None
                runs *= max(1, high - low + 1)
            case Flip():
                runs *= 2
            case Choose(branches=branches):
                runs *= len(branches)
    return runs


def _shown(runs: int) -> str:
    """Return a number, of which the digits stand only where they can be read."""
    return str(runs) if runs < _READABLE else f"10^{int(math.log10(runs))}"


def _constant(node: object) -> int | None:
    match node:
        case Literal(value=value):
            return int(value)
        case Unary(operator="-", operand=Literal(value=value)):
            return -int(value)
    return None
