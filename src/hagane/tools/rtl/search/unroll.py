"""Sequential circuits: cycles unrolled from known states, and proofs that hold for any state.

The search alternates. The solver unrolls the circuit from the state after reset and from states
that earlier tests ended in, one cycle deeper each time; what it finds is run concretely, which
gives new states to start from. A goal that no state and no input reaches is dead for good; so is
one that an induction excludes; a goal that the full look-ahead from reset excludes is dead within
that many cycles, and says so.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import TYPE_CHECKING

from hagane.symbolic.interpret import Substitution
from hagane.symbolic.logic import choose, either, equal, negate
from hagane.symbolic.smt import Solver
from hagane.symbolic.term import FALSE, Term, bits, const, variable, variables_of
from hagane.tools.rtl.search.simulate import Dead, goals_of

if TYPE_CHECKING:
    from hagane.tools.rtl.search.search import Search
    from hagane.tools.rtl.search.simulate import Goal, Row, Test

_INDUCTION_DEPTH = 3
_RANDOM_CYCLES = 48


class Unrolling:
    """The circuit over several cycles; the state of the first one is given or left open.

    With ``resets_open``, asynchronous resets may be active in any cycle, and then act before the
    clock, as in ``Simulator.cycle``; otherwise they rest.
    """

    def __init__(self, search: Search, start: Mapping[str, int] | None, *, resets_open: bool):
        self._model = search.model
        self._resets_open = resets_open
        self._cycles: list[Substitution] = []
        self._state: dict[str, Term] = {}
        for name, term in self._model.state.items():
            sort = term.sort
            self._state[name] = (
                variable(f"{name}#open", sort) if start is None else const(start[name], sort)
            )

    def at(self, cycle: int, term: Term) -> Term:
        """Return ``term`` as it is in a cycle, counted from 0."""
        while len(self._cycles) <= cycle:
            self._extend()
        return self._cycles[cycle](term)

    def _extend(self) -> None:
        number = len(self._cycles)
        if number:
            last = self._cycles[-1]
            self._state = {name: last(term) for name, term in self._model.state.items()}
        replaced: dict[Term, Term] = {}
        for name, term in self._model.state.items():
            replaced[variable(name, term.sort)] = self._state[name]
        resets = {reset.name: reset.active for reset in self._model.resets if reset.asynchronous}
        for item in self._model.inputs:
            plain = variable(item.name, bits(item.width))
            if item.name in resets and not self._resets_open:
                replaced[plain] = const(1 - resets[item.name], plain.sort)
            else:
                replaced[plain] = variable(f"{item.name}#{number}", plain.sort)
        self._cycles.append(self._with_resets(replaced, resets))

    def _with_resets(self, replaced: dict[Term, Term], resets: Mapping[str, int]) -> Substitution:
        plain = Substitution(replaced)
        if not self._resets_open or not resets:
            return plain
        active = either(
            *(
                equal(plain(variable(name, bits(1))), const(level, bits(1)))
                for name, level in resets.items()
            )
        )
        for name, term in self._model.state.items():
            place = variable(name, term.sort)
            self._state[name] = choose(active, plain(term), plain(place))
        again = {variable(name, term.sort): term for name, term in self._state.items()}
        return Substitution({**replaced, **again})


def explore(search: Search) -> None:
    """Cover goals of a sequential circuit, or prove them dead, as far as time allows."""
    _exclude_any_state(search)
    _walk(search)
    states = _States(search)
    reset_start = states.unrolling(())
    limit = search.budget.cycles
    reset_depth = 0
    blocked: dict[Goal, str] = {}
    any_reset = states.unrolling((), resets_open=True)
    while search.open_goals() and search.time_left() > 0 and reset_depth < limit:
        search.found.rounds += 1
        reset_depth += 1
        _from_reset(search, reset_start, reset_depth - 1, blocked)
        if reset_depth in (2, 6, 12, 20) or reset_depth == limit:
            states.refresh()
            _from_states(search, states, depth=4)
    for goal in search.open_goals():
        if goal in blocked:
            search.found.unknown[goal] = blocked[goal]
        elif reset_depth < limit:
            search.found.unknown[goal] = f"time was up after {reset_depth} cycles from reset"
        else:
            _exclude(search, goal, any_reset, limit)
    search.tell()


def _exclude(search: Search, goal: Goal, start: Unrolling, limit: int) -> None:
    """Prove dead what the look-ahead with resets at rest did not reach, or say why not.

    The base of the proof allows what its step allows: ``start`` leaves asynchronous resets open.
    A goal that only another reset reaches (a value that reset latches, say) is met here.
    """
    depth = _inductive(search, goal)
    asynchronous = any(reset.asynchronous for reset in search.model.resets)
    solver = Solver("rtl")
    for cycle in range((depth or limit) if asynchronous else 0):
        term = start.at(cycle, search.goals[goal])
        if term is FALSE:
            continue
        if search.time_left() <= 0:
            search.found.unknown[goal] = f"time was up {cycle} cycles into a reset at any time"
            return
        answer = solver.check((term,), seconds=1.0)
        if answer.status == "sat":
            test = _test(search, answer.assignment or {}, cycle + 1)
            search.try_test((*search.prologue, *test))
            if goal not in search.found.covered:
                search.found.unknown[goal] = "the solver's inputs do not reach it in a run"
            return
        if answer.status == "unknown":
            why = f"the solver gave up on a reset within {cycle + 1} cycles: {answer.reason}"
            search.found.unknown[goal] = why
            return
    if depth is None:
        why = f"unreachable in {limit} cycles from reset"
        search.found.dead[goal] = Dead(limit, why)
    else:
        why = f"by induction over {depth + 1} cycles, after {limit} from reset"
        search.found.dead[goal] = Dead(None, why)


def _walk(search: Search) -> None:
    """Make one long test, a cycle at a time: from each state to a goal that it reaches at once.

    Which goals a state cannot reach depends on the part of it that a goal's condition reads, so
    that is what is remembered. Where no goal is in reach, random cycles look for another state.
    """
    rows: list[Row] = list(search.prologue)
    state = search.simulator.after_prologue(search.prologue)
    met: set[Goal] = set()
    solver = Solver("rtl")
    for reset in filter(lambda item: item.asynchronous, search.model.resets):
        plain = variable(reset.name, bits(1))
        solver.add(equal(plain, const(1 - reset.active, plain.sort)))
    pending = deque(search.nearest_first(search.open_goals()))
    support = {goal: _support(search, goal) for goal in pending}
    barren: set[tuple[Goal, tuple[int, ...]]] = set()
    lost = 0
    while pending and lost < _RANDOM_CYCLES and search.time_left() > 0:
        row = None
        for _ in range(len(pending)):
            goal = pending.popleft()
            if goal in search.found.covered or goal in met:
                continue
            pending.append(goal)
            key = (goal, tuple([state[item.data] for item in support[goal]]))
            if key in barren or search.time_left() <= 0:
                continue
            here = [equal(item, const(state[item.data], item.sort)) for item in support[goal]]
            answer = solver.check((*here, search.goals[goal]), seconds=0.5)
            if answer.status == "sat":
                row = search.complete(answer.assignment or {}, "")
                break
            barren.add(key)
        lost = lost + 1 if row is None else 0
        row = search.random_row() if row is None else row
        cycle = search.simulator.cycle(state, row)
        state = cycle.after
        rows.append(row)
        met |= goals_of(search.simulator, [cycle])
    if len(rows) > len(search.prologue):
        search.try_test(tuple(rows))


def _support(search: Search, goal: Goal) -> list[Term]:
    """Return the state that a goal's condition reads."""
    found = variables_of((search.goals[goal],))
    return [term for name, term in found.items() if name in search.model.state]


