"""Functions of a program: signatures, calls, and functions that take functions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace

from hagane.tools.prob.language.formula import substitute
from hagane.tools.prob.language.operators import describe
from hagane.tools.prob.language.program import Apply, Claim, Function, Kind, Record, Site, shown
from hagane.tools.prob.language.reals import LAWS
from hagane.tools.prob.language.scope import Scope, Template, known_names, measure_name
from hagane.tools.prob.language.source import ProgramTypeError, Source, Span
from hagane.tools.prob.language.syntax import (
    Annotated,
    BaseType,
    Call,
    Draw,
    Expression,
    FunctionType,
    Let,
    LetFun,
    Node,
    Tuple,
    TupleType,
    Type,
    Variable,
)

# Functions that one taking functions is made for.
_MOST_TEMPLATES = 200


def _with_function(scope: Scope, name: str, function: Function | Template) -> Scope:
    """Return the scope in which a name stands for a function."""
    values = {key: value for key, value in scope.values.items() if key != name}
    return replace(scope, values=values, functions={**scope.functions, name: function})


class FunctionResolver(ABC):
    """Resolves functions and their calls; ``resolve`` adds expressions and claims."""

    def __init__(self, source: Source):
        self.source = source
        self.functions: list[Function] = []
        self._made_for: dict[tuple[LetFun, tuple[Function, ...]], Function] = {}

    @abstractmethod
    def expression(self, node: Expression, scope: Scope) -> tuple[Expression, Kind]:
        """Return an expression with unique names, and its kind."""

    @abstractmethod
    def _unique(self, name: str) -> str: ...

    @abstractmethod
    def _need_impure(self, node: Node, scope: Scope) -> None: ...

    @abstractmethod
    def _of(self, kind: Kind, node: Expression, scope: Scope, what: str) -> Expression: ...

    @abstractmethod
    def _claim(self, written: Type, scope: Scope) -> Claim: ...

    @abstractmethod
    def _made(self, span: Span, kind: Kind, formulas: list[Expression], scope: Scope) -> Claim: ...

    def _error(self, message: str, span: Span) -> ProgramTypeError:
        return ProgramTypeError(message, self.source, span)

    def _letfun(self, node: LetFun, scope: Scope) -> tuple[Expression, Kind]:
        if any(isinstance(parameter.type, FunctionType) for parameter in node.parameters):
            template = Template(node, scope)
            return self.expression(node.body, _with_function(scope, node.name, template))
        function, inner = self._signature(node, scope)
        self._define(node, function, replace(inner, enclosing=(*scope.enclosing, function)))
        visible = {key: value for key, value in scope.values.items() if key != node.name}
        functions = {**scope.functions, node.name: function}
        return self.expression(node.body, replace(scope, values=visible, functions=functions))

    def _signature(self, node: LetFun, scope: Scope) -> tuple[Function, Scope]:
        inner = scope
        parameters: list[str] = []
        requires: list[Claim] = []
        stub = Function(node.name, node.span, (), (), (), Claim(node.span, "", ()), None, None)
        for parameter in node.parameters:
            stub.parameters = tuple(parameters)
            claim = self._claim(parameter.type, replace(inner, enclosing=(*scope.enclosing, stub)))
            name = self._unique(parameter.name)
            parameters.append(name)
            requires.append(claim)
            inner = inner.bind(parameter.name, Variable(parameter.span, name), claim.kind)
        stub.parameters = tuple(parameters)
        result = self._claim(node.result, replace(inner, enclosing=(*scope.enclosing, stub)))
        measure = None
        if node.measure is not None:
            pure = replace(inner, pure="a measure")
            measure = self._of("int", node.measure, pure, f"the measure of '{node.name}'")
        function = Function(
            self._unique(node.name),
            node.span,
            tuple(parameters),
            tuple(claim.kind for claim in requires),
            tuple(requires),
            result,
            measure,
            node.depth,
        )
        self.functions.append(function)
        visible = {key: value for key, value in inner.values.items() if key != node.name}
        if node.name in (parameter.name for parameter in node.parameters):
            return function, inner
        return function, replace(
            inner, values=visible, functions={**inner.functions, node.name: function}
        )

    def _define(self, node: LetFun, function: Function, scope: Scope) -> None:
        body, kind = self.expression(node.definition, scope)
        if kind != function.result.kind:
            raise self._error(
                f"'{node.name}' is to return {describe(function.result.kind)}, its definition is "
                f"{describe(kind)}",
                node.definition.span,
            )
        if function.result.formula is not None:
            site = Site(node.result.span, function.result, "result", node.name)
            body = Record(body.span, body, site)
        if function.measure is not None:
            body = Let(body.span, measure_name(function), function.measure, body)
        function.definition = body

    def _call(self, node: Call, scope: Scope) -> tuple[Expression, Kind]:
        if node.function in LAWS and node.function not in scope.functions:
            return self._draw(node, scope), "real"
        if node.function not in scope.functions:
            if node.function in scope.values:
                kind = describe(scope.values[node.function][1])
                raise self._error(f"'{node.function}' is {kind} and no function", node.span)
            known = known_names(node.function, scope.functions) or "none"
            raise self._error(
                f"there is no function '{node.function}' here; functions in scope: {known}",
                node.span,
            )
        self._need_impure(node, scope)
        function = scope.functions[node.function]
        arguments = node.arguments
        if isinstance(function, Template):
            function, arguments = self._specialised(function, node, scope)
        return self._apply(node.span, function, arguments, scope), function.result.kind

    def _specialised(
        self, template: Template, node: Call, scope: Scope
    ) -> tuple[Function, tuple[Expression, ...]]:
        """Return a function made for the functions that a call gives, and its other arguments."""
        written = template.node
        if len(node.arguments) != len(written.parameters):
            wanted = len(written.parameters)
            raise self._error(
                f"'{written.name}' takes {wanted} arguments, got {len(node.arguments)}", node.span
            )
        given: dict[str, Function] = {}
        arguments = []
        for parameter, argument in zip(written.parameters, node.arguments, strict=True):
            if isinstance(parameter.type, FunctionType):
                given[parameter.name] = self._function_of(argument, parameter.type, scope)
            else:
                arguments.append(argument)
        key = (written, tuple(given.values()))
        if key not in self._made_for:
            if len(self._made_for) > _MOST_TEMPLATES:
                raise self._error(
                    f"'{written.name}' is made for more than {_MOST_TEMPLATES} functions: it calls "
                    "itself with ever new ones",
                    node.span,
                )
            inner = _with_function(template.scope, written.name, template)
            for name, function in given.items():
                inner = _with_function(inner, name, function)
            plain = tuple(p for p in written.parameters if not isinstance(p.type, FunctionType))
            stub = replace(written, parameters=plain)
            made, body_scope = self._signature(stub, inner)
            self._made_for[key] = made
            body_scope = _with_function(body_scope, written.name, template)
            self._define(stub, made, replace(body_scope, enclosing=(*inner.enclosing, made)))
        return self._made_for[key], tuple(arguments)

    def _function_of(self, node: Expression, wanted: FunctionType, scope: Scope) -> Function:
        """Return the function that an argument names, whose kinds are those of a type."""
        found = scope.functions.get(node.name) if isinstance(node, Variable) else None
        if not isinstance(found, Function):
            raise self._error(
                "expected the name of a function defined by 'letfun' (one that takes no functions)",
                node.span,
            )
        kinds = tuple(self._bare(parameter.type) for parameter in wanted.parameters)
        result = self._bare(wanted.result)
        if (found.kinds, found.result.kind) != (kinds, result):
            told = ", ".join(describe(kind) for kind in found.kinds)
            raise self._error(
                f"'{shown(found.name)}' is ({told}) -> {describe(found.result.kind)}, expected "
                f"'{self.source.slice(wanted.span)}'",
                node.span,
            )
        return found

    def _bare(self, written: Type) -> Kind:
        match written:
            case BaseType(name=name):
                return name
            case TupleType(items=items):
                return tuple(self._bare(item) for item in items)
        raise self._error(
            "the type of a parameter that is a function has bare types (int, bool); claims stand "
            "in the function's own type",
            written.span,
        )

    def _draw(self, node: Call, scope: Scope) -> Expression:
        self._need_impure(node, scope)
        names = LAWS[node.function]
        if len(node.arguments) != len(names):
            raise self._error(
                f"expected {node.function}({', '.join(names)}), got {len(node.arguments)} "
                f"argument{'' if len(node.arguments) == 1 else 's'}",
                node.span,
            )
        inner = replace(scope, exact=True, pure=f"an argument of {node.function}")
        arguments = []
        for name, argument in zip(names, node.arguments, strict=True):
            done, kind = self.expression(argument, inner)
            numbers = ("int", "rational", "real") if name == "mean" else ("int", "rational")
            if kind not in numbers:
                raise self._error(
                    f"the {name} of {node.function}: expected a number, got {describe(kind)}",
                    argument.span,
                )
            arguments.append(done)
        return Draw(node.span, node.function, tuple(arguments))

    def _apply(
        self, span: Span, function: Function, given: tuple[Expression, ...], scope: Scope
    ) -> Expression:
        wanted = len(function.parameters)
        if len(given) != wanted:
            raise self._error(
                f"'{shown(function.name)}' takes {wanted} argument{'' if wanted == 1 else 's'}, "
                f"got {len(given)}",
                span,
            )
        arguments: list[Expression] = []
        for position, node in enumerate(given):
            name = shown(function.parameters[position])
            what = f"the argument '{name}' of '{shown(function.name)}'"
            arguments.append(self._of(function.kinds[position], node, scope, what))
        below = None
        if function.measure is not None and function in scope.enclosing:
            below = measure_name(function)
        if all(claim.formula is None for claim in function.requires):
            return Apply(span, function, tuple(arguments), below)
        return self._obliged(span, function, arguments, below, scope)

    def _obliged(
        self,
        span: Span,
        function: Function,
        arguments: list[Expression],
        below: str | None,
        scope: Scope,
    ) -> Expression:
        """Return a call whose arguments are recorded, so that their claims are checked there.

        Each argument gets a name, because the claim on a later one may speak of it.
        """
        names = [self._unique(f"{shown(parameter)}'") for parameter in function.parameters]
        given: list[Expression] = [
            Variable(argument.span, name) for argument, name in zip(arguments, names, strict=True)
        ]
        result: Expression = Apply(span, function, tuple(given), below)
        renamed = dict(zip(function.parameters, given, strict=True))
        steps = zip(names, arguments, function.requires, function.parameters, strict=True)
        for name, argument, claim, parameter in reversed(list(steps)):
            if claim.formula is not None:
                formula = substitute(claim.formula, renamed)
                made = self._made(claim.span, claim.kind, [formula], scope)
                subject = f"{shown(parameter)} of {shown(function.name)}"
                argument = Record(
                    argument.span, argument, Site(argument.span, made, "argument", subject)
                )
            result = Let(span, name, argument, result)
        return result

    def _annotated_function(
        self, node: Annotated, written: FunctionType, scope: Scope
    ) -> tuple[Expression, Kind]:
        """Check a function against a second type, through its first: a function that calls it."""
        self._need_impure(node, scope)
        target = node.expression
        if not isinstance(target, Variable) or target.name not in scope.functions:
            raise self._error(
                "a function type annotates the name of a function defined by 'letfun'", node.span
            )
        names = tuple(Variable(p.span, p.name) for p in written.parameters)
        call = Call(target.span, target.name, names)
        stub = LetFun(
            written.span,
            f"{target.name} as annotated",
            written.parameters,
            written.result,
            None,
            None,
            call,
            Tuple(node.span, ()),
        )
        return self._letfun(stub, scope)
