"""Functions that join, split, repeat and pad arrays."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from hagane.nn.autograd import type_check
from hagane.nn.autograd.variable import Variable
from hagane.nn.functions.applying import constant_like, function, lift, require, shape_of
from hagane.nn.functions.array import checked_axis, flatten
from hagane.ops.builder import op


def _checked_row(where: str, xs: Any, axis: int) -> list[Any]:
    if not isinstance(xs, list | tuple):
        xs = list(xs)
    if not xs:
        raise type_check.refuse(where, "one or more arrays", "none")
    found = [lift(x) for x in xs]
    first = found[0]
    for i, x in enumerate(found):
        require(where, f"xs[{i}]", x, dtype_as=("xs[0]", first))
        if isinstance(x, Variable) and isinstance(first, Variable):
            expected = [None if j == axis else n for j, n in enumerate(first.shape)]
            require(where, f"xs[{i}]", x, shape=expected)
    return found


@function("*xs")
def concat(xs: Any, axis: int = 1) -> Any:
    """Return arrays joined along an axis."""
    xs = list(xs)
    if not xs:
        raise type_check.refuse("concat", "one or more arrays", "none")
    place = checked_axis("concat", axis, len(shape_of(lift(xs[0]))))
    return op("Concat", *_checked_row("concat", xs, place), axis=place)


@function("*xs")
def stack(xs: Any, axis: int = 0) -> Any:
    """Return arrays of equal sizes joined along a new axis."""
    xs = [lift(x) for x in xs]
    if not xs:
        raise type_check.refuse("stack", "one or more arrays", "none")
    place = checked_axis("stack", axis, len(shape_of(xs[0])) + 1)
    row = _checked_row("stack", xs, -1)
    return op("Concat", *[op("Unsqueeze", x, [place]) for x in row], axis=place)


@function("*xs")
def hstack(xs: Any) -> Any:
    """Return arrays joined along the second axis; along the first where there is one only."""
    row = [_at_least(lift(x), 1) for x in xs]
    return concat(row, axis=0 if len(shape_of(row[0])) == 1 else 1)


@function("*xs")
def vstack(xs: Any) -> Any:
    """Return arrays, of two or more axes, joined along the first."""
    row = [lift(x) for x in xs]
    _same_rank("vstack", row)
    return concat([_at_least(x, 2) for x in row], axis=0)


@function("*xs")
def dstack(xs: Any) -> Any:
    """Return arrays, of three or more axes, joined along the third."""
    row = [lift(x) for x in xs]
    _same_rank("dstack", row)
    return concat([_at_least(x, 3) for x in row], axis=2)


def _same_rank(where: str, xs: Sequence[Any]) -> None:
    for i, x in enumerate(xs):
        if len(shape_of(x)) != len(shape_of(xs[0])):
            raise type_check.refuse(
                where,
                f"xs[{i}].ndim == xs[0].ndim",
                f"{len(shape_of(x))} != {len(shape_of(xs[0]))}",
            )


def _at_least(x: Any, rank: int) -> Any:
    found = len(shape_of(x))
    if found >= rank:
        return x
    axes = {0: [0, 1, 2], 1: [0, 2], 2: [2]}[found] if rank == 3 else list(range(rank - found))
    return op("Unsqueeze", x, np.array(axes, np.int64))


@function("x")
def split_axis(x: Any, indices_or_sections: Any, axis: int, force_tuple: bool = True) -> Any:
    """Return the pieces of an array along an axis.

    Args:
        x: An array.
        indices_or_sections: The number of equal pieces, or where they begin.
        axis: The axis.
        force_tuple: Whether one piece comes as a tuple too.
    """
    shape = shape_of(x)
    place = checked_axis("split_axis", axis, len(shape))
    total = shape[place]
    if isinstance(indices_or_sections, int | np.integer):
        count = int(indices_or_sections)
        if count <= 0 or total % count:
            raise type_check.refuse(
                "split_axis", f"x.shape[{place}] % {count} == 0", f"x.shape == {shape}"
            )
        sizes = [total // count] * count
    else:
        indices = indices_or_sections
        if isinstance(indices, np.ndarray) and indices.ndim == 0:
            return split_axis(x, int(indices), axis, force_tuple)
        if not isinstance(indices, Sequence | np.ndarray):
            raise TypeError("indices_or_sections must be integer or 1-D array")
        bounds = [0, *map(int, indices), total]
        if any(b > total for b in bounds[1:-1]) or any(
            a > b for a, b in itertools.pairwise(bounds)
        ):
            raise type_check.refuse(
                "split_axis", f"rising indices up to {total}", f"indices == {bounds[1:-1]}"
            )
        sizes = [b - a for a, b in itertools.pairwise(bounds)]
    if len(sizes) == 1:
        whole = op("Identity", x)
        return (whole,) if force_tuple else whole
    return op("Split", x, np.array(sizes, np.int64), axis=place, outputs=len(sizes))


@function("x")
def separate(x: Any, axis: int = 0) -> Any:
    """Return the slices of an array along an axis, without it, as a tuple."""
    shape = shape_of(x)
    place = checked_axis("separate", axis, len(shape))
    pieces = split_axis(x, shape[place], place)
    return tuple(op("Squeeze", piece, [place]) for piece in pieces)


@function("x")
def tile(x: Any, reps: Any) -> Any:
    """Return an array repeated as a whole, ``reps`` times along each axis."""
    if isinstance(x, list | tuple):
        raise TypeError(f"tile: expected x to be an array or a Variable, got {type(x)}")
    counts = (reps,) if isinstance(reps, int) else tuple(reps)
    if not all(isinstance(n, int | np.integer) for n in counts):
        raise TypeError(f"reps must be int or tuple of ints, got {reps!r}")
    if any(n < 0 for n in counts):
        raise ValueError(f"all elements in reps must be zero or larger, got {counts}")
    rank = max(len(shape_of(x)), len(counts))
    counts = (1,) * (rank - len(counts)) + counts
    missing = rank - len(shape_of(x))
    if missing:
        x = op("Unsqueeze", x, list(range(missing)))
    return op("Tile", x, list(counts))


@function("x")
def repeat(x: Any, repeats: Any, axis: Any = None) -> Any:
    """Return an array with each element repeated along an axis, or flat if that is None."""
    counts = (repeats,) if isinstance(repeats, int) else repeats
    if not isinstance(counts, tuple) or not all(isinstance(n, int) for n in counts):
        raise TypeError("repeats must be int or tuple of ints")
    if any(n < 0 for n in counts):
        raise ValueError("all elements in repeats must be zero or larger")
    if axis is not None and (not isinstance(axis, int) or isinstance(axis, bool)):
        raise TypeError("axis must be int or None")
    if axis is None:
        x, axis = flatten(x), 0
    shape = shape_of(x)
    place = checked_axis("repeat", axis, len(shape))
    if len(counts) not in (1, shape[place]):
        raise type_check.refuse(
            "repeat", f"len(repeats) in (1, {shape[place]})", f"len(repeats) == {len(counts)}"
        )
    indices = np.repeat(np.arange(shape[place]), counts[0] if len(counts) == 1 else counts)
    return op("Gather", x, indices.astype(np.int64), axis=place)


@function("x")
def pad(x: Any, pad_width: Any, mode: str, **keywords: Any) -> Any:
    """Return an array with elements added at both ends of each axis.

    Args:
        x: An array.
        pad_width: As for ``numpy.pad``: a number, a pair, or a pair for each axis.
        mode: ``constant``, ``edge``, ``reflect`` or ``wrap``.
        keywords: ``constant_values``: a number, or pairs of them.
    """
    rank = len(shape_of(x))
    pairs = np.broadcast_to(np.asarray(pad_width, dtype=np.int64), (rank, 2))
    if mode != "constant":
        return op("Pad", x, pairs.T.reshape(-1).copy(), mode=mode)
    values = np.broadcast_to(np.asarray(keywords.get("constant_values", 0)), (rank, 2))
    if (values == values.reshape(-1)[0]).all() if rank else True:
        value = values.reshape(-1)[0] if rank else 0
        return op("Pad", x, pairs.T.reshape(-1).copy(), constant_like(value, x), mode="constant")
    for axis in range(rank):
        for side in range(2):
            amounts = np.zeros((2, rank), np.int64)
            amounts[side, axis] = pairs[axis, side]
            x = op("Pad", x, amounts.reshape(-1), constant_like(values[axis, side], x))
    return x


@function("*xs")
def pad_sequence(xs: Any, length: int | None = None, padding: Any = 0) -> Any:
    """Return arrays of different lengths as one, filled up.

    Args:
        xs: Arrays of shape (length, …).
        length: The common length, by default the largest.
        padding: The filler.

    Returns:
        An array of shape (number of arrays, length, …).
    """
    row = [lift(x) for x in xs]
    if not row:
        raise type_check.refuse("pad_sequence", "one or more arrays", "none")
    for i, x in enumerate(row):
        require("pad_sequence", f"xs[{i}]", x, at_least=1, dtype_as=("xs[0]", row[0]))
        require("pad_sequence", f"xs[{i}]", x, shape=[None, *row[0].shape[1:]])
    longest = max(len(x) for x in row)
    total = longest if length is None else length
    if total < longest:
        raise type_check.refuse("pad_sequence", f"length >= {longest}", f"length == {total}")
    filled = []
    for x in row:
        widths = [(0, total - len(x))] + [(0, 0)] * (x.ndim - 1)
        filled.append(pad(x, widths, "constant", constant_values=padding))
    return stack(filled)


@function("*xs")
def transpose_sequence(xs: Any) -> Any:
    """Return the arrays of each time from arrays of each sequence, the longest first.

    Args:
        xs: Arrays of shape (length, …), lengths not rising.
    """
    row = [lift(x) for x in xs]
    if not row:
        return ()
    lengths = [len(x) for x in row]
    for i, (a, b) in enumerate(itertools.pairwise(lengths)):
        if a < b:
            raise type_check.refuse(
                "transpose_sequence", f"xs[{i}].shape[0] >= xs[{i + 1}].shape[0]", f"{a} < {b}"
            )
    pieces = [separate(x, axis=0) if len(x) else () for x in row]
    return tuple(stack([piece[t] for piece in pieces if len(piece) > t]) for t in range(lengths[0]))
