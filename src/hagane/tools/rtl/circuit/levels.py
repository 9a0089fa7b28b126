"""The level of a clock: a row has two of them, and ends on the one that the edge begins with.

A row begins as its clock has its edge: registers and inputs change then, the clock is on its other
level for half of the row, and goes back. So latches that are open on that other level take what the
row has, and hold it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping
from typing import TypeVar

from hagane.symbolic import bitvector as bv
from hagane.symbolic.interpret import Substitution
from hagane.symbolic.term import Term, bits, postorder, variable

Key = TypeVar("Key", bound=Hashable)


def reading(terms: Mapping[Key, Term], clocks: Collection[str]) -> frozenset[Key]:
    """Return the keys of the terms that read the level of one of some clocks."""
    if not clocks:
        return frozenset()
    found: set[Term] = set()
    for term in postorder(terms.values()):
        if term.data in clocks if term.op == "var" else not found.isdisjoint(term.args):
            found.add(term)
    return frozenset(key for key, term in terms.items() if term in found)


def at_rest(
    levels: Mapping[str, int], latches: Mapping[str, Term], ticks: Mapping[Term, Term]
) -> Callable[[Term], Term]:
    """Return a function that makes of a term its value at the end of a row.

    Args:
        levels: The level of each clock then.
        latches: The states of latches that a clock opens, by name, with the terms that follow.
        ticks: Terms for others.
    """
    if not levels:
        return lambda term: term
    rest = {variable(name, bits(1)): bv.value(level, 1) for name, level in levels.items()}
    other = Substitution({term: bv.invert(level) for term, level in rest.items()})
    rest.update({variable(name, term.sort): other(term) for name, term in latches.items()})
    return Substitution({**rest, **ticks})
