"""Compiled parts as parts of a plan (``native/ready/plan_file.py``)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from hagane.native.kernels.kernel import Call
from hagane.native.ready.plan_file import NOTHING, PlanPart
from hagane.native.ready.rows import PartRows, flattened


def plan_part(
    rows: PartRows,
    kernels: Sequence[Call],
    places: Sequence[int],
    function: Callable[[str], int],
) -> PlanPart:
    """Return the tables of a part.

    Args:
        rows: The tables.
        kernels: The part's.
        places: Where each buffer of packed weights lies in the file of weights, in bytes.
        function: From the symbol of a kernel's function to its number in the plan.
    """
    functions = [NOTHING if each.symbol is None else function(each.symbol) for each in kernels]
    return PlanPart(
        rows.counts,
        flattened(rows),
        np.array([*functions, NOTHING], np.int32),
        tuple(kernel.label for kernel in kernels),
        tuple(kernel.failure for kernel in kernels),
        np.array([*places, NOTHING], np.int64),
    )
