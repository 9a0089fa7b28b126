"""Variables that only count: sums that grow for ever need no states.

The mean of one that is returned is known, and one that nobody reads says nothing.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

_Sum = ast.Add | ast.Sub


def counters_of(tree: ast.FunctionDef) -> frozenset[str]:
    """Return the variables of a function that only count.

    Such a variable is set once, before any loop; after that something is added to it or taken from
    it, and it is returned, alone or in a sum. Nothing else reads it.
    """
    parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    uses: dict[str, list[ast.Name]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            uses.setdefault(node.id, []).append(node)
    taken = {argument.arg for argument in tree.args.args}
    for node in ast.walk(tree):
        if isinstance(node, ast.Global | ast.Nonlocal):
            taken |= set(node.names)
    beginnings = list(_beginnings(tree))
    return frozenset(
        name
        for name, names in uses.items()
        if name not in taken and _counts(name, names, beginnings, parents)
    )


def idle_of(tree: ast.FunctionDef) -> frozenset[str]:
    """Return the variables to which constants are given and added, and which nothing else reads."""
    idle: set[str] = set()
    other = {each.arg for each in ast.walk(tree.args) if isinstance(each, ast.arg)}
    ours: set[ast.AST] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Global | ast.Nonlocal):
            other |= set(node.names)
        elif isinstance(node, ast.AugAssign | ast.Assign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if len(targets) != 1 or not isinstance(targets[0], ast.Name):
                continue
            name, value = targets[0].id, node.value
            if isinstance(node, ast.AugAssign) and not isinstance(node.op, _Sum):
                continue
            if isinstance(node, ast.Assign) and isinstance(value, ast.BinOp):
                if not (_is_sum(value, name) and _is_number(value.right)):
                    continue
                ours.add(value.left)
            elif not _is_number(value):
                continue
            idle.add(name)
            ours.add(targets[0])
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node not in ours:
            other.add(node.id)
    return frozenset(idle - other)


def _is_number(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, int | float)


def _beginnings(tree: ast.FunctionDef) -> Iterator[ast.stmt]:
    """Yield the statements that every run begins with."""
    for statement in tree.body:
        if isinstance(statement, ast.For | ast.While | ast.If | ast.Try | ast.With):
            return
        yield statement


def _counts(
    name: str,
    names: list[ast.Name],
    beginnings: list[ast.stmt],
    parents: Mapping[ast.AST, ast.AST],
) -> bool:
    starts = returns = 0
    for node in names:
        around = parents[node]
        statement: ast.AST = around
        while not isinstance(statement, ast.stmt):
            statement = parents[statement]
        if isinstance(statement, ast.AugAssign):
            own = statement.target is node and isinstance(statement.op, _Sum)
            if not own or _mentions(statement.value, name):
                return False
        elif isinstance(statement, ast.Assign) and isinstance(node.ctx, ast.Store):
            if statement in beginnings and not _mentions(statement.value, name):
                starts += 1
            elif statement.targets != [node] or not _is_sum(statement.value, name):
                return False
        elif isinstance(statement, ast.Assign):
            target = statement.targets[0]
            own = isinstance(target, ast.Name) and target.id == name
            if not own or not _is_sum(statement.value, name):
                return False
        elif isinstance(statement, ast.Return) and statement.value is not None:
            if not _is_sum(statement.value, name):
                return False
            returns += 1
        else:
            return False
    return starts == 1 and returns > 0


def _mentions(node: ast.AST, name: str) -> bool:
    return any(isinstance(part, ast.Name) and part.id == name for part in ast.walk(node))


def _is_sum(node: ast.expr, name: str) -> bool:
    """Tell whether an expression is a variable plus, or minus, an expression without it."""
    if isinstance(node, ast.Name):
        return node.id == name
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, _Sum):
        return False
    if _is_sum(node.left, name):
        return not _mentions(node.right, name)
    return (
        isinstance(node.op, ast.Add)
        and not _mentions(node.left, name)
        and _is_sum(node.right, name)
    )
