"""Elementwise operators as a text: ``x * tanh(log(1 + exp(x)))``."""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Mapping
from typing import Any

from hagane.errors import InvalidArgument
from hagane.ops.builder import dtype_of, op

_FUNCTIONS = {
    "abs": ("Abs", 1), "acos": ("Acos", 1), "asin": ("Asin", 1), "atan": ("Atan", 1),
    "ceil": ("Ceil", 1), "cos": ("Cos", 1), "cosh": ("Cosh", 1), "erf": ("Erf", 1),
    "exp": ("Exp", 1), "floor": ("Floor", 1), "isnan": ("IsNaN", 1), "log": ("Log", 1),
    "max": ("Max", 2), "min": ("Min", 2), "relu": ("Relu", 1), "round": ("Round", 1),
    "sigmoid": ("Sigmoid", 1), "sign": ("Sign", 1), "sin": ("Sin", 1), "sinh": ("Sinh", 1),
    "softplus": ("Softplus", 1), "sqrt": ("Sqrt", 1), "tan": ("Tan", 1), "tanh": ("Tanh", 1),
    "where": ("Where", 3),
}  # fmt: skip
_OPERATORS: Mapping[type, str] = {
    ast.Add: "Add", ast.Sub: "Sub", ast.Mult: "Mul", ast.Div: "Div", ast.Pow: "Pow",
    ast.Mod: "Mod", ast.Lt: "Less", ast.LtE: "LessOrEqual", ast.Gt: "Greater",
    ast.GtE: "GreaterOrEqual", ast.Eq: "Equal", ast.And: "And", ast.Or: "Or",
}  # fmt: skip


def composed_of(
    text: str, where: str, attributes: Collection[str]
) -> tuple[tuple[str, ...], Callable[..., Any]]:
    """Return the inputs of an expression in the order in which it reads them, and its meaning.

    Args:
        text: An expression of Python: ``+ - * / ** %``, comparisons, ``and``, ``or``, ``not``,
            ``a if condition else b``, numbers, and functions of one element.
        where: Names the operator in messages.
        attributes: Names that stand for attributes.

    Returns:
        Names, and a composition over the builder that takes them in this order.

    Raises:
        InvalidArgument: The text is no such expression.
    """
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError) as error:
        raise InvalidArgument(f"{where}: expression '{text}' is not Python: {error}") from None
    _check(tree, where)
    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    found = [
        node for node in ast.walk(tree) if isinstance(node, ast.Name) and id(node) not in called
    ]
    found.sort(key=lambda node: (node.lineno, node.col_offset))
    names = tuple(dict.fromkeys(node.id for node in found if node.id not in attributes))
    if not names:
        raise InvalidArgument(f"{where}: expression '{text}' reads no input")

    def compose(*inputs: Any, attributes: Mapping[str, Any]) -> Any:
        values = {**attributes, **dict(zip(names, inputs, strict=True))}
        return _value(tree, values)

    return names, compose


def _check(tree: ast.expr, where: str) -> None:
    """Refuse syntax that an expression cannot have, by name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            _check_call(node, where)
        elif isinstance(node, ast.Constant):
            if isinstance(node.value, bool) or not isinstance(node.value, int | float):
                raise InvalidArgument(f"{where}: expected numbers, got {node.value!r}")
        elif isinstance(node, ast.Compare):
            if len(node.ops) != 1 or type(node.ops[0]) not in (*_OPERATORS, ast.NotEq):
                raise InvalidArgument(
                    f"{where}: '{ast.unparse(node)}': expected one of < <= > >= == !="
                )
        elif isinstance(node, ast.BinOp):
            if type(node.op) not in _OPERATORS:
                raise InvalidArgument(
                    f"{where}: '{ast.unparse(node)}': expected one of + - * / ** %"
                )
        elif isinstance(node, ast.UnaryOp):
            if not isinstance(node.op, ast.USub | ast.UAdd | ast.Not):
                raise InvalidArgument(f"{where}: '{ast.unparse(node)}': expected one of - + not")
        elif isinstance(node, ast.expr) and not isinstance(node, ast.Name | ast.BoolOp | ast.IfExp):
            raise InvalidArgument(
                f"{where}: '{ast.unparse(node)}' has no place in an expression of elements"
            )


def _check_call(node: ast.Call, where: str) -> None:
    name = node.func.id if isinstance(node.func, ast.Name) else ast.unparse(node.func)
    if name not in _FUNCTIONS:
        raise InvalidArgument(
            f"{where}: unknown function '{name}'; the functions are: {', '.join(_FUNCTIONS)}"
        )
    count = _FUNCTIONS[name][1]
    if len(node.args) != count or node.keywords:
        raise InvalidArgument(f"{where}: {name} takes {count} values, got '{ast.unparse(node)}'")


def _value(tree: ast.expr, values: Mapping[str, Any]) -> Any:
    match tree:
        case ast.Constant(value=number):
            return number
        case ast.Name(id=name):
            return values[name]
        case ast.UnaryOp(op=ast.UAdd(), operand=operand):
            return _value(operand, values)
        case ast.UnaryOp(op=sign, operand=operand):
            inner = _value(operand, values)
            if isinstance(sign, ast.Not):
                return op("Not", inner)
            return -inner if isinstance(inner, int | float) else op("Neg", inner)
        case ast.BinOp(left=left, op=kind, right=right):
            return _binary(_OPERATORS[type(kind)], _value(left, values), _value(right, values))
        case ast.Compare(left=left, ops=[kind], comparators=[right]):
            name = "Equal" if isinstance(kind, ast.NotEq) else _OPERATORS[type(kind)]
            found = op(name, _value(left, values), _value(right, values))
            return op("Not", found) if isinstance(kind, ast.NotEq) else found
        case ast.BoolOp(op=kind, values=[first, *rest]):
            found = _value(first, values)
            for one in rest:
                found = op(_OPERATORS[type(kind)], found, _value(one, values))
            return found
        case ast.IfExp(test=test, body=body, orelse=other):
            return op("Where", *(_value(each, values) for each in (test, body, other)))
        case ast.Call(func=ast.Name(id=name), args=arguments):
            return op(_FUNCTIONS[name][0], *(_value(each, values) for each in arguments))
    raise AssertionError(ast.dump(tree))


def _binary(name: str, left: Any, right: Any) -> Any:
    if isinstance(left, int | float) and isinstance(right, int | float):
        return _NUMBERS[name](left, right)
    if name == "Mod":  # the sign is the divisor's, as in Python
        other = left if isinstance(right, int | float) else right
        if dtype_of(other).is_floating_point():
            return op("Sub", left, op("Mul", right, op("Floor", op("Div", left, right))))
    return op(name, left, right)


_NUMBERS: Mapping[str, Callable[[Any, Any], Any]] = {
    "Add": lambda a, b: a + b,
    "Sub": lambda a, b: a - b,
    "Mul": lambda a, b: a * b,
    "Div": lambda a, b: a / b,
    "Pow": lambda a, b: a**b,
    "Mod": lambda a, b: a % b,
}
