"""Operators and functions of Python's own where data decide: numbers, lists, orders."""

from __future__ import annotations

import ast
import builtins
import functools
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.frontends.capture.flow import prelude
from hagane.frontends.capture.flow.lists import is_data
from hagane.frontends.capture.flow.mathematics import FUNCTIONS, OPERATORS, TRUTHS
from hagane.frontends.capture.flow.paths import Paths
from hagane.frontends.capture.flow.slots import is_stackable
from hagane.frontends.python.interpret.domain import Operation
from hagane.frontends.python.report.findings import CheckError
from hagane.frontends.python.values.values import (
    Choice,
    Host,
    ListRef,
    Many,
    Method,
    Real,
    SetRef,
    Stream,
    Tensor,
    Truth,
    Value,
    is_plain,
)
from hagane.ops.builder import interpreting
from hagane.symbolic import Dim, Expr
from hagane.symbolic.term import variables_of

_NUMBERS = (int, float, Expr, Real, Truth)
_BITS: dict[type[ast.AST], str] = {
    ast.BitAnd: "BitwiseAnd",
    ast.BitOr: "BitwiseOr",
    ast.BitXor: "BitwiseXor",
}
_ROUNDING = {"floor": "Floor", "ceil": "Ceil"}
_BY_TEN = 10.0


