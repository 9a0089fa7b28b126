"""Python functions as probabilistic programs, by translation of their source.

Supported: assignments (also to tuples and with an operator), ``if``, ``for`` over what is known
before the run (it is unrolled), ``return``, ``assert``-free arithmetic ``+ - * // %`` on int,
comparisons, ``and or not``, conditional expressions, tuples and lists of known length, indices
known before the run, comprehensions over known iterables, ``abs min max sum len range enumerate
zip``, constants of the module, calls of ``rand``, ``flip``, ``observe``, of typed functions and
of plain functions (taken in). Everything else is refused with its place.

This is a small front end of its own, in one file so that a general interpreter of Python can take
its place.
"""

from __future__ import annotations

import ast
import builtins
import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from hagane.tools.prob import draws
from hagane.tools.prob.python_function import (
    Bindings,
    Given,
    PythonFunction,
    Unsupported,
    breaks,
    plain,
    read_function,
    returns,
)
from hagane.tools.prob.source import Span
from hagane.tools.prob.syntax import (
    Binary,
    Call,
    Expression,
    Flip,
    If,
    Literal,
    Node,
    Observe,
    Project,
    Rand,
    Tuple,
    Unary,
    Variable,
)

_BINARY = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.FloorDiv: "/", ast.Mod: "%"}
_COMPARE = {
    ast.Eq: "=",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
}
_KNOWN: tuple[Any, ...] = (range, len, enumerate, zip)


@dataclass(slots=True)
class Translated:
    """A function's body as an expression, and the typed functions that it calls."""

    body: Expression
    called: dict[str, Any]


def translate(found: PythonFunction, typed: Mapping[Any, str]) -> Translated:
    """Return a Python function's body as an expression over its parameters.

    Args:
        found: The function.
        typed: Functions that stay calls, with their names in the program.

    Raises:
        Unsupported: It uses what the subset lacks.
    """
    translator = _Translator(found, typed)
    values = {name: Variable(Span(0, 0), name) for name in found.names}
    return Translated(translator.body(found.tree.body, values), translator.called)


