"""Values that stand for one that the data have not brought yet: ``best = None``, ``loss = 0``."""

from __future__ import annotations

from collections.abc import Container

from hagane.frontends.python.values.values import (
    Choice,
    Value,
    alternatives,
)
from hagane.symbolic.term import variables_of


def stands_in(value: Value, choice: Choice, invented: Container[str]) -> bool:
    """Whether an alternative of a choice only stands for the other one, which the data bring.

    Args:
        value: The alternative.
        choice: The choice.
        invented: Names of sizes that are no input's, such as the length of a file.
    """
    if not _is_bare(value) or all(map(_is_bare, alternatives(choice))):
        return False
    names = variables_of((choice.condition,))
    return all(name.startswith("?") or name in invented for name in names)


def other_path(path: str) -> str:
    """Return what holds where a path is not taken, as its decisions are written."""
    if not path:
        return "the data bring a value"
    inner = path.removeprefix("not (").removesuffix(")")
    plain = (
        " and " not in path and path == f"not ({inner})" and inner.count("(") == inner.count(")")
    )
    return inner if plain else f"not ({path})"


def _is_bare(value: Value) -> bool:
    return value is None or type(value) in (int, float)


__all__ = ["other_path", "stands_in"]
