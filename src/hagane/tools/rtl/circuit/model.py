"""One clock cycle of a circuit as terms over its inputs and its state.

Each process is executed once. A value that it reads before it is settled is an unknown; unknowns
of combinational processes give way to their definitions afterwards (:mod:`.settle`). Where an
unknown is still there in the end, the variable holds state (a register, a latch, a memory, or a
net that nothing drives).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from hagane.symbolic import bitvector as bv
from hagane.symbolic.logic import both, choose, either, equal
from hagane.symbolic.term import FALSE, TRUE, Term, bits, const, variable, variables_of
from hagane.tools.rtl.circuit.design import Design, Process
from hagane.tools.rtl.circuit.drivers import PREVIOUS, Drivers, masked
from hagane.tools.rtl.circuit.elaborate import Position
from hagane.tools.rtl.circuit.levels import at_rest, reading
from hagane.tools.rtl.circuit.machine import Machine, Outside, PointKey, Variable
from hagane.tools.rtl.circuit.settle import Settling
from hagane.tools.rtl.circuit.values import (
    Array,
    Packed,
    Value,
    each,
    filled,
    flat,
    leaves,
    merge,
    unknown,
)
from hagane.tools.rtl.errors import UnsupportedDesign

_RESET_NAME = re.compile(r"(?:^|[._])(a|s)?(n)?(?:rst|reset)(n|_n|_ni|_b|_bi)?(?:_i|_in)?$", re.I)
_MOST_LOOPS = 5
_MOST_ELEMENTS = 64


@dataclass(frozen=True, slots=True)
class Input:
    """A bit vector that a test sets; ``port`` is the top-level port it belongs to."""

    name: str
    width: int
    port: str


@dataclass(frozen=True, slots=True)
class Reset:
    """An input that resets the circuit, and the value with which it does."""

    name: str
    active: int
    asynchronous: bool


@dataclass(slots=True)
class CycleModel:
    """A circuit's cycle: everything is a term over inputs and ``state``.

    ``after_reset`` has the state that asynchronous resets change: its value once the resets of a
    row have acted, before the clock does (the value before where none is active). Of several clocks
    each is an input too: a row says which of them rise. ``overwritten``
    are points of a branch whose condition its process writes afterwards. ``operands`` says of the
    outcomes of a ``?:`` where the operator of its first operand stands. ``unset`` is the state to
    which nothing gives a value at the start. Of clocks in ``falling`` the falling edge counts,
    wherever a rising one is spoken of.
    """

    inputs: tuple[Input, ...]
    clocks: tuple[str, ...]
    resets: tuple[Reset, ...]
    state: dict[str, Term]
    initial: dict[str, int]
    points: dict[PointKey, Term]
    asserts: dict[tuple[Position, str], Term]
    signals: dict[str, Term]
    outputs: dict[str, Term]
    notices: tuple[str, ...]
    after_reset: dict[str, Term] = field(default_factory=dict)
    assert_text: dict[tuple[Position, str], str] = field(default_factory=dict)
    overwritten: frozenset[PointKey] = frozenset()
    operands: dict[PointKey, Position] = field(default_factory=dict)
    unset: frozenset[str] = frozenset()
    falling: frozenset[str] = frozenset()
    unsteady: frozenset[str] = frozenset()

    @property
    def toggling(self) -> dict[str, Term]:
        """The signals that are points of toggle coverage: those that stand still within a row."""
        return {name: term for name, term in self.signals.items() if name not in self.unsteady}

    @property
    def ticks(self) -> tuple[str, ...]:
        """The clocks of which each row says whether they rise; empty where there is one clock."""
        inputs = {item.name for item in self.inputs}
        return tuple(name for name in self.clocks if name in inputs)

    @property
    def sequential(self) -> bool:
        """Whether a test needs more than one cycle."""
        return bool(self.state) or bool(self.clocks)


def build_model(design: Design) -> CycleModel:
    """Execute every process of ``design`` symbolically.

    Raises:
        UnsupportedDesign: Something beyond the subset, or a combinational loop.
    """
    return _Builder(design).build()


class _Builder:
    def __init__(self, design: Design):
        self.design = design
        self.previous: dict[Variable, Value] = {}
        self.env: dict[Variable, Value] = {}
        self.machines: dict[Process, Machine] = {}
        self.resetting: dict[Process, Term] = {}
        self.rising: dict[Process, Term] = {}
        self.falling: frozenset[str] = frozenset()
        self.read: dict[Process, set[Variable]] = {}
        self.given: set[str] = set()
        self.never: dict[PointKey, Term] = {}
        self.problems: dict[str, None] = {}

    def build(self) -> CycleModel:
        inputs = self._inputs()
        initial = self._initial()
        self._settle([p for p in self.design.processes if not p.edges and not p.initial])
        self._stop_on_problems()
        clocked = [p for p in self.design.processes if p.edges]
        for process in clocked:
            self._execute(process)
        clocks, resets = self._clocks(clocked)
        self._stop_on_problems()
        return self._assemble(
            inputs, initial, clocks, resets, self._clock_edge(clocked), self._reset_edge()
        )

    def _stop_on_problems(self) -> None:
        if self.problems:
            raise UnsupportedDesign(list(self.problems))

    def _inputs(self) -> list[Input]:
        inputs = []
        for port in self.design.ports:
            if port.direction == "In":
                self.env[port.variable] = unknown(port.name, port.variable.layout)
                inputs += [
                    Input(name, width, port.name)
                    for name, width in leaves(port.name, port.variable.layout)
                ]
        return inputs

    def _before(self, variable_: Variable) -> Value:
        """Return the unknowns of a variable's value before the cycle."""
        if variable_.local:
            return filled(variable_.layout, 0)
        found = self.previous.get(variable_)
        if found is None:
            found = unknown(PREVIOUS + variable_.name, variable_.layout)
            self.previous[variable_] = found
        return found

    def _initial(self) -> dict[str, int]:
        """Return the numbers that state starts with."""
        values: dict[Variable, Value] = {}
        written: dict[Variable, Value] = {}
        for process in self.design.processes:
            if not process.initial:
                continue
            read: set[Variable] = set()
            machine = Machine(_noting(read, values))
            try:
                process.run(machine)
            except Outside as problem:
                self.design.notices[f"initialisation ignored: {problem}"] = None
                continue
            if not any(not v.local for v in read):
                # Parameters alone decide what is executed at the start.
                self.never.update({k: g for k, g in machine.points.items() if g is FALSE})
            values.update({v: x for v, x in machine.now.own.items() if not v.local})
            values.update({v: x for v, x in machine.later.own.items() if not v.local})
            for variable_, mask in machine.masks.items():
                old = written.get(variable_, filled(variable_.layout, 0))
                pairs = zip(flat(old), flat(mask), strict=True)
                written[variable_] = tuple(bv.bit_or(a, b) for a, b in pairs)
            self.design.notices.update(machine.notices)
        numbers = {}
        for variable_, value in values.items():
            names = (name for name, _ in leaves(PREVIOUS + variable_.name, variable_.layout))
            for name, term in zip(names, flat(value), strict=True):
                if term.is_const:
                    numbers[name] = int(term.data)
        for variable_, mask in written.items():
            names = (name for name, _ in leaves(PREVIOUS + variable_.name, variable_.layout))
            self.given.update(
                name for name, bits_ in zip(names, flat(mask), strict=True) if _all_ones(bits_)
            )
        return numbers

    def _unset(self) -> frozenset[str]:
        """Return the state that has no value at the start: four states, and no initial value."""
        names = (
            name
            for variable_ in self.previous
            if variable_.four_state and not variable_.hidden
            for name, _ in leaves(PREVIOUS + variable_.name, variable_.layout)
        )
        return frozenset(names) - self.given

    def _execute(self, process: Process) -> set[Variable]:
        """Execute a process on the known values; return the unknown ones that it read."""
        open_: set[Variable] = set()

        read = self.read.setdefault(process, set())

        def base(variable_: Variable) -> Value:
            found = self.env.get(variable_)
            read.add(variable_)
            if found is not None:
                return found
            if not variable_.local:
                open_.add(variable_)
            return self._before(variable_)

        machine = Machine(base, clocked=bool(process.edges))
        try:
            process.run(machine)
        except Outside as problem:
            self.problems[str(problem)] = None
        except RecursionError:
            self.problems[f"{process.position}: an expression nested too deep"] = None
        else:
            self.machines[process] = machine
        return open_

    def _settle(self, processes: Sequence[Process]) -> None:
        """Execute combinational processes once each, and put together their results."""
        drivers = Drivers()
        for process in processes:
            open_ = self._execute(process)
            machine = self.machines.get(process)
            if machine is None:
                continue
            # Later processes start from values known for good: bounds of their loops, say.
            self.env.update(drivers.add(process, machine, open_, self._before))
        self._stop_on_problems()
        machines = [self.machines[process] for process in processes]
        roots = [term for v in drivers.variables for term in flat(self._before(v))]
        for machine in machines:
            roots += [*machine.points.values(), *machine.asserts.values()]
        settling = Settling(drivers.definitions, drivers.kept(), drivers.final)
        for loop in settling.settle(roots)[:_MOST_LOOPS]:
            self.problems[drivers.describe(loop)] = None
        self._stop_on_problems()
        for variable_ in drivers.variables:
            self.env[variable_] = each(settling.__getitem__, self._before(variable_))
        for machine in machines:
            machine.points = {key: settling[term] for key, term in machine.points.items()}
            machine.asserts = {key: settling[term] for key, term in machine.asserts.items()}

    def _clocks(self, processes: list[Process]) -> tuple[tuple[str, ...], tuple[Reset, ...]]:
        """Find which inputs are clocks and asynchronous resets."""
        clocks: dict[str, bool] = {}  # whether it is the rising edge that counts
        resets: dict[str, Reset] = {}
        for process in processes:
            machine = self.machines.get(process)
            if machine is None:
                continue
            names = []
            for edge in process.edges:
                probe = Machine(lambda v: self.env.get(v, self._before(v)))
                term = process.scope.expressions.bits(edge.expression, probe)
                names.append((edge, _input_behind(term), term))
            guards = variables_of(term for value in machine.points.values() for term in (value,))
            rises = FALSE
            for edge, found, term in names:
                if found is None:
                    if term.is_const:
                        continue
                    self.problems[
                        f"{process.position}: waits for '{edge.text}', which is no input of the "
                        f"top module but computed (a gated or divided clock, or one that nothing "
                        "drives; make it an input)"
                    ] = None
                    continue
                name, inverted = found
                rising = edge.rising != inverted
                if len(process.edges) > 1 and name in guards:
                    resets[name] = Reset(name, int(rising), True)
                    active = equal(variable(name, bits(1)), bv.value(int(rising), 1))
                    self.resetting[process] = either(self.resetting.get(process, FALSE), active)
                elif clocks.setdefault(name, rising) != rising:
                    self.problems[
                        f"{process.position}: waits for the {'rising' if rising else 'falling'} "
                        f"edge of the clock '{name}', others for the other edge"
                    ] = None
                else:
                    rises = either(rises, equal(_tick(name), bv.value(1, 1)))
            self.rising[process] = rises
        if len(clocks) > 1:
            notice = f"clocks {', '.join(clocks)}: each row says which of them rise"
            self.design.notices[notice] = None
        else:
            self.rising = {}
        self.falling = frozenset(name for name, rising in clocks.items() if not rising)
        levels = {variable(name, bits(1)) for name in clocks}
        for process in processes:
            for variable_ in self.read.get(process, ()):
                if self.env.get(variable_) in levels:
                    self.problems[
                        f"{process.position}: reads the level of the clock "
                        f"'{variable_.name}' at an edge, where it is known"
                    ] = None
        return tuple(clocks), tuple(resets.values())

    def _clock_edge(self, processes: list[Process]) -> dict[Variable, Value]:
        following: dict[Variable, Value] = {}
        for process in processes:
            self._run_where(self.rising.get(process, TRUE), process, following)
        return following

    def _reset_edge(self) -> dict[Variable, Value]:
        """Return what active asynchronous resets make of the variables of their processes."""
        following: dict[Variable, Value] = {}
        for process, active in self.resetting.items():
            self._run_where(active, process, following)
        return following

    def _run_where(
        self, condition: Term, process: Process, following: dict[Variable, Value]
    ) -> None:
        """Put the variables after one run, made where the condition holds, into ``following``."""
        before = {} if condition is TRUE else dict(following)
        self._run_once(process, following)
        if condition is TRUE:
            return
        for variable_, value in following.items():
            old = before.get(variable_, self.env.get(variable_, self._before(variable_)))
            if value is not old:
                following[variable_] = merge(condition, value, old)

    def _run_once(self, process: Process, following: dict[Variable, Value]) -> None:
        """Put the variables after one run of a clocked process into ``following``."""
        machine = self.machines[process]
        for layer in (machine.now.own, machine.later.own):
            for variable_, value in layer.items():
                if variable_.local or variable_ not in machine.masks:
                    continue
                old = following.get(variable_, self.env.get(variable_, self._before(variable_)))
                following[variable_] = masked(machine.masks[variable_], value, old)

    def _latches(
        self,
        clocks: tuple[str, ...],
        next_of: Mapping[str, Term],
        following: Mapping[Variable, Value],
    ) -> dict[str, Term]:
        """Return the states of latches that the clock opens, and the terms that follow them.

        Raises:
            UnsupportedDesign: There are several clocks.
        """
        states = reading(next_of, clocks)
        if states:  # there is no state of a value that nobody remembers
            states &= variables_of(next_of.values()).keys()
        found = {}
        for variable_ in self.previous:
            for name, _ in leaves(PREVIOUS + variable_.name, variable_.layout):
                if name in states and variable_ not in following:
                    found[name] = next_of[name]
                    if len(clocks) > 1:
                        self.problems[
                            f"{variable_.position}: '{variable_.name}', a latch that one of "
                            "several clocks opens"
                        ] = None
        self._stop_on_problems()
        return found

    def _assemble(
        self,
        inputs: list[Input],
        initial: Mapping[str, int],
        clocks: tuple[str, ...],
        resets: tuple[Reset, ...],
        following: Mapping[Variable, Value],
        struck: Mapping[Variable, Value],
    ) -> CycleModel:
        points: dict[PointKey, Term] = dict(self.never)
        asserts: dict[tuple[Position, str], Term] = {}
        notices = dict(self.design.notices)
        for process, machine in self.machines.items():
            rises = self.rising.get(process, TRUE)
            for key, guard in machine.points.items():
                points[key] = either(points.get(key, FALSE), both(rises, guard))
            for position, violated in machine.asserts.items():
                place = (position, process.scope.path)
                asserts[place] = either(asserts.get(place, FALSE), both(rises, violated))
            notices.update(machine.notices)
        signals: dict[str, Term] = {}
        next_of: dict[str, Term] = {}
        reset_of: dict[str, Term] = {}
        outputs: dict[str, Term] = {}
        ports = {port.variable: port for port in self.design.ports}
        # A clock rises in every cycle: neither it nor a copy of it is a point of toggle coverage.
        ticks = {variable(name, bits(1)) for name in clocks}
        for variable_ in {**self.env, **self.previous}:
            if variable_.local or self.env.get(variable_) in ticks:
                continue
            settled = self.env.get(variable_, self._before(variable_))
            after = following.get(variable_, settled)
            if variable_ in ports and ports[variable_].direction == "In":
                name = ports[variable_].name
                signals.update(
                    zip((n for n, _ in leaves(name, variable_.layout)), flat(settled), strict=True)
                )
                continue
            names = [name for name, _ in leaves(variable_.name, variable_.layout)]
            memory = isinstance(variable_.layout, Array) and len(names) > _MOST_ELEMENTS
            if memory:
                notices[
                    f"{variable_.position}: the {len(names)} elements of '{variable_.name}' are no "
                    f"points of toggle coverage (more than {_MOST_ELEMENTS})"
                ] = None
            for name, term, new in zip(names, flat(settled), flat(after), strict=True):
                if not (memory or variable_.hidden):
                    signals[name] = term
                next_of[PREVIOUS + name] = new
                if variable_ in ports:
                    outputs[name] = term
            if variable_ in struck:
                for name, term in zip(names, flat(struck[variable_]), strict=True):
                    reset_of[PREVIOUS + name] = term
        # Attempts of assertions end in a row with an asynchronous reset.
        resetting = either(
            FALSE,
            *(
                equal(variable(reset.name, bits(1)), bv.value(reset.active, 1))
                for reset in resets
                if reset.asynchronous
            ),
        )
        for name in (v.name for v in self.previous if v.hidden):
            held = PREVIOUS + name
            new = next_of[held]
            zero = bv.value(0, new.width)
            next_of[held] = choose(resetting, zero, new)
            reset_of[held] = choose(resetting, zero, variable(held, new.sort))
        latches = self._latches(clocks, next_of, following)
        followers = reading(points, clocks)
        for key in [key for key in points if key in followers]:
            what = f"a {key.kind} that follows the level of a clock is no point"
            notices[f"{key.position}: {what}"] = None
            del points[key]
        low = at_rest(
            {name: int(name in self.falling) for name in clocks},
            latches,
            {_tick(name): variable(name, bits(1)) for name in clocks},
        )
        unsteady = reading({n: term for n, term in signals.items() if PREVIOUS + n not in latches},
                           clocks)  # fmt: skip
        if unsteady:
            shown = ", ".join(sorted(unsteady))
            notices[f"no points of toggle coverage, as they follow a clock: {shown}"] = None
        points = {key: low(term) for key, term in points.items()}
        asserts = {key: low(term) for key, term in asserts.items()}
        signals = {key: low(term) for key, term in signals.items()}
        roots = [*points.values(), *asserts.values(), *signals.values()]
        after_reset = {name: low(term) for name, term in reset_of.items()}
        state = _cone(
            roots, lambda name: low(next_of[name]) if name in next_of else None, after_reset
        )
        return CycleModel(
            inputs=_clocks_first(inputs, clocks),
            clocks=clocks,
            falling=self.falling,
            unsteady=unsteady,
            resets=(*resets, *synchronous_resets(inputs, clocks, resets)),
            state=state,
            after_reset={
                name: after_reset[name]
                for name, term in state.items()
                if after_reset.get(name, variable(name, term.sort)) is not variable(name, term.sort)
            },
            initial={name: initial.get(name, 0) for name in state},
            unset=self._unset() & state.keys(),
            points=points,
            asserts=asserts,
            signals=signals,
            outputs={key: low(term) for key, term in outputs.items()},
            notices=tuple(notices),
            overwritten=frozenset(
                key for machine in self.machines.values() for key in machine.overwritten
            ),
            operands={
                key: place
                for machine in self.machines.values()
                for key, place in machine.operands.items()
            },
        )


