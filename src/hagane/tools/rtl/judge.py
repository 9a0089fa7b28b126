"""The standing of every point, from the replay and the proofs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TypeGuard

from hagane.symbolic.term import Term
from hagane.tools.rtl.circuit.cycle import CycleModel
from hagane.tools.rtl.circuit.machine import PointKey
from hagane.tools.rtl.circuit.simulate import Bit, Goal, Simulator, Test, Violation, goals_of
from hagane.tools.rtl.replay.replay import Replay, line_points
from hagane.tools.rtl.replay.verilator import LinePoint, Run
from hagane.tools.rtl.result import Result, Status
from hagane.tools.rtl.search.assertions import CHECKER_FILE, standings
from hagane.tools.rtl.search.search import Found
from hagane.tools.rtl.waivers import Waivers

_BY_START = "met or not by the values that registers begin with"
NOT_OURS = "hagane has no point at this place"
_NOT_REPLAYED = "no simulator replayed the tests"


def judge(
    top: str,
    model: CycleModel,
    simulator: Simulator,
    tests: list[Test],
    found: Found,
    run: Run | None,
    replay: Replay | None,
    sure: frozenset[Goal] | None = None,
) -> Result:
    """Decide each point from the replay; a point without evidence from it is not covered.

    Of points that are not ``sure``, where that is given, the replay is no evidence.
    """
    reached: dict[Goal, int] = {}
    first: dict[Goal, tuple[int, int]] = {}
    if replay is not None:
        for number, cycles in enumerate(replay.cycles):
            for goal in goals_of(simulator, cycles):
                if not (isinstance(goal, Bit) and goal.signal in replay.missing):
                    reached.setdefault(goal, number)
            for at, cycle in enumerate(cycles):
                for index, failed in enumerate(cycle.violations):
                    if failed:
                        goal = Violation(simulator.violation_names[index])
                        first.setdefault(goal, (number, at))
    for goal in () if sure is None else [goal for goal in reached if goal not in sure]:
        del reached[goal]
        found.covered.pop(goal, None)
        found.unknown[goal] = _BY_START
    defects = [str(item) for item in (replay.differences if replay else ())]
    statuses = []
    for key in model.points:
        if key.kind != "line":
            statuses.append(_point(key, reached, found, replay is not None))
    statuses += _toggles(model, reached, found, replay is not None)
    unmatched: list[str] = []
    notices: list[str] = []
    line_covered = 0
    if run is not None and run.counts_lines:
        lines, unmatched, line_defects, notices = _lines(
            model, simulator, run, reached, found, counted=sure is None
        )
        statuses += lines
        defects += line_defects
        line_covered = sum(item.status == "covered" for item in lines)
    else:
        mine = [key for key in model.points if key.kind == "line"]
        statuses += [_point(key, reached, found, replay is not None) for key in mine]
    assertions = standings(
        simulator.violation_names, found, first, tests, replayed=replay is not None
    )
    return Result(
        top=top,
        statuses=statuses,
        tests=tests,
        found=found,
        model=model,
        simulator=run.simulator if run else None,
        line_covered=line_covered,
        differences=replay.differences if replay else (),
        defects=defects,
        notices=[*model.notices, *notices],
        seconds=0.0,
        testbench="",
        csv="",
        assertions=assertions,
        outputs=_outputs(model, simulator, replay),
        replayed=run,
        signals_compared=replay.compared if replay else 0,
        unmatched=unmatched,
    )


def _outputs(
    model: CycleModel, simulator: Simulator, replay: Replay | None
) -> list[list[dict[str, int]]]:
    """Return the simulator's outputs, row by row, test by test."""
    where = {name: index for index, name in enumerate(simulator.signal_names)}
    return [
        [{name: cycle.signals[where[name]] for name in model.outputs} for cycle in cycles]
        for cycles in (replay.cycles if replay else ())
    ]


