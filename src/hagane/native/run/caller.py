"""Frames: programs that are ready for inputs of certain shapes, so that a run is one C call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from hagane.native.kernels.control import Loop
from hagane.native.run.context import Context, Refused
from hagane.native.run.extension import load_extension
from hagane.native.run.loaded import Loaded, ShapeMismatch

if TYPE_CHECKING:
    from hagane.ops.definition import Array

# What the C extension reads of a program: see `read_frame` in call.c.
Frame = tuple[Any, ...]
# From arrays, the owner of a frame that may be taken, and whether it must be, to a frame.
Fit: TypeAlias = "Callable[[Sequence[Array], object, bool], Frame | None]"
# From a feed, names of outputs or None, and arrays to write into or None, to outputs or None.
Caller = Callable[..., "list[Any] | None"]

# Runs shorter than this keep other Python threads waiting; letting go would cost more.
_SHORT_NS = 20_000.0
# A part has as many frames as an entry has room for while all take few bytes, else a few, and one
# where these take many: memory has to stay flat over many shapes.
_LITTLE_BYTES, _FEW, _MOST_BYTES = 256 << 10, 4, 16 << 20


def make_entry(
    inputs: Sequence[str], outputs: Sequence[str], fit: Fit, holder: type, cpu: object
) -> Caller | None:
    """Return a function from a feed to outputs; it returns None for a feed that does not fit as it is.

    Args:
        inputs: Names that a feed must have, and no others.
        outputs: Names of all outputs.
        fit: Is asked for a frame when arrays of new shapes come.
        holder: A class of values that may take the place of arrays, in ``_held``, while ``device``
            is ``cpu``.
        cpu: The device where arrays lie.
    """
    module = load_extension()
    if module is None:
        return None  # the slower way through ctypes serves
    made: Caller = module.make(tuple(inputs), tuple(outputs), fit, holder, "_held", "device", cpu)
    return made


def _is_much(segment: Loaded) -> bool:
    """Whether another frame of a part would take too much memory."""
    taken = segment.bytes_of_frames()
    return taken > _MOST_BYTES or (taken > _LITTLE_BYTES and len(segment.frames) >= _FEW)


def make_frame(
    segment: Loaded,
    arrays: Sequence[Array],
    own: Sequence[int],
    order: Sequence[int],
    owner: object,
    full: bool,
    lease: int = 0,
) -> Frame | None:
    """Return a frame of a part for arrays of some shapes, or None if the part cannot have one.

    Args:
        segment: Compiled kernels.
        arrays: The inputs of the entry.
        own: Which of them are those of the part.
        order: Which of the part's outputs are those of the entry.
        owner: Of a frame whose place may be taken, or None.
        full: Whether it must be, if there is one.
        lease: For how many runs it is not asked for again; for all if 0.
    """
    if segment.growing:
        return None
    read = [arrays[i] for i in own]
    try:
        number = segment.bind_sizes(read)
    except ShapeMismatch:
        return None
    shapes = tuple(array.shape for array in read)
    context = owner if isinstance(owner, Context) and owner.segment is segment else None
    if context is not None and context.shapes == shapes:
        pass  # its lease has run out
    elif context is not None and (full or _is_much(segment)):
        context.fit(shapes, number)
    else:
        context = Context(segment, shapes, number)
        segment.frames.add(context)
    table = context.table.ctypes.data

    def places(patches: Sequence[tuple[int, int, int]], index: int) -> list[tuple[int, int]]:
        return [(table + 8 * slot, offset) for slot, which, offset in patches if which == index]

    inputs = [
        (
            array.shape,
            array.dtype.num,
            places(context.input_patches, own.index(i)) if i in own else [],
        )
        for i, array in enumerate(arrays)
    ]
    outputs = [
        (shape, np.dtype(dtype).num, places(context.output_patches, i))
        for i in order
        for shape, dtype in [context.output_shapes[i]]
    ]
    # A loop whose iterations nobody knows may take any time.
    endless = any(
        isinstance(c, Loop) and not isinstance(c.iterations, int) for c in segment.controls
    )
    long_running = endless or segment.estimated(number).whole > _SHORT_NS
    run = segment.engine.address("hg_run")
    empty = segment.pool.empty

    def fail(index: int) -> None:
        with suppress(Refused):  # the long way computes it
            context.fail(index)

    return run, context.program, long_running, context, fail, empty, inputs, outputs, lease