def _all_ones(term: Term) -> bool:
    return term.is_const and int(term.data) == (1 << term.width) - 1


def synchronous_resets(
    inputs: Iterable[Input], clocks: tuple[str, ...], known: tuple[Reset, ...]
) -> list[Reset]:
    """Guess from the names which inputs reset at the clock edge, to begin each test with them."""
    if not clocks:
        return []
    taken = {*clocks, *(reset.name for reset in known)}
    found = []
    for item in inputs:
        match = _RESET_NAME.search(item.name)
        if match is not None and item.width == 1 and item.name not in taken:
            found.append(Reset(item.name, 0 if match[2] or match[3] else 1, False))
    return found


def _noting(read: set[Variable], values: Mapping[Variable, Value]) -> Callable[[Variable], Value]:
    """Return a reader of values at the start, which notes what was read."""

    def base(variable_: Variable) -> Value:
        read.add(variable_)
        return values.get(variable_, filled(variable_.layout, 0))

    return base


def _tick(clock: str) -> Term:
    """Return whether a clock has its edge in a row, apart from its level."""
    return variable(f"^{clock}", bits(1))


def _clocks_first(inputs: Sequence[Input], clocks: tuple[str, ...]) -> tuple[Input, ...]:
    """Return what a row sets: all but the clock, or several clocks, the other inputs behind."""
    by_name = {item.name: item for item in inputs}
    several = [by_name[name] for name in clocks] if len(clocks) > 1 else []
    return (*several, *(item for item in inputs if item.name not in clocks))