def _exclude_any_state(search: Search) -> None:
    """Prove goals dead that no input reaches in any state, reachable or not."""
    solver = Solver("rtl")
    for goal in search.open_goals():
        if search.time_left() <= 0:
            return
        answer = solver.check((search.goals[goal],), seconds=1.0)
        if answer.status == "unsat":
            search.found.dead[goal] = Dead(None, "no state and no input reaches it")
    search.tell()


def _from_reset(search: Search, unrolling: Unrolling, cycle: int, blocked: dict[Goal, str]) -> None:
    """Look for tests that meet a goal exactly ``cycle`` cycles after reset."""
    solver = Solver("rtl")
    for goal in search.nearest_first(search.open_goals()):
        if goal in search.found.covered:
            continue
        if search.time_left() <= 0:
            return
        term = unrolling.at(cycle, search.goals[goal])
        if term is FALSE:
            continue
        answer = search.solve(solver, term)
        if answer.status == "sat":
            test = _test(search, answer.assignment or {}, cycle + 1)
            search.try_test((*search.prologue, *test))
            if goal not in search.found.covered:
                blocked[goal] = "the solver's inputs do not reach it in a run"
        elif answer.status == "unknown":
            blocked[goal] = f"the solver gave up {cycle + 1} cycles after reset: {answer.reason}"


