"""Variables of which runs differ in names alone, or in an order that nothing looks at.

Days that are drawn evenly, kept in a set, and asked no more than whether they are the same as
others, may change places: two runs of which one becomes the other so go on alike, and are one
state. So of birthdays it is kept how many there are, and of coupons how many are missing. Of a list
that is only counted, summed, sorted and the like it is kept which items it has, and not where.
"""

from __future__ import annotations

import ast
import builtins
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import CodeType, FunctionType
from typing import Any

from hagane.tools.prob.replay.names import Names, looks_around
from hagane.tools.prob.replay.unordered import NUMBERS, SETS, Uses

_CHANGES = ("append", "extend", "insert", "add", "update", "pop", "remove", "discard")
_COUNTS = ("max", "min", "sum", "sorted", "any", "all", "len", "set")
_SORTED = frozenset((int, bool, str))
_SIMPLE = _SORTED | {type(None)}
_TYPES: dict[str, tuple[type, ...]] = {
    "set": (set,),
    "dict": (dict, Counter, defaultdict),
    "places": (list,),
    "bag": (list,),
}
_Support = tuple[str, ...]


class Strange(Exception):
    """A value is another than expected."""


@dataclass(frozen=True, slots=True)
class Alike:
    """Variables of a function, by what they hold.

    Attributes:
        groups: By variable what it holds of one kind of drawn values: one of them (``value``), a
            ``set`` of them, a ``dict`` by them, a list with ``places`` for them, a ``bag`` of them.
        unordered: Lists of which nothing looks at the order.
    """

    groups: tuple[Mapping[str, str], ...]
    unordered: frozenset[str]

    def drawn(self, place: int, held: Mapping[str, Any], values: Sequence[Any]) -> list[list[int]]:
        """Return the places of the values of a draw, those together that nothing tells apart.

        Args:
            place: That of the group of variables.
            held: The values of all variables.
            values: Those that may be drawn.

        Raises:
            Strange: A variable holds something else than expected.
        """
        group = self.groups[place]
        _, told = _told({n: (group[n], held[n]) for n in group.keys() & held.keys()})
        parts: dict[Any, list[int]] = {}
        for at, value in enumerate(values):
            parts.setdefault(told.get(value, ()), []).append(at)
        return list(parts.values())

    def key(self, held: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[Any, ...]]:
        """Return the variables that are told as they are, and a key of all others.

        Args:
            held: The values of the variables that are read later.
        """
        rest = dict(held)
        keys: list[Any] = []
        for place, group in enumerate(self.groups):
            names = group.keys() & held.keys()
            if names:
                try:
                    keys.append((place, _pattern({n: (group[n], held[n]) for n in names})))
                except Strange:
                    continue
                for name in names:
                    del rest[name]
        for name in sorted(self.unordered & rest.keys()):
            items = rest[name]
            kinds = set(map(type, items)) if type(items) is list else set()
            if len(kinds) == 1 and kinds <= _SORTED:
                keys.append((name, kinds.pop(), tuple(sorted(items))))
                del rest[name]
        return rest, tuple(keys)


def _pattern(held: Mapping[str, tuple[str, Any]]) -> Any:
    """Return what is known of drawn values, without the values.

    Raises:
        Strange: A variable holds something else.
    """
    shapes, told = _told(held)
    return shapes, frozenset(Counter(told.values()).items())


def _told(held: Mapping[str, tuple[str, Any]]) -> tuple[Any, dict[Any, tuple[Any, ...]]]:
    """Return the kinds of some variables, and by drawn value what they know of it.

    Raises:
        Strange: A variable holds something else.
    """
    told: dict[Any, list[Any]] = {}
    shapes = []
    for name, (holds, value) in sorted(held.items()):
        if holds == "value":
            told.setdefault(value, []).append((name,))
            continue
        if type(value) not in _TYPES[holds]:
            raise Strange
        shapes.append((name, type(value), getattr(value, "default_factory", None)))
        found: Mapping[Any, Any]
        if holds == "set":
            found = dict.fromkeys(value)
        elif holds == "bag":
            found = Counter(value)
        else:
            found = value if isinstance(value, dict) else dict(enumerate(value))
        for item, what in found.items():
            if type(what) not in _SIMPLE:
                raise Strange
            told.setdefault(item, []).append((name, type(what), what))
    if not {int, str}.issuperset(map(type, told)):
        raise Strange
    return tuple(shapes), {item: tuple(known) for item, known in told.items()}


