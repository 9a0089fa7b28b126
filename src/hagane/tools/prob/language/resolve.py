"""Names, kinds and claims: from the tree as written to a program that engines take."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

from hagane.tools.prob.language.formula import bound_notices
from hagane.tools.prob.language.functions import FunctionResolver
from hagane.tools.prob.language.operators import check_binary, check_unary, describe
from hagane.tools.prob.language.program import (
    VALUE,
    Claim,
    Kind,
    Program,
    Record,
    Site,
    walk,
)
from hagane.tools.prob.language.reals import is_real
from hagane.tools.prob.language.recursion import deep_recursion
from hagane.tools.prob.language.scope import (
    Scope,
    claim_of,
    close_functions,
    known_names,
    read_parameters,
)
from hagane.tools.prob.language.source import Source, Span
from hagane.tools.prob.language.syntax import (
    Annotated,
    BaseType,
    Binary,
    Call,
    Choose,
    Expectation,
    Expression,
    Flip,
    FunctionType,
    If,
    Let,
    LetFun,
    Literal,
    Node,
    Notice,
    Observe,
    Parsed,
    Probability,
    Project,
    Rand,
    Tuple,
    TupleType,
    Type,
    Unary,
    Variable,
)


def resolve(source: Source, parsed: Parsed, at: Mapping[str, Fraction] | None = None) -> Program:
    """Return a program whose names are unique and whose kinds fit.

    Args:
        source: The program.
        parsed: Its tree.
        at: Values of some of its parameters.

    Raises:
        ProgramTypeError: A name is unknown, or kinds or arities don't fit.
    """
    with deep_recursion():
        resolver = _Resolver(source)
        parameters, values = read_parameters(source, parsed.unknowns, at or {})
        main, kind = resolver.expression(parsed.expression, Scope(values, {}))
        close_functions(resolver.functions)
        functions, notices = tuple(resolver.functions), (*parsed.notices, *resolver.notices)
        return Program(source, main, kind, functions, notices, parameters)


class _Resolver(FunctionResolver):
    def __init__(self, source: Source):
        super().__init__(source)
        self.notices: list[Notice] = []
        self._taken: dict[str, int] = {}

    def _unique(self, name: str) -> str:
        count = self._taken.get(name, 0)
        self._taken[name] = count + 1
        return name if count == 0 else f"{name}#{count}"

    # Expressions.

    def expression(self, node: Expression, scope: Scope) -> tuple[Expression, Kind]:
        match node:
            case Literal():
                return self._literal(node, scope)
            case Variable():
                return self._variable(node, scope)
            case Unary() | Binary():
                return self._operator(node, scope)
            case Let():
                return self._let(node, scope)
            case If():
                return self._if(node, scope)
            case Tuple(items=items):
                done = [self.expression(item, scope) for item in items]
                return Tuple(node.span, tuple(d[0] for d in done)), tuple(d[1] for d in done)
            case Project():
                return self._project(node, scope)
            case Annotated():
                return self._annotated(node, scope)
            case LetFun():
                return self._letfun(node, scope)
            case Call():
                return self._call(node, scope)
            case Probability() | Expectation():
                return self._measured(node, scope)
        self._need_impure(node, scope)
        match node:
            case Rand():
                low = self._of("int", node.low, scope, "the lower bound of rand")
                high = self._of("int", node.high, scope, "the upper bound of rand")
                return Rand(node.span, low, high), "int"
            case Flip():
                return Flip(node.span, self._rational(node.probability, scope)), "bool"
            case Observe():
                condition = self._of("bool", node.condition, scope, "what is observed")
                return Observe(node.span, condition), "bool"
            case Choose():
                return self._choose(node, scope)
        raise AssertionError(node)

    def _need_impure(self, node: Node, scope: Scope) -> None:
        if scope.pure:
            raise self._error(
                f"{scope.pure} draws nothing and calls nothing; bind the value with 'let' before",
                node.span,
            )

    def _of(self, kind: Kind, node: Expression, scope: Scope, what: str) -> Expression:
        done, got = self.expression(node, replace(scope, exact=True) if kind == "real" else scope)
        if got != kind and not (kind == "real" and got in ("int", "rational")):
            raise self._error(f"{what}: expected {describe(kind)}, got {describe(got)}", node.span)
        return done

    def _rational(self, node: Expression, scope: Scope) -> Expression:
        inner = replace(scope, exact=True, pure="a probability")
        done, got = self.expression(node, inner)
        if got not in ("int", "rational", "real"):
            raise self._error(f"a probability: expected a number, got {describe(got)}", node.span)
        return done

    def _literal(self, node: Literal, scope: Scope) -> tuple[Expression, Kind]:
        if not isinstance(node.value, Fraction):
            return node, "bool" if isinstance(node.value, bool) else "int"
        if not scope.exact:
            raise self._error(
                "expected int or bool, got a decimal; decimals stand in probabilities and in "
                "claims outside Prob and E",
                node.span,
            )
        return node, "rational"

    def _variable(self, node: Variable, scope: Scope) -> tuple[Expression, Kind]:
        if node.name in scope.values:
            value, kind = scope.values[node.name]
            if isinstance(value, Literal) and not scope.exact:
                raise self._error(
                    f"'{node.name}' is a parameter; parameters stand in probabilities, and in "
                    "claims outside Prob and E",
                    node.span,
                )
            if type(value) is Variable:
                return Variable(node.span, value.name), kind
            return replace(value, span=node.span), kind
        if node.name in scope.functions:
            raise self._error(
                f"'{node.name}' is a function and no value; call it: {node.name}(…)", node.span
            )
        known = known_names(node.name, [*scope.values, *scope.functions])
        hint = f"; in scope: {known}" if known else "; nothing is in scope"
        raise self._error(f"'{node.name}' is not defined here{hint}", node.span)

    def _operator(self, node: Unary | Binary, scope: Scope) -> tuple[Expression, Kind]:
        if isinstance(node, Unary):
            operand, kind = self.expression(node.operand, scope)
            result = check_unary(self.source, node, kind)
            return Unary(node.span, node.operator, operand), result
        if not scope.exact and (is_real(node.left, scope) or is_real(node.right, scope)):
            # Beside continuous values numbers are rationals.
            scope = replace(scope, exact=True)
        left, left_kind = self.expression(node.left, scope)
        right, right_kind = self.expression(node.right, scope)
        operator = "//" if node.operator == "/" and not scope.exact else node.operator
        result = check_binary(self.source, node, left_kind, right_kind, exact=scope.exact)
        return Binary(node.span, operator, left, right), result

    def _let(self, node: Let, scope: Scope) -> tuple[Expression, Kind]:
        bound, kind = self.expression(node.bound, scope)
        if node.name.startswith("(") and "," in node.name:
            count = node.name.count(",") + 1
            if not isinstance(kind, tuple) or len(kind) != count:
                raise self._error(
                    f"the pattern {node.name} takes a tuple of {count}, got {describe(kind)}",
                    node.bound.span,
                )
        name = self._unique(node.name)
        inner = scope
        if node.name != "_":
            inner = scope.bind(node.name, Variable(node.bound.span, name), kind)
        body, result = self.expression(node.body, inner)
        return Let(node.span, name, bound, body), result

    def _if(self, node: If, scope: Scope) -> tuple[Expression, Kind]:
        condition = self._of("bool", node.condition, scope, "the condition of 'if'")
        if is_real(node.then, scope) or is_real(node.otherwise, scope):
            scope = replace(scope, exact=True)
        then, kind = self.expression(node.then, scope)
        otherwise, other = self.expression(node.otherwise, scope)
        if kind != other:
            numbers = {kind, other} <= {"int", "rational", "real"}
            if numbers and scope.exact:
                kind = "real" if "real" in (kind, other) else "rational"
            else:
                raise self._error(
                    f"the branches of 'if' differ: {describe(kind)} and {describe(other)}",
                    node.otherwise.span,
                )
        return If(node.span, condition, then, otherwise), kind

    def _project(self, node: Project, scope: Scope) -> tuple[Expression, Kind]:
        value, kind = self.expression(node.tuple, scope)
        if not isinstance(kind, tuple):
            raise self._error(f"expected a tuple before '.', got {describe(kind)}", node.span)
        if node.index >= len(kind):
            raise self._error(
                f"item {node.index} of {describe(kind)}: it has {len(kind)} items, counted from 0",
                node.span,
            )
        return Project(node.span, value, node.index), kind[node.index]

    def _choose(self, node: Choose, scope: Scope) -> tuple[Expression, Kind]:
        branches = []
        kinds: list[Kind] = []
        for weight, branch in node.branches:
            done, kind = self.expression(branch, scope)
            branches.append((self._rational(weight, scope), done))
            kinds.append(kind)
            if kind != kinds[0]:
                raise self._error(
                    f"the branches of 'choose' differ: {describe(kinds[0])} and {describe(kind)}",
                    branch.span,
                )
        return Choose(node.span, tuple(branches)), kinds[0]

    def _measured(self, node: Probability | Expectation, scope: Scope) -> tuple[Expression, Kind]:
        form = "Prob(…)" if isinstance(node, Probability) else "E[…]"
        if not scope.claims:
            raise self._error(f"{form} stands in types only, and not inside another", node.span)
        inner = replace(scope, exact=False, claims=False, pure="an event of a claim")
        condition = None
        if node.condition is not None:
            condition = self._of("bool", node.condition, inner, f"the condition of {form}")
        if isinstance(node, Probability):
            event = self._of("bool", node.event, inner, "the event of Prob(…)")
            return Probability(node.span, event, condition), "rational"
        term, kind = self.expression(node.term, inner)
        if kind not in ("int", "bool", "real"):
            raise self._error(f"E[…]: expected int or bool, got {describe(kind)}", node.term.span)
        divisions = [n for n in walk(term) if isinstance(n, Binary) and n.operator == "//"]
        for division in divisions[:1]:
            self.notices.append(
                Notice(
                    division.span,
                    "'/' inside E[…] rounds down, as in programs; divide outside for a fraction",
                )
            )
        return Expectation(node.span, term, condition), "rational"

    # Claims.

    def _annotated(self, node: Annotated, scope: Scope) -> tuple[Expression, Kind]:
        if isinstance(node.type, FunctionType):
            return self._annotated_function(node, node.type, scope)
        self._need_impure(node, scope)
        value, kind = self.expression(node.expression, scope)
        claim = self._claim(node.type, scope)
        if claim.kind != kind and not (claim.kind == "real" and kind == "rational"):
            raise self._error(
                f"the annotation says {describe(claim.kind)}, the expression "
                f"'{self.source.slice(node.expression.span)}' is {describe(kind)}; annotate it "
                f"as {describe(kind)}, or change the expression",
                node.type.span,
            )
        site = Site(node.type.span, claim, "annotation", self.source.slice(node.expression.span))
        return Record(node.span, value, site), kind

    def _claim(self, written: Type, scope: Scope) -> Claim:
        inner = replace(scope, exact=True, pure="a claim", claims=True)
        value = Variable(written.span, VALUE)
        formulas: list[Expression] = []
        kind = self._collect(written, value, inner, formulas)
        return self._made(written.span, kind, formulas, scope)

    def _made(self, span: Span, kind: Kind, formulas: list[Expression], scope: Scope) -> Claim:
        text = self.source.slice(span)
        if not formulas:
            return Claim(span, text, kind)
        formula = formulas[0]
        for other in formulas[1:]:
            formula = Binary(formula.span.to(other.span), "/\\", formula, other)
        self.notices += bound_notices(self.source, formula)
        given = {name for function in scope.enclosing for name in function.parameters}
        return claim_of(span, text, kind, formula, given)

    def _collect(
        self, written: Type, value: Expression, scope: Scope, formulas: list[Expression]
    ) -> Kind:
        match written:
            case BaseType(name=name):
                return name
            case TupleType(items=items):
                return tuple(
                    self._collect(item, Project(item.span, value, index), scope, formulas)
                    for index, item in enumerate(items)
                )
            case FunctionType():
                raise self._error(
                    "functions are no values here; a function type annotates a function's name",
                    written.span,
                )
        kind = self._collect(written.base, value, scope, formulas)
        if len(written.binders) == 1:
            scope = scope.bind(written.binders[0], value, kind)
        elif not isinstance(kind, tuple) or len(kind) != len(written.binders):
            raise self._error(
                f"the pattern ({', '.join(written.binders)}) takes a tuple of "
                f"{len(written.binders)}, got {describe(kind)}",
                written.span,
            )
        else:
            for index, (name, item) in enumerate(zip(written.binders, kind, strict=True)):
                scope = scope.bind(name, Project(written.span, value, index), item)
        formula, got = self.expression(written.claim, scope)
        if got != "bool":
            raise self._error(
                f"a claim: expected bool, got {describe(got)}; compare it with a number",
                written.claim.span,
            )
        formulas.append(formula)
        return kind
