"""Draws at their place of use: a value that is drawn early and used once need not be kept.

After ``let a = rand(1, 6) in let b = rand(1, 6) in …`` all dice are alive at once, and seven of
them are 280,000 states. Where a bound expression stands on its own (it reads no variable, cannot
fail, observes, calls and claims nothing) and its value is used in one place, it can as well be
evaluated there: draws are independent, and unused draws do not count. Sums of dice then
need their partial sums alone, however they are written.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from hagane.tools.prob.language.operators import ZeroDivisor, evaluate
from hagane.tools.prob.language.program import Apply, Liveness, Record, parts, rebuilt, walk
from hagane.tools.prob.language.syntax import (
    Binary,
    Choose,
    Expression,
    Flip,
    If,
    Let,
    Literal,
    Observe,
    Project,
    Rand,
    Tuple,
    Unary,
    Variable,
)


def late(node: Expression) -> Expression:
    """Return an expression of the same distribution, in which draws stand where they are used."""
    uses: Counter[str] = Counter()
    held: set[str] = set()
    for part in walk(node):
        match part:
            case Variable(name=name):
                uses[name] += 1
            case Record(site=site):
                held.update(site.claim.variables)
            case Apply(function=function, below=below):
                held.update(function.captured)
                held.update(() if below is None else (below,))
            case Flip(probability=probability):
                held.update(_names([probability]))
            case Choose(branches=branches):
                held.update(_names(weight for weight, _ in branches))
    moved = _Mover({name for name, count in uses.items() if count == 1} - held).moved(node)
    return _Sorter().sorted(moved)


def _names(nodes: Iterable[Expression]) -> Iterable[str]:
    """Yield the variables of expressions that must stay free of draws."""
    for node in nodes:
        yield from (part.name for part in walk(node) if isinstance(part, Variable))


class _Mover:
    def __init__(self, once: set[str]):
        self.once = once
        self.liveness = Liveness()
        self.waiting: dict[str, Expression] = {}
        # Those that wait, which later ones may hold: they need no second look.
        self.alone: set[int] = set()

    def moved(self, node: Expression) -> Expression:
        match node:
            case Variable(name=name):
                return self.waiting.get(name, node)
            case Let(name=name) if name in self.once:
                bound = self.moved(node.bound)
                if not self.liveness.free(bound) and self._stands_alone(bound):
                    self.waiting[name] = bound
                    self.alone.add(id(bound))
                    return self.moved(node.body)
                return Let(node.span, name, bound, self.moved(node.body))
        return rebuilt(node, self.moved)

    def _stands_alone(self, node: Expression) -> bool:
        stack = [node]
        while stack:
            part = stack.pop()
            if id(part) not in self.alone:
                if not _is_harmless(part):
                    return False
                stack += parts(part)
        return True


# The operator with which operands that have changed places mean the same.
_TURNED = {
    "+": "+", "*": "*", "/\\": "/\\", "\\/": "\\/", "=": "=", "!=": "!=",
    "<": ">", ">": "<", "<=": ">=", ">=": "<=",
}  # fmt: skip


class _Sorter:
    """Puts the operand first that needs more values at a time, as in orders of registers.

    Of ``a + (b + (c + d))`` all values would be alive at once, as the left operand is evaluated
    first and waits; of ``((d + c) + b) + a`` two are.
    """

    def __init__(self) -> None:
        # Of each new part, by its identity: itself, the values that it needs at a time, and
        # whether it stands alone.
        self.known: dict[int, tuple[Expression, int, bool]] = {}

    def sorted(self, node: Expression) -> Expression:
        below: list[Expression] = []

        def part(each: Expression) -> Expression:
            below.append(self.sorted(each))
            return below[-1]

        new = rebuilt(node, part)
        found = [self.known[id(each)] for each in below]
        alone = all(each for _, _, each in found) and _is_harmless(new)
        width = max((each for _, each, _ in found), default=0)
        if isinstance(new, Rand | Flip | Choose):
            width = max(width, 1)
        elif isinstance(new, Binary):
            (left, first, _), (right, second, _) = found
            width += first == second > 0
            # What draws nothing stays: the engine knows best when to compute it.
            if alone and second > first > 0:
                new = self._turned(new, left, right)
        self.known[id(new)] = (new, width, alone)
        return new

    def _turned(self, node: Binary, left: Expression, right: Expression) -> Expression:
        span, operator = node.span, node.operator
        if operator == "-":
            return Binary(span, "+", Unary(span, "-", right), left)
        if operator in _TURNED:
            return Binary(span, _TURNED[operator], right, left)
        return node


def stands_alone(node: Expression) -> bool:
    """Tell whether evaluating an expression early, late or not at all is the same to the rest."""
    return all(_is_harmless(part) for part in walk(node))


# Of these, what is below them decides.
_PLAIN = frozenset({Literal, Variable, Tuple, Project, Unary, If, Let})


def _is_harmless(node: Expression) -> bool:
    if type(node) in _PLAIN:
        return True
    match node:
        case Record() | Apply() | Observe():
            return False
        case Binary(operator="//" | "%" | "/", right=right):
            return isinstance(right, Literal) and right.value != 0
        case Rand(low=low, high=high):
            bounds = _constants([low, high])
            return bounds is not None and bounds[0] <= bounds[1]
        case Flip(probability=probability):
            chance = _constants([probability])
            return chance is not None and 0 <= chance[0] <= 1
        case Choose(branches=branches):
            shares = _constants([weight for weight, _ in branches])
            return shares is not None and min(shares) >= 0 and sum(shares) == 1
        case Binary():
            return True
    raise AssertionError(type(node).__name__)


def _constants(nodes: Iterable[Expression]) -> list[int] | None:
    """Return the values of expressions of literals, or None."""
    found = []
    for node in nodes:
        if not all(isinstance(part, Literal | Unary | Binary) for part in walk(node)):
            return None
        try:
            found.append(evaluate(node, {}))
        except ZeroDivisor:
            return None
    return found
