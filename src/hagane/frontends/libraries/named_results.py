"""The classes of results whose items have names: ``torch.return_types.max`` and its like."""

from __future__ import annotations

import sys
from typing import Any

from hagane.frontends.python.values.values import Fields, Value


def with_class(name: str, made: Value) -> Value:
    """Return the result of a function of a library, of the class that the library gives it.

    Args:
        name: The function, by its full name.
        made: What it returns.
    """
    if not isinstance(made, Fields):
        return made
    library, *owners, function = name.split(".")
    if library == "torch":
        places = ["return_types"]
        names = [function, f"linalg_{function}"][:: -1 if owners == ["linalg"] else 1]
    elif library == "numpy" and owners == ["linalg"]:
        places, names = ["linalg", "_linalg"], [f"{function.capitalize()}Result"]
        names += [f"{function.upper()}Result"]
    elif library == "numpy":
        places = ["lib", "_arraysetops_impl"]
        names = [f"{function.title().replace('_', '')}Result"]  # of unique_counts and its like
    else:
        return made
    found: Any = sys.modules.get(library)
    for place in places:
        found = getattr(found, place, None)
    for each in names:
        real = getattr(found, each, None)
        if isinstance(real, type) and _names(real) == made.names:
            return Fields(made, made.names, real)
    return made


def _names(real: Any) -> tuple[str, ...]:
    """Return the names of the items of a real class, in order."""
    if hasattr(real, "_fields"):
        return tuple(real._fields)
    names = real.__match_args__ if hasattr(real, "__match_args__") else ()
    return tuple(names)


__all__ = ["with_class"]
