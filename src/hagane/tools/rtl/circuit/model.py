"""One clock cycle of a circuit as terms over its inputs and its state.

Each process is executed once. A value that it reads before it is settled is an unknown; unknowns
of combinational processes give way to their definitions afterwards (:mod:`.settle`). Where an
unknown is still there in the end, the variable holds state (a register, a latch, a memory, or a
net that nothing drives).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from hagane.symbolic import bitvector as bv
from hagane.symbolic.logic import both, choose, either
from hagane.symbolic.term import FALSE, TRUE, Term, bits, const, variable, variables_of
from hagane.tools.rtl.circuit.clocks import Clocks, find_clocks, synchronous_resets, tick
from hagane.tools.rtl.circuit.cycle import CycleModel, Input
from hagane.tools.rtl.circuit.design import Design, Process
from hagane.tools.rtl.circuit.drivers import PREVIOUS, Drivers, chosen, masked
from hagane.tools.rtl.circuit.elaborate import Position
from hagane.tools.rtl.circuit.levels import at_rest, reading
from hagane.tools.rtl.circuit.machine import Machine, Outside, PointKey, Variable
from hagane.tools.rtl.circuit.settle import Settling
from hagane.tools.rtl.circuit.start import Start, initial_values
from hagane.tools.rtl.circuit.values import (
    Array,
    Value,
    each,
    filled,
    flat,
    leaves,
    merge,
    unknown,
)
from hagane.tools.rtl.errors import UnsupportedDesign

_MOST_LOOPS = 5
_MOST_ELEMENTS = 64


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
        self.read: dict[Process, set[Variable]] = {}
        self.problems: dict[str, None] = {}

    def build(self) -> CycleModel:
        inputs = self._inputs()
        start = initial_values(self.design, self.problems)
        self._settle([p for p in self.design.processes if not p.edges and not p.initial])
        self._stop_on_problems()
        clocked = [p for p in self.design.processes if p.edges]
        for process in clocked:
            self._execute(process)
        disputed = self._disputed(clocked)
        for process in clocked:
            if process in self.machines and not disputed.isdisjoint(self.machines[process].masks):
                self._execute(process, disputed)
        settled = self._settled()
        clocks = find_clocks(clocked, self.machines, self.read, self._value, settled, self.problems)
        if len(clocks.names) > 1:
            notice = f"clocks {', '.join(clocks.names)}: each row says which of them rise"
            self.design.notices[notice] = None
        following = self._after({p: clocks.rising.get(p, TRUE) for p in clocked})
        struck = self._after(clocks.resetting)
        return self._assemble(inputs, start, clocks, following, struck)

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

    def _value(self, variable_: Variable) -> Value:
        """Return the value of a variable before edges: what is known of it, or the unknowns."""
        found = self.env.get(variable_)
        return self._before(variable_) if found is None else found

    def _unset(self, start: Start) -> frozenset[str]:
        """Return the state that has no value at the start: four states, and no initial value."""
        names = (
            name
            for variable_ in self.previous
            if variable_.four_state and not variable_.hidden
            for name, _ in leaves(PREVIOUS + variable_.name, variable_.layout)
        )
        return frozenset(names) - start.given

    def _execute(
        self, process: Process, disputed: frozenset[Variable] = frozenset()
    ) -> set[Variable]:
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

        machine = Machine(base, clocked=bool(process.edges), disputed=disputed)
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

    def _settled(self) -> dict[str, Term]:
        """Return the values of combinational signals, by the names of their unknowns."""
        found: dict[str, Term] = {}
        for variable_, value in self.env.items():
            names = (name for name, _ in leaves(PREVIOUS + variable_.name, variable_.layout))
            found.update(zip(names, flat(value), strict=True))
        return found

    def _after(self, runs: Mapping[Process, Term]) -> dict[Variable, Value]:
        """Return what processes make of their variables, each run where its condition holds."""
        following: dict[Variable, Value] = {}
        for process, condition in runs.items():
            self._run_where(condition, process, following)
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
            old = before[variable_] if variable_ in before else self._value(variable_)
            if value is not old:
                following[variable_] = merge(condition, value, old)

    def _run_once(self, process: Process, following: dict[Variable, Value]) -> None:
        """Put the variables after one run of a clocked process into ``following``."""
        machine = self.machines[process]
        for layer in (machine.now.own, machine.later.own):
            for variable_, value in layer.items():
                if variable_.local or variable_ not in machine.masks:
                    continue
                old = following[variable_] if variable_ in following else self._value(variable_)
                bits = machine.bits_written.get(variable_)
                following[variable_] = (
                    masked(machine.masks[variable_], value, old)
                    if bits is None
                    else chosen(machine.later.own[bits], value, old)
                )

    def _disputed(self, clocked: Sequence[Process]) -> frozenset[Variable]:
        """Return the variables of which several clocked processes write the same bits.

        Where all do so by ``<=``, the later process counts if several write in one row.
        """
        found: set[Variable] = set()
        writers: dict[Variable, dict[Process, Value]] = {}
        for process in clocked:
            machine = self.machines.get(process)
            if machine is None:
                continue
            for variable_, mask in machine.masks.items():
                if variable_.local:
                    continue
                if self._assigns(process, variable_) and variable_ in machine.later.own:
                    self.problems[
                        f"{process.position}: '{variable_.name}' is assigned by = and by <= in one "
                        "process; write it in one of the two ways"
                    ] = None
                for other, theirs in writers.setdefault(variable_, {}).items():
                    pairs = zip(flat(mask), flat(theirs), strict=True)
                    if not any(int(a.data) & int(b.data) for a, b in pairs):
                        continue
                    where = f"'{variable_.name}' is written here and by the one at {other.position}"
                    if self._assigns(process, variable_) or self._assigns(other, variable_):
                        self.problems[
                            f"{process.position}: {where}, by = in one of both; write it by <= in "
                            "both, or in one process"
                        ] = None
                        continue
                    found.add(variable_)
                    self.design.notices[
                        f"{process.position}: {where}: where both write the same bits in one row, "
                        "this one counts, as in Verilator"
                    ] = None
                writers[variable_][process] = mask
        return frozenset(found)

    def _assigns(self, process: Process, variable_: Variable) -> bool:
        """Return whether a process assigns a variable by ``=``."""
        return variable_ in self.machines[process].now.own

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
        start: Start,
        clocks: Clocks,
        following: Mapping[Variable, Value],
        struck: Mapping[Variable, Value],
    ) -> CycleModel:
        points: dict[PointKey, Term] = dict(start.never)
        asserts: dict[tuple[Position, str], Term] = {}
        notices = dict(self.design.notices)
        for process, machine in self.machines.items():
            rises = clocks.rising.get(process, TRUE)
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
        ticks = {variable(name, bits(1)) for name in clocks.names}
        for variable_ in {**self.env, **self.previous}:
            if variable_.local or self.env.get(variable_) in ticks:
                continue
            settled = self._value(variable_)
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
                if not (memory or variable_.hidden or variable_.shared):
                    signals[name] = term
                next_of[PREVIOUS + name] = new
                if variable_ in ports:
                    outputs[name] = term
            if variable_ in struck:
                for name, term in zip(names, flat(struck[variable_]), strict=True):
                    reset_of[PREVIOUS + name] = term
        # Attempts of assertions end in a row with an asynchronous reset.
        resetting = clocks.active
        for name in (v.name for v in self.previous if v.hidden):
            held = PREVIOUS + name
            new = next_of[held]
            zero = bv.value(0, new.width)
            next_of[held] = choose(resetting, zero, new)
            reset_of[held] = choose(resetting, zero, variable(held, new.sort))
        latches = self._latches(clocks.names, next_of, following)
        followers = {
            key
            for machine in self.machines.values()
            for key in reading(machine.points, clocks.names)
        }
        for key in [key for key in points if key in followers]:
            what = f"a {key.kind} that follows the level of a clock is no point"
            notices[f"{key.position}: {what}"] = None
            del points[key]
        low = at_rest(
            {name: int(name in clocks.falling) for name in clocks.names},
            latches,
            {tick(name): variable(name, bits(1)) for name in clocks.names},
        )
        unsteady = reading({n: term for n, term in signals.items() if PREVIOUS + n not in latches},
                           clocks.names)  # fmt: skip
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
            inputs=clocks.first(inputs),
            clocks=clocks.names,
            falling=clocks.falling,
            unsteady=unsteady,
            resets=(*clocks.resets, *synchronous_resets(inputs, clocks.names, clocks.resets)),
            state=state,
            after_reset={
                name: after_reset[name]
                for name, term in state.items()
                if after_reset.get(name, variable(name, term.sort)) is not variable(name, term.sort)
            },
            initial={name: start.numbers.get(name, 0) for name in state},
            unset=self._unset(start) & state.keys(),
            points=points,
            asserts=asserts,
            signals=signals,
            outputs={key: low(term) for key, term in outputs.items()},
            notices=tuple(notices),
            files=dict(start.files),
            overwritten=frozenset(
                key for machine in self.machines.values() for key in machine.overwritten
            ),
            operands={
                key: place
                for machine in self.machines.values()
                for key, place in machine.operands.items()
            },
        )


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
