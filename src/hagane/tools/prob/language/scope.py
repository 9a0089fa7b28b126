"""Meanings of names at a place, and the variables that functions and formulas take from around."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches

from hagane.tools.prob.language.program import VALUE, Apply, Function, Kind, Liveness, parts, walk
from hagane.tools.prob.language.syntax import Expectation, Expression, Probability, Variable

_MOST_NAMES = 12


@dataclass(frozen=True, slots=True)
class Scope:
    """The meanings of names here, and the forms that may be written here.

    ``exact`` is set where numbers are rationals and ``/`` divides exactly: claims outside Prob
    and E, and probabilities. ``pure`` says why nothing may be drawn here, or is empty.
    """

    values: Mapping[str, tuple[Expression, Kind]]
    functions: Mapping[str, Function]
    enclosing: tuple[Function, ...] = ()
    exact: bool = False
    pure: str = ""
    claims: bool = False

    def bind(self, name: str, value: Expression, kind: Kind) -> Scope:
        """Return the scope in which a name stands for a value."""
        functions = {key: found for key, found in self.functions.items() if key != name}
        return replace(self, values={**self.values, name: (value, kind)}, functions=functions)


def close_functions(functions: Sequence[Function]) -> None:
    """Find the captured variables of each function, a fixed point: functions call each other."""
    calls = {
        function: [n.function for n in walk(function.definition) if isinstance(n, Apply)]
        for function in functions
    }
    direct = {
        f: Liveness().free(f.definition).union(*(c.variables for c in (f.result, *f.requires)))
        - frozenset(f.parameters)
        for f in functions
    }
    changed = True
    while changed:
        changed = False
        for function in functions:
            names = direct[function].union(*(called.captured for called in calls[function]))
            captured = tuple(sorted(names - frozenset(function.parameters) - {VALUE}))
            changed |= captured != function.captured
            function.captured = captured


def known_names(wanted: str, names: Iterable[str]) -> str:
    """Return the names that a message tells, those most like the wanted one first."""
    plain = sorted({name for name in names if name[0].isalpha()})
    like = get_close_matches(wanted, plain, n=3)
    listed = [*like, *(name for name in plain if name not in like)]
    more = f", … {len(listed) - _MOST_NAMES} more" if len(listed) > _MOST_NAMES else ""
    meant = f" (did you mean '{like[0]}'?)" if like else ""
    return ", ".join(listed[:_MOST_NAMES]) + more + meant


def measure_name(function: Function) -> str:
    """Return the variable that holds the measure of a function's activation."""
    return f"$measure {function.name}"


def sort_variables(node: Expression, outside: set[str], inside: set[str]) -> None:
    """Sort a formula's variables by whether they stand in Prob and E."""
    if isinstance(node, Variable):
        outside.add(node.name)
        return
    if isinstance(node, Probability | Expectation):
        for part in parts(node):
            inside |= Liveness().free(part)
        return
    for part in parts(node):
        sort_variables(part, outside, inside)
