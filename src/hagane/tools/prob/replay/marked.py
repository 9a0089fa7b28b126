"""A function with marks at the turns of its loops, where runs that differ in nothing meet."""

from __future__ import annotations

import ast
import copy
import dis
from bisect import bisect_right
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import CellType, CodeType, FunctionType
from typing import Any

from hagane.tools.prob.replay.alike import Alike, alike
from hagane.tools.prob.replay.counters import counters_of, idle_of
from hagane.tools.prob.replay.looped import looped
from hagane.tools.prob.replay.names import looks_around
from hagane.tools.prob.replay.unordered import is_dealing, unordered
from hagane.tools.prob.replay.walkers import Walker, added, walkers_of

# Names that no program has: of a function at each turn, of one for the items of a ``for`` loop, of
# one for results that count.
MARK, ITEMS, COUNTED, STEP, RETURNED = "<mark>", "<items>", "<counted>", "<step>", "<returned>"
UNORDERED = "<unordered>"  # of hands whose order makes no difference
CONTAINS = "<contains>"  # of questions whether something is in a set
DRAWN = "<drawn>"  # of draws of values that nothing tells apart


# A field of definitions from Python 3.12 on.
_NO_TYPES: dict[str, Any] = {"type_params": []} if "type_params" in ast.FunctionDef._fields else {}


@dataclass(frozen=True, slots=True)
class Marked:
    """A function with marks.

    Attributes:
        code: Its code.
        loops: For each mark, the ``for`` loops around it.
        live: For each place in the code, the variables that may still be read there.
        counters: A variable that only counts, where there is one.
        walkers: Variables that walk.
        alike: Variables of which runs differ in names or order alone.
    """

    function: FunctionType
    code: CodeType
    loops: tuple[tuple[int, ...], ...]
    live: Mapping[int, frozenset[str]]
    counters: frozenset[str]
    walkers: tuple[Walker, ...]
    alike: Alike

    def bound(self, called: Mapping[str, Callable[..., Any]]) -> FunctionType:
        """Return the function, given the function to call at marks."""
        own = self.function
        # A decorated function is known by its name only afterwards.
        names = {own.__name__: own, **own.__globals__, **called}
        cells = dict(zip(own.__code__.co_freevars, own.__closure__ or (), strict=True))
        closure = tuple(_cell(cells[name], name, own) for name in self.code.co_freevars)
        made = FunctionType(self.code, names, own.__name__, own.__defaults__, closure)
        made.__kwdefaults__ = own.__kwdefaults__
        return made


def _cell(cell: CellType, name: str, own: FunctionType) -> CellType:
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:
        return CellType(own) if name == own.__name__ else cell
    return cell


def marked(function: Callable[..., Any], tree: ast.FunctionDef) -> Marked:
    """Return a function with marks at its loops; functions that it calls have none.

    Args:
        function: The function.
        tree: Its definition.
    """
    assert isinstance(function, FunctionType)
    all_read = looks_around(tree)
    tree = tree if all_read else looped(function, tree)
    shared = {*function.__code__.co_cellvars, *function.__code__.co_freevars}
    counters: frozenset[str] = frozenset()
    walkers: tuple[Walker, ...] = ()
    idle: frozenset[str] = frozenset()
    if not all_read:
        counters = frozenset(sorted(counters_of(tree) - {*function.__code__.co_cellvars})[:1])
        walkers = tuple(each for each in walkers_of(tree) if each.name not in shared)
        idle = idle_of(tree)
    same, draws = alike(function, tree, _compiled(function, copy.deepcopy(tree)))
    marking = _Marking(counters, frozenset(each.name for each in walkers))
    own = _Dealing(copy.deepcopy(_Drawing(draws).visit(tree))).made
    own.body = [marking.visit(statement) for statement in own.body]
    found = _compiled(function, own)
    idle -= {*found.co_cellvars, *found.co_freevars}
    live = {at: names - idle for at, names in _liveness(found, all_read).items()}
    return Marked(function, found, tuple(marking.loops), live, counters, walkers, same)


