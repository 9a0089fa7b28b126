"""How far numbers get that a loop hands from iteration to iteration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, TypeVar

from hagane.frontends.capture.emitting.exact import (
    COUNT,
    LIMIT,
    alone,
    most,
    most_of_atom,
    most_of_product,
    split_remainder,
)
from hagane.symbolic import Dim, Expr
from hagane.symbolic.expression import Atom

if TYPE_CHECKING:
    from hagane.frontends.capture.emitting.scoped import ScopedEmitter


@dataclass(frozen=True, slots=True)
class Growth:
    """How far a number is from others: at most ``factor * others + step``, or ``reset``."""

    factor: Fraction
    step: Fraction
    reset: Fraction

    @staticmethod
    def either(sides: Sequence[Growth | None]) -> Growth | None:
        """Return that of a number that is one of several."""
        known = [side for side in sides if side is not None]
        if len(known) < len(sides):
            return None
        parts = ("factor", "step", "reset")
        return Growth(*(max(getattr(side, part) for side in known) for part in parts))


@dataclass(frozen=True, slots=True)
class Began:
    """What a number was before the loop that handed it on.

    Attributes:
        starts: It, and those with which it mixes.
        step: How much an iteration changes it by at most, or what it is set to.
    """

    starts: tuple[Dim, ...]
    step: Fraction


_ZERO = Fraction(0)
K = TypeVar("K")


def growth(emitter: ScopedEmitter, value: Dim | Fraction, names: frozenset[str]) -> Growth | None:
    """Return how far a number is from those under some names; None where it may be anywhere."""
    if not isinstance(value, Expr):
        return Growth(_ZERO, _ZERO, abs(Fraction(value)))
    remainder = split_remainder(value)
    if remainder is not None:
        found = growth(emitter, remainder[1], names)
        more = Fraction(remainder[0])
        step = found.step + more if found and found.factor else _ZERO
        return found and Growth(found.factor, step, found.reset + more)
    factor = step = reset = _ZERO
    for monomial, coefficient in value.terms.items():
        amount, atom = abs(Fraction(coefficient)), alone(monomial)
        if atom is None:
            if monomial and not names.isdisjoint(Expr({monomial: 1}).names):
                return None
            part = Growth(_ZERO, _ZERO, Fraction(most_of_product(emitter, monomial)))
        else:
            found = _of_atom(emitter, atom, names)
            if found is None:
                return None
            part = found
        factor, reset = factor + amount * part.factor, reset + amount * part.reset
        step += amount * (part.step if part.factor else part.reset)
    return Growth(factor, step if factor else _ZERO, reset)


def _of_atom(emitter: ScopedEmitter, atom: Atom, names: frozenset[str]) -> Growth | None:
    if not atom.is_symbol:
        sides = [growth(emitter, argument, names) for argument in atom.arguments]
        if atom.head == "floor" and isinstance(atom.arguments[1], int):
            top, divisor = sides[0], atom.arguments[1]
            if top is None:
                return None
            return Growth(top.factor / divisor, top.step / divisor + 1, top.reset / divisor + 1)
        return Growth.either(sides[:1] if atom.head == "floor" else sides)
    name = atom.head
    if name in names:
        return Growth(Fraction(1), _ZERO, _ZERO)
    if name in emitter.knowledge.joined:
        found = emitter.knowledge.joined[name]
        return Growth.either([growth(emitter, side, names) for side in (found.yes, found.no)])
    if name in emitter.began:
        # Iterations of loops inside count as those of the loop around: a run has not so many.
        before = emitter.began[name]
        around = Growth.either([growth(emitter, start, names) for start in before.starts])
        if around is None or not around.factor:
            return around and Growth(_ZERO, _ZERO, Fraction(most_of_atom(emitter, atom)))
        return Growth(around.factor, around.step + before.step, around.reset)
    return Growth(_ZERO, _ZERO, Fraction(most_of_atom(emitter, atom)))


@dataclass(frozen=True, slots=True)
class Handed:
    """A number that a loop hands on: before the loop, in an iteration, and behind it."""

    start: Dim
    name: str
    after: Dim


def steady(emitter: ScopedEmitter, numbers: Mapping[K, Handed]) -> dict[K, tuple[int, Began]]:
    """Return those of the numbers that a loop hands on that stay within 64 bits, and how far.

    A number that each iteration changes by no more than a step gets no further than steps for all
    iterations: nothing has to be compared in the run.
    """
    kept = dict(numbers)
    near: dict[K, Growth] = {}
    while True:
        names = frozenset(each.name for each in kept.values())
        found = {key: growth(emitter, each.after, names) for key, each in kept.items()}
        near = {key: g for key, g in found.items() if g is not None and g.factor <= 1}
        if len(near) == len(kept):
            break
        kept = {key: kept[key] for key in near}
    key_of = {each.name: key for key, each in kept.items()}
    result: dict[K, tuple[int, Began]] = {}
    for key in kept:
        group = _mixed(emitter, kept, key_of, key)
        starts = tuple(kept[k].start for k in group)
        step = max(near[k].step for k in group)
        far = max(Fraction(most(emitter, start)) for start in starts)
        far = max(far, *(near[k].reset for k in group)) + step * COUNT
        result[key] = min(int(far) + 1, LIMIT), Began(starts, step)
    return result


def _mixed(
    emitter: ScopedEmitter, kept: Mapping[K, Handed], key_of: Mapping[str, K], key: K
) -> list[K]:
    """Return a number and those that it may have been in an earlier iteration."""
    group, waiting, seen = [key], [kept[key].after], set[str]()
    while waiting:
        value = waiting.pop()
        for name in (value.names if isinstance(value, Expr) else frozenset()) - seen:
            seen.add(name)
            if name in emitter.knowledge.joined:
                waiting += [emitter.knowledge.joined[name].yes, emitter.knowledge.joined[name].no]
            elif name in emitter.began:
                waiting += emitter.began[name].starts
            elif name in key_of and key_of[name] not in group:
                group.append(key_of[name])
                waiting.append(kept[key_of[name]].after)
    return group