def _test(search: Search, assignment: Mapping[str, int], length: int) -> Test:
    return tuple(search.complete(assignment, f"#{cycle}") for cycle in range(length))


class _States:
    """Tests whose last states are worth starting from."""

    def __init__(self, search: Search):
        self._search = search
        self._used = 0
        self.prefixes: list[Test] = []

    def unrolling(self, prefix: Test, *, resets_open: bool = False) -> Unrolling:
        """Return the circuit unrolled from where ``prefix`` (after the prologue) ends."""
        search = self._search
        test = (*search.prologue, *prefix)
        simulator = search.simulator
        state = simulator.run(test)[-1].after if test else simulator.start()
        return Unrolling(search, state, resets_open=resets_open)

    def refresh(self) -> None:
        """Take the tests found since the last time."""
        tests = self._search.found.tests[self._used :]
        self._used = len(self._search.found.tests)
        skip = len(self._search.prologue)
        self.prefixes = [test[skip:] for test in tests][-24:]


def _from_states(search: Search, states: _States, depth: int) -> None:
    """Look a few cycles ahead from the states that tests ended in."""
    progress = True
    while progress and search.open_goals() and search.time_left() > 0:
        progress = False
        for prefix in states.prefixes:
            unrolling = states.unrolling(prefix)
            solver = Solver("rtl")
            for goal in search.open_goals():
                for cycle in range(depth):
                    if search.time_left() <= 0:
                        return
                    term = unrolling.at(cycle, search.goals[goal])
                    if term is FALSE:
                        continue
                    answer = solver.check((term,), seconds=0.5)
                    if answer.status == "sat":
                        more = _test(search, answer.assignment or {}, cycle + 1)
                        if search.try_test((*search.prologue, *prefix, *more)):
                            progress = True
                        break
        states.refresh()


def _inductive(search: Search, goal: Goal) -> int | None:
    """Return after how many cycles without a goal no state and no input reaches it, if any."""
    term = search.goals[goal]
    unrolling = Unrolling(search, None, resets_open=True)
    # The base of the proof is the look-ahead from reset: the step may not reach back further.
    for depth in range(1, min(_INDUCTION_DEPTH, search.budget.cycles) + 1):
        if search.time_left() <= 0:
            return None
        solver = Solver("rtl")
        for cycle in range(depth):
            solver.add(negate(unrolling.at(cycle, term)))
        last = unrolling.at(depth, term)
        if last is FALSE or solver.check((last,), seconds=0.5).status == "unsat":
            return depth
    return None
