"""Functions of PyTorch that move elements: views, joins, parts, expansions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
import onnx_ir as ir

from hagane.frontends.libraries.computing import built, computed
from hagane.frontends.libraries.indexing import lies_within
from hagane.frontends.libraries.torch.functions.arrays.repeating import expand
from hagane.frontends.libraries.torch.memory import expect_viewable, strides_in, turned
from hagane.frontends.libraries.torch.operands import (
    FLOAT,
    INT64,
    axes,
    axis,
    cast,
    category,
    element_type,
    expect_axes,
    need_tensor,
    own_axis,
    reshape,
    shape_of,
    sizes,
)
from hagane.frontends.libraries.torch.recording import apart
from hagane.frontends.libraries.torch.table import TORCH
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.values.memory import (
    COMPLEX,
    base_of,
    is_whole,
    may_be_turned,
    own,
    share,
)
from hagane.frontends.python.values.strides import (
    in_order,
    is_one,
    lie,
    order_of,
    strides_of,
)
from hagane.frontends.python.values.values import (
    Tensor,
    Value,
    is_size,
)
from hagane.graph.types import Shape, dtype_name
from hagane.ops.builder import op
from hagane.ops.functions.tensors import bits
from hagane.ops.functions.tensors import parts as taken
from hagane.symbolic import definitely_equal, floordiv, product


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
    wanted = element_type(shape[0]) if len(shape) == 1 else None
    if wanted is not None:
        return _same_bytes(t, self, wanted)
    return reshape(t, self, sizes(t, shape))


def _same_bytes(t: Core, x: Tensor, dtype: ir.DataType) -> Tensor:
    """Return the memory of a tensor as elements of another type.

    Elements of another width change the last axis, which has to lie without gaps.
    """
    old, new = (max(int(each.bitwidth), 8) for each in (x.dtype, dtype))
    read = partial(_read, t, x, dtype)
    if old == new:
        return lie(read(x.shape), strides_of(x))
    expect_axes(t, x)
    *front, last = shape_of(t, x)
    stride = strides_of(x)[-1]
    if isinstance(stride, int) and stride != 1 and not is_one(last):
        t.fail(
            "view",
            f"{t.show(x)} cannot be viewed as {dtype_name(dtype)}: elements of the last axis lie "
            f"{stride} apart in memory",
            x,
            remedy="call .contiguous() before .view(...)",
        )
    if new <= old:
        return read((*front, last * (old // new)))
    if t.emit.indivisible(last, new // old, f"elements of which {dtype_name(dtype)} takes several"):
        t.fail(
            "view",
            f"{t.show(x)} cannot be viewed as {dtype_name(dtype)}: its last axis is not a multiple "
            f"of {new // old}",
            x,
        )
    return read((*front, floordiv(last, new // old)))


def _read(t: Core, x: Tensor, dtype: ir.DataType, shape: Shape | None) -> Tensor:
    """Return the bytes of a tensor, whose elements are numbers, as elements of another type."""
    if x.dtype == dtype:
        return built(t, (dtype, shape), partial(op, "Identity"), x)
    if x.dtype in COMPLEX or dtype in COMPLEX or shape is None:
        return t.emit.typed("View", [x], dtype, shape)
    made = built(t, (dtype, shape), lambda x: bits.same_bytes(x, dtype), x)
    if base_of(made.value) is not base_of(x.value):  # by several operators: reads alone
        own(made.value)
        share(made.value, (x.value,))
    return made


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


@TORCH.function("ravel", methods=("ravel",))
def ravel(t: Core, input: Value) -> Tensor:
    """Return the input with its axes joined."""
    return reshape(t, need_tensor(t, input, "input"), [-1])


@TORCH.function("flatten", methods=("flatten",))
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
    if first == last:
        return x
    joined = product(shape[first : last + 1])
    return reshape(t, x, [*shape[:first], joined, *shape[last + 1 :]])


@TORCH.function("unflatten", methods=("unflatten",))
def unflatten(t: Core, input: Value, dim: Value, sizes_: Value) -> Tensor:
    """Return the input with one axis split into several."""
    x = need_tensor(t, input, "input")
    shape = shape_of(t, x)
    place = own_axis(t, dim, x)
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
    if len(old) != len(new):
        told = f"got {len(old)} and {len(new)}"
        t.fail("axis", f"expected as many axes in source as in destination, {told}", x)
    if not rank:
        return x
    rest = [place for place in range(rank) if place not in old]
    order = [-1] * rank
    for a, b in zip(old, new, strict=True):
        order[b] = a
    order = [rest.pop(0) if place < 0 else place for place in order]
    return turned(t, x, order)


@TORCH.method("squeeze")
def squeeze_method(t: Core, self: Value, *dim: Value) -> Tensor:
    """Return the tensor without axes of size 1: all of them, or those that are given."""
    return squeeze(t, self, dim[0] if len(dim) == 1 else dim or None)


@TORCH.function("squeeze")
def squeeze(t: Core, input: Value, dim: Value = None) -> Tensor:
    """Return the input without axes of size 1; an axis of another size stays."""
    x = need_tensor(t, input, "input")
    made = _squeezed(t, x, dim)
    return made if made is not x else lie(t.op("Identity", x), strides_of(x))


def _squeezed(t: Core, x: Tensor, dim: Value = None) -> Tensor:
    shape = shape_of(t, x)
    none = isinstance(dim, tuple | list) and not dim
    wanted = axes(t, dim, len(shape), x) if shape and not none else []
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


for _name, _change in (
    ("squeeze_", _squeezed), ("unsqueeze_", unsqueeze), ("transpose_", transpose),
    ("swapaxes_", transpose), ("t_", t_),
):  # fmt: skip
    _in_place(_name, _change)


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


for _name, _least, _compute in (
    ("fliplr", 2, lambda x, _: taken.flip(x, [1])),
    ("flipud", 1, lambda x, _: taken.flip(x, [0])),
    ("tril", 2, lambda x, diagonal: op("Trilu", x, np.array(diagonal), upper=0)),
    ("triu", 2, lambda x, diagonal: op("Trilu", x, np.array(diagonal), upper=1)),
):
    _kept(_name, _least, _compute)


@TORCH.function("clone", methods=("clone",))
def clone(t: Core, input: Value, *, memory_format: Value = None) -> Tensor:
    """Return a copy, whose elements lie without gaps, its axes in their order in memory."""
    x = need_tensor(t, input, "input")
    made = computed(t, (x.dtype, shape_of(t, x)), lambda x: x, x)
    if memory_format not in (None, "preserve_format"):
        made.strides = strides_in(t, x, memory_format)
        return made
    order = order_of(x, t.knowledge.is_nonnegative)
    made.strides = None if order is None else in_order(shape_of(t, x), order)
    return made


@TORCH.function("detach")
@TORCH.method("detach")
def detach(t: Core, input: Value) -> Tensor:
    """Return the tensor apart from gradients."""
    x = need_tensor(t, input, "input")
    return apart(t, computed(t, (x.dtype, shape_of(t, x)), lambda: x))


@TORCH.method("detach_")
def detach_(t: Core, self: Value) -> Tensor:
    """Let no gradient go through the tensor from here on."""
    detached = detach(t, self)
    if t.emit.recorded is None:
        return detached
    t.emit.recorded.open.add(self.value)
    return self


@TORCH.method("contiguous")
def contiguous(t: Core, self: Value, memory_format: Value = None) -> Tensor:
    """Return the tensor with its axes in memory as they are named, or as the format has them."""
    if memory_format in (None, "contiguous_format"):
        return self if self.strides is None else replace(self, strides=None)
    strides = strides_in(t, self, memory_format)
    if strides == self.strides:
        return self
    made = clone(t, self)
    made.strides = strides
    own(made.value)
    return made


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
    t: Core, input: Value, size: Value, stride: Value, storage_offset: Value = None
) -> Tensor:
    """Return a view with any sizes and strides."""
    x = need_tensor(t, input, "input")
    made, steps = tuple(sizes(t, (size,))), tuple(sizes(t, (stride,)))
    if len(made) != len(steps):
        t.fail("rank", f"expected as many strides as sizes, got {len(steps)} and {len(made)}", x)
    offset = 0 if storage_offset is None else storage_offset
    lies_within(t, x, made, steps, offset)
    memory = _in_memory(t, x) if storage_offset is None or is_whole(x.value) else None
    if memory is None or not is_size(offset):
        return lie(t.emit.typed("AsStrided", [x], x.dtype, made), steps)
    found = computed(t, (x.dtype, made), taken.strided, memory, made, steps, offset)
    return lie(found, steps)


def _in_memory(t: Core, x: Tensor) -> Tensor | None:
    """Return a tensor with its axes as they lie in memory; None if its elements have gaps."""
    if x.shape is None or (x.strides is None and may_be_turned(x.value)):
        return None
    order = order_of(x, t.knowledge.is_nonnegative) or tuple(range(len(x.shape)))
    pairs = zip(x.shape, strides_of(x), in_order(x.shape, order), strict=True)
    if not all(is_one(size) or definitely_equal(a, b) for size, a, b in pairs):
        return None
    return x if order == tuple(range(len(order))) else turned(t, x, order)


@TORCH.method("resize_", "resize")
def resize_(t: Core, self: Value, *shape: Value) -> Tensor:
    """Give the tensor another shape, its content aside."""
    self.shape = tuple(sizes(t, shape))
    self.known = None
    return self


@TORCH.method("resize_as_")
def resize_as_(t: Core, self: Value, the_template: Value, *_: Value, **__: Value) -> Tensor:
    """Give the tensor the shape of another one, in place."""
    return resize_(t, self, *shape_of(t, need_tensor(t, the_template, "the_template")))


@TORCH.method("sum_to_size")
def sum_to_size(t: Core, self: Value, *shape: Value) -> Tensor:
    """Return the tensor summed to a shape that it broadcasts from."""
    wanted = tuple(sizes(t, shape))
    own = shape_of(t, self)
    with t.emit.types_only():
        expand(t, t.emit.new(self.dtype, wanted), own)
    extra = len(own) - len(wanted)
    summed = [*range(extra), *(extra + k for k, dim in enumerate(wanted) if dim == 1)]

    total = bool(summed) or not wanted  # (all elements are summed even where there is one)
    x = cast(t, self, INT64) if total and category(self.dtype) < 2 else self

    def compute() -> Value:
        made = op("ReduceSum", x, summed, keepdims=1) if summed else x
        return taken.resized(made, wanted) if extra else made

    return computed(t, (x.dtype, wanted), compute)
