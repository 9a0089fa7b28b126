"""Operators on integers and truth values that draws decide."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from hagane.frontends.python.interpret.arithmetic import BINARY, COMPARE, apply_plain, is_number
from hagane.frontends.python.interpret.domain import Operation
from hagane.frontends.python.values.objects import Function
from hagane.frontends.python.values.values import (
    Choice,
    DictRef,
    Host,
    ListRef,
    Method,
    Real,
    SetRef,
    Stream,
    Truth,
    Unknown,
    Value,
    is_plain,
    is_size,
)
from hagane.symbolic import Dim, Expr, floordiv, mod, symbols_of
from hagane.symbolic.expression import multiply
from hagane.symbolic.logic import int_mod, int_product, negate
from hagane.symbolic.term import FALSE, INT, TRUE, Term, const
from hagane.tools.prob.capture.facts import Range
from hagane.tools.prob.capture.paths import Paths
from hagane.tools.prob.capture.writer import Writer
from hagane.tools.prob.language.syntax import Binary, Expression, If

# A formula of more names than this gets a name of its own, so that fewer values stay alive.
_MOST_NAMES = 4
_REAL = (
    "a real number that depends on draws; draws are integers: use // and %, or multiply both sides "
    "of a comparison"
)


class Arithmetic(Paths):
    """Evaluates operators."""

    def operate(self, kind: Operation, *operands: Value) -> Value:
        """Return an operator applied to its operands: integers and truth values of draws."""
        if issubclass(kind, ast.operator):
            return self._binary(kind, *operands)
        if issubclass(kind, ast.cmpop):
            return self._comparison(kind, *operands)
        if issubclass(kind, ast.unaryop):
            return self._unary(kind, *operands)
        if kind is ast.Store:
            return self._set_list_item(*operands)
        return self._item(*operands)

    def _binary(self, kind: type[ast.operator], left: Value, right: Value) -> Value:
        if isinstance(left, Real) or isinstance(right, Real):
            self.refuse(_REAL)
        a, b = _bare(left), _bare(right)
        if a is not left or b is not right:
            return self._with_fraction(kind, a, b)
        truths = isinstance(left, Truth | bool) and isinstance(right, Truth | bool)
        if truths and kind is ast.BitXor:
            return self.core.negated(self.core.truth(self.core.compare(ast.Eq, left, right)))
        if truths and kind in (ast.BitAnd, ast.BitOr):
            left, right = (left, right) if isinstance(left, Truth) else (right, left)
        else:
            if isinstance(left, Truth):
                left = self.counted(left)
            if isinstance(right, Truth):
                right = self.counted(right)
        if not isinstance(left, Expr | Truth) and not isinstance(right, Expr | Truth):
            return self.core.compute(kind, left, right)
        if isinstance(left, float) or isinstance(right, float):
            self.refuse(_REAL)
        if isinstance(right, Expr) and is_size(left) and kind in (ast.FloorDiv, ast.Mod):
            return self._quotient(kind, left, right)
        if isinstance(left, Expr) and isinstance(right, int) and right and kind is ast.Mod:
            return self._remainder(left, right)
        if kind is ast.Div and is_number(left) and is_number(right):
            return self._share(left, right)
        found = self.core.compute(kind, left, right)
        if isinstance(found, Real):
            symbol = {ast.Pow: "**", ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^"}.get(
                kind, kind.__name__
            )
            self.refuse(f"'{symbol}' of a number that depends on draws; + - * // % are supported")
        return self.shortened(found)

    def _with_fraction(self, kind: type[ast.operator], a: Value, b: Value) -> Value:
        """Return an operator of which at least one operand is a known fraction."""
        if not isinstance(a, Expr | Truth) and not isinstance(b, Expr | Truth):
            return self.core.lift(apply_plain(BINARY[kind][1], a, b))
        if kind is not ast.Mult or not all(isinstance(v, Expr | Fraction) for v in (a, b)):
            self.refuse(_REAL)
        formula = multiply(a, b)
        return Real(formula) if isinstance(formula, Expr) else self.core.lift(Fraction(formula))

    def _share(self, left: Value, right: Value) -> Value:
        """Return ``left / right``, which only a probability may be."""
        if not isinstance(right, int) or not isinstance(left, Expr):
            self.refuse(_REAL)
        if right == 0:
            self.refuse("ZeroDivisionError: division by zero")
        formula = multiply(left, Fraction(1, right))
        return Real(formula) if isinstance(formula, Expr) else Real()

    def shortened(self, value: Value) -> Value:
        """Return a long formula under a name."""
        if isinstance(value, Expr) and (
            len(symbols_of(value)) > _MOST_NAMES or len(value.terms) > 3 * _MOST_NAMES
        ):
            return self.named(value, "number")
        return value

    def named(self, value: Expr, label: str) -> Dim:
        """Return an integer under a name of its own."""
        term = self.knowledge.term(value)
        return self.record.named_integer(term, self.facts.range_of(term), self.span, label)

    def _remainder(self, left: Expr, right: int) -> Dim:
        """Return a remainder as such, because its range is small."""
        sign = 1 if right > 0 else -1
        term = int_mod(self.knowledge.term(left * sign), const(abs(right), INT))
        term = int_product(term, const(sign, INT))
        return self.record.named_integer(term, self.facts.range_of(term), self.span, "remainder")

    def _quotient(self, kind: type[ast.operator], left: Dim, right: Expr) -> Dim:
        """Return a quotient or remainder by a divisor that draws decide, evaluated on this path."""
        a, b, guard = self.knowledge.term(left), self.knowledge.term(right), self.guard
        if b.is_const:
            return (floordiv if kind is ast.FloorDiv else mod)(left, int(b.data))
        span, zero = self.span, const(0, INT)
        operator = "/" if kind is ast.FloorDiv else "%"

        def write(writer: Writer) -> Expression:
            whole = Binary(span, operator, writer.written(a, span), writer.written(b, span))
            return guarded(writer, guard, whole, writer.written(zero, span))

        label = "quotient" if kind is ast.FloorDiv else "remainder"
        name = self.record.step(label, span, (a, b, guard), write, needed=True)
        self.learn(negate(self.knowledge.equal(right, 0)))
        bound = self.facts.range_of(a if kind is ast.FloorDiv else b)
        return self.record.number(name, _around_zero(bound))

    def _unary(self, kind: type[ast.unaryop], value: Value) -> Value:
        if isinstance(value, Real):
            self.refuse(_REAL)
        known = _bare(value)
        if isinstance(known, Fraction) and kind is ast.USub:
            return self.core.lift(-known)
        return self.core.compute(kind, self.counted(value) if isinstance(value, Truth) else value)

    # Comparisons.

    def compared(self, node: ast.Compare) -> Value:
        """Return a comparison, or several of which each needs those before it."""
        if len(node.ops) == 1:
            return self.core.visit(node)
        return self._compare_chain(node, 0, self.core.evaluate(node.left))

    def _compare_chain(self, node: ast.Compare, place: int, left: Value) -> Value:
        """Compare as Python does: a chain ends at the first comparison that fails."""
        right = self.core.evaluate(node.comparators[place])
        found = self.core.compare(type(node.ops[place]), left, right)
        if place == len(node.ops) - 1:
            return found
        decided = self.core.decide(self.core.truth(found))
        if isinstance(decided, bool):
            return self._compare_chain(node, place + 1, right) if decided else False
        return self.core.fork(
            decided, lambda: self._compare_chain(node, place + 1, right), lambda: False
        )

    def _comparison(self, kind: type[ast.cmpop], left: Value, right: Value) -> Value:
        if isinstance(left, Real) or isinstance(right, Real):
            self.refuse(_REAL)
        a, b = _bare(left), _bare(right)
        if (a is not left or b is not right) and kind in COMPARE:
            if isinstance(a, Expr | Truth) or isinstance(b, Expr | Truth):
                self.refuse(_REAL)
            return bool(apply_plain(COMPARE[kind][1], a, b))
        truths = isinstance(left, Truth | bool) and isinstance(right, Truth | bool)
        unknown = isinstance(left, Truth) or isinstance(right, Truth)
        if kind in (ast.Is, ast.IsNot) and not isinstance(left, Choice):
            if unknown and truths:
                kind = ast.Eq if kind is ast.Is else ast.NotEq
            elif isinstance(left, Expr) and isinstance(right, int | Expr):
                self.refuse("'is' compares objects; compare numbers with '=='")
        plain = kind in (ast.Is, ast.IsNot, ast.In, ast.NotIn)
        if unknown and not plain and not (truths and kind in (ast.Eq, ast.NotEq)):
            left, right = self.counted(left), self.counted(right)
        return self.core.compute(kind, left, right)

    # Functions of numbers.

    def call(
        self, function: Value, arguments: Sequence[Value], keywords: Mapping[str, Value]
    ) -> Value:
        """Call any value; functions of numbers know drawn values."""
        if isinstance(function, Function):
            entry = self.knowledge.path
            result = self.core.apply(function, arguments, keywords)
            if self.core.dead:
                self.refuse(f"'{function.name}' does not return")
            # Every path of a function returns, so later statements are on the path of the call.
            self.knowledge.path = entry
            return result
        if not isinstance(function, Host | Method):
            return self.core.apply(function, arguments, keywords)
        values = [*arguments, *keywords.values()]
        if any(isinstance(value, Real) for value in values):
            self.refuse(_REAL)
        if isinstance(function, Method):
            return self._method(function, arguments, keywords)
        if any(isinstance(value, Choice) for value in arguments):
            return self.core.apply(function, arguments, keywords)  # for both, one after the other
        return self.shortened(self._function(function, arguments, keywords))

    def _function(
        self, function: Host, arguments: Sequence[Value], keywords: Mapping[str, Value]
    ) -> Value:
        found = function.object
        if found is isinstance and isinstance(arguments[0], Truth):
            arguments = [True, *arguments[1:]]
        elif found in (int, abs, round, range, pow, divmod):
            arguments = [self.counted(v) if isinstance(v, Truth) else v for v in arguments]
        elif found is Fraction and any(isinstance(value, Expr) for value in arguments):
            numerator, denominator = (*arguments, 1)[:2]
            return self._share(numerator, denominator)
        elif found is sum:
            return self._sum(*arguments, **keywords)
        elif found is min or found is max:
            items = self.items_of(arguments[0]) if len(arguments) == 1 else list(arguments)
            if items and not (all(map(is_plain, items)) and keywords.get("key") is None):
                return self._extreme(found, items, keywords)
            if len(arguments) == 1:
                arguments = [tuple(items)]
        elif found is sorted:
            items = self.items_of(arguments[0])
            return self.core.new_list(self.sorted_items(items, keywords))
        return self.core.apply(function, arguments, keywords)

    def _sum(self, value: Value, start: Value = 0) -> Value:
        for item in self.items_of(value):
            start = self.core.binary(ast.Add, start, item)
        return start

    def _extreme(self, which: Any, items: list[Value], keywords: Mapping[str, Value]) -> Value:
        keys = items
        if keywords.get("key") is not None:
            keys = [self.core.call(keywords["key"], [item], {}) for item in items]
        best, best_key = items[0], keys[0]
        wanted = ast.Lt if which is min else ast.Gt
        for item, key in zip(items[1:], keys[1:], strict=True):
            better = self.core.decide(self.core.truth(self.core.compare(wanted, key, best_key)))
            if better is True:
                best, best_key = item, key
            elif isinstance(better, Term):
                better = self.flag(better)
                best = self.core.join(better, item, best)
                best_key = self.core.join(better, key, best_key)
        return best

    # Containers.

    def _method(
        self, method: Method, arguments: Sequence[Value], keywords: Mapping[str, Value]
    ) -> Value:
        receiver, name = method.receiver, method.name
        if isinstance(receiver, DictRef) and arguments and name != "update":
            self.need_known(arguments[0], "a key of a dictionary")
        if isinstance(receiver, SetRef):
            for argument in arguments:
                one = name in ("add", "discard", "remove", "__contains__")
                if isinstance(argument, Stream):  # to be read once, by the method
                    items = self.core.heap[argument.key]
                    self.need_known(items if isinstance(items, tuple) else None, "items of a set")
                    continue
                for item in [argument] if one else self.items_of(argument):
                    self.need_known(item, "an item of a set")
        if isinstance(receiver, ListRef | tuple):
            items = self.items_of(receiver)
            if name == "count":
                return self._sum(
                    tuple(self.core.compare(ast.Eq, item, arguments[0]) for item in items)
                )
            if name in ("index", "remove"):
                for item in [*items, arguments[0]]:
                    self.need_known(item, f"an item that '{name}' compares")
            if name in ("insert", "pop") and arguments:
                self.need_known(arguments[0], "a place in a list")
            if name == "sort" and isinstance(receiver, ListRef):
                self.core.heap[receiver] = tuple(self.sorted_items(items, keywords))
                return None
        return self.core.apply(method, arguments, keywords)

    def need_known(self, value: Value, what: str) -> None:
        """Refuse a value that draws decide."""
        if isinstance(value, Expr | Truth | Real | Choice | Unknown):
            self.refuse(f"{what} has to be known before the run")
        if isinstance(value, tuple):
            for item in value:
                self.need_known(item, what)

    def sorted_items(self, items: list[Value], keywords: Mapping[str, Value]) -> list[Value]:
        """Return items sorted; numbers that draws decide are exchanged pair by pair."""
        if all(map(is_plain, items)) and keywords.get("key") is None:
            return self.core.sorted_items(items, keywords)
        result: list[Value] = []
        keys: list[Value] = []
        wanted = ast.Gt if self.core.truth(keywords.get("reverse", False)) is True else ast.Lt
        key = keywords.get("key")
        for item in items:
            result.append(item)
            keys.append(item if key is None else self.core.call(key, [item], {}))
            for place in range(len(result) - 1, 0, -1):
                less = self.core.truth(self.core.compare(wanted, keys[place], keys[place - 1]))
                before = self.core.as_term(self.core.decide(less))
                if before is FALSE:
                    break
                before = self.flag(before)
                for found in (result, keys):
                    a, b = found[place - 1], found[place]
                    found[place - 1], found[place] = (
                        (b, a)
                        if before is TRUE
                        else (self.core.join(before, b, a), self.core.join(before, a, b))
                    )
        return result

    # Items at places that draws decide.

    def items_of(self, value: Value) -> list[Value]:
        """Return the items of an iterable whose length is known."""
        items = self.core.sequence(value)
        assert isinstance(items, list)
        return items

    def _place(self, index: Expr, count: int) -> Dim:
        """Return an index as a place from 0, if it is surely one of ``count`` items."""
        low, high = self.facts.range_of(self.knowledge.term(index))
        if low is None or high is None or low < -count or high >= count:
            shown = f"{'…' if low is None else low} to {'…' if high is None else high}"
            self.refuse(
                f"IndexError on a possible run: the index lies in {shown}, there are {count} items"
            )
        if low >= 0:
            return index
        if high < 0:
            return index + count
        return self.join_numbers(self.knowledge.less(index, 0), index + count, index)

    def _item(self, value: Value, index: Value) -> Value:
        if isinstance(index, Truth):
            index = self.counted(index)
        if isinstance(index, Expr) and isinstance(value, ListRef | tuple | range):
            items = self.items_of(value)
            place = self._place(index, len(items))
            index = self.named(place, "place") if isinstance(place, Expr) else place
            value = tuple(items)
        elif isinstance(index, Expr) and isinstance(value, DictRef):
            return self._dict_entry(value, index)
        return self.core.compute(ast.Subscript, value, index)

    def _dict_entry(self, value: DictRef, index: Expr) -> Value:
        content = self.core.heap[value]
        low, high = self.facts.range_of(self.knowledge.term(index))
        keys = range(0) if low is None or high is None else range(low, high + 1)
        if not keys or not isinstance(content, dict) or not all(key in content for key in keys):
            self.refuse("KeyError on a possible run: not every key that it may be is there")
        return self.core.compute(
            ast.Subscript, tuple(content[key] for key in keys), index - keys[0]
        )

    def _set_list_item(self, receiver: ListRef, index: Value, value: Value) -> None:
        content = self.core.heap[receiver]
        if isinstance(index, Truth):
            index = self.counted(index)
        if not isinstance(index, Expr) or not isinstance(content, tuple):
            self.core.compute(ast.Store, receiver, index, value)
            return
        place = self._place(index, len(content))
        items = []
        for number, item in enumerate(content):
            here = self.core.as_term(self.core.decide(self.knowledge.equal(place, number)))
            items.append(self.core.join(here, value, item) if not here.is_const else
                         value if here is TRUE else item)  # fmt: skip
        self.core.heap[receiver] = tuple(items)


def guarded(writer: Writer, guard: Term, value: Expression, default: Expression) -> Expression:
    """Return a value that is evaluated on its path only."""
    if guard is TRUE:
        return value
    return If(value.span, writer.written(guard, value.span), value, default)


def _bare(value: Value) -> Value:
    """Return a known fraction as such, other values as they are."""
    held = isinstance(value, Host) and isinstance(value.object, Fraction)
    return value.object if held else value


def _around_zero(bound: Range) -> Range:
    """Return a range, on both sides of zero, as wide as another one."""
    low, high = bound
    if low is None or high is None:
        return None, None
    most = max(abs(low), abs(high))
    return -most, most


__all__ = ["Arithmetic", "guarded"]
