"""Operators of Python over abstract values: arithmetic, ``and`` and ``or``."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from functools import partial
from typing import Any

from hagane.frontends.python.interpret.arithmetic import (
    BINARY,
    SYMBOLS,
    apply_plain,
    binary_numbers,
    is_number,
    known_place,
    negate_number,
)
from hagane.frontends.python.interpret.comparing import Comparisons, is_declined
from hagane.frontends.python.interpret.domain import Operation
from hagane.frontends.python.report.findings import CheckError
from hagane.frontends.python.values.deques import Deque, list_like
from hagane.frontends.python.values.hashed import operated
from hagane.frontends.python.values.objects import Class, Instance
from hagane.frontends.python.values.open_tuples import OpenTuple, tuple_of
from hagane.frontends.python.values.values import (
    MISSING,
    Choice,
    DictRef,
    DType,
    Host,
    Library,
    ListRef,
    Many,
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
from hagane.symbolic.term import Term

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


class Operators(Comparisons):
    """Evaluates operators; the domain is asked first."""

    def _BinOp(self, node: ast.BinOp) -> Value:
        left, right = self.evaluate(node.left), self.evaluate(node.right)
        self.emit.label = self.collector.text(node)
        return self.binary(type(node.op), left, right)

    def binary(self, kind: type[ast.operator], left: Value, right: Value) -> Value:
        """Return ``left op right``."""
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
            return self.beside_unknown(kind, left, right)
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
        return self.emit.power(base, exponent)

    def _binary_containers(self, kind: type[ast.operator], left: Value, right: Value) -> Value:
        if kind in (ast.Add, ast.Mult):
            own = "__add__" if kind is ast.Add else "__mul__"
            turned = own.replace("__", "__r", 1)
            left, right = self.as_tuple(left, own), self.as_tuple(right, turned)
        if isinstance(left, str) and kind is ast.Mod:
            return self.outside("a text that depends on sizes")
        if kind is ast.Add and isinstance(left, ListRef) and type(left) is type(right):
            joined = self._concatenated(self.heap[left], self.heap[right])
            return self.bounded(list_like(self.heap, left, joined))
        if isinstance(left, tuple) and isinstance(right, tuple) and kind is ast.Add:
            return left + right
        if kind is ast.Add and self._is_open_tuple(left) and self._is_open_tuple(right):
            parts = (p if isinstance(p, tuple) else self.heap[p] for p in (left, right))
            return tuple_of(self.heap, self._concatenated(*parts))
        if isinstance(left, SetRef) and isinstance(right, SetRef) and kind in _SETS:
            first, second = self.heap[left], self.heap[right]
            if not (isinstance(first, tuple) and isinstance(second, tuple)):
                return self._open_sets(kind, left, right)
            made = operated(first, kind, second, _SETS[kind](first, second))
            return SetRef(self.heap.new(made), left.frozen)
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
        """Whether a value is a tuple, of known length or not."""
        return isinstance(value, tuple | OpenTuple)

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
            if isinstance(left, tuple):
                return items * times
            return self.bounded(list_like(self.heap, left, items * times))
        if isinstance(items, Many):
            return list_like(self.heap, left, Many(items.element, items.length * times))
        if len(items) == 1:
            return self.new_list(Many(items[0], times))
        return self.lost("a list repeated a number of times that is not known")

    def bounded(self, made: ListRef) -> ListRef:
        """Return a list, or a deque without the items that it has no room for."""
        if isinstance(made, Deque):
            self.bound_list(made)
        return made

    def _tensor_and_object(self, name: str, left: Value, right: Value) -> Value:
        """Return what an object's own operator makes of a tensor; ``MISSING`` if it has none."""
        made = self._own_operator(name, left, right)
        array = isinstance(left, Tensor) and left.kind == "numpy.ndarray" and left.shape != ()
        # (NumPy asks for each element.)
        return self.lost("an array of objects") if array and made is not MISSING else made

    def _own_operator(self, name: str, left: Value, right: Value) -> Value:
        """Return what the methods of objects make of an operator; ``MISSING`` if they have none."""
        sides = [(left, f"__{name}__", right), (right, f"__r{name}__", left)]
        if self.derives(right, left) and self._replaces(f"__r{name}__", right, left):
            sides.reverse()
        elif isinstance(left, Instance) and isinstance(right, Instance) and left.cls is right.cls:
            sides.pop()
        for receiver, method, other in sides:
            if isinstance(receiver, Instance):
                found = self.method_of(receiver, method)
                made = MISSING if found is MISSING else self.call(found, [other], {})
                if made is not MISSING and not is_declined(made):
                    return made
        return MISSING

    def _replaces(self, name: str, one: Value, other: Value) -> bool:
        """Whether the class of an object has another method of a name than the one it is from."""
        assert isinstance(one, Instance)
        assert isinstance(other, Instance)
        own = self.find_in_class(one.cls, name) if isinstance(one.cls, Class) else MISSING
        if own is MISSING or not isinstance(other.cls, Class):
            return own is not MISSING
        return own is not self.find_in_class(other.cls, name)

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
        if kind is ast.UAdd and is_number(value) and not isinstance(value, bool):  # +True is 1
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


def _is_typing(found: Any) -> bool:
    return type(found).__module__ in ("typing", "types")


def _as(value: Value, truth: bool) -> Value:
    return truth if isinstance(value, Truth | bool) else value
