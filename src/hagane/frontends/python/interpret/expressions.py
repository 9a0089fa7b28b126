"""Expressions of Python over abstract values."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Sequence
from typing import Any

from hagane.frontends.python.interpret.arithmetic import (
    BINARY,
    COMPARE,
    SYMBOLS,
    apply_plain,
    binary_numbers,
    compare_values,
    is_number,
    negate_number,
)
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.report.findings import CheckError
from hagane.frontends.python.values.values import (
    MISSING,
    Choice,
    Class,
    DictRef,
    Frame,
    Function,
    Host,
    Instance,
    Library,
    ListRef,
    Many,
    Origin,
    SetRef,
    Tensor,
    Truth,
    Unknown,
    Value,
    is_plain,
    is_size,
)
from hagane.symbolic.logic import both, either, negate
from hagane.symbolic.term import Term

_UNARY: dict[type[ast.unaryop], tuple[str, Callable[[Any], Any]]] = {
    ast.UAdd: ("pos", operator.pos),
    ast.USub: ("neg", operator.neg),
    ast.Invert: ("invert", operator.invert),
}
_MAX_SOURCES = 4
_MAX_ERRORS = 3  # of one expression, each for sizes that the one before does not hit


class Expressions(Core):
    """Evaluates expressions; what they are and where they came from is recorded on the way."""

    def evaluate(self, node: ast.expr) -> Value:
        """Return the value of an expression in the current frame.

        An error of the user's code is recorded here, at the innermost expression, and the value
        is unknown from there on.
        """
        frame = self.frame
        assert frame is not None
        nodes = self.collector.nodes
        before = nodes.get(frame.key)
        nodes[frame.key] = node
        try:
            value = self._checked(node, frame)
            if frame.is_user and isinstance(value, Tensor) and value.origin is None:
                self._mark(value, frame, node)
        finally:
            if before is not None:
                nodes[frame.key] = before
        if frame.is_user and not self.collector.muted and not self.dead:
            if isinstance(value, Unknown) and not value.told:
                value = self.lost(value.reason)  # lost where nothing was reported
            self.collector.type(frame, node, value, self.show(value))
        return value

    def _checked(self, node: ast.expr, frame: Frame) -> Value:
        """Return the value of an expression; after an error, that of the sizes it does not hit."""
        for _ in range(_MAX_ERRORS):
            path = self.knowledge.path
            try:
                return self._visit(node)
            except CheckError as error:
                if not frame.is_user:
                    raise
                self.collector.error(error, frame, node, self.path_text())
                told = not self.collector.muted
                failed = Unknown(error.message, told=told, failed=True)
                if error.claim is None or not self.knowledge.possible(error.claim):
                    break
                self.knowledge.path = path.taking(error.claim)
        return failed

    def _visit(self, node: ast.expr) -> Value:
        visitor = getattr(self, f"_{type(node).__name__}", None)
        if visitor is None:
            return self.lost(f"'{type(node).__name__}' expressions are not understood")
        return visitor(node)

    def _mark(self, value: Tensor, frame: Frame, node: ast.expr) -> None:
        """Remember where a tensor came from, and from which tensors."""
        sources: list[Tensor] = []
        queue = [value]
        for current in queue:
            producer = current.value.producer()
            for graph_value in producer.inputs if producer is not None else ():
                found = None if graph_value is None else self.emit.tensors.get(graph_value)
                if found is None:
                    continue
                if found.origin is not None:
                    sources.append(found)
                elif len(queue) < 12:
                    queue.append(found)
        text = self.collector.text(node)
        place = self.collector.place(frame.file, node)
        value.origin = Origin(place, text, tuple(sources[:_MAX_SOURCES]))
        self.emit.tensors[value.value] = value

    # Leaves.

    def _Constant(self, node: ast.Constant) -> Value:
        return node.value

    def _Name(self, node: ast.Name) -> Value:
        return self.settle(self.look_up(node.id))

    def look_up(self, name: str) -> Value:
        """Return what a name stands for in the current frame."""
        assert self.frame is not None
        where: Frame | None = self.frame
        while where is not None:
            # Names of a class body are not seen from functions inside it.
            if not where.is_class or where is self.frame:
                found = self.heap[where.key].get(name, MISSING)
                if found is not MISSING:
                    return found
            where = where.parent
        return self.global_name(self.frame.module, name)

    def _JoinedStr(self, node: ast.JoinedStr) -> Value:
        parts = [self.evaluate(part) for part in node.values]
        if all(isinstance(part, str) for part in parts):
            return "".join(parts)
        return Unknown("a text that depends on sizes", told=True)

    def _FormattedValue(self, node: ast.FormattedValue) -> Value:
        value = self.evaluate(node.value)
        form = "" if node.format_spec is None else self.evaluate(node.format_spec)
        if is_plain(value) and isinstance(form, str):
            shown = repr(value) if node.conversion == ord("r") else value
            return apply_plain(format, shown, form)
        return Unknown("a text that depends on sizes", told=True)

    def _Lambda(self, node: ast.Lambda) -> Value:
        return self.make_function(node, "<lambda>")

    def make_function(
        self, node: ast.Lambda | ast.FunctionDef | ast.AsyncFunctionDef, name: str
    ) -> Function:
        """Return a function with its defaults evaluated."""
        assert self.frame is not None
        arguments = node.args
        defaults = tuple(self.evaluate(default) for default in arguments.defaults)
        keywords = {
            argument.arg: self.evaluate(default)
            for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
            if default is not None
        }
        return Function(node, name, self.frame, defaults, keywords)

    # Containers.

    def _Tuple(self, node: ast.Tuple) -> Value:
        items = self._items(node.elts)
        return tuple(items) if isinstance(items, list) else self.new_list(items)

    def _List(self, node: ast.List) -> Value:
        return self.new_list(self._items(node.elts))

    def _Set(self, node: ast.Set) -> Value:
        items = self._items(node.elts)
        if isinstance(items, list) and is_plain(tuple(items)):
            return self.new_set(items)
        return self.lost("a set of values that are not known")

    def _Dict(self, node: ast.Dict) -> Value:
        result: dict[Any, Value] = {}
        for key_node, value_node in zip(node.keys, node.values, strict=True):
            value = self.evaluate(value_node)
            if key_node is None:
                content = self.heap[value] if isinstance(value, DictRef) else None
                if not isinstance(content, dict):
                    return self.lost("a dictionary whose keys are not known")
                result.update(content)
                continue
            key = self.evaluate(key_node)
            if not _is_key(key):
                return self.lost("a dictionary whose keys are not known")
            result[key] = value
        return self.new_dict(result)

    def _items(self, nodes: Sequence[ast.expr]) -> list[Value] | Many:
        items: list[Value] = []
        for node in nodes:
            if not isinstance(node, ast.Starred):
                items.append(self.evaluate(node))
                continue
            found = self.sequence(self.evaluate(node.value))
            if isinstance(found, Many):
                if len(nodes) == 1:
                    return found
                self.lost("a list with a part of unknown length unpacked in it")
                continue
            items += found
        return items

    def _Starred(self, node: ast.Starred) -> Value:
        return self.evaluate(node.value)

    def _Slice(self, node: ast.Slice) -> Value:
        parts = (node.lower, node.upper, node.step)
        return slice(*(None if part is None else self.evaluate(part) for part in parts))

    def _Yield(self, node: ast.Yield) -> Value:
        self._yielded([None if node.value is None else self.evaluate(node.value)])
        return None

    def _YieldFrom(self, node: ast.YieldFrom) -> Value:
        self._yielded(self.sequence(self.evaluate(node.value)))
        return None

    def _yielded(self, items: list[Value] | Many) -> None:
        frame = self.frame
        while frame is not None and frame.function is None:
            frame = frame.parent
        assert frame is not None
        self.extend(self.heap[frame.key]["<yielded>"], self.new_list(items))

    def _NamedExpr(self, node: ast.NamedExpr) -> Value:
        value = self.evaluate(node.value)
        assert self.frame is not None
        where = self.frame
        while where.function is None and where.parent is not None:
            where = where.parent  # out of comprehensions
        self.heap[where.key][node.target.id] = value
        return value

    # Operators.

    def _BinOp(self, node: ast.BinOp) -> Value:
        left, right = self.evaluate(node.left), self.evaluate(node.right)
        self.emit.label = self.collector.text(node)
        return self.binary(type(node.op), left, right)

    def binary(self, kind: type[ast.operator], left: Value, right: Value) -> Value:
        """Return ``left op right``."""
        if isinstance(left, Choice) or isinstance(right, Choice):
            return self.either(
                left, lambda a: self.either(right, lambda b: self.binary(kind, a, b))
            )
        if isinstance(left, Unknown) or isinstance(right, Unknown):
            return left if isinstance(left, Unknown) else right
        if isinstance(left, Tensor) or isinstance(right, Tensor):
            return self.tensor_operator(BINARY[kind][0], left, right)
        if (
            isinstance(left, Truth)
            and isinstance(right, Truth | bool)
            and kind
            in (
                ast.BitAnd,
                ast.BitOr,
            )
        ):
            combine = both if kind is ast.BitAnd else either
            return self.as_truth(combine(left.term, self.as_term(self.truth(right))))
        if is_number(left) and is_number(right):
            return binary_numbers(kind, left, right)
        if is_plain(left) and is_plain(right):
            return apply_plain(BINARY[kind][1], left, right)
        found = self._binary_containers(kind, left, right)
        if found is not MISSING:
            return found
        return self._binary_objects(kind, left, right)

    def _binary_containers(self, kind: type[ast.operator], left: Value, right: Value) -> Value:
        if isinstance(left, str) and kind is ast.Mod:
            return Unknown("a text that depends on sizes", told=True)
        if isinstance(left, ListRef) and isinstance(right, ListRef) and kind is ast.Add:
            return self.new_list(self._concatenated(self.heap[left], self.heap[right]))
        if isinstance(left, tuple) and isinstance(right, tuple) and kind is ast.Add:
            return left + right
        if kind is ast.Mult and is_size(left) and isinstance(right, tuple | ListRef):
            left, right = right, left
        if kind is ast.Mult and is_size(right) and isinstance(left, tuple | ListRef):
            return self._repeated(left, right)
        return MISSING

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
        if isinstance(times, int) and isinstance(items, tuple):
            return items * times if isinstance(left, tuple) else self.new_list(items * times)
        if isinstance(items, Many):
            return self.new_list(Many(items.element, items.length * times))
        if len(items) == 1:
            return self.new_list(Many(items[0], times))
        return self.lost("a list repeated a number of times that is not known")

    def _binary_objects(self, kind: type[ast.operator], left: Value, right: Value) -> Value:
        name = BINARY[kind][0]
        for receiver, method, other in (
            (left, f"__{name}__", right),
            (right, f"__r{name}__", left),
        ):
            if isinstance(receiver, Instance):
                found = self.method_of(receiver, method)
                if found is not MISSING:
                    return self.call(found, [other], {})
        if isinstance(left, Library | Host) or isinstance(right, Library | Host):
            return self.lost("an operator on a library's object")
        symbol = SYMBOLS.get(kind, name)
        raise CheckError(
            "type", f"unsupported operands for {symbol}: {self.show(left)} and {self.show(right)}"
        )

    def _UnaryOp(self, node: ast.UnaryOp) -> Value:
        value = self.evaluate(node.operand)
        self.emit.label = self.collector.text(node)
        if isinstance(node.op, ast.Not):
            return self.negated(self.truth(value))
        return self.either(value, lambda v: self._unary(type(node.op), v))

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
        return self._bool_op(node, 0)

    def _bool_op(self, node: ast.BoolOp, index: int) -> Value:
        value = self.evaluate(node.values[index])
        if index == len(node.values) - 1:
            return value
        is_and = isinstance(node.op, ast.And)
        decided = self.decide(self.truth(value))
        if isinstance(decided, bool):
            return self._bool_op(node, index + 1) if decided == is_and else value
        text = self.collector.text(node.values[index])
        if is_and:
            return self.fork(
                decided, lambda: self._bool_op(node, index + 1), lambda: _as(value, False), text
            )
        return self.fork(
            decided, lambda: _as(value, True), lambda: self._bool_op(node, index + 1), text
        )

    def _Compare(self, node: ast.Compare) -> Value:
        left = self.evaluate(node.left)
        result: Value = True
        for op, right_node in zip(node.ops, node.comparators, strict=True):
            right = self.evaluate(right_node)
            self.emit.label = self.collector.text(node)
            found = self.compare(type(op), left, right)
            if len(node.ops) == 1:
                return found
            result = self.as_truth(
                both(self.as_term(self.truth(result)), self.as_term(self.truth(found)))
            )
            left = right
        return result

    def compare(self, kind: type[ast.cmpop], left: Value, right: Value) -> Value:
        """Return a comparison of two values."""
        if kind in (ast.Is, ast.IsNot):
            return self._identical(left, right, kind is ast.Is)
        if isinstance(left, Choice) or isinstance(right, Choice):
            return self.either(
                left, lambda a: self.either(right, lambda b: self.compare(kind, a, b))
            )
        if kind in (ast.In, ast.NotIn):
            found = self._contained(left, right)
            return found if kind is ast.In else self.negated(self.truth(found))
        if isinstance(left, Unknown) or isinstance(right, Unknown):
            return left if isinstance(left, Unknown) else right
        if isinstance(left, Tensor) or isinstance(right, Tensor):
            if left is None or right is None:
                return kind is ast.NotEq
            return self.tensor_operator(COMPARE[kind][0], left, right)
        if kind in (ast.Eq, ast.NotEq):
            left, right = self.unwrap(left), self.unwrap(right)
        elif isinstance(left, ListRef) and isinstance(right, ListRef):
            left, right = self.heap[left], self.heap[right]
        if isinstance(left, Instance):
            method = self.method_of(left, f"__{COMPARE[kind][0]}__")
            if method is not MISSING:
                return self.call(method, [right], {})
        if kind in (ast.Eq, ast.NotEq) and isinstance(left, Instance | Class | Function):
            return (left is right) == (kind is ast.Eq)
        condition = None
        if not isinstance(left, Unknown) and not isinstance(right, Unknown):
            condition = compare_values(self.knowledge, kind, left, right)
        if condition is None:
            return Truth(self.unknown_truth())
        return self.as_truth(condition) if isinstance(condition, Term) else condition

    def _identical(self, left: Value, right: Value, positive: bool) -> Value:
        if isinstance(left, Choice):
            same = self.as_truth(
                either(
                    both(left.condition, self._identity_term(left.yes, right)),
                    both(negate(left.condition), self._identity_term(left.no, right)),
                )
            )
            return same if positive else self.negated(self.truth(same))
        if isinstance(left, Unknown) or isinstance(right, Unknown):
            return Truth(self.unknown_truth())
        if isinstance(left, Truth) and isinstance(right, bool):
            return self.as_truth(left.term if right == positive else negate(left.term))
        return _is_same(left, right) == positive

    def _identity_term(self, left: Value, right: Value) -> Term:
        return self.as_term(self.truth(self._identical(left, right, True)))

    def _contained(self, item: Value, container: Value) -> Value:
        if isinstance(container, str) and isinstance(item, str):
            return item in container
        if isinstance(container, DictRef | ListRef | SetRef):
            content = self.heap[container]
        elif isinstance(container, Instance):
            content = self.sequence_or_keys(container)
        else:
            content = container
        if isinstance(item, Unknown) or not isinstance(content, dict | tuple | range | list):
            return Truth(self.unknown_truth())
        if isinstance(content, dict) and _is_key(item):
            return item in content
        conditions = [self.as_term(self.truth(self.compare(ast.Eq, item, c))) for c in content]
        return self.as_truth(either(*conditions)) if conditions else False

    def _IfExp(self, node: ast.IfExp) -> Value:
        condition = self.decide(self.truth(self.evaluate(node.test)))
        if isinstance(condition, bool):
            return self.evaluate(node.body if condition else node.orelse)
        return self.fork(
            condition,
            lambda: self.evaluate(node.body),
            lambda: self.evaluate(node.orelse),
            self.collector.text(node.test),
        )


def _as(value: Value, truth: bool) -> Value:
    return truth if isinstance(value, Truth | bool) else value


def _is_key(value: Value) -> bool:
    # Objects of the program are keys by identity, as Python has it without __eq__.
    return is_plain(value) or isinstance(value, Instance | Function | Library | Host)


def _is_same(left: Value, right: Value) -> bool:
    if isinstance(left, Library) and isinstance(right, Library):
        return left == right
    if is_plain(left) and is_plain(right):
        return left is right or (type(left) is type(right) and left == right)
    if type(left) is type(right) and not isinstance(left, Tensor):
        return left is right or bool(left == right)
    return left is right
