"""Expressions that draw nothing, as Python functions of a row of values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from fractions import Fraction
from operator import itemgetter
from typing import Any, TypeAlias

from hagane.tools.prob.language.operators import ZeroDivisor, evaluate
from hagane.tools.prob.language.program import Liveness, parts, walk
from hagane.tools.prob.language.syntax import (
    Binary,
    Expression,
    If,
    Let,
    Literal,
    Project,
    Tuple,
    Unary,
    Variable,
)

Row: TypeAlias = tuple[Any, ...]
_Function: TypeAlias = Callable[[Row], Any]

# Python's own parser takes about 200 nested parentheses.
_DEEPEST = 60

# Python writes and reads integers of about 14,000 bits, unless it is told otherwise.
_LONGEST = 10_000

# Conjunction and its kin evaluate both operands, which & | <= on bool do as well.
_PYTHON = {
    "+": "+",
    "-": "-",
    "*": "*",
    "//": "//",
    "%": "%",
    "=": "==",
    "!=": "!=",
    "<": "<",
    "<=": "<=",
    ">": ">",
    ">=": ">=",
    "/\\": "&",
    "\\/": "|",
    "=>": "<=",
}


class Compiler:
    """Compiles pure expressions for rows of given names, each once."""

    def __init__(self, liveness: Liveness) -> None:
        self.liveness = liveness
        self._pure: dict[Expression, bool] = {}
        self._safe: dict[Expression, bool] = {}
        self._functions: dict[tuple[Expression, tuple[str, ...]], _Function] = {}
        self._texts: dict[str, _Function] = {}
        self._fixed: dict[Expression, tuple[Any, ...]] = {}

    def fixed(self, node: Expression) -> tuple[Any, ...]:
        """Return the one value of a pure expression that reads no variable and divides by no zero.

        The tuple is empty for any other.
        """
        found = self._fixed.get(node)
        if found is None:
            found = ()
            if not self.liveness.free(node):
                with suppress(ZeroDivisor):
                    found = (evaluate(node, {}),)
            self._fixed[node] = found
        return found

    def is_pure(self, node: Expression) -> bool:
        """Tell whether an expression has one value for all draws."""
        known = self._pure.get(node)
        if known is not None:
            return known
        stack = [node]
        while stack:
            current = stack[-1]
            missing = [part for part in parts(current) if part not in self._pure]
            if missing:
                stack.extend(missing)
                continue
            stack.pop()
            plain = Literal | Variable | Tuple | Project | Unary | Binary | If | Let
            self._pure[current] = isinstance(current, plain) and all(
                self._pure[part] for part in parts(current)
            )
        return self._pure[node]

    def is_safe(self, node: Expression) -> bool:
        """Tell whether an expression cannot divide by zero, because it does not divide."""
        if node not in self._safe:
            self._safe[node] = not any(
                isinstance(part, Binary) and part.operator in ("//", "%", "/")
                for part in walk(node)
            )
        return self._safe[node]

    def function(self, node: Expression, names: tuple[str, ...]) -> _Function:
        """Return the value of an expression as a function of a row.

        The function raises ``ZeroDivisor`` where the expression divides by zero.
        """
        key = (node, names)
        if key not in self._functions:
            self._functions[key] = self._guarded(node, names)
        return self._functions[key]

    def _guarded(self, node: Expression, names: tuple[str, ...]) -> _Function:
        if isinstance(node, Variable):
            return itemgetter(names.index(node.name))
        fixed = self.fixed(node)
        if fixed:
            return lambda row: fixed[0]

        def slow(row: Row) -> Any:
            return evaluate(node, dict(zip(names, row, strict=True)))

        text = _python(node, {name: index for index, name in enumerate(names)}, _DEEPEST)
        if text is None:
            return slow
        fast = self._texts.get(text)
        if fast is None:
            fast = eval(f"lambda row: {text}", {"Fraction": Fraction, "exact": _exact})
            self._texts[text] = fast
        if "/" not in text and "%" not in text:
            return fast
        checked_first: _Function = fast

        def checked(row: Row) -> Any:
            try:
                return checked_first(row)
            except ZeroDivisionError:
                return slow(row)  # raises with the node at fault

        return checked


def _exact(value: Any) -> Any:
    return Fraction(value) if isinstance(value, int) else value


def _python(node: Expression, slots: dict[str, int], room: int) -> str | None:
    """Return Python text for an expression, or None where it is too deep or has a ``let``."""
    if room == 0:
        return None
    match node:
        case Literal(value=value):
            if max(abs(value.numerator), value.denominator).bit_length() > _LONGEST:
                return None
            return f"Fraction({str(value)!r})" if isinstance(value, Fraction) else f"({value})"
        case Variable(name=name):
            return f"row[{slots[name]}]"
        case Unary(operator=operator):
            return _join([node.operand], slots, room, f"({operator} {{}})")
        case Binary(operator="/"):
            return _join([node.left, node.right], slots, room, "(exact({}) / {})")
        case Binary(operator=operator):
            form = f"({{}} {_PYTHON[operator]} {{}})"
            return _join([node.left, node.right], slots, room, form)
        case If():
            whole = [node.then, node.condition, node.otherwise]
            return _join(whole, slots, room, "({} if {} else {})")
        case Tuple(items=items):
            return _join(items, slots, room, "(" + "{}, " * len(items) + ")")
        case Project(index=index):
            return _join([node.tuple], slots, room, f"{{}}[{index}]")
    return None


def _join(nodes: Sequence[Expression], slots: dict[str, int], room: int, form: str) -> str | None:
    texts = []
    for node in nodes:
        text = _python(node, slots, room - 1)
        if text is None:
            return None
        texts.append(text)
    return form.format(*texts)
