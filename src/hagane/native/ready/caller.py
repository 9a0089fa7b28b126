"""Frames: programs that are ready for inputs of certain shapes, so that a run is one C call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from hagane.native.ready.context import Context, Ready, Refused, ShapeMismatch
from hagane.native.ready.extension import load_extension, open_extension

if TYPE_CHECKING:
    from hagane.ops.definition import Array

# Fields of a program for the C extension: see `read_frame` in frames.c.
Frame = tuple[Any, ...]
# From arrays, the owner of a frame that may be taken, whether it must be, how often arrays of these
# shapes have run since the last time, with the run that is to come, and the least nanoseconds of that,
# by the program for all shapes and by their own, to a frame.
Fit: TypeAlias = "Callable[[Sequence[Array], object, bool, int, int, int], Frame | None]"
# From a feed, names of outputs or None, and arrays to write into or None, to outputs or None.
Caller = Callable[..., "list[Any] | None"]


def make_entry(
    inputs: Sequence[str],
    outputs: Sequence[str],
    fit: Fit,
    holder: type,
    cpu: object,
    extension: Path | None = None,
    likely: Sequence[tuple[str, Sequence[object]]] = (),
) -> Caller | None:
    """Return a function from a feed to outputs; it returns None for a feed that does not fit as it is.

    Args:
        inputs: Names that a feed must have, and no others.
        outputs: Names of all outputs.
        fit: Is asked for a frame when arrays of new shapes come.
        holder: A class of values that may take the place of arrays, in ``_held``, while ``device``
            is ``cpu``.
        cpu: The device where arrays lie.
        extension: The library of the engine's module, if that is there already.
        likely: The element type of each input, as NumPy calls it, and its sizes, of which those that
            are no numbers are open: the entry is made ready for 1 in their place, and a first run of
            other sizes needs other tables alone.
    """
    module = load_extension() if extension is None else open_extension(extension)
    if module is None:
        return None  # the slower way through ctypes serves
    made: Caller = module.make(tuple(inputs), tuple(outputs), fit, holder, "_held", "device", cpu)
    if likely:
        with suppress(MemoryError, TypeError, ValueError):  # no array has such a type or shape
            module.prepare(made, [_likely(dtype, dims) for dtype, dims in likely])
    return made


def _likely(dtype: str, dims: Sequence[object]) -> Array:
    """Return an array of some sizes, 1 for open ones; its elements are any."""
    return np.empty([dim if isinstance(dim, int) else 1 for dim in dims], dtype)


def entry_of(segment: Ready) -> Caller | None:
    """Return a function from a list of arrays, the inputs of a part, to its outputs.

    Like those of ``make_entry`` it returns None for arrays that do not fit as they are.
    """
    inputs, outputs = (range(len(ports)) for ports in (segment.takes, segment.gives))

    def fit(arrays: Sequence[Array], owner: object, full: bool, *past: int) -> Frame | None:
        return make_frame(segment, arrays, inputs, outputs, owner, full)

    return make_entry([*map(str, inputs)], [*map(str, outputs)], fit, _Nothing, None)


class _Nothing:
    """The class of no value."""


def make_frame(
    segment: Ready,
    arrays: Sequence[Array],
    own: Sequence[int],
    order: Sequence[int],
    owner: object,
    full: bool,
    lease: int = 0,
    *,
    general: bool = True,
) -> Frame | None:
    """Return a frame of a part for arrays of some shapes, or None if the part cannot have one.

    Args:
        segment: The part.
        arrays: The inputs of the entry.
        own: Which of them are those of the part.
        order: Which of the part's outputs are those of the entry.
        owner: Of a frame whose place may be taken, or None.
        full: Whether it must be, if there is one.
        lease: For how many runs it is not asked for again; for all if 0.
        general: Whether the part is for all shapes.
    """
    read = [arrays[i] for i in own]
    if any(
        array.ndim != rank or array.dtype != dtype
        for array, (rank, dtype) in zip(read, segment.takes, strict=True)
    ):
        return None
    shapes = tuple(array.shape for array in read)
    context = owner if isinstance(owner, Context) and owner.segment is segment else None
    try:
        if context is not None and context.holds(shapes):
            pass  # its lease has run out
        elif context is not None and full:
            context.fit(shapes)
        else:
            context = Context(segment, shapes)
    except ShapeMismatch:
        return None
    inputs = [(array.dtype.num, own.index(i) if i in own else -1) for i, array in enumerate(arrays)]
    outputs = [(segment.gives[i].num, i) for i in order]
    engine = segment.engine
    functions = (engine.address(name) for name in ("hg_run", "hg_fit", "hg_grown", "hg_lend"))
    address = context.fitted.address
    general = general and len(own) == len(arrays)
    made: Context = context

    def fail(index: int) -> None:
        with suppress(Refused):  # the long way computes it
            made.fail(index)

    state = (address, segment.is_endless, general, context, fail, segment.pool.empty)
    return (*functions, *state, inputs, outputs, lease)
