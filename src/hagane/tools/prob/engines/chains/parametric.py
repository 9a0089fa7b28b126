"""Distributions whose probabilities are functions of parameters.

The chain of the program is the same for all values of the parameters but those at which some
probability becomes 0 or 1, and its equations have the same form at those. So they are solved once,
by elimination over rational functions (Daws, 2004, with states eliminated by degree), and hold
wherever the probabilities are such and the determinant is not zero.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from hagane.tools.prob.engines.chains.chain import asks_for_means, solved
from hagane.tools.prob.engines.chains.endless import Endless
from hagane.tools.prob.engines.chains.machine import Stack, State
from hagane.tools.prob.engines.ledger import DEFAULT_LIMITS, Ledger, Limits, Unit
from hagane.tools.prob.language.program import Program
from hagane.tools.prob.language.ratios import ParameterDecides, Ratio
from hagane.tools.prob.language.recursion import deep_recursion
from hagane.tools.prob.language.source import (
    BadDistribution,
    PathError,
    ProgramTypeError,
    TooLarge,
)
from hagane.tools.prob.language.syntax import Choose, Expression, Flip

# States of a chain: elimination over functions is dear.
_MOST_STATES = 5_000


@dataclass(frozen=True, slots=True)
class Formulas:
    """Distributions as functions of parameters.

    Attributes:
        ledger: The distributions; their numbers are fractions or functions.
        shares: The probabilities of draws, which lie from 0 to 1.
        nonzero: Functions that are not zero where the formulas hold.
    """

    ledger: Ledger
    shares: tuple[Ratio, ...]
    nonzero: tuple[Ratio, ...]


def run_parametric(program: Program, unit: Unit, limits: Limits = DEFAULT_LIMITS) -> Formulas:
    """Return the distributions of a unit as functions of the program's parameters.

    Raises:
        PathError: A possible run goes wrong.
        ProgramTypeError: A parameter decides something else than a probability.
        TooLarge: Too many states.
    """
    few = replace(limits, states=min(limits.states, _MOST_STATES))
    means = [False, True] if all(asks_for_means(site.claim) for site in unit.sites) else [False]
    if unit.sites:
        means.reverse()
    with deep_recursion():
        for sums in means:
            machine = _Parametric(program, unit, few, sums=sums)
            try:
                chain = machine.explore(unit.expression)
                break
            except (PathError, TooLarge) as error:
                if isinstance(error, BadDistribution) or sums is means[-1]:
                    raise
            except ParameterDecides as error:
                raise ProgramTypeError(str(error), program.source, machine.at.span) from None
    ledger, pivots = solved(chain)
    return formulas(ledger, tuple(machine.weights), pivots)


def formulas(ledger: Ledger, shares: tuple[Ratio, ...], pivots: Iterable[Any]) -> Formulas:
    """Return distributions with the conditions under which they hold.

    Args:
        ledger: The distributions.
        shares: The probabilities of draws that depend on parameters.
        pivots: The factors of the determinant of the equations that were solved.
    """
    determinant: Any = 1
    for pivot in pivots:
        determinant = determinant * pivot
    nonzero: list[Any] = [determinant]
    mass = sum(ledger.result.values(), Fraction(0))
    nonzero.append(mass)
    nonzero += [share.bottom for share in shares]
    return Formulas(
        ledger,
        shares,
        tuple(dict.fromkeys(each for each in nonzero if _varies(each))),
    )


def _varies(value: Any) -> bool:
    return isinstance(value, Ratio) and value.number is None


class _Parametric(Endless):
    """Explores with probabilities that are functions, all of which count as possible."""

    def __init__(self, program: Program, unit: Unit, limits: Limits, *, sums: bool):
        super().__init__(program, unit, limits, sums=sums)
        # Probabilities of draws that depend on parameters, each with its complement.
        self.weights: dict[Ratio, Ratio] = {}
        self.at: Expression = unit.expression

    def _evaluate(self, node: Expression, values: dict[str, Any], stack: Stack) -> Any:
        self.at = node
        return super()._evaluate(node, values, stack)

    def _finish(
        self, node: Expression, done: tuple[Any, ...], values: dict[str, Any], stack: Stack
    ) -> Any:
        if isinstance(node, Flip) and isinstance(done[0], Ratio):
            if done[0].number is not None:
                done = (done[0].number,)
            else:
                chance = done[0]
                if chance not in self.weights:
                    self.weights[chance] = 1 - chance
                other = self.weights[chance]
                nexts = [(chance, (None, True, stack)), (other, (None, False, stack))]
                return (node, done, stack), State("draw", node), nexts
        return super()._finish(node, done, values, stack)

    def _choose(self, node: Choose, values: dict[str, Any], stack: Stack) -> Any:
        shares = [self._pure(weight, values) for weight, _ in node.branches]
        if not any(_varies(share) for share in shares):
            return super()._choose(node, values, stack)
        total = sum(shares)
        if total != 1:
            raise BadDistribution(
                f"choose: the probabilities sum to {total}, expected 1", self.source, node.span
            )
        nexts = []
        for share, (weight, branch) in zip(shares, node.branches, strict=True):
            if _varies(share):
                self.weights[share] = 1 - share
            elif share < 0:
                text = self.source.slice(weight.span)
                raise BadDistribution(
                    f"choose: the probability '{text}' is {share}, below 0",
                    self.source,
                    weight.span,
                )
            if share:
                nexts.append((share, (branch, self._live(branch, values), stack)))
        return (node, self._live(node, values), stack), State("draw", node), nexts