def place_of(key: PointKey) -> str:
    """Return where a point is, as reports say it."""
    return f"{key.position} {key.label}" + (f" in {key.scope}" if key.scope else "")


def _point(key: PointKey, reached: Mapping[Goal, int], found: Found, replayed: bool) -> Status:
    where = place_of(key)
    common = {"file": key.position.file, "line": key.position.line}
    if key in reached:
        return Status(key.kind, where, "covered", reached[key], **common)  # type: ignore[arg-type]
    if key in found.dead:
        dead = found.dead[key]
        return Status(key.kind, where, "dead", None, dead.why, dead.cycles, **common)  # type: ignore[arg-type]
    if key in found.reachable:
        why = looped(found.reachable[key])
        return Status(key.kind, where, "reachable", None, why, found.reachable[key], **common)  # type: ignore[arg-type]
    why = found.unknown.get(key, "")
    if key in found.covered:
        why = "the replay did not show it" if replayed else _NOT_REPLAYED
    return Status(key.kind, where, "unknown", None, why, **common)  # type: ignore[arg-type]


def looped(cycles: int) -> str:
    """Return how a point is reached that no run met."""
    return (
        f"by a proved loop or inputs held so long, {cycles:,} cycles after the start of a test; "
        "not replayed"
    )


def _toggles(
    model: CycleModel, reached: Mapping[Goal, int], found: Found, replayed: bool
) -> list[Status]:
    statuses = []
    for name, term in model.toggling.items():
        for index in range(term.width):
            where = f"{name}[{index}]" if term.width > 1 else name
            high, low = Bit(name, index, 1), Bit(name, index, 0)
            if high in reached and low in reached:
                test = max(reached[high], reached[low])
                statuses.append(Status("toggle", where, "covered", test))
                continue
            dead = found.dead.get(high) or found.dead.get(low)
            if dead is not None:
                stuck = 0 if high in found.dead else 1
                why = f"always {stuck}: {dead.why}"
                statuses.append(Status("toggle", where, "dead", None, why, dead.cycles))
                continue
            far = [found.reachable[bit] for bit in (high, low) if bit in found.reachable]
            if far and not any(bit in found.unknown for bit in (high, low)):
                why = looped(max(far))
                statuses.append(Status("toggle", where, "reachable", None, why, max(far)))
                continue
            reason = found.unknown.get(high) or found.unknown.get(low)
            default = "the replay did not show it" if replayed else _NOT_REPLAYED
            statuses.append(Status("toggle", where, "unknown", None, reason or default))
    return statuses


def _lines(
    model: CycleModel,
    simulator: Simulator,
    run: Run,
    reached: Mapping[Goal, int],
    found: Found,
    *,
    counted: bool,
) -> tuple[list[Status], list[str], list[str], list[str]]:
    """Return the standing of the simulator's own line points; ``counted``: its counts suffice."""
    keys = list(model.points)
    matched, unmatched = line_points(simulator, run)
    statuses, defects, moved = [], [], []
    for point, count in run.lines.items():
        assert isinstance(point, LinePoint)
        if Path(point.position.file).name == CHECKER_FILE:
            continue
        mine = [keys[index] for index in matched[point]]
        where = f"{point.position} {point.label}" + (f" in {point.scope}" if point.scope else "")
        place = {"file": point.position.file, "line": point.position.line}
        tests = [reached[key] for key in mine if key in reached]
        dead = [found.dead[key] for key in mine if key in found.dead]
        if count and (counted or tests or not mine):
            test = min(tests) if tests else None
            statuses.append(Status("line", where, "covered", test, **place))  # type: ignore[arg-type]
            if mine and len(dead) == len(mine) and all(item.cycles is None for item in dead):
                defects.append(f"{where}: proved dead, yet the simulator reached it")
        elif tests and any(key in model.overwritten for key in mine if key in reached):
            statuses.append(Status("line", where, "covered", min(tests), **place))  # type: ignore[arg-type]
            moved.append(where)
        elif tests:
            defects.append(f"{where}: reached in hagane by test {min(tests)}, not in the simulator")
            statuses.append(
                Status("line", where, "unknown", None, "the replay did not show it", **place)  # type: ignore[arg-type]
            )
        elif mine and len(dead) == len(mine):
            bounds = [item.cycles for item in dead if item.cycles is not None]
            statuses.append(
                Status("line", where, "dead", None, dead[0].why, max(bounds, default=None), **place)  # type: ignore[arg-type]
            )
        elif any(key in found.reachable for key in mine):
            cycles = min(found.reachable[key] for key in mine if key in found.reachable)
            statuses.append(
                Status("line", where, "reachable", None, looped(cycles), cycles, **place)  # type: ignore[arg-type]
            )
        else:
            why = next((found.unknown[key] for key in mine if key in found.unknown), "")
            if not mine:
                why = NOT_OURS
            statuses.append(Status("line", where, "unknown", None, why, **place))  # type: ignore[arg-type]
    notices = []
    if moved:
        more = f" and {len(moved) - 3} more" if len(moved) > 3 else ""
        notices.append(
            f"{', '.join(moved[:3])}{more}: covered by the simulator's waves, though the counter "
            "stays 0: Verilator moves it past an assignment to the condition that it counts"
        )
    return statuses, unmatched, defects, notices


