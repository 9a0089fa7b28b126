"""The units that engines run, and the ledgers of their results."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, TypeAlias

from hagane.tools.prob.language.program import Function, Program, Site, sites_in
from hagane.tools.prob.language.syntax import Expression, Value

# The values of a claim's variables, and last the value that the claim is about.
Key: TypeAlias = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Unit:
    """A piece that is checked as a whole: the main expression, or a function for given arguments.

    Claims inside its own text are recorded; those of functions that it calls are checked in
    units of their own.
    """

    expression: Expression
    values: Mapping[str, Value] = field(default_factory=dict)
    function: Function | None = None

    @property
    def sites(self) -> list[Site]:
        """Return the claims of this unit."""
        return sites_in(self.expression)


def main_unit(program: Program) -> Unit:
    """Return the unit of the whole program."""
    return Unit(program.main)


def function_unit(function: Function, inputs: tuple[Value, ...]) -> Unit:
    """Return the unit of a function for given arguments and captured values."""
    values = dict(zip(function.inputs, inputs, strict=True))
    return Unit(function.definition, values, function)


@dataclass(frozen=True, slots=True)
class Limits:
    """The resources of an engine.

    Attributes:
        states: Rows of a table, or states of a machine.
        nodes: Nodes of a decision diagram.
        runs: Runs of the enumeration.
        depth: Calls of one function that may be open at once, where it declares no depth.
        calls: How often tables may go into functions.
        again: How often they may do so with the same arguments as before.
    """

    states: int = 3_000_000
    nodes: int = 500_000
    runs: int = 1_000_000
    depth: int = 5_000
    calls: int = 10**12
    again: int = 10**12


DEFAULT_LIMITS = Limits()


@dataclass(slots=True)
class Ledger:
    """The results of running a unit.

    Attributes:
        tables: For each claim, the probability of reaching it with each key; the sum over all
            keys is the probability of reaching it at all.
        calls: The inputs that each function got from outside its own definition.
        result: The distribution of the unit's value; it sums to the probability that all
            observations hold.
        unending: The probability of the runs that never end.
        open: The probability of the runs that were not followed to their end; all others are known
            up to it.
        rejects: Whether observations failed on some run, where the program does not show it.
        holds_means: Whether the last item of keys is the mean of values without a bound.
        size: How much of its measure (rows, nodes, runs) the engine used at most.
    """

    tables: dict[Site, dict[Key, Fraction]] = field(default_factory=dict)
    calls: dict[Function, set[tuple[Value, ...]]] = field(default_factory=dict)
    result: dict[Value, Fraction] = field(default_factory=dict)
    size: int = 0
    unending: Fraction = Fraction(0)
    open: Fraction = Fraction(0)
    rejects: bool = False
    holds_means: bool = False

    def called(self, function: Function, inputs: tuple[Value, ...]) -> None:
        """Note a call from outside."""
        self.calls.setdefault(function, set()).add(inputs)
