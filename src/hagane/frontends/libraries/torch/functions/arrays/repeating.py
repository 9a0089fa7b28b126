"""Tensors stretched, repeated, flipped and rolled along axes."""

from __future__ import annotations

from hagane.frontends.libraries.computing import computed
from hagane.frontends.libraries.torch.operands import (
    INT64,
    axes,
    dims_input,
    elements,
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
from hagane.frontends.python.values.strides import lie, strides_of
from hagane.frontends.python.values.values import Tensor, Value
from hagane.ops.builder import op
from hagane.ops.functions.tensors import parts as taken
from hagane.symbolic import Dim, definitely_equal
from hagane.symbolic.logic import either


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

    if len(tensors) == 1 and isinstance(tensors[0], list | tuple):
        tensors = tuple(tensors[0])
    shape = broadcast_shape(t, *(need_tensor(t, x, "tensors") for x in tensors))
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
    place = 0 if dim is None else own_axis(t, dim, x)
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
    named = given[0] if len(given) == 1 else given
    turned = [] if named in ((), []) else axes(t, named, len(shape), x)
    return computed(t, (x.dtype, shape), lambda: taken.flip(x, turned))


@TORCH.method("__reversed__")
def turned(t: Core, self: Value) -> Value:
    """Return the rows in reverse order, a tensor: what ``reversed`` gives."""
    return flip(t, self, 0) if shape_of(t, self) else self


@TORCH.function("roll", methods=("roll",))
def roll(t: Core, input: Value, shifts: Value, dims: Value = None) -> Tensor:
    """Return the input rolled along axes."""
    x = need_tensor(t, input, "input")
    shape = shape_of(t, x)
    if dims is not None:
        expect_axes(t, x)
    places = axes(t, dims, len(shape), x)
    count = len(shifts) if isinstance(shifts, list | tuple) else 1
    if dims is not None and count != len(places):
        t.fail("value", f"expected as many shifts as dims, got {count} and {len(places)}", x)

    def compute() -> Value:
        if dims is None:
            step = shifts[0] if isinstance(shifts, tuple | list) and len(shifts) == 1 else shifts
            return taken.resized(taken.roll(taken.flat(x), size(t, step), 0), shape)
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
