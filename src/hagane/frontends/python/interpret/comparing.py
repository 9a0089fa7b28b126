"""Comparisons of Python over abstract values: order, equality, identity."""

from __future__ import annotations

import ast

from hagane.frontends.python.interpret.arithmetic import (
    COMPARE,
    apply_plain,
    compare_values,
)
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.report.findings import CheckError
from hagane.frontends.python.values.deques import class_of_list
from hagane.frontends.python.values.objects import (
    Class,
    Function,
    Instance,
    is_key,
)
from hagane.frontends.python.values.values import (
    MISSING,
    Choice,
    DictRef,
    Host,
    Library,
    ListRef,
    Outside,
    SetRef,
    Tensor,
    Truth,
    Unknown,
    Value,
    alternatives,
    is_plain,
)
from hagane.symbolic.logic import both, either, negate
from hagane.symbolic.term import FALSE, TRUE, Term

_ORDERS = (ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE)
_REFLECTED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.Gt, ast.Gt: ast.Lt, ast.LtE: ast.GtE, ast.GtE: ast.LtE,
}  # fmt: skip


class Comparisons(Core):
    """Evaluates comparisons; the domain is asked first."""

    def compare(self, kind: type[ast.cmpop], left: Value, right: Value) -> Value:
        """Return a comparison of two values."""
        return self.domain.operate(kind, left, right)

    def _Compare(self, node: ast.Compare) -> Value:
        return self._chained(node, self.evaluate(node.left), 0)

    def _chained(self, node: ast.Compare, left: Value, place: int) -> Value:
        """Compare a value with an operand of a chain, and that with the ones behind it."""
        right = self.evaluate(node.comparators[place])
        self.emit.label = self.collector.text(node)
        found = self.compare(type(node.ops[place]), left, right)
        rest = node.comparators[place + 1 :]
        if not rest:
            return found
        holds = self.decide(self.truth(found))
        if holds is False:
            return False
        if holds is True or not any(map(_may_change, rest)):
            behind = self.truth(self._chained(node, right, place + 1))
            return self.as_truth(both(self.as_term(holds), self.as_term(behind)))
        return self.fork(
            self.as_term(holds),
            lambda: self.as_truth(self.as_term(self.truth(self._chained(node, right, place + 1)))),
            lambda: False,
            self.collector.text(node),
        )

    def _comparison(self, kind: type[ast.cmpop], left: Value, right: Value) -> Value:
        if kind in (ast.Is, ast.IsNot):
            return self._identical(left, right, kind is ast.Is)
        if isinstance(left, Choice) or isinstance(right, Choice):
            return self.either(
                left, lambda a: self.either(right, lambda b: self.compare(kind, a, b))
            )
        if kind in (ast.In, ast.NotIn):
            found = self.contained(left, right)
            return found if kind is ast.In else self.negated(self.truth(found))
        if isinstance(left, Unknown) or isinstance(right, Unknown):
            return left if isinstance(left, Unknown) else right
        if isinstance(left, Tensor) or isinstance(right, Tensor):
            if left is None or right is None:
                return kind is ast.NotEq
            return self.tensor_operator(COMPARE[kind][0], left, right)
        own = f"__{COMPARE[kind][0]}__"
        left, right = self.as_tuple(left, own), self.as_tuple(right, own)
        found = self._own_comparison(kind, left, right)
        if found is not MISSING:
            return found
        if kind in (ast.Eq, ast.NotEq) and self._differ_in_order(left, right):
            return kind is ast.NotEq
        if isinstance(left, SetRef) or isinstance(right, SetRef):
            found = self._sets_compared(kind, left, right)
            if found is not MISSING:
                return found
        found = self._items_compared(kind, left, right)
        if found is not MISSING:
            return found
        if kind in (ast.Eq, ast.NotEq):
            left, right = self.unwrap(left), self.unwrap(right)
        elif isinstance(left, ListRef) and type(left) is type(right):
            left, right = self.heap[left], self.heap[right]
        if kind in (ast.Eq, ast.NotEq) and isinstance(left, Instance):
            fields = self._fields_compared(left, right)
            if fields is not None:
                return self.compare(kind, *fields)
        if kind in (ast.Eq, ast.NotEq) and isinstance(left, Instance | Class | Function):
            return (left is right) == (kind is ast.Eq)
        if kind in (ast.Eq, ast.NotEq) and self._have_one_object(left, right):
            return kind is ast.Eq
        if kind in (ast.Eq, ast.NotEq) and _are_told_apart(left, right):
            return (left == right) == (kind is ast.Eq)
        if isinstance(left, Host) or isinstance(right, Host):
            told = self.real_call(COMPARE[kind][1], [left, right], {})
            if told is not MISSING:
                return told
        condition = None
        if not isinstance(left, Unknown) and not isinstance(right, Unknown):
            condition = compare_values(self.knowledge, kind, left, right)
        if condition is None:
            return Truth(self.unknown_truth())
        return self.as_truth(condition) if isinstance(condition, Term) else condition

    def _differ_in_order(self, left: Value, right: Value) -> bool:
        """Whether two values are ordered dictionaries whose keys have another order."""
        if not all(isinstance(d, DictRef) and d.kind == "OrderedDict" for d in (left, right)):
            return False
        one, two = self.heap[left], self.heap[right]
        return isinstance(one, dict) and isinstance(two, dict) and [*one] != [*two]

    def _own_comparison(self, kind: type[ast.cmpop], left: Value, right: Value) -> Value:
        """Return what the methods of objects make of a comparison; ``MISSING`` if they have none.

        The object on the right is asked first where its class derives from that of the other one.
        """
        asked = False
        sides = [(left, kind, right), (right, _REFLECTED.get(kind, kind), left)]
        if self.derives(right, left):
            sides.reverse()
        for receiver, asking, other in sides:
            if not isinstance(receiver, Instance):
                continue
            method = self.method_of(receiver, f"__{COMPARE[asking][0]}__")
            inverted = method is MISSING and kind is ast.NotEq
            if inverted:
                method = self.method_of(receiver, "__eq__")
            if method is MISSING:
                continue
            found = self.call(method, [other], {})
            if not is_declined(found):
                return self.negated(self.truth(found)) if inverted else found
            asked = True
        if asked and kind in (ast.Eq, ast.NotEq):
            return (left is right) == (kind is ast.Eq)
        if asked:
            raise CheckError(
                "type", f"unsupported operands for {COMPARE[kind][0]}: {self.show(left)} and "
                f"{self.show(right)}"
            )  # fmt: skip
        return MISSING

    def derives(self, one: Value, other: Value) -> bool:
        """Whether the class of an object derives from that of another one, and is not that."""
        if not (isinstance(one, Instance) and isinstance(other, Instance)):
            return False
        if one.cls is other.cls or not isinstance(one.cls, Class):
            return False
        return any(base is other.cls for base in self.resolution_order(one.cls))

    def _sets_compared(self, kind: type[ast.cmpop], left: Value, right: Value) -> Value:
        """Return the comparison of two values of which one is a set; ``MISSING`` if it has none."""
        sides: list[set[Value]] = []
        for side in (left, right):
            content = self.heap[side] if isinstance(side, SetRef) else side
            if not isinstance(side, SetRef | frozenset):
                if kind not in (ast.Eq, ast.NotEq) or isinstance(side, Unknown | Host | Instance):
                    return MISSING
                return kind is ast.NotEq
            if not isinstance(content, tuple | frozenset) or not all(map(is_key, content)):
                return Truth(self.unknown_truth())
            sides.append(set(content))
        return bool(COMPARE[kind][1](*sides))

    def _items_compared(self, kind: type[ast.cmpop], left: Value, right: Value) -> Value:
        """Return the comparison of two lists, tuples or dictionaries; ``MISSING`` for others."""
        if isinstance(left, DictRef) and isinstance(right, DictRef):
            one, two = self.heap[left], self.heap[right]
            if kind not in (ast.Eq, ast.NotEq) or not (
                isinstance(one, dict) and isinstance(two, dict)
            ):
                return MISSING
            if one.keys() != two.keys():
                return kind is ast.NotEq
            return self._sequences_compared(
                kind, tuple(one.values()), tuple(two[key] for key in one)
            )
        if isinstance(left, ListRef) and isinstance(right, ListRef):
            if class_of_list(left) is not class_of_list(right):
                return kind is ast.NotEq if kind in (ast.Eq, ast.NotEq) else MISSING
            left, right = self.heap[left], self.heap[right]
        if not (isinstance(left, tuple) and isinstance(right, tuple)) or kind not in _ORDERS:
            return MISSING
        if is_plain(left) and is_plain(right):
            return bool(apply_plain(COMPARE[kind][1], left, right))
        return self._sequences_compared(kind, left, right)

    def _sequences_compared(
        self, kind: type[ast.cmpop], left: tuple[Value, ...], right: tuple[Value, ...]
    ) -> Value:
        """Return the comparison of two sequences: that of the first items that differ."""

        def term(kind: type[ast.cmpop], one: Value, two: Value) -> Term:
            return self.as_term(self.truth(self.compare(kind, one, two)))

        if kind in (ast.Eq, ast.NotEq) and len(left) != len(right):
            return kind is ast.NotEq
        same: list[Term] = []
        differ: list[Term] = []
        for one, two in zip(left, right, strict=False):
            equal = TRUE if one is two else term(ast.Eq, one, two)
            if kind not in (ast.Eq, ast.NotEq) and equal is not TRUE:
                differ.append(both(*same, negate(equal), term(kind, one, two)))
            same.append(equal)
            if equal is FALSE:
                break
        if kind in (ast.Eq, ast.NotEq):
            equal = both(*same)
            return self.as_truth(equal if kind is ast.Eq else negate(equal))
        if COMPARE[kind][1](len(left), len(right)):
            differ.append(both(*same))
        return self.as_truth(either(*differ))

    def _fields_compared(self, left: Instance, right: Value) -> tuple[Value, Value] | None:
        """Return the fields of two objects of one dataclass, by which they are compared."""
        if left is right or not isinstance(right, Instance) or left.cls is not right.cls:
            return None
        if not {"dataclass", "by value"} <= left.cls_flags or not isinstance(left.cls, Class):
            return None
        names: dict[str, None] = {}
        for base in reversed(self.resolution_order(left.cls)):
            if isinstance(base, Class) and "dataclass" in base.flags:
                names.update(dict.fromkeys(name for name, _ in base.fields))
        one, two = (tuple(self.attribute(side, name) for name in names) for side in (left, right))
        return one, two

    def _identical(self, left: Value, right: Value, positive: bool) -> Value:
        if isinstance(left, Choice):
            same = self.as_truth(
                either(
                    both(left.condition, self._identity_term(left.yes, right)),
                    both(negate(left.condition), self._identity_term(left.no, right)),
                )
            )
            return same if positive else self.negated(self.truth(same))
        if isinstance(right, Choice):
            return self._identical(right, left, positive)
        is_meant = not (isinstance(left, Outside) or self.emit.builds)
        if right is None and isinstance(left, Unknown) and (left.failed or is_meant):
            return not positive  # a value that nobody knows was meant to be one
        if isinstance(left, Unknown) or isinstance(right, Unknown):
            return Truth(self.unknown_truth())
        if isinstance(left, Truth) and isinstance(right, bool):
            return self.as_truth(left.term if right == positive else negate(left.term))
        if isinstance(left, Tensor) and isinstance(right, Tensor):
            self.observer.compared()
        return (_is_same(left, right) or self._have_one_object(left, right)) == positive

    def _have_one_object(self, left: Value, right: Value) -> bool:
        """Whether two names of libraries stand for one object: ``np.abs`` and ``np.absolute``."""
        if not isinstance(left, Library) or not isinstance(right, Library):
            return False
        found = self.tables.real_object(left)
        return found is not None and found is self.tables.real_object(right)

    def _identity_term(self, left: Value, right: Value) -> Term:
        return self.as_term(self.truth(self._identical(left, right, True)))


