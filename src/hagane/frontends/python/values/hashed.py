"""Sets of known values: their items, and the order in which Python goes through them.

Python's order depends on how a set came about: two sets that are equal may give their items in
different orders. So each content notes the call that made it, and of which content.
"""

from __future__ import annotations

import ast
import operator
import types
from collections.abc import Iterable
from typing import Any, NamedTuple, cast

from hagane.frontends.python.values.values import Value, is_plain

_OPERATORS: dict[type[ast.operator], str] = {
    ast.BitOr: "or_", ast.BitAnd: "and_", ast.Sub: "sub", ast.BitXor: "xor",
}  # fmt: skip
_IN_PLACE = {"or_": "ior", "and_": "iand", "sub": "isub", "xor": "ixor"}
_SYMBOLS = frozenset((*_OPERATORS.values(), *_IN_PLACE.values()))


class Step(NamedTuple):
    """A call that made a set.

    ``name`` is that of a method or operator of sets, of ``set`` itself, ``literal`` with the
    constant of a display, or ``given`` with a set of the running Python.
    """

    before: Hashed | None
    name: str
    arguments: tuple[Any, ...] = ()


class Hashed(tuple[Value, ...]):
    """The items of a set without repeats, in the order in which they came, and its last step."""

    step: Step | None = None


def hashed(items: Iterable[Value], step: Step | None) -> Hashed:
    """Return the content of a set."""
    made = Hashed(dict.fromkeys(items))
    made.step = step
    return made


def set_argument(value: Any, items: Any) -> Any:
    """Return what a step notes of an iterable: the content of a set, a dictionary or its items."""
    if isinstance(value, Hashed | frozenset):
        return value
    return dict.fromkeys(items) if isinstance(value, dict) else list(items)


def constant_set(values: frozenset[Any], code: types.CodeType | None) -> frozenset[Any]:
    """Return the constant that Python's compiler made of a display of constants.

    Args:
        values: The items.
        code: The code that the display is in, or that of a function around it, if there is any.
    """
    queue = [] if code is None else [code]
    while queue:
        for each in queue.pop().co_consts:
            if isinstance(each, types.CodeType):
                queue.append(each)
            elif isinstance(each, frozenset) and each == values:
                return each
    return values


def operated(
    left: tuple[Value, ...], kind: type[ast.operator], right: tuple[Value, ...], items: list[Value]
) -> Hashed:
    """Return the content that an operator makes of two sets, or views of the keys of two dicts."""
    one, two = (
        side if isinstance(side, Hashed) else hashed(side, Step(None, "set", (list(side),)))
        for side in (left, right)
    )
    return hashed(items, Step(one, _OPERATORS[kind], (two,)))


def in_place(made: Any) -> Any:
    """Return a content that an operator has made as that of the operator that changes a set."""
    if not isinstance(made, Hashed) or made.step is None:
        return made
    return hashed(made, made.step._replace(name=_IN_PLACE[made.step.name]))


def in_order(content: Any) -> Any:
    """Return the items of a set in the order in which this Python gives them.

    Contents of other containers, and of sets whose items have no hash before the run, are as they
    are.
    """
    if not isinstance(content, Hashed) or len(content) < 2 or not is_plain(tuple(content)):
        return content
    found = _made(content)
    same = found is not None and found == set(content)
    return tuple(cast("set[Value]", found)) if same else content


def _made(content: Hashed) -> set[Any] | frozenset[Any] | None:
    steps: list[Step] = []
    last: Hashed | None = content
    while last is not None:
        if last.step is None:
            return None
        steps.append(last.step)
        last = last.step.before
    found: set[Any] | frozenset[Any] = set()
    for step in reversed(steps):
        arguments = []
        for each in step.arguments:
            real = _made(each) if isinstance(each, Hashed) else each
            if real is None or (isinstance(real, list | dict) and not is_plain(tuple(real))):
                return None
            arguments.append(real)
        if step.name == "set":
            found = set(*arguments) if step.before is None else set(found)
        elif step.name == "literal":
            found = set()
            found.update(arguments[0])
        elif step.name == "given":
            found = arguments[0] if len(steps) == 1 else set(arguments[0])
        elif step.name in _SYMBOLS:
            found = getattr(operator, step.name)(found, *arguments)
        else:
            made = getattr(found, step.name)(*arguments)
            found = found if made is None else made
    return found


__all__ = [
    "Hashed",
    "Step",
    "constant_set",
    "hashed",
    "in_order",
    "in_place",
    "operated",
    "set_argument",
]
