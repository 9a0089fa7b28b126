"""The syntax tree of a probabilistic program.

Nodes compare by identity: two draws of the same text are two draws. One tree serves parsing and,
with unique names and no functions inside expressions, the engines (see ``resolve``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, TypeAlias

from hagane.tools.prob.language.source import Span

Value: TypeAlias = "int | bool | tuple[Value, ...]"


@dataclass(frozen=True, eq=False)
class Node:
    """Anything with a place in the source."""

    span: Span


# Any node that has a value; `program` adds two kinds of its own.
Expression: TypeAlias = Node


@dataclass(frozen=True, eq=False)
class Literal(Node):
    """An integer, ``true`` or ``false``; where rationals are allowed also a decimal."""

    value: int | bool | Fraction


@dataclass(frozen=True, eq=False)
class Variable(Node):
    """A name."""

    name: str


@dataclass(frozen=True, eq=False)
class Tuple(Node):
    """``(a, b, ...)``; the empty one is the value of no interest."""

    items: tuple[Expression, ...]


@dataclass(frozen=True, eq=False)
class Project(Node):
    """``t.0``: an item of a tuple, counted from 0."""

    tuple: Expression
    index: int


@dataclass(frozen=True, eq=False)
class Unary(Node):
    """``-a`` or ``not a``."""

    operator: str
    operand: Expression


@dataclass(frozen=True, eq=False)
class Binary(Node):
    """An operator of two operands, both of which are always evaluated, left first."""

    operator: str
    left: Expression
    right: Expression


@dataclass(frozen=True, eq=False)
class If(Node):
    """``if c then a else b``: one branch is evaluated."""

    condition: Expression
    then: Expression
    otherwise: Expression


@dataclass(frozen=True, eq=False)
class Let(Node):
    """``let name = bound in body``."""

    name: str
    bound: Expression
    body: Expression


@dataclass(frozen=True, eq=False)
class Rand(Node):
    """``rand(lo, hi)``: each integer from lo to hi with the same probability."""

    low: Expression
    high: Expression


@dataclass(frozen=True, eq=False)
class Flip(Node):
    """``flip(p)``: true with probability p."""

    probability: Expression


@dataclass(frozen=True, eq=False)
class Draw(Node):
    """``uniform(a, b)``, ``normal(mean, deviation)``, ``exponential(rate)``: a continuous draw."""

    law: str
    arguments: tuple[Expression, ...]


@dataclass(frozen=True, eq=False)
class Choose(Node):
    """``choose {p: a, q: b}``: one branch is evaluated, with its probability."""

    branches: tuple[tuple[Expression, Expression], ...]


@dataclass(frozen=True, eq=False)
class Observe(Node):
    """``observe(c)``: runs on which c is false are as if they had never been; gives true."""

    condition: Expression


@dataclass(frozen=True, eq=False)
class Call(Node):
    """``f(a, b)``; ``f(a)(b)`` and other higher-order uses are not in the language."""

    function: str
    arguments: tuple[Expression, ...]


@dataclass(frozen=True, eq=False)
class Annotated(Node):
    """``e : type``: a claim about the value of e."""

    expression: Expression
    type: Type


@dataclass(frozen=True, eq=False)
class Parameter(Node):
    """``name: type`` of a function."""

    name: str
    type: Type


@dataclass(frozen=True, eq=False)
class LetFun(Node):
    """``letfun f(x: type) : type = definition in body``.

    ``measure`` is an integer expression over the parameters that falls, without becoming
    negative, at each recursive call; ``depth`` a bound on how many calls may be open at once.
    """

    name: str
    parameters: tuple[Parameter, ...]
    result: Type
    measure: Expression | None
    depth: int | None
    definition: Expression
    body: Expression


@dataclass(frozen=True, eq=False)
class Probability(Node):
    """``Prob(event)`` or ``Prob(event | condition)``; only in types."""

    event: Expression
    condition: Expression | None


@dataclass(frozen=True, eq=False)
class Expectation(Node):
    """``E[term]`` or ``E[term | condition]``; only in types."""

    term: Expression
    condition: Expression | None


@dataclass(frozen=True, eq=False)
class BaseType(Node):
    """``int``, ``bool`` or ``real``."""

    name: str


@dataclass(frozen=True, eq=False)
class TupleType(Node):
    """``(int, bool)``, also written ``int * bool``."""

    items: tuple[Type, ...]


@dataclass(frozen=True, eq=False)
class Refinement(Node):
    """``{binder: base | claim}``; a binder of several names takes a tuple apart."""

    binders: tuple[str, ...]
    base: Type
    claim: Expression


@dataclass(frozen=True, eq=False)
class FunctionType(Node):
    """``(x: type, ...) -> type``: the claim of an annotated function."""

    parameters: tuple[Parameter, ...]
    result: Type


Type: TypeAlias = "BaseType | TupleType | Refinement | FunctionType"


@dataclass(frozen=True, slots=True)
class Notice:
    """Something that is allowed and probably not meant."""

    span: Span
    message: str


@dataclass(frozen=True, eq=False)
class Unknown(Node):
    """``param name from low to high``: a parameter, whose value is not known."""

    name: str
    low: Fraction = Fraction(0)
    high: Fraction = Fraction(1)


@dataclass(frozen=True, slots=True)
class Parsed:
    """A program as it was written."""

    expression: Expression
    notices: tuple[Notice, ...] = field(default=())
    unknowns: tuple[Unknown, ...] = ()


def children(node: Expression) -> tuple[Expression, ...]:
    """Return the expressions directly below one, in the order of their evaluation."""
    below = _CHILDREN.get(type(node))
    if below is not None:
        return below(node)
    raise AssertionError(type(node).__name__)


def _two(first: Expression, second: Expression | None) -> tuple[Expression, ...]:
    return (first,) if second is None else (first, second)


# A table, which is asked for every node of every pass over a program.
_CHILDREN: dict[type, Callable[[Any], tuple[Expression, ...]]] = {
    Literal: lambda node: (),
    Variable: lambda node: (),
    Tuple: lambda node: node.items,
    Project: lambda node: (node.tuple,),
    Unary: lambda node: (node.operand,),
    Flip: lambda node: (node.probability,),
    Observe: lambda node: (node.condition,),
    Annotated: lambda node: (node.expression,),
    Binary: lambda node: (node.left, node.right),
    Rand: lambda node: (node.low, node.high),
    Let: lambda node: (node.bound, node.body),
    LetFun: lambda node: (node.definition, node.body),
    If: lambda node: (node.condition, node.then, node.otherwise),
    Choose: lambda node: tuple(part for branch in node.branches for part in branch),
    Call: lambda node: node.arguments,
    Draw: lambda node: node.arguments,
    Probability: lambda node: _two(node.event, node.condition),
    Expectation: lambda node: _two(node.term, node.condition),
}
