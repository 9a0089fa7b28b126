"""Rules of Lark with parameters (``_list{x, sep}: x (sep x)*``), written out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from hagane.errors import InvalidArgument
from hagane.lexgen.masks.rules.parts import Alt, Part, Rep, Seq

# Of arguments: their number in all, and the parts of one.
_MOST_WRITTEN, _MOST_PARTS = 1_000, 200


@dataclass(frozen=True)
class Named:
    """A rule that is used, by its name, and the arguments of one with parameters."""

    name: str
    line: int
    given: tuple[Any, ...] | None = None


def renamed(part: Part | Named, names: Mapping[str, str]) -> Part | Named:
    """Return a part in which rules are called by other names."""
    match part:
        case Named(name):
            return replace(part, name=names.get(name, name))
        case Seq(parts):
            return Seq(tuple(renamed(each, names) for each in parts))  # type: ignore[misc]
        case Alt(parts):
            return Alt(tuple(renamed(each, names) for each in parts))  # type: ignore[misc]
        case Rep(body, low, high):
            return Rep(renamed(body, names), low, high)  # type: ignore[arg-type]
    return part


def written_out(
    rules: Mapping[str, Part | Named], parameters: Mapping[str, tuple[str, ...]]
) -> dict[str, Part | Named]:
    """Return the rules with those that have parameters once for all arguments that they get.

    Args:
        rules: The bodies by name.
        parameters: The parameters of the rules that have some.

    Raises:
        InvalidArgument: Arguments are missing or too many, or they grow without end.
    """
    found: dict[str, Part | Named] = {}
    names: dict[tuple[str, tuple[Any, ...]], str] = {}
    waiting: list[tuple[str, Part | Named, Mapping[str, Part | Named]]] = [
        (name, body, {}) for name, body in rules.items() if name not in parameters
    ]

    def called(use: Named, values: Mapping[str, Part | Named]) -> Part | Named:
        if use.given is None and use.name in values:
            return values[use.name]
        wanted, given = parameters.get(use.name), use.given
        if wanted is None and given is None:
            return use
        if wanted is None or given is None or len(wanted) != len(given):
            count = "none" if given is None else len(given)
            takes = "no arguments" if wanted is None else f"{len(wanted)} arguments"
            raise InvalidArgument(
                f"grammar, line {use.line}: the rule '{use.name}' takes {takes}, got {count}"
            )
        actual = tuple(filled(each, values) for each in given)
        if len(names) == _MOST_WRITTEN or any(_size(each) > _MOST_PARTS for each in actual):
            raise InvalidArgument(
                f"grammar, line {use.line}: the arguments of the rule '{use.name}' are more than "
                f"{_MOST_WRITTEN:,}, one has over {_MOST_PARTS} parts; do they grow for ever?"
            )
        key = use.name, tuple(map(_without_lines, actual))
        if key not in names:
            names[key] = f"{use.name}{{{len(names)}}}"
            waiting.append((names[key], rules[use.name], dict(zip(wanted, actual, strict=True))))
        return Named(names[key], use.line)

    def filled(part: Any, values: Mapping[str, Part | Named]) -> Any:
        match part:
            case Named():
                return called(part, values)
            case Seq(parts) | Alt(parts):
                return type(part)(tuple(filled(each, values) for each in parts))
            case Rep(body, low, high):
                return Rep(filled(body, values), low, high)
        return part

    for name, body, values in waiting:  # grows while it runs
        found[name] = filled(body, values)
    return found


def _size(part: Any) -> int:
    match part:
        case Seq(parts) | Alt(parts):
            return 1 + sum(map(_size, parts))
        case Rep(body):
            return 1 + _size(body)
    return 1


def _without_lines(part: Any) -> Any:
    """Return a part that is equal wherever it stands."""
    match part:
        case Named():
            return replace(part, line=0)
        case Seq(parts) | Alt(parts):
            return type(part)(tuple(map(_without_lines, parts)))
        case Rep(body, low, high):
            return Rep(_without_lines(body), low, high)
    return part
