"""Functions of PyTorch that take elements at indices, or put them there."""

from __future__ import annotations

import onnx_ir as ir

from hagane.frontends.libraries.indexing import broadcast_shapes, set_item
from hagane.frontends.libraries.torch.operands import (
    BOOL,
    INT64,
    axis,
    elements,
    need_tensor,
    promote,
    shape_of,
)
from hagane.frontends.libraries.torch.table import TORCH
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.values.values import (
    Tensor,
    Value,
)


def _gathered(name: str) -> None:
    def function(
        t: Core, input: Value, dim: Value, index: Value, *rest: Value, **_: Value
    ) -> Tensor:
        x, places = need_tensor(t, input, "input"), need_tensor(t, index, "index")
        shape = shape_of(t, x)
        where = axis(t, dim, len(shape), x)
        _need_index(t, places)
        if len(shape_of(t, places)) != len(shape):
            t.fail(
                "rank",
                f"{name} expects an index with as many axes as the input, got {t.show(places)} "
                f"for {t.show(x)}",
                x,
                places,
            )
        for place, (count, limit) in enumerate(zip(shape_of(t, places), shape, strict=True)):
            if place != where and not t.emit.holds(
                t.knowledge.less(count, limit, strict=False), f"{count} <= {limit}"
            ):
                t.fail(
                    "shape-mismatch",
                    f"{name}: the index {t.show(places)} is larger than {t.show(x)} at "
                    f"axis {place}",
                    x,
                    places,
                )
        if name != "gather":
            if rest and isinstance(rest[0], Tensor) and rest[0].dtype != x.dtype:
                t.fail(
                    "dtype-mismatch",
                    f"{name} expects one element type, got {t.show(x)} and {t.show(rest[0])}",
                    x,
                    rest[0],
                )
            return t.emit.typed("ScatterElements", [x], x.dtype, shape)
        return t.op("GatherElements", x, places, axis=where)

    methods = (name,) if name == "gather" else (name, f"{name}_")
    TORCH.function(name, methods=methods)(function)


for _name in ("gather", "scatter", "scatter_add", "scatter_reduce"):
    _gathered(_name)


def _need_index(t: Core, index: Tensor) -> None:
    if index.dtype not in (INT64, ir.DataType.INT32):
        t.fail(
            "dtype-mismatch", f"expected int64 as index, got {t.show(index)}", index,
            remedy="convert it with .long()",
        )  # fmt: skip


@TORCH.function("index_select", methods=("index_select",))
def index_select(t: Core, input: Value, dim: Value, index: Value) -> Tensor:
    """Return the elements at one-dimensional indices along an axis."""
    x, places = need_tensor(t, input, "input"), need_tensor(t, index, "index")
    _need_index(t, places)
    where = axis(t, dim, len(shape_of(t, x)), x)
    if len(shape_of(t, places)) > 1:
        t.fail("rank", f"index_select takes one axis of indices, got {t.show(places)}", places)
    return t.op("Gather", x, places, axis=where)


def _index_put(name: str) -> None:
    def function(
        t: Core, input: Value, dim: Value, index: Value, source: Value = None, **_: Value
    ) -> Tensor:
        x, places = need_tensor(t, input, "input"), need_tensor(t, index, "index")
        _need_index(t, places)
        shape = list(shape_of(t, x))
        where = axis(t, dim, len(shape), x)
        if isinstance(source, Tensor):
            if source.dtype != x.dtype:
                t.fail(
                    "dtype-mismatch",
                    f"{name} expects one element type, got {t.show(x)} and {t.show(source)}",
                    x,
                    source,
                )
            expected = [*shape]
            expected[where] = shape_of(t, places, 1, "index")[0]
            own = shape_of(t, source)
            if len(own) != len(expected) or any(
                t.emit.differ(a, b) for a, b in zip(own, expected, strict=True)
            ):
                t.fail(
                    "shape-mismatch",
                    f"{name} expects a source of shape ({', '.join(map(str, expected))}), got "
                    f"{t.show(source)}",
                    x,
                    source,
                )
        return t.emit.typed("ScatterElements", [x, places], x.dtype, x.shape)

    TORCH.function(name, methods=(name, f"{name}_"))(function)


for _name in ("index_add", "index_copy", "index_fill"):
    _index_put(_name)


@TORCH.function("masked_select", methods=("masked_select",))
def masked_select(t: Core, input: Value, mask: Value) -> Tensor:
    """Return the elements where the mask holds, in one axis."""
    x, m = promote(t, need_tensor(t, input, "input"), need_tensor(t, mask, "mask"))[0], mask
    if m.dtype != BOOL:
        t.fail("dtype-mismatch", f"expected a bool mask, got {t.show(m)}", m)
    return t.emit.typed("Compress", [input], input.dtype, (t.emit.count("masked", m),)) if x else x


