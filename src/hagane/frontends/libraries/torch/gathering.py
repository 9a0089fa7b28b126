"""Functions of PyTorch that take elements at indices, or put them there."""

from __future__ import annotations

import onnx_ir as ir

from hagane.frontends.libraries.torch.operands import (
    BOOL,
    INT64,
    axis,
    need_tensor,
    promote,
    shape_of,
)
from hagane.frontends.libraries.torch.table import TORCH
from hagane.frontends.python.core import Core
from hagane.frontends.python.values import (
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
                    f"{name}: the index {t.show(places)} is larger than {t.show(x)} at axis {place}",
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
        return t.emit.typed("GatherElements", [x, places], x.dtype, shape_of(t, places))

    TORCH.function(name, methods=(name, f"{name}_"))(function)


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
                    f"{name} expects a source of shape {tuple(map(str, expected))}, got {t.show(source)}",
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
    """Return elements at indices along an axis."""
    return t.emit.typed("GatherElements", [input, indices], input.dtype, indices.shape)


@TORCH.function("take", methods=("take",))
def take(t: Core, input: Value, index: Value) -> Tensor:
    """Return elements of the flattened input."""
    return t.emit.typed("Gather", [input, index], input.dtype, shape_of(t, index))


@TORCH.function("searchsorted", "bucketize")
def searchsorted(t: Core, sorted_sequence: Value, input: Value, **_: Value) -> Tensor:
    """Return where elements belong in sorted ones."""
    shape = input.shape if isinstance(input, Tensor) else ()
    return t.emit.typed("SearchSorted", [sorted_sequence], INT64, shape)
