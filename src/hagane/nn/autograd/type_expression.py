"""Expressions over types of arguments: their value, and the text that messages show."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from hagane.nn.autograd.invalid_type import InvalidType


def _binary(symbol: str, priority: int, compute: Callable[..., Any]) -> Any:
    def method(self: Any, other: Any) -> Expr:
        return BinaryOperator(priority, self, other, symbol, compute)

    return method


def _reflected(symbol: str, priority: int, compute: Callable[..., Any]) -> Any:
    def method(self: Any, other: Any) -> Expr:
        return BinaryOperator(priority, other, self, symbol, compute)

    return method


def _unary(symbol: str, priority: int, compute: Callable[..., Any]) -> Any:
    def method(self: Any) -> Expr:
        return UnaryOperator(priority, self, symbol, compute)

    return method


def _comparison(symbol: str, contrary: str, compute: Callable[..., Any]) -> Any:
    def method(self: Any, other: Any) -> Expr:
        return BoolBinaryOperator(self, other, symbol, contrary, compute)

    return method


class Expr:
    """An expression over types: its value by ``eval``, its text by ``str``."""

    def __init__(self, priority: int):
        self.priority = priority

    def eval(self) -> Any:
        """Return the value."""
        raise NotImplementedError

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return GetAttr(self, name)

    def __getitem__(self, key: Any) -> Any:
        return GetItem(self, key)

    def __call__(self, *args: Any) -> Any:
        """Return the expression of a call."""
        return Call(self, args)

    def __bool__(self) -> bool:
        raise RuntimeError(
            f"the expression '{self}' has no truth value while types are checked; "
            "use type_check.expect, or type_check.eval for its value"
        )

    def __iter__(self) -> Any:
        raise TypeError(f"the expression '{self}' cannot be iterated over")

    __eq__ = _comparison("==", "!=", operator.eq)
    __ne__ = _comparison("!=", "==", operator.ne)
    __lt__ = _comparison("<", ">=", operator.lt)
    __le__ = _comparison("<=", ">", operator.le)
    __gt__ = _comparison(">", "<=", operator.gt)
    __ge__ = _comparison(">=", "<", operator.ge)
    __hash__ = object.__hash__
    __add__, __radd__ = _binary("+", 4, operator.add), _reflected("+", 4, operator.add)
    __sub__, __rsub__ = _binary("-", 4, operator.sub), _reflected("-", 4, operator.sub)
    __mul__, __rmul__ = _binary("*", 5, operator.mul), _reflected("*", 5, operator.mul)
    __truediv__ = _binary("/", 5, operator.truediv)
    __rtruediv__ = _reflected("/", 5, operator.truediv)
    __floordiv__ = _binary("//", 5, operator.floordiv)
    __rfloordiv__ = _reflected("//", 5, operator.floordiv)
    __mod__, __rmod__ = _binary("%", 5, operator.mod), _reflected("%", 5, operator.mod)
    __lshift__, __rlshift__ = (
        _binary("<<", 3, operator.lshift),
        _reflected("<<", 3, operator.lshift),
    )
    __rshift__, __rrshift__ = (
        _binary(">>", 3, operator.rshift),
        _reflected(">>", 3, operator.rshift),
    )
    __and__, __rand__ = _binary("&", 2, operator.and_), _reflected("&", 2, operator.and_)
    __xor__, __rxor__ = _binary("^", 1, operator.xor), _reflected("^", 1, operator.xor)
    __or__, __ror__ = _binary("|", 0, operator.or_), _reflected("|", 0, operator.or_)
    __neg__ = _unary("-", 6, operator.neg)
    __pos__ = _unary("+", 6, operator.pos)
    __invert__ = _unary("~", 6, operator.invert)

    def __pow__(self, other: Any) -> Expr:
        return BinaryOperator(7, self, other, "**", operator.pow, True)

    def __rpow__(self, other: Any) -> Expr:
        return BinaryOperator(7, other, self, "**", operator.pow, True)


def _value(item: Any) -> Any:
    if isinstance(item, Expr):
        return item.eval()
    if isinstance(item, list | tuple):
        return type(item)(map(_value, item))
    if isinstance(item, slice):
        return slice(_value(item.start), _value(item.stop), _value(item.step))
    return item


def text(item: Any) -> str:
    """Return the text of an expression, or of a nest of lists and tuples of such."""
    if isinstance(item, Expr):
        return str(item)
    if isinstance(item, list):
        return f"[{', '.join(map(text, item))}]"
    if isinstance(item, tuple):
        return f"({', '.join(map(text, item))}{',' if len(item) == 1 else ''})"
    return repr(item)


class Atom(Expr):
    """An expression that needs no brackets."""

    def __init__(self) -> None:
        super().__init__(8)


class Constant(Atom):
    """A value."""

    def __init__(self, value: Any):
        super().__init__()
        self.value = value

    def __str__(self) -> str:
        return text(self.value)

    def eval(self) -> Any:
        """Return the value."""
        return self.value


class Variable(Atom):
    """A value with a name."""

    def __init__(self, value: Any, name: str):
        super().__init__()
        self.value = value
        self.name = name

    def __str__(self) -> str:
        return self.name

    def eval(self) -> Any:
        """Return the value."""
        return self.value


class GetAttr(Atom):
    """An attribute of an expression."""

    def __init__(self, obj: Any, name: Any):
        super().__init__()
        self.obj = obj
        self.name = name

    def __str__(self) -> str:
        name = self.name.value if isinstance(self.name, Constant) else self.name
        if isinstance(name, str):
            return f"{text(self.obj)}.{name}"
        return f"getattr({text(self.obj)}, {text(name)})"

    def eval(self) -> Any:
        """Return the attribute."""
        return getattr(_value(self.obj), _value(self.name))


def _subscript(key: Any) -> str:
    if key is Ellipsis:
        return "..."
    if isinstance(key, slice):
        parts = [key.start, key.stop] + ([] if key.step is None else [key.step])
        return ":".join("" if part is None else text(part) for part in parts)
    if isinstance(key, tuple):
        return ", ".join(map(_subscript, key))
    return text(key)


class GetItem(Atom):
    """An item of an expression."""

    def __init__(self, obj: Any, key: Any):
        super().__init__()
        self.obj = obj
        self.key = key

    def __str__(self) -> str:
        return f"{text(self.obj)}[{_subscript(self.key)}]"

    def eval(self) -> Any:
        """Return the item."""
        return _value(self.obj)[_value(self.key)]


class Call(Atom):
    """A call of an expression."""

    def __init__(self, obj: Any, args: tuple[Any, ...]):
        super().__init__()
        self.obj = obj
        self.args = args

    def __str__(self) -> str:
        return f"{text(self.obj)}({', '.join(map(text, self.args))})"

    def eval(self) -> Any:
        """Return the result."""
        return _value(self.obj)(*map(_value, self.args))


class UnaryOperator(Expr):
    """An operator on one expression."""

    def __init__(self, priority: int, term: Any, exp: str, func: Callable[..., Any]):
        super().__init__(priority)
        self.term, self.exp, self.func = term, exp, func

    def __str__(self) -> str:
        term = text(self.term)
        inner = isinstance(self.term, Expr) and self.term.priority < self.priority
        return f"{self.exp}({term})" if inner else f"{self.exp}{term}"

    def eval(self) -> Any:
        """Return the value."""
        return self.func(_value(self.term))


class BinaryOperator(Expr):
    """An operator on two expressions."""

    def __init__(
        self,
        priority: int,
        lhs: Any,
        rhs: Any,
        exp: str,
        func: Callable[..., Any],
        right_associative: bool = False,
    ):
        super().__init__(priority)
        self.lhs, self.rhs, self.exp, self.func = lhs, rhs, exp, func
        self.right_associative = right_associative

    def __str__(self) -> str:
        left = self._bracketed(self.lhs, self.right_associative)
        right = self._bracketed(self.rhs, not self.right_associative)
        return f"{left} {self.exp} {right}"

    def _bracketed(self, side: Any, if_equal: bool) -> str:
        shown = text(side)
        if isinstance(side, Expr) and (
            self.priority > side.priority or (if_equal and self.priority == side.priority)
        ):
            return f"({shown})"
        return shown

    def eval(self) -> Any:
        """Return the value."""
        return self.func(_value(self.lhs), _value(self.rhs))


class Testable:
    """An expression that can be expected to hold."""

    def expect(self) -> None:
        """Raise where it does not hold."""
        raise NotImplementedError


class BoolBinaryOperator(BinaryOperator, Testable):
    """A comparison."""

    def __init__(self, lhs: Any, rhs: Any, exp: str, inv: str, func: Callable[..., Any]):
        super().__init__(-1, lhs, rhs, exp, func)
        self.inv = inv

    def expect(self) -> None:
        """Raise where it does not hold.

        Raises:
            InvalidType: With both sides.
        """
        left, right = _value(self.lhs), _value(self.rhs)
        if not self.func(left, right):
            raise InvalidType(
                f"{text(self.lhs)} {self.exp} {text(self.rhs)}"
                if isinstance(self.rhs, Expr | tuple | list)
                else f"{text(self.lhs)} {self.exp} {self.rhs}",
                f"{left} {self.inv} {right}",
            )
