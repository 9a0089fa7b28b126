"""Indices of PyTorch's functions that count from the front alone."""

from __future__ import annotations

import numpy as np

from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.values.values import Tensor

# Operators whose results are places that are there.
_PLACES = frozenset({"ArgMax", "ArgMin", "NonZero", "Range"})


def from_front(t: Core, places: Tensor) -> Tensor:
    """Return indices of which negative ones lie outside of every axis.

    The operators of ONNX count them from the end of an axis, where PyTorch raises an error.

    Args:
        t: The interpreter.
        places: Indices.

    Raises:
        CheckError: A known one is negative.
    """
    known = places.known
    if known is not None:
        if known.dtype.kind == "i" and known.size and known.min() < 0:
            t.fail("index", f"expected indices of 0 or more, got {int(known.min())}", places)
        return places
    if not t.emit.builds or places.value is None or not places.dtype.is_signed():
        return places
    node = places.value.producer()
    if node is not None and node.op_type in _PLACES:
        return places
    lowest = np.array(np.iinfo(places.dtype.numpy()).min, places.dtype.numpy())
    zero = np.array(0, places.dtype.numpy())
    made: Tensor = t.op("Where", t.op("Less", places, zero), lowest, places)
    return made
