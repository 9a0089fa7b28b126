"""Comparisons of Python over abstract values: order, equality, identity."""

from __future__ import annotations

import ast

from hagane.frontends.python.interpret.arithmetic import (
    COMPARE,
    compare_values,
)
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.values.deques import class_of_list
from hagane.frontends.python.values.values import (
    MISSING,
    Choice,
    Class,
    DictRef,
    Function,
    Host,
    Instance,
    Library,
    ListRef,
    Outside,
    Tensor,
    Truth,
    Unknown,
    Value,
    is_plain,
)
from hagane.symbolic.logic import both, either, negate
from hagane.symbolic.term import TRUE, Term

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
        if kind in (ast.Eq, ast.NotEq):
            if self._differ_in_order(left, right):
                return kind is ast.NotEq
            lists = isinstance(left, ListRef) and isinstance(right, ListRef)
            if lists and class_of_list(left) is not class_of_list(right):
                return kind is ast.NotEq
            left, right = self.unwrap(left), self.unwrap(right)
        elif isinstance(left, ListRef) and type(left) is type(right):
            left, right = self.heap[left], self.heap[right]
        if isinstance(left, Instance):
            method = self.method_of(left, own)
            if method is not MISSING:
                return self.call(method, [right], {})
            if kind is ast.NotEq and self.method_of(left, "__eq__") is not MISSING:
                return self.negated(self.truth(self.compare(ast.Eq, left, right)))
        if isinstance(right, Instance) and kind in _REFLECTED:
            method = self.method_of(right, f"__{COMPARE[_REFLECTED[kind]][0]}__")
            if method is not MISSING:
                return self.call(method, [left], {})
            if kind is ast.NotEq and self.method_of(right, "__eq__") is not MISSING:
                return self.negated(self.truth(self.compare(ast.Eq, left, right)))
        if kind in (ast.Eq, ast.NotEq) and isinstance(left, Instance):
            fields = self._fields_compared(left, right)
            if fields is not None:
                return self.compare(kind, *fields)
        if kind in (ast.Eq, ast.NotEq) and isinstance(left, Instance | Class | Function):
            return (left is right) == (kind is ast.Eq)
        if kind in (ast.Eq, ast.NotEq) and _are_told_apart(left, right):
            return (left == right) == (kind is ast.Eq)
        if isinstance(left, Host) or isinstance(right, Host):
            told = self.real_call(COMPARE[kind][1], [left, right], {})
            if told is not MISSING:
                return told
        if kind in (ast.Eq, ast.NotEq) and isinstance(left, dict) and isinstance(right, dict):
            if left.keys() != right.keys():
                return kind is ast.NotEq
            left, right = tuple(left.values()), tuple(right[key] for key in left)
        if kind in _ORDERS and _are_tuples_of_tensors(left, right):
            return self._tuples_compared(kind, left, right)
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

    def _tuples_compared(
        self, kind: type[ast.cmpop], left: tuple[Value, ...], right: tuple[Value, ...]
    ) -> Value:
        """Return the comparison of two sequences: that of the first items that differ."""

        def term(kind: type[ast.cmpop], one: Value, two: Value) -> Term:
            return self.as_term(self.truth(self.compare(kind, one, two)))

        same: list[Term] = []
        differ: list[Term] = []
        for one, two in zip(left, right, strict=False):
            equal = TRUE if one is two else term(ast.Eq, one, two)
            if kind not in (ast.Eq, ast.NotEq):
                differ.append(both(*same, negate(equal), term(kind, one, two)))
            same.append(equal)
        if kind in (ast.Eq, ast.NotEq) and len(left) != len(right):
            return kind is ast.NotEq
        if kind is ast.NotEq:
            return self.as_truth(negate(both(*same)))
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
        return _is_same(left, right) == positive

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


def _are_tuples_of_tensors(left: Value, right: Value) -> bool:
    """Whether two values are both tuples or lists, and a tensor is among their items."""
    if not any(isinstance(left, kind) and isinstance(right, kind) for kind in (tuple, list)):
        return False
    return any(isinstance(item, Tensor) for item in (*left, *right))


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


__all__ = ["Comparisons"]
