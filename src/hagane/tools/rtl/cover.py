"""The whole way: sources in, a replayed test set and the standing of every point out."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from hagane.machine.collector import collector_at_rest
from hagane.symbolic.term import Term
from hagane.tools.rtl.circuit.cycle import CycleModel
from hagane.tools.rtl.circuit.design import Design, flatten
from hagane.tools.rtl.circuit.elaborate import Sources, elaborate
from hagane.tools.rtl.circuit.model import build_model
from hagane.tools.rtl.circuit.simulate import Cycle, Goal, Simulator, Test, Violation
from hagane.tools.rtl.compiled.engine import Words
from hagane.tools.rtl.errors import InvalidDesign, SimulatorError
from hagane.tools.rtl.judge import judge, settle_outside, waived_goals
from hagane.tools.rtl.merged import covered_elsewhere
from hagane.tools.rtl.replay.blanked import without_properties
from hagane.tools.rtl.replay.cocotb_tests import write_cocotb, write_ports
from hagane.tools.rtl.replay.icarus import find_icarus
from hagane.tools.rtl.replay.player import Player, write_player
from hagane.tools.rtl.replay.reduce import described, reduce_difference
from hagane.tools.rtl.replay.replay import Replay, read_waves
from hagane.tools.rtl.replay.testbench import write_csv, write_testbench
from hagane.tools.rtl.replay.verilator import Run, find_verilator
from hagane.tools.rtl.result import KINDS, Result, Status, to_json
from hagane.tools.rtl.search.assertions import (
    bind_assertions,
    check_names,
    explained,
    violations,
    without_checkers,
)
from hagane.tools.rtl.search.certain import certain_tests
from hagane.tools.rtl.search.compose import compose
from hagane.tools.rtl.search.minimise import minimise
from hagane.tools.rtl.search.search import Budget, Found, Report, Search, toggle_goals
from hagane.tools.rtl.uncalled import settle_uncalled
from hagane.tools.rtl.unread import ports_alone, random_tests
from hagane.tools.rtl.waivers import Waivers
from hagane.tools.rtl.within import TimeUp, within

_MODEL = 0.5  # of the time, for the model of a cycle
_SEARCH = 0.72  # of the time; the rest is for smaller tests and the replay
_MINIMISE = 0.8
_MINIMISE_SECONDS = 6.0
_CERTAIN = 0.4  # of what is left, for tests that hold for all starts


def load(sources: Sources) -> tuple[Design, CycleModel]:
    """Elaborate sources and build the model of one cycle."""
    with collector_at_rest():
        design = flatten(elaborate(sources))
        return design, build_model(design)


def cover(
    sources: Sources,
    budget: Budget,
    *,
    assertions: Sequence[str] = (),
    seed: int = 0,
    report: Report | None = None,
    clock: Callable[[], float] = time.monotonic,
    covered: Sequence[Path] = (),
    waivers: Waivers | None = None,
    any_start: bool = False,
) -> Result:
    """Find a small test set that meets every reachable point, and replay it.

    Args:
        sources: The circuit.
        budget: How long everything may take, and how far proofs look ahead.
        assertions: Expressions over names of the top module that should always hold.
        seed: Of random rows.
        report: Told how many points are covered, dead and open.
        clock: Returns seconds.
        covered: Coverage of existing tests, whose points are not sought.
        waivers: Points that need no test.
        any_start: Whether registers without an initial value begin with any, and not with zeros.

    Raises:
        InvalidDesign, UnsupportedDesign, SimulatorError: See their descriptions.
    """
    started = clock()
    with tempfile.TemporaryDirectory(prefix="hagane-rtl-") as name:
        folder = Path(name)
        sources = bind_assertions(sources, assertions, folder)
        model = None
        with collector_at_rest():
            try:
                design = flatten(elaborate(sources))
                with suppress(TimeUp), within(_MODEL * budget.seconds + started - clock()):
                    model = build_model(design)
            except InvalidDesign as error:
                raise explained(error, assertions) from None
        if model is None:
            return _unread(sources, design, folder, started, budget, seed, clock)
        check_names(design.elaborated, assertions)
        failing = violations(model, assertions)
        without_checkers(model)
        simulator = Simulator(model, failing)
        stage = _Stage(sources, design, model, simulator, folder, started, budget)
        with stage.replaying():
            goals: dict[Goal, Term] = {Violation(key): term for key, term in failing.items()}
            goals.update(model.points.items())
            goals.update(toggle_goals(model))
            stop = started + _SEARCH * budget.seconds
            stage.elsewhere = covered_elsewhere(covered, model, sources.top)
            stage.waivers = Waivers() if waivers is None else waivers
            skipped = frozenset(stage.elsewhere) | waived_goals(goals, stage.waivers)
            search: Search | None = None
            with suppress(TimeUp), within(stop - clock()):
                search = Search(
                    model, simulator, goals, budget, seed, report, stop, skipped, any_start
                )
                search.run()
            if search is not None:
                return _finish(stage, search, clock)
        return _unread(sources, design, folder, started, budget, seed, clock)


def _unread(
    sources: Sources,
    design: Design,
    folder: Path,
    started: float,
    budget: Budget,
    seed: int,
    clock: Callable[[], float],
) -> Result:
    """Return the simulator's counts on random rows: the circuit took too long to read."""
    model = ports_alone(design)
    simulator = Simulator(model, {})
    stage = _Stage(sources, design, model, simulator, folder / "unread", started, budget)
    tests = random_tests(model, seed)
    runs = [[Cycle((), (), (), {}) for _ in test] for test in tests]
    with stage.replaying():
        run, _ = stage.replay(tests, runs)
    result = judge(sources.top, model, simulator, tests, Found(), run, None)
    result.notices += [
        f"the circuit was not read within the time (--seconds {budget.seconds:g}): only what the "
        "simulator counts of random rows is reported, nothing was searched for or proved",
        *stage.notices,
    ]
    result.csv = write_csv(model, tests)
    result.seconds = clock() - started
    return result


