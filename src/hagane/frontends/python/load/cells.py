"""Variables of enclosing functions that real functions read and set."""

from __future__ import annotations

import types
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hagane.frontends.python.values.objects import Frame, ModuleRef
from hagane.frontends.python.values.values import MISSING, Value

if TYPE_CHECKING:
    from hagane.frontends.python.load.lift import Lift


@dataclass(eq=False, slots=True)
class Variable:
    """A variable of an enclosing function.

    Attributes:
        cell: The real variable.
        name: Its name.
        key: Finds it in the heap, as the one name of a scope.
        before: Its value before the call; ``MISSING`` if it was not set.
        is_filled: Whether the heap has that value.
    """

    cell: types.CellType
    name: str
    key: int
    before: Value = MISSING
    is_filled: bool = False


class Cells:
    """The variables of enclosing functions, each of them once.

    Args:
        core: The interpreter.
    """

    def __init__(self, core: Lift):
        self._core = core
        self._known: dict[int, Variable] = {}

    def around(self, function: types.FunctionType, file: str, module: ModuleRef) -> Frame:
        """Return the scope of a function: a frame for each variable of enclosing functions.

        Functions that share a variable have one content for it.
        """
        heap, scope = self._core.heap, None
        for name, cell in _cells_of(function):
            if id(cell) not in self._known:
                self._known[id(cell)] = Variable(cell, name, heap.new({}))
            key = self._known[id(cell)].key
            scope = Frame(key, file, module, scope, module.is_user, cell=name)
        return Frame(heap.new({}), file, module, scope, module.is_user)

    def fill(self, function: types.FunctionType) -> None:
        """Give the variables around a function the values that they have before the call."""
        core = self._core
        for name, cell in _cells_of(function):
            found = self._known[id(cell)]
            if found.is_filled:
                continue
            found.is_filled = True
            try:
                found.before = core.lift(cell.cell_contents)
            except ValueError:  # not set yet
                continue
            content = {name: found.before}
            core.heap.contents[found.key] = content
            if core.emit.literal:
                core.heap.originals.keep(found.key, content)

    def changed(self) -> Iterator[tuple[Variable, Value]]:
        """Yield the variables that the call sets, with their new values."""
        for found in self._known.values():
            now = self._core.heap.contents.get(found.key, {}).get(found.name, MISSING)
            if now is not found.before:
                yield found, now


def _cells_of(function: types.FunctionType) -> Iterator[tuple[str, types.CellType]]:
    names = function.__code__.co_freevars
    for name, cell in zip(names, function.__closure__ or (), strict=False):
        if name != "__class__":
            yield name, cell


__all__ = ["Cells", "Variable"]
