"""Functions whose type speaks of the distribution of an argument.

``letfun f(x: {x:bool | Prob(x) <= 1/10}) : {y:bool | Prob(y) <= 1/5}`` is a claim about every
distribution of x that its type admits. The results of f for each value of x are known exactly, so
the extremes over those distributions are linear programmes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import product
from typing import Any

from hagane.tools.prob.claims.linear import NotLinear, requirement
from hagane.tools.prob.claims.modular import ByTypes, Menu, Reward, follows, menus, ranges_of
from hagane.tools.prob.claims.simplex import maximise
from hagane.tools.prob.engines.ledger import Key
from hagane.tools.prob.language.program import VALUE, Function, Site, mentions_probability
from hagane.tools.prob.language.syntax import Value


def takes_distributions(function: Function) -> bool:
    """Tell whether the type of an argument speaks of its distribution."""
    return any(
        claim.formula is not None and mentions_probability(claim.formula)
        for claim in function.requires
    )


def decide_mixture(
    function: Function, site: Site, tables: Mapping[tuple[Value, ...], Mapping[Key, Fraction]]
) -> ByTypes:
    """Return whether a claim holds for all admitted distributions of the arguments.

    Args:
        function: The function.
        site: The claim about its result.
        tables: For each combination of inputs, the effects of its definition.
    """
    claim = site.claim
    assert claim.formula is not None
    inputs = list(tables)
    menu = _admitted(function, inputs)
    names = (*claim.variables, VALUE)

    def gains(reward: Reward, sign: int) -> list[Fraction]:
        found = []
        for given in inputs:
            values: dict[str, Any] = dict(zip(function.inputs, given, strict=True))
            total = Fraction(0)
            for key, weight in tables[given].items():
                total += weight * reward({**values, **dict(zip(names, key, strict=True))})
            found.append(sign * total)
        return found

    def best(reward: Reward, sign: int) -> Fraction:
        every = gains(reward, sign)
        found = [maximise([every[i] for i in one.kept], one.constraints) for one in menu]
        reached = [value for value in found if value is not None]
        if not reached:
            raise NotLinear  # no distribution is admitted: the claim would be vacuous
        return max(reached)

    def extremes(reward: Reward) -> tuple[Fraction, Fraction]:
        return -best(reward, -1), best(reward, 1)

    try:
        return ByTypes(
            follows(requirement(claim.formula, {}), extremes), ranges_of(claim, extremes)
        )
    except NotLinear:
        return ByTypes(None, ())


def _admitted(function: Function, inputs: Sequence[tuple[Value, ...]]) -> list[Menu]:
    """Return the ways in which a distribution over inputs may meet the parameters' types."""
    values = [dict(zip(function.inputs, given, strict=True)) for given in inputs]
    each = []
    for name, claim in zip(function.parameters, function.requires, strict=True):
        outcomes = [{**one, VALUE: one[name]} for one in values]
        each.append(menus(claim, {}, outcomes))
    combined = []
    for chosen in product(*each):
        kept = set(range(len(inputs))).intersection(*(menu.kept for menu in chosen))
        order = tuple(sorted(kept))
        constraints = []
        for menu in chosen:
            places = {outcome: place for place, outcome in enumerate(menu.kept)}
            for constraint in menu.constraints:
                row = tuple(constraint.coefficients[places[i]] for i in order)
                constraints.append(type(constraint)(row, constraint.operator))
        combined.append(Menu(order, tuple(constraints)))
    return combined