class _Translator:
    """Evaluates what is known and writes down the rest.

    A value is a Python constant, a node of the program, or a list or tuple of values.
    """

    def __init__(self, found: PythonFunction, typed: Mapping[Any, str], fresh: int = 0):
        self.found = found
        self.typed = typed
        self.called: dict[str, Any] = {}
        self.fresh = fresh
        self.bindings = Bindings()

    def refuse(self, message: str, node: ast.expr | ast.stmt) -> Unsupported:
        return Unsupported(message, self.found.source, self.found.span(node))

    # Statements.

    def body(self, statements: Sequence[ast.stmt], values: dict[str, Any]) -> Expression:
        """Return the value of statements that end in a return."""
        outer, self.bindings = self.bindings, Bindings()
        result = self._rest(list(statements), dict(values))
        whole = self.bindings.around(result)
        self.bindings = outer
        return whole

    def _rest(self, statements: list[ast.stmt], values: dict[str, Any]) -> Expression:
        while statements:
            statement = statements.pop(0)
            match statement:
                case ast.Return(value=value) if value is not None:
                    return self._node(self.value(value, values), value)
                case ast.If():
                    test = self.value(statement.test, values)
                    if not isinstance(test, Node):
                        chosen = statement.body if test else statement.orelse
                        statements = [*chosen, *statements]
                        continue
                    if returns(statement):
                        then = self.body([*statement.body, *statements], values)
                        otherwise = self.body([*statement.orelse, *statements], values)
                        return If(self.found.span(statement), test, then, otherwise)
                    self._merge(statement, test, values)
                case ast.For(target=target, iter=iterable, body=body, orelse=[]):
                    items = self._known(self.value(iterable, values), iterable)
                    if breaks(statement):
                        raise self.refuse("'break' and 'continue' are not supported", statement)
                    unrolled: list[ast.stmt] = []
                    for item in items:
                        unrolled += [Given(target, item, statement), *body]
                    statements = [*unrolled, *statements]
                case _:
                    self._simple(statement, values)
        raise self.refuse("a path ends without 'return value'", self.found.tree)

    def _simple(self, statement: ast.stmt, values: dict[str, Any]) -> None:
        match statement:
            case Given():
                self._assign(statement.target, statement.item, values)
            case ast.Assign(targets=[target], value=value):
                self._assign(target, self.value(value, values), values)
            case ast.AnnAssign(target=ast.Name() as name, value=value) if value is not None:
                self._assign(name, self.value(value, values), values)
            case ast.AugAssign(target=ast.Name() as name, op=op, value=value):
                left = self._lookup(name, values)
                result = self._operate(op, left, self.value(value, values), statement)
                self._assign(name, result, values)
            case ast.Expr(value=ast.Constant()) | ast.Pass():
                pass
            case ast.Expr(value=value):
                self.value(value, values)
            case _:
                word = type(statement).__name__.lower()
                raise self.refuse(f"'{word}' is not supported here", statement)

    def _assign(self, target: ast.expr, value: Any, values: dict[str, Any]) -> None:
        match target:
            case ast.Name(id=name):
                values[name] = self._bind(value, name)
            case ast.Tuple(elts=targets) | ast.List(elts=targets):
                if isinstance(value, Node):
                    value = [Project(value.span, value, i) for i in range(len(targets))]
                if len(value) != len(targets):
                    raise self.refuse(f"expected {len(targets)} values, got {len(value)}", target)
                for each, item in zip(targets, value, strict=True):
                    self._assign(each, item, values)
            case _:
                raise self.refuse("only names and tuples of names are assigned to", target)

    def _bind(self, value: Any, name: str) -> Any:
        """Give a name to what is not known, so that it is evaluated once."""
        if isinstance(value, list | tuple):
            return type(value)(self._bind(item, name) for item in value)
        if not isinstance(value, Node) or isinstance(value, Variable | Literal):
            return value
        self.fresh += 1
        unique = f"{name}#{self.fresh}"
        self.bindings.pairs.append((unique, value))
        return Variable(value.span, unique)

    def _merge(self, statement: ast.If, test: Expression, values: dict[str, Any]) -> None:
        """Carry the variables that a branch assigns past an ``if``."""
        names = sorted(
            {
                node.id
                for node in ast.walk(statement)
                if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
            }
        )
        results = []
        after: list[dict[str, Any]] = []
        scopes = []
        for branch in (statement.body, statement.orelse):
            outer, self.bindings = self.bindings, Bindings()
            inner = dict(values)
            self._straight(branch, inner)
            after.append(inner)
            scopes.append(self.bindings)
            self.bindings = outer
        span = self.found.span(statement)
        names = [name for name in names if all(name in inner for inner in after)]
        for inner, scope in zip(after, scopes, strict=True):
            items = tuple(self._node(inner[name], statement) for name in names)
            results.append(scope.around(Tuple(span, items)))
        merged = self._bind(If(span, test, results[0], results[1]), "if")
        for index, name in enumerate(names):
            values[name] = self._bind(Project(span, merged, index), name)

    def _straight(self, statements: Sequence[ast.stmt], values: dict[str, Any]) -> None:
        waiting = list(statements)
        while waiting:
            statement = waiting.pop(0)
            if isinstance(statement, ast.If):
                test = self.value(statement.test, values)
                if isinstance(test, Node):
                    self._merge(statement, test, values)
                else:
                    waiting = [*(statement.body if test else statement.orelse), *waiting]
            elif isinstance(statement, ast.For):
                items = self._known(self.value(statement.iter, values), statement.iter)
                for item in reversed(items):
                    waiting = [
                        Given(statement.target, item, statement),
                        *statement.body,
                        *waiting,
                    ]
            else:
                self._simple(statement, values)

    # Expressions.

    def value(self, node: ast.expr, values: dict[str, Any]) -> Any:
        """Return a value: known, or a node of the program."""
        match node:
            case ast.Constant(value=bool() | int() | float() | str() as value):
                return value
            case ast.Name():
                return self._lookup(node, values)
            case ast.Tuple(elts=items):
                return tuple(self.value(item, values) for item in items)
            case ast.List(elts=items):
                return [self.value(item, values) for item in items]
            case ast.BinOp(left=left, op=op, right=right):
                before = self.value(left, values)
                return self._operate(op, before, self.value(right, values), node)
            case ast.UnaryOp(op=op, operand=operand):
                return self._unary(op, self.value(operand, values), node)
            case ast.BoolOp(op=op, values=operands):
                return self._logic(isinstance(op, ast.And), operands, values)
            case ast.Compare():
                return self._compare(node, values)
            case ast.IfExp(test=test, body=body, orelse=orelse):
                known = self.value(test, values)
                if not isinstance(known, Node):
                    return self.value(body if known else orelse, values)
                then, otherwise = self._branch(body, values), self._branch(orelse, values)
                return self._bind(If(self.found.span(node), known, then, otherwise), "if")
            case ast.Subscript(value=whole, slice=index):
                return self._item(node, self.value(whole, values), self.value(index, values))
            case ast.ListComp(generators=[generator]) | ast.GeneratorExp(generators=[generator]):
                return self._comprehension(node.elt, generator, values)
            case ast.Attribute():
                return self._attribute(node, values)
            case ast.Call():
                return self._call(node, values)
        raise self.refuse(f"{type(node).__name__} is outside the supported subset", node)

    def _branch(self, node: ast.expr, values: dict[str, Any]) -> Expression:
        """Return an expression that is evaluated only where its branch is taken."""
        outer, self.bindings = self.bindings, Bindings()
        result = self._node(self.value(node, values), node)
        whole = self.bindings.around(result)
        self.bindings = outer
        return whole

    def _node(self, value: Any, place: ast.expr | ast.stmt) -> Expression:
        span = self.found.span(place)
        if isinstance(value, Node):
            return value
        if isinstance(value, bool | int | Fraction):
            return Literal(span, value)
        if isinstance(value, float):
            return Literal(span, Fraction(str(value)))
        if isinstance(value, tuple | list):
            return Tuple(span, tuple(self._node(item, place) for item in value))
        raise self.refuse(f"a {type(value).__name__} is no value of a program", place)

    def _lookup(self, node: ast.Name, values: Mapping[str, Any]) -> Any:
        if node.id in values:
            return values[node.id]
        function = self.found.function
        cells = inspect.getclosurevars(function)
        for scope in (cells.nonlocals, function.__globals__, vars(builtins)):
            if node.id in scope:
                return plain(scope[node.id])
        raise self.refuse(f"'{node.id}' is not defined on every path to here", node)

    def _attribute(self, node: ast.Attribute, values: dict[str, Any]) -> Any:
        owner = self.value(node.value, values)
        if isinstance(owner, Node) or not hasattr(owner, node.attr):
            raise self.refuse(f"no attribute '{node.attr}' is known here", node)
        return plain(getattr(owner, node.attr))

    def _operate(self, op: ast.operator, left: Any, right: Any, place: Any) -> Any:
        if not isinstance(left, Node) and not isinstance(right, Node):
            tree = ast.BinOp(ast.Name("a", ast.Load()), op, ast.Name("b", ast.Load()))
            whole = ast.fix_missing_locations(ast.Expression(tree))
            try:
                return eval(compile(whole, "<known>", "eval"), {"a": left, "b": right})
            except (ArithmeticError, TypeError) as error:
                raise self.refuse(str(error), place) from None
        if type(op) not in _BINARY:
            raise self.refuse(
                f"the operator {type(op).__name__} is not supported; + - * // % are", place
            )
        operands = self._node(left, place), self._node(right, place)
        return Binary(self.found.span(place), _BINARY[type(op)], *operands)

    def _unary(self, op: ast.unaryop, operand: Any, node: ast.expr) -> Any:
        if isinstance(op, ast.Not):
            return (
                Unary(self.found.span(node), "not", operand)
                if isinstance(operand, Node)
                else not operand
            )
        if isinstance(op, ast.USub):
            return (
                Unary(self.found.span(node), "-", operand)
                if isinstance(operand, Node)
                else -operand
            )
        if isinstance(op, ast.UAdd):
            return operand
        raise self.refuse("'~' is not supported", node)

    def _logic(self, is_and: bool, nodes: Sequence[ast.expr], values: dict[str, Any]) -> Any:
        """Return ``a and b`` as Python means it: b is evaluated only where a decides nothing."""
        first = self.value(nodes[0], values)
        if len(nodes) == 1:
            return first
        if not isinstance(first, Node):
            return self._logic(is_and, nodes[1:], values) if bool(first) is is_and else first
        span = self.found.span(nodes[0])
        outer, self.bindings = self.bindings, Bindings()
        rest = self._node(self._logic(is_and, nodes[1:], values), nodes[1])
        whole = self.bindings.around(rest)
        self.bindings = outer
        settled = Literal(span, not is_and)
        branches = (whole, settled) if is_and else (settled, whole)
        return self._bind(If(span, first, *branches), "logic")

    def _compare(self, node: ast.Compare, values: dict[str, Any]) -> Any:
        span = self.found.span(node)
        operands = []
        for each in (node.left, *node.comparators):
            operands.append(self._bind(self.value(each, values), "operand"))
        result: Any = None
        for left, op, right in zip(operands[:-1], node.ops, operands[1:], strict=True):
            if type(op) not in _COMPARE:
                raise self.refuse(f"the comparison {type(op).__name__} is not supported", node)
            operator = _COMPARE[type(op)]
            link: Expression = Binary(
                span, operator, self._node(left, node), self._node(right, node)
            )
            result = link if result is None else Binary(span, "/\\", result, link)
        if not any(isinstance(operand, Node) for operand in operands):
            whole = ast.fix_missing_locations(
                ast.Expression(
                    ast.Compare(
                        ast.Name("a0", ast.Load()),
                        node.ops,
                        [ast.Name(f"a{i}", ast.Load()) for i in range(1, len(operands))],
                    )
                )
            )
            known = {f"a{i}": operand for i, operand in enumerate(operands)}
            return eval(compile(whole, "<known>", "eval"), known)
        return result

    def _item(self, node: ast.Subscript, whole: Any, index: Any) -> Any:
        if not isinstance(index, int):
            raise self.refuse("an index has to be known before the run", node)
        if isinstance(whole, Node):
            return Project(self.found.span(node), whole, index)
        try:
            return plain(whole[index])
        except (IndexError, KeyError, TypeError) as error:
            raise self.refuse(str(error), node) from None

    def _comprehension(
        self, element: ast.expr, generator: ast.comprehension, values: dict[str, Any]
    ) -> list[Any]:
        result = []
        for item in self._known(self.value(generator.iter, values), generator.iter):
            inner = dict(values)
            self._assign(generator.target, item, inner)
            tests = [self.value(test, inner) for test in generator.ifs]
            if any(isinstance(test, Node) for test in tests):
                raise self.refuse("a filter has to be known before the run", generator.ifs[0])
            if all(tests):
                result.append(self._bind(self.value(element, inner), "item"))
        return result

    def _known(self, value: Any, place: ast.expr) -> list[Any]:
        if isinstance(value, Node):
            raise self.refuse("what a loop goes over has to be known before the run", place)
        return [plain(item) for item in value]

    # Calls.

    def _call(self, node: ast.Call, values: dict[str, Any]) -> Any:
        target = self.value(node.func, values)
        given = [self.value(argument, values) for argument in node.args]
        span = self.found.span(node)
        if any(target is known for known in (*_KNOWN, Fraction)):
            named = {k.arg: self.value(k.value, values) for k in node.keywords if k.arg}
            return target(*given, **named)
        if node.keywords:
            raise self.refuse("keyword arguments are not supported", node)
        if target in self.typed or getattr(target, "__wrapped__", None) in self.typed:
            original = target if target in self.typed else target.__wrapped__
            name = self.typed[original]
            self.called[name] = original
            arguments = tuple(self._node(value, node) for value in given)
            return self._bind(Call(span, name, arguments), "call")
        if target in (draws.rand, draws.flip, draws.observe):
            nodes = [self._node(value, node) for value in given]
            made: Expression
            if target is draws.rand:
                made = Rand(span, nodes[0], nodes[1])
            elif target is draws.flip:
                made = Flip(span, nodes[0])
            else:
                made = Observe(span, nodes[0])
            return self._bind(made, "draw")
        if target in (sum, min, max, abs):
            return self._builtin(target, given, node)
        if inspect.isfunction(target):
            return self._take_in(target, given, node)
        raise self.refuse(f"a call of {target!r} is not supported", node)

    def _builtin(self, target: Any, given: list[Any], node: ast.Call) -> Any:
        span = self.found.span(node)
        if target is abs:
            operand = self._bind(given[0], "operand")
            if not isinstance(operand, Node):
                return abs(operand)
            below = Binary(span, "<", operand, Literal(span, 0))
            return If(span, below, Unary(span, "-", operand), operand)
        items = self._known(given[0], node.args[0]) if len(given) == 1 else given
        if target is sum:
            total: Any = 0
            for item in items:
                total = (
                    item
                    if total == 0 and not isinstance(total, Node)
                    else self._operate(ast.Add(), total, item, node)
                )
            return total
        best = self._bind(items[0], "best")
        for item in items[1:]:
            other = self._bind(item, "other")
            if isinstance(best, Node) or isinstance(other, Node):
                pair = self._node(best, node), self._node(other, node)
                test = Binary(span, "<=" if target is min else ">=", *pair)
                best = self._bind(If(span, test, *pair), "best")
            else:
                best = target(best, other)
        return best

    def _take_in(self, target: Any, given: list[Any], node: ast.Call) -> Any:
        """Translate a plain function where it is called."""
        found = read_function(target)
        if found.source.name != self.found.source.name:
            raise self.refuse(
                f"'{target.__name__}' is defined in another file; give it a type there", node
            )
        if len(given) != len(found.names):
            raise self.refuse(f"'{target.__name__}' takes {len(found.names)} arguments", node)
        inner = _Translator(found, self.typed, self.fresh)
        values = {
            name: self._bind(value, name) for name, value in zip(found.names, given, strict=True)
        }
        inner.fresh = self.fresh
        body = inner.body(found.tree.body, values)
        self.fresh = inner.fresh
        self.called.update(inner.called)
        return self._bind(body, target.__name__)
