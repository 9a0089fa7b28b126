"""The whole way: sources in, a replayed test set and the standing of every point out."""

from __future__ import annotations

import gc
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from hagane.symbolic.term import Term
from hagane.tools.rtl.circuit.design import Design, flatten
from hagane.tools.rtl.circuit.elaborate import Sources, elaborate
from hagane.tools.rtl.circuit.machine import PointKey
from hagane.tools.rtl.circuit.model import CycleModel, build_model
from hagane.tools.rtl.errors import InvalidDesign, SimulatorError
from hagane.tools.rtl.replay.cocotb_tests import write_cocotb, write_ports
from hagane.tools.rtl.replay.icarus import find_icarus, run_icarus
from hagane.tools.rtl.replay.reduce import described, reduce_difference
from hagane.tools.rtl.replay.replay import Difference, Replay, line_points, read_waves
from hagane.tools.rtl.replay.testbench import write_csv, write_testbench
from hagane.tools.rtl.replay.verilator import LinePoint, Run, find_verilator, run_verilator
from hagane.tools.rtl.search.assertions import (
    CHECKER_FILE,
    Standing,
    bind_assertions,
    check_names,
    explained,
    standings,
    violations,
    without_checkers,
)
from hagane.tools.rtl.search.compose import compose
from hagane.tools.rtl.search.minimise import minimise
from hagane.tools.rtl.search.search import Budget, Found, Report, Search, toggle_goals
from hagane.tools.rtl.search.simulate import Bit, Cycle, Goal, Simulator, Test, Violation, goals_of

_NOT_REPLAYED = "no simulator replayed the tests"
_MINIMISE_SECONDS = 6.0
KINDS = ("line", "branch", "statement", "condition", "toggle", "cover")


@dataclass(frozen=True, slots=True)
class Status:
    """Where a point stands: covered with a test, dead with a proof, or unknown with a reason."""

    kind: str
    where: str
    status: str
    test: int | None = None
    why: str = ""
    cycles: int | None = None
    file: str = ""
    line: int = 0


@dataclass(slots=True)
class Result:
    """The result of ``cover``."""

    top: str
    statuses: list[Status]
    tests: list[Test]
    found: Found
    model: CycleModel
    simulator: str | None
    line_covered: int
    differences: tuple[Difference, ...]
    defects: list[str]
    notices: list[str]
    seconds: float
    testbench: str
    csv: str
    cocotb: str = ""
    ports: str = ""
    outputs: list[list[dict[str, int]]] = field(default_factory=list)
    assertions: list[Standing] = field(default_factory=list)
    growth: list[tuple[int, int]] = field(default_factory=list)
    random_growth: list[tuple[int, int]] = field(default_factory=list)
    replayed: Run | None = None
    signals_compared: int = 0
    unmatched: list[str] = field(default_factory=list)

    def counts(self) -> dict[str, dict[str, int]]:
        """Return total, covered, dead and unknown for each kind of point.

        ``dead_within_cycles`` says how many of the dead are proved for so many cycles only.
        """
        table = {}
        for kind in KINDS:
            mine = [item for item in self.statuses if item.kind == kind]
            table[kind] = {
                "total": len(mine),
                **{
                    word: sum(item.status == word for item in mine)
                    for word in ("covered", "dead", "unknown")
                },
                "dead_within_cycles": sum(
                    item.status == "dead" and item.cycles is not None for item in mine
                ),
            }
        return table


def load(sources: Sources) -> tuple[Design, CycleModel]:
    """Elaborate sources and build the model of one cycle."""
    with _collector_at_rest():
        design = flatten(elaborate(sources))
        return design, build_model(design)


@contextmanager
def _collector_at_rest() -> Iterator[None]:
    """Keep the garbage collector from going through millions of terms: they make no cycles."""
    running = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if running:
            gc.enable()