def _cone(
    roots: Iterable[Term],
    next_of: Callable[[str], Term | None],
    after_reset: Mapping[str, Term],
) -> dict[str, Term]:
    """Return the state that ``roots`` depend on, now or in a later cycle."""
    state: dict[str, Term] = {}
    pending = list(roots)
    while pending:
        found = [name for name in variables_of(pending) if name.startswith(PREVIOUS)]
        fresh = [name for name in found if name not in state]
        for name in fresh:
            following = next_of(name)
            state[name] = const(0, bits(1)) if following is None else following
        pending = [state[name] for name in fresh]
        pending += [after_reset[name] for name in fresh if name in after_reset]
    return state


def _input_behind(term: Term) -> tuple[str, bool] | None:
    """Return the one-bit input that a clock is, and whether it is inverted."""
    if term.op == "var" and not str(term.data).startswith(PREVIOUS):
        return str(term.data), False
    if term.op == "ite" and term.args[1].is_const and term.args[2].is_const:
        condition = term.args[0]
        if condition.op == "eq" and condition.args[0].op == "var":
            name = str(condition.args[0].data)
            if not name.startswith(PREVIOUS):
                return name, bool(term.args[2].data)
    return None


__all__ = ["CycleModel", "Input", "Packed", "Reset", "build_model"]