class Calling(Paths):
    """Calls and operators whose operands are data."""

    def call(
        self, function: Value, arguments: Sequence[Value], keywords: Mapping[str, Value]
    ) -> Value:
        """Call any value of the program."""
        if isinstance(function, Method):
            found = self._method(function, arguments, keywords)
        elif isinstance(function, Host):
            found = self._function(function.object, arguments, keywords)
        else:
            return self.core.apply(function, arguments, keywords)
        return self.core.apply(function, arguments, keywords) if found is _NONE else found

    # Methods.

    def _method(
        self, method: Method, arguments: Sequence[Value], keywords: Mapping[str, Value]
    ) -> Value:
        receiver, name = method.receiver, method.name
        if isinstance(receiver, SetRef) and any(map(is_data, arguments)):
            raise CheckError("capture", "a set holds values that the data decide; use a list")
        if not isinstance(receiver, ListRef):
            return _NONE
        content = self.core.heap[receiver]
        if isinstance(content, Many):
            return self.lists.method(receiver, name, arguments, keywords)
        if not isinstance(content, tuple):
            return _NONE
        by_data = name in ("pop", "insert") and bool(arguments) and is_data(arguments[0])
        by_data |= name in ("index", "count", "remove") and (
            any(map(is_data, (*content, *arguments)))
        )
        by_data |= name == "sort" and self._ordered_by_data(content, keywords)
        if by_data and content:
            return self.lists.method(receiver, name, arguments, keywords)
        return _NONE

    def _ordered_by_data(self, content: Sequence[Value], keywords: Mapping[str, Value]) -> bool:
        key = keywords.get("key")
        if key is None:
            return any(map(is_data, content))
        return any(is_data(self.core.call(key, [item], {})) for item in content)

    # Functions.

    def _function(
        self, found: Any, arguments: Sequence[Value], keywords: Mapping[str, Value]
    ) -> Value:
        arguments = [self.core.settle(value) for value in arguments]
        if any(isinstance(value, Choice) for value in arguments):
            return _NONE
        handler = _HANDLERS.get(_key(found))
        if handler is not None:
            return handler(self, *arguments, **keywords)
        if getattr(found, "__module__", "") == "math" and any(map(is_data, arguments)):
            return self._math(found.__name__, arguments)
        return _NONE

    def _items(self, value: Value) -> list[Value] | Many:
        """Return the items of a value that may be looked at without being used up."""
        if isinstance(value, Stream):
            content = self.core.heap[value.key]
            return list(content) if isinstance(content, tuple) else content
        return self.core.sequence(value)

    def _sum(self, value: Value, start: Value = 0) -> Value:
        items = self._items(value)
        if not isinstance(items, Many):
            return _NONE
        self.core.sequence(value)
        whole = self.lists.reduced("ReduceSum", self.lists.stacked(items))
        if whole is None:
            return self.lists.own(prelude.total, self.core.new_list(items), start)
        if is_plain(start) and start == 0:
            return whole
        return self.core.binary(ast.Add, start, whole)

    def _print(self, *values: Value, **_: Value) -> Value:
        self.telling.tell("print", values)
        return None

    def _any(self, value: Value) -> Value:
        return self._junction(value, prelude.any_of)

    def _all(self, value: Value) -> Value:
        return self._junction(value, prelude.all_of)

    def _junction(self, value: Value, function: Callable[..., Any]) -> Value:
        items = self._items(value)
        if not isinstance(items, Many):
            return _NONE
        self.core.sequence(value)
        return self.lists.own(function, self.core.new_list(items))

    def _min(self, *values: Value, **keywords: Value) -> Value:
        return self._extreme(values, keywords, prelude.least, "ReduceMin")

    def _max(self, *values: Value, **keywords: Value) -> Value:
        return self._extreme(values, keywords, prelude.greatest, "ReduceMax")

    def _extreme(
        self,
        values: Sequence[Value],
        keywords: Mapping[str, Value],
        function: Callable[..., Any],
        name: str,
    ) -> Value:
        items = self._items(values[0]) if len(values) == 1 else list(values)
        many = isinstance(items, Many)
        key = keywords.get("key")
        if not isinstance(items, Many):
            if not items or (key is None and not any(map(is_data, items))):
                return _NONE
            if key is None and all(isinstance(i, int | Expr) for i in items):
                return self._extreme_number(name, items)
            if key is not None and not self._ordered_by_data(items, keywords):
                return _NONE
        if len(values) == 1:
            self.core.sequence(values[0])
        content = items if isinstance(items, Many) else tuple(items)
        ref = self.core.new_list(content)
        by = key
        if key is None:
            by = self.core.lift(prelude.itself)
            if many:
                whole = self.lists.reduced(name, self.lists.stacked(content))
                if whole is not None and "default" not in keywords:
                    return whole
        if "default" in keywords and many:
            empty = self.core.decide(self.core.as_term(self.core.truth(ref)))
            run = partial(self.lists.own, function, ref, by)
            if isinstance(empty, bool):
                return run() if empty else keywords["default"]
            return self.core.fork(empty, run, lambda: keywords["default"], "the list has items")
        return self.lists.own(function, ref, by)

    def _extreme_number(self, name: str, items: Sequence[Value]) -> Value:
        """Return the least or greatest of integers: a formula where none may be negative."""
        if all(map(self._is_size, items)):
            return _NONE
        scalars = [self.emit.size(item) for item in items]
        return self.emit.number(self.core.op(name.removeprefix("Reduce"), *scalars), "extreme")

    def _is_size(self, value: Value) -> bool:
        """Whether an integer is known not to be negative, as formulas take it."""
        return self.core.decide(self.core.as_term(self.core.knowledge.less(-1, value))) is True

    def _sorted(self, value: Value, **keywords: Value) -> Value:
        items = self._items(value)
        content = items if isinstance(items, Many) else tuple(items)
        if isinstance(content, tuple) and not self._ordered_by_data(content, keywords):
            return _NONE
        self.core.sequence(value)
        return self.lists.sorted(content, keywords)

    def _map(self, function: Value, *values: Value) -> Value:
        if len(values) != 1 or not isinstance(self._items(values[0]), Many):
            return _NONE
        items = self.core.sequence(values[0])
        assert isinstance(items, Many)
        each = lambda k: self.core.call(function, [items.item(k)], {})  # noqa: E731
        return self.core.new_stream(Many(items.element, items.length, each))

    def _filter(self, function: Value, value: Value) -> Value:
        items = self._items(value)
        if not isinstance(items, Many) and not any(map(is_data, items)):
            return _NONE
        made = self.lists.own(prelude.kept, function, self.core.new_list(self.core.sequence(value)))
        return self.core.new_stream(self.core.heap[made])

    def _set(self, value: Value = ()) -> Value:
        items = self._items(value)
        if isinstance(items, Many) or any(map(is_data, items)):
            raise CheckError("capture", "a set holds values that the data decide; use a list")
        return _NONE

    def _reduce(self, function: Value, value: Value, *initial: Value) -> Value:
        items = self._items(value)
        if not isinstance(items, Many):
            return _NONE
        content = self.lists.chained(tuple(initial), self.core.sequence(value))
        return self.lists.own(prelude.folded, function, self.core.new_list(content))

    def _accumulate(self, value: Value, function: Value = None) -> Value:
        items = self._items(value)
        if not isinstance(items, Many):
            return _NONE
        by = self.core.lift(prelude.added) if function is None else function
        ref = self.core.new_list(self.core.sequence(value))
        made = self.lists.own(prelude.accumulated, by, ref)
        return self.core.new_stream(self.core.heap[made])

    def _chain(self, *values: Value) -> Value:
        found = [self._items(value) for value in values]
        if not any(isinstance(items, Many) for items in found):
            return _NONE
        content: Value = ()
        for value in values:
            items = self.core.sequence(value)
            content = self.lists.chained(content, tuple(items) if type(items) is list else items)
        return self.core.new_stream(content)

    def _pairwise(self, value: Value) -> Value:
        items = self._items(value)
        if not isinstance(items, Many):
            return _NONE
        pair = lambda k: (items.item(k), items.item(k + 1))  # noqa: E731
        return self.core.new_stream(Many(items.element, items.length - 1, pair))

    # Numbers.

    def _abs(self, value: Value) -> Value:
        if isinstance(value, Real):
            return self._real("Abs", value)
        if isinstance(value, Expr) and not self._is_size(
            value
        ):  # formulas take sizes for non-negative
            return self.emit.number(self.core.op("Abs", self.emit.size(value)), "whole")
        return _NONE

    def _round(self, value: Value, digits: Value = None) -> Value:
        if isinstance(value, Expr) and (digits is None or (is_plain(digits) and digits >= 0)):
            return value
        if isinstance(value, Tensor) and value.kind == "numpy.ndarray" and value.shape == ():
            value = self.core.tensor_number(value, whole=False)
        if not isinstance(value, Real):
            return _NONE
        if digits is None:
            return self.emit.number(self.core.op("Round", self.emit.real_tensor(value)), "rounded")
        if not isinstance(digits, int):
            return _NONE
        scale = np.array(_BY_TEN**digits, np.float64)
        scaled = self.core.op("Mul", self.emit.real_tensor(value), scale)
        return Real(None, self.core.op("Div", self.core.op("Round", scaled), scale))

    def _int(self, value: Value = 0, *base: Value) -> Value:
        if isinstance(value, Truth):
            return self._counted(value)
        if isinstance(value, Real) and not base:
            tensor = self.emit.real_tensor(value)
            return self.emit.number(self.core.op("Cast", tensor, to=ir.DataType.INT64), "whole")
        return _NONE

    def _float(self, value: Value = 0.0) -> Value:
        if isinstance(value, Truth):
            return Real(None, self.emit.as_scalar(value, "float"))
        return _NONE

    def _pow(self, left: Value, right: Value, modulus: Value = None) -> Value:
        if modulus is None:
            return _NONE
        found = self.core.binary(ast.Pow, left, right)
        return self.core.binary(ast.Mod, found, modulus)

    def _real(self, name: str, value: Value) -> Real:
        return Real(None, self.core.op(name, self.emit.real_tensor(value)))

    def _math(self, name: str, arguments: Sequence[Value]) -> Value:
        values = [
            self.core.tensor_number(v, whole=v.dtype.is_integer()) if isinstance(v, Tensor) else v
            for v in arguments
        ]
        if not all(isinstance(v, _NUMBERS) for v in values):
            return _NONE
        several = FUNCTIONS.get((name, len(values)))
        if several is not None or (name in OPERATORS and len(values) == 1):
            if several is None:
                made = self._real(OPERATORS[name], values[0])
            else:
                with interpreting(self.emit):
                    made = Real(None, several(*map(self.emit.real_tensor, values)))
            if name in TRUTHS:
                assert made.tensor is not None
                return Truth(self.emit.truth(made.tensor, str(self.core.new_truth().data)))
            return made
        value = values[0]
        if name in ("floor", "ceil", "trunc") and not isinstance(value, Expr):
            tensor = self.emit.real_tensor(value)
            if name in _ROUNDING:
                tensor = self.core.op(_ROUNDING[name], tensor)
            return self.emit.number(self.core.op("Cast", tensor, to=ir.DataType.INT64), name)
        if name == "pow":
            tensors = [self.emit.real_tensor(v) for v in values]
            return Real(None, self.core.op("Pow", *tensors))
        if name == "hypot" and len(values) == 2:
            squares = [self.core.binary(ast.Mult, v, v) for v in values]
            return self._real("Sqrt", self.core.binary(ast.Add, *squares))
        if name in ("log2", "log10"):
            base = np.array(math.log(2 if name == "log2" else 10), np.float64)
            return Real(None, self.core.op("Div", self._real("Log", value).tensor, base))
        if name in ("floor", "ceil", "trunc", "prod"):
            return _NONE
        raise CheckError("capture", f"'math.{name}' of a number that the data decide")

    # Operators.

    def operate(self, kind: Operation, *operands: Value) -> Value:
        """Return an operator applied to its operands; data among them go to nodes."""
        if kind in (ast.Subscript, ast.Store):
            found = self._place(kind, *operands)
        elif len(operands) == 1:
            found = self._unary(kind, operands[0])
        elif kind in (ast.In, ast.NotIn):
            found = self._membership(kind, *operands)
        else:
            found = self._binary(kind, *operands)
        return self.core.compute(kind, *operands) if found is _NONE else found

    def _place(self, kind: Operation, receiver: Value, index: Value, *value: Value) -> Value:
        if not isinstance(receiver, ListRef | tuple):
            return _NONE
        index = self.core.settle(index)
        if isinstance(index, Choice):
            return _NONE
        content = self.core.heap[receiver] if isinstance(receiver, ListRef) else receiver
        if isinstance(content, Many):
            simple = content.at is not None and not isinstance(index, slice | Tensor)
            if kind is ast.Subscript and simple and not hasattr(content, "columns"):
                return _NONE
        elif not isinstance(content, tuple) or not is_data(index) or not content:
            return _NONE
        elif not is_stackable(self.lists.form_of(content)):
            self._refuse_negative(index, content)
            return _NONE
        if kind is ast.Subscript:
            return self.lists.item(content, index)
        assert isinstance(receiver, ListRef)
        self.core.heap[receiver] = self._stored(content, index, value[0])
        return None

    def _stored(self, content: Value, index: Value, value: Value) -> Value:
        rows = self.lists.store(content, index, value)
        if isinstance(content, tuple):  # as long as it was
            return tuple(rows.item(k) for k in range(len(content)))
        return rows

    def _refuse_negative(self, index: Value, content: Sequence[Value]) -> None:
        if (
            isinstance(index, Expr)
            and self.core.decide(self.core.knowledge.less(-1, index)) is not True
        ):
            shown = " and ".join(dict.fromkeys(self.core.show(item) for item in content))
            raise CheckError(
                "capture",
                f"an item of {shown} at a place that the data decide, which may count from the "
                "back; use place % len(items)",
            )

    def _membership(self, kind: Operation, item: Value, container: Value) -> Value:
        if not isinstance(container, ListRef):
            return _NONE
        content = self.core.heap[container]
        if not isinstance(content, Many):
            return _NONE
        found = self.lists.own(prelude.contains, container, item)
        return found if kind is ast.In else self.core.negated(self.core.truth(found))

    def _unary(self, kind: Operation, value: Value) -> Value:
        if isinstance(value, Real) and kind is ast.USub:
            return self._real("Neg", value) if value.tensor is not None else _NONE
        if isinstance(value, Truth) and kind in (ast.USub, ast.Invert, ast.UAdd):
            number = self._counted(value)
            return (
                self.core.compute(kind, number)
                if kind is ast.USub
                else (number if kind is ast.UAdd else -1 - number)
            )
        if isinstance(value, Expr) and kind is ast.Invert:
            return -1 - value
        return _NONE

    def _counted(self, value: Truth) -> Expr:
        return self.emit.number(self.emit.as_scalar(value, "bool"), "truth")

    def _binary(self, kind: Operation, left: Value, right: Value) -> Value:
        if isinstance(left, ListRef) or isinstance(right, ListRef):
            return self._lists(kind, left, right)
        if not (isinstance(left, _NUMBERS) and isinstance(right, _NUMBERS)):
            return _NONE
        if not (is_data(left) or is_data(right)):
            return _NONE
        if issubclass(kind, ast.operator) and not (
            kind in _BITS and all(isinstance(x, bool | Truth) for x in (left, right))
        ):
            left, right = (self._counted(x) if isinstance(x, Truth) else x for x in (left, right))
        if isinstance(left, Real | float) or isinstance(right, Real | float):
            return self._reals(kind, left, right)
        if isinstance(left, int | Expr) and isinstance(right, int | Expr):
            return self._integers(kind, left, right)
        if issubclass(kind, ast.cmpop) and kind not in (ast.Is, ast.IsNot):
            a, b = (self._counted(x) if isinstance(x, Truth) else x for x in (left, right))
            both = isinstance(left, bool | Truth) and isinstance(right, bool | Truth)
            return (
                _NONE if both and kind in (ast.Eq, ast.NotEq) else (self.core.compute(kind, a, b))
            )
        return _NONE

    def _reals(self, kind: Operation, left: Value, right: Value) -> Value:
        if not any(isinstance(x, Real) and x.tensor is not None for x in (left, right)):
            found = self.core.compute(kind, left, right)  # by a formula, if there is one
            if not _is_lost(found):
                return found
        if issubclass(kind, ast.operator):
            return self.emit.real_operation(kind, left, right)
        if issubclass(kind, ast.cmpop) and kind not in (ast.Is, ast.IsNot):
            name = str(self.core.new_truth().data)
            return Truth(self.emit.truth(self.emit.real_comparison(kind, left, right), name))
        return _NONE

    def _integers(self, kind: Operation, left: Dim, right: Dim) -> Value:
        """Return the result of integers of which one is not known, where no formula gives it."""
        if kind in _BITS or (kind is ast.Pow and not isinstance(right, int)):
            name = _BITS.get(kind, "Pow")
            return self._whole(name, left, right)
        if kind in (ast.LShift, ast.RShift) and not isinstance(right, int):
            power = self._whole("Pow", 2, right)
            return (
                left * power if kind is ast.LShift else self.core.compute(ast.FloorDiv, left, power)
            )
        if kind is ast.Pow and isinstance(right, int) and right < 0:
            return self.emit.real_operation(ast.Pow, left, right)
        if kind is ast.Pow and isinstance(right, int) and right > 8:
            return self._whole("Pow", left, right)
        if kind is ast.Div:
            found = self.core.compute(kind, left, right)
            return self.emit.real_operation(kind, left, right) if _is_lost(found) else found
        return _NONE

    def _whole(self, name: str, left: Dim, right: Dim) -> Expr:
        return self.emit.number(
            self.core.op(name, self.emit.size(left), self.emit.size(right)), "whole"
        )

    def _lists(self, kind: Operation, left: Value, right: Value) -> Value:
        heap = self.core.heap
        contents = [heap[x] if isinstance(x, ListRef) else x for x in (left, right)]
        both = isinstance(left, ListRef) and isinstance(right, ListRef)
        if kind is ast.Add and both and any(isinstance(c, Many) for c in contents):
            return self.core.new_list(self.lists.chained(*contents))
        if kind is ast.Mult:
            content, times = contents if isinstance(left, ListRef) else contents[::-1]
            if isinstance(times, Tensor):
                times = self.core.tensor_number(times, whole=True)
            if isinstance(times, Expr) and (isinstance(content, Many) or len(content) > 0):
                return self.core.new_list(self.lists.repeated(content, times))
        return _NONE


