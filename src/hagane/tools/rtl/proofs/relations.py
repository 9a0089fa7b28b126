"""Candidates for invariants, from states that runs reached.

A relation that none of many states showed may be one that no state ever shows: a value that a
small register never takes, two bits that are never so at once, a register above another or above
a bound. Whether it is one is for the induction to say.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from itertools import combinations

from hagane.tools.rtl.proofs.circuit import Circuit

_SMALL = 6  # bits of a register whose values are listed
_CONTROL = 4  # bits of a register that counts as control
_MOST_BITS = 72
_MOST = 4_000


def relations(
    circuit: Circuit, samples: Sequence[dict[str, int]], stop: float = float("inf")
) -> list[int]:
    """Return literals over the state that are false in all samples, those found before ``stop``."""
    gates = circuit.gates
    found: dict[int, None] = {}
    names = list(circuit.state)
    columns = {name: [sample[name] for sample in samples] for name in names}
    for name in names:
        bits = circuit.state[name]
        seen = set(columns[name])
        if len(bits) <= _SMALL:
            for value in range(1 << len(bits)):
                if value not in seen:
                    found[_equals(circuit, name, value)] = None
        elif len(seen) > 1:
            for bound in {max(seen), (1 << max(seen).bit_length()) - 1}:
                if bound < (1 << len(bits)) - 1:
                    found[_above(circuit, name, bound)] = None
        for at, bit in enumerate(bits):
            ones = sum(value >> at & 1 for value in columns[name])
            if ones in (0, len(samples)):
                found[bit if ones == 0 else bit ^ 1] = None
    for first, second in combinations([n for n in names if len(circuit.state[n]) > 1], 2):
        if len(found) > _MOST or time.monotonic() > stop:
            break
        a, b = circuit.state[first], circuit.state[second]
        if len(a) != len(b):
            continue
        pairs = list(zip(columns[first], columns[second], strict=True))
        if all(x == y for x, y in pairs):
            found[gates.some(gates.differ(x, y) for x, y in zip(a, b, strict=True))] = None
        elif all(x <= y for x, y in pairs):
            found[_less(circuit, b, a)] = None
        elif all(x >= y for x, y in pairs):
            found[_less(circuit, a, b)] = None
    control = [
        (bit, [value >> at & 1 for value in columns[name]])
        for name in sorted(names, key=lambda n: len(circuit.state[n]))
        if len(circuit.state[name]) <= _CONTROL
        for at, bit in enumerate(circuit.state[name])
    ][:_MOST_BITS]
    packed = [(bit, int("".join(map(str, values)), 2)) for bit, values in control]
    whole = (1 << len(samples)) - 1
    for (first_bit, p), (second_bit, q) in combinations(packed, 2):
        if len(found) > _MOST or time.monotonic() > stop:
            break
        for x, u in ((first_bit, p), (first_bit ^ 1, whole ^ p)):
            for y, v in ((second_bit, q), (second_bit ^ 1, whole ^ q)):
                if u and v and not u & v:
                    found[gates.both(x, y)] = None
    return [literal for literal in found if literal > 1]


def _equals(circuit: Circuit, name: str, value: int) -> int:
    bits = circuit.state[name]
    return circuit.gates.every(bit ^ 1 ^ (value >> k & 1) for k, bit in enumerate(bits))


def _above(circuit: Circuit, name: str, bound: int) -> int:
    bits = circuit.state[name]
    return _less(circuit, [bound >> k & 1 for k in range(len(bits))], bits)


def _less(circuit: Circuit, a: Sequence[int], b: Sequence[int]) -> int:
    gates, less = circuit.gates, 0
    for x, y in zip(a, b, strict=True):
        less = gates.choose(gates.differ(x, y), y, less)
    return less