def alike(
    function: FunctionType, tree: ast.FunctionDef, code: CodeType
) -> tuple[Alike, dict[ast.expr, tuple[int, str]]]:
    """Return the variables of which runs differ in names or order alone, and draws of their values.

    The draws come with the place of their group, and with their names.

    Args:
        function: The function.
        tree: Its definition.
        code: What is run of it.
    """
    names = Names(function, tree, code)
    if _tells_all(tree):
        return Alike((), frozenset()), {}
    values = _Values(names)
    found = values.groups()
    known = {name for group in found for name in group}
    same = Alike(tuple(found), _unordered(names, tree) - known)
    return same, {
        draw: (place, values.kind_of(draw))
        for place, group in enumerate(found)
        for name in group
        for draw in values.draws[name]
        if names.is_alone(draw)
    }


def _tells_all(tree: ast.FunctionDef) -> bool:
    """Return whether a function may read its variables in ways that its text does not show."""
    return looks_around(tree) or any(
        isinstance(node, ast.ExceptHandler) and node.name for node in ast.walk(tree)
    )


def _unordered(names: Names, tree: ast.FunctionDef) -> frozenset[str]:
    """Return the lists that grow item by item, of which nothing looks at the order."""
    if "next" in names.uses:  # takes items in the order in which it is called
        return frozenset()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and (isinstance(node.func, ast.Name | ast.Attribute)):
            name = node.func.id if isinstance(node.func, ast.Name) else node.func.attr
            own = {"Counter": Counter}.get(name, getattr(builtins, name, None))
            if name in NUMBERS | SETS and names.meaning(node.func) is not own:
                return frozenset()
        if isinstance(node, ast.comprehension | ast.For) and not _keeps_others(names, node):
            return frozenset()
    uses = Uses(tree)
    found = set()
    for name in names.local:
        values = [names.value_of(store) for store in names.stores(name)]
        if all(isinstance(value, ast.List) and not value.elts for value in values) and all(
            _is_appending(names, use) or uses.is_free(use) for use in names.loads(name)
        ):
            found.add(name)
    return frozenset(found)


def _keeps_others(names: Names, turns: ast.comprehension | ast.For) -> bool:
    """Return whether what the turns of a loop call changes nothing that later turns may read."""
    own = {each.id for each in ast.walk(turns.target) if isinstance(each, ast.Name)}
    for node in ast.walk(names.above[turns] if isinstance(turns, ast.comprehension) else turns):
        if isinstance(node, ast.Attribute) and node.attr in _CHANGES:
            if not _is_statement(names, node):
                return False
        elif isinstance(node, ast.Call) and isinstance(names.meaning(node.func), FunctionType):
            given = (each for part in node.args + node.keywords for each in ast.walk(part))
            if any(isinstance(each, ast.Name) and each.id not in own for each in given):
                return False
    return True


def _is_statement(names: Names, method: ast.AST) -> bool:
    """Return whether a method is called as a statement of its own."""
    call = names.above[method]
    return isinstance(call, ast.Call) and isinstance(names.above[call], ast.Expr)


def _is_appending(names: Names, use: ast.Name) -> bool:
    owner = names.above[use]
    append = isinstance(owner, ast.Attribute) and owner.attr == "append"
    return append and _is_statement(names, owner)


