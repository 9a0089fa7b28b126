"""Sizes of the pieces of a whole, which sum to it.

``x.split(32)`` of an axis of any size ``n`` has pieces of 32 elements, and a last one of those that
are left. One name stands for the size of any of them: what a program computes of each piece has
sizes over that name, and joined they have the size of the whole again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from hagane.symbolic import (
    Dim,
    Expr,
    ceildiv,
    definitely_equal,
    evaluate,
    floordiv,
    maximum,
    minimum,
    symbols_of,
)
from hagane.symbolic.questions import Knowledge


@dataclass(frozen=True, slots=True)
class Piece:
    """What is known of the pieces of one size.

    Attributes:
        total: The size of the whole.
        each: The size of all pieces but the last; None where nobody knows it.
        count: How many pieces there are.
    """

    total: Dim
    each: Dim | None
    count: Dim


class Pieces:
    """The names of sizes of pieces.

    Args:
        knowledge: The facts of sizes.
        fresh: Makes a name of a size.
    """

    def __init__(self, knowledge: Knowledge, fresh: Callable[[str], Expr]):
        self.knowledge = knowledge
        self.fresh = fresh
        self.known: dict[str, Piece] = {}
        self.varying: set[str] = set()  # names of numbers that differ from turn to turn of a loop
        self._names: dict[tuple[Dim, Dim], Expr] = {}

    def size(self, total: Dim, each: Dim | None, count: Dim) -> Expr:
        """Return the size of any piece of a whole.

        Args:
            total: The size of the whole.
            each: The size of all pieces but the last; None if nobody knows it.
            count: How many pieces there are.
        """
        made = self._names.get((total, each)) if each is not None else None
        if made is None:
            made = self.fresh("part")
            self.known[str(made)] = Piece(total, each, count)
            if each is not None:
                self._names[total, each] = made
        return made

    def of_slice(self, start: Dim, stop: Dim, size: Dim, turns: Mapping[str, Dim]) -> Dim | None:
        """Return the size of ``x[start:stop]`` where turns of a loop take piece by piece.

        Args:
            start: The first place.
            stop: The place behind the last one, or the size where that is less.
            size: The size of the axis.
            turns: How many turns loops have, by the names of their numbers.

        Returns:
            The size; None if the slice is no such piece.
        """
        stop = _uncut(stop, size)
        each = stop - start
        if not any(name in turns for name in symbols_of(start)) and (
            not isinstance(start, int) or start <= 0 or (size, each) not in self._names
        ):
            return None
        if any(name in turns for part in (each, size) for name in symbols_of(part)):
            return None
        if not self.knowledge.is_nonnegative(each - 1):
            return None
        if not definitely_equal(floordiv(start, each) * each, start):
            return None
        last = evaluate(stop, {name: turns[name] - 1 for name in symbols_of(stop) & turns.keys()})
        if self.knowledge.is_nonnegative(size - last):
            return each  # the loop leaves out what is smaller
        return self.size(size, each, ceildiv(size, each))

    def joined(self, one: Dim, other: Dim) -> Dim | None:
        """Return the size of any piece where two sizes are of pieces of one whole."""
        for (total, each), name in self._names.items():
            second = minimum(each, total - each)
            sizes = (name, each, minimum(each, total), second, maximum(0, second))
            if all(any(definitely_equal(size, s) for s in sizes) for size in (one, other)):
                return name
        return None

    def total(self, one: Dim, length: Dim) -> Dim | None:
        """Return the sum of sizes that are each of one piece; None if they sum to no known size.

        Args:
            one: The size, a formula over that of a piece.
            length: How many there are.
        """
        names = [name for name in symbols_of(one) if name in self.known]
        if not names:
            return one * length
        piece = self.known[names[0]]
        rest = evaluate(one, {names[0]: 0})
        times = evaluate(one, {names[0]: 1}) - rest
        linear = definitely_equal(evaluate(one, {names[0]: 2}) - rest, times * 2)
        if len(names) > 1 or not linear or _is_rounded(one, names[0]):
            return None
        if not self.knowledge.is_nonnegative(length - piece.count) or (
            not self.knowledge.is_nonnegative(piece.count - length)
        ):
            return None
        return times * piece.total + rest * length


def _uncut(stop: Dim, size: Dim) -> Dim:
    """Return a place that ``min`` cuts off at a size as it is before."""
    terms = [*stop.terms.items()] if isinstance(stop, Expr) else []
    if len(terms) != 1 or terms[0][1] != 1 or len(terms[0][0]) != 1:
        return stop
    atom, power = terms[0][0][0]
    if power != 1 or atom.head != "min" or len(atom.arguments) != 2:
        return stop
    others = [place for place in atom.arguments if not definitely_equal(place, size)]
    return others[0] if len(others) == 1 else stop


def _is_rounded(size: Dim, name: str) -> bool:
    """Whether a name stands inside a rounding or a minimum in a formula."""
    if not isinstance(size, Expr):
        return False
    return any(
        name in symbols_of(argument)
        for monomial in size.terms
        for atom, _ in monomial
        for argument in atom.arguments
    )


__all__ = ["Piece", "Pieces"]
