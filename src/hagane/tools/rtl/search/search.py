"""The search: random tests first, then a solver for what they missed."""

from __future__ import annotations

import random
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from hagane.symbolic import bitvector as bv
from hagane.symbolic.interpret import Substitution
from hagane.symbolic.logic import equal, negate
from hagane.symbolic.smt import Answer, Solver
from hagane.symbolic.term import FALSE, Term, const, postorder
from hagane.tools.rtl.circuit.model import CycleModel
from hagane.tools.rtl.search.simulate import (
    Bit,
    Dead,
    Goal,
    Row,
    Simulator,
    Test,
    Violation,
    goals_of,
)

_RESET_AGAIN = 0.04
_RECENT = 8
_HARD = frozenset({"mul", "udiv", "sdiv", "urem", "srem"})


@dataclass(frozen=True, slots=True)
class Budget:
    """How long the search may take, and how many cycles after reset it looks ahead."""

    seconds: float = 60.0
    cycles: int = 24
    query_seconds: float = 5.0


@dataclass(slots=True)
class Found:
    """The findings of the search so far."""

    tests: list[Test] = field(default_factory=list)
    covered: dict[Goal, int] = field(default_factory=dict)
    dead: dict[Goal, Dead] = field(default_factory=dict)
    unknown: dict[Goal, str] = field(default_factory=dict)
    random_tests: int = 0
    random_covered: int = 0
    rounds: int = 0
    met: list[set[Goal]] = field(default_factory=list)
    history: list[tuple[int, int]] = field(default_factory=list)


Report = Callable[[int, int, int], None]