def waived_goals(goals: Mapping[Goal, Term], waivers: Waivers) -> frozenset[Goal]:
    """Return the goals that need no test, because their points are waived."""
    if not waivers.waivers:
        return frozenset()
    return frozenset(
        goal
        for goal in goals
        if (isinstance(goal, PointKey) and waivers.reason(goal.kind, place_of(goal)))
        or (isinstance(goal, Bit) and waivers.reason("toggle", f"{goal.signal}[{goal.index}]"))
    )


def settle_outside(result: Result, elsewhere: Mapping[Goal, str], waivers: Waivers) -> None:
    """Count the points that existing tests cover, and the waived ones."""
    covered = {(goal.kind, place_of(goal)): f for goal, f in elsewhere.items() if _is_key(goal)}
    lines: dict[tuple[str, int, str, str], list[PointKey]] = {}
    for key in result.model.points if elsewhere else ():
        if key.kind == "line":
            place = (key.position.file, key.position.line, key.label, key.scope)
            lines.setdefault(place, []).append(key)
    bits = {(goal.signal, goal.index): f for goal, f in elsewhere.items() if isinstance(goal, Bit)}
    for name, term in result.model.signals.items():
        for index in range(term.width):
            if (name, index) in bits:
                where = f"{name}[{index}]" if term.width > 1 else name
                covered["toggle", where] = bits[name, index]
    for at, item in enumerate(result.statuses):
        if item.status == "covered":
            continue
        known = covered.get((item.kind, item.where))
        if item.kind == "line" and known is None:
            # The simulator's column may be another one than ours.
            at_place, given, *_ = item.where.removeprefix(item.file).split(" ", 3)
            label = {"elsif": "if"}.get(given, given)
            scope = item.where.rpartition(" in ")[2] if " in " in item.where else ""
            column = int(at_place.rpartition(":")[2])
            ours = lines.get((item.file, item.line, label, scope), [])
            nearest = min(ours, key=lambda key: abs(key.position.column - column), default=None)
            known = None if nearest is None else elsewhere.get(nearest)
        if known is not None:
            result.statuses[at] = replace(
                item, status="covered", why=f"by {known}", cycles=None, test=None
            )
            continue
        reason = waivers.reason(item.kind, item.where)
        if reason is None and item.kind == "toggle" and not item.where.endswith("]"):
            reason = waivers.reason(item.kind, f"{item.where}[0]")
        if reason is not None:
            result.statuses[at] = replace(item, status="waived", why=reason, cycles=None)
    result.notices += waivers.unused()


def _is_key(goal: Goal) -> TypeGuard[PointKey]:
    return isinstance(goal, PointKey)
