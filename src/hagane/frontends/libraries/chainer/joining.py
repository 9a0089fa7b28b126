"""Functions of Chainer that join variables and take them apart."""

from __future__ import annotations

from collections import defaultdict
from functools import partial
from typing import Any

import numpy as np

from hagane.frontends.libraries.chainer.operands import (
    BOOL,
    broadcast_shape,
    computed,
    computed_parts,
    kind_of,
    made,
    same_dtype,
    same_shape,
    shape_of,
    size,
    variable,
    variables,
)
from hagane.frontends.libraries.chainer.operands import axis as checked_axis
from hagane.frontends.libraries.chainer.shaping import reshape
from hagane.frontends.libraries.chainer.table import VARIABLE, function
from hagane.frontends.libraries.numpy.joining import cuts, joined_shape
from hagane.frontends.libraries.numpy.operands import to_array
from hagane.frontends.libraries.totals import total_size
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.values.values import (
    Many,
    Tensor,
    Value,
)
from hagane.ops.builder import op
from hagane.ops.functions.chainer import arrays
from hagane.ops.functions.numbers import elementary
from hagane.ops.functions.tensors.parts import element
from hagane.symbolic import Dim, maximum


def _alike(t: Core, found: list[Tensor], what: str) -> None:
    for other in found[1:]:
        same_dtype(t, found[0], other, f"the variables of {what}")


def _of_many(t: Core, xs: Many, what: str) -> Tensor:
    """Return the stand-in of all items of a list, which must not be empty."""
    t.emit.require_size(xs.length, 1, f"number of variables of {what}")
    return variable(t, t.settle(xs.element), "xs")


def _joined(t: Core, found: list[Tensor], place: int, what: str) -> Tensor:
    _alike(t, found, what)
    shape = joined_shape(t, found, place, what)
    return computed(t, (found[0].dtype, shape), lambda *xs: op("Concat", *xs, axis=place), *found)


@function("concat")
def concat(t: Core, xs: Value, axis: Value = 1) -> Tensor:
    """Return variables joined along an axis."""
    if isinstance(xs, Many):
        x = _of_many(t, xs, "concat")
        shape = list(shape_of(t, x))
        place = checked_axis(t, axis, len(shape), x)
        shape[place] = total_size(t, shape[place], xs.length)
        return made(t, "Concat", [x], x.dtype, tuple(shape))
    found = variables(t, xs, "xs")
    place = checked_axis(t, axis, len(shape_of(t, found[0])), found[0])
    return _joined(t, found, place, "concat")


@function("stack")
def stack(t: Core, xs: Value, axis: Value = 0) -> Tensor:
    """Return variables joined along a new axis."""
    if isinstance(xs, Many):
        x, count = _of_many(t, xs, "stack"), xs.length
        shape = list(shape_of(t, x))
        shape.insert(checked_axis(t, axis, len(shape), x, extra=1), count)
        return made(t, "Stack", [x], x.dtype, tuple(shape))
    found = variables(t, xs, "xs")
    _alike(t, found, "stack")
    for other in found[1:]:
        same_shape(t, found[0], other, "the variables of stack")
    shape = list(shape_of(t, found[0]))
    place = checked_axis(t, axis, len(shape), found[0], extra=1)
    shape.insert(place, len(found))
    return computed(t, (found[0].dtype, tuple(shape)), partial(arrays.stack, place), *found)


@function("hstack")
def hstack(t: Core, xs: Value) -> Tensor:
    """Return variables joined along axis 1, vectors along axis 0."""
    found = variables(t, xs, "xs")
    rank = len(shape_of(t, found[0]))
    if rank == 0:
        return stack(t, xs, 0)
    return _joined(t, found, 0 if rank == 1 else 1, "hstack")


@function("vstack")
def vstack(t: Core, xs: Value) -> Tensor:
    """Return variables joined along axis 0, vectors as rows."""
    if isinstance(xs, Many):
        return concat(t, xs, 0)
    found = variables(t, xs, "xs")
    rank = len(shape_of(t, found[0]))
    if rank == 0:
        return reshape(t, stack(t, xs, 0), (len(found), 1))
    return stack(t, xs, 0) if rank == 1 else _joined(t, found, 0, "vstack")


