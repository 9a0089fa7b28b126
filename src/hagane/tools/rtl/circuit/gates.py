"""Gates of the language (and, nor, buf …) as continuous assignments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from hagane.symbolic import bitvector as bv
from hagane.symbolic.term import Term
from hagane.tools.rtl.circuit.machine import Machine
from hagane.tools.rtl.circuit.selects import Selects

_JOINS: dict[str, Callable[[Term, Term], Term]] = {
    "and": bv.bit_and, "nand": bv.bit_and, "or": bv.bit_or,
    "nor": bv.bit_or, "xor": bv.bit_xor, "xnor": bv.bit_xor,
}  # fmt: skip
_INVERTED = frozenset({"nand", "nor", "xnor", "not"})
GATES = frozenset({*_JOINS, "buf", "not"})


def run_gate(gate: str, connections: Sequence[Any], expressions: Selects, m: Machine) -> None:
    """Drive a gate's outputs (IEEE 1800-2017, 28.4 and 28.5).

    ``buf`` and ``not`` have outputs and one input, the last; the others one output, the first.
    """
    outputs = connections[:-1] if gate in ("buf", "not") else connections[:1]
    terms = [bv.extract(expressions.bits(e, m), 0, 0) for e in connections[len(outputs) :]]
    result = terms[0]
    for term in terms[1:]:
        result = _JOINS[gate](result, term)
    if gate in _INVERTED:
        result = bv.invert(result)
    for e in outputs:
        expressions.assign(e.left if e.kind.name == "Assignment" else e, result, m)
