"""Comprehensions that draw, as loops, at whose turns runs meet.

``len({randint(1, 365) for _ in range(23)})`` adds to a set, item by item. Loops take the place of
comprehensions where the statement would do nothing else before them. Of lists that is done where
nothing looks at their order, as only then runs meet in the loop.
"""

from __future__ import annotations

import ast
import copy
from collections import Counter
from types import FunctionType
from typing import Any

from hagane.tools.prob.replay.names import Names
from hagane.tools.prob.replay.unordered import Uses

_PURE = ("len", "set", "max", "min", "sum", "sorted", "any", "all", "bool", "int")
_LISTED = ("sorted", "max", "min")
_Comprehension = ast.ListComp | ast.GeneratorExp | ast.SetComp


def looped(function: FunctionType, tree: ast.FunctionDef) -> ast.FunctionDef:
    """Return a function with loops in the place of comprehensions that draw.

    Args:
        function: The function.
        tree: Its definition, which stays as it is.
    """
    own = copy.deepcopy(tree)
    while _Looping(function, own).turn():
        pass
    return ast.fix_missing_locations(own)


class _Looping:
    """Puts a loop in the place of one comprehension at a time.

    Args:
        function: The function.
        tree: Its definition, which is changed.
    """

    def __init__(self, function: FunctionType, tree: ast.FunctionDef) -> None:
        self.tree = tree
        self.names = Names(function, tree)
        self.uses = Uses(tree)

    def turn(self) -> bool:
        """Change a comprehension, if there is one left."""
        return self._block(self.tree.body)

    def _block(self, block: list[ast.stmt]) -> bool:
        for place, statement in enumerate(block):
            part = _first_part(statement)
            if part is not None and isinstance(getattr(statement, part), ast.expr):
                found = self._found(getattr(statement, part))
                if found is not None:
                    whole, node, way = found
                    name = self._name_of(statement, whole)
                    loop = self._loop(whole, node, way, name or self._new_name(), statement)
                    block[place : place + bool(name)] = loop
                    if not name:
                        (made,) = loop[0].targets
                        assert isinstance(made, ast.Name)
                        read = ast.copy_location(ast.Name(made.id, ast.Load()), whole)
                        value = _replaced(getattr(statement, part), whole, read)
                        setattr(statement, part, value)
                    return True
            for name in ("body", "orelse", "finalbody"):
                inner = getattr(statement, name, None)
                opaque = isinstance(statement, ast.FunctionDef | ast.ClassDef)
                if isinstance(inner, list) and not opaque and self._block(inner):
                    return True
        return False

    def _name_of(self, statement: ast.stmt, whole: ast.expr) -> str:
        """Return the variable that a statement gives a value and nothing else does, or nothing."""
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if value is whole:
                if name in self.names.local and self.uses.set_once.get(name) is whole:
                    return name
        return ""

    def _new_name(self) -> str:
        return f"<made {self._count()}>"

    def _count(self) -> int:
        return sum(isinstance(each, ast.For) for each in ast.walk(self.tree))

    def _found(self, value: ast.expr) -> tuple[ast.expr, _Comprehension, str] | None:
        """Return what a loop can stand for in an expression, its comprehension, and how."""
        for node in ast.walk(value):
            if not isinstance(node, _Comprehension) or not self._is_plain(node):
                continue
            whole, way = self._way(node)
            if way and self._comes_first(whole, value):
                return whole, node, way
        return None

    def _is_plain(self, node: _Comprehension) -> bool:
        first = node.generators[0]
        if len(node.generators) > 1 or first.is_async or not _named(first.target):
            return False
        inner = [each for part in (node.elt, *first.ifs) for each in ast.walk(part)]
        late = (ast.Lambda, ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom)
        if any(isinstance(each, late) for each in inner):
            return False
        return any(self.names.draws(part) for part in (node.elt, *first.ifs))

    def _way(self, node: _Comprehension) -> tuple[ast.expr, str]:
        """Return the expression of which a comprehension is the items, and what it makes."""
        if isinstance(node, ast.SetComp):
            return node, "set"
        above = self.names.above[node]
        match above:
            case ast.Call(func=function, args=[first], keywords=[]) if first is node:
                if self.names.meaning(function) is Counter:
                    return above, "counts"
                for name in ("set", "any", "all"):
                    if self.names.is_builtin(function, name):
                        return above, name
                if self.names.is_builtin(function, "sum") and self._is_whole(node.elt):
                    return above, "sum"
                if self.names.is_builtin(function, *_LISTED):
                    return node, "list"
            case ast.Call(func=function, args=[first], keywords=[ast.keyword("reverse")]):
                if first is node and self.names.is_builtin(function, "sorted"):
                    return node, "list"
            case ast.Assign(targets=[ast.Name(id=name)]) if isinstance(node, ast.ListComp):
                reads = self.names.loads(name)
                if name in self.names.local and self.uses.set_once.get(name) is node:
                    if reads and all(self._is_set_of(use) for use in reads):
                        return node, "set"
                    if self.uses.is_unordered(name):
                        return node, "list"
        return node, ""

    def _is_set_of(self, use: ast.Name) -> bool:
        call = self.names.above[use]
        return (
            isinstance(call, ast.Call)
            and call.args == [use]
            and not call.keywords
            and self.names.is_builtin(call.func, "set")
        )

    def _is_whole(self, item: ast.expr) -> bool:
        if isinstance(item, ast.Constant):
            return isinstance(item.value, int)
        if isinstance(item, ast.Compare):
            return True
        support = self.names.support(item)
        return support is not None and support[0] != "choice"

    def _comes_first(self, node: ast.expr, value: ast.expr) -> bool:
        """Return whether nothing of a value that may matter to a part of it comes before it."""
        here: ast.AST = node
        while here is not value:
            above = self.names.above[here]
            match above:
                case ast.Call(func=function) if here is not function:
                    if not self._is_pure(function):
                        return False
                case ast.Compare(ops=[_]) | ast.BinOp() | ast.UnaryOp() | ast.Attribute():
                    pass
                case ast.Call() | ast.Subscript():
                    pass
                case ast.BoolOp(values=[first, *_]) if first is here:
                    pass
                case _:
                    return False
            for beside in ast.iter_child_nodes(above):
                if beside is here:
                    break
                # What an item calls may change objects, and so what a part of one is before.
                if not isinstance(beside, ast.Constant | ast.Name | ast.unaryop | ast.operator):
                    return False
            here = above
        return True

    def _is_pure(self, function: ast.expr) -> bool:
        return self.names.is_builtin(function, *_PURE) or self.names.meaning(function) is Counter

    def _loop(
        self, whole: ast.expr, node: _Comprehension, way: str, name: str, statement: ast.stmt
    ) -> tuple[ast.Assign, ast.For]:
        """Return the statements that make what a comprehension makes."""
        part = node.generators[0]
        own = {each.id: f"<{each.id} {self._count()}>" for each in _targets(part.target)}
        renaming = _Renaming(own)
        target, item = renaming.visit(part.target), renaming.visit(node.elt)
        tests = [renaming.visit(each) for each in part.ifs]
        read = ast.Name(name, ast.Load())
        start: ast.expr
        step: list[ast.stmt]
        if way in ("any", "all"):
            start = ast.Constant(way == "all")
            test = item if way == "any" else ast.UnaryOp(ast.Not(), item)
            decided = ast.Assign([ast.Name(name, ast.Store())], ast.Constant(way == "any"))
            step = [ast.If(test, [decided, ast.Break()], [])]
        elif way == "sum":
            start = ast.Constant(0)
            step = [ast.AugAssign(ast.Name(name, ast.Store()), ast.Add(), item)]
        elif way == "counts":
            assert isinstance(whole, ast.Call)
            start = ast.Call(copy.deepcopy(whole.func), [], [])
            place = ast.Subscript(read, item, ast.Store())
            step = [ast.AugAssign(place, ast.Add(), ast.Constant(1))]
        else:
            is_set = way == "set"
            empty = ast.List([], ast.Load())
            start = ast.Call(ast.Name("set", ast.Load()), [], []) if is_set else empty
            called = ast.Attribute(read, "add" if is_set else "append", ast.Load())
            step = [ast.Expr(ast.Call(called, [item], []))]
        for test in reversed(tests):
            step = [ast.If(test, step, [])]
        made = (
            ast.Assign([ast.Name(name, ast.Store())], start),
            ast.For(target, part.iter, step, []),
        )
        for each in made:
            for inner in ast.walk(each):
                if isinstance(inner, ast.expr | ast.stmt) and not hasattr(inner, "lineno"):
                    ast.copy_location(inner, statement)
        return made


