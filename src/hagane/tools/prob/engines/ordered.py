r"""Steps in an order in which few values wait: sums and comparisons that share draws.

Of ``let x0 = …, …, let s = x0 + … + xn, let c = (x0 /\ x1) \/ …`` every draw is alive until both
are computed. Sums, conjunctions and disjunctions take their items in any order, so an item is taken
as soon as it is known, and a draw is made when the next item asks for it: partial results are
alive, and draws that stand beside each other. A comparison of two sums becomes one sum. The next
item is the one that asks for the fewest draws, as in orders of small band width.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from hagane.tools.prob.engines.late import late, stands_alone
from hagane.tools.prob.engines.ledger import Unit
from hagane.tools.prob.engines.relative import relative
from hagane.tools.prob.language.program import Liveness, Record, rebuilt, walk
from hagane.tools.prob.language.syntax import Binary, Expression, Let, Literal, Unary, Variable

# Values that may be alive at once before their order matters.
_FEW = 12
_SIDES = ("<", "<=", ">", ">=")

# Names with the expressions that they stand for.
_Steps: TypeAlias = "list[tuple[str, Expression]]"
# An item of a sum, and whether it is taken from it.
_Item: TypeAlias = "tuple[Expression, bool]"


def shortened(unit: Unit) -> Unit:
    """Return a unit of the same distribution that has less to keep."""
    return replace(unit, expression=late(ordered(relative(unit.expression))))


def ordered(node: Expression) -> Expression:
    """Return an expression of the same distribution whose steps keep fewer values alive."""
    if isinstance(node, Record):
        return rebuilt(node, ordered)
    steps: _Steps = []
    last = node
    while isinstance(last, Let) and stands_alone(last.bound):
        steps.append((last.name, last.bound))
        last = last.body
    names = {name for name, _ in steps}
    liveness = Liveness()
    if len(names) < len(steps) or _width(steps, last, liveness) <= _FEW:
        return node
    span = node.span
    if stands_alone(last):
        whole = [*steps, (_RESULT, last)]
        result: Expression = Variable(last.span, _RESULT)
    else:
        whole, result = steps, last
    found = _Order(whole, result, liveness).steps()
    if _width(found, result, liveness) >= _width(steps, last, liveness):
        return node
    for name, bound in reversed(found):
        result = Let(span, name, bound, result)
    return result


_RESULT = "result#ordered"


def _width(steps: _Steps, last: Expression, liveness: Liveness) -> int:
    """Return how many values are alive at most."""
    alive = set(liveness.free(last))
    widest = len(alive)
    for name, bound in reversed(steps):
        alive.discard(name)
        alive |= liveness.free(bound)
        widest = max(widest, len(alive))
    return widest


@dataclass(frozen=True, slots=True)
class _Sum:
    """A sum, a conjunction or a disjunction of items in any order."""

    operator: str
    items: tuple[_Item, ...]


@dataclass(frozen=True, slots=True)
class _Action:
    """A step to do, or an item to take into a sum."""

    name: str
    item: Expression
    taken_away: bool
    needs: frozenset[str]


class _Order:
    def __init__(self, steps: _Steps, last: Expression, liveness: Liveness):
        self.liveness = liveness
        self.uses = Counter(
            part.name
            for node in (*(bound for _, bound in steps), last)
            for part in walk(node)
            if isinstance(part, Variable)
        )
        self.made = 0
        self.plain: dict[str, Expression] = {}
        self.sums: dict[str, _Sum] = {}
        for name, bound in steps:
            self._add(name, bound)

    def _add(self, name: str, node: Expression) -> None:
        node = self._compared(node)
        operator, items = _flat(node)
        if len(items) > 2:
            self.sums[name] = _Sum(operator, tuple((self._part(i), away) for i, away in items))
        else:
            self.plain[name] = self._inside(node)

    def _new_name(self) -> str:
        self.made += 1
        return f"part#{self.made}ordered"

    def _part(self, node: Expression) -> Expression:
        """Return a part of a step, in which sums have names of their own."""
        node = self._compared(node)
        if len(_flat(node)[1]) > 2:
            name = self._new_name()
            self._add(name, node)
            return Variable(node.span, name)
        return self._inside(node)

    def _inside(self, node: Expression) -> Expression:
        return rebuilt(node, self._part) if isinstance(node, Binary | Unary) else node

    def _compared(self, node: Expression) -> Expression:
        """Return a comparison of two sums as one of their difference with zero."""
        if not isinstance(node, Binary) or node.operator not in _SIDES:
            return node
        if isinstance(node.left, Literal) or isinstance(node.right, Literal):
            return node
        left, right = (self._opened(side) for side in (node.left, node.right))
        if left is node.left and right is node.right and len(_terms(left) + _terms(right)) < 3:
            return node
        difference = Binary(node.span, "-", left, right)
        name = self._new_name()
        self._add(name, difference)
        return replace(node, left=Variable(node.span, name), right=Literal(node.span, 0))

    def _opened(self, node: Expression) -> Expression:
        """Return a sum in the place of a name that is used here alone."""
        if not isinstance(node, Variable) or self.uses[node.name] > 1:
            return node
        if node.name not in self.sums or self.sums[node.name].operator != "+":
            return node
        whole: Expression = Literal(node.span, 0)
        for item, away in self.sums.pop(node.name).items:
            whole = Binary(node.span, "-" if away else "+", whole, item)
        return whole

    def steps(self) -> _Steps:
        """Return the steps in an order that keeps few values alive."""
        pending = list(self._actions())
        draws = _draws(pending, {action.name for action in pending})
        asked = [frozenset().union(*(draws[name] for name in a.needs)) for a in pending]
        left = {name: len(found.items) for name, found in self.sums.items()}
        made: _Steps = []
        done: set[str] = set()
        waiting = dict(enumerate(pending))

        def take(index: int) -> None:
            action = waiting.pop(index)
            made.append(self._made(action, left))
            if not left.get(action.name):
                done.add(action.name)

        def settle() -> None:
            while ready := [
                index for index, action in waiting.items() if action.needs and action.needs <= done
            ]:
                for index in ready:
                    take(index)

        leaves: dict[str, list[int]] = {}
        for index, action in waiting.items():
            if not action.needs:
                leaves.setdefault(action.name, []).append(index)
        drawn: set[str] = set()
        while waiting:
            settle()
            best = min(
                (
                    (len(asked[index] - drawn), -len(asked[index] & drawn), index)
                    for index, action in waiting.items()
                    if asked[index] - drawn
                ),
                default=None,
            )
            names = leaves.keys() - drawn if best is None else asked[best[2]] - drawn
            for name in sorted(names, key=lambda each: leaves[each][0]):
                drawn.add(name)
                for index in leaves[name]:
                    take(index)
        return made

    def _actions(self) -> Iterator[_Action]:
        known = self.plain.keys() | self.sums.keys()
        for name, node in self.plain.items():
            yield _Action(name, node, False, self.liveness.free(node) & known)
        for name, found in self.sums.items():
            for item, away in found.items:
                yield _Action(name, item, away, self.liveness.free(item) & known)

    def _made(self, action: _Action, left: dict[str, int]) -> tuple[str, Expression]:
        """Return the step of an action; sums have a name for each of their items."""
        if action.name not in self.sums:
            return action.name, action.item
        found, span = self.sums[action.name], action.item.span
        before = len(found.items) - left[action.name]
        left[action.name] -= 1
        name = action.name if not left[action.name] else f"{action.name}~{before + 1}"
        if not before:
            return name, Unary(span, "-", action.item) if action.taken_away else action.item
        operator = "-" if action.taken_away else found.operator
        return name, Binary(span, operator, Variable(span, f"{action.name}~{before}"), action.item)


def _draws(actions: Sequence[_Action], names: set[str]) -> Mapping[str, frozenset[str]]:
    """Return the steps without needs that each value comes from."""
    needs: dict[str, set[str]] = {name: set() for name in names}
    leaves = {action.name for action in actions if not action.needs}
    for action in actions:
        needs[action.name] |= action.needs
    found: dict[str, frozenset[str]] = {}
    stack = list(names)
    while stack:
        name = stack[-1]
        missing = [each for each in needs[name] if each not in found]
        if name in found or not missing:
            stack.pop()
            own = frozenset((name,)) if name in leaves else frozenset[str]()
            found[name] = own.union(*(found[each] for each in needs[name]))
        else:
            stack += missing
    return found


def _flat(node: Expression) -> tuple[str, list[_Item]]:
    """Return the operator and the items of a sum, a conjunction or a disjunction."""
    match node:
        case Binary(operator="+" | "-"):
            return "+", _terms(node)
        case Binary(operator="/\\" | "\\/" as operator):
            found: list[_Item] = []
            stack: list[Expression] = [node]
            while stack:
                current = stack.pop()
                if isinstance(current, Binary) and current.operator == operator:
                    stack += [current.right, current.left]
                else:
                    found.append((current, False))
            return operator, found
    return "", [(node, False)]


def _terms(node: Expression) -> list[_Item]:
    """Return the terms of a sum."""
    found: list[_Item] = []
    stack: list[_Item] = [(node, False)]
    while stack:
        current, away = stack.pop()
        match current:
            case Binary(operator="+" | "-" as operator, left=left, right=right):
                stack += [(right, away != (operator == "-")), (left, away)]
            case Unary(operator="-", operand=operand):
                stack.append((operand, not away))
            case Literal(value=0):
                continue
            case _:
                found.append((current, away))
    return found
