"""A program's inputs and outputs bound once, so that a run is one C call."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from hagane.native.kernels.control import Loop
from hagane.native.run.extension import load_extension
from hagane.native.run.loaded import Loaded
from hagane.native.run.memory import Numbers
from hagane.ops.definition import Array

Caller = Callable[[Mapping[str, Any]], "list[Array] | None"]

# Runs shorter than this keep other Python threads waiting; letting go would cost more.
_SHORT_NS = 20_000.0


def make_caller(segment: Loaded, names: Sequence[str], order: Sequence[int]) -> Caller | None:
    """Return a function from a feed to a segment's outputs, or None where there can be none.

    The function returns None for a feed that does not fit as it is.

    Args:
        segment: Compiled kernels of fixed shapes.
        names: The name of each of its inputs.
        order: Which of its outputs to return, in order.
    """
    if segment.may_mismatch or segment.growing:
        return None
    module = load_extension()
    if module is None:
        return None  # the slower way through ctypes serves
    context = segment.context({})
    table = context.table.ctypes.data

    def port(
        name: str | None, index: int, shape: tuple[int, ...], dtype: Any, patches: Sequence[Any]
    ) -> tuple[str | None, int, tuple[int, ...], list[tuple[int, int]]]:
        places = [(table + 8 * slot, offset) for slot, number, offset in patches if number == index]
        return name, np.dtype(dtype).num, shape, places

    inputs = [
        port(name, i, tuple(int(dim) for dim in shape), dtype, context.input_patches)
        for i, (name, (_, shape, dtype)) in enumerate(zip(names, segment.inputs, strict=True))
    ]
    outputs = [
        port(
            None,
            i,
            context.output_shapes[i][0],
            context.output_shapes[i][1],
            context.output_patches,
        )
        for i in order
    ]
    # A loop whose iterations nobody knows may take any time.
    endless = any(
        isinstance(c, Loop) and not isinstance(c.iterations, int) for c in segment.controls
    )
    run = segment.engine.address("hg_run")
    made: Caller = module.make(
        run,
        context.program,
        inputs,
        outputs,
        context.fail,
        context,
        endless or segment.estimated(Numbers({})).whole > _SHORT_NS,
    )
    return made