# The axes that variables of fewer than three get in dstack, by their number.
_NEW_AXES = defaultdict(tuple, {0: (0, 1, 2), 1: (0, 2), 2: (2,)})


@function("dstack")
def dstack(t: Core, xs: Value) -> Tensor:
    """Return variables joined along axis 2."""
    found = []
    for x in variables(t, xs, "xs"):
        shape = shape_of(t, x)
        full = {0: (1, 1, 1), 1: (1, *shape, 1), 2: (*shape, 1)}.get(len(shape), shape)
        places = _NEW_AXES[len(shape)]
        found.append(computed(t, (x.dtype, full), elementary.unsqueeze, x, places))
    return _joined(t, found, 2, "dstack")


@function("split_axis")
def split_axis(
    t: Core, x: Value, indices_or_sections: Value, axis: Value, force_tuple: Value = True
) -> Value:
    """Return the parts of a variable along an axis: equal ones, or cut at places."""
    found = variable(t, x)
    shape = shape_of(t, found)
    place = checked_axis(t, axis, len(shape), found)
    if isinstance(indices_or_sections, Many):
        return _unknown_parts(t, found, place, indices_or_sections.length + 1)
    places = indices_or_sections
    if isinstance(places, Tensor) and places.shape not in ((), None):
        (several,) = shape_of(t, places, 1)
        if places.known is not None:
            places = places.known.tolist()
        elif t.emit.builds and isinstance(several, int):
            emit: Any = t.emit
            numbers = [np.array(i, np.int64) for i in range(several)]
            places = [emit.number(t.op("Gather", places, i, axis=0), "place") for i in numbers]
        else:
            return _unknown_parts(t, found, place, several + 1)
    if isinstance(places, list | tuple) and places:
        last = size(t, places[-1])
        if not t.emit.restrict(
            t.knowledge.less(last, shape[place], strict=False),
            f"{last} <= {shape[place]} (axis {place}, which is cut there)",
        ):
            t.fail(
                "shape-mismatch",
                f"expected axis {place} to have at least {last} elements, got {t.show(found)}",
                found,
            )
    elif not isinstance(places, list | tuple):
        count = size(t, places)
        if not isinstance(count, int):
            return _unknown_parts(t, found, place, count, even=True)
        places = count
    counts = cuts(t, found, places, place, even=True)
    promised = [(found.dtype, (*shape[:place], n, *shape[place + 1 :])) for n in counts]
    starts = [0, *places] if isinstance(places, list | tuple) else None
    run = partial(arrays.pieces, axis=place, starts=starts, lengths=list(counts))
    results = tuple(computed_parts(t, promised, run, found))
    return results[0] if len(results) == 1 and not force_tuple else results


def _unknown_parts(t: Core, x: Tensor, place: int, count: Dim, *, even: bool = False) -> Value:
    from hagane.symbolic import floordiv

    shape = list(shape_of(t, x))
    shape[place] = floordiv(shape[place], count) if even else t.emit.fresh("part")
    part = made(t, "Split", [x], x.dtype, tuple(shape))
    return Many(part, count) if not isinstance(count, int) else tuple([part] * count)


@function("separate")
def separate(t: Core, x: Value, axis: Value = 0) -> Value:
    """Return the parts of a variable along an axis, without the axis."""
    found = variable(t, x)
    shape = shape_of(t, found)
    place = checked_axis(t, axis, len(shape), found)
    part = (*shape[:place], *shape[place + 1 :])
    count = shape[place]
    if isinstance(count, int):
        run = lambda x: [element(x, place, i) for i in range(count)]  # noqa: E731
        return tuple(computed_parts(t, [(found.dtype, part)] * count, run, found))
    if not t.emit.builds:
        return Many(made(t, "Split", [found], found.dtype, part), count)
    order = [place, *(axis for axis in range(len(shape)) if axis != place)]
    stacked = computed(t, (found.dtype, (count, *part)), partial(transposed, order=order), found)
    return t.domain.many(stacked, Many(None, count))


