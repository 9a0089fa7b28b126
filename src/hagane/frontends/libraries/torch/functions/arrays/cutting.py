"""Functions of PyTorch that cut tensors into parts."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from hagane.frontends.libraries.computing import computed
from hagane.frontends.libraries.indexing import item
from hagane.frontends.libraries.torch.operands import (
    INT64,
    at_least,
    axis,
    category,
    expect_axes,
    need_tensor,
    own_axis,
    reshape,
    shape_of,
    size,
    sizes,
)
from hagane.frontends.libraries.torch.table import TORCH
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.values.memory import note_part
from hagane.frontends.python.values.open_tuples import tuple_of
from hagane.frontends.python.values.strides import lie, strides_of
from hagane.frontends.python.values.values import (
    Library,
    Many,
    Tensor,
    Value,
)
from hagane.ops.functions.tensors import parts as taken
from hagane.symbolic import Dim, ceildiv, definitely_equal, floordiv, maximum, minimum


@TORCH.function("chunk", "unsafe_chunk", methods=("chunk", "unsafe_chunk"))
def chunk(t: Core, input: Value, chunks: Value, dim: Value = 0) -> Value:
    """Return the input cut into at most ``chunks`` parts of one size, the last one smaller."""
    x = need_tensor(t, input, "input")
    shape = shape_of(t, x)
    place = own_axis(t, dim, x)
    count = size(t, chunks)
    at_least(t, count, 1, "chunks")
    each = ceildiv(shape[place], count)
    if not isinstance(count, int):
        if not t.emit.builds:  # sizes of parts of parts would be formulas that double
            total, parts = shape[place], t.emit.fresh("parts")
            shape = (*shape[:place], t.emit.pieces.size(total, None, parts), *shape[place + 1 :])
            return tuple_of(t.heap, Many(t.emit.typed("Slice", [x], x.dtype, shape), parts))
        filled = t.knowledge.is_nonnegative(each - 1)
        return split(t, x, each if filled else maximum(each, 1), place)
    if t.emit.holds(
        t.knowledge.equal(each * count, shape[place]), f"{shape[place]} is a multiple of {count}"
    ):
        return tuple(_part(t, x, place, each * k, each) for k in range(count))
    return split(t, x, each, place)


def _parts_of(t: Core, x: Tensor, place: int, each: Dim) -> Many:
    """Return the parts of a size, the last of which may be smaller, of an axis of open size."""
    total = shape_of(t, x)[place]

    def part(k: Dim) -> Tensor:
        if not isinstance(k, int) and not t.emit.builds:
            return any_part
        start = each * k
        rest = total - start
        whole = t.knowledge.is_nonnegative(rest - each)
        return _part(t, x, place, start, each if whole else minimum(each, rest))

    shape = list(shape_of(t, x))
    count = ceildiv(total, each)
    if not t.knowledge.is_nonnegative(total - 1):
        count = maximum(1, count)  # an empty axis has one empty part
    even = t.emit.builds or definitely_equal(floordiv(total, each) * each, total)
    shape[place] = each if even else t.emit.pieces.size(total, each, count)
    any_part = t.emit.typed("Slice", [x], x.dtype, tuple(shape))
    return Many(any_part, count, part)


def _parts_of_lengths(t: Core, x: Tensor, place: int, lengths: Many) -> Many:
    """Return parts of an axis whose lengths and number the data decide."""
    shape = list(shape_of(t, x))
    if not t.emit.builds:
        shape[place] = t.emit.fresh("part")
        return Many(t.emit.typed("Slice", [x], x.dtype, tuple(shape)), lengths.length)
    held = lengths.stacked
    if held is None or not held.dtype.is_integer() or held.rank != 1:
        t.fail("type", f"expected integers as sizes of the parts, got {t.show(lengths.element)}")
    each = t.op("Cast", held, to=INT64)
    # (A run fails here where lengths do not sum to the axis.)
    summed = t.op("ReduceSum", each, np.zeros(1, np.int64), keepdims=1)
    sizes_ = t.op("Shape", x)
    wanted = t.op(
        "Concat",
        t.op("Slice", sizes_, np.array([0]), np.array([place]), np.array([0])),
        summed,
        t.op("Slice", sizes_, np.array([place + 1]), np.array([x.rank]), np.array([0])),
        axis=0,
    )
    whole = t.op("Reshape", x, wanted)
    starts = t.op("CumSum", each, np.array(0, np.int64), exclusive=1)
    first = t.domain.many(starts, Many(t.emit.fresh("start"), lengths.length))

    def part(k: Dim) -> Tensor:
        return _part(t, whole, place, first.item(k), size(t, lengths.item(k)))

    return Many(x, lengths.length, part)


def _part(t: Core, x: Tensor, place: int, start: Dim, length: Dim) -> Tensor:
    shape = list(shape_of(t, x))
    shape[place] = length
    made = computed(t, (x.dtype, tuple(shape)), lambda: taken.part(x, place, start, length))
    return lie(made, strides_of(x))


def _parts(t: Core, x: Tensor, place: int, lengths: Sequence[Dim]) -> tuple[Tensor, ...]:
    starts = itertools.accumulate(lengths, initial=0)
    return tuple(
        _part(t, x, place, start, length) for start, length in zip(starts, lengths, strict=False)
    )


@TORCH.function("split", "split_with_sizes", methods=("split", "split_with_sizes"))
def split(t: Core, tensor: Value, split_size_or_sections: Value, dim: Value = 0) -> Value:
    """Return the input cut into parts of a size, or of the sizes given."""
    x = need_tensor(t, tensor, "tensor")
    shape = shape_of(t, x)
    place = own_axis(t, dim, x)
    total = shape[place]
    if isinstance(split_size_or_sections, Many):
        return tuple_of(t.heap, _parts_of_lengths(t, x, place, split_size_or_sections))
    if isinstance(split_size_or_sections, list | tuple):
        parts = sizes(t, (split_size_or_sections,))
        if t.emit.differ(sum(parts), total):
            t.fail(
                "shape-mismatch",
                f"expected sizes that sum to {total} (axis {place} of {t.show(x)}), "
                f"got {parts} with the sum {sum(parts)}",
                x,
            )
        return _parts(t, x, place, parts)
    each = size(t, split_size_or_sections)
    if isinstance(total, int) and isinstance(each, int) and each > 0:
        counts = [each] * (total // each) + ([total % each] if total % each or not total else [])
        return _parts(t, x, place, counts)
    quotient = floordiv(total, each)
    if quotient * each == total and isinstance(quotient, int):
        return _parts(t, x, place, [each] * quotient)
    return tuple_of(t.heap, _parts_of(t, x, place, each))


@TORCH.function("tensor_split", methods=("tensor_split",))
def tensor_split(
    t: Core,
    input: Value,
    indices_or_sections: Value = None,
    dim: Value = 0,
    *,
    indices: Value = None,
    sections: Value = None,
) -> Value:
    """Return the input cut into parts, the first ones larger by one where needed."""
    given = [v for v in (indices_or_sections, indices, sections) if v is not None]
    if len(given) != 1:
        t.fail("call", "tensor_split takes either the number of sections or the places of the cuts")
    sections = given[0]
    x = need_tensor(t, input, "input")
    shape = shape_of(t, x)
    place = own_axis(t, dim, x)
    if isinstance(sections, int):
        total = shape[place]
        lengths = [floordiv(total + sections - 1 - k, sections) for k in range(sections)]
        return _parts(t, x, place, lengths)
    if isinstance(sections, Tensor):
        return t.lost("tensor_split at places that a tensor has")
    bounds = [0, *sections, shape[place]]
    if (
        all(isinstance(place, int) for place in bounds)
        and min(bounds) >= 0
        and bounds == sorted(bounds)
    ):
        return _parts(t, x, place, [b - a for a, b in itertools.pairwise(bounds)])
    before = (slice(None),) * place  # places beyond the axis, and those counted from its end
    return tuple(item(t, x, (*before, slice(a, b))) for a, b in itertools.pairwise(bounds))


@TORCH.function("unbind", methods=("unbind",))
def unbind(t: Core, input: Value, dim: Value = 0) -> Value:
    """Return the parts of the input along an axis, without that axis."""
    x = need_tensor(t, input, "input")
    shape = shape_of(t, x)
    place = own_axis(t, dim, x)
    rest = shape[:place] + shape[place + 1 :]
    count = shape[place]
    if isinstance(count, int):
        made = (
            computed(t, (x.dtype, rest), partial(taken.element, x, place, k)) for k in range(count)
        )
        before = strides_of(x)
        return tuple(lie(part, before[:place] + before[place + 1 :]) for part in made)
    first = x if place == 0 else t.call(Library("torch.movedim"), [x, place, 0], {})
    found = t.sequence(first)
    return tuple_of(t.heap, found)


@TORCH.function("narrow", methods=("narrow",))
def narrow(t: Core, input: Value, dim: Value, start: Value, length: Value) -> Tensor:
    """Return ``length`` elements along an axis."""
    x = need_tensor(t, input, "input")
    shape = shape_of(t, x)
    place = own_axis(t, dim, x)
    if isinstance(start, Tensor) and category(start.dtype) != 1:
        t.fail("dtype-mismatch", f"expected an integer as start, got {t.show(start)}", start,
               remedy="convert it with .long()")  # fmt: skip
    first, count = size(t, start), size(t, length)
    at_least(t, count, 0, "length")
    if isinstance(first, int) and first < 0:
        t.emit.require_size(shape[place], -first, f"axis {place}, counted from its end")
        first = shape[place] + first
    claim = t.knowledge.less(first + count, shape[place], strict=False)
    if not t.emit.restrict(claim, f"{first + count} <= {shape[place]} (axis {place})"):
        t.fail(
            "index",
            f"elements {first} to {first + count} are beyond axis {place} of {t.show(x)}",
            x,
        )
    return _part(t, x, place, first, count)


@TORCH.function("select", methods=("select",))
def select(t: Core, input: Value, dim: Value, index: Value) -> Tensor:
    """Return one element along an axis, without that axis."""
    x = need_tensor(t, input, "input")
    place = axis(t, dim, len(shape_of(t, x)), x)
    return item(t, x, (*(slice(None),) * place, index))


@TORCH.method("unfold")
def unfold_method(t: Core, self: Value, dimension: Value, size_: Value, step: Value) -> Tensor:
    """Return all windows along an axis; their elements are a new last axis."""
    if not shape_of(t, self):  # a scalar has one window of one element
        return reshape(t, self, [1])
    shape = list(shape_of(t, self))
    place = axis(t, dimension, len(shape), self, what="dimension")
    window, stride = size(t, size_), size(t, step)
    t.emit.require_size(shape[place] - window, 0, f"axis {place} minus the window of {window}")
    count = shape[place] = floordiv(shape[place] - window, stride) + 1
    made = computed(
        t,
        (self.dtype, (*shape, window)),
        lambda: taken.windows_along(self, place, window, stride, count),
    )
    if isinstance(window, int) and isinstance(stride, int) and self.kind == "torch.Tensor":
        note_part(made.value, self.value, partial(_windows, place=place, window=window, by=stride))
    before = strides_of(self)
    return lie(made, (*before[:place], before[place] * stride, *before[place + 1 :], before[place]))


def _windows(array: Any, place: int, window: int, by: int) -> Any:
    """Return all windows along an axis of an array, as a view."""
    found = np.lib.stride_tricks.sliding_window_view(array, window, place, writeable=True)
    return found[(slice(None),) * place + (slice(None, None, by),)]


def _cut(name: str, place: int) -> None:
    def function(t: Core, input: Value, sections: Value) -> Value:
        x = need_tensor(t, input, "input")
        rank = len(shape_of(t, x))
        where = place if rank > 1 else 0
        expect_axes(t, x, 1 if name == "hsplit" else max(place + 1, 2))
        if isinstance(sections, int):
            at_least(t, sections, 1, "sections")
            size_ = shape_of(t, x)[where]
            if t.emit.indivisible(size_, sections, f"axis {where}"):
                t.fail("shape-mismatch", f"{name}: axis {where} of {t.show(x)} is not divisible "
                       f"by {sections}", x)  # fmt: skip
        return tensor_split(t, x, sections, where)

    TORCH.function(name, methods=(name,))(function)


for _name, _place in (("hsplit", 1), ("vsplit", 0), ("dsplit", 2)):
    _cut(_name, _place)
