"""What a circuit starts with: the values that its initial processes give to state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

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
        files: Files that were read, by the names that they have in the sources.
    """

    numbers: Mapping[str, int]
    given: frozenset[str]
    never: Mapping[PointKey, Term]
    files: Mapping[str, Path]


def initial_values(design: Design, problems: dict[str, None]) -> Start:
    """Execute the initial processes of a design; what cannot be executed is a problem."""
    values: dict[Variable, Value] = {}
    written: dict[Variable, Value] = {}
    given: set[str] = set()
    never: dict[PointKey, Term] = {}
    files: dict[str, Path] = {}
    for process in design.processes:
        if not process.initial:
            continue
        machine = Machine(partial(_at_start, values), once=True)
        try:
            process.run(machine)
        except Outside as problem:
            problems[str(problem)] = None
            continue
        files.update(machine.files)
        if all(v.local for v in machine.early):
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
    return Start(numbers, frozenset(given), never, files)


def _all_ones(term: Term) -> bool:
    return term.is_const and int(term.data) == (1 << term.width) - 1


def _at_start(values: Mapping[Variable, Value], variable_: Variable) -> Value:
    return values.get(variable_, filled(variable_.layout, 0))
