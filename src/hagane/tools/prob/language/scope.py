"""Meanings of names at a place, and the variables that functions and formulas take from around."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from fractions import Fraction
from typing import Any

from hagane.errors import InvalidArgument
from hagane.tools.prob.language.program import (
    VALUE,
    Apply,
    Claim,
    Function,
    Kind,
    Liveness,
    parts,
    walk,
)
from hagane.tools.prob.language.ratios import Parameters
from hagane.tools.prob.language.source import Source, Span
from hagane.tools.prob.language.syntax import (
    Expectation,
    Expression,
    LetFun,
    Literal,
    Probability,
    Unknown,
    Variable,
)

_MOST_NAMES = 12


@dataclass(frozen=True, slots=True)
class Scope:
    """The meanings of names here, and the forms that may be written here.

    ``exact`` is set where numbers are rationals and ``/`` divides exactly: claims outside Prob
    and E, and probabilities. ``pure`` says why nothing may be drawn here, or is empty.
    """

    values: Mapping[str, tuple[Expression, Kind]]
    functions: Mapping[str, Function | Template]
    enclosing: tuple[Function, ...] = ()
    exact: bool = False
    pure: str = ""
    claims: bool = False

    def bind(self, name: str, value: Expression, kind: Kind) -> Scope:
        """Return the scope in which a name stands for a value."""
        functions = self.functions
        if name in functions:
            functions = {key: found for key, found in functions.items() if key != name}
        values = {**self.values, name: (value, kind)}
        return Scope(values, functions, self.enclosing, self.exact, self.pure, self.claims)


@dataclass(frozen=True, eq=False, slots=True)
class Template:
    """A function that takes functions: it is made anew for each choice of these.

    Attributes:
        node: Its definition.
        scope: The names where it stands.
    """

    node: LetFun
    scope: Scope


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


def read_parameters(
    source: Source, unknowns: Sequence[Unknown], at: Mapping[str, Fraction]
) -> tuple[Parameters | None, dict[str, tuple[Expression, Kind]]]:
    """Return the parameters of a program that stay open, and the meanings of all their names.

    Args:
        source: The program.
        unknowns: The parameters.
        at: Values of some of them.

    Raises:
        InvalidArgument: There is no such parameter, or a value is out of its range.
    """
    declared = {unknown.name: unknown for unknown in unknowns}
    for name, value in at.items():
        if name not in declared:
            known = ", ".join(declared) or "none"
            raise InvalidArgument(
                f"{source.name} has no parameter '{name}'; its parameters: {known}"
            )
        low, high = declared[name].low, declared[name].high
        if not low <= value <= high:
            raise InvalidArgument(f"'{name}' lies from {low} to {high}; got {value}")
    left = [unknown for unknown in declared.values() if unknown.name not in at]
    values: dict[str, tuple[Expression, Kind]] = {
        name: (Literal(declared[name].span, value), "rational") for name, value in at.items()
    }
    if not left:
        return None, values
    parameters = Parameters(
        tuple(unknown.name for unknown in left), tuple((each.low, each.high) for each in left)
    )
    for unknown in left:
        # The engine of parameters alone meets them; for all others a literal is a number.
        ratio: Any = parameters.ratio(unknown.name)
        values[unknown.name] = (Literal(unknown.span, ratio), "rational")
    return parameters, values


def measure_name(function: Function) -> str:
    """Return the variable that holds the measure of a function's activation."""
    return f"$measure {function.name}"


def claim_of(span: Span, text: str, kind: Kind, formula: Expression, parameters: set[str]) -> Claim:
    """Return a claim with the variables that it speaks of, without parameters of functions."""
    outside: set[str] = set()
    inside: set[str] = set()
    _sort_variables(formula, outside, inside)
    given = parameters | {VALUE}
    fixed = tuple(sorted(outside - given))
    joint = tuple(sorted(inside - outside - given))
    return Claim(span, text, kind, formula, fixed, joint, VALUE in outside)


def _sort_variables(node: Expression, outside: set[str], inside: set[str]) -> None:
    """Sort a formula's variables by whether they stand in Prob and E."""
    if isinstance(node, Variable):
        outside.add(node.name)
        return
    if isinstance(node, Probability | Expectation):
        for part in parts(node):
            inside |= Liveness().free(part)
        return
    for part in parts(node):
        _sort_variables(part, outside, inside)
