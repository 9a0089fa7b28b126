"""Calls of functions of the library, each of which may be many operators, as programs see them.

The tape records operators. What a program looks at (hooks, ``creator``, ``rank``, drawings) are
calls: ``Application`` is what the operators of one have in common, and ``Applied`` (``applied.py``)
the function node that stands for all of them. Operators hold their application; that holds neither
operators nor the nodes between them, so that what a program drops is freed at once.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Any

from hagane.nn.autograd.hooks import FunctionHook, get_function_hooks
from hagane.nn.autograd.labels import names_of, names_with_number

# The call of a function of the library that is under way.
CURRENT: ContextVar[Application | None] = ContextVar("hagane.nn.application", default=None)


# The calls that have hooks of their own.
WATCHED: weakref.WeakSet[Application] = weakref.WeakSet()


class Application:
    """One call of a function of the library.

    Args:
        name: The function.

    Attributes:
        given: The nodes of its operands.
        results: Weak references to the nodes of its results.
        number: The number of arithmetic with one, else None.
        hooks: Those of this call alone, by name.
        rank: The number of functions on the longest way from a leaf, None until asked for.
        shown: The arrays of its operands and the hooks that saw them, while it is under way.
    """

    given: Sequence[Any] = ()
    results: Sequence[Any] = ()
    number: Any = None
    hooks: dict[str, FunctionHook] | None = None
    rank: int | None = None
    shown: Any = None
    view: Callable[[], Any] | None = None

    def __init__(self, name: str):
        self.name = name

    def names(self) -> tuple[str, str]:
        """Return the label, and the name of the class."""
        if self.number is not None:
            return names_with_number(self.name, self.number)
        if self.name == "add" and len(self.given) > 2:
            return "MultiAdd", "MultiAdd"
        return names_of(self.name)

    @property
    def title(self) -> str:
        """The name for messages: the function's, or how arithmetic is written."""
        label = self.names()[0]
        return self.name if label.isidentifier() else label

    def begin(self, hooks: dict[str, FunctionHook]) -> None:
        """Let hooks see the call, once: at its first operator."""
        if self.shown is not None:
            return
        row = list(hooks.values())
        arrays = tuple([_array_of(node) for node in self.given])
        self.shown = arrays, row
        applied = self._whole()
        for hook in row:
            hook.forward_preprocess(applied, arrays)

    def _whole(self) -> Any:
        from hagane.nn.autograd.applied import Applied

        return Applied(self, None)

    def end(self) -> None:
        """Let the hooks that saw it begin see it end."""
        arrays, row = self.shown
        self.shown = None
        applied = self._whole()
        for hook in row:
            hook.forward_postprocess(applied, arrays)

    def finish(self, result: Any) -> None:
        """Note the results."""
        self.results = [weakref.ref(node) for node in nodes_of(result)]
        if self.shown is not None:
            self.end()


def _array_of(node: Any) -> Any:
    variable = node.get_variable_or_none()
    return node.data if variable is None else variable.array


def nodes_of(values: Any) -> Sequence[Any]:
    """Return the nodes of the variables among values, rows of which may stand among them."""
    if not isinstance(values, tuple | list):
        node = getattr(values, "_node", None)
        return () if node is None else (node,)
    found: list[Any] = []
    for each in values:
        if isinstance(each, tuple | list):
            found += nodes_of(each)
        elif (node := getattr(each, "_node", None)) is not None:
            found.append(node)
    return found


def begin_current() -> None:
    """Let the hooks of this thread see the call that is under way, if they have not yet."""
    hooks = get_function_hooks()
    if hooks and (application := CURRENT.get()) is not None:
        application.begin(hooks)
