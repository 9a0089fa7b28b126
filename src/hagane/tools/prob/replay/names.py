"""What the names of a function stand for, as far as its text settles that."""

from __future__ import annotations

import ast
import builtins
import random
from collections.abc import Sequence
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from hagane.tools.prob.draws import choose, flip, rand

_UNKNOWN = object()

# Drawn evenly from numbers that the arguments name.
EVEN = (random.randint, random.randrange, random.getrandbits, rand)
_DRAWING = (*EVEN, random.choice, random.choices, flip, choose)
_PLAIN = (int, str)

# Functions that read variables without naming them.
_LOOKING = frozenset(
    ("locals", "globals", "vars", "eval", "exec", "dir", "_getframe", "currentframe", "stack")
)


def looks_around(tree: ast.AST) -> bool:
    """Tell whether code may read its variables in ways that its text does not show."""
    for node in ast.walk(tree):
        name = node.id if isinstance(node, ast.Name) else getattr(node, "attr", "")
        if name in _LOOKING:
            return True
    return False


class Names:
    """The names of a function.

    Attributes:
        above: The node around each.
        uses: The places of each name.

    Args:
        function: The function.
        tree: Its definition.
        code: What is run of it.
    """

    def __init__(
        self, function: FunctionType, tree: ast.FunctionDef, code: CodeType | None = None
    ) -> None:
        self.function = function
        self.above: dict[ast.AST, ast.AST] = {}
        self.uses: dict[str, list[ast.Name]] = {}
        code = code or function.__code__
        shared = {*code.co_cellvars, *code.co_freevars}
        for node in ast.walk(tree):
            for inner in ast.iter_child_nodes(node):
                self.above[inner] = node
            if isinstance(node, ast.Name):
                self.uses.setdefault(node.id, []).append(node)
            elif isinstance(node, ast.Global | ast.Nonlocal):
                shared.update(node.names)
        self.parameters = {each.arg for each in ast.walk(tree.args) if isinstance(each, ast.arg)}
        self.own = {
            name
            for name, uses in self.uses.items()
            if any(not isinstance(use.ctx, ast.Load) for use in uses)
        }
        # Only this function's own code reads and sets them.
        self.local = self.own - self.parameters - shared
        self._first = set(tree.body)

    def stores(self, name: str) -> list[ast.Name]:
        """Return where a name is given a value."""
        return [use for use in self.uses[name] if not isinstance(use.ctx, ast.Load)]

    def loads(self, name: str) -> list[ast.Name]:
        """Return where a name is read."""
        return [use for use in self.uses[name] if isinstance(use.ctx, ast.Load)]

    def value_of(self, store: ast.Name) -> ast.expr | None:
        """Return what an assignment gives a name alone, or one by one with others; or nothing."""
        match self.above[store]:
            case ast.Assign(targets=[target], value=value) if target is store:
                return value
            case ast.AnnAssign(target=target, value=value) if target is store:
                return value
            case ast.Tuple(elts=targets) as together:
                match self.above[together]:
                    case ast.Assign(targets=[target], value=ast.Tuple(elts=values)):
                        if target is together and len(values) == len(targets):
                            stars = any(isinstance(e, ast.Starred) for e in targets + values)
                            return None if stars else values[targets.index(store)]
        return None

    def meaning(self, node: ast.expr) -> Any:
        """Return the object that a name, or a name of a module, stands for outside the function."""
        if isinstance(node, ast.Attribute):
            owner = self.meaning(node.value)
            known = isinstance(owner, ModuleType)
            return getattr(owner, node.attr, _UNKNOWN) if known else _UNKNOWN
        if not isinstance(node, ast.Name) or node.id in self.own | self.parameters:
            return _UNKNOWN
        cells = zip(
            self.function.__code__.co_freevars, self.function.__closure__ or (), strict=True
        )
        for name, cell in cells:
            if name == node.id:
                try:
                    return cell.cell_contents
                except ValueError:
                    return _UNKNOWN
        names = self.function.__globals__
        return names.get(node.id, getattr(builtins, node.id, _UNKNOWN))

    def is_builtin(self, node: ast.expr, *names: str) -> bool:
        """Return whether a node is one of some functions of Python."""
        return any(self.meaning(node) is getattr(builtins, name) for name in names)

    def draws(self, node: ast.AST) -> bool:
        """Return whether an expression draws, or calls a function that may."""
        for inner in ast.walk(node):
            if isinstance(inner, ast.Call):
                called = self.meaning(inner.func)
                if isinstance(called, FunctionType) or _is_one(called, _DRAWING):
                    return True
        return False

    def is_alone(self, draw: ast.expr) -> bool:
        """Return whether a draw is the only one like it in what is worked out at once."""
        here: ast.AST = draw
        while not isinstance(here, ast.stmt):
            if isinstance(here, ast.comprehension | ast.Lambda):
                return False
            here = self.above[here]
        parts = [each for each in ast.iter_child_nodes(here) if not isinstance(each, ast.stmt)]
        inner = [each for part in parts for each in ast.walk(part) if isinstance(each, ast.expr)]
        return [each for each in inner if self.support(each) == self.support(draw)] == [draw]

    def support(self, node: ast.expr) -> tuple[str, ...] | None:
        """Return a key of the values among which an expression draws evenly, or nothing.

        Equal keys mean equal values, at all times of one run.
        """
        if not isinstance(node, ast.Call) or node.keywords or not node.args:
            return None
        called = self.meaning(node.func)
        if _is_one(called, EVEN):
            if not all(map(self.is_stable, node.args)):
                return None
            return (called.__name__, *(ast.dump(each) for each in node.args))
        if _is_one(called, (random.choice,)) and len(node.args) == 1 and self._differ(node.args[0]):
            return ("choice", ast.dump(node.args[0]))
        return None

    def begins_at_zero(self, node: ast.expr) -> bool:
        """Return whether an even draw is of 0 and what follows, so that places may be drawn."""
        if not isinstance(node, ast.Call):
            return False
        called, first = self.meaning(node.func), node.args[0]
        if _is_one(called, (random.choice,)):
            return (
                isinstance(first, ast.Call)
                and self.is_builtin(first.func, "range")
                and len(first.args) == 1
            )
        if _is_one(called, (random.randrange, random.getrandbits)) and len(node.args) == 1:
            return True
        return isinstance(first, ast.Constant) and first.value == 0 and len(node.args) == 2

    def _is_first(self, store: ast.Name) -> bool:
        """Return whether a name is given a value by a statement of the function's own body."""
        above = self.above[store]
        return (self.above[above] if isinstance(above, ast.Tuple) else above) in self._first

    def is_stable(self, node: ast.expr) -> bool:
        """Return whether an expression has one value throughout a run."""
        match node:
            case ast.Constant():
                return True
            case ast.UnaryOp(operand=operand):
                return self.is_stable(operand)
            case ast.BinOp(left=left, right=right):
                return self.is_stable(left) and self.is_stable(right)
            case ast.Name(id=name) if name in self.own:
                stores = self.stores(name)
                value = self.value_of(stores[0]) if len(stores) == 1 else None
                first = name in self.local and self._is_first(stores[0])
                return first and value is not None and self.is_stable(value)
            case ast.Name(id=name):
                return name in self.parameters or isinstance(self.meaning(node), int)
        return False

    def _differ(self, node: ast.expr) -> bool:
        """Return whether a sequence is one of different plain values, throughout a run."""
        match node:
            case ast.Constant(value=str() as text):
                return _are_different(text)
            case ast.Tuple(elts=items) | ast.List(elts=items):
                values = [each.value for each in items if isinstance(each, ast.Constant)]
                return len(values) == len(items) and _are_different(values)
            case ast.Call(func=function, args=limits, keywords=[]):
                return self.is_builtin(function, "range") and all(map(self.is_stable, limits))
            case ast.Name(id=name) if name in self.own:
                stores = self.stores(name)
                value = self.value_of(stores[0]) if len(stores) == 1 else None
                return (
                    name in self.local
                    and self._is_first(stores[0])
                    and value is not None
                    and not isinstance(value, ast.Name)
                    and self._differ(value)
                    and all(map(self._is_only_read, self.loads(name)))
                )
            case ast.Name(id=name) if name not in self.parameters:
                values = self.meaning(node)
                # A list that a run changes is told as such.
                return isinstance(values, str | tuple | list | range) and _are_different(values)
        return False

    def _is_only_read(self, use: ast.Name) -> bool:
        call = self.above[use]
        if not isinstance(call, ast.Call) or use is call.func:
            return False
        return self.is_builtin(call.func, "len") or _is_one(
            self.meaning(call.func), (random.choice,)
        )


def _is_one(called: Any, functions: Sequence[Any]) -> bool:
    kinds = (FunctionType, MethodType, BuiltinFunctionType)
    return isinstance(called, kinds) and any(called == each for each in functions)


def _are_different(values: Any) -> bool:
    if len(values) > 100_000 or not all(type(each) in _PLAIN for each in values):
        return False
    return len(set(values)) == len(values)


def drawn_values(function: str, arguments: Sequence[Any]) -> Sequence[Any]:
    """Return the values among which a function of some name draws evenly."""
    if function == "randrange":
        return range(*arguments)
    if function == "choice":
        return arguments[0]  # type: ignore[no-any-return]
    if function == "getrandbits":
        return range(1 << arguments[0])
    low, high = arguments
    return range(low, high + 1)
