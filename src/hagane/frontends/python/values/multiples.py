"""Sizes that agree where others are multiples of a number, as in networks that halve and double."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from itertools import combinations

from hagane.graph.types import Shape
from hagane.symbolic import Dim, Expr, definitely_equal, symbol
from hagane.symbolic.substitute import evaluate, symbols_of

_FACTORS = (2, 3, 4, 8, 16, 32, 64, 128)


def _agreeing(pairs: Iterable[tuple[Dim, Dim]]) -> tuple[int, tuple[str, ...]] | None:
    """Return a number, and the names whose multiples of it make all pairs of sizes equal.

    Args:
        pairs: Sizes that have to be equal, and differ for some numbers.

    Returns:
        The least number that does, of few that networks have; None if there is none.
    """
    open_pairs = [(a, b) for a, b in pairs if not definitely_equal(a, b)]
    if not open_pairs or any(symbols_of(a) != symbols_of(b) for a, b in open_pairs):
        return None
    names = tuple(sorted({name for pair in open_pairs for name in symbols_of(pair[0])}))
    for factor in _FACTORS:
        sizes = {name: factor * symbol(name) for name in names}
        if all(definitely_equal(evaluate(a, sizes), evaluate(b, sizes)) for a, b in open_pairs):
            return factor, names
    return None


def multiples_told(shapes: Sequence[Shape | None], bare: Set[str]) -> str:
    """Return the types of inputs for which shapes of one rank agree; empty if none is found.

    Args:
        shapes: The shapes of an operator's operands.
        bare: The names that are the whole size of an axis of an input.
    """
    known = [shape for shape in shapes if shape is not None]
    for one, other in combinations(known, 2):
        if len(one) != len(other):
            continue
        pairs = [
            (a, b)
            for a, b in zip(one, other, strict=True)
            if isinstance(a, Expr) and isinstance(b, Expr)
        ]
        found = _agreeing(pairs)
        if found is not None and bare >= {*found[1]}:
            factor, names = found
            told = " and ".join(f"'{factor}*{name}'" for name in names)
            places = " and ".join(f"'{name}'" for name in names)
            return (
                f"they agree for multiples of {factor}: write {told} for {places} in the input's "
                "type"
            )
    return ""


__all__ = ["multiples_told"]
