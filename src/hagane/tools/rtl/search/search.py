"""The search: long random runs, a solver for the points they missed, and proofs for the rest."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from hagane.errors import NoCompiler
from hagane.symbolic import bitvector as bv
from hagane.symbolic.logic import negate
from hagane.symbolic.smt import Solver
from hagane.symbolic.term import FALSE, TRUE, Term, postorder
from hagane.tools.rtl.circuit.cycle import CycleModel
from hagane.tools.rtl.circuit.simulate import Bit, Dead, Goal, Row, Simulator, Test, Violation
from hagane.tools.rtl.compiled.engine import Engine, Words
from hagane.tools.rtl.compiled.plain import PlainEngine
from hagane.tools.rtl.search.corpus import Corpus, Node
from hagane.tools.rtl.search.patterns import patterns
from hagane.tools.rtl.search.products import HARD, solve

_BURST = 50_000  # cycles between two looks at the clock
_LENGTH = 256  # rows of a random run that finds nothing
_STARTS = 512
_REPLAYED_VALUES = 40_000  # of signals, in a second of the whole time
_FIRST_VECTORS = 200_000


@dataclass(frozen=True, slots=True)
class Budget:
    """How long everything may take, and how many cycles after reset the proofs look ahead.

    ``vectors`` says how many random rows are run at least where anything stays open.
    """

    seconds: float = 60.0
    cycles: int = 24
    query_seconds: float = 5.0
    vectors: int = 1_000_000

    def replayed_rows(self, signals: int) -> int:
        """Return how many rows of a circuit a simulator replays in its share of the time."""
        return int(_REPLAYED_VALUES * self.seconds / (20 + signals))


@dataclass(slots=True)
class Found:
    """The findings of the search.

    ``reachable`` are goals that no run met, but a loop of so many cycles leads to.
    """

    tests: list[Test] = field(default_factory=list)
    covered: dict[Goal, int] = field(default_factory=dict)
    dead: dict[Goal, Dead] = field(default_factory=dict)
    unknown: dict[Goal, str] = field(default_factory=dict)
    reachable: dict[Goal, int] = field(default_factory=dict)
    random_vectors: int = 0
    rounds: int = 0
    history: list[tuple[int, int]] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)


Report = Callable[[int, int, int], None]


class Search:
    """One search over one model; deterministic for a seed, up to its time limit.

    Args:
        model: The circuit.
        simulator: Its runs with plain numbers.
        goals: Points to reach, with conditions.
        budget: Limits.
        seed: Of the random rows.
        report: Told how many goals are covered, dead and open.
        stop: When to end, on the monotonic clock; ``budget.seconds`` from now where it is None.
        skipped: Goals that need no test.
        any_start: Whether proofs hold for all values that registers without one may begin with.
    """

    def __init__(
        self,
        model: CycleModel,
        simulator: Simulator,
        goals: Mapping[Goal, Term],
        budget: Budget,
        seed: int = 0,
        report: Report | None = None,
        stop: float | None = None,
        skipped: frozenset[Goal] = frozenset(),
        any_start: bool = False,
    ):
        self.model = model
        self.simulator = simulator
        self.goals = {goal: term for goal, term in goals.items() if goal not in skipped}
        self.budget = budget
        self.any_start = any_start
        self.random = random.Random(seed)
        self.found = Found()
        self._report = report
        self._stop = time.monotonic() + budget.seconds if stop is None else stop
        self.prologue = self._prologue()
        try:
            self.engine: Engine = Engine(model, self.goals, patterns(model))
        except NoCompiler as error:
            self.found.notices.append(f"runs are not compiled, and slower: {error}")
            self.engine = PlainEngine(model, self.goals, simulator)
        self.corpus = Corpus(self.engine, self.engine.rows(self.prologue))
        self._dead_bits = 0
        self._told = 0

    def run(self) -> Found:
        """Search until every goal is covered or dead, or time is up."""
        for goal, term in self.goals.items():
            if term is FALSE:
                self.found.dead[goal] = Dead(None, "its condition is false whatever the inputs")
        self.tell()
        if self.model.sequential:
            from hagane.tools.rtl.search.sequential import explore

            explore(self)
        else:
            self._combinational_phase()
        return self.found

    # The open goals

    @property
    def open(self) -> int:
        """The bits of the goals that are neither met nor dead."""
        corpus = self.corpus
        return self.engine.every & ~corpus.met & ~corpus.jumped & ~self._dead_bits

    def open_goals(self) -> list[Goal]:
        """Return the goals that are neither covered nor dead."""
        left = self.open
        return [goal for goal, bit in self.engine.bit_of.items() if left >> bit & 1]

    def bury(self, goal: Goal, dead: Dead) -> None:
        """Note that a goal is dead, and all that share its condition."""
        bit = self.engine.bit_of[goal]
        for same in self.engine.goals_at[bit]:
            self.found.dead[same] = dead
            self.found.unknown.pop(same, None)
        if dead.cycles is None:
            self._dead_bits |= 1 << bit

    def excuse(self, goal: Goal, why: str) -> None:
        """Note why a goal is unknown, and all that share its condition."""
        for same in self.engine.goals_at[self.engine.bit_of[goal]]:
            if same not in self.found.dead:
                self.found.unknown[same] = why

    def time_left(self) -> float:
        """Return the seconds left."""
        return self._stop - time.monotonic()

    def tell(self) -> None:
        """Report how far the search is."""
        covered = sum(len(self.engine.goals_at[bit]) for bit in _positions(self.corpus.met))
        if covered != self._told:
            self._told = covered
            self.found.history.append((self.found.random_vectors, covered))
        if self._report is not None:
            dead = len(self.found.dead)
            self._report(covered, dead, len(self.goals) - covered - dead)

    def finish(self) -> list[Words]:
        """Fill ``found`` with few tests for all goals; return the same tests as words."""
        nodes = self.corpus.fewest(self.corpus.met & self.engine.every)
        tests = [node.path() for node in nodes]
        if not tests and any(term is TRUE for term in self.goals.values()):
            tests = [self._any_row()]
        found = self.found
        found.tests = [self.engine.test(rows) for rows in tests]
        met = [node.met for node in nodes]
        for goal, term in self.goals.items():
            bit = self.engine.bit_of.get(goal)
            if bit is None:
                if term is TRUE:
                    found.covered[goal] = 0
                continue
            for number, bits in enumerate(met):
                if bits >> bit & 1:
                    found.covered[goal] = number
                    found.dead.pop(goal, None)
                    found.unknown.pop(goal, None)
                    break
        for node in self.corpus.nodes:
            for goal in self.engine.goals(node.met) if node.jump else ():
                if goal not in found.covered and goal not in found.reachable:
                    found.reachable[goal] = node.length
                    found.dead.pop(goal, None)
                    found.unknown.pop(goal, None)
        for goal in self.goals:
            if not any(goal in known for known in (found.covered, found.dead, found.reachable)):
                found.unknown.setdefault(goal, "the time limit was met before it was tried")
        return tests

    def _any_row(self) -> Words:
        rows = self.engine.rows((*self.prologue, self.random_row()))
        return rows if len(rows) else np.zeros((1, self.engine.row_words), np.uint64)

    # Runs

    def _prologue(self) -> Test:
        if not self.model.clocks:
            return ()
        row = {reset.name: reset.active for reset in self.model.resets}
        row.update(dict.fromkeys(self.model.ticks, 1))
        # Without a reset, a row of zeros stands for the cycle that is not counted.
        return (row, row) if row else ({},)

    def random_row(self) -> Row:
        """Return random inputs, with resets at rest."""
        row = {item.name: self.random.getrandbits(item.width) for item in self.model.inputs}
        row.update({reset.name: 1 - reset.active for reset in self.model.resets})
        return row

    def complete(self, assignment: Mapping[str, int], suffix: str) -> Row:
        """Return the inputs that a solver chose, the others random."""
        row = dict(self.random_row())
        for item in self.model.inputs:
            if item.name + suffix in assignment:
                row[item.name] = assignment[item.name + suffix]
        return row

    def try_rows(self, parent: Node, rows: Iterable[Row]) -> Node | None:
        """Run rows from where a node ends; keep them if they meet a new goal."""
        words = self.engine.rows(list(rows))
        self.engine.keep_rows(words)
        return self.corpus.add(parent, words)

    def burst(self, seconds: float, vectors: int | None = None) -> int:
        """Run random rows from the states reached; return how many runs met something new."""
        stop = time.monotonic() + min(seconds, self.time_left())
        fresh, done = 0, 0
        while self.open and time.monotonic() < stop and (vectors is None or done < vectors):
            starts, nodes = self.corpus.starts(_STARTS)
            cycles, records, _ = self.engine.burst(
                starts, self.random.getrandbits(64), self.engine.pace(_BURST),
                _LENGTH if self.model.sequential else 64,
                self.corpus.met | self.corpus.jumped | self._dead_bits,
            )  # fmt: skip
            done += cycles
            self.found.random_vectors += cycles
            for record in records:
                rows = self.engine.random_rows(record.seed, record.cycles)
                if not self.corpus.sequential:
                    rows = rows[-1:]
                fresh += self.corpus.add(nodes[record.start], rows) is not None
            if records:
                self.tell()
        return fresh

    def random_growth(self, seconds: float) -> list[tuple[int, int]]:
        """Return how many goals random rows from reset alone meet, over the number of rows."""
        stop, met, done, growth = time.monotonic() + seconds, 0, 0, [(0, 0)]
        while done < max(1_000, self.found.random_vectors) and time.monotonic() < stop:
            cycles, _, met = self.engine.burst(
                self.corpus.root.state[None, :], self.random.getrandbits(64),
                self.engine.pace(_BURST) // 50, _LENGTH, met,
            )  # fmt: skip
            done += cycles
            goals = sum(len(self.engine.goals_at[bit]) for bit in _positions(met))
            growth.append((done, goals))
        return growth

    # Circuits without state

    def _combinational_phase(self) -> None:
        self.burst(self.time_left() * 0.3, _FIRST_VECTORS)
        solver = Solver("rtl")
        while self.open and self.time_left() > 0:
            self.found.rounds += 1
            before = self.corpus.met
            for goal in nearest_first(self.open_goals(), self.goals):
                if self.time_left() <= 0:
                    return
                if not self.open >> self.engine.bit_of[goal] & 1 or goal in self.found.unknown:
                    continue
                answer = solve(self, solver, self.goals[goal])
                if answer.status == "unsat":
                    self.bury(goal, Dead(None, "unsatisfiable for every input"))
                elif answer.status == "sat":
                    row = self.complete(answer.assignment or {}, "")
                    self.try_rows(self.corpus.root, [row])
                    if self.open >> self.engine.bit_of[goal] & 1:
                        self.excuse(goal, "the solver's inputs do not reach it in a run")
                else:
                    self.excuse(goal, f"the solver gave up: {answer.reason}")
            self.tell()
            if self.corpus.met == before:
                break
        self.burst(self.time_left(), max(0, self.budget.vectors - self.found.random_vectors))


def nearest_first(goals: Iterable[Goal], terms: Mapping[Goal, Term]) -> list[Goal]:
    """Order goals by how much of their condition is left to satisfy."""

    def distance(goal: Goal) -> int:
        if isinstance(goal, Violation):
            return 0
        term = terms[goal]
        return len(term.args) if term.op == "and" else 1

    return sorted(goals, key=distance)


def toggle_goals(model: CycleModel) -> dict[Goal, Term]:
    """Return the goals of toggle coverage: every bit of every signal takes either value."""
    goals: dict[Goal, Term] = {}
    for name, term in model.toggling.items():
        for index in range(term.width):
            bit = bv.to_bool(bv.extract(term, index, index))
            goals[Bit(name, index, 1)] = bit
            goals[Bit(name, index, 0)] = negate(bit)
    return goals


def is_hard(term: Term) -> bool:
    """Return whether a condition has products or divisions below it."""
    return any(node.op in HARD for node in postorder((term,)))


def _positions(bits: int) -> list[int]:
    text = bin(bits)[:1:-1]
    found, at = [], text.find("1")
    while at >= 0:
        found.append(at)
        at = text.find("1", at + 1)
    return found