def _first_part(statement: ast.stmt) -> str | None:
    """Return the field of a statement that is worked out first, and once."""
    match statement:
        case ast.Assign(targets=[ast.Name()]) | ast.Return() | ast.Expr():
            return "value"
        case ast.AugAssign(target=ast.Name()) | ast.AnnAssign(target=ast.Name()):
            return "value"
        case ast.If() | ast.Assert():
            return "test"
    return None


def _named(target: ast.expr) -> bool:
    parts = ast.Name | ast.Tuple | ast.expr_context
    return all(isinstance(each, parts) for each in ast.walk(target))


def _targets(target: ast.expr) -> list[ast.Name]:
    return [each for each in ast.walk(target) if isinstance(each, ast.Name)]


def _replaced(value: ast.expr, old: ast.expr, new: ast.expr) -> ast.expr:
    class Replacing(ast.NodeTransformer):
        def visit(self, node: ast.AST) -> Any:
            return new if node is old else super().visit(node)

    return Replacing().visit(value)  # type: ignore[no-any-return]


class _Renaming(ast.NodeTransformer):
    def __init__(self, names: dict[str, str]) -> None:
        self.names = names

    def visit_Name(self, node: ast.Name) -> ast.Name:
        node.id = self.names.get(node.id, node.id)
        return node
