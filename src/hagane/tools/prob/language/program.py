"""A program as the engines take it: unique names, functions apart, claims taken out of types."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
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
    if isinstance(node, Record):
        return (node.expression,)
    if isinstance(node, Apply):
        return node.arguments
    return children(node)


def walk(node: Expression) -> Iterator[Expression]:
    """Yield a node and all below it."""
    stack = [node]
    while stack:
        current = stack.pop()
        yield current
        stack.extend(reversed(parts(current)))


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

    def free(self, node: Expression) -> frozenset[str]:
        """Return the variables that evaluating a node reads."""
        known = self._known
        found = known.get(node)
        if found is not None:
            return found
        # Children first, without recursion: programs nest deeply.
        stack = [node]
        while stack:
            current = stack[-1]
            if current in known:
                stack.pop()
                continue
            below = parts(current)
            missing = [part for part in below if part not in known]
            if missing:
                stack.extend(missing)
                continue
            stack.pop()
            known[current] = self._join(current, [known[part] for part in below])
        return known[node]

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

    Claims stay as they are: they speak of variables by name.
    """
    match node:
        case Tuple(items=items):
            return replace(node, items=tuple([change(item) for item in items]))
        case Project():
            return replace(node, tuple=change(node.tuple))
        case Unary():
            return replace(node, operand=change(node.operand))
        case Binary():
            left = change(node.left)
            return replace(node, left=left, right=change(node.right))
        case If():
            condition, then = change(node.condition), change(node.then)
            return replace(node, condition=condition, then=then, otherwise=change(node.otherwise))
        case Let():
            bound = change(node.bound)
            return replace(node, bound=bound, body=change(node.body))
        case Rand():
            low = change(node.low)
            return replace(node, low=low, high=change(node.high))
        case Flip():
            return replace(node, probability=change(node.probability))
        case Choose(branches=branches):
            return replace(node, branches=tuple([(change(w), change(e)) for w, e in branches]))
        case Draw(arguments=arguments):
            return replace(node, arguments=tuple([change(a) for a in arguments]))
        case Observe():
            return replace(node, condition=change(node.condition))
        case Record():
            return replace(node, expression=change(node.expression))
        case Apply():
            return replace(node, arguments=tuple([change(a) for a in node.arguments]))
    return node
