"""Gated clocks: computed signals whose edges are those of an input, in the rows that pass a gate.

Registers and inputs change while a clock is on the level that follows its edge. A gate is followed
if nothing that changes then reaches it: on that level it is constant, or passes closed latches.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from hagane.symbolic import bitvector as bv
from hagane.symbolic.interpret import Substitution
from hagane.symbolic.term import Term, bits, variable, variables_of
from hagane.tools.rtl.circuit.drivers import PREVIOUS


@dataclass(frozen=True, slots=True)
class Gate:
    """The clock behind a computed signal.

    Attributes:
        clock: The input.
        rising: Whether the edges of the signal are at rising edges of the clock.
        enabled: Whether the edge that ends a row passes the gate, over the row's own values.
    """

    clock: str
    rising: bool
    enabled: Term


def gate_behind(
    term: Term, rising: bool, settled: Mapping[str, Term], clocks: Collection[str]
) -> Gate | None:
    """Return the gate that a signal of one bit is.

    Args:
        term: The signal.
        rising: Whether its rising edges are asked for.
        settled: The values of combinational signals, by the names of their unknowns.
        clocks: Inputs that are clocks for sure; of several that may be it is one of these.

    Returns:
        None where the signal is no gate of one clock, or may have other edges within a row.
    """
    wanted = term if rising else bv.invert(term)
    inputs = [name for name in variables_of([wanted]) if not name.startswith(PREVIOUS)]
    found = [
        gate
        for name in inputs
        for level in (1, 0)
        if (gate := _gate_of(wanted, name, level, settled)) is not None
    ]
    sure = [gate for gate in found if gate.clock in clocks]
    chosen = found if len(found) == 1 else sure
    return chosen[0] if len(chosen) == 1 else None


def _gate_of(wanted: Term, name: str, level: int, settled: Mapping[str, Term]) -> Gate | None:
    """Return the gate if the signal rises only as the input comes to a level."""
    clock = variable(name, bits(1))
    if clock.width != variables_of([wanted])[name].width:
        return None
    edge = Substitution({clock: bv.value(level, 1)})
    active, rest = edge(wanted), Substitution({clock: bv.value(1 - level, 1)})(wanted)
    if not (rest.is_const and not rest.data):
        return None
    latches = variables_of([active])
    for held in latches:
        value = settled.get(held)
        if value is None or edge(value) is not variable(held, value.sort):
            return None
    passed = Substitution({variable(held, settled[held].sort): settled[held] for held in latches})
    return Gate(name, bool(level), bv.to_bool(passed(active)))