def _finish(stage: _Stage, search: Search, clock: Callable[[], float]) -> Result:
    """Make the tests few and short, replay them, and judge every point."""
    model, simulator, found, sources = stage.model, stage.simulator, search.found, stage.sources
    words = _smallest(search, search.finish(), stage, clock)
    tests, runs = _in_sequence(search, words)
    sure = None
    if search.any_start:
        left = max(2.0, _CERTAIN * (stage.started + stage.budget.seconds - clock()))
        tests, sure, notice = certain_tests(search, tests, left)
        runs = _runs(search, tests)
        stage.notices.append(notice)
    run, replay = stage.replay(tests, runs)
    reduced = ""
    if replay is not None and replay.differences:

        def play(trials: Sequence[Test]) -> Replay | None:
            return stage.replay(trials, simulator.run_all(trials))[1]

        resets = frozenset(reset.name for reset in model.resets)
        reduced = described(
            *reduce_difference(replay.differences, model.signals, tests, resets, play)
        )
    if replay is not None and replay.missing:
        names = sorted(replay.missing)
        shown = ", ".join(names[:5]) + (", …" if len(names) > 5 else "")
        stage.notices.append(
            f"not in the waves of the replay, so that nothing shows how they toggle: {shown} "
            f"({len(names)} signals)"
        )
    result = judge(sources.top, model, simulator, tests, found, run, replay, sure)
    settle_uncalled(result, stage.design.elaborated)
    settle_outside(result, stage.elsewhere, stage.waivers)
    if reduced:
        result.defects.insert(0, reduced)
    result.testbench = write_testbench(
        model, stage.design.ports, sources.top, simulator, tests, runs, sources.parameters
    )
    result.notices += [*found.notices, *stage.notices]
    result.csv = write_csv(model, tests)
    result.ports = write_ports(model, stage.design.ports, sources.top, sources.parameters)
    result.cocotb = write_cocotb(
        model, simulator, tests, runs, sources.top, wrapped=bool(result.ports)
    )
    result.growth = [(0, 0), *found.history]
    result.random_growth = search.random_growth(1.0)
    result.seconds = clock() - stage.started
    return result


