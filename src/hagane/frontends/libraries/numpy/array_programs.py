"""More functions of NumPy as programs: differences, places, powers, frequencies.

https://numpy.org/doc/stable/reference/routines.html
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np


def vander(x: Any, N: Any = None, increasing: Any = False) -> Any:
    """Return the powers of numbers as rows, the highest first unless they increase."""
    places = np.asarray(x)
    if places.ndim != 1:
        raise ValueError("x must be a one-dimensional array or sequence.")
    count = len(places) if N is None else N
    wide = places.astype(np.promote_types(places.dtype, int))
    steps = np.ones((len(places), count), dtype=wide.dtype)
    steps[:, 1:] = wide[:, None]
    powers = np.cumprod(steps, axis=1)
    return powers if increasing else powers[:, ::-1]


def ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> Any:
    """Return the differences of neighbours in the flat array, between given numbers."""
    flat = np.ravel(np.asarray(ary))
    parts = [flat[1:] - flat[:-1]]
    if to_begin is not None:
        parts.insert(0, _ends(to_begin, flat.dtype, "to_begin"))
    if to_end is not None:
        parts.append(_ends(to_end, flat.dtype, "to_end"))
    return np.concatenate(parts)


def _ends(given: Any, dtype: Any, name: Any) -> Any:
    ends = np.asarray(given)
    if not np.can_cast(ends.dtype, dtype, casting="same_kind"):
        raise TypeError(f"dtype of `{name}` must be compatible with input `ary` under the "
                        "`same_kind` rule.")  # fmt: skip
    return np.ravel(ends).astype(dtype)


def _axes(axes: Any, rank: Any) -> Any:
    if axes is None:
        return list(range(rank))
    return [axes] if isinstance(axes, int) else list(axes)


def fftshift(x: Any, axes: Any = None) -> Any:
    """Return an array with the element at place 0 in the middle of axes."""
    made = np.asarray(x)
    for place in _axes(axes, made.ndim):
        made = np.roll(made, made.shape[place] // 2, axis=place)
    return made


def ifftshift(x: Any, axes: Any = None) -> Any:
    """Return an array with the element in the middle of axes at place 0."""
    made = np.asarray(x)
    for place in _axes(axes, made.ndim):
        made = np.roll(made, -(made.shape[place] // 2), axis=place)
    return made


def fftfreq(n: Any, d: Any = 1.0, device: Any = None) -> Any:
    """Return the frequencies of a transform, those from half on as negative ones."""
    places = np.arange(n)
    return np.where(places < (n + 1) // 2, places, places - n) * (1.0 / (n * d))


def rfftfreq(n: Any, d: Any = 1.0, device: Any = None) -> Any:
    """Return the frequencies of a transform of real numbers."""
    return np.arange(n // 2 + 1) * (1.0 / (n * d))


def triu_indices_from(arr: Any, k: Any = 0) -> Any:
    """Return the places of the upper triangle of a matrix."""
    if arr.ndim != 2:
        raise ValueError("input array must be 2-d")
    return np.triu_indices(arr.shape[0], k=k, m=arr.shape[1])


def tril_indices_from(arr: Any, k: Any = 0) -> Any:
    """Return the places of the lower triangle of a matrix."""
    if arr.ndim != 2:
        raise ValueError("input array must be 2-d")
    return np.tril_indices(arr.shape[0], k=k, m=arr.shape[1])


def diag_indices_from(arr: Any) -> Any:
    """Return the places of the main diagonal of an array with axes of one size."""
    if arr.ndim < 2:
        raise ValueError("input array must be at least 2-d")
    if arr.shape != (arr.shape[0],) * arr.ndim:
        raise ValueError("All dimensions of input must be of equal length")
    return (np.arange(arr.shape[0]),) * arr.ndim


def ravel_multi_index(multi_index: Any, dims: Any, mode: Any = "raise", order: Any = "C") -> Any:
    """Return coordinates as flat places; those outside wrap around, or are cut to the border."""
    sizes = [dims] if isinstance(dims, int) else list(dims)
    modes = [mode] * len(sizes) if isinstance(mode, str) else list(mode)
    made: Any = 0
    inner: Any = 1
    axes = list(range(len(sizes)))
    for axis in axes if order == "F" else reversed(axes):
        place = np.asarray(multi_index[axis])
        if modes[axis] == "wrap":
            place = place % sizes[axis]
        elif modes[axis] == "clip":
            place = np.clip(place, 0, sizes[axis] - 1)
        made = made + place * inner
        inner = inner * sizes[axis]
    return made


def trim_zeros(filt: Any, trim: Any = "fb", axis: Any = None) -> Any:
    """Return the elements of one axis without the zeros in front and behind."""
    array = np.asarray(filt)
    if axis == ():
        return array
    if array.ndim != 1:
        raise NotImplementedError("np.trim_zeros: expected an array of one axis")
    kept = np.ones(array.shape, dtype=bool)
    there = array != 0
    sides = trim.lower()
    if "f" in sides:
        kept = kept & (np.cumsum(there) > 0)
    if "b" in sides:
        kept = kept & (np.cumsum(there[::-1])[::-1] > 0)
    return array[kept]


def put_along_axis(arr: Any, indices: Any, values: Any, axis: Any) -> None:
    """Set the elements at places along an axis, one row of places for each other place."""
    places = np.asarray(indices)
    if axis is None:
        arr[np.unravel_index(places, arr.shape)] = values
    else:
        own = axis + arr.ndim if axis < 0 else axis
        index = []
        for number in range(arr.ndim):
            shape = [1] * arr.ndim
            shape[number] = -1
            row = np.reshape(np.arange(arr.shape[number]), shape)
            index.append(places if number == own else row)
        arr[tuple(index)] = values


def slopes(f: Any, distance: Any, axis: Any, edge_order: Any) -> Any:
    """Return the differences of neighbours along an axis, over a distance or between places.

    Those at the ends are of the first or second order (``edge_order``).
    """
    rows = np.moveaxis(f, axis, 0)
    if len(rows) < edge_order + 1:
        raise ValueError("Shape of array too small to calculate a numerical gradient, at least "
                         "(edge_order + 1) elements are required.")  # fmt: skip
    steps = np.asarray(distance)
    if steps.ndim == 0:
        inner = (rows[2:] - rows[:-2]) / (2.0 * steps)
        first = last = steps
        if edge_order == 1:
            ahead = (rows[1] - rows[0]) / steps
            behind = (rows[-1] - rows[-2]) / steps
        else:
            ahead = (-1.5 * rows[0] + 2.0 * rows[1] - 0.5 * rows[2]) / steps
            behind = (0.5 * rows[-3] - 2.0 * rows[-2] + 1.5 * rows[-1]) / steps
    else:
        gaps = np.diff(steps.astype(np.result_type(steps.dtype, np.float64)))
        wide = np.reshape(gaps, [-1] + [1] * (rows.ndim - 1))
        left, right = wide[:-1], wide[1:]
        inner = (
            rows[:-2] * -(right / (left * (left + right)))
            + rows[1:-1] * ((right - left) / (left * right))
            + rows[2:] * (left / (right * (left + right)))
        )
        first, last = gaps[0], gaps[-1]
        if edge_order == 1:
            ahead = (rows[1] - rows[0]) / first
            behind = (rows[-1] - rows[-2]) / last
        else:
            second, before = gaps[1], gaps[-2]
            ahead = (
                rows[0] * -((2.0 * first + second) / (first * (first + second)))
                + rows[1] * ((first + second) / (first * second))
                - rows[2] * (first / (second * (first + second)))
            )
            behind = (
                rows[-3] * (last / (before * (before + last)))
                - rows[-2] * ((last + before) / (before * last))
                + rows[-1] * ((2.0 * last + before) / (last * (before + last)))
            )
    whole = np.concatenate([ahead[None], inner, behind[None]])
    return np.moveaxis(whole, 0, axis).astype(f.dtype)


def array_equal(left: Any, right: Any, equal_nan: Any) -> Any:
    """Return whether arrays of several sizes hold the same: those of another size do not."""
    if left.ndim != right.ndim:
        return False
    same = True
    for axis in range(left.ndim):
        sizes = left.shape[axis], right.shape[axis]
        same = same and sizes[0] == sizes[1]
        part = (slice(None),) * axis + (slice(None, min(sizes)),)
        left, right = left[part], right[part]
    equal = left == right
    if equal_nan:
        equal = equal | (np.isnan(left) & np.isnan(right))
    return same and bool(equal.all())


def intersect1d(ar1: Any, ar2: Any, assume_unique: Any, return_indices: Any = False) -> Any:
    """Return the elements that two arrays share, in order, and their places in both."""
    left, right = np.ravel(ar1), np.ravel(ar2)
    before, behind = np.arange(left.size), np.arange(right.size)
    if not assume_unique:
        left, before = np.unique(left, return_index=True)
        right, behind = np.unique(right, return_index=True)
    whole = np.concatenate([left, right])
    order = np.argsort(whole, kind="stable")
    whole = whole[order]
    twice = whole[1:] == whole[:-1]
    found = whole[:-1][twice]
    if not return_indices:
        return found
    return found, before[order[:-1][twice]], behind[order[1:][twice] - left.size]


def setdiff1d(ar1: Any, ar2: Any, assume_unique: Any) -> Any:
    """Return the elements of an array that another lacks, in their own order."""
    left = np.ravel(ar1)
    return left[~np.isin(left, ar2)]


def setxor1d(ar1: Any, ar2: Any, assume_unique: Any) -> Any:
    """Return the elements that only one of two arrays has, in order."""
    whole = np.sort(np.concatenate([np.ravel(ar1), np.ravel(ar2)]))
    changes = whole[1:] != whole[:-1]
    edge = np.ones(1, dtype=bool)
    starts = np.concatenate([edge[: whole.size], changes])
    ends = np.concatenate([changes, edge[: whole.size]])
    return whole[starts & ends]


def ndindex(*shape: Any) -> Any:
    """Return the places in an array of some shape, the last axis first."""
    sizes = shape[0] if len(shape) == 1 and isinstance(shape[0], tuple) else shape
    return itertools.product(*[range(size) for size in sizes])


def ndenumerate(arr: Any) -> Any:
    """Return the places in an array and the elements there."""
    places = itertools.product(*[range(size) for size in arr.shape])
    return zip(places, arr.ravel(), strict=True)


def iscomplexobj(x: Any) -> Any:
    """Return whether an array may hold complex numbers."""
    return np.asarray(x).dtype.kind == "c"


def isrealobj(x: Any) -> Any:
    """Return whether an array holds no complex numbers."""
    return np.asarray(x).dtype.kind != "c"


def iscomplex(x: Any) -> Any:
    """Return which numbers have an imaginary part."""
    return np.imag(np.asarray(x)) != 0


def isreal(x: Any) -> Any:
    """Return which numbers have no imaginary part."""
    return np.imag(x) == 0


def isposinf(x: Any) -> Any:
    """Return which numbers are infinite and positive."""
    return np.isinf(x) & (np.asarray(x) > 0)


def isneginf(x: Any) -> Any:
    """Return which numbers are infinite and negative."""
    return np.isinf(x) & (np.asarray(x) < 0)


def sort_complex(a: Any) -> Any:
    """Return numbers in order along the last axis, as complex ones."""
    numbers = np.asarray(a)
    small = numbers.dtype.kind == "f" and numbers.dtype.itemsize <= 4
    return np.sort(numbers.astype(np.complex64 if small else np.complex128))


def histogram_bin_edges(a: Any, bins: Any = 10, range: Any = None, weights: Any = None) -> Any:
    """Return the edges of bins of equal width, or those that are given."""
    return np.histogram(a, bins, range)[1]


def fix(x: Any) -> Any:
    """Return numbers rounded towards zero."""
    return np.trunc(x)


def unwrap(p: Any, discont: Any = None, axis: Any = -1, *, period: Any = 2 * np.pi) -> Any:
    """Return angles without jumps of more than half a period between neighbours."""
    angles = np.moveaxis(np.asarray(p), axis, -1)
    steps = angles[..., 1:] - angles[..., :-1]
    whole = steps.dtype.kind in "iu" and isinstance(period, int)
    high = period // 2 if whole else period / 2
    least = period / 2 if discont is None else discont
    turned = np.mod(steps + high, period) - high
    if not (whole and period % 2):
        turned = np.where((turned == -high) & (steps > 0), high, turned)
    change = np.where(np.abs(steps) < least, 0, turned - steps)
    made = np.concatenate([angles[..., :1], angles[..., 1:] + np.cumsum(change, axis=-1)], axis=-1)
    return np.moveaxis(made, -1, axis)


def cond(x: Any, p: Any = None) -> Any:
    """Return how much solving linear equations amplifies errors, by singular values or norms."""
    given = np.asarray(x)
    if p is None or p == 2 or p == -2:
        values = np.linalg.svd(given, compute_uv=False)
        first, last = values[..., 0], values[..., -1]
        found = last / first if p == -2 else first / last
    else:
        inverse = np.linalg.inv(given)
        found = np.linalg.norm(given, p, (-2, -1)) * np.linalg.norm(inverse, p, (-2, -1))
    clean = ~np.isnan(given).any(axis=(-2, -1))
    return np.where(np.isnan(found) & clean, np.array(np.inf, found.dtype), found)[()]
