"""Sorting, and functions of sorted elements: quantiles, places, different elements."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.ops.builder import dtype_of, op, rank_of, scan, shape_of
from hagane.ops.functions.numbers.activations import number_like
from hagane.ops.functions.numbers.elementary import (
    add,
    cast,
    mask_like,
    mul,
    sub,
    transpose,
    unsqueeze,
    where,
)
from hagane.ops.functions.tensors.filling import spaced, stepped
from hagane.ops.functions.tensors.parts import flat, resized
from hagane.ops.functions.tensors.positions import extent, positions_along, put_along
from hagane.symbolic import Dim, product

_BOOL, _INT32, _INT64 = ir.DataType.BOOL, ir.DataType.INT32, ir.DataType.INT64


def sorted_along(x: Any, axis: int, largest: bool = False) -> tuple[Any, Any]:
    """Return the elements in order along an axis, and where they were; int64.

    Of equal elements those in front stay in front.
    """
    dtype = dtype_of(x)
    if not rank_of(x):
        return op("Identity", x), np.array(0)
    keys = cast(x, _INT32) if dtype == _BOOL else x
    count = shape_of(x)[axis]
    values, places = op("TopK", keys, [count], axis=axis, largest=int(largest), outputs=2)
    return cast(values, dtype), places


def joined_last(x: Any, axes: Sequence[int]) -> Any:
    """Return ``x`` with several axes as one behind the others."""
    rest = [axis for axis in range(rank_of(x)) if axis not in axes]
    sizes = shape_of(x)
    x = transpose(x, [*rest, *axes])
    if len(axes) == 1:
        return x
    return resized(x, [*(sizes[axis] for axis in rest), product([sizes[axis] for axis in axes])])


def quantiles(
    x: Any, q: Any, axes: Sequence[int], keepdims: bool, method: str = "linear", *, skip: bool
) -> Any:
    """Return quantiles along axes: values below which a share of the elements lies.

    Args:
        x: Floats.
        q: Shares from 0 to 1, in any shape.
        axes: Over which they are taken.
        keepdims: Whether these axes stay with size 1.
        method: For places between two elements: ``linear``, ``lower``, ``higher``, ``midpoint`` or
            ``nearest`` (halves to the even place).
        skip: Whether NaN are left out; else they make NaN.

    Returns:
        The axes of ``q``, then the remaining ones of ``x``.
    """
    rank, inner = rank_of(x), rank_of(q)
    rows = joined_last(x, axes)
    last = rank_of(rows) - 1
    there = op("Not", op("IsNaN", rows))
    ordered, _ = sorted_along(where(there, rows, number_like(math.inf, x)), last)
    count = op("ReduceSum", mask_like(there, x), [last], keepdims=1)
    whole = extent(rows, last)
    size = number_like(whole, x) if isinstance(whole, int) else cast(whole, dtype_of(x))
    shares = cast(op("Reshape", q, [-1]), dtype_of(x))
    place = op("Max", mul(sub(count, 1), shares), number_like(0, x))
    if method == "nearest":
        place = op("Round", place)
    low, high = op("Floor", place), op("Ceil", place)
    before, after = (
        op("GatherElements", ordered, cast(where_to, _INT64), axis=last) for where_to in (low, high)
    )
    part = {"lower": 0.0, "higher": 1.0, "midpoint": 0.5}.get(method)
    weight = sub(place, low) if part is None else number_like(part, x)
    same = op("Equal", before, after)  # infinities too
    found = where(same, before, add(before, mul(sub(after, before), weight)))
    fine = op("Greater", count, 0) if skip else op("Equal", count, size)
    found = where(fine, found, number_like(math.nan, x))
    left = [1 if axis in axes else n for axis, n in enumerate(shape_of(x))] if keepdims else [
        n for axis, n in enumerate(shape_of(x)) if axis not in axes
    ]  # fmt: skip
    del rank
    found = transpose(found, [last, *range(last)]) if last else found
    return resized(found, [*shape_of(q), *left]) if inner or left else op("Squeeze", found, [0])


def smallest_of(x: Any, axis: int, number: Any) -> tuple[Any, Any]:
    """Return the element with a number in the order along an axis, counted from 0, and its place.

    The axis stays with size 1.
    """
    values, places = sorted_along(x, axis)
    at = number if not isinstance(number, int) else np.array([number])
    return op("Gather", values, at, axis=axis), op("Gather", places, at, axis=axis)


def most_frequent(x: Any, axis: int) -> tuple[Any, Any]:
    """Return the most frequent element along an axis, the smallest of such, and its last place.

    The axis stays with size 1.
    """
    rows = joined_last(x, [axis])
    last = rank_of(rows) - 1
    pairs = op("Equal", unsqueeze(rows, [last]), unsqueeze(rows, [last + 1]))
    count = op("ReduceSum", cast(pairs, _INT64), [last + 1], keepdims=0)
    best = op("Equal", count, op("ReduceMax", count, [last], keepdims=1))
    ordered, places = sorted_along(rows, last)
    chosen = op("GatherElements", cast(best, _INT64), places, axis=last)
    first = op("ArgMax", chosen, axis=last, keepdims=1)
    value = op("GatherElements", ordered, first, axis=last)
    equal = cast(op("Equal", rows, value), _INT64)
    place = op("ArgMax", equal, axis=last, keepdims=1, select_last_index=1)
    order = [*range(axis), last, *range(axis, last)]
    return transpose(value, order), transpose(place, order)


def accumulated(x: Any, axis: int, start: Any, combine: Callable[[Any, Any], Any]) -> Any:
    """Return the combination of all elements up to each one along an axis.

    Args:
        x: A tensor of one axis or more.
        axis: The axis.
        start: The partner of the first element: one number of the element type.
        combine: Combines the result so far with an element.
    """
    rank = rank_of(x)
    rest = [n for place, n in enumerate(shape_of(x)) if place != axis]
    first = op("Expand", start, rest) if rest else start

    def step(state: Any, element: Any) -> list[Any]:
        made = combine(state, element)
        return [made, op("Identity", made)]

    rows = transpose(x, [axis, *(place for place in range(rank) if place != axis)])
    _, found = scan([first], [rows], step, stacked=1)
    return transpose(found, [*range(1, axis + 1), 0, *range(axis + 1, rank)])


def running_extremes(x: Any, axis: int, largest: bool) -> tuple[Any, Any]:
    """Return the largest or smallest element so far along an axis, and its place, the last one."""
    rows = joined_last(x, [axis])
    last = rank_of(rows) - 1
    count = positions_along(rows, last)
    past = op("LessOrEqual", unsqueeze(count, [0]), unsqueeze(count, [1]))
    if dtype_of(x).is_floating_point():
        fill = -math.inf if largest else math.inf
    else:
        limits = np.iinfo(dtype_of(x).numpy())
        fill = limits.min if largest else limits.max
    spread = where(past, unsqueeze(rows, [last]), number_like(fill, x))
    name = "ReduceMax" if largest else "ReduceMin"
    value = op(name, spread, [last + 1], keepdims=0)
    same = op("And", past, op("Equal", unsqueeze(value, [last + 1]), unsqueeze(rows, [last])))
    place = op("ArgMax", cast(same, _INT64), axis=last + 1, keepdims=0, select_last_index=1)
    order = [*range(axis), last, *range(axis, last)]
    return transpose(value, order), transpose(place, order)


# Places.


def sorted_places(ordered: Any, values: Any, *, right: bool) -> Any:
    """Return where values belong in ordered elements: how many of these lie before; int64.

    Args:
        ordered: (size,), or (..., size) where ``values`` has the same first axes.
        values: Of any shape.
        right: Whether equal elements lie before.
    """
    rank = rank_of(values)
    beside = unsqueeze(ordered, [rank - 1]) if rank_of(ordered) > 1 else ordered
    behind = unsqueeze(values, [rank])
    before = op("LessOrEqual" if right else "Less", beside, behind)
    if dtype_of(values).is_floating_point():  # NaN is behind all numbers
        last = op("IsNaN", behind)
        last = last if right else op("And", last, op("Not", op("IsNaN", beside)))
        before = op("Or", before, last)
    return op("ReduceSum", cast(before, _INT64), [rank], keepdims=0)


def bins_of(values: Any, edges: Any, *, right: bool) -> Any:
    """Return the number of the bin of each value, between edges that rise or fall; int64.

    Args:
        values: Of any shape.
        edges: (count,).
        right: Whether a bin has its upper edge, in place of the lower one.
    """
    rank = rank_of(values)
    beside = unsqueeze(values, [rank])
    # Behind all edges that rise lies what is no number.
    up = op("Not", op("GreaterOrEqual" if right else "Greater", edges, beside))
    down = op("Greater", edges, beside) if not right else op("GreaterOrEqual", edges, beside)
    first, last = (op("Gather", edges, np.array(place), axis=0) for place in (0, -1))
    passed = where(op("LessOrEqual", first, last), cast(up, _INT64), cast(down, _INT64))
    return op("ReduceSum", passed, [rank], keepdims=0)


def is_among(x: Any, others: Any) -> Any:
    """Return which elements are equal to one of others."""
    rank = rank_of(x)
    equal = op("Equal", unsqueeze(x, [rank]), flat(others))
    count = op("ReduceSum", cast(equal, _INT32), [rank], keepdims=0)
    return op("Greater", count, 0)


# Counts.


def occurrences(x: Any, weights: Any, least: Dim) -> Any:
    """Return how often each number from 0 on occurs in whole numbers, or the sum of its weights.

    Args:
        x: (count,), integers from 0 on.
        weights: (count,), floats; None counts, which gives int64.
        least: The least number of results.
    """
    places = cast(x, _INT64)
    highest = op("ReduceMax", op("Concat", places, [-1], axis=0), [0], keepdims=1)
    size = op("Max", add(highest, 1), [least])
    each = add(mul(places, 0), 1) if weights is None else weights
    return put_along(each, places, size, 0)


def counts_between(x: Any, edges: Any, weights: Any = None) -> Any:
    """Return how many elements lie between neighbouring edges, the last edge included; int64.

    With ``weights``, one for each element, it is the sum of theirs, of their type.
    """
    values = unsqueeze(flat(x), [1])
    low, high = op("Slice", edges, [0], [-1], [0]), op("Slice", edges, [1], [2**63 - 1], [0])
    top = op("Gather", edges, np.array([-1]), axis=0)
    over = op("GreaterOrEqual", values, low)
    under = op("Or", op("Less", values, high),
               op("And", op("Equal", values, top), op("Equal", high, top)))  # fmt: skip
    inside = op("And", over, under)
    if weights is None:
        return op("ReduceSum", cast(inside, _INT64), [0], keepdims=0)
    shares = where(inside, unsqueeze(flat(weights), [1]), number_like(0, weights))
    return op("ReduceSum", shares, [0], keepdims=0)


def different(x: Any, axis: int | None) -> tuple[Any, Any, Any, Any]:
    """Return the different elements in order, their first places, where each one is, and counts.

    Args:
        x: A tensor.
        axis: Along which slices are compared; None compares all elements.

    Returns:
        (count,), and int64 of (count,), of the shape of ``x`` (or of the axis) and of (count,).
    """
    dtype = dtype_of(x)
    keys = cast(x, _INT32) if dtype == _BOOL else x
    values, first, inverse, count = op("Unique", keys, axis=axis, outputs=4)
    if axis is None:
        inverse = resized(inverse, list(shape_of(x)))
    return cast(values, dtype), first, inverse, count


def different_neighbours(x: Any) -> tuple[Any, Any, Any]:
    """Return runs of equal elements as one each, the run of each element, and lengths of runs."""
    elements = flat(x)
    size = extent(elements, 0)
    before = op("Slice", elements, [0], [-1], [0])
    after = op("Slice", elements, [1], [2**63 - 1], [0])
    changed = op("Not", op("Equal", before, after))
    front = op("Slice", op("Equal", elements, elements), [0], [1], [0])
    starts = op("Concat", op("Or", front, op("Not", front)), changed, axis=0)
    places = op("Squeeze", op("NonZero", starts), [0])
    values = op("Gather", elements, places, axis=0)
    run = sub(op("CumSum", cast(starts, _INT64), np.array(0)), 1)
    end = np.array([size]) if isinstance(size, int) else size
    bounds = op("Concat", places, end, axis=0)
    lengths = sub(op("Slice", bounds, [1], [2**63 - 1], [0]), op("Slice", bounds, [0], [-1], [0]))
    return values, resized(run, list(shape_of(x))), lengths


def different_numbers(x: Any) -> tuple[Any, Any, Any, Any]:
    """Return what :func:`different` does of all elements, each NaN apart from the others."""
    numbers, order = sorted_along(flat(x), 0)
    values, run, counts = different_neighbours(numbers)
    starts = sub(op("CumSum", counts, np.array(0)), counts)
    inverse = op("ScatterElements", order, order, run, axis=0)
    first = op("Gather", order, starts, axis=0)
    return values, first, resized(inverse, list(shape_of(x))), counts


def sorted_by_several(keys: Any, count: int, axis: int) -> Any:
    """Return the places that sort by several keys, of which the last counts first; int64.

    Args:
        keys: (count, ...), the keys.
        count: How many there are.
        axis: Along which they are sorted, counted without the first one.
    """
    order: Any = None
    for number in range(count):
        key = op("Gather", keys, np.array(number), axis=0)
        if order is None:
            order = sorted_along(key, axis)[1]
            continue
        places = sorted_along(op("GatherElements", key, order, axis=axis), axis)[1]
        order = op("GatherElements", order, places, axis=axis)
    return order


def even_edges(x: Any, count: Dim, ends: Any = None) -> Any:
    """Return the edges of bins of equal width between two ends: the extreme elements, if None."""
    low, high = ends or (op(name, flat(x), [0], keepdims=0) for name in ("ReduceMin", "ReduceMax"))
    same = op("Equal", low, high)
    half = number_like(0.5, x)
    low, high = where(same, sub(low, half), low), where(same, add(high, half), high)
    return stepped(low, high, count + 1, dtype_of(x))


def in_either(x: Any, y: Any) -> Any:
    """Return the different elements of two tensors in order."""
    return different(op("Concat", flat(x), flat(y), axis=0), None)[0]


def in_both(x: Any, y: Any) -> Any:
    """Return the different elements that two tensors share, in order."""
    found = different(x, None)[0]
    return op("Compress", found, is_among(found, y), axis=0)


def in_first(x: Any, y: Any) -> Any:
    """Return the different elements of one tensor that another lacks, in order."""
    found = different(x, None)[0]
    return op("Compress", found, op("Not", is_among(found, y)), axis=0)


def in_one(x: Any, y: Any) -> Any:
    """Return the different elements that only one of two tensors has, in order."""
    return in_either(in_first(x, y), in_first(y, x))


def between_points(x: Any, places: Any, values: Any) -> Any:
    """Return values at ``x`` on the lines between points; those at the ends go on.

    Args:
        x: Floats of any shape.
        places: (count,), rising.
        values: (count,).
    """
    last = op("Squeeze", sub(op("Shape", places), 1), [0])
    before = sub(sorted_places(places, x, right=True), 1)
    low = op("Max", op("Min", before, sub(last, 1)), np.array(0))
    high = op("Min", add(low, 1), last)
    x0, x1 = (op("Gather", places, at, axis=0) for at in (low, high))
    f0, f1 = (op("Gather", values, at, axis=0) for at in (low, high))
    width = sub(x1, x0)
    none = op("Equal", width, number_like(0, x))
    share = op("Div", sub(x, x0), where(none, number_like(1, x), width))
    share = op("Min", op("Max", share, number_like(0, x)), number_like(1, x))
    return where(op("IsNaN", x), x, add(f0, mul(share, sub(f1, f0))))


def running_log_sums(x: Any, axis: int) -> Any:
    """Return the logarithm of the sum of exponentials of all elements up to each one."""

    def together(before: Any, element: Any) -> Any:
        most = op("Max", before, element)
        apart = op("Exp", op("Neg", op("Abs", sub(before, element))))
        none = op("IsInf", most)
        return where(none, most, add(most, op("Log", add(apart, 1.0))))

    return accumulated(x, axis, number_like(-math.inf, x), together)


def histogram(x: Any, count: int, bounds: Sequence[Any] | None) -> Any:
    """Return how many elements lie in each bin of equal width, in the element type of ``x``.

    Args:
        x: Floats.
        count: How many bins.
        bounds: Their least and largest edge, different numbers, or scalars of any type. Where
            scalars are equal, or for None, they are the least and the largest element, one apart
            from it where these are equal.
    """
    if bounds is not None and all(isinstance(bound, int | float) for bound in bounds):
        low, high = (number_like(bound, x) for bound in bounds)
    else:
        low, high = (op(name, flat(x), [0], keepdims=0) for name in ("ReduceMin", "ReduceMax"))
        if bounds is not None:
            given = [
                number_like(bound, x)
                if isinstance(bound, int | float)
                else cast(bound, dtype_of(x))
                for bound in bounds
            ]
            alike = op("Equal", *given)
            low, high = where(alike, low, given[0]), where(alike, high, given[1])
        same = op("Equal", low, high)
        low, high = where(same, sub(low, 1), low), where(same, add(high, 1), high)
    return cast(counts_between(x, spaced(low, high, count + 1, dtype_of(x))), dtype_of(x))


def middle(x: Any, axis: int, *, skip: bool) -> tuple[Any, Any]:
    """Return the lower one of the middle elements along an axis, and its place.

    The axis stays with size 1. NaN counts as the middle one where there is some, unless it is left
    out.
    """
    if not dtype_of(x).is_floating_point():
        count: Any = extent(x, axis)
        at = (count - 1) // 2 if isinstance(count, int) else op("Div", sub(count, 1), 2)
        return smallest_of(x, axis, at)
    there = op("Not", op("IsNaN", x))
    values, places = sorted_along(where(there, x, number_like(math.inf, x)), axis)
    left = op("ReduceSum", cast(there, _INT64), [axis], keepdims=1)
    at = op("Max", op("Div", sub(left, 1), 2), np.array(0))
    value, place = (op("GatherElements", v, at, axis=axis) for v in (values, places))
    some = op("Less", left, extent(x, axis)) if not skip else op("Equal", left, 0)
    first = op("ArgMin", cast(there, _INT64), axis=axis, keepdims=1)
    return where(some, number_like(math.nan, x), value), where(some, first, place)