def _compiled(function: FunctionType, tree: ast.FunctionDef) -> CodeType:
    """Return the code of a function's definition, which is changed."""
    tree.decorator_list = []
    free = function.__code__.co_freevars
    parameters = ast.arguments([], [ast.arg(name) for name in free], None, [], [], None, [])
    around: ast.stmt = tree
    if free:
        around = ast.FunctionDef("<around>", parameters, [tree], [], None, **_NO_TYPES)
    module = ast.fix_missing_locations(ast.Module([around], []))
    code = compile(module, function.__code__.co_filename, "exec", dont_inherit=True)
    return _code_of(code, function.__name__)


def _code_of(code: CodeType, name: str) -> CodeType:
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            return inner if inner.co_name == name else _code_of(inner, name)
    raise AssertionError(name)


class _Drawing(ast.NodeTransformer):
    """Passes draws of values that nothing tells apart through a function.

    Args:
        draws: The draws, with the place of the variables that hold such values, and their names.
    """

    def __init__(self, draws: Mapping[ast.expr, tuple[int, str]]) -> None:
        self._draws = draws

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        if node not in self._draws:
            return node
        told = [ast.Constant(each) for each in self._draws[node]]
        called = ast.Call(ast.Name(DRAWN, ast.Load()), [*told, node.func, *node.args], [])
        return ast.copy_location(called, node)


class _Dealing(ast.NodeTransformer):
    """Passes hands whose order makes no difference, and asks for members, through functions."""

    def __init__(self, tree: ast.FunctionDef) -> None:
        self._hands = unordered(tree)
        self._deals = is_dealing(tree)
        self.made = self.visit(tree)

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        self.generic_visit(node)
        if not self._deals or len(node.ops) > 1 or not isinstance(node.ops[0], ast.In | ast.NotIn):
            return node
        called = ast.Call(ast.Name(CONTAINS, ast.Load()), [node.left, node.comparators[0]], [])
        asked: ast.expr = ast.copy_location(called, node)
        if isinstance(node.ops[0], ast.In):
            return asked
        return ast.copy_location(ast.UnaryOp(ast.Not(), asked), node)

    def visit(self, node: ast.AST) -> Any:
        """Return a node, in a call if it is such a hand."""
        found = super().visit(node)
        if node not in self._hands:
            return found
        called = ast.Call(ast.Name(UNORDERED, ast.Load()), [found], [])
        return ast.copy_location(called, node)


class _Marking(ast.NodeTransformer):
    """Puts marks at turns, where the interpreter's stack holds the items of loops alone."""

    def __init__(self, counters: frozenset[str], walkers: frozenset[str]) -> None:
        self.counters = counters
        self.walkers = walkers
        self.loops: list[tuple[int, ...]] = []
        self._around: tuple[int, ...] = ()
        self._count = 0

    def _mark(self, node: ast.AST) -> ast.expr:
        self.loops.append(self._around)
        number = ast.Constant(len(self.loops) - 1)
        return ast.copy_location(ast.Call(ast.Name(MARK, ast.Load()), [number], []), node)

    def visit_While(self, node: ast.While) -> ast.While:
        test = ast.copy_location(ast.BoolOp(ast.And(), [self._mark(node), node.test]), node.test)
        node.test = test
        node.body = [self.visit(statement) for statement in node.body]
        node.orelse = [self.visit(statement) for statement in node.orelse]
        return node

    def visit_For(self, node: ast.For) -> ast.For:
        number = self._count
        self._count += 1
        items = [ast.Constant(number), node.iter]
        node.iter = ast.copy_location(ast.Call(ast.Name(ITEMS, ast.Load()), items, []), node.iter)
        before, self._around = self._around, (*self._around, number)
        mark = ast.copy_location(ast.Expr(self._mark(node)), node)
        node.body = [mark, *(self.visit(statement) for statement in node.body)]
        self._around = before
        node.orelse = [self.visit(statement) for statement in node.orelse]
        return node

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AugAssign:
        self._note_step(node)
        return node

    def visit_Assign(self, node: ast.Assign) -> ast.Assign:
        self._note_step(node)
        return node

    def _note_step(self, node: ast.Assign | ast.AugAssign) -> None:
        """Pass what is added to a variable that walks through a function."""
        target = node.targets[0] if isinstance(node, ast.Assign) else node.target
        value = added(node)
        if value is None or not isinstance(target, ast.Name) or target.id not in self.walkers:
            return
        called = ast.copy_location(ast.Call(ast.Name(STEP, ast.Load()), [value], []), value)
        whole = node.value
        if whole is value:
            node.value = called
        elif isinstance(whole, ast.BinOp) and whole.left is value:
            whole.left = called
        elif isinstance(whole, ast.BinOp):
            whole.right = called

    def visit_Return(self, node: ast.Return) -> ast.Return:
        if node.value is not None:
            parts = list(ast.walk(node.value))
            named = {part.id for part in parts if isinstance(part, ast.Name)}
            compared = {
                side
                for part in parts
                if isinstance(part, ast.Compare)
                for side in (part.left, *part.comparators)
            }
            sized = {p.id for p in parts if isinstance(p, ast.Name) and p not in compared}
            for name, found in (
                (COUNTED, named & self.counters),
                (RETURNED, sized & self.walkers),
            ):
                if found:
                    called = ast.Call(ast.Name(name, ast.Load()), [node.value], [])
                    node.value = ast.copy_location(called, node.value)
        return node

    def visit_Try(self, node: ast.Try) -> ast.Try:
        node.body = [self.visit(statement) for statement in node.body]
        return node

    def visit_With(self, node: ast.With) -> ast.With:
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.ClassDef:
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.Lambda:
        return node