class _Values:
    """Finds variables of drawn values that are only asked whether they are the same."""

    def __init__(self, names: Names) -> None:
        self.names = names
        self.above = names.above
        self.holds: dict[str, str] = {}
        self.drawn: dict[str, _Support] = {}
        self.draws: dict[str, list[ast.expr]] = {}
        for name in names.local:
            self._begin(name)

    def _begin(self, name: str) -> None:
        values = [self.names.value_of(store) for store in self.names.stores(name)]
        if any(value is None for value in values):
            return
        texts = {ast.dump(value) for value in values if value is not None}
        support, *others = {self.names.support(value) for value in values if value is not None}
        holds = {self._container(value) for value in values if value is not None}
        if support is not None and not others:
            self.holds[name], self.drawn[name] = "value", support
        elif len(holds) == 1 and "" not in holds and len(texts) == 1:
            # What is never drawn is then the same at all times.
            self.holds[name] = holds.pop()

    def _container(self, value: ast.expr) -> str:
        """Return what kind of a container of values an expression makes, or nothing."""
        match value:
            case ast.Call(func=function, args=[], keywords=[]):
                if self.names.meaning(function) is Counter or self.names.is_builtin(
                    function, "dict"
                ):
                    return "dict"
                return "set" if self.names.is_builtin(function, "set") else ""
            case ast.Call(func=function, args=[first], keywords=[]):
                if self.names.is_builtin(function, "set"):
                    return "set" if self._is_range(first) else ""
                counts = self.names.meaning(function) is defaultdict
                return "dict" if counts and self.names.is_builtin(first, "int") else ""
            case ast.Call(ast.Attribute(owner, "fromkeys"), [first, ast.Constant()], []):
                known = self.names.is_builtin(owner, "dict") and self._is_range(first)
                return "dict" if known else ""
            case ast.DictComp(ast.Name(id=key), ast.Constant(), [part]):
                named = isinstance(part.target, ast.Name) and part.target.id == key
                return "dict" if named and not part.ifs and self._is_range(part.iter) else ""
            case ast.ListComp(ast.Constant(), [part]):
                return "places" if not part.ifs and self._is_range(part.iter) else ""
            case ast.Dict(keys=[]):
                return "dict"
            case ast.List(elts=[]):
                return "bag"
            case ast.BinOp(left=ast.List(elts=[ast.Constant()]), op=ast.Mult(), right=times):
                return "places" if self.names.is_stable(times) else ""
        return ""

    def _is_range(self, value: ast.expr) -> bool:
        return (
            isinstance(value, ast.Call)
            and not value.keywords
            and self.names.is_builtin(value.func, "range")
            and all(map(self.names.is_stable, value.args))
        )

    def groups(self) -> list[dict[str, str]]:
        """Return the variables by the kind of the drawn values."""
        while True:
            supports: dict[str, set[_Support]] = {name: set() for name in self.holds}
            self.draws = {name: self._given(name) for name in self.holds}
            wrong = {
                name
                for name in self.holds
                for use in self.names.loads(name)
                if not self._is_asking(use, supports)
            }
            wrong |= {
                name
                for name, found in supports.items()
                if self.holds[name] != "value" and len(found) != 1
            }
            if not wrong:
                break
            for name in wrong:
                del self.holds[name]
        groups: dict[_Support, dict[str, str]] = {}
        for name, holds in self.holds.items():
            support = self.drawn[name] if holds == "value" else next(iter(supports[name]))
            groups.setdefault(support, {})[name] = holds
        return [group for group in groups.values() if set(group.values()) != {"value"}]

    def kind_of(self, draw: ast.expr) -> str:
        """Return the name of the function that draws."""
        support = self.names.support(draw)
        assert support is not None
        return support[0]

    def _given(self, name: str) -> list[ast.expr]:
        """Return the draws of a variable of one value."""
        values = map(self.names.value_of, self.names.stores(name))
        return [v for v in values if v is not None and self.holds[name] == "value"]

    def _support(self, node: ast.expr) -> _Support | None:
        """Return among what a value was drawn, or nothing."""
        if isinstance(node, ast.Name):
            return self.drawn[node.id] if self.holds.get(node.id) == "value" else None
        return self.names.support(node)

    def _is_asking(self, use: ast.Name, supports: dict[str, set[_Support]]) -> bool:
        """Return whether a use tells nothing of values but whether they are the same."""
        name = use.id
        if self.holds[name] == "value":
            return self._is_compared(use)
        found = self._meets(use)
        if found is None:
            return self._is_counted(use, self.holds[name])
        support = self._support(found)
        if support is None:
            return False
        if not isinstance(found, ast.Name):
            self.draws[name].append(found)
        if self.holds[name] == "places" and not self._is_place(found):
            return False
        supports[name].add(support)
        return True

    def _is_place(self, node: ast.expr) -> bool:
        if isinstance(node, ast.Name):
            stores = self.names.stores(node.id)
            values = [self.names.value_of(store) for store in stores]
            return all(v is not None and self.names.begins_at_zero(v) for v in values)
        return self.names.begins_at_zero(node)

    def _is_compared(self, use: ast.Name) -> bool:
        """Return whether a drawn value meets another, or a container of such."""
        above = self.above[use]
        match above:
            case ast.Compare(left=left, ops=[ast.Eq() | ast.NotEq()], comparators=[right]):
                return self._support(left) == self._support(right) is not None
            case ast.Compare(ops=[ast.In() | ast.NotIn()], comparators=[ast.Name(id=name)]):
                return above.left is use and self.holds.get(name) in ("set", "dict", "bag")
            case ast.Subscript(value=ast.Name(id=name), slice=place) if place is use:
                return self.holds.get(name) in ("dict", "places")
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name)), args=[first, *_]):
                return first is use and self.holds.get(name) in ("set", "dict", "bag")
        return False

    def _meets(self, use: ast.Name) -> ast.expr | None:
        """Return the value that a use of a container asks about, or nothing."""
        above, holds = self.above[use], self.holds[use.id]
        match above:
            case ast.Compare(left=left, ops=[ast.In() | ast.NotIn()], comparators=[right]):
                return left if right is use and holds != "places" else None
            case ast.Subscript(value=value, slice=place) if value is use:
                return place if holds in ("dict", "places") else None
            case ast.Attribute(attr=method):
                call = self.above[above]
                if not (isinstance(call, ast.Call) and call.func is above and not call.keywords):
                    return None
                taken = {"set": 1, "dict": 2, "bag": 1}.get(holds, 0)
                if method in _METHODS.get(holds, ()) and 1 <= len(call.args) <= taken:
                    return call.args[0]
        return None

    def _is_counted(self, use: ast.expr, holds: str) -> bool:
        """Return whether a use counts what a container has."""
        above = self.above[use]
        match above:
            case ast.Call(func=function, args=[first], keywords=[]) if first is use:
                if self.names.is_builtin(function, "len"):
                    return True
                if holds == "set" and self.names.is_builtin(function, "set"):
                    return self._is_counted(above, "set")
                if holds == "bag":
                    counts = self.names.meaning(function) is Counter
                    made = "dict" if counts else "set"
                    known = counts or self.names.is_builtin(function, "set")
                    return known and self._is_counted(above, made)
                return holds == "places" and self.names.is_builtin(function, *_COUNTS)
            case ast.UnaryOp(op=ast.Not()):
                return True
            case ast.If(test=test) | ast.While(test=test) if test is use:
                return True
            case ast.Compare(ops=[ast.In() | ast.NotIn()], comparators=[right]) if right is use:
                return holds == "places"
            case ast.comprehension(iter=items) if items is use:
                return holds == "places" and self._is_order_free(above)
            case ast.Attribute(attr=method):
                call = self.above[above]
                if not (isinstance(call, ast.Call) and call.func is above and not call.keywords):
                    return False
                if method == "clear":
                    return not call.args
                if holds == "places":
                    return method == "count"
                if holds == "dict" and method == "values" and not call.args:
                    return self._is_listed(call)
        return False

    def _is_listed(self, counts: ast.expr) -> bool:
        """Return whether counts are used in any order."""
        above = self.above[counts]
        match above:
            case ast.Call(func=function, args=[first], keywords=[]) if first is counts:
                return self.names.is_builtin(function, *_COUNTS)
            case ast.Compare(ops=[ast.In() | ast.NotIn()], comparators=[right]):
                return right is counts
            case ast.comprehension(iter=items) if items is counts:
                return self._is_order_free(above)
        return False

    def _is_order_free(self, part: ast.comprehension) -> bool:
        """Return whether what a comprehension gives is used in any order."""
        made = self.above[part]
        if not isinstance(made, ast.GeneratorExp | ast.ListComp | ast.SetComp):
            return False
        if len(made.generators) != 1 or any(isinstance(n, ast.Call) for n in ast.walk(made.elt)):
            return False
        call = self.above[made]
        return (
            isinstance(call, ast.Call)
            and call.args == [made]
            and not call.keywords
            and self.names.is_builtin(call.func, *_COUNTS)
        )


_METHODS = {
    "set": ("add", "discard", "remove"),
    "dict": ("get", "pop", "setdefault"),
    "bag": ("append", "count"),
}
