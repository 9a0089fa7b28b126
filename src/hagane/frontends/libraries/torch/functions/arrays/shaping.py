"""Functions of PyTorch that move elements: views, joins, parts, expansions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from hagane.frontends.libraries.computing import computed
from hagane.frontends.libraries.indexing import lies_within
from hagane.frontends.libraries.torch.memory import expect_viewable, turned
from hagane.frontends.libraries.torch.operands import (
    FLOAT,
    INT64,
    axes,
    axis,
    dims_input,
    elements,
    need_tensor,
    reshape,
    shape_of,
    size,
    sizes,
)
from hagane.frontends.libraries.torch.table import TORCH
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.values.strides import lie, strides_of
from hagane.frontends.python.values.values import DType, Tensor, Value
from hagane.ops.builder import op
from hagane.ops.functions.tensors import parts as taken
from hagane.symbolic import Dim, definitely_equal, floordiv, product
from hagane.symbolic.logic import either


@TORCH.method("view")
def viewed(t: Core, self: Value, *shape: Value, **named: Value) -> Tensor:
    """Return the same memory in another shape, of which one size may be -1."""
    made = view(t, self, *shape, **named)
    if made.dtype == self.dtype:
        expect_viewable(t, self, made)
    return made


@TORCH.method("reshape")
def view(t: Core, self: Value, *shape: Value, **named: Value) -> Tensor:
    """Return the tensor with another shape, of which one size may be -1."""
    if not shape and named.keys() <= {"shape", "size", "dtype"}:
        shape = tuple(named.values())
    if len(shape) == 1 and isinstance(shape[0], DType):
        return t.emit.typed("View", [self], shape[0].dtype, self.shape)  # the same bytes
    return reshape(t, self, sizes(t, shape))


@TORCH.function("reshape")
def reshape_function(t: Core, input: Value, shape: Value) -> Tensor:
    """Return the input with another shape."""
    return reshape(t, need_tensor(t, input, "input"), sizes(t, (shape,)))


@TORCH.method("view_as")
def viewed_as(t: Core, self: Value, other: Value) -> Tensor:
    """Return the same memory in the shape of another tensor."""
    return viewed(t, self, *shape_of(t, need_tensor(t, other, "other")))


@TORCH.method("reshape_as")
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
        if t.emit.indivisible(shape[place], known, f"axis {place}"):
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


@TORCH.function("transpose", "swapaxes", "swapdims", methods=("transpose", "swapaxes", "swapdims"))
def transpose(t: Core, input: Value, dim0: Value, dim1: Value) -> Tensor:
    """Return the input with two axes swapped."""
    x = need_tensor(t, input, "input")
    rank = len(shape_of(t, x))
    order = list(range(rank))
    a, b = axis(t, dim0, rank, x, what="dim0"), axis(t, dim1, rank, x, what="dim1")
    if rank:
        order[a], order[b] = order[b], order[a]
    return turned(t, x, order)


@TORCH.function("t", methods=("t",))
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
    return turned(t, x, [1, 0]) if rank == 2 else x


@TORCH.attribute("T", "H")
def transposed(t: Core, x: Tensor) -> Tensor:
    """Return the tensor with its axes in reverse."""
    return turned(t, x, list(range(len(shape_of(t, x))))[::-1])


@TORCH.attribute("mT", "mH")
def matrices_transposed(t: Core, x: Tensor) -> Tensor:
    """Return the tensor with its last two axes swapped."""
    return transpose(t, x, -2, -1)


@TORCH.function("adjoint", methods=("adjoint",))
def adjoint(t: Core, input: Value) -> Tensor:
    """Return the input with its last two axes swapped, conjugated."""
    return transpose(t, input, -2, -1)


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
    return turned(t, self, order)


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
    return turned(t, x, order)


@TORCH.function("squeeze", methods=("squeeze",))
def squeeze(t: Core, input: Value, dim: Value = None) -> Tensor:
    """Return the input without axes of size 1; an axis of another size stays."""
    x = need_tensor(t, input, "input")
    shape = shape_of(t, x)
    wanted = axes(t, dim, len(shape), x) if shape else []
    gone = [place for place in wanted if isinstance(shape[place], int) and shape[place] == 1]
    for place in wanted:
        size_ = shape[place]
        if not isinstance(size_, int):  # that it is not 1 is assumed, and said
            t.emit.suppose_not_one(size_, f"axis {place}, which squeeze would drop")
    if not gone:
        return x
    made = t.op("Squeeze", x, np.array(gone, dtype=np.int64))
    return lie(made, [stride for place, stride in enumerate(strides_of(x)) if place not in gone])


@TORCH.function("unsqueeze", methods=("unsqueeze",))
def unsqueeze(t: Core, input: Value, dim: Value) -> Tensor:
    """Return the input with a new axis of size 1."""
    x = need_tensor(t, input, "input")
    place = axis(t, dim, len(shape_of(t, x)), x, extra=1)
    made = t.op("Unsqueeze", x, np.array([place], dtype=np.int64))
    before = strides_of(x)
    return lie(made, (*before[:place], 1, *before[place:]))


def _in_place(name: str, change: Callable[..., Tensor]) -> None:
    def method(t: Core, self: Value, *arguments: Value, **keywords: Value) -> Tensor:
        made = change(t, self, *arguments, **keywords)
        self.shape, self.value, self.known = made.shape, made.value, made.known
        self.strides = made.strides
        return self

    TORCH.method(name)(method)


for _name, _change in (("squeeze_", squeeze), ("unsqueeze_", unsqueeze), ("transpose_", transpose),
                       ("swapaxes_", transpose), ("t_", t_)):  # fmt: skip
    _in_place(_name, _change)


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
        elif not t.emit.holds(
            either(t.knowledge.equal(dim, wanted), t.knowledge.equal(dim, 1)), f"{dim} == {wanted}"
        ):
            t.fail(
                "shape-mismatch",
                f"cannot expand axis {place - new} of {t.show(self)} from {dim} to {wanted}: "
                "only axes of size 1 can be expanded",
                self,
            )
        else:
            result.append(wanted)
    made: Tensor = t.op("Expand", self, dims_input(result))
    kept = zip(own, result[new:], strides_of(self), strict=True)
    return lie(made, [0] * new + [s if definitely_equal(a, b) else 0 for a, b, s in kept])


@TORCH.method("expand_as")
def expand_as(t: Core, self: Value, other: Value) -> Tensor:
    """Return the tensor expanded to the shape of another."""
    return expand(t, self, shape_of(t, need_tensor(t, other, "other")))


@TORCH.function("broadcast_to", methods=("broadcast_to",))
def broadcast_to(t: Core, input: Value, *size: Value) -> Tensor:
    """Return the input expanded to a shape."""
    return expand(t, need_tensor(t, input, "input"), *size)


@TORCH.function("broadcast_tensors")
def broadcast_tensors(t: Core, *tensors: Value) -> list[Tensor]:
    """Return all tensors expanded to their common shape."""
    from hagane.frontends.libraries.torch.functions.numbers.elementwise import broadcast_shape

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
    t: Core, input: Value, repeats: Value = None, dim: Value = None, *, output_size: Value = None
) -> Tensor:
    """Return the input with each element repeated; one argument is the numbers of repeats."""
    x = need_tensor(t, input, "input")
    shape = list(shape_of(t, x))
    if repeats is None:
        length = t.emit.fresh("repeated") if output_size is None else output_size
        return computed(t, (INT64, (length,)), lambda: taken.places_repeated(x))
    place = 0 if dim is None else axis(t, dim, len(shape), x)
    if dim is None:
        shape = [elements(x)]
    own = shape[place]

    def compute() -> Value:
        row = x if dim is not None else taken.flat(x)
        if not isinstance(repeats, Tensor):
            return taken.repeat_each(row, place, size(t, repeats))
        places = taken.places_repeated(op("Expand", repeats, [own]))
        return op("Gather", row, places, axis=place)

    if isinstance(repeats, Tensor):
        shape[place] = t.emit.fresh("repeated") if output_size is None else output_size
    else:
        shape[place] = own * size(t, repeats)
    return computed(t, (x.dtype, tuple(shape)), compute)


@TORCH.function("flip", methods=("flip",))
def flip(t: Core, input: Value, *places: Value, dims: Value = None) -> Tensor:
    """Return the input with axes reversed."""
    x = need_tensor(t, input, "input")
    given = places if dims is None else (dims,)
    shape = shape_of(t, x)
    turned = axes(t, given[0] if len(given) == 1 else given, len(shape), x)
    return computed(t, (x.dtype, shape), lambda: taken.flip(x, turned))


@TORCH.function("roll", methods=("roll",))
def roll(t: Core, input: Value, shifts: Value, dims: Value = None) -> Tensor:
    """Return the input rolled along axes."""
    x = need_tensor(t, input, "input")
    shape = shape_of(t, x)
    places = axes(t, dims, len(shape), x)

    def compute() -> Value:
        if dims is None:
            return taken.resized(taken.roll(taken.flat(x), size(t, shifts), 0), shape)
        made = x
        steps = shifts if isinstance(shifts, tuple | list) else [shifts]
        for place, shift in zip(places, steps, strict=True):
            made = taken.roll(made, size(t, shift), place)
        return made

    return computed(t, (x.dtype, shape), compute)


@TORCH.function("rot90", methods=("rot90",))
def rot90(t: Core, input: Value, k: Value = 1, dims: Value = (0, 1)) -> Value:
    """Return the input turned by quarters in the plane of two axes."""
    x = need_tensor(t, input, "input")
    shape = list(shape_of(t, x))
    places = axes(t, dims, len(shape), x)
    if len(places) != 2 or len(shape) < 2:
        t.fail("axis", f"rot90 turns in a plane of two axes, got dims={dims} for {t.show(x)}", x)
    a, b = places
    if not isinstance(k, int):  # drawn, as augmentations do
        if not definitely_equal(shape[a], shape[b]):
            return t.lost(f"rot90 of {t.show(x)} by quarters that are not known")
        return t.emit.typed("Rot90", [x], x.dtype, tuple(shape))
    if k % 2:
        shape[a], shape[b] = shape[b], shape[a]

    def compute() -> Value:
        made = taken.flip(x, [[], [b], [a, b], [a]][k % 4])
        if k % 2:
            order = list(range(len(shape)))
            order[a], order[b] = b, a
            made = op("Transpose", made, perm=order)
        return made

    return computed(t, (x.dtype, tuple(shape)), compute)


def _kept(name: str, least: int, compute: Callable[[Tensor, Value], Value]) -> None:
    def function(
        t: Core, input: Value, diagonal: Value = 0, *, out: Value = None, **_: Value
    ) -> Tensor:
        x = need_tensor(t, input, "input")
        if len(shape_of(t, x)) < least:
            t.fail("rank", f"{name} needs at least {least} axes, got {t.show(x)}", x)
        return computed(t, (x.dtype, shape_of(t, x)), lambda: compute(x, diagonal))

    TORCH.function(name)(function)
    in_place = (f"{name}_",) if name in ("tril", "triu") else ()
    TORCH.method(name, *in_place)(function)


def _itself(x: Tensor, _: Value) -> Tensor:
    return x


for _name, _least, _compute in (
    ("fliplr", 2, lambda x, _: taken.flip(x, [1])),
    ("flipud", 1, lambda x, _: taken.flip(x, [0])),
    ("tril", 2, lambda x, diagonal: op("Trilu", x, np.array(diagonal), upper=0)),
    ("triu", 2, lambda x, diagonal: op("Trilu", x, np.array(diagonal), upper=1)),
    ("clone", 0, _itself),
):
    _kept(_name, _least, _compute)


@TORCH.function("detach")
@TORCH.method("detach", "detach_")
def detach(t: Core, input: Value) -> Tensor:
    """Return the tensor apart from gradients."""
    x = need_tensor(t, input, "input")
    return t.emit.stopped(computed(t, (x.dtype, shape_of(t, x)), lambda: x))


@TORCH.method("contiguous")
def contiguous(t: Core, self: Value, *_: Value, **__: Value) -> Tensor:
    """Return the tensor with its axes in memory as they are named."""
    return self if self.strides is None else replace(self, strides=None)


@TORCH.function("broadcast_shapes")
def broadcast_shapes(t: Core, *shapes: Value) -> Value:
    """Return the shape that shapes broadcast to."""
    from hagane.frontends.libraries.torch.functions.numbers.elementwise import broadcast_shape

    tensors = [t.emit.new(FLOAT, tuple(sizes(t, (shape,)))) for shape in shapes]
    return broadcast_shape(t, *tensors)


def _at_least(name: str, least: int) -> None:
    def one(t: Core, value: Value) -> Tensor:
        x = need_tensor(t, value, "input")
        shape = list(shape_of(t, x))
        if len(shape) >= least:
            return x
        if least == 3 and len(shape) == 1:
            shape = [1, *shape, 1]
        elif least == 3 and len(shape) == 2:
            shape = [*shape, 1]
        else:
            shape = [*[1] * (least - len(shape)), *shape]
        return reshape(t, x, shape)

    def function(t: Core, *tensors: Value) -> Value:
        if len(tensors) == 1 and isinstance(tensors[0], Tensor):
            return one(t, tensors[0])
        given = tensors[0] if len(tensors) == 1 else tensors
        return tuple(one(t, x) for x in given)

    TORCH.function(name)(function)


for _least in (1, 2, 3):
    _at_least(f"atleast_{_least}d", _least)


@TORCH.function("as_strided", methods=("as_strided",))
def as_strided(
    t: Core, input: Value, size_: Value, stride: Value, storage_offset: Value = None
) -> Tensor:
    """Return a view with any sizes and strides."""
    x = need_tensor(t, input, "input")
    made = tuple(sizes(t, (size_,)))
    lies_within(t, x, made, tuple(sizes(t, (stride,))), storage_offset or 0)
    return t.emit.typed("AsStrided", [x], x.dtype, made)


@TORCH.method("resize_", "resize")
def resize_(t: Core, self: Value, *shape: Value) -> Tensor:
    """Give the tensor another shape, its content aside."""
    self.shape = tuple(sizes(t, shape))
    self.known = None
    return self


@TORCH.method("sum_to_size")
def sum_to_size(t: Core, self: Value, *shape: Value) -> Tensor:
    """Return the tensor summed to a shape that it broadcasts from."""
    wanted = tuple(sizes(t, shape))
    own = shape_of(t, self)
    with t.emit.types_only():
        expand(t, t.emit.new(self.dtype, wanted), own)
    extra = len(own) - len(wanted)
    summed = [*range(extra), *(extra + k for k, dim in enumerate(wanted) if dim == 1)]

    def compute() -> Value:
        made = op("ReduceSum", self, summed, keepdims=1) if summed else self
        return taken.resized(made, wanted) if extra else made

    return computed(t, (self.dtype, wanted), compute)
