"""What a circuit starts with: the values that its initial processes give to state."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from hagane.symbolic import bitvector as bv
from hagane.symbolic.term import FALSE, Term
from hagane.tools.rtl.circuit.design import Design
from hagane.tools.rtl.circuit.drivers import PREVIOUS
from hagane.tools.rtl.circuit.machine import Machine, Outside, PointKey, Variable
from hagane.tools.rtl.circuit.values import Value, filled, flat, leaves


@dataclass(frozen=True, slots=True)
class Start:
    """The start of a circuit.

    Attributes:
        numbers: The number with which state starts, by its name.
        given: The state of which every bit gets a value.
        never: Points of initial processes that parameters alone keep from being reached.
    """

    numbers: Mapping[str, int]
    given: frozenset[str]
    never: Mapping[PointKey, Term]


def initial_values(design: Design) -> Start:
    """Execute the initial processes of a design; what cannot be executed gets a notice there."""
    values: dict[Variable, Value] = {}
    written: dict[Variable, Value] = {}
    given: set[str] = set()
    never: dict[PointKey, Term] = {}
    for process in design.processes:
        if not process.initial:
            continue
        read: set[Variable] = set()
        machine = Machine(_noting(read, values), once=True)
        try:
            process.run(machine)
        except Outside as problem:
            design.notices[f"initialisation ignored: {problem}"] = None
            continue
        if not any(not v.local for v in read):
            # Parameters alone decide what is executed at the start.
            never.update({k: g for k, g in machine.points.items() if g is FALSE})
        values.update({v: x for v, x in machine.now.own.items() if not v.local})
        values.update({v: x for v, x in machine.later.own.items() if not v.local})
        for variable_, mask in machine.masks.items():
            old = written.get(variable_, filled(variable_.layout, 0))
            pairs = zip(flat(old), flat(mask), strict=True)
            written[variable_] = tuple(bv.bit_or(a, b) for a, b in pairs)
        design.notices.update(machine.notices)
    numbers = {}
    for variable_, value in values.items():
        names = (name for name, _ in leaves(PREVIOUS + variable_.name, variable_.layout))
        for name, term in zip(names, flat(value), strict=True):
            if term.is_const:
                numbers[name] = int(term.data)
    for variable_, mask in written.items():
        names = (name for name, _ in leaves(PREVIOUS + variable_.name, variable_.layout))
        given.update(
            name for name, bits_ in zip(names, flat(mask), strict=True) if _all_ones(bits_)
        )
    return Start(numbers, frozenset(given), never)


def _all_ones(term: Term) -> bool:
    return term.is_const and int(term.data) == (1 << term.width) - 1


def _noting(read: set[Variable], values: Mapping[Variable, Value]) -> Callable[[Variable], Value]:
    """Return a reader of values at the start, which notes what was read."""

    def base(variable_: Variable) -> Value:
        read.add(variable_)
        return values.get(variable_, filled(variable_.layout, 0))

    return base