def _are_told_apart(left: Value, right: Value) -> bool:
    """Whether names tell if two classes are one; two modules may hold the same class."""
    if not isinstance(left, Library):
        left, right = right, left
    if not isinstance(left, Library):
        return False
    if isinstance(right, Host) and isinstance(right.object, type):
        return right.object.__module__ in ("builtins", "collections")
    if not isinstance(right, Library):
        return isinstance(right, Class)
    last = left.name.rpartition(".")[2], right.name.rpartition(".")[2]
    return left == right or (last[0] != last[1] and all(name[:1].isupper() for name in last))


def is_declined(found: Value) -> bool:
    """Whether a method for an operator has returned ``NotImplemented``."""
    if isinstance(found, Choice) and any(map(_is_declined, alternatives(found))):
        raise CheckError("capture", "the data decide whether an operator is NotImplemented")
    return _is_declined(found)


def _is_declined(value: Value) -> bool:
    return isinstance(value, Host) and value.object is NotImplemented


def _may_change(node: ast.expr) -> bool:
    """Whether an operand may do something, beside having a value."""
    return any(isinstance(n, ast.Call | ast.NamedExpr | ast.Await) for n in ast.walk(node))


def _is_same(left: Value, right: Value) -> bool:
    if isinstance(left, Library) and isinstance(right, Library):
        return left == right
    if is_plain(left) and is_plain(right):
        return left is right or (type(left) is type(right) and left == right)
    if type(left) is type(right) and not isinstance(left, Tensor):
        return left is right or bool(left == right)
    return left is right


__all__ = ["Comparisons", "is_declined"]