def _is_lost(value: Value) -> bool:
    """Whether a number, or the truth of a comparison, is one that nothing computes."""
    if isinstance(value, Truth):
        return any(name.startswith("?") for name in variables_of((value.term,)))
    return isinstance(value, Real) and value.formula is None and value.tensor is None


def _key(found: Any) -> Any:
    try:
        hash(found)
    except TypeError:
        return None
    return found


_NONE = object()  # Python's own meaning does
_HANDLERS: dict[Any, Callable[..., Value]] = {
    builtins.sum: Calling._sum, builtins.any: Calling._any, builtins.all: Calling._all,
    builtins.min: Calling._min, builtins.max: Calling._max, builtins.sorted: Calling._sorted,
    builtins.map: Calling._map, builtins.filter: Calling._filter, builtins.set: Calling._set,
    builtins.frozenset: Calling._set, builtins.abs: Calling._abs, builtins.round: Calling._round,
    builtins.int: Calling._int, builtins.float: Calling._float, builtins.pow: Calling._pow,
    builtins.print: Calling._print,
    functools.reduce: Calling._reduce, itertools.accumulate: Calling._accumulate,
    itertools.chain: Calling._chain, itertools.pairwise: Calling._pairwise,
}  # fmt: skip
__all__ = ["Calling"]
