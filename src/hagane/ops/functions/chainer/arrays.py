"""Chainer's functions that move, join and spread elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.ops.builder import op, rank_of, shape_of
from hagane.ops.functions.numbers.activations import number_like
from hagane.ops.functions.numbers.elementary import cast, squeeze, unsqueeze
from hagane.ops.functions.sums import spectra
from hagane.ops.functions.tensors.parts import element, part, parts
from hagane.symbolic import Dim

_INT64 = ir.DataType.INT64


def stack(axis: int, *xs: Any) -> Any:
    """Return tensors of one shape joined along a new axis."""
    return op("Concat", *(unsqueeze(x, [axis]) for x in xs), axis=axis)


def pieces(x: Any, axis: int, starts: Sequence[Dim] | None, lengths: Sequence[Dim]) -> list[Any]:
    """Return parts of given lengths along an axis, that begin at places or follow each other."""
    if starts is None:
        return parts(x, axis, lengths)
    return [part(x, axis, start, n) for start, n in zip(starts, lengths, strict=True)]


def pad_sequence(length: Dim, padding: float, *xs: Any) -> Any:
    """Return tensors (own length, ...) filled up to one length and stacked."""
    rank = rank_of(xs[0])
    filler = number_like(padding, xs[0])
    filled = [
        op("Pad", x, [*[0] * rank, length - shape_of(x)[0], *[0] * (rank - 1)], filler) for x in xs
    ]
    return stack(0, *filled)


def steps_of(*alive: Sequence[Any]) -> list[Any]:
    """Return the elements of each time step, given the sequences that last so long."""
    return [
        stack(0, *(element(x, 0, number) for x in sequences))
        for number, sequences in enumerate(alive)
    ]


def select_item(x: Any, places: Any) -> Any:
    """Return one element of each row of (batch, classes)."""
    found = op("GatherElements", x, unsqueeze(cast(places, _INT64), [1]), axis=1)
    return squeeze(found, [1])


def permutate(x: Any, places: Any, axis: int, inverse: bool) -> Any:
    """Return ``x`` in another order along an axis: from places, or to places where inverse."""
    order = cast(places, _INT64)
    if inverse:
        count = op("Shape", order)
        _, order = op("TopK", order, count, axis=0, largest=0, outputs=2)
    return op("Gather", x, order, axis=axis)


def scatter_add(x: Any, places: Any, values: Any) -> Any:
    """Return ``x`` with values added at places.

    Args:
        x: A tensor.
        places: The number of each element of ``values`` in the order of those of ``x``.
        values: The summands, of the shape of ``places``, or broadcast to it.
    """
    spread = op("Expand", values, op("Shape", places))
    rows = op("Reshape", places, [-1, 1])
    flat = op("Reshape", x, [-1])
    added = op("ScatterND", flat, rows, op("Reshape", spread, [-1]), reduction="add")
    return op("Reshape", added, list(shape_of(x)), allowzero=1)


def numbered(x: Any, size: Dim) -> Any:
    """Return the numbers of the elements of ``x``, of which there are ``size``, in its shape."""
    return op("Reshape", op("Range", 0, size, 1), list(shape_of(x)), allowzero=1)


def space_to_depth(x: Any, r: int) -> Any:
    """Return channels from pixels: (batch, r * r * channels, height / r, width / r)."""
    return op("SpaceToDepth", x, blocksize=r)


def depth_to_space(x: Any, r: int) -> Any:
    """Return pixels from channels (Shi et al., 2016): (batch, channels / r / r, r h, r w)."""
    return op("DepthToSpace", x, blocksize=r, mode="DCR")


def expand(x: Any, shape: Sequence[Dim]) -> Any:
    """Return ``x`` repeated along axes of size 1 until it has a shape."""
    return op("Expand", x, list(shape) if shape else np.zeros(0, np.int64))


def sum_to(x: Any, shape: Sequence[Dim]) -> Any:
    """Return ``x`` summed until it has a shape that broadcasts to its own."""
    own = shape_of(x)
    lead = len(own) - len(shape)
    axes = [
        *range(lead),
        *(i + lead for i, size in enumerate(shape) if size == 1 and own[i + lead] != 1),
    ]
    if not axes:
        return x
    return squeeze(op("ReduceSum", x, axes, keepdims=1), list(range(lead)))


def pad(x: Any, amounts: Sequence[tuple[Dim, Dim]], mode: str, values: Sequence[Any]) -> Any:
    """Return ``x`` with elements added around it.

    Args:
        x: A tensor.
        amounts: How many before and behind, of each axis.
        mode: ``constant``, ``edge``, ``reflect`` or ``wrap``.
        values: Their content before and behind each axis, where it is constant.
    """
    rank = rank_of(x)
    if mode != "constant" or len({one for pair in values for one in pair}) < 2:
        both = [one for side in (0, 1) for one in (pair[side] for pair in amounts)]
        filler = number_like(values[0][0], x) if mode == "constant" and values else None
        return op("Pad", x, both, filler, mode=mode)
    for axis in range(rank):
        for side in range(2):
            one: list[Dim] = [0] * (2 * rank)
            one[axis + side * rank] = amounts[axis][side]
            x = op("Pad", x, one, number_like(values[axis][side], x))
    return x


def repeat(x: Any, axis: int, counts: Sequence[int]) -> Any:
    """Return ``x`` with each element along an axis repeated, as often as its count says."""
    places = np.repeat(np.arange(len(counts)), counts)
    return op("Gather", x, places.astype(np.int64), axis=axis)


def fourier(real: Any, imaginary: Any, inverse: bool) -> tuple[Any, Any]:
    """Return the discrete Fourier transform along the last axis, in two parts."""
    return spectra.transform((real, imaginary), rank_of(real) - 1, inverse=inverse)
