"""A program as the engines take it: unique names, functions apart, claims taken out of types."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from operator import is_
from typing import TypeAlias

from hagane.tools.prob.language.ratios import Parameters
from hagane.tools.prob.language.source import Source, Span
from hagane.tools.prob.language.syntax import (
    Binary,
    Choose,
    Draw,
    Expectation,
    Expression,
    Flip,
    If,
    Let,
    Node,
    Notice,
    Observe,
    Probability,
    Project,
    Rand,
    Tuple,
    Unary,
    Variable,
    children,
)

# "int", "bool", "real", "rational" (in claims and probabilities), or the kinds of a tuple's items.
Kind: TypeAlias = "str | tuple[Kind, ...]"

# The name under which a claim sees the value that it is about.
VALUE = "$value"


@dataclass(frozen=True, eq=False)
class Claim:
    """The claim of a type beyond int, bool and tuples.

    ``formula`` speaks of ``VALUE`` and of variables in scope; None claims nothing. Variables that
    it uses outside Prob and E are ``fixed``: the claim is made for each of their values. Those
    inside only are ``joint``: as random as the value itself. Parameters of enclosing functions
    are in neither: a function is checked for one argument at a time.
    """

    span: Span
    text: str
    kind: Kind
    formula: Expression | None = None
    fixed: tuple[str, ...] = ()
    joint: tuple[str, ...] = ()
    speaks_of_value: bool = False

    @property
    def variables(self) -> tuple[str, ...]:
        """Return the names whose values an engine records beside the value."""
        return self.fixed + self.joint


@dataclass(frozen=True, eq=False)
class Site:
    """A place where a claim is made: ``role`` is annotation, argument or result."""

    span: Span
    claim: Claim
    role: str
    subject: str


@dataclass(frozen=True, eq=False)
class Record(Node):
    """An expression whose value a claim is about."""

    expression: Expression
    site: Site


@dataclass(frozen=True, eq=False)
class Apply(Node):
    """A call of a known function.

    ``below`` names the variable that holds the measure of the enclosing activation of the same
    function, where the call is recursive and the function has a measure.
    """

    function: Function
    arguments: tuple[Expression, ...]
    below: str | None


@dataclass(eq=False)
class Function:
    """A function; ``captured`` are variables of the scopes around it, passed along silently.

    It is built in two steps, because its definition may call it.
    """

    name: str
    span: Span
    parameters: tuple[str, ...]
    kinds: tuple[Kind, ...]
    requires: tuple[Claim, ...]
    result: Claim
    measure: Expression | None
    depth: int | None
    definition: Expression = field(init=False)
    captured: tuple[str, ...] = ()

    @property
    def inputs(self) -> tuple[str, ...]:
        """Return everything its definition may use."""
        return self.parameters + self.captured

    @property
    def is_opaque(self) -> bool:
        """Tell whether callers know its result by its type only.

        A bare type says nothing, so there the definition stands for the function. A claim on the
        distribution of an argument makes the result's claim one about that whole distribution;
        callers then see the definition as well.
        """
        return self.result.formula is not None and not any(
            claim.formula is not None and mentions_probability(claim.formula)
            for claim in self.requires
        )


@dataclass(frozen=True, eq=False)
class Program:
    """A program ready to be run and checked; ``parameters`` are those whose value is not known."""

    source: Source
    main: Expression
    kind: Kind
    functions: tuple[Function, ...]
    notices: tuple[Notice, ...]
    parameters: Parameters | None = None


def parts(node: Expression) -> tuple[Expression, ...]:
    """Return the expressions directly below a node of a resolved program, in evaluation order."""
    found: tuple[Expression, ...] | None = node.__dict__.get("_parts")
    if found is None:
        # Every pass asks, and nodes never change.
        found = node.__dict__["_parts"] = _parts(node)
    return found


def _parts(node: Expression) -> tuple[Expression, ...]:
    kind = type(node)
    if kind is Record:
        return (node.expression,)  # type: ignore[attr-defined]
    if kind is Apply:
        return node.arguments  # type: ignore[attr-defined,no-any-return]
    return children(node)


def walk(node: Expression) -> Iterator[Expression]:
    """Yield a node and all below it."""
    stack = [node]
    while stack:
        current = stack.pop()
        yield current
        below = current.__dict__.get("_parts")
        if below is None:
            below = parts(current)
        if below:
            stack += below[::-1]


def draws_reals(program: Program) -> bool:
    """Tell whether a program has continuous draws."""
    bodies = (program.main, *(function.definition for function in program.functions))
    return any(isinstance(node, Draw) for body in bodies for node in walk(body))


def sites_in(node: Expression) -> list[Site]:
    """Return the sites of an expression, in the order of the text."""
    return [found.site for found in walk(node) if isinstance(found, Record)]


def mentions_probability(node: Expression) -> bool:
    """Tell whether a formula speaks of distributions rather than of single values."""
    return any(isinstance(found, Probability | Expectation) for found in walk(node))


class Liveness:
    """Free variables of expressions, each computed once."""

    def __init__(self) -> None:
        self._known: dict[Expression, frozenset[str]] = {}
        self._sorted: dict[Expression, tuple[str, ...]] = {}

    def free(self, node: Expression) -> frozenset[str]:
        """Return the variables that evaluating a node reads."""
        known = self._known
        found = known.get(node) or node.__dict__.get("_free")
        if found is not None:
            return found
        # Children first, without recursion: programs nest deeply.
        stack = [node]
        while stack:
            current = stack[-1]
            if current in known:
                stack.pop()
                continue
            if "_free" in current.__dict__:
                known[current] = current.__dict__["_free"]
                stack.pop()
                continue
            below = parts(current)
            missing = [part for part in below if part not in known]
            if missing:
                stack.extend(missing)
                continue
            stack.pop()
            known[current] = self._join(current, [known[part] for part in below])
            # Nodes never change, but functions that they call are completed later.
            if not isinstance(current, Apply) and all("_free" in part.__dict__ for part in below):
                current.__dict__["_free"] = known[current]
        return known[node]

    def names(self, node: Expression) -> tuple[str, ...]:
        """Return the same variables in order."""
        found = self._sorted.get(node)
        if found is None:
            found = self._sorted[node] = tuple(sorted(self.free(node)))
        return found

    @staticmethod
    def _join(node: Expression, below: list[frozenset[str]]) -> frozenset[str]:
        match node:
            case Variable(name=name):
                return frozenset((name,))
            case Let(name=name):
                return below[0] | (below[1] - {name})
            case Record(site=site):
                return below[0].union(site.claim.variables)
            case Apply(function=function, below=measure):
                own = frozenset((measure,)) if measure is not None else frozenset[str]()
                return own.union(function.captured, *below)
        return frozenset[str]().union(*below)


def shown(name: str) -> str:
    """Return a unique name as it was written."""
    return name.partition("#")[0]


def rebuilt(node: Expression, change: Callable[[Expression], Expression]) -> Expression:
    """Return a node with each of the expressions directly below it changed.

    Claims stay as they are: they speak of variables by name. A node of which nothing changes comes
    back as it is.
    """
    below = parts(node)
    if not below:
        return node
    new = []
    for part in below:  # no comprehension: it would take a frame more of deep programs
        new.append(change(part))
    if all(map(is_, new, below)):
        return node
    match node:
        case Tuple():
            return replace(node, items=tuple(new))
        case Project():
            return replace(node, tuple=new[0])
        case Unary():
            return Unary(node.span, node.operator, new[0])
        case Binary():
            return Binary(node.span, node.operator, new[0], new[1])
        case If():
            return If(node.span, new[0], new[1], new[2])
        case Let():
            return Let(node.span, node.name, new[0], new[1])
        case Rand():
            return replace(node, low=new[0], high=new[1])
        case Flip():
            return replace(node, probability=new[0])
        case Choose():
            return replace(node, branches=tuple(zip(new[::2], new[1::2], strict=True)))
        case Draw():
            return replace(node, arguments=tuple(new))
        case Observe():
            return replace(node, condition=new[0])
        case Record():
            return replace(node, expression=new[0])
        case Apply():
            return replace(node, arguments=tuple(new))
    return node
