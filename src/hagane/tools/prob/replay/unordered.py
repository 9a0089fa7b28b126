"""Hands of which a function uses no order: it counts, sums, sorts or asks for members."""

from __future__ import annotations

import ast

# What functions give of items: numbers and the like, or sets and counts, which have no order either
# as long as nothing asks for one (of ties, say).
NUMBERS = frozenset(("len", "sorted", "sum", "max", "min", "any", "all"))
SETS = frozenset(("set", "frozenset", "Counter"))
_ASKED = frozenset(("issubset", "issuperset", "isdisjoint", "get", "total"))
_VIEWS = frozenset(("keys", "values", "items"))
_DEALT, _MIXED = "sample", "shuffle"


def unordered(tree: ast.FunctionDef) -> frozenset[ast.expr]:
    """Return the expressions that deal a hand, all of whose uses are the same in any order.

    What such uses call is not looked into.

    Args:
        tree: The function.
    """
    uses = Uses(tree)
    named = {
        value
        for name, value in uses.set_once.items()
        if uses.deals(value) and uses.is_unordered(name)
    }
    return frozenset(named.union(call for call in uses.samples if uses.is_free(call)))


def is_dealing(tree: ast.AST) -> bool:
    """Return whether a function deals hands."""
    return any(
        isinstance(node, ast.Call) and _name_of(node.func) in (_DEALT, _MIXED)
        for node in ast.walk(tree)
    )


def _name_of(function: ast.expr) -> str:
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


class Uses:
    """The uses of the variables of a function."""

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
        self.starts: dict[str, list[ast.expr]] = {}
        for node in ast.walk(tree):
            if isinstance(node, ast.Assign) and len(node.targets) == 1:
                target = node.targets[0]
                if isinstance(target, ast.Name):
                    self.starts.setdefault(target.id, []).append(node.value)
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
            case ast.Call(func=function, args=[first], keywords=[]) if first is use:
                return self._takes(above, _name_of(function))
            case ast.Call(func=ast.Name("sorted"), args=[first], keywords=[ast.keyword("reverse")]):
                return first is use
            case ast.Attribute(attr="count"):
                return isinstance(self.above[above], ast.Call)
            case ast.Compare(ops=[ast.In() | ast.NotIn()], comparators=[right]) if right is use:
                return True
            case ast.comprehension(iter=items) if items is use:
                return self._collects(self.above[above])
            case ast.For(iter=items, orelse=[]) if items is use:
                return all(map(self._adds, above.body)) and _adds_apart(above.body)
        return False

    def _takes(self, call: ast.Call, name: str) -> bool:
        """Return whether a function takes items in any order, and so do uses of what it gives."""
        return name in NUMBERS or (name in SETS and self._is_free_set(call))

    def _is_free_set(self, made: ast.expr) -> bool:
        """Return whether a use of a set, or of counts by item, looks at no order of its items."""
        above = self.above[made]
        match above:
            case ast.Call(func=function, args=[first], keywords=[]) if first is made:
                return self._takes(above, _name_of(function))
            case ast.Compare() | ast.If() | ast.IfExp() | ast.BoolOp() | ast.UnaryOp():
                return True
            case ast.BinOp(op=ast.BitAnd() | ast.BitOr() | ast.BitXor() | ast.Sub()):
                return self._is_free_set(above)
            case ast.Subscript(value=value) if value is made:
                return True
            case ast.Attribute(attr=name):
                call = self.above[above]
                if not isinstance(call, ast.Call):
                    return False
                return name in _ASKED or (name in _VIEWS and self.is_free(call))
            case ast.comprehension(iter=items) if items is made:
                return self._collects(self.above[above])
            case ast.Assign(targets=[ast.Name(id=name)]) if self.set_once.get(name) is made:
                return all(self._is_free_set(use) for use in self.read.get(name, ()))
        return False

    def _collects(self, made: ast.AST) -> bool:
        """Return whether what a comprehension makes has no order, or one that nothing uses."""
        if isinstance(made, ast.SetComp):
            return self._is_free_set(made)
        if not isinstance(made, ast.ListComp | ast.GeneratorExp):
            return False
        match self.above[made]:
            case ast.Assign(targets=[ast.Name(id=name)]):
                return self.set_once.get(name) is made and self.is_unordered(name)
        return self.is_free(made)

    def _adds(self, statement: ast.stmt) -> bool:
        """Return whether a statement only adds to a number, to counts or to a set."""
        match statement:
            case ast.AugAssign(target=ast.Name(id=name), op=ast.Add(), value=value):
                numbers = all(map(_is_number, self.starts.get(name, ())))
                return numbers and name not in {n.id for n in _names(value)}
            case ast.AugAssign(
                target=ast.Subscript(value=ast.Name() as owner), op=ast.Add(), value=value
            ):
                return _is_number(value) and self._are_free_beside(owner)
            case ast.Expr(
                ast.Call(func=ast.Attribute(value=ast.Name() as owner, attr="add"), args=[_])
            ):
                return self._are_free_beside(owner)
        return False

    def _are_free_beside(self, owner: ast.Name) -> bool:
        others = [use for use in self.read.get(owner.id, ()) if use is not owner]
        return all(self._is_free_set(use) for use in others)


def _adds_apart(body: list[ast.stmt]) -> bool:
    """Return whether statements that add do not read what they or others of them add to."""
    targets = [_target(statement) for statement in body]
    changed = {target.id for target in targets}
    return not any(
        name.id in changed
        for statement in body
        for name in _names(statement)
        if name not in targets
    )


def _target(statement: ast.stmt) -> ast.Name:
    """Return the variable to which a statement adds."""
    match statement:
        case ast.AugAssign(target=ast.Name() as owner):
            return owner
        case ast.AugAssign(target=ast.Subscript(value=ast.Name() as owner)):
            return owner
        case ast.Expr(ast.Call(func=ast.Attribute(value=ast.Name() as owner))):
            return owner
    raise AssertionError(ast.dump(statement))


def _is_number(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and isinstance(value.value, int | float)


def _names(value: ast.AST) -> list[ast.Name]:
    return [node for node in ast.walk(value) if isinstance(node, ast.Name)]
