"""Arguments that the functions of a table take, and do not look at.

Functions of the tables end in ``*_`` and ``**_`` where a type does not depend on the arguments
behind. Values do: capture lets those pass that never change one, and those that are defaults.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from hagane.frontends.python.report.findings import CheckError
from hagane.frontends.python.values.values import Value

# Where a result lies, how fast it comes, in which memory, and what it keeps for later.
WITHOUT_EFFECT = frozenset((
    "assume_unique", "casting", "check_errors", "check_finite", "chunk_size", "copy",
    "create_graph", "device", "driver", "generator", "inplace", "kind", "kth", "layout", "like",
    "memory_format", "name", "names", "non_blocking", "optimize", "order", "overwrite_input",
    "pin_memory", "preserve_rng_state", "randomness", "requires_grad", "retain_graph",
    "scale_grad_by_freq", "signature", "sorted", "sparse", "sparse_grad", "stable", "strict",
    "subok", "tie_weights", "use_reentrant", "writeable",
))  # fmt: skip


def check_ignored(
    name: str, handler: Any, arguments: Sequence[Value], keywords: Mapping[str, Value]
) -> None:
    """Refuse a call with an argument that would be ignored though it decides the result.

    Args:
        name: The function, as in ``numpy.std``, or the method, whose receiver comes first.
        handler: The table's function.
        arguments: The call's arguments.
        keywords: Those given by name.

    Raises:
        CheckError: There is one.
    """
    for label, value, default in _ignored(name, handler, arguments, keywords):
        if label in WITHOUT_EFFECT or value is None or _same(value, default):
            continue
        shown = f"'{label}'" if label else "an argument behind the first ones"
        raise CheckError(
            "capture",
            f"'{name}' cannot be captured with {shown}: its graph would not depend on it; leave "
            "it out, or compute its effect with other functions",
        )


def _ignored(
    name: str, handler: Any, arguments: Sequence[Value], keywords: Mapping[str, Value]
) -> Iterator[tuple[str, Value, Any]]:
    """Yield the name, empty if unknown, the value and the default of each ignored argument."""
    count, rest, named = _taken(handler)
    if count is None:
        return
    defaults = _defaults(name)
    if rest:
        known = [*defaults.items()]
        for place, value in enumerate(arguments[count:], count):
            label, default = known[place] if place < len(known) else ("", inspect.Parameter.empty)
            yield label, value, default
    if named is not None:
        for label, value in keywords.items():
            if label not in named:
                yield label, value, defaults.get(label, inspect.Parameter.empty)


@cache
def _taken(handler: Any) -> tuple[int | None, bool, frozenset[str] | None]:
    """Return how many arguments a function has by place, and whether it ignores more.

    The third is the set of its names where it ignores others; None where it ignores none. The
    number is None for functions that look at no argument at all, which do nothing.
    """
    parameters = list(inspect.signature(handler).parameters.values())[1:]
    kinds = {kind: [p for p in parameters if p.kind == kind] for kind in inspect._ParameterKind}
    placed = (
        *kinds[inspect.Parameter.POSITIONAL_ONLY],
        *kinds[inspect.Parameter.POSITIONAL_OR_KEYWORD],
    )
    if not {p.name for p in placed} - {"self"}:
        return None, False, None
    rest = any(p.name.startswith("_") for p in kinds[inspect.Parameter.VAR_POSITIONAL])
    ignoring = any(p.name.startswith("_") for p in kinds[inspect.Parameter.VAR_KEYWORD])
    names = frozenset(p.name for p in (*placed, *kinds[inspect.Parameter.KEYWORD_ONLY]))
    return len(placed), rest, names if ignoring else None


@cache
def _defaults(name: str) -> dict[str, Any]:
    """Return the arguments of a library's own function, and their defaults; none if not known."""
    root, *path = name.split(".")
    found: Any = sys.modules.get(root)
    try:
        for part in path:
            found = getattr(found, part)
        parameters = inspect.signature(found).parameters.values()
    except (AttributeError, TypeError, ValueError):
        return {}
    return {p.name: p.default for p in parameters}


def _same(value: Value, default: Any) -> bool:
    plain = bool | int | float | str
    return isinstance(value, plain) and isinstance(default, plain) and value == default
