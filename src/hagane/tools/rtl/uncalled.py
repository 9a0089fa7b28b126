"""Line points of functions and tasks that no process calls, and of properties: dead."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from hagane.tools.rtl.circuit.elaborate import Elaborated, Position
from hagane.tools.rtl.judge import NOT_OURS
from hagane.tools.rtl.result import Result


@dataclass(frozen=True, slots=True)
class _Idle:
    """Lines that nothing executes: why, and where they begin and end."""

    why: str
    first: Position
    last: Position

    def holds(self, file: str, line: int, column: int) -> bool:
        begin, end = (self.first.line, self.first.column), (self.last.line, self.last.column)
        return self.first.file == file and begin <= (line, column) <= end


def settle_uncalled(result: Result, elaborated: Elaborated) -> None:
    """Count the simulator's points inside of what nothing executes as dead."""
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
        why = next((s.why for s in idle if s.holds(item.file, int(line), int(column))), None)
        if why is not None:
            result.statuses[at] = replace(item, status="dead", why=why)


def _uncalled(elaborated: Elaborated) -> Iterator[_Idle]:
    """Yield properties, and subroutines that no process calls, or any subroutine that one calls."""
    from pyslang import ast

    bodies: dict[Any, Any] = {}
    called: dict[Any, None] = {}
    told: dict[Any, Any] = {}

    def look(item: Any) -> Any:
        kind = type(item).__name__
        if kind == "SubroutineSymbol":
            bodies.setdefault(item.location, item)
            return ast.VisitAction.Skip
        if kind in ("PropertySymbol", "SequenceSymbol"):
            told.setdefault(item.location, item)
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
    idle = {
        each: f"no process calls '{each.name}'" for at, each in bodies.items() if at not in order
    }
    idle |= {each: f"'{each.name}' is looked at by assertions alone" for each in told.values()}
    for symbol, why in idle.items():
        if symbol.syntax is not None:
            reach = symbol.syntax.sourceRange
            yield _Idle(why, elaborated.position(reach.start), elaborated.position(reach.end))
