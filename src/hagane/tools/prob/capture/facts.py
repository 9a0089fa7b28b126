"""Facts of draws on a path: ranges of integers, and conditions that are decided.

Ranges decide most branches that are decided at all, and show that a loop ends; nothing is taken
for granted that the path and the bounds of the draws do not say.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from hagane.symbolic.logic import negate
from hagane.symbolic.term import BOOL, INT, Term

# The least and the greatest value; None where there is no bound.
Range: TypeAlias = tuple[int | None, int | None]
_ANY: Range = (None, None)


@dataclass(frozen=True)
class Facts:
    """The facts of one path.

    Attributes:
        ranges: The range of each name wherever it has a meaning; shared by all paths.
        definitions: The conditions that named truth values stand for; shared by all paths.
        narrowed: Ranges that this path narrows.
        known: Conditions that this path decides.
    """

    ranges: dict[str, Range] = field(default_factory=dict)
    definitions: dict[str, Term] = field(default_factory=dict)
    narrowed: Mapping[str, Range] = field(default_factory=dict)
    known: Mapping[Term, bool] = field(default_factory=dict)

    # Ranges.

    def range_of(self, term: Term | tuple[Term, Term]) -> Range:
        """Return a range that an integer lies in; of a pair (a, b), one for ``b - a``."""
        parts, constant = _linear(term)
        low: int | None = constant
        high: int | None = constant
        for atom, factor in parts.items():
            a, b = _scaled(self._atom(atom), factor)
            low = None if low is None or a is None else low + a
            high = None if high is None or b is None else high + b
        return low, high

    def _atom(self, term: Term) -> Range:
        match term.op:
            case "var":
                return self.narrowed.get(term.data) or self.ranges.get(term.data, _ANY)
            case "int_mul":
                return _product(*(self.range_of(arg) for arg in term.args))
            case "int_div":
                low, high = self.range_of(term.args[0])
                divisor = int(term.args[1].data)
                return (
                    None if low is None else low // divisor,
                    None if high is None else high // divisor,
                )
            case "int_mod":
                return 0, int(term.args[1].data) - 1
            case "ite":
                condition, yes, no = term.args
                decided = self.truth(condition)
                if decided is not None:
                    return self.range_of(yes if decided else no)
                return union(
                    self.assuming(condition).range_of(yes),
                    self.assuming(negate(condition)).range_of(no),
                )
        raise AssertionError(term.op)

    # Conditions.

    def truth(self, term: Term) -> bool | None:
        """Return whether a condition holds on the path; None where the ranges leave it open."""
        if term.is_const:
            return bool(term.data)
        found = self.known.get(term)
        if found is not None:
            return found
        match term.op:
            case "not":
                inner = self.truth(term.args[0])
                return None if inner is None else not inner
            case "and" | "or":
                absorbing = term.op == "or"
                values = [self.truth(arg) for arg in term.args]
                if absorbing in values:
                    return absorbing
                return None if None in values else not absorbing
            case "lt":
                low, high = self.range_of(_difference(term))
                return True if low is not None and low > 0 else _false_if(high, high_below=1)
            case "eq" if term.args[0].sort is INT:
                low, high = self.range_of(_difference(term))
                if low == high == 0:
                    return True
                apart = (low is not None and low > 0) or (high is not None and high < 0)
                return False if apart else None
            case "eq" | "ite":
                return self._truth_of_parts(term)
        return None

    def _truth_of_parts(self, term: Term) -> bool | None:
        values = [self.truth(arg) for arg in term.args]
        if term.op == "eq":
            return None if None in values else values[0] == values[1]
        if values[0] is not None:
            return values[1] if values[0] else values[2]
        return values[1] if values[1] == values[2] else None

    def assuming(self, condition: Term) -> Facts:
        """Return the facts with a condition added."""
        narrowed, known = dict(self.narrowed), dict(self.known)
        made = Facts(self.ranges, self.definitions, narrowed, known)
        made._assume(condition, True, narrowed, known)
        return made

    def _assume(
        self, term: Term, holds: bool, narrowed: dict[str, Range], known: dict[Term, bool]
    ) -> None:
        if term.is_const or known.get(term) is holds:
            return
        known[term] = holds
        match term.op:
            case "not":
                self._assume(term.args[0], not holds, narrowed, known)
            case "and" | "or":
                if holds is (term.op == "and"):
                    for arg in term.args:
                        self._assume(arg, holds, narrowed, known)
                else:
                    self._assume_last(term, holds, narrowed, known)
            case "var" if term.sort is BOOL and term.data in self.definitions:
                self._assume(self.definitions[term.data], holds, narrowed, known)
            case "lt":
                parts, constant = _linear(_difference(term))
                if holds:
                    self._narrow(parts, constant - 1, narrowed)
                else:
                    self._narrow({a: -f for a, f in parts.items()}, -constant, narrowed)
            case "eq" if term.args[0].sort is INT:
                parts, constant = _linear(_difference(term))
                if holds:
                    self._narrow(parts, constant, narrowed)
                    self._narrow({a: -f for a, f in parts.items()}, -constant, narrowed)
                else:
                    self._exclude(parts, constant, narrowed)

    def _assume_last(
        self, term: Term, holds: bool, narrowed: dict[str, Range], known: dict[Term, bool]
    ) -> None:
        """Of ``not (a and b)`` where a is true, b is false; likewise for disjunctions."""
        open_parts = [arg for arg in term.args if self.truth(arg) is None]
        settled = all(self.truth(arg) is not holds for arg in term.args)
        if len(open_parts) == 1 and settled:
            self._assume(open_parts[0], holds, narrowed, known)

    def _narrow(self, parts: Mapping[Term, int], constant: int, narrowed: dict[str, Range]) -> None:
        """Narrow every name of a sum that is known to be at least zero."""
        tops = {atom: _scaled(self._atom(atom), factor)[1] for atom, factor in parts.items()}
        for atom, factor in parts.items():
            others = [top for other, top in tops.items() if other is not atom]
            if atom.op != "var" or None in others:
                continue
            rest = constant + sum(top for top in others if top is not None)
            low, high = self._atom(atom)
            if factor > 0:  # factor * x >= -rest
                bound = -(rest // factor)
                low = bound if low is None else max(low, bound)
            else:
                bound = rest // -factor
                high = bound if high is None else min(high, bound)
            narrowed[atom.data] = (low, high)

    def _exclude(
        self, parts: Mapping[Term, int], constant: int, narrowed: dict[str, Range]
    ) -> None:
        """Narrow a name that differs from a number at the end of its range."""
        if len(parts) != 1:
            return
        ((atom, factor),) = parts.items()
        if atom.op != "var" or constant % factor:
            return
        value = -constant // factor
        low, high = self._atom(atom)
        if low == value:
            low += 1
        if high == value:
            high -= 1
        narrowed[atom.data] = (low, high)


def union(left: Range, right: Range) -> Range:
    """Return the smallest range around two."""
    lows, highs = (left[0], right[0]), (left[1], right[1])
    return (
        None if None in lows else min(low for low in lows if low is not None),
        None if None in highs else max(high for high in highs if high is not None),
    )


def _false_if(high: int | None, high_below: int) -> bool | None:
    return False if high is not None and high < high_below else None


def _scaled(range_: Range, factor: int) -> Range:
    low, high = range_
    a = None if low is None else low * factor
    b = None if high is None else high * factor
    return (a, b) if factor >= 0 else (b, a)


def _product(left: Range, right: Range) -> Range:
    if None in left or None in right:
        nonnegative = all(low is not None and low >= 0 for low, _ in (left, right))
        return (0, None) if nonnegative else _ANY
    corners = [a * b for a in left for b in right if a is not None and b is not None]
    return min(corners), max(corners)


def _difference(term: Term) -> tuple[Term, Term]:
    """Return (a, b) for ``a < b`` and ``a = b``: the fact is about ``b - a``."""
    return term.args[0], term.args[1]


def _linear(term: Term | tuple[Term, Term]) -> tuple[dict[Term, int], int]:
    """Return the factors of an integer's terms, and its constant; of a pair, ``b - a``."""
    parts: dict[Term, int] = {}
    constant = 0
    queue = [(term[1], 1), (term[0], -1)] if isinstance(term, tuple) else [(term, 1)]
    while queue:
        current, factor = queue.pop()
        if current.is_const:
            constant += factor * int(current.data)
        elif current.op == "int_add":
            queue += [(arg, factor) for arg in current.args]
        elif current.op == "int_mul" and current.args[1].is_const:
            queue.append((current.args[0], factor * int(current.args[1].data)))
        else:
            parts[current] = parts.get(current, 0) + factor
    return {atom: factor for atom, factor in parts.items() if factor}, constant


__all__ = ["Facts", "Range", "union"]
