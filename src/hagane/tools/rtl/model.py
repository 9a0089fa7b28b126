"""One clock cycle of a circuit as terms over its inputs and its state.

Combinational processes are executed until no variable changes: terms are shared, so that a
settled circuit is recognised by identity, whatever the order of processes. A variable starts as
the unknown of its previous value; where that unknown is still there in the end, the variable
holds state (a register, a latch, a memory, or a net that nothing drives).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush

from hagane.symbolic import bitvector as bv
from hagane.symbolic.interpret import Substitution
from hagane.symbolic.logic import either
from hagane.symbolic.term import FALSE, Term, bits, const, variable, variables_of
from hagane.tools.rtl.design import Design, Process
from hagane.tools.rtl.elaborate import Position
from hagane.tools.rtl.errors import UnsupportedDesign
from hagane.tools.rtl.machine import Machine, Outside, PointKey, Variable
from hagane.tools.rtl.order import in_order
from hagane.tools.rtl.values import Array, Packed, Value, filled, flat, leaves, total_width, unknown

_RESET_NAME = re.compile(r"(?:^|[._])(a|s)?(n)?(?:rst|reset)(n|_n|_ni|_b|_bi)?(?:_i|_in)?$", re.I)
_MOST_RUNS = 16
_MOST_STEPS = 512
_MOST_ELEMENTS = 64
_PREVIOUS = "@"


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
    """A circuit's cycle: everything is a term over inputs and ``state``."""

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
    assert_text: dict[tuple[Position, str], str] = field(default_factory=dict)

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
        self.masks: dict[Process, dict[Variable, Value]] = {}
        self.machines: dict[Process, Machine] = {}
        self.problems: dict[str, None] = {}
        # A clock rises in every cycle: neither it nor a copy of it is a point of toggle coverage.
        self.ticking: set[Variable] = set()

    def build(self) -> CycleModel:
        inputs = self._inputs()
        combinational = [p for p in self.design.processes if not p.edges and not p.initial]
        clocked = [p for p in self.design.processes if p.edges]
        initial = self._initial()
        self._settle(combinational)
        self._stop_on_problems()
        clocks, resets = self._clocks(clocked)
        self._stop_on_problems()
        if clocks:
            self._settle_with_clocks_low(combinational, clocks)
        following = self._clock_edge(clocked)
        self._stop_on_problems()
        return self._assemble(inputs, initial, clocks, resets, following)

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
            found = unknown(_PREVIOUS + variable_.name, variable_.layout)
            self.previous[variable_] = found
        return found

    def _initial(self) -> dict[str, int]:
        """Return the numbers that state starts with."""
        values: dict[Variable, Value] = {}
        for process in self.design.processes:
            if not process.initial:
                continue
            machine = Machine(lambda v: values.get(v, filled(v.layout, 0)))
            try:
                process.run(machine)
            except Outside as problem:
                self.design.notices[f"initialisation ignored: {problem}"] = None
                continue
            values.update({v: x for v, x in machine.now.own.items() if not v.local})
            values.update({v: x for v, x in machine.later.own.items() if not v.local})
            self.design.notices.update(machine.notices)
        numbers = {}
        for variable_, value in values.items():
            names = (name for name, _ in leaves(_PREVIOUS + variable_.name, variable_.layout))
            for name, term in zip(names, flat(value), strict=True):
                if term.is_const:
                    numbers[name] = int(term.data)
        return numbers

    def _execute(self, process: Process, reads: set[Variable] | None) -> Machine | None:
        mask = self.masks.setdefault(process, {})

        def base(variable_: Variable) -> Value:
            if reads is not None and not variable_.local:
                reads.add(variable_)
            now = self.env.get(variable_)
            before = self._before(variable_)
            if now is None:
                return before
            own = mask.get(variable_)
            if own is None or process.edges or not process.procedural:
                return now
            return _masked(own, before, now)

        machine = Machine(base)
        try:
            process.run(machine)
        except Outside as problem:
            self.problems[str(problem)] = None
            return None
        except RecursionError:
            self.problems[f"{process.position}: an expression nested too deep"] = None
            return None
        machine.points = dict(machine.points)
        self.machines[process] = machine
        return machine

    def _settle(self, processes: Sequence[Process]) -> None:
        """Run processes until nothing changes: all of them once, then along what they read."""
        readers: dict[Variable, set[Process]] = {}
        widest = 0
        waiting: set[Process] = set()

        def run(process: Process) -> set[Process]:
            """Execute a process and return the readers of what changed that wait from now on."""
            nonlocal widest
            reads: set[Variable] = set()
            machine = self._execute(process, reads)
            if machine is None:
                return set()
            widest = max((widest, *(total_width(v.layout) for v in reads)))
            for variable_ in reads:
                readers.setdefault(variable_, set()).add(process)
            # What was masked for the first time now starts from its previous value.
            changed = self._commit(process, machine)
            fresh = {r for v in changed for r in readers.get(v, ())} - waiting
            waiting.update(fresh)
            return fresh

        for process in processes:
            run(process)
        order = in_order(
            processes,
            lambda process: (r for v in self.masks[process] for r in readers.get(v, ())),
        )
        rank = {process: index for index, process in enumerate(order)}
        queue = [rank[process] for process in waiting]
        heapify(queue)
        runs = dict.fromkeys(processes, 0)
        while queue:
            process = order[heappop(queue)]
            waiting.discard(process)
            runs[process] += 1
            # A chain through the bits of one vector settles after as many runs as it has bits,
            # and so does all that reads a part of it.
            if runs[process] > _MOST_RUNS + min(widest, _MOST_STEPS):
                self.problems[
                    f"{process.position}: a combinational loop through {process.name} (what it "
                    "drives depends on itself within a cycle; a register would break it)"
                ] = None
                return
            for reader in run(process):
                heappush(queue, rank[reader])

    def _commit(self, process: Process, machine: Machine) -> list[Variable]:
        known = self.masks[process]
        changed = []
        written = {**machine.now.own}
        for variable_, value in machine.later.own.items():
            written[variable_] = value
        for variable_, value in written.items():
            if variable_.local or variable_ not in machine.masks:
                continue
            mask = machine.masks[variable_]
            if known.get(variable_) is not mask:
                old_mask = known.get(variable_)
                known[variable_] = mask if old_mask is None else _union(old_mask, mask)
                if old_mask is not known[variable_]:
                    changed.append(variable_)
            old = self.env.get(variable_)
            if old is None:
                old = self._before(variable_)
            new = _masked(known[variable_], value, old)
            if new is not self.env.get(variable_):
                if variable_ not in self.env or not _same(new, self.env[variable_]):
                    changed.append(variable_)
                self.env[variable_] = new
        return changed

    def _clocks(self, processes: list[Process]) -> tuple[tuple[str, ...], tuple[Reset, ...]]:
        """Find which inputs are clocks and asynchronous resets."""
        clocks: dict[str, None] = {}
        resets: dict[str, Reset] = {}
        for process in processes:
            reads: set[Variable] = set()
            machine = self._execute(process, reads)
            if machine is None:
                continue
            names = []
            for edge in process.edges:
                probe = Machine(lambda v: self.env.get(v, self._before(v)))
                term = process.scope.expressions.bits(edge.expression, probe)
                names.append((edge, _input_behind(term), term))
            guards = variables_of(term for value in machine.points.values() for term in (value,))
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
                elif not rising:
                    self.problems[
                        f"{process.position}: waits for the falling edge of the clock '{name}'"
                    ] = None
                else:
                    clocks[name] = None
        if len(clocks) > 1:
            self.design.notices[f"clocks {', '.join(clocks)} are driven together, as one"] = None
        return tuple(clocks), tuple(resets.values())

    def _settle_with_clocks_low(
        self, processes: Sequence[Process], clocks: tuple[str, ...]
    ) -> None:
        inputs = {variable(name, bits(1)) for name in clocks}
        self.ticking = {v for v, value in self.env.items() if value in inputs}
        for port in self.design.ports:
            if port.name in clocks:
                self.env[port.variable] = bv.value(0, 1)
        self._settle(processes)

    def _clock_edge(self, processes: list[Process]) -> dict[Variable, Value]:
        following: dict[Variable, Value] = {}
        for process in processes:
            machine = self._execute(process, None)
            if machine is None:
                continue
            for layer in (machine.now.own, machine.later.own):
                for variable_, value in layer.items():
                    if variable_.local or variable_ not in machine.masks:
                        continue
                    old = following.get(variable_, self.env.get(variable_, self._before(variable_)))
                    following[variable_] = _masked(machine.masks[variable_], value, old)
        return following

    def _assemble(
        self,
        inputs: list[Input],
        initial: Mapping[str, int],
        clocks: tuple[str, ...],
        resets: tuple[Reset, ...],
        following: Mapping[Variable, Value],
    ) -> CycleModel:
        points: dict[PointKey, Term] = {}
        asserts: dict[tuple[Position, str], Term] = {}
        notices = dict(self.design.notices)
        for process, machine in self.machines.items():
            for key, guard in machine.points.items():
                points[key] = either(points.get(key, FALSE), guard)
            for position, violated in machine.asserts.items():
                place = (position, process.scope.path)
                asserts[place] = either(asserts.get(place, FALSE), violated)
            notices.update(machine.notices)
        signals: dict[str, Term] = {}
        next_of: dict[str, Term] = {}
        outputs: dict[str, Term] = {}
        ports = {port.variable: port for port in self.design.ports}
        for variable_ in {**self.env, **self.previous}:
            if variable_.local or variable_ in self.ticking:
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
                if not memory:
                    signals[name] = term
                next_of[_PREVIOUS + name] = new
                if variable_ in ports:
                    outputs[name] = term
        roots = [*points.values(), *asserts.values(), *signals.values()]
        state = _cone(roots, next_of)
        clock_low = Substitution({variable(name, bits(1)): bv.value(0, 1) for name in clocks})
        everything = {name: clock_low(term) for name, term in state.items()}
        return CycleModel(
            inputs=tuple(item for item in inputs if item.name not in clocks),
            clocks=clocks,
            resets=(*resets, *_synchronous_resets(inputs, clocks, resets)),
            state=everything,
            initial={name: initial.get(name, 0) for name in everything},
            points={key: clock_low(term) for key, term in points.items()},
            asserts={key: clock_low(term) for key, term in asserts.items()},
            signals={key: clock_low(term) for key, term in signals.items()},
            outputs={key: clock_low(term) for key, term in outputs.items()},
            notices=tuple(notices),
        )


