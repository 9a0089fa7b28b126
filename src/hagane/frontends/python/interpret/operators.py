"""Operators of Python over abstract values: arithmetic, comparisons, ``and`` and ``or``."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from functools import partial
from typing import Any

from hagane.frontends.python.interpret.arithmetic import (
    BINARY,
    COMPARE,
    SYMBOLS,
    apply_plain,
    binary_numbers,
    compare_values,
    is_number,
    known_place,
    negate_number,
)
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.interpret.domain import Operation
from hagane.frontends.python.report.findings import CheckError
from hagane.frontends.python.values.values import (
    MISSING,
    Choice,
    Class,
    DictRef,
    DType,
    Function,
    Host,
    Instance,
    Library,
    ListRef,
    Many,
    Outside,
    SetRef,
    Tensor,
    Truth,
    Unknown,
    Value,
    is_plain,
    is_size,
)
from hagane.symbolic import Expr
from hagane.symbolic.logic import both, either, negate
from hagane.symbolic.term import TRUE, Term

_ORDERS = (ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE)
_UNARY: dict[type[ast.unaryop], tuple[str, Callable[[Any], Any]]] = {
    ast.UAdd: ("pos", operator.pos),
    ast.USub: ("neg", operator.neg),
    ast.Invert: ("invert", operator.invert),
}
_SETS: dict[type[ast.operator], Callable[[Any, Any], list[Any]]] = {
    ast.BitOr: lambda a, b: [*a, *b],
    ast.BitAnd: lambda a, b: [x for x in a if x in b],
    ast.Sub: lambda a, b: [x for x in a if x not in b],
    ast.BitXor: lambda a, b: [x for x in (*a, *b) if (x in a) != (x in b)],
}

_REFLECTED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.Gt, ast.Gt: ast.Lt, ast.LtE: ast.GtE, ast.GtE: ast.LtE,
}  # fmt: skip


class Operators(Core):
    """Evaluates operators; the domain is asked first."""

    def _BinOp(self, node: ast.BinOp) -> Value:
        left, right = self.evaluate(node.left), self.evaluate(node.right)
        self.emit.label = self.collector.text(node)
        return self.binary(type(node.op), left, right)

    def binary(self, kind: type[ast.operator], left: Value, right: Value) -> Value:
        """Return ``left op right``."""
        return self.domain.operate(kind, left, right)

    def compare(self, kind: type[ast.cmpop], left: Value, right: Value) -> Value:
        """Return a comparison of two values."""
        return self.domain.operate(kind, left, right)

    def item(self, value: Value, index: Value) -> Value:
        """Return ``value[index]``."""
        if isinstance(value, ListRef | tuple):
            index = known_place(index)
        return self.domain.operate(ast.Subscript, value, index)

    def compute(self, kind: Operation, *operands: Value) -> Value:
        """Return an operator applied to its operands, with Python's own meaning."""
        if issubclass(kind, ast.operator):
            return self._binary(kind, *operands)
        if issubclass(kind, ast.cmpop):
            return self._comparison(kind, *operands)
        if issubclass(kind, ast.unaryop):
            return self._unary(kind, *operands)
        if kind is ast.Store:
            return self.set_list_item(*operands)
        return self.item_of(*operands)

    def _binary(self, kind: type[ast.operator], left: Value, right: Value) -> Value:
        if isinstance(left, Choice) or isinstance(right, Choice):
            return self.either(
                left, lambda a: self.either(right, lambda b: self.binary(kind, a, b))
            )
        if isinstance(left, Unknown) or isinstance(right, Unknown):
            return left if isinstance(left, Unknown) else right
        if isinstance(left, str) and kind is ast.Mod and isinstance(right, Tensor):
            return self.outside("a text that depends on sizes")
        if isinstance(left, Tensor) or isinstance(right, Tensor):
            found = self._tensor_and_object(BINARY[kind][0], left, right)
            if found is not MISSING:
                return found
            return self.tensor_operator(BINARY[kind][0], left, right)
        logical = kind in (ast.BitAnd, ast.BitOr)
        if logical and isinstance(left, Truth) and isinstance(right, Truth | bool):
            combine = both if kind is ast.BitAnd else either
            return self.as_truth(combine(left.term, self.as_term(self.truth(right))))
        if is_number(left) and is_number(right):
            if kind is ast.Pow and isinstance(left, int) and isinstance(right, Expr):
                return self._power(left, right)
            return binary_numbers(kind, left, right)
        if is_plain(left) and is_plain(right):
            return apply_plain(BINARY[kind][1], left, right)
        found = self._binary_containers(kind, left, right)
        if found is not MISSING:
            return found
        return self._binary_objects(kind, left, right)

    def _power(self, base: int, exponent: Expr) -> Value:
        """Return an integer to an exponent of sizes: an integer where that is not below 0."""
        grows = all(c > 0 for monomial, c in exponent.terms.items() if monomial)
        if self.emit.builds or base < 1 or not grows:
            return binary_numbers(ast.Pow, base, exponent)
        if not self.knowledge.is_nonnegative(exponent):
            self.emit.assume(f"{exponent} >= 0 (an exponent of {base})")
        return self.emit.fresh("power")

    def _binary_containers(self, kind: type[ast.operator], left: Value, right: Value) -> Value:
        if kind in (ast.Add, ast.Mult):
            own = "__add__" if kind is ast.Add else "__mul__"
            turned = own.replace("__", "__r", 1)
            left, right = self.as_tuple(left, own), self.as_tuple(right, turned)
        if isinstance(left, str) and kind is ast.Mod:
            return self.outside("a text that depends on sizes")
        if isinstance(left, ListRef) and isinstance(right, ListRef) and kind is ast.Add:
            return self.new_list(self._concatenated(self.heap[left], self.heap[right]))
        if isinstance(left, tuple) and isinstance(right, tuple) and kind is ast.Add:
            return left + right
        if kind is ast.Add and self._is_open_tuple(left) and self._is_open_tuple(right):
            parts = (p if isinstance(p, tuple) else self.heap[p] for p in (left, right))
            return self.new_list(self._concatenated(*parts))
        if isinstance(left, SetRef) and isinstance(right, SetRef) and kind in _SETS:
            first, second = self.heap[left], self.heap[right]
            if not (isinstance(first, tuple) and isinstance(second, tuple)):
                return self._open_sets(kind, left, right)
            return self.new_set(_SETS[kind](first, second), frozen=left.frozen)
        if isinstance(left, DictRef) and isinstance(right, DictRef) and left.kind == "Counter":
            return self.counted(kind, left, right)
        if kind is ast.BitOr and isinstance(left, DictRef):
            first, second = self.mapping(left), self.mapping(right)
            if first is not None and second is not None:
                return self.new_dict({**first, **second}, left.kind)
        if kind is ast.BitOr and _is_class(left) and _is_class(right):
            return (left, right)
        if kind is ast.Mult and is_size(left) and isinstance(right, tuple | ListRef):
            left, right = right, left
        if kind is ast.Mult and is_size(right) and isinstance(left, tuple | ListRef):
            return self._repeated(left, right)
        return MISSING

    def _open_sets(self, kind: type[ast.operator], left: SetRef, right: SetRef) -> Value:
        """Return an operator on sets of which one value may stand for all items."""
        contents = [self.heap[left], self.heap[right]]
        if self.emit.builds or not all(isinstance(one, tuple | Many) for one in contents):
            return self.lost("an operator on a set whose items are not known")
        either = kind in (ast.BitOr, ast.BitXor)
        made = self.many_of(*contents) if either else Many(*self.as_many(contents[0]))
        if made.element is MISSING:
            return self.new_set((), frozen=left.frozen)
        return SetRef(self.heap.new(Many(made.element, self.emit.fresh("items"))), left.frozen)

    def _is_open_tuple(self, value: Value) -> bool:
        """Whether a value is a tuple, or may be one of a length that is not known."""
        return isinstance(value, tuple) or (
            isinstance(value, ListRef) and isinstance(self.heap[value], Many)
        )

    def _concatenated(self, left: Any, right: Any) -> list[Value] | Many:
        if isinstance(left, tuple) and isinstance(right, tuple):
            return [*left, *right]
        if left == ():
            return right if isinstance(right, Many) else list(right)
        if right == ():
            return left if isinstance(left, Many) else list(left)
        return self.many_of(left, right)

    def _repeated(self, left: Value, times: Value) -> Value:
        items = left if isinstance(left, tuple) else self.heap[left]
        if isinstance(times, Unknown):
            return times
        if isinstance(times, int) and isinstance(items, tuple):
            return items * times if isinstance(left, tuple) else self.new_list(items * times)
        if isinstance(items, Many):
            return self.new_list(Many(items.element, items.length * times))
        if len(items) == 1:
            return self.new_list(Many(items[0], times))
        return self.lost("a list repeated a number of times that is not known")

    def _tensor_and_object(self, name: str, left: Value, right: Value) -> Value:
        """Return what an object's own operator makes of a tensor; ``MISSING`` if it has none."""
        made = self._own_operator(name, left, right)
        array = isinstance(left, Tensor) and left.kind == "numpy.ndarray" and left.shape != ()
        # (NumPy asks for each element.)
        return self.lost("an array of objects") if array and made is not MISSING else made

    def _own_operator(self, name: str, left: Value, right: Value) -> Value:
        for receiver, method, other in (
            (left, f"__{name}__", right),
            (right, f"__r{name}__", left),
        ):
            if isinstance(receiver, Instance):
                found = self.method_of(receiver, method)
                if found is not MISSING:
                    return self.call(found, [other], {})
        return MISSING

    def _binary_objects(self, kind: type[ast.operator], left: Value, right: Value) -> Value:
        name = BINARY[kind][0]
        found = self._own_operator(name, left, right)
        if found is not MISSING:
            return found
        if isinstance(left, Host) or isinstance(right, Host):
            found = self.real_call(BINARY[kind][1], [left, right], {})
            if found is not MISSING:
                return found
        if isinstance(left, Library | Host) or isinstance(right, Library | Host):
            return self.lost("an operator on a library's object")
        symbol = SYMBOLS.get(kind, name)
        raise CheckError(
            "type", f"unsupported operands for {symbol}: {self.show(left)} and {self.show(right)}"
        )

    def _UnaryOp(self, node: ast.UnaryOp) -> Value:
        if isinstance(node.op, ast.Not):
            return self.negated(self.condition(node.operand))
        value = self.evaluate(node.operand)
        self.emit.label = self.collector.text(node)
        return self.either(value, lambda v: self.domain.operate(type(node.op), v))

    def negated(self, condition: bool | Term) -> Value:
        """Return the value ``not condition``."""
        return self.as_truth(negate(condition)) if isinstance(condition, Term) else not condition

    def _unary(self, kind: type[ast.unaryop], value: Value) -> Value:
        if isinstance(value, Unknown):
            return value
        if isinstance(value, Tensor):
            return self.tensor_unary(_UNARY[kind][0], value)
        if kind is ast.USub and is_number(value):
            return negate_number(value)
        if isinstance(value, Truth) and kind is ast.Invert:
            return Unknown("an integer that depends on a condition", told=True)
        if isinstance(value, Instance):
            found = self.method_of(value, f"__{_UNARY[kind][0]}__")
            if found is not MISSING:
                return self.call(found, [], {})
        if kind is ast.UAdd and is_number(value):
            return value
        return apply_plain(_UNARY[kind][1], value)

    def _BoolOp(self, node: ast.BoolOp) -> Value:
        return self._truth_of(node, 0) if node is self.tested else self._bool_op(node, 0)

    def _truth_of(self, node: ast.BoolOp, index: int) -> Value:
        """Return the truth of an expression whose value nobody reads."""
        found = self.decide(self.condition(node.values[index]))
        is_and = isinstance(node.op, ast.And)
        if index == len(node.values) - 1 or (isinstance(found, bool) and found != is_and):
            return self.as_truth(self.as_term(found))
        if isinstance(found, bool):
            return self._truth_of(node, index + 1)
        text = self.collector.text(node.values[index])
        rest, short = partial(self._truth_of, node, index + 1), partial(bool, not is_and)
        yes, no = (rest, short) if is_and else (short, rest)
        return self.fork(found, yes, no, text)

    def _bool_op(self, node: ast.BoolOp, index: int) -> Value:
        value = self.evaluate(node.values[index])
        if index == len(node.values) - 1:
            return value
        if isinstance(value, Unknown) and value.failed:
            return value
        is_and = isinstance(node.op, ast.And)
        decided = self.decide(self.truth(value))
        if isinstance(decided, bool):
            return self._bool_op(node, index + 1) if decided == is_and else value
        text = self.collector.text(node.values[index])
        if is_and:
            return self.fork(
                decided,
                lambda: self._bool_op(node, index + 1),
                lambda: _as(self.settle(value), False),
                text,
            )
        return self.fork(
            decided,
            lambda: _as(self.settle(value), True),
            lambda: self._bool_op(node, index + 1),
            text,
        )

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
            left, right = self.unwrap(left), self.unwrap(right)
        elif isinstance(left, ListRef) and isinstance(right, ListRef):
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


def _is_class(value: Value) -> bool:
    """Whether a value may stand in a union of classes."""
    if isinstance(value, tuple):
        return all(map(_is_class, value))
    return (
        value is None
        or isinstance(value, Class | Library | DType)
        or (
            isinstance(value, Host) and (isinstance(value.object, type) or _is_typing(value.object))
        )
    )


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


def _is_typing(found: Any) -> bool:
    return type(found).__module__ in ("typing", "types")


def _may_change(node: ast.expr) -> bool:
    """Whether an operand may do something, beside having a value."""
    return any(isinstance(n, ast.Call | ast.NamedExpr | ast.Await) for n in ast.walk(node))


def _as(value: Value, truth: bool) -> Value:
    return truth if isinstance(value, Truth | bool) else value


def _is_same(left: Value, right: Value) -> bool:
    if isinstance(left, Library) and isinstance(right, Library):
        return left == right
    if is_plain(left) and is_plain(right):
        return left is right or (type(left) is type(right) and left == right)
    if type(left) is type(right) and not isinstance(left, Tensor):
        return left is right or bool(left == right)
    return left is right
