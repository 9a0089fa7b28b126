"""Integers of Python in the 64 bits that a graph has for them.

Python's integers have no end; those of a graph begin anew behind 2 ** 63. A result of which nobody
proves that it fits is compared with the same sum in float64: a run where the two are apart fails.
Sums of int64 are right modulo 2 ** 64, so a sum is asked about as a whole. What is free of this:

- sizes, and products of sizes: a tensor that has them lies in memory;
- numbers of narrow types, places, remainders, and sums and products of them that still fit;
- numbers that a loop hands on and each iteration changes by little (``growth.py``).

Not followed are quotients within a divisor of the ends, and ``-n`` of the least integer.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
import onnx_ir as ir

from hagane.symbolic import Dim, Expr
from hagane.symbolic.expression import Atom, Monomial, add, multiply
from hagane.symbolic.term import Term

if TYPE_CHECKING:
    from hagane.frontends.capture.emitting.scoped import ScopedEmitter
    from hagane.ops.builder import Nodes

LIMIT = 2**63 - 1
COUNT = 2**31  # the size of an axis, and the number of a loop's iterations, are below
TOLD = "an integer beyond 64 bits, which Python has and a graph has not"
_IN_MEMORY = 2**50  # a product of sizes is below
_NEAR = 2**61  # integers of 64 bits that wrap around are apart by more, in float64 too
_ROUGH = 2**110  # terms of a sum that float64 has no more so exactly
_SAME = frozenset(
    ("Cast", "Gather", "GatherElements", "GatherND", "Identity", "ReduceMax", "ReduceMin",
     "Reshape", "Slice", "Squeeze", "Unsqueeze", "Transpose", "Expand", "Neg", "Abs")
)  # fmt: skip
_PLACES = frozenset(("ArgMax", "ArgMin", "NonZero", "Shape", "Size"))
_DEPTH = 12  # nodes that are looked at, one behind the other


# What a number never exceeds.


def most(emitter: ScopedEmitter, value: Dim | Fraction) -> int:
    """Return what the amount of a number never exceeds; it may be beyond 64 bits."""
    if not isinstance(value, Expr):
        return int(abs(value)) + 1 if isinstance(value, Fraction) else abs(value)
    remainder = split_remainder(value)
    if remainder is not None:
        return remainder[0] + most(emitter, remainder[1])
    total = Fraction(0)
    for monomial, coefficient in value.terms.items():
        total += abs(Fraction(coefficient)) * most_of_product(emitter, monomial)
    return int(total) + (total.denominator > 1)


def split_remainder(value: Expr) -> tuple[int, Dim | Fraction] | None:
    """Return by how much a number with a quotient is apart from one without it, and that one.

    ``c * (a // d)`` is ``c * a / d`` and less than ``c``: a remainder ``a - d * (a // d)`` is less
    than ``d`` and 0.
    """
    for monomial, coefficient in value.terms.items():
        atom = alone(monomial)
        if atom is None or atom.head != "floor" or not isinstance(atom.arguments[1], int):
            continue
        part = multiply(atom.arguments[0], Fraction(coefficient) / atom.arguments[1])
        rest = add(add(value, Expr({monomial: -coefficient})), part)
        if _quotients(rest) < _quotients(value):
            return int(abs(Fraction(coefficient))) + 1, rest
    return None


def _quotients(value: Dim | Fraction) -> int:
    terms = value.terms if isinstance(value, Expr) else ()
    return sum(atom.head == "floor" for monomial in terms for atom, _ in monomial)


def alone(monomial: Monomial) -> Atom | None:
    """Return the atom that a product is by itself."""
    return monomial[0][0] if len(monomial) == 1 and monomial[0][1] == 1 else None


def most_of_product(emitter: ScopedEmitter, monomial: Monomial) -> int:
    """Return what the amount of a product never exceeds."""
    sizes = found = 1
    for atom, power in monomial:
        if _is_size(emitter, atom) and power <= 2:
            sizes *= COUNT**power
        else:
            found *= most_of_atom(emitter, atom) ** power
    return found * (sizes if sizes <= COUNT**2 else _IN_MEMORY)


def _is_size(emitter: ScopedEmitter, atom: Atom) -> bool:
    name, joined = atom.head, emitter.knowledge.joined
    return atom.is_symbol and name not in emitter.numbers and name not in joined


def most_of_atom(emitter: ScopedEmitter, atom: Atom) -> int:
    """Return what the amount of a named number or a call never exceeds."""
    if atom.is_symbol:
        if atom.head in emitter.most:
            return emitter.most[atom.head]
        joined = emitter.knowledge.joined.get(atom.head)
        if joined is not None:
            found = max(most(emitter, joined.yes), most(emitter, joined.no))
            emitter.most[atom.head] = found  # joins of joins have parts in common
            return found
        return LIMIT if atom.head in emitter.numbers else COUNT
    parts = [most(emitter, argument) for argument in atom.arguments]
    if atom.head == "floor" and isinstance(atom.arguments[1], int):
        return parts[0] // atom.arguments[1] + 1
    return parts[1] if atom.head == "mod" else parts[0] if atom.head == "floor" else max(parts)


def most_of_value(emitter: ScopedEmitter, value: ir.Value, depth: int = _DEPTH) -> int:
    """Return what the amount of no element of a tensor of integers exceeds, at most 64 bits."""
    dtype = value.dtype
    if dtype is None or not (dtype.is_integer() or dtype == ir.DataType.BOOL):
        return LIMIT
    bits = 1 if dtype == ir.DataType.BOOL else dtype.bitwidth - dtype.is_signed()
    widest: int = min(2**bits, LIMIT)
    content = emitter.types.values.get(value)
    if content is not None and content.dtype.kind in "iu" and 0 < content.size <= COUNT:
        return max(abs(int(content.min())), abs(int(content.max())))
    node = value.producer()
    if node is None or depth == 0:
        return widest
    inputs = [each for each in node.inputs if each is not None]
    if node.op_type in _PLACES or value is not node.outputs[0]:
        found = COUNT if node.op_type in (*_PLACES, "TopK", "Unique") else LIMIT
    elif node.op_type in _SAME:
        found = most_of_value(emitter, inputs[0], depth - 1)
    elif node.op_type == "ReduceSum":
        found = COUNT * most_of_value(emitter, inputs[0], depth - 1)
    elif node.op_type == "Mod":
        found = most_of_value(emitter, inputs[1], depth - 1)
    elif node.op_type in ("Where", "Min", "Max", "Concat"):
        parts = inputs[1:] if node.op_type == "Where" else inputs
        found = max(most_of_value(emitter, each, depth - 1) for each in parts)
    else:
        found = LIMIT
    return found if found < widest else widest


def may_leave(emitter: ScopedEmitter, value: Dim) -> bool:
    """Whether a number may be beyond 64 bits where the numbers that it is made of are not."""
    joined = emitter.knowledge.joined
    has_parts = isinstance(value, Expr) and joined.keys().isdisjoint(value.names)
    return has_parts and most(emitter, value) > LIMIT


# What a run compares.


def only_item(nodes: Nodes, value: ir.Value, bad: ir.Value, told: str) -> ir.Value:
    """Return a value as the only item of a list, at place 0, or at place 1 where it is bad.

    No list of one has that, so that a run fails; its error has the words in ``told``.
    """
    place = nodes._node("Cast", bad, to=int(ir.DataType.INT64))
    wide = nodes._node("Unsqueeze", value, nodes.initializer(np.zeros(1, np.int64), "axes"))
    made = nodes._node("Gather", wide, place, axis=0)
    node = made.producer()
    assert node is not None
    node.name = told
    return made


def failing(emitter: ScopedEmitter, nodes: Nodes, value: ir.Value, bad: ir.Value) -> ir.Value:
    """Return a number, and let runs that need it fail where a graph has not Python's.

    A compiled step takes it as it is: no step of it fails, and epochs and counts are far from that.
    """
    if emitter.training is not None:
        return value
    for needed in emitter.needed:
        bad = nodes._node("And", bad, needed)
    place = emitter.place()
    where = "" if place is None else f" at {place.file}:{place.line}"
    return only_item(nodes, value, bad, f"the program has {TOLD}{where}")


def in_64_bits(emitter: ScopedEmitter, value: int) -> None:
    """Refuse a known integer that a graph has not.

    Raises:
        CheckError: It has more than 64 bits.
    """
    if not -LIMIT - 1 <= value <= LIMIT:
        emitter.fail("capture", f"{value} is {TOLD}; compute with floats, or before the call")


def fitting(
    emitter: ScopedEmitter, nodes: Nodes, dim: Expr, whole: int, value: ir.Value
) -> ir.Value:
    """Return a sum; a run in which it does not fit into 64 bits fails.

    Args:
        emitter: Knows the bounds of all numbers.
        nodes: Where the sum is computed.
        dim: It as a formula.
        whole: By what the formula is multiplied.
        value: The sum, so multiplied.
    """
    if len(dim.terms) == 1:
        ((monomial, coefficient),) = dim.terms.items()
        if coefficient == 1 and alone(monomial) is not None:
            return value  # its parts are compared
    if (
        all(_is_free(emitter, monomial) for monomial in dim.terms)
        or most(emitter, dim) * whole <= LIMIT
    ):
        return value
    total, bad = None, None
    for monomial, coefficient in dim.terms.items():
        term = nodes.initializer(np.array(float(coefficient * whole)), "constant")
        for atom, power in monomial:
            factor = _wide(nodes, nodes.size(Expr({((atom, 1),): 1})))
            for _ in range(power):
                term = nodes._node("Mul", term, factor)
        if (
            abs(Fraction(coefficient) * whole) * most_of_product(emitter, monomial) > _ROUGH
            and len(dim.terms) > 1
        ):
            rough = _is_above(nodes, term, _ROUGH)
            bad = rough if bad is None else nodes._node("Or", bad, rough)
        total = term if total is None else nodes._node("Add", total, term)
    assert total is not None
    apart = is_apart(nodes, total, value)
    return failing(emitter, nodes, value, apart if bad is None else nodes._node("Or", apart, bad))


def _is_free(emitter: ScopedEmitter, monomial: Monomial) -> bool:
    return all(power <= 2 and _is_size(emitter, atom) for atom, power in monomial)


def is_apart(nodes: Nodes, wide: ir.Value, value: ir.Value) -> ir.Value:
    """Return whether an integer is not what its float64 says."""
    return _is_above(nodes, nodes._node("Sub", wide, _wide(nodes, value)), _NEAR)


def _is_above(nodes: Nodes, wide: ir.Value, bound: int) -> ir.Value:
    amount = nodes._node("Abs", wide)
    # (Not at most: of infinite numbers, there may be no difference.)
    limit = nodes.initializer(np.array(float(bound)), "constant")
    return nodes._node("Not", nodes._node("LessOrEqual", amount, limit))


def _wide(nodes: Nodes, value: ir.Value) -> ir.Value:
    return nodes._node("Cast", value, to=int(ir.DataType.DOUBLE))


def fitting_operation(
    emitter: ScopedEmitter, nodes: Nodes, name: str, operands: list[ir.Value], value: ir.Value
) -> ir.Value:
    """Return the result of ``Add``, ``Mul`` or ``Pow``; a run in which it does not fit fails."""
    wide = nodes._node(name, *(_wide(nodes, operand) for operand in operands))
    return failing(emitter, nodes, value, is_apart(nodes, wide, value))


def most_of_term(emitter: ScopedEmitter, part: Term, found: dict[Term, int]) -> int:
    """Return what the amount of an integer in a condition never exceeds.

    Args:
        emitter: Knows the bounds of all numbers.
        part: The integer.
        found: The bounds of its parts.
    """
    if part.is_const:
        return abs(int(part.data))
    if part.op == "var":
        return most_of_atom(emitter, Atom(str(part.data)))
    bounds = [found[each] for each in part.args if each in found]
    if part.op == "int_add":
        return sum(bounds)
    if part.op == "int_mul":
        left, right = part.args
        if left.op == "int_div" and left.args[1] is right:
            return found[left.args[0]]  # d * (a // d)
        return bounds[0] * bounds[1]
    if part.op == "int_div":
        divisor = part.args[1]
        return bounds[0] // int(divisor.data) + 1 if divisor.is_const else bounds[0]
    return bounds[1] if part.op == "int_mod" else max(bounds)