class Search:
    """One search over one model; deterministic for a seed, up to its time limit."""

    def __init__(
        self,
        model: CycleModel,
        simulator: Simulator,
        goals: Mapping[Goal, Term],
        budget: Budget,
        seed: int = 0,
        report: Report | None = None,
    ):
        self.model = model
        self.simulator = simulator
        self.goals = goals
        self.budget = budget
        self.random = random.Random(seed)
        self.found = Found()
        self.tried = 0
        self._report = report
        self._deadline = time.monotonic() + budget.seconds
        self.prologue = self._prologue()
        self._resets = {reset.name: reset.active for reset in model.resets}

    def run(self) -> Found:
        """Search until every goal is covered or dead, or time is up."""
        for goal, term in self.goals.items():
            if term is FALSE:
                self.found.dead[goal] = Dead(None, "its condition is false whatever the inputs")
        self._random_phase()
        if self.model.sequential:
            self._sequential_phase()
        else:
            self._combinational_phase()
        for goal in self.open_goals():
            self.found.unknown.setdefault(goal, "the time limit was met before it was tried")
        return self.found

    def open_goals(self) -> list[Goal]:
        """Return the goals that are neither covered nor dead."""
        found = self.found
        return [g for g in self.goals if g not in found.covered and g not in found.dead]

    def time_left(self) -> float:
        """Return the seconds left."""
        return self._deadline - time.monotonic()

    def tell(self) -> None:
        """Report how far the search is."""
        if self._report is not None:
            covered, dead = len(self.found.covered), len(self.found.dead)
            self._report(covered, dead, len(self.goals) - covered - dead)

    # Concrete runs

    def _prologue(self) -> Test:
        if not self.model.clocks:
            return ()
        row = {reset.name: reset.active for reset in self.model.resets}
        return (row, row) if row else ()

    def random_row(self) -> Row:
        """Return random inputs, with resets at rest."""
        row = {item.name: self._random_bits(item.width) for item in self.model.inputs}
        for reset in self.model.resets:
            again = not reset.asynchronous and self.random.random() < _RESET_AGAIN
            row[reset.name] = reset.active if again else 1 - reset.active
        return row

    def _random_bits(self, width: int) -> int:
        choice = self.random.random()
        if width > 1 and choice < 0.1:
            return self.random.choice((0, (1 << width) - 1, 1, 1 << (width - 1)))
        return self.random.getrandbits(width)

    def try_test(self, test: Test) -> int:
        """Run a test, keep it if it meets a new goal; return how many new ones it met."""
        cycles = self.simulator.run(test)
        self.tried += 1
        if not cycles:
            return 0
        met = goals_of(self.simulator, cycles)
        return self.keep(test, met)

    def keep(self, test: Test, met: set[Goal]) -> int:
        """Keep a test that meets ``met`` if any of it is new; return how many are."""
        covered = self.found.covered
        fresh = [goal for goal in met if goal in self.goals and goal not in covered]
        if fresh:
            for goal in fresh:
                covered[goal] = len(self.found.tests)
                self.found.unknown.pop(goal, None)
                self.found.dead.pop(goal, None)
            self.found.tests.append(test)
            self.found.history.append((self.tried, len(covered)))
            self.found.met.append(met & self.goals.keys())
            self.tell()
        return len(fresh)

    def _random_phase(self) -> None:
        length = 1 if not self.model.sequential else max(8, self.budget.cycles)
        stop = time.monotonic() + min(3.0, self.budget.seconds * 0.15)
        barren = 0
        # A walk meets a condition a cycle; random rows that do worse only make the set longer.
        alike = len(self.goals) / max(1, len(set(self.goals.values())))
        enough = _RECENT * length * alike
        recent = deque([enough] * _RECENT, _RECENT)
        while barren < 64 and time.monotonic() < stop:
            left = len(self.open_goals())
            if not left or (left > enough and 2 * sum(recent) < enough):
                break
            test = (*self.prologue, *(self.random_row() for _ in range(length)))
            fresh = self.try_test(test)
            recent.append(fresh)
            barren = 0 if fresh else barren + 1
            self.found.random_tests += 1
        self.found.random_covered = len(self.found.covered)

    def random_growth(self, tests: int) -> list[tuple[int, int]]:
        """Return how many goals random tests alone meet, over the number of tests."""
        stop = time.monotonic() + 1.0
        met: set[Goal] = set()
        growth = [(0, 0)]
        length = 1 if not self.model.sequential else max(8, self.budget.cycles)
        for number in range(1, tests + 1):
            if time.monotonic() > stop:
                break
            test = (*self.prologue, *(self.random_row() for _ in range(length)))
            before = len(met)
            met |= goals_of(self.simulator, self.simulator.run(test)) & self.goals.keys()
            if len(met) > before or number == tests:
                growth.append((number, len(met)))
        return growth

    # Solving

    def complete(self, assignment: Mapping[str, int], suffix: str) -> Row:
        """Return the inputs that a solver chose, the others random."""
        row = dict(self.random_row())
        for item in self.model.inputs:
            if item.name + suffix in assignment:
                row[item.name] = assignment[item.name + suffix]
        return row

    def _combinational_phase(self) -> None:
        solver = Solver("rtl")
        while self.open_goals() and self.time_left() > 0:
            self.found.rounds += 1
            progress = False
            for goal in self.nearest_first(self.open_goals()):
                if goal in self.found.covered or goal in self.found.unknown:
                    continue
                if self.time_left() <= 0:
                    return
                answer = self.solve(solver, self.goals[goal])
                if answer.status == "unsat":
                    self.found.dead[goal] = Dead(None, "unsatisfiable for every input")
                    self.tell()
                elif answer.status == "sat":
                    before = len(self.found.covered)
                    self.try_test((self.complete(answer.assignment or {}, ""),))
                    progress = progress or len(self.found.covered) > before
                    if goal not in self.found.covered:
                        self.found.unknown[goal] = "the solver's inputs do not reach it in a run"
                else:
                    self.found.unknown[goal] = f"the solver gave up: {answer.reason}"
            if not progress:
                return

    def solve(self, solver: Solver, term: Term) -> Answer:
        """Ask the solver; where it takes too long, with one factor of products made concrete."""
        hard = [node for node in postorder((term,)) if node.op in _HARD]
        limit = min(self.budget.query_seconds, max(0.1, self.time_left()))
        answer = solver.check((term,), seconds=limit if not hard else min(limit, 2.0))
        if answer.status != "unknown" or not hard:
            return answer
        for _ in range(12):
            if self.time_left() <= 0:
                break
            attempt = self._with_concrete_factors(solver, term)
            if attempt.status == "sat":
                return attempt
        return answer

    def _with_concrete_factors(self, solver: Solver, term: Term) -> Answer:
        hard = [node for node in postorder((term,)) if node.op in _HARD]
        terms = [term]
        replaced = Substitution(
            {
                unknown: const(self._small(unknown.width), unknown.sort)
                for node in hard
                for unknown in self._unknowns(node.args[1])
            }
        )
        terms = [replaced(term)]
        for node in hard:
            for unknown in self._unknowns(node.args[1]):
                value = replaced(unknown)
                terms.append(equal(unknown, value))
        return solver.check(terms, seconds=min(1.0, max(0.1, self.time_left())))

    @staticmethod
    def _unknowns(term: Term) -> list[Term]:
        return [node for node in postorder((term,)) if node.op == "var"]

    def _small(self, width: int) -> int:
        return self.random.choice(
            (0, 1, 2, 3, 5, (1 << width) - 1, 1 << (width - 1), self.random.getrandbits(width))
        )

    def nearest_first(self, goals: Iterable[Goal]) -> list[Goal]:
        """Order goals by how much of their condition is left to satisfy."""

        def distance(goal: Goal) -> int:
            if isinstance(goal, Violation):
                return 0
            term = self.goals[goal]
            return len(term.args) if term.op == "and" else 1

        return sorted(goals, key=distance)

    def _sequential_phase(self) -> None:
        from hagane.tools.rtl.search.unroll import explore

        explore(self)


def toggle_goals(model: CycleModel) -> dict[Goal, Term]:
    """Return the goals of toggle coverage: every bit of every signal takes either value."""
    goals: dict[Goal, Term] = {}
    for name, term in model.signals.items():
        for index in range(term.width):
            bit = bv.to_bool(bv.extract(term, index, index))
            goals[Bit(name, index, 1)] = bit
            goals[Bit(name, index, 0)] = negate(bit)
    return goals
