"""Hands of which a function uses no order: it counts, sums, sorts or asks for members."""

from __future__ import annotations

import ast

_OF_ALL = frozenset(
    ("len", "set", "frozenset", "sorted", "sum", "max", "min", "any", "all", "Counter")
)
_DEALT, _MIXED = "sample", "shuffle"


def unordered(tree: ast.FunctionDef) -> frozenset[ast.expr]:
    """Return the expressions that deal a hand, all of whose uses are the same in any order.

    What such uses call is not looked into.

    Args:
        tree: The function.
    """
    uses = _Uses(tree)
    named = {
        value
        for name, value in uses.set_once.items()
        if uses.deals(value) and uses.is_unordered(name)
    }
    return frozenset(named.union(call for call in uses.samples if uses.is_free(call)))


def _name_of(function: ast.expr) -> str:
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


class _Uses:
    def __init__(self, tree: ast.FunctionDef) -> None:
        self.above: dict[ast.AST, ast.AST] = {}
        self.read: dict[str, list[ast.Name]] = {}
        self.samples: list[ast.Call] = []
        stored: dict[str, int] = {}
        for node in ast.walk(tree):
            for inner in ast.iter_child_nodes(node):
                self.above[inner] = node
            if isinstance(node, ast.Call) and _name_of(node.func) == _DEALT:
                self.samples.append(node)
            if isinstance(node, ast.Name):
                if isinstance(node.ctx, ast.Load):
                    self.read.setdefault(node.id, []).append(node)
                else:
                    stored[node.id] = stored.get(node.id, 0) + 1
        self.set_once: dict[str, ast.expr] = {}
        for node in ast.walk(tree):
            if isinstance(node, ast.Assign) and len(node.targets) == 1:
                target = node.targets[0]
                if isinstance(target, ast.Name) and stored[target.id] == 1:
                    self.set_once[target.id] = node.value

    def deals(self, value: ast.expr) -> bool:
        """Return whether a value is a sample, or a part of a list that is mixed and no more."""
        if isinstance(value, ast.Call):
            return value in self.samples
        if not (isinstance(value, ast.Subscript) and isinstance(value.slice, ast.Slice)):
            return False
        if not isinstance(value.value, ast.Name):
            return False
        others = [use for use in self.read.get(value.value.id, ()) if use is not value.value]
        calls = [self.above[use] for use in others]
        return any(isinstance(c, ast.Call) and _name_of(c.func) == _MIXED for c in calls) and all(
            isinstance(c, ast.Call) and _name_of(c.func) in (_MIXED, "len") for c in calls
        )

    def is_unordered(self, name: str) -> bool:
        """Return whether all uses of a variable are the same in any order of its items."""
        return all(self.is_free(use) for use in self.read.get(name, ()))

    def is_free(self, use: ast.expr) -> bool:
        """Return whether a use is the same in any order of the items."""
        above = self.above[use]
        match above:
            case ast.Call(func=function, args=[first]) if first is use:
                return _name_of(function) in _OF_ALL and isinstance(
                    function, ast.Name | ast.Attribute
                )
            case ast.Call(func=function, args=[first], keywords=[_]) if first is use:
                return _name_of(function) in ("sorted", "max", "min")
            case ast.Attribute(attr="count"):
                return isinstance(self.above[above], ast.Call)
            case ast.Compare(ops=ops, comparators=[right]) if right is use:
                return isinstance(ops[0], ast.In | ast.NotIn)
            case ast.comprehension(iter=items) if items is use:
                return self._collects(self.above[above])
            case ast.For(iter=items, orelse=[]) if items is use:
                return all(map(_adds, above.body))
        return False

    def _collects(self, made: ast.AST) -> bool:
        """Return whether what a comprehension makes has no order, or one that nothing uses."""
        if isinstance(made, ast.SetComp):
            return True
        if not isinstance(made, ast.ListComp | ast.GeneratorExp):
            return False
        above = self.above[made]
        if isinstance(above, ast.Assign) and len(above.targets) == 1:
            target = above.targets[0]
            name = target.id if isinstance(target, ast.Name) else ""
            return self.set_once.get(name) is made and self.is_unordered(name)
        return self.is_free(made)


def _adds(statement: ast.stmt) -> bool:
    """Return whether a statement only adds to a sum or a set."""
    match statement:
        case ast.AugAssign(op=ast.Add()):
            return True
        case ast.Expr(ast.Call(func=ast.Attribute(attr="add"))):
            return True
    return False