def _smallest(
    search: Search, tests: list[Words], stage: _Stage, clock: Callable[[], float]
) -> list[Words]:
    """Return one test composed for everything, else few of those found; rows left out of either."""
    stop = min(clock() + _MINIMISE_SECONDS, stage.started + _MINIMISE * stage.budget.seconds)
    engine, prologue = search.engine, len(search.prologue)
    wanted = search.corpus.met & engine.every

    def more() -> bool:
        return clock() < stop

    whole = compose(search, wanted, more) if search.model.sequential and wanted else None
    if whole is not None:
        tests = [engine.rows(whole)]
    short = minimise(engine, tests, wanted, prologue, more) if wanted else tests
    return stage.bounded(short)


def _in_sequence(search: Search, tests: list[Words]) -> tuple[list[Test], list[list[Cycle]]]:
    """Run tests one after the other; repeat a test in full if it needs a state now overwritten.

    State that no reset restores, a memory say, a test finds as the one before left it.
    """
    engine = search.engine
    wanted = 0
    for rows in tests:
        wanted |= engine.run(rows, engine.warm(rows[0]))[0]
    for _ in range(3):
        met, state = 0, engine.warm(tests[0][0]) if tests else None
        for rows in tests:
            assert state is not None
            bits, state = engine.run(rows, state)
            met |= bits
        lost = wanted & ~met
        again = search.corpus.fewest(lost) if lost else []
        if not again:
            break
        tests = [*tests, *(node.path() for node in again)]
    kept = [engine.test(rows) for rows in tests]
    return kept, _runs(search, kept)


def _runs(search: Search, tests: Sequence[Test]) -> list[list[Cycle]]:
    """Return the cycles of tests, one after the other."""
    engine, runs = search.engine, []
    words = [engine.rows(test) for test in tests]
    state = engine.warm(words[0][0]) if words else np.zeros(0, np.uint64)
    for rows in words:
        cycles, state = engine.trace(rows, state)
        runs.append(cycles)
    return runs


@dataclass(slots=True)
class _Stage:
    """A circuit and the simulators that replay its tests, built while the search runs."""

    sources: Sources
    design: Design
    model: CycleModel
    simulator: Simulator
    folder: Path
    started: float
    budget: Budget
    notices: list[str] = field(default_factory=list)
    elsewhere: dict[Goal, str] = field(default_factory=dict)
    waivers: Waivers = field(default_factory=Waivers)
    players: list[Player] = field(default_factory=list)
    chosen: Player | None = None

    @contextmanager
    def replaying(self) -> Iterator[None]:
        """Start to build the simulators; end the builds that still run."""
        bench = write_player(
            self.model, self.design.ports, self.sources.top, self.sources.parameters
        )
        verilator, icarus = find_verilator(), find_icarus()
        sources = without_properties(self.sources, self.folder / "sources")
        try:
            if verilator is not None:
                folder = self.folder / "verilator"
                self.players.append(Player("verilator", (verilator,), sources, bench, folder))
            if icarus is not None:
                folder = self.folder / "icarus"
                self.players.append(Player("icarus", icarus, sources, bench, folder))
            yield
        finally:
            for player in self.players:
                player.close()

    def replay(
        self, tests: Sequence[Test], runs: Sequence[Sequence[Cycle]]
    ) -> tuple[Run | None, Replay | None]:
        """Replay in Verilator, else in Icarus, else not at all; ``notices`` receives why."""
        if not tests:
            return None, None
        for player in [self.chosen] if self.chosen is not None else self.players:
            left = max(5.0, self.started + self.budget.seconds - time.monotonic())
            try:
                run = player.run(self.model, tests, left)
            except SimulatorError as error:
                self.notices.append(f"not replayed there: {error}")
                continue
            self.chosen = player
            return run, read_waves(run, self.simulator, tests, runs)
        return None, None

    def bounded(self, tests: list[Words]) -> list[Words]:
        """Return as many of the tests as can be replayed within the time."""
        most = self.budget.replayed_rows(len(self.model.signals))
        rows = 0
        kept: list[Words] = []
        for test in sorted(tests, key=len):
            if rows + len(test) > most and kept:
                left = sum(map(len, tests)) - rows
                self.notices.append(
                    f"{left} rows of tests are left out: {most} are what can be replayed within "
                    f"--seconds {self.budget.seconds:g}"
                )
                break
            kept.append(test)
            rows += len(test)
        return kept


__all__ = ["KINDS", "Result", "Status", "cover", "load", "to_json"]