@TORCH.function("masked_scatter", methods=("masked_scatter", "masked_scatter_"))
def masked_scatter(t: Core, input: Value, mask: Value, source: Value) -> Tensor:
    """Return the input with elements of the source where the mask holds."""
    return t.emit.typed("Where", [input, mask, source], input.dtype, input.shape)


@TORCH.function("take_along_dim", methods=("take_along_dim",))
def take_along_dim(t: Core, input: Value, indices: Value, dim: Value = None) -> Tensor:
    """Return elements at indices along an axis; the others broadcast."""
    x, places = need_tensor(t, input, "input"), need_tensor(t, indices, "indices")
    _need_index(t, places)
    if dim is None:
        return t.emit.typed("GatherElements", [x, places], x.dtype, (elements(places),))
    own, other = list(shape_of(t, x)), list(shape_of(t, places))
    if len(own) != len(other):
        t.fail("rank", f"expected one rank, got {t.show(x)} and {t.show(places)}", x, places)
    where = axis(t, dim, len(own), x)
    count, own[where], other[where] = other[where], 1, 1
    shape = list(broadcast_shapes(t, [tuple(own), tuple(other)], x))
    shape[where] = count
    return t.emit.typed("GatherElements", [x, places], x.dtype, tuple(shape))


@TORCH.function("take", methods=("take",))
def take(t: Core, input: Value, index: Value) -> Tensor:
    """Return elements of the flattened input."""
    _need_index(t, need_tensor(t, index, "index"))
    return t.emit.typed("Gather", [input, index], input.dtype, shape_of(t, index))


@TORCH.function("searchsorted")
def searchsorted(
    t: Core, sorted_sequence: Value, input: Value, *, out_int32: Value = False, **_: Value
) -> Tensor:
    """Return where elements belong in sorted ones."""
    dtype = ir.DataType.INT32 if out_int32 else INT64
    row = need_tensor(t, sorted_sequence, "sorted_sequence")
    if not isinstance(input, Tensor):
        return t.emit.typed("SearchSorted", [row], dtype, ())
    front, own = shape_of(t, row)[:-1], shape_of(t, input)[:-1]
    if front and (len(front) != len(own) or any(map(t.emit.differ, front, own))):
        t.fail(
            "shape-mismatch",
            f"expected the same leading axes, got {t.show(row)} and {t.show(input)}",
            row,
            input,
        )
    return t.emit.typed("SearchSorted", [row, input], dtype, input.shape)


@TORCH.function("bucketize")
def bucketize(
    t: Core, input: Value, boundaries: Value, *, out_int32: Value = False, right: Value = False
) -> Tensor:
    """Return the numbers of the buckets that elements fall into."""
    bounds = need_tensor(t, boundaries, "boundaries")
    shape_of(t, bounds, 1, "boundaries")
    shape = input.shape if isinstance(input, Tensor) else ()
    dtype = ir.DataType.INT32 if out_int32 else INT64
    return t.emit.typed("Bucketize", [bounds], dtype, shape)


@TORCH.function("index_put", methods=("index_put", "index_put_"))
def index_put(
    t: Core, input: Value, indices: Value, values: Value, accumulate: Value = False
) -> Tensor:
    """Return the input with values at indices."""
    x = need_tensor(t, input, "input")
    made = t.emit.typed("Identity", [x], x.dtype, x.shape)
    set_item(t, made, tuple(indices), values)
    return made


@TORCH.function("put", methods=("put", "put_"))
def put(t: Core, input: Value, index: Value, source: Value, accumulate: Value = False) -> Tensor:
    """Return the input with elements of the source at flat indices."""
    x = need_tensor(t, input, "input")
    _need_index(t, need_tensor(t, index, "index"))
    return t.emit.typed("Put", [x], x.dtype, x.shape)


@TORCH.function("select_scatter", "slice_scatter", "diagonal_scatter",
                methods=("select_scatter", "slice_scatter", "diagonal_scatter"))  # fmt: skip
def select_scatter(t: Core, input: Value, src: Value, *_: Value, **__: Value) -> Tensor:
    """Return the input with a part replaced."""
    x = need_tensor(t, input, "input")
    return t.emit.typed("SelectScatter", [x, need_tensor(t, src, "src")], x.dtype, x.shape)


@TORCH.function("renorm", methods=("renorm", "renorm_"))
def renorm(t: Core, input: Value, p: Value, dim: Value, maxnorm: Value) -> Tensor:
    """Return the input with parts along an axis scaled down to a norm."""
    x = need_tensor(t, input, "input")
    axis(t, dim, len(shape_of(t, x)), x)
    return t.emit.typed("Renorm", [x], x.dtype, x.shape)


@TORCH.function("vander", "linalg.vander")
def vander(t: Core, x: Value, N: Value = None, increasing: Value = False) -> Tensor:
    """Return the Vandermonde matrix: (..., length, N)."""
    found = need_tensor(t, x, "x")
    shape = shape_of(t, found)
    return t.emit.typed("Vander", [found], found.dtype, (*shape, shape[-1] if N is None else N))