def _liveness(code: CodeType, all_read: bool) -> dict[int, frozenset[str]]:
    """Return the variables that may be read after each instruction, before they are set.

    Captured variables count as read, all variables where ``all_read``. Any instruction that a
    handler guards may lead there.
    """
    steps = list(dis.get_instructions(code))
    places = range(0, len(code.co_code), 2)
    guards = _guards(code)
    if guards is None or all_read:
        every = frozenset((*code.co_varnames, *code.co_cellvars, *code.co_freevars))
        return dict.fromkeys(places, every)
    held = frozenset((*code.co_cellvars, *code.co_freevars))
    place = {step.offset: index for index, step in enumerate(steps)}
    jumps = set(dis.hasjrel) | set(dis.hasjabs)
    nexts: list[list[int]] = []
    for index, step in enumerate(steps):
        after = [] if step.opname.startswith(_LAST) else [index + 1]
        if step.opcode in jumps:
            after.append(place[step.argval])
        nexts.append([each for each in after if each < len(steps)])
    caught = [[place[t] for a, z, t in guards if a <= step.offset < z] for step in steps]
    before: list[frozenset[str]] = [frozenset()] * len(steps)
    behind: list[frozenset[str]] = [frozenset()] * len(steps)
    changed = True
    while changed:
        changed = False
        for index in range(len(steps) - 1, -1, -1):
            handlers = frozenset().union(*(before[each] for each in caught[index]))
            behind[index] = handlers.union(*(before[each] for each in nexts[index]))
            found = _before(steps[index], behind[index]) | handlers
            if found != before[index]:
                before[index], changed = found, True
    # What a frame gives as its place may lie behind the start of an instruction, in its cache.
    offsets = [step.offset for step in steps]
    return {at: behind[bisect_right(offsets, at) - 1] | held for at in places}


def _guards(code: CodeType) -> list[tuple[int, int, int]] | None:
    """Return the handlers of exceptions: from, to, and where they begin; None if unknown."""
    entries = getattr(dis.Bytecode(code), "exception_entries", None)
    if entries is None:
        return None if code.co_exceptiontable else []
    return [(each.start, each.end, each.target) for each in entries]


_LAST = ("RETURN", "RAISE", "RERAISE", "JUMP_FORWARD", "JUMP_BACKWARD", "JUMP_ABSOLUTE")


def _before(step: dis.Instruction, behind: frozenset[str]) -> frozenset[str]:
    if "FAST" not in step.opname:
        return behind
    names = step.argval if isinstance(step.argval, tuple) else (step.argval,)
    if step.opname in ("STORE_FAST", "DELETE_FAST", "STORE_FAST_STORE_FAST"):
        return behind - frozenset(names)
    return behind | frozenset(name for name in names if isinstance(name, str))
