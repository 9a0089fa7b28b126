"""Line points of functions and tasks that no process calls: dead, without a search."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from hagane.tools.rtl.circuit.elaborate import Elaborated, Position
from hagane.tools.rtl.judge import NOT_OURS
from hagane.tools.rtl.result import Result


@dataclass(frozen=True, slots=True)
class _Subroutine:
    """A function or task: its name, and where it begins and ends."""

    name: str
    first: Position
    last: Position

    def holds(self, file: str, line: int, column: int) -> bool:
        begin, end = (self.first.line, self.first.column), (self.last.line, self.last.column)
        return self.first.file == file and begin <= (line, column) <= end


def settle_uncalled(result: Result, elaborated: Elaborated) -> None:
    """Count the simulator's points inside of subroutines that no process calls as dead."""
    places = [
        at
        for at, item in enumerate(result.statuses)
        if item.kind == "line" and item.status == "unknown" and item.why == NOT_OURS
    ]
    if not places:
        return
    idle = list(_uncalled(elaborated))
    for at in places:
        item = result.statuses[at]
        line, _, rest = item.where.removeprefix(f"{item.file}:").partition(":")
        column = rest.partition(" ")[0]
        if not (line.isdigit() and column.isdigit()):
            continue
        name = next((s.name for s in idle if s.holds(item.file, int(line), int(column))), None)
        if name is not None:
            result.statuses[at] = replace(item, status="dead", why=f"no process calls '{name}'")


def _uncalled(elaborated: Elaborated) -> Iterator[_Subroutine]:
    """Yield the subroutines that no process, nor any subroutine that one calls, calls."""
    from pyslang import ast

    bodies: dict[Any, Any] = {}
    called: dict[Any, None] = {}

    def look(item: Any) -> Any:
        kind = type(item).__name__
        if kind == "SubroutineSymbol":
            bodies.setdefault(item.location, item)
            return ast.VisitAction.Skip
        if kind == "ParameterSymbol":  # whose value is worked out before anything runs
            return ast.VisitAction.Skip
        if kind == "CallExpression" and not item.isSystemCall:
            called.setdefault(item.subroutine.location)
        return ast.VisitAction.Advance

    elaborated.compilation.getRoot().visit(look)
    outside = dict(called)
    inside: dict[Any, dict[Any, None]] = {}
    for location, subroutine in list(bodies.items()):
        called.clear()
        subroutine.body.visit(look)
        inside[location] = dict(called)
    order = list(outside)
    for location in order:  # grows while it runs
        order += [each for each in inside.get(location, ()) if each not in order]
    for location, subroutine in bodies.items():
        if location not in order and subroutine.syntax is not None:
            reach = subroutine.syntax.sourceRange
            yield _Subroutine(
                str(subroutine.name),
                elaborated.position(reach.start),
                elaborated.position(reach.end),
            )