def transposed(x: Any, order: list[int]) -> Any:
    """Return a variable with its axes in another order."""
    return x if order == sorted(order) else op("Transpose", x, perm=order)


@function("pad_sequence")
def pad_sequence(t: Core, xs: Value, length: Value = None, padding: Value = 0) -> Tensor:
    """Return variables of different lengths padded to the longest: (count, longest, ...)."""
    if isinstance(xs, Many):
        first, count = _of_many(t, xs, "pad_sequence"), xs.length
        longest: Dim = shape_of(t, first)[0] if xs.at is None else t.emit.fresh("longest")
        found = None
    else:
        found = variables(t, xs, "xs")
        _alike(t, found, "pad_sequence")
        first, count = found[0], len(found)
        for x in found:
            if not shape_of(t, x):
                t.fail("rank", f"expected at least one axis, got {t.show(x)}", x)
            own, rest = shape_of(t, first)[1:], shape_of(t, x)[1:]
            if len(own) != len(rest) or any(map(t.emit.differ, own, rest)):
                t.fail(
                    "shape-mismatch",
                    f"expected the elements of one shape, got {t.show(first)} and {t.show(x)}",
                    first,
                    x,
                )
        longest = maximum(*(shape_of(t, x)[0] for x in found))
    if length is not None:
        wanted = size(t, length)
        if not t.emit.holds(
            t.knowledge.less(longest, wanted, strict=False), f"{longest} <= {wanted}"
        ):
            t.fail("shape-mismatch", f"a sequence is longer than {wanted}: {t.show(first)}", first)
        longest = wanted
    result = (first.dtype, (count, longest, *shape_of(t, first)[1:]))
    if found is None or not isinstance(padding, int | float):
        return made(t, "PadSequence", [first], *result)
    return computed(t, result, partial(arrays.pad_sequence, longest, padding), *found)


@function("transpose_sequence")
def transpose_sequence(t: Core, xs: Value) -> Value:
    """Return the elements of each time step of sequences sorted by length."""
    if isinstance(xs, Many):
        x = variable(t, xs.element, "xs")
        longest = shape_of(t, x)[0]
        step = made(t, "Transpose", [x], x.dtype, (t.emit.fresh("alive"), *shape_of(t, x)[1:]))
        return Many(step, longest)
    found = variables(t, xs, "xs")
    longest = shape_of(t, found[0])[0]
    rest = shape_of(t, found[0])[1:]
    counts = [shape_of(t, x)[0] for x in found]
    lengths = [n for n in counts if isinstance(n, int)]
    if len(lengths) == len(counts):
        steps = range(int(str(longest)))
        alive = [[x for x, n in zip(found, lengths, strict=True) if n > k] for k in steps]
        promised = [(found[0].dtype, (len(xs), *rest)) for xs in alive]
        return tuple(computed_parts(t, promised, arrays.steps_of, *alive))
    step = made(t, "Transpose", found, found[0].dtype, (t.emit.fresh("alive"), *rest))
    return Many(step, longest)


@function("where")
def where(t: Core, condition: Value, x: Value, y: Value) -> Tensor:
    """Return elements of x where the condition holds, else of y."""
    c = variable(t, condition if isinstance(condition, Tensor) else to_array(t, condition))
    a, b = variable(t, x, "x"), variable(t, y, "y")
    if c.dtype != BOOL:
        t.fail(
            "dtype-mismatch",
            f"expected a bool condition, got {t.show(c)}",
            c,
            remedy="compare it first, as in condition.array != 0",
        )
    same_dtype(t, a, b, "x and y")
    shape = broadcast_shape(t, c, a, b)
    return computed(t, (a.dtype, shape), lambda c, a, b: op("Where", c, a, b), c, a, b)


__all__ = ["VARIABLE", "concat", "kind_of", "stack"]
