"""Variables that walk: sums that only comparisons with constants look at.

Where such a variable is larger than the constants and all that one turn of a loop may add, turns do
the same at every value.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Walker:
    """A variable that walks.

    Attributes:
        name: Its name.
        largest: The largest constant that it is set to or compared with, by magnitude.
        steps: How many statements add to it; between two marks each runs once at most.
    """

    name: str
    largest: int
    steps: int


def walkers_of(tree: ast.FunctionDef) -> tuple[Walker, ...]:
    """Return the variables of a function that walk."""
    parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    taken = {argument.arg for argument in ast.walk(tree.args) if isinstance(argument, ast.arg)}
    uses: dict[str, list[ast.Name]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Global | ast.Nonlocal):
            taken |= set(node.names)
        elif isinstance(node, ast.Name):
            uses.setdefault(node.id, []).append(node)
    found = [_walker(name, names, parents) for name, names in uses.items() if name not in taken]
    return tuple(each for each in found if each is not None)


def _walker(name: str, names: list[ast.Name], parents: Mapping[ast.AST, ast.AST]) -> Walker | None:
    largest = 0
    steps: set[ast.AST] = set()
    for node in names:
        around = parents[node]
        if isinstance(around, ast.Compare):
            others = [side for side in (around.left, *around.comparators) if side is not node]
            constants = [constant_of(side) for side in others]
            if None in constants:
                return None
            largest = max(largest, *(abs(each) for each in constants if each is not None))
        elif (
            (isinstance(around, ast.If | ast.While | ast.IfExp) and around.test is node)
            or (isinstance(around, ast.UnaryOp) and isinstance(around.op, ast.Not))
            or isinstance(_statement(node, parents), ast.Return)
        ):
            pass
        elif (statement := step_of(node, parents)) is not None:
            steps.add(statement)
        elif isinstance(around, ast.Assign | ast.AnnAssign) and around.value is not None:
            begins = constant_of(around.value)
            if begins is None:
                return None
            largest = max(largest, abs(begins))
        else:
            return None
    return Walker(name, largest, len(steps)) if steps else None


def _statement(node: ast.AST, parents: Mapping[ast.AST, ast.AST]) -> ast.AST:
    while not isinstance(node, ast.stmt):
        node = parents[node]
    return node


def constant_of(node: ast.expr) -> int | None:
    """Return the whole number that an expression is, or None."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = constant_of(node.operand)
        return None if inner is None else -inner
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return node.value
    return None


def step_of(node: ast.Name, parents: Mapping[ast.AST, ast.AST]) -> ast.stmt | None:
    """Return the statement that adds to the variable which a name is, where it does nothing else.

    It lies in loops and branches alone, so that marks part its runs.
    """
    statement = parents[node]
    if isinstance(statement, ast.BinOp):
        statement = parents[statement]
    if not isinstance(statement, ast.Assign | ast.AugAssign) or added(statement) is None:
        return None
    target = statement.targets[0] if isinstance(statement, ast.Assign) else statement.target
    if not isinstance(target, ast.Name) or target.id != node.id:
        return None
    around = parents[statement]
    while not isinstance(around, ast.FunctionDef):
        if not isinstance(around, ast.If | ast.While | ast.For):
            return None
        around = parents[around]
    return statement if around not in parents else None


def added(statement: ast.stmt) -> ast.expr | None:
    """Return what a statement adds to a variable or takes from it; None of other statements."""
    match statement:
        case ast.AugAssign(target=ast.Name(id=name), op=ast.Add() | ast.Sub(), value=value):
            pass
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.BinOp(op=ast.Add()) as whole):
            left = isinstance(whole.left, ast.Name) and whole.left.id == name
            value = whole.right if left else whole.left
            own = whole.left if left else whole.right
            if not isinstance(own, ast.Name) or own.id != name:
                return None
        case ast.Assign(
            targets=[ast.Name(id=name)],
            value=ast.BinOp(left=ast.Name(id=other), op=ast.Sub(), right=value),
        ) if other == name:
            pass
        case _:
            return None
    inside = any(isinstance(part, ast.Name) and part.id == name for part in ast.walk(value))
    return None if inside else value
