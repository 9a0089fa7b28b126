"""The size of what many tensors make when they are joined."""

from __future__ import annotations

from hagane.frontends.python.interpret.core import Core
from hagane.symbolic import Dim, symbols_of


def total_size(t: Core, one: Dim, length: Dim) -> Dim:
    """Return the sum of the sizes of an axis over many tensors.

    Args:
        t: The interpreter.
        one: The size of the tensor that stands for all of them.
        length: How many there are.
    """
    if any(name in t.counters or name in t.emit.pieces.varying for name in symbols_of(one)):
        return t.emit.fresh("total")  # it differs from turn to turn of a loop
    found = t.emit.pieces.total(one, length)
    return t.emit.fresh("total") if found is None else found
