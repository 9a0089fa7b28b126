"""Which inputs of a circuit are clocks and resets, and in which rows its processes run."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from hagane.symbolic import bitvector as bv
from hagane.symbolic.logic import either, equal
from hagane.symbolic.term import FALSE, TRUE, Term, bits, variable, variables_of
from hagane.tools.rtl.circuit.cycle import Input, Reset
from hagane.tools.rtl.circuit.design import Process
from hagane.tools.rtl.circuit.drivers import PREVIOUS
from hagane.tools.rtl.circuit.gating import Gate, gate_behind
from hagane.tools.rtl.circuit.machine import Machine, Variable
from hagane.tools.rtl.circuit.values import Value
from hagane.tools.rtl.errors import UnsupportedDesign

_RESET_NAME = re.compile(r"(?:^|[._])(a|s)?(n)?(?:rst|reset)(n|_n|_ni|_b|_bi)?(?:_i|_in)?$", re.I)


@dataclass(frozen=True, slots=True)
class Clocks:
    """The clocks of a circuit, and when its processes run.

    Attributes:
        names: The clocks.
        resets: The asynchronous resets.
        rising: In which rows a process runs, of several clocks or behind a gate; others do in all.
        resetting: In which rows an asynchronous reset is active for a process.
        falling: The clocks of which the falling edge counts.
    """

    names: tuple[str, ...]
    resets: tuple[Reset, ...]
    rising: Mapping[Process, Term]
    resetting: Mapping[Process, Term]
    falling: frozenset[str]

    @property
    def active(self) -> Term:
        """Whether any asynchronous reset is active in a row."""
        held = (
            equal(variable(reset.name, bits(1)), bv.value(reset.active, 1)) for reset in self.resets
        )
        return either(FALSE, *held)

    def first(self, inputs: Sequence[Input]) -> tuple[Input, ...]:
        """Return what a row sets: all but the clock, or several clocks, the others behind."""
        by_name = {item.name: item for item in inputs}
        several = [by_name[name] for name in self.names] if len(self.names) > 1 else []
        return (*several, *(item for item in inputs if item.name not in self.names))


def find_clocks(
    processes: Sequence[Process],
    machines: Mapping[Process, Machine],
    read: Mapping[Process, Iterable[Variable]],
    value: Callable[[Variable], Value],
    settled: Mapping[str, Term],
    known: Iterable[str] = (),
) -> Clocks:
    """Find which inputs are clocks and asynchronous resets.

    Args:
        processes: The processes that wait for edges.
        machines: Their runs, of those that could be run.
        read: The variables that they read.
        value: The value of a variable before their edges.
        settled: The values of combinational signals, by the names of their unknowns.
        known: Problems of the design that are known already.

    Raises:
        UnsupportedDesign: A process waits for what is neither an input nor a gated one, clocks have
            both edges, or a process reads the level of a clock; or there are problems already.
    """
    clocks: dict[str, bool] = {}  # whether it is the rising edge that counts
    resets: dict[str, Reset] = {}
    resetting: dict[Process, Term] = {}
    rises_of: dict[Process, Term] = {}
    gated: dict[Process, Term] = {}
    problems = dict.fromkeys(known)
    waits = {
        process: [
            (edge, process.scope.expressions.bits(edge.expression, Machine(value)))
            for edge in process.edges
        ]
        for process in processes
        if process in machines
    }
    plain = {found[0] for edges in waits.values() for _, term in edges if (found := _input(term))}
    for process, edges in waits.items():
        guards = variables_of(machines[process].points.values())
        rises = FALSE
        passes = FALSE
        for edge, term in edges:
            gate = _gate(term, edge.rising, settled, plain)
            if gate is None:
                if term.is_const:
                    continue
                problems[
                    f"{process.position}: waits for '{edge.text}', which is no input of the "
                    f"top module but computed (a gated or divided clock, or one that nothing "
                    "drives; make it an input, or hold what enables it in a latch that is closed "
                    "while the clock is active)"
                ] = None
                continue
            name, rising = gate.clock, gate.rising
            if len(edges) > 1 and gate.enabled is TRUE and name in guards:
                resets[name] = Reset(name, int(rising), True)
                active = equal(variable(name, bits(1)), bv.value(int(rising), 1))
                resetting[process] = either(resetting.get(process, FALSE), active)
            elif clocks.setdefault(name, rising) != rising:
                problems[
                    f"{process.position}: waits for the {'rising' if rising else 'falling'} "
                    f"edge of the clock '{name}', others for the other edge (make the other edge a "
                    "clock of its own, an input)"
                ] = None
            else:
                rises = either(rises, equal(tick(name), bv.value(1, 1)))
                passes = either(passes, gate.enabled)
        rises_of[process] = rises
        if passes is not TRUE:
            gated[process] = passes
    if len(clocks) > 1:
        for process in gated:
            problems[
                f"{process.position}: waits for a gated clock, where there are several clocks "
                f"({', '.join(clocks)})"
            ] = None
    levels = {variable(name, bits(1)) for name in clocks}
    for process in processes:
        for variable_ in read.get(process, ()):
            if value(variable_) in levels:
                problems[
                    f"{process.position}: reads the level of the clock "
                    f"'{variable_.name}' at an edge, where it is known"
                ] = None
    if problems:
        raise UnsupportedDesign(list(problems))
    return Clocks(
        tuple(clocks),
        tuple(resets.values()),
        rises_of if len(clocks) > 1 else gated,
        resetting,
        frozenset(name for name, rising in clocks.items() if not rising),
    )


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


def tick(clock: str) -> Term:
    """Return whether a clock has its edge in a row, apart from its level."""
    return variable(f"^{clock}", bits(1))


def _gate(
    term: Term, rising: bool, settled: Mapping[str, Term], clocks: Collection[str]
) -> Gate | None:
    """Return the clock that a term is, perhaps behind a gate."""
    found = _input(term)
    if found is None:
        return gate_behind(term, rising, settled, clocks)
    name, inverted = found
    return Gate(name, rising != inverted, TRUE)


def _input(term: Term) -> tuple[str, bool] | None:
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
