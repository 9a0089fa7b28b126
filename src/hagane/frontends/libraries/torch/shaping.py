"""Functions of PyTorch that move elements: views, joins, parts, expansions."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from hagane.frontends.libraries.torch.operands import (
    INT64,
    axes,
    axis,
    cast,
    dims_input,
    elements,
    need_tensor,
    promoted,
    reshape,
    shape_of,
    size,
    sizes,
)
from hagane.frontends.libraries.torch.table import TORCH
from hagane.frontends.python.core import Core
from hagane.frontends.python.values import DType, Many, Tensor, Value
from hagane.symbolic import Dim, ceildiv, floordiv, product


@TORCH.method("view", "reshape", "_reshape_alias")
def view(t: Core, self: Value, *shape: Value) -> Tensor:
    """Return the tensor with another shape, of which one size may be -1."""
    if len(shape) == 1 and isinstance(shape[0], DType):
        return cast(t, self, shape[0].dtype)
    return reshape(t, self, sizes(t, shape))


@TORCH.function("reshape")
def reshape_function(t: Core, input: Value, shape: Value) -> Tensor:
    """Return the input with another shape."""
    return reshape(t, need_tensor(t, input, "input"), sizes(t, (shape,)))


@TORCH.method("view_as", "reshape_as")
def view_as(t: Core, self: Value, other: Value) -> Tensor:
    """Return the tensor in the shape of another."""
    return reshape(t, self, shape_of(t, need_tensor(t, other, "other")))


@TORCH.function("flatten", "ravel", methods=("flatten", "ravel"))
def flatten(t: Core, input: Value, start_dim: Value = 0, end_dim: Value = -1) -> Tensor:
    """Return the input with the axes from ``start_dim`` to ``end_dim`` joined."""
    x = need_tensor(t, input, "input")
    shape = shape_of(t, x)
    if not shape:
        return reshape(t, x, [1])
    first = axis(t, start_dim, len(shape), x, what="start_dim")
    last = axis(t, end_dim, len(shape), x, what="end_dim")
    if last < first:
        t.fail("axis", f"start_dim={start_dim} comes after end_dim={end_dim} for {t.show(x)}", x)
    joined = product(shape[first : last + 1])
    return reshape(t, x, [*shape[:first], joined, *shape[last + 1 :]])


@TORCH.function("unflatten", methods=("unflatten",))
def unflatten(t: Core, input: Value, dim: Value, sizes_: Value) -> Tensor:
    """Return the input with one axis split into several."""
    x = need_tensor(t, input, "input")
    shape = shape_of(t, x)
    place = axis(t, dim, len(shape), x)
    parts = sizes(t, (sizes_,))
    if any(isinstance(part, int) and part == -1 for part in parts):
        known = product(part for part in parts if not (isinstance(part, int) and part == -1))
        if t.emit.differ(floordiv(shape[place], known) * known, shape[place]):
            t.fail(
                "shape-mismatch",
                f"axis {place} of {t.show(x)} is not a multiple of {known}",
                x,
            )
        whole = floordiv(shape[place], known)
        parts = [whole if isinstance(part, int) and part == -1 else part for part in parts]
    elif t.emit.differ(product(parts), shape[place]):
        t.fail(
            "shape-mismatch",
            f"expected sizes whose product is {shape[place]} (axis {place}), got {parts}",
            x,
        )
    return reshape(t, x, [*shape[:place], *parts, *shape[place + 1 :]])


@TORCH.function(
    "transpose", "swapaxes", "swapdims", methods=("transpose", "swapaxes", "transpose_")
)
def transpose(t: Core, input: Value, dim0: Value, dim1: Value) -> Tensor:
    """Return the input with two axes swapped."""
    x = need_tensor(t, input, "input")
    rank = len(shape_of(t, x))
    order = list(range(rank))
    a, b = axis(t, dim0, rank, x, what="dim0"), axis(t, dim1, rank, x, what="dim1")
    if rank:
        order[a], order[b] = order[b], order[a]
    return t.op("Transpose", x, perm=order)


@TORCH.function("t", "adjoint", methods=("t",))
def t_(t: Core, input: Value) -> Tensor:
    """Return a matrix transposed."""
    x = need_tensor(t, input, "input")
    rank = len(shape_of(t, x))
    if rank > 2:
        t.fail(
            "rank",
            f".t() takes a matrix, got {t.show(x)}",
            x,
            remedy="name the axes: .transpose(a, b)",
        )
    return t.op("Transpose", x) if rank == 2 else x


@TORCH.attribute("T", "H")
def transposed(t: Core, x: Tensor) -> Tensor:
    """Return the tensor with its axes in reverse."""
    return t.op("Transpose", x)


@TORCH.attribute("mT", "mH")
def matrices_transposed(t: Core, x: Tensor) -> Tensor:
    """Return the tensor with its last two axes swapped."""
    return transpose(t, x, -2, -1)


@TORCH.method("permute")
def permute(t: Core, self: Value, *dims: Value) -> Tensor:
    """Return the tensor with its axes in the order of ``dims``."""
    shape = shape_of(t, self)
    given = list(dims[0]) if len(dims) == 1 and isinstance(dims[0], tuple | list) else list(dims)
    if len(given) != len(shape):
        t.fail(
            "rank",
            f"expected one axis for each of the {len(shape)} of {t.show(self)}, got {given}",
            self,
        )
    order = [axis(t, item, len(shape), self) for item in given]
    if len(set(order)) != len(order):
        t.fail("axis", f"permute names an axis twice: {given}", self)
    return t.op("Transpose", self, perm=order)


@TORCH.function("permute")
def permute_function(t: Core, input: Value, dims: Value) -> Tensor:
    """Return the input with its axes in the order of ``dims``."""
    return permute(t, need_tensor(t, input, "input"), dims)


@TORCH.function("movedim", "moveaxis", methods=("movedim", "moveaxis"))
def movedim(t: Core, input: Value, source: Value, destination: Value) -> Tensor:
    """Return the input with axes moved."""
    x = need_tensor(t, input, "input")
    rank = len(shape_of(t, x))
    old, new = axes(t, source, rank, x), axes(t, destination, rank, x)
    rest = [place for place in range(rank) if place not in old]
    order = [-1] * rank
    for a, b in zip(old, new, strict=True):
        order[b] = a
    order = [rest.pop(0) if place < 0 else place for place in order]
    return t.op("Transpose", x, perm=order)


@TORCH.function("squeeze", methods=("squeeze", "squeeze_"))
def squeeze(t: Core, input: Value, dim: Value = None) -> Tensor:
    """Return the input without axes of size 1; an axis of another size stays."""
    x = need_tensor(t, input, "input")
    shape = shape_of(t, x)
    wanted = axes(t, dim, len(shape), x) if shape else []
    gone = [place for place in wanted if isinstance(shape[place], int) and shape[place] == 1]
    if not gone:
        return x
    return t.op("Squeeze", x, np.array(gone, dtype=np.int64))


@TORCH.function("unsqueeze", methods=("unsqueeze", "unsqueeze_"))
def unsqueeze(t: Core, input: Value, dim: Value) -> Tensor:
    """Return the input with a new axis of size 1."""
    x = need_tensor(t, input, "input")
    place = axis(t, dim, len(shape_of(t, x)), x, extra=1)
    return t.op("Unsqueeze", x, np.array([place], dtype=np.int64))


@TORCH.method("expand")
def expand(t: Core, self: Value, *shape: Value) -> Tensor:
    """Return the tensor with axes of size 1 repeated; -1 keeps a size."""
    target, own = sizes(t, shape), shape_of(t, self)
    if len(target) < len(own):
        t.fail("rank", f"expected at least {len(own)} sizes for {t.show(self)}, got {target}", self)
    new = len(target) - len(own)
    result: list[Dim] = []
    for place, wanted in enumerate(target):
        if place < new:
            result.append(wanted)
            continue
        dim = own[place - new]
        if isinstance(wanted, int) and wanted == -1:
            result.append(dim)
        elif isinstance(dim, int) and dim == 1:
            result.append(wanted)
        elif t.emit.differ(dim, wanted):
            t.fail(
                "shape-mismatch",
                f"cannot expand axis {place - new} of {t.show(self)} from {dim} to {wanted}: "
                "only axes of size 1 can be expanded",
                self,
            )
        else:
            result.append(dim)
    return t.op("Expand", self, dims_input(result))


@TORCH.method("expand_as")
def expand_as(t: Core, self: Value, other: Value) -> Tensor:
    """Return the tensor expanded to the shape of another."""
    return expand(t, self, shape_of(t, need_tensor(t, other, "other")))


@TORCH.function("broadcast_to", methods=("broadcast_to",))
def broadcast_to(t: Core, input: Value, size_: Value) -> Tensor:
    """Return the input expanded to a shape."""
    return expand(t, need_tensor(t, input, "input"), size_)


@TORCH.function("broadcast_tensors")
def broadcast_tensors(t: Core, *tensors: Value) -> list[Tensor]:
    """Return all tensors expanded to their common shape."""
    from hagane.frontends.libraries.torch.elementwise import broadcast_shape

    shape = broadcast_shape(t, *tensors)
    return [expand(t, x, shape) for x in tensors]


@TORCH.method("repeat")
def repeat(t: Core, self: Value, *times: Value) -> Tensor:
    """Return the tensor repeated along each axis."""
    counts, shape = sizes(t, times), shape_of(t, self)
    if len(counts) < len(shape):
        t.fail(
            "rank", f"expected at least {len(shape)} counts for {t.show(self)}, got {counts}", self
        )
    wide = reshape(t, self, [1] * (len(counts) - len(shape)) + list(shape))
    return t.op("Tile", wide, dims_input(counts))


@TORCH.function("tile", methods=("tile",))
def tile(t: Core, input: Value, *dims: Value) -> Tensor:
    """Return the input repeated along each axis; missing counts are 1."""
    x = need_tensor(t, input, "input")
    counts, shape = sizes(t, dims), shape_of(t, x)
    return repeat(t, x, [1] * (len(shape) - len(counts)) + counts)


@TORCH.function("repeat_interleave", methods=("repeat_interleave",))
def repeat_interleave(
    t: Core, input: Value, repeats: Value, dim: Value = None, *, output_size: Value = None
) -> Tensor:
    """Return the input with each element repeated."""
    x = need_tensor(t, input, "input")
    shape = list(shape_of(t, x))
    place = 0 if dim is None else axis(t, dim, len(shape), x)
    if dim is None:
        shape = [elements(x)]
    if isinstance(repeats, Tensor):
        shape[place] = t.emit.fresh("repeated") if output_size is None else output_size
    else:
        shape[place] = shape[place] * size(t, repeats)
    return t.emit.typed("RepeatInterleave", [x], x.dtype, tuple(shape))


@TORCH.function("flip", methods=("flip",))
def flip(t: Core, input: Value, *dims: Value) -> Tensor:
    """Return the input with axes reversed."""
    x = need_tensor(t, input, "input")
    axes(t, dims[0] if len(dims) == 1 else dims, len(shape_of(t, x)), x)
    return t.emit.typed("Flip", [x], x.dtype, x.shape)


@TORCH.function("roll", methods=("roll",))
def roll(t: Core, input: Value, shifts: Value, dims: Value = None) -> Tensor:
    """Return the input rolled along axes."""
    x = need_tensor(t, input, "input")
    axes(t, dims, len(shape_of(t, x)), x)
    return t.emit.typed("Roll", [x], x.dtype, x.shape)


for _name in ("fliplr", "flipud", "tril", "triu", "rot90", "contiguous", "clone", "detach"):

    def _kept(t: Core, input: Value, *_: Value, **__: Value) -> Tensor:
        x = need_tensor(t, input, "input")
        return t.emit.typed("Identity", [x], x.dtype, x.shape)

    TORCH.function(_name, methods=(_name, f"{_name}_"))(_kept)


# Joins.


def _tensors(t: Core, tensors: Value, what: str) -> list[Tensor]:
    if isinstance(tensors, Tensor):
        t.fail("type", f"{what} takes a list of tensors, got one: {t.show(tensors)}", tensors)
    if not isinstance(tensors, list | tuple):
        t.fail("type", f"{what} takes a list of tensors, got {t.show(t.wrap(tensors))}")
    if not tensors:
        t.fail("value", f"{what} got an empty list of tensors")
    return [need_tensor(t, x, f"tensors[{place}]") for place, x in enumerate(tensors)]


def _one_dtype(t: Core, tensors: Sequence[Tensor]) -> list[Tensor]:
    dtype = tensors[0].dtype
    for x in tensors[1:]:
        dtype = promoted(dtype, x.dtype)
    return [cast(t, x, dtype) for x in tensors]


@TORCH.function("cat", "concat", "concatenate")
def cat(
    t: Core, tensors: Value, dim: Value = 0, *, axis_: Value = None, out: Value = None
) -> Tensor:
    """Return tensors joined along an axis; all others have to agree."""
    if isinstance(tensors, Many):
        return _cat_many(t, tensors, dim)
    found = _tensors(t, tensors, "torch.cat")
    rank = len(shape_of(t, found[0]))
    kept = [x for x in found if x.shape != (0,)] or found[:1]
    first = kept[0]
    for x in kept[1:]:
        if len(shape_of(t, x)) != len(shape_of(t, first)):
            t.fail(
                "rank",
                f"expected tensors of one rank, got {t.show(first)} and {t.show(x)}",
                first,
                x,
            )
    rank = len(shape_of(t, first))
    place = axis(t, dim, rank, first)
    return t.op("Concat", *_one_dtype(t, kept), axis=place)


def _cat_many(t: Core, tensors: Many, dim: Value) -> Tensor:
    x = need_tensor(t, tensors.element, "tensors[0]")
    shape = list(shape_of(t, x))
    place = axis(t, dim, len(shape), x)
    shape[place] = shape[place] * tensors.length
    return t.emit.typed("Concat", [x], x.dtype, tuple(shape))


@TORCH.function("stack")
def stack(t: Core, tensors: Value, dim: Value = 0, *, out: Value = None) -> Tensor:
    """Return tensors of one shape joined along a new axis."""
    if isinstance(tensors, Many):
        x = need_tensor(t, tensors.element, "tensors[0]")
        shape = list(shape_of(t, x))
        shape.insert(axis(t, dim, len(shape), x, extra=1), tensors.length)
        return t.emit.typed("Stack", [x], x.dtype, tuple(shape))
    found = _tensors(t, tensors, "torch.stack")
    first = shape_of(t, found[0])
    for x in found[1:]:
        other = shape_of(t, x)
        if len(other) != len(first) or any(
            t.emit.differ(a, b) for a, b in zip(first, other, strict=True)
        ):
            t.fail(
                "shape-mismatch",
                f"stack expects tensors of one shape, got {t.show(found[0])} and {t.show(x)}",
                found[0],
                x,
            )
    place = np.array([axis(t, dim, len(first), found[0], extra=1)], dtype=np.int64)
    wide = [t.op("Unsqueeze", x, place) for x in _one_dtype(t, found)]
    return t.op("Concat", *wide, axis=int(place[0]))


def _stacked(name: str, at: int, least: int) -> None:
    def function(t: Core, tensors: Value) -> Tensor:
        found = []
        for x in _tensors(t, tensors, f"torch.{name}"):
            shape = list(shape_of(t, x))
            while len(shape) < least:
                shape = [1, *shape] if name == "vstack" or not shape else [*shape, 1]
            found.append(reshape(t, x, shape))
        return cat(t, found, at if len(shape_of(t, found[0])) > at else 0)

    TORCH.function(name)(function)


_stacked("vstack", 0, 2)
_stacked("hstack", 1, 1)
_stacked("dstack", 2, 3)


# Parts.


@TORCH.function("chunk", methods=("chunk",))
def chunk(t: Core, input: Value, chunks: Value, dim: Value = 0) -> Value:
    """Return the input cut into at most ``chunks`` parts of one size, the last one smaller."""
    x = need_tensor(t, input, "input")
    shape = shape_of(t, x)
    place = axis(t, dim, len(shape), x)
    each = ceildiv(shape[place], chunks)
    if t.emit.holds(
        t.knowledge.equal(each * chunks, shape[place]), f"{shape[place]} is a multiple of {chunks}"
    ):
        return tuple(_part(t, x, place, each * k, each) for k in range(chunks))
    if not isinstance(shape[place], int):
        return Many(_part(t, x, place, 0, t.emit.fresh("chunk")), t.emit.fresh("chunks"))
    return split(t, x, each, place)


def _part(t: Core, x: Tensor, place: int, start: Dim, length: Dim) -> Tensor:
    shape = list(shape_of(t, x))
    shape[place] = length
    del start
    return t.emit.typed("Slice", [x], x.dtype, tuple(shape))


@TORCH.function("split", "split_with_sizes", methods=("split", "split_with_sizes"))
def split(t: Core, tensor: Value, split_size_or_sections: Value, dim: Value = 0) -> Value:
    """Return the input cut into parts of a size, or of the sizes given."""
    x = need_tensor(t, tensor, "tensor")
    shape = shape_of(t, x)
    place = axis(t, dim, len(shape), x)
    total = shape[place]
    if isinstance(split_size_or_sections, list | tuple):
        parts = sizes(t, (split_size_or_sections,))
        if t.emit.differ(sum(parts), total):
            t.fail(
                "shape-mismatch",
                f"expected sizes that sum to {total} (axis {place} of {t.show(x)}), "
                f"got {parts} with the sum {sum(parts)}",
                x,
            )
        return tuple(_part(t, x, place, 0, part) for part in parts)
    each = size(t, split_size_or_sections)
    if isinstance(total, int) and isinstance(each, int) and each > 0:
        counts = [each] * (total // each) + ([total % each] if total % each else [])
        return tuple(_part(t, x, place, 0, part) for part in counts)
    quotient = floordiv(total, each)
    if quotient * each == total and isinstance(quotient, int):
        return tuple(_part(t, x, place, 0, each) for _ in range(quotient))
    return Many(_part(t, x, place, 0, each), ceildiv(total, each))


@TORCH.function("tensor_split", methods=("tensor_split",))
def tensor_split(t: Core, input: Value, sections: Value, dim: Value = 0) -> Value:
    """Return the input cut into parts, the first ones larger by one where needed."""
    x = need_tensor(t, input, "input")
    shape = shape_of(t, x)
    place = axis(t, dim, len(shape), x)
    if isinstance(sections, int):
        total = shape[place]
        return tuple(
            _part(t, x, place, 0, floordiv(total + sections - 1 - k, sections))
            for k in range(sections)
        )
    bounds = [0, *sections, shape[place]]
    return tuple(_part(t, x, place, a, b - a) for a, b in itertools.pairwise(bounds))


@TORCH.function("unbind", methods=("unbind",))
def unbind(t: Core, input: Value, dim: Value = 0) -> Value:
    """Return the parts of the input along an axis, without that axis."""
    x = need_tensor(t, input, "input")
    shape = shape_of(t, x)
    place = axis(t, dim, len(shape), x)
    rest = shape[:place] + shape[place + 1 :]
    count = shape[place]
    if isinstance(count, int):
        return tuple(t.emit.typed("Gather", [x], x.dtype, rest) for _ in range(count))
    return Many(t.emit.typed("Gather", [x], x.dtype, rest), count)


@TORCH.function("narrow", methods=("narrow",))
def narrow(t: Core, input: Value, dim: Value, start: Value, length: Value) -> Tensor:
    """Return ``length`` elements along an axis."""
    x = need_tensor(t, input, "input")
    shape = shape_of(t, x)
    place = axis(t, dim, len(shape), x)
    first, count = size(t, start), size(t, length)
    claim = t.knowledge.less(first + count, shape[place], strict=False)
    if not t.emit.holds(claim, f"{first + count} <= {shape[place]}"):
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
    return t.item(x, (*(slice(None),) * place, index))


@TORCH.method("unfold")
def unfold_method(t: Core, self: Value, dimension: Value, size_: Value, step: Value) -> Tensor:
    """Return all windows along an axis; their elements are a new last axis."""
    shape = list(shape_of(t, self))
    place = axis(t, dimension, len(shape), self, what="dimension")
    window, stride = size(t, size_), size(t, step)
    t.emit.require_size(shape[place] - window, 0, f"axis {place} minus the window of {window}")
    shape[place] = floordiv(shape[place] - window, stride) + 1
    return t.emit.typed("Unfold", [self], self.dtype, (*shape, window))


@TORCH.function("diagonal", "diag_embed", methods=("diagonal", "diag_embed"))
def diagonal(t: Core, input: Value, offset: Value = 0, dim1: Value = 0, dim2: Value = 1) -> Tensor:
    """Return a diagonal of two axes, as the last axis."""
    from hagane.symbolic import minimum

    x = need_tensor(t, input, "input")
    shape = shape_of(t, x)
    a, b = axis(t, dim1, len(shape), x), axis(t, dim2, len(shape), x)
    rest = tuple(dim for place, dim in enumerate(shape) if place not in (a, b))
    length = minimum(shape[a], shape[b]) if offset == 0 else t.emit.fresh("diagonal")
    return t.emit.typed("Diagonal", [x], x.dtype, (*rest, length))


@TORCH.function("diag", methods=("diag",))
def diag(t: Core, input: Value, diagonal_: Value = 0) -> Tensor:
    """Return the diagonal of a matrix, or a matrix with a diagonal."""
    x = need_tensor(t, input, "input")
    shape = shape_of(t, x)
    if len(shape) == 2:
        return diagonal(t, x, diagonal_)
    return t.emit.typed("Diagonal", [x], x.dtype, (shape[0], shape[0]))


@TORCH.function("nonzero", "argwhere", methods=("nonzero", "argwhere"))
def nonzero(t: Core, input: Value, *, as_tuple: Value = False) -> Value:
    """Return where the input is not zero: (count, axes), or one index list an axis."""
    x = need_tensor(t, input, "input")
    rank = len(shape_of(t, x))
    count = t.emit.count("nonzero", x)
    if as_tuple:
        return tuple(t.emit.typed("NonZero", [x], INT64, (count,)) for _ in range(rank))
    return t.emit.typed("NonZero", [x], INT64, (count, rank))
