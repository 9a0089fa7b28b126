"""A Python function's body as an expression over its parameters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from hagane.frontends.python.enter.interpreter import Interpreter
from hagane.frontends.python.report.findings import CheckError
from hagane.frontends.python.values.values import Value
from hagane.symbolic.logic import equal, int_product, int_sum, less
from hagane.symbolic.term import BOOL, INT, Term, const, variable
from hagane.tools.prob.capture.library import DrawTables
from hagane.tools.prob.capture.python_function import PythonFunction
from hagane.tools.prob.capture.runner import Draws, Typed
from hagane.tools.prob.language.program import Kind
from hagane.tools.prob.language.recursion import deep_recursion
from hagane.tools.prob.language.syntax import (
    BaseType,
    Binary,
    Expression,
    FunctionType,
    Literal,
    Parameter,
    Refinement,
    TupleType,
    Type,
    Unary,
    Variable,
)


@dataclass(slots=True)
class Translated:
    """A function's body as an expression, and the typed functions that it calls."""

    body: Expression
    called: dict[str, Any]


def translate(
    found: PythonFunction, parameters: tuple[Parameter, ...], typed: Mapping[Any, Typed]
) -> Translated:
    """Return a Python function's body as an expression over its parameters.

    Args:
        found: The function.
        parameters: Its parameters with their types.
        typed: Functions that stay calls, by the Python function inside.

    Raises:
        Unsupported: It uses a construct that cannot be captured.
    """
    folder = Path(found.source.name).parent
    draws = Interpreter(folder, DrawTables(), partial(Draws, found, typed)).domain
    assert isinstance(draws, Draws)
    with deep_recursion():
        try:
            return _run(draws, parameters)
        except CheckError as error:
            draws.refuse(error.message)


def _run(draws: Draws, parameters: tuple[Parameter, ...]) -> Translated:
    core = draws.core
    function = draws.own_function()
    core.frame = replace(core.module_frame(function.scope.module), is_user=True)
    value = core.call(function, [], _arguments(draws, parameters))
    draws.check_unchanged()
    terms: list[Term] = []
    result = draws.result(value, terms)
    return Translated(draws.record.program(result, terms), draws.called)


def _arguments(draws: Draws, parameters: tuple[Parameter, ...]) -> dict[str, Value]:
    """Return values for the parameters, and note their types' facts of integers."""
    arguments: dict[str, Value] = {}
    names: dict[str, Term] = {}
    for parameter in parameters:
        kind = kind_of(parameter.type)
        arguments[parameter.name] = draws.unpacked(parameter.name, kind, parameter.span)
        if isinstance(kind, str):
            names[parameter.name] = variable(parameter.name, INT if kind == "int" else BOOL)
        written = parameter.type
        if isinstance(written, Refinement) and len(written.binders) == 1:
            inner = {**names, written.binders[0]: names.get(parameter.name)}
            for claim in _conjuncts(written.claim):
                condition = _condition(claim, inner)
                if condition is not None:
                    draws.learn(condition)
    return arguments


def kind_of(written: Type) -> Kind:
    """Return the kind of a type's values, without its claims."""
    match written:
        case BaseType(name=name):
            return name
        case TupleType(items=items):
            return tuple(kind_of(item) for item in items)
        case Refinement(base=base):
            return kind_of(base)
        case FunctionType():
            return "int"  # an error, which is found when the type is resolved
    raise AssertionError(written)


def _conjuncts(claim: Expression) -> list[Expression]:
    if isinstance(claim, Binary) and claim.operator == "/\\":
        return [*_conjuncts(claim.left), *_conjuncts(claim.right)]
    return [claim]


def _condition(claim: Expression, names: Mapping[str, Term | None]) -> Term | None:
    """Return a comparison of integers as a term; None if it is something else."""
    if not isinstance(claim, Binary):
        return None
    left, right = _number(claim.left, names), _number(claim.right, names)
    if left is None or right is None:
        return None
    match claim.operator:
        case "<":
            return less(left, right)
        case "<=":
            return less(left, right, strict=False)
        case ">":
            return less(right, left)
        case ">=":
            return less(right, left, strict=False)
        case "=" | "==":
            return equal(left, right)
    return None


def _number(node: Expression, names: Mapping[str, Term | None]) -> Term | None:
    match node:
        case Literal(value=bool()):
            return None
        case Literal(value=int() as value):
            return const(value, INT)
        case Variable(name=name):
            found = names.get(name)
            return found if found is not None and found.sort is INT else None
        case Unary(operator="-"):
            operand = _number(node.operand, names)
            return None if operand is None else int_product(operand, const(-1, INT))
        case Binary(operator="+" | "-" | "*"):
            left, right = _number(node.left, names), _number(node.right, names)
            if left is None or right is None:
                return None
            if node.operator == "*":
                return int_product(left, right)
            return int_sum(
                left, right if node.operator == "+" else int_product(right, const(-1, INT))
            )
    return None
