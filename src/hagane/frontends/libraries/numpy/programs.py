"""Functions of NumPy as programs over others of its functions, interpreted like the user's own.

Their loops become loops of the graph where sizes or data decide the number of turns.
"""

from __future__ import annotations

from typing import Any

import numpy as np


def ix_(*args: Any) -> Any:
    """Return sequences as arrays that lie along an axis each; truth values as places."""
    made = []
    for place, item in enumerate(args):
        array = np.asarray(item)
        if array.ndim != 1:
            raise ValueError("Cross index must be 1 dimensional")
        if array.dtype == np.bool_:
            array = np.nonzero(array)[0]
        shape = [1] * len(args)
        shape[place] = -1
        made.append(np.reshape(array, shape))
    return tuple(made)


def polyval(p: Any, x: Any) -> Any:
    """Return a polynomial, its highest coefficient first, at places, by Horner's scheme."""
    places = np.asarray(x)
    value = np.zeros_like(places)
    for coefficient in np.asarray(p):
        value = value * places + coefficient
    return value


def piecewise(x: Any, condlist: Any, funclist: Any, *args: Any, **kw: Any) -> Any:
    """Return functions or numbers of the elements for which a condition holds, else 0."""
    array = np.asarray(x)
    listed = isinstance(condlist, (list, tuple))
    conditions = [np.asarray(part, dtype=bool) for part in (condlist if listed else [condlist])]
    if len(funclist) == len(conditions) + 1:
        rest = conditions[0]
        for condition in conditions[1:]:
            rest = rest | condition
        conditions.append(~rest)
    elif len(funclist) != len(conditions):
        raise ValueError("piecewise: a function for each condition is expected, and one more")
    made = np.zeros_like(array)
    for condition, function in zip(conditions, funclist, strict=True):
        if callable(function):
            made[condition] = function(array[condition], *args, **kw)
        else:
            made[condition] = function
    return made


def apply_along_axis(func1d: Any, axis: Any, arr: Any, *args: Any, **kwargs: Any) -> Any:
    """Return the results of a function for each row along an axis."""
    array = np.asarray(arr)
    place = axis + array.ndim if axis < 0 else axis
    last = np.moveaxis(array, place, -1)
    outer = last.shape[:-1]
    results = []
    for row in np.reshape(last, (-1, array.shape[place])):
        results.append(func1d(row, *args, **kwargs))
    stacked = np.array(results)
    inner = stacked.shape[1:]
    whole = np.reshape(stacked, (*outer, *inner))
    for number in range(len(inner)):
        whole = np.moveaxis(whole, len(outer) + number, place + number)
    return whole


def _joined(parts: Any, depth: Any, rank: Any) -> Any:
    if not isinstance(parts, list):
        array = np.asarray(parts)
        return np.reshape(array, (1,) * (rank - array.ndim) + tuple(array.shape))
    return np.concatenate([_joined(part, depth - 1, rank) for part in parts], axis=-depth)


def block(arrays: Any) -> Any:
    """Return arrays in nested lists as one: innermost lists along the last axis."""
    depth, ranks = _nesting(arrays)
    return _joined(arrays, depth, max(depth, ranks))


def _nesting(parts: Any) -> Any:
    """Return how deep lists are nested, and the highest rank of an array in them."""
    if not isinstance(parts, list):
        return 0, np.ndim(parts)
    found = [_nesting(part) for part in parts]
    return found[0][0] + 1, max([rank for _, rank in found])


def putmask(a: Any, mask: Any, values: Any) -> None:
    """Set elements where a mask holds, to the values at the same places."""
    given = np.asarray(values, dtype=a.dtype if isinstance(values, int) else None)
    chosen = np.asarray(mask, dtype=bool)
    if given.ndim == 0:
        a[chosen] = given.astype(a.dtype)
    else:
        whole = np.resize(given, a.shape)
        a[chosen] = whole[chosen].astype(a.dtype)


def place(arr: Any, mask: Any, vals: Any) -> None:
    """Set elements where a mask holds, to the first, second … of the values, again and again."""
    given = np.ravel(np.asarray(vals, dtype=None if isinstance(vals, np.ndarray) else arr.dtype))
    chosen = np.reshape(np.asarray(mask, dtype=bool), arr.shape)
    turns = np.cumsum(np.ravel(chosen)) - 1
    whole = np.reshape(given[np.maximum(turns, 0) % len(given)], arr.shape)
    arr[chosen] = whole[chosen].astype(arr.dtype)


def put(a: Any, ind: Any, v: Any) -> None:
    """Set elements at places of the flat array to the values, these again and again."""
    places = np.arange(a.size)[np.ravel(np.asarray(ind))]  # fails where there is none
    given = np.asarray(v, dtype=a.dtype if isinstance(v, int) else None)
    given = np.resize(np.ravel(given), places.shape)
    a[np.unravel_index(places, a.shape)] = given.astype(a.dtype)


def delete_at(arr: Any, obj: Any, axis: Any) -> Any:
    """Return an array of one axis or more without the places along an axis that data tell."""
    places = np.asarray(obj)
    count = arr.shape[axis]
    if places.ndim == 0:
        kept = np.arange(count - 1)
        return np.take(arr, kept + (kept >= np.arange(count)[places]), axis=axis)
    stays = np.ones(count, dtype=bool)
    stays[places] = False
    return np.compress(stays, arr, axis=axis)


def reduceat(reduce: Any, array: Any, indices: Any, axis: Any) -> Any:
    """Return reductions of the slices between places, or the element where a slice is empty."""
    rows = np.moveaxis(np.asarray(array), axis, 0)
    starts = np.asarray(indices)
    made = []
    for number in range(len(starts)):
        low = starts[number]
        high = starts[number + 1] if number + 1 < len(starts) else len(rows)
        if low < high:
            made.append(reduce(rows[low:high], axis=0))
        else:
            made.append(reduce(rows[low : low + 1], axis=0))
    return np.moveaxis(np.stack(made), 0, axis)


def accumulate(ufunc: Any, array: Any, axis: Any) -> Any:
    """Return the results of a function of two arrays over ever more elements of an axis."""
    rows = np.moveaxis(np.asarray(array), axis, 0)
    made = rows.copy()
    for number in range(1, len(rows)):
        made[number] = ufunc(made[number - 1], rows[number])
    return np.moveaxis(made, 0, axis)
