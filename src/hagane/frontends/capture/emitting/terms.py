"""Conditions over sizes and data as values of a graph."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import onnx_ir as ir

from hagane.errors import TypeInferenceError
from hagane.frontends.capture.emitting.exact import (
    LIMIT,
    fitting_operation,
    in_64_bits,
    most_of_term,
)
from hagane.symbolic import Dim, symbol
from hagane.symbolic.term import BOOL, Term, postorder

if TYPE_CHECKING:
    from hagane.frontends.capture.emitting.scoped import ScopedEmitter

_OPERATORS = {
    "and": "And", "or": "Or", "not": "Not", "eq": "Equal", "lt": "Less", "ite": "Where",
    "int_add": "Add", "int_mul": "Mul",
}  # fmt: skip


def _formula(term: Term) -> Dim | None:
    """Return a number or a name as a formula; None for other terms."""
    if term.is_const:
        return int(term.data)
    return symbol(term.data) if term.op == "var" else None


def as_value(emitter: ScopedEmitter, term: Term) -> ir.Value:
    """Return a term as a scalar of the current scope: bool or int64.

    Raises:
        TypeInferenceError: It has a term that nothing in the graph computes.
    """
    nodes = emitter.scope.nodes
    made: dict[Term, ir.Value] = {}
    far: dict[Term, int] = {}  # what the amounts of integers never exceed
    for part in postorder((term,)):
        arguments = [made[argument] for argument in part.args]
        if part.sort is not BOOL:
            far[part] = most_of_term(emitter, part, far)
        if part.is_const:
            if part.sort is not BOOL:
                in_64_bits(emitter, part.data)
            dtype = np.bool_ if part.sort is BOOL else np.int64
            made[part] = nodes.initializer(np.array(part.data, dtype), "constant")
        elif part.op == "var" and part.sort is BOOL:
            if part.data not in emitter.truths:
                raise TypeInferenceError(
                    "a condition that cannot be followed: compare tensors, sizes and numbers"
                )
            made[part] = emitter.value_of(emitter.truths[part.data])
        elif part.op == "var":
            made[part] = nodes.size(symbol(part.data))
        elif part.op in ("int_div", "int_mod"):
            left, right = arguments[0], nodes.divisor(_formula(part.args[1]), arguments[1])
            if part.op == "int_mod":
                made[part] = nodes._node("Mod", left, right)
                continue
            exact = nodes._node("Sub", left, nodes._node("Mod", left, right))
            made[part] = nodes._node("Div", exact, right)
        elif part.op in ("and", "or"):
            found = arguments[0]
            for other in arguments[1:]:
                found = nodes._node(_OPERATORS[part.op], found, other)
            made[part] = found
        elif part.op == "ite" and part.sort is BOOL:
            condition, yes, no = arguments
            left = nodes._node("And", condition, yes)
            right = nodes._node("And", nodes._node("Not", condition), no)
            made[part] = nodes._node("Or", left, right)
        elif part.op in _OPERATORS:
            made[part] = nodes._node(_OPERATORS[part.op], *arguments)
            if far.get(part, 0) > LIMIT:
                name = _OPERATORS[part.op]
                made[part] = fitting_operation(emitter, nodes, name, arguments, made[part])
                far[part] = LIMIT
        else:
            raise TypeInferenceError(f"a condition that cannot be followed: {part}")
    return made[term]