def _synchronous_resets(
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


def _cone(roots: Iterable[Term], next_of: Mapping[str, Term]) -> dict[str, Term]:
    """Return the state that ``roots`` depend on, now or in a later cycle."""
    state: dict[str, Term] = {}
    pending = list(roots)
    while pending:
        found = [name for name in variables_of(pending) if name.startswith(_PREVIOUS)]
        fresh = [name for name in found if name not in state]
        for name in fresh:
            state[name] = next_of[name] if name in next_of else const(0, bits(1))
        pending = [state[name] for name in fresh]
    return state


def _masked(mask: Value, new: Value, old: Value) -> Value:
    """Return ``new`` where ``mask`` has ones, ``old`` elsewhere."""
    if new is old:
        return new
    if isinstance(mask, Term):
        assert isinstance(new, Term)
        assert isinstance(old, Term)
        full = (1 << mask.width) - 1
        if mask.data == full:
            return new
        if mask.data == 0:
            return old
        pieces = []
        low = 0
        while low < mask.width:
            bit = mask.data >> low & 1
            high = low
            while high + 1 < mask.width and mask.data >> (high + 1) & 1 == bit:
                high += 1
            pieces.append(bv.extract(new if bit else old, high, low))
            low = high + 1
        return bv.concat(reversed(pieces))
    assert isinstance(new, tuple)
    assert isinstance(old, tuple)
    return tuple(_masked(m, a, b) for m, a, b in zip(mask, new, old, strict=True))


def _union(a: Value, b: Value) -> Value:
    if isinstance(a, Term):
        assert isinstance(b, Term)
        return bv.value(a.data | b.data, a.width)
    assert isinstance(b, tuple)
    result = tuple(_union(x, y) for x, y in zip(a, b, strict=True))
    return a if _same(result, a) else result


def _same(a: Value, b: Value) -> bool:
    if a is b:
        return True
    if isinstance(a, Term) or isinstance(b, Term):
        return False
    return all(_same(x, y) for x, y in zip(a, b, strict=True))


def _input_behind(term: Term) -> tuple[str, bool] | None:
    """Return the one-bit input that a clock is, and whether it is inverted."""
    if term.op == "var" and not str(term.data).startswith(_PREVIOUS):
        return str(term.data), False
    if term.op == "ite" and term.args[1].is_const and term.args[2].is_const:
        condition = term.args[0]
        if condition.op == "eq" and condition.args[0].op == "var":
            name = str(condition.args[0].data)
            if not name.startswith(_PREVIOUS):
                return name, bool(term.args[2].data)
    return None


__all__ = ["CycleModel", "Input", "Packed", "Reset", "build_model"]