def cover(
    sources: Sources,
    budget: Budget,
    *,
    assertions: Sequence[str] = (),
    seed: int = 0,
    report: Report | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> Result:
    """Find a small test set that meets every reachable point, and replay it.

    Raises:
        InvalidDesign, UnsupportedDesign, SimulatorError: See their descriptions.
    """
    started = clock()
    with tempfile.TemporaryDirectory(prefix="hagane-rtl-") as name:
        folder = Path(name)
        sources = bind_assertions(sources, assertions, folder)
        try:
            design, model = load(sources)
        except InvalidDesign as error:
            raise explained(error, assertions) from None
        check_names(design.elaborated, assertions)
        failing = violations(model, assertions)
        without_checkers(model)
        simulator = Simulator(model, failing)
        goals: dict[Goal, Term] = {Violation(key): term for key, term in failing.items()}
        goals.update(model.points.items())
        goals.update(toggle_goals(model))
        search = Search(model, simulator, goals, budget, seed, report)
        found = search.run()
        wanted = {goal for goal in goals if goal in found.covered}
        tests = _smallest(search, wanted, clock)
        tests, runs = _in_sequence(simulator, tests, found, wanted)
        testbench = write_testbench(
            model, design.ports, sources.top, simulator, tests, runs, sources.parameters
        )
        notices: list[str] = []
        run, replay = _replay(sources, simulator, tests, runs, testbench, folder, notices)
        reduced = ""
        if replay is not None and replay.differences:

            def play(trials: Sequence[Test]) -> Replay | None:
                cycles = simulator.run_all(trials)
                text = write_testbench(
                    model, design.ports, sources.top, simulator, trials, cycles, sources.parameters
                )
                return _replay(sources, simulator, trials, cycles, text, folder / "reduce", [])[1]

            resets = frozenset(reset.name for reset in model.resets)
            reduced = described(
                *reduce_difference(replay.differences, model.signals, tests, resets, play)
            )
        if replay is not None and replay.missing:
            names = sorted(replay.missing)
            shown = ", ".join(names[:5]) + (", …" if len(names) > 5 else "")
            notices.append(
                f"not in the waves of the replay, so that nothing shows how they toggle: {shown} "
                f"({len(names)} signals)"
            )
    result = _judge(sources.top, model, simulator, tests, found, run, replay)
    if reduced:
        result.defects.insert(0, reduced)
    result.testbench = testbench
    result.notices += notices
    result.csv = write_csv(model, tests)
    result.ports = write_ports(model, design.ports, sources.top, sources.parameters)
    result.cocotb = write_cocotb(
        model, simulator, tests, runs, sources.top, wrapped=bool(result.ports)
    )
    result.growth = [(0, 0), *found.history]
    result.random_growth = search.random_growth(max(64, search.tried))
    result.seconds = clock() - started
    return result


def _smallest(search: Search, wanted: set[Goal], clock: Callable[[], float]) -> list[Test]:
    """Return one test composed for everything, else few of those found; rows left out of either."""
    stop = clock() + _MINIMISE_SECONDS
    simulator, found, prologue = search.simulator, search.found, len(search.prologue)

    def more() -> bool:
        return clock() < stop

    whole = compose(search, wanted, more) if simulator.model.sequential and wanted else None
    if whole is not None:
        return minimise(simulator, [whole], [wanted], wanted, prologue, more)
    return minimise(simulator, found.tests, found.met, wanted, prologue, more)


def _in_sequence(
    simulator: Simulator, tests: list[Test], found: Found, wanted: set[Goal]
) -> tuple[list[Test], list[list[Cycle]]]:
    """Run tests one after the other; repeat in full those that need a state now overwritten.

    What no reset restores, a memory say, a test finds as the one before left it.
    """
    runs = simulator.run_all(tests)
    for _ in range(3):
        met = goals_of(simulator, [cycle for cycles in runs for cycle in cycles])
        lost = wanted - met
        again = {found.covered[goal] for goal in lost}
        if not again:
            break
        tests = [*tests, *(found.tests[index] for index in sorted(again))]
        runs = simulator.run_all(tests)
    return tests, runs


def _replay(
    sources: Sources,
    simulator: Simulator,
    tests: Sequence[Test],
    runs: Sequence[Sequence[Cycle]],
    testbench: str,
    folder: Path,
    notices: list[str],
) -> tuple[Run | None, Replay | None]:
    """Replay in Verilator, else in Icarus, else not at all; ``notices`` receives why."""
    if not tests:
        return None, None
    folder.mkdir(exist_ok=True)
    path = folder / "tb.sv"
    path.write_text(testbench, encoding="utf-8")
    verilator, icarus = find_verilator(), find_icarus()
    attempts: list[Callable[[], Run]] = []
    if verilator is not None:
        attempts.append(lambda: run_verilator(verilator, sources, path, folder / "verilator"))
    if icarus is not None:
        attempts.append(lambda: run_icarus(icarus, sources, path, folder / "icarus"))
    for attempt in attempts:
        try:
            run = attempt()
        except SimulatorError as error:
            notices.append(f"not replayed there: {error}")
            continue
        return run, read_waves(run, simulator, tests, runs)
    return None, None


def _judge(
    top: str,
    model: CycleModel,
    simulator: Simulator,
    tests: list[Test],
    found: Found,
    run: Run | None,
    replay: Replay | None,
) -> Result:
    """Decide each point from the replay; what the replay did not show is not covered."""
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
    defects = [str(item) for item in (replay.differences if replay else ())]
    statuses = []
    for key in model.points:
        if key.kind != "line":
            statuses.append(_point(key, reached, found, replay is not None))
    statuses += _toggles(model, reached, found, replay is not None)
    unmatched: list[str] = []
    line_covered = 0
    if run is not None and run.counts_lines:
        lines, unmatched, line_defects = _lines(model, simulator, run, reached, found)
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
        notices=list(model.notices),
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


def _point(key: PointKey, reached: Mapping[Goal, int], found: Found, replayed: bool) -> Status:
    where = f"{key.position} {key.label}" + (f" in {key.scope}" if key.scope else "")
    common = {"file": key.position.file, "line": key.position.line}
    if key in reached:
        return Status(key.kind, where, "covered", reached[key], **common)  # type: ignore[arg-type]
    if key in found.dead:
        dead = found.dead[key]
        return Status(key.kind, where, "dead", None, dead.why, dead.cycles, **common)  # type: ignore[arg-type]
    why = found.unknown.get(key, "")
    if key in found.covered:
        why = "the replay did not show it" if replayed else _NOT_REPLAYED
    return Status(key.kind, where, "unknown", None, why, **common)  # type: ignore[arg-type]


def _toggles(
    model: CycleModel, reached: Mapping[Goal, int], found: Found, replayed: bool
) -> list[Status]:
    statuses = []
    for name, term in model.signals.items():
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
) -> tuple[list[Status], list[str], list[str]]:
    """Return the standing of the simulator's own line points."""
    keys = list(model.points)
    matched, unmatched = line_points(simulator, run)
    statuses, defects = [], []
    for point, count in run.lines.items():
        assert isinstance(point, LinePoint)
        if Path(point.position.file).name == CHECKER_FILE:
            continue
        mine = [keys[index] for index in matched[point]]
        where = f"{point.position} {point.label}" + (f" in {point.scope}" if point.scope else "")
        place = {"file": point.position.file, "line": point.position.line}
        tests = [reached[key] for key in mine if key in reached]
        dead = [found.dead[key] for key in mine if key in found.dead]
        if count:
            test = min(tests) if tests else None
            statuses.append(Status("line", where, "covered", test, **place))  # type: ignore[arg-type]
            if mine and len(dead) == len(mine) and all(item.cycles is None for item in dead):
                defects.append(f"{where}: proved dead, yet the simulator reached it")
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
        else:
            why = next((found.unknown[key] for key in mine if key in found.unknown), "")
            if not mine:
                why = "hagane has no point at this place"
            statuses.append(Status("line", where, "unknown", None, why, **place))  # type: ignore[arg-type]
    return statuses, unmatched, defects


def to_json(result: Result) -> dict[str, object]:
    """Return the result in the form of ``hagane rtl cover --json``."""
    return {
        "top": result.top,
        "points": result.counts(),
        "tests": len(result.tests),
        "replayed": {"simulator": result.simulator, "line_covered": result.line_covered},
        "seconds": round(result.seconds, 3),
        "cycles": sum(len(test) for test in result.tests),
        "rounds": result.found.rounds,
        "assertions": [
            {
                "assert": item.name,
                "status": item.status,
                "test": item.test,
                "cycle": item.cycle,
                "inputs": item.inputs,
                "why": item.why,
            }
            for item in result.assertions
        ],
        "defects": result.defects,
        "notices": result.notices,
        "unknown": [
            {"kind": item.kind, "where": item.where, "why": item.why}
            for item in result.statuses
            if item.status == "unknown"
        ],
    }


__all__ = ["KINDS", "Result", "Status", "cover", "load", "to_json"]
