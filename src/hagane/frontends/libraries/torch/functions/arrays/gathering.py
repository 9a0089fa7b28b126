"""Functions of PyTorch that take elements at indices, or put them there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.frontends.libraries.computing import built
from hagane.frontends.libraries.indexing import (
    broadcast_shapes,
    check_dtype_stored,
    check_places,
    set_item,
)
from hagane.frontends.libraries.torch.indices import from_front
from hagane.frontends.libraries.torch.operands import (
    BOOL,
    INT64,
    axis,
    cast,
    category,
    elements,
    expect_axes,
    is_scalar,
    need_tensor,
    of_numpy,
    promote,
    reshape,
    same_dtype,
    same_shape,
    shape_of,
    size,
    to_tensor,
)
from hagane.frontends.libraries.torch.table import TORCH
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.values.values import Tensor, Value
from hagane.ops.builder import op
from hagane.ops.functions.numbers.elementary import cast as to_dtype
from hagane.ops.functions.sums import products, statistics
from hagane.ops.functions.tensors import filling, ordering, placing
from hagane.ops.functions.tensors import parts as taken
from hagane.ops.functions.tensors.items import put_items
from hagane.symbolic import Dim, definitely_equal, product


def _gathered(name: str) -> None:
    def function(
        t: Core, input: Value, dim: Value, index: Value, *rest: Value, **others: Value
    ) -> Tensor:
        x, places = need_tensor(t, input, "input"), need_tensor(t, index, "index")
        shape = shape_of(t, x)
        where = axis(t, dim, len(shape), x)
        places = _index(t, places)
        if 0 in shape_of(t, places):  # no index at all, which fits any input
            made = places.shape if name == "gather" else x.shape
            return t.emit.typed("GatherElements", [x, places], x.dtype, made)
        own = shape_of(t, places)
        if {len(shape), len(own)} in ({0}, {0, 1}):  # a scalar counts as a vector of one element
            vector = function(
                t, _vector(t, x), 0, _vector(t, places), *(_vector(t, one) for one in rest),
                **{key: _vector(t, one) for key, one in others.items()},
            )  # fmt: skip
            return reshape(t, vector, list(own if name == "gather" else shape))
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
            rest = tuple(map(of_numpy, rest))
            source = rest[0] if rest else others.get("src")
            if isinstance(source, Tensor):
                _need_source(t, name, x, places, source)
            return _scattered(t, name, x, where, places, rest, others)
        return built(t, (x.dtype, shape_of(t, places)), lambda x, places: op(
            "GatherElements", x, places, axis=where), x, places)  # fmt: skip

    methods = (name,) if name == "gather" else (name, f"{name}_")
    TORCH.function(name, methods=methods)(function)


def _vector(t: Core, value: Value) -> Any:
    """Return a tensor without axes as one of an axis; other values as they are."""
    if isinstance(value, Tensor) and not shape_of(t, value):
        return reshape(t, value, [1])
    return value


def _need_source(t: Core, name: str, x: Tensor, places: Tensor, source: Tensor) -> None:
    """Fail unless a source has the input's element type, and an element for each index."""
    if source.dtype != x.dtype:
        t.fail(
            "dtype-mismatch",
            f"{name} expects one element type, got {t.show(x)} and {t.show(source)}",
            x,
            source,
        )
    counts, limits = shape_of(t, places), shape_of(t, source)
    if not shape_of(t, x):
        return
    if len(counts) != len(limits):
        t.fail(
            "rank",
            f"{name} expects a source with as many axes as the index, got {t.show(source)} for "
            f"{t.show(places)}",
            source,
            places,
        )
    for place, (count, limit) in enumerate(zip(counts, limits, strict=True)):
        if definitely_equal(count, limit):
            continue
        alone = isinstance(count, int) or isinstance(limit, int)  # a need of one size
        judge = t.emit.restrict if alone else t.emit.holds
        if not judge(t.knowledge.less(count, limit, strict=False), f"{count} <= {limit}"):
            t.fail(
                "shape-mismatch",
                f"{name}: the index {t.show(places)} is larger than the source {t.show(source)} "
                f"at axis {place}",
                source,
                places,
            )


def _scattered(
    t: Core, name: str, x: Tensor, axis: int, places: Tensor, rest: Sequence[Value],
    keywords: Mapping[str, Value],
) -> Tensor:  # fmt: skip
    source = rest[0] if rest else keywords.get("src", keywords.get("value"))
    reduce = keywords.get("reduce", rest[1] if len(rest) > 1 else None)
    if name == "scatter_add":
        reduce = "add"
    own = keywords.get("include_self", True)
    known = reduce in (None, "add", "multiply", "sum", "prod", "mean", "amax", "amin")
    if not (isinstance(source, Tensor) or is_scalar(source)) or category(x.dtype) == 3 or not known:
        return t.emit.typed("ScatterElements", [x], x.dtype, x.shape)
    source = cast(t, to_tensor(t, source, x.dtype), x.dtype)
    return built(
        t, x, lambda x, places, source: placing.scattered(
            x, axis, places, source, reduce, own=bool(own)), x, places, source,
    )  # fmt: skip


for _name in ("gather", "scatter", "scatter_add", "scatter_reduce"):
    _gathered(_name)


def _index(t: Core, index: Value) -> Tensor:
    """Return indices that count from the front."""
    found = need_tensor(t, index, "index")
    _need_index(t, found)
    return from_front(t, found)


def _need_index(t: Core, index: Tensor) -> None:
    if index.dtype not in (INT64, ir.DataType.INT32):
        t.fail(
            "dtype-mismatch", f"expected int64 as index, got {t.show(index)}", index,
            remedy="convert it with .long()",
        )  # fmt: skip


@TORCH.function("index_select", methods=("index_select",))
def index_select(t: Core, input: Value, dim: Value, index: Value) -> Tensor:
    """Return the elements at one-dimensional indices along an axis."""
    x, places = need_tensor(t, input, "input"), _index(t, index)
    where = axis(t, dim, len(shape_of(t, x)), x)
    if len(shape_of(t, places)) > 1:
        t.fail("rank", f"index_select takes one axis of indices, got {t.show(places)}", places)
    if not shape_of(t, x):  # its only place is 0
        return t.op("Identity", x)
    check_places(t, x, places, where)
    if not shape_of(t, places):  # one place is a vector of one
        places = t.op("Unsqueeze", places, np.array([0]))
    return t.op("Gather", x, places, axis=where)


def _index_put(name: str) -> None:
    def function(
        t: Core, input: Value, dim: Value, index: Value, source: Value = None, *,
        alpha: Value = 1, value: Value = None,
    ) -> Tensor:  # fmt: skip
        x, places = need_tensor(t, input, "input"), need_tensor(t, index, "index")
        _need_index(t, places)
        if name != "index_fill":
            places = from_front(t, places)
        shape = list(shape_of(t, x))
        where = axis(t, dim, len(shape), x)
        if name == "index_fill" and not shape_of(t, places):  # one place is a vector of one
            places = t.op("Unsqueeze", places, np.array([0]))
        if name == "index_fill" and isinstance(source, Tensor):
            if shape_of(t, source):
                t.fail("rank", f"expected a value without axes, got {t.show(source)}", x, source)
            value, source = source, None
        if not shape:  # a scalar is a vector of one
            first = np.array([0])
            if name == "index_add" and isinstance(source, Tensor) and shape_of(t, source):
                t.fail("shape-mismatch", "index_add expects a source without axes for a tensor "
                       f"without axes, got {t.show(source)}", x, source)  # fmt: skip
            if isinstance(source, Tensor) and not shape_of(t, source):
                source = t.op("Unsqueeze", source, first)
            whole = t.op("Unsqueeze", x, first)
            made = function(t, whole, 0, places, source, alpha=alpha, value=value)
            return t.op("Squeeze", made, first)
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
        given = source if source is not None else value
        if not (isinstance(given, Tensor) or is_scalar(given)) or category(x.dtype) == 3:
            return t.emit.typed("ScatterElements", [x, places], x.dtype, x.shape)
        given = cast(t, to_tensor(t, given, x.dtype), x.dtype)
        if alpha != 1:
            given = t.call_library("torch.mul", [given, alpha])
        reduce = "add" if name == "index_add" else None
        return built(
            t, x, lambda x, places, given: placing.slices_put(x, where, places, given, reduce),
            x, places, given,
        )  # fmt: skip

    TORCH.function(name, methods=(name, f"{name}_"))(function)


for _name in ("index_add", "index_copy", "index_fill"):
    _index_put(_name)


@TORCH.function("masked_select", methods=("masked_select",))
def masked_select(t: Core, input: Value, mask: Value) -> Tensor:
    """Return the elements where the mask holds, in one axis."""
    x, m = promote(t, need_tensor(t, input, "input"), need_tensor(t, mask, "mask"))[0], mask
    if m.dtype != BOOL:
        t.fail("dtype-mismatch", f"expected a bool mask, got {t.show(m)}", m)
    broadcast_shapes(t, [shape_of(t, input), shape_of(t, m)], input)
    label = "nonzero" if m.shape == input.shape else "masked"  # a smaller mask is repeated
    shape = (t.emit.count(label, m),)
    return built(t, (input.dtype, shape), placing.selected, input, m) if x else x


@TORCH.function("masked_scatter", methods=("masked_scatter", "masked_scatter_"))
def masked_scatter(t: Core, input: Value, mask: Value, source: Value) -> Tensor:
    """Return the input with elements of the source where the mask holds."""
    x, where = need_tensor(t, input, "input"), need_tensor(t, mask, "mask")
    if where.dtype != BOOL:
        t.fail("dtype-mismatch", f"expected a bool mask, got {t.show(where)}", where,
               remedy="compare it first, as in mask == 1, or convert it with .bool()")  # fmt: skip
    same_dtype(t, x, need_tensor(t, source, "source"), "input and source")
    shape = broadcast_shapes(t, [shape_of(t, x), shape_of(t, where)], x)
    if shape != x.shape:  # a mask of more axes than the input's
        x = t.call_library("torch.broadcast_to", [x, shape])
    return built(t, x, placing.filled_where, x, mask, source)


@TORCH.function("take_along_dim", methods=("take_along_dim",))
def take_along_dim(t: Core, input: Value, indices: Value, dim: Value = None) -> Tensor:
    """Return elements at indices along an axis; the others broadcast."""
    x, places = need_tensor(t, input, "input"), need_tensor(t, indices, "indices")
    _need_index(t, places)
    if dim is None:
        flat = reshape(t, places, [-1])
        return built(t, (x.dtype, (elements(places),)), placing.taken_flat, x, flat)
    own, other = list(shape_of(t, x)), list(shape_of(t, places))
    if len(own) != len(other):
        t.fail("rank", f"expected one rank, got {t.show(x)} and {t.show(places)}", x, places)
    where = axis(t, dim, len(own), x)
    count, own[where], other[where] = other[where], 1, 1
    shape = list(broadcast_shapes(t, [tuple(own), tuple(other)], x))
    shape[where] = count
    return built(t, (x.dtype, tuple(shape)), placing.taken_along, x, places, where)


@TORCH.function("take", methods=("take",))
def take(t: Core, input: Value, index: Value) -> Tensor:
    """Return elements of the flattened input."""
    _need_index(t, need_tensor(t, index, "index"))
    shape = shape_of(t, index)
    return built(t, (input.dtype, shape), placing.taken_flat, input, index)


@TORCH.function("searchsorted")
def searchsorted(
    t: Core, sorted_sequence: Value, input: Value, *, out_int32: Value = False,
    right: Value = False, side: Value = None, sorter: Value = None, **_: Value,
) -> Tensor:  # fmt: skip
    """Return where elements belong in sorted ones."""
    dtype = ir.DataType.INT32 if out_int32 else INT64
    row = need_tensor(t, sorted_sequence, "sorted_sequence")
    if isinstance(sorter, Tensor):
        row = take_along_dim(t, row, sorter, -1)
    after = side == "right" or right is True
    if not isinstance(input, Tensor):
        if not is_scalar(input) or len(shape_of(t, row)) != 1:
            return t.emit.typed("SearchSorted", [row], dtype, ())
        input = to_tensor(t, input, row.dtype)
    front, own = shape_of(t, row)[:-1], shape_of(t, input)[:-1]
    if front and (len(front) != len(own) or any(map(t.emit.differ, front, own))):
        t.fail(
            "shape-mismatch",
            f"expected the same leading axes, got {t.show(row)} and {t.show(input)}",
            row,
            input,
        )
    return _placed(t, row, input, dtype, after=after)


def _placed(t: Core, row: Tensor, values: Tensor, dtype: ir.DataType, *, after: bool) -> Tensor:
    """Return where values belong in sorted rows."""
    made = (dtype, shape_of(t, values))
    if category(row.dtype) not in (1, 2):
        return t.emit.typed("SearchSorted", [row, values], *made)
    row, values = promote(t, row, values)
    return built(
        t, made, lambda row, values: to_dtype(
            ordering.sorted_places(row, values, right=after), dtype), row, values,
    )  # fmt: skip


@TORCH.function("bucketize")
def bucketize(
    t: Core, input: Value, boundaries: Value, *, out_int32: Value = False, right: Value = False
) -> Tensor:
    """Return the numbers of the buckets that elements fall into."""
    bounds = need_tensor(t, boundaries, "boundaries")
    shape_of(t, bounds, 1, "boundaries")
    dtype = ir.DataType.INT32 if out_int32 else INT64
    if not isinstance(input, Tensor) and not is_scalar(input):
        return t.emit.typed("Bucketize", [bounds], dtype, ())
    return _placed(t, bounds, to_tensor(t, input, bounds.dtype), dtype, after=bool(right))


@TORCH.function("index_put", methods=("index_put", "index_put_"))
def index_put(
    t: Core, input: Value, indices: Value, values: Value, accumulate: Value = False
) -> Tensor:
    """Return the input with values at indices."""
    x = need_tensor(t, input, "input")
    if accumulate:
        check_dtype_stored(t, x, tuple(indices), values)
        return _put_sums(t, x, indices, values)
    made: Tensor = t.op("Identity", x)
    set_item(t, made, tuple(indices), values)
    return made


def _put_sums(t: Core, x: Tensor, indices: Value, values: Value) -> Tensor:
    """Return the input with values added at indices, as often as each place comes up."""
    places = [place for place in indices if isinstance(place, Tensor) and place.dtype != BOOL]
    if len(places) < len(indices) or category(x.dtype) == 3:
        return t.emit.typed("PutItems", [x], x.dtype, x.shape)
    shape = broadcast_shapes(t, [shape_of(t, place) for place in places], x)
    spread = [t.call_library("torch.broadcast_to", [place, shape]) for place in places]
    return built(t, x, lambda x, source, *at: placing.put_together(x, at, source, "add"),
                 x, to_tensor(t, values, x.dtype), *spread)  # fmt: skip


@TORCH.function("index_reduce", methods=("index_reduce",))
def index_reduce(
    t: Core, input: Value, dim: Value, index: Value, source: Value, reduce: Value, *,
    include_self: Value = True,
) -> Value:  # fmt: skip
    """Return the input with slices of the source reduced into those at indices of an axis."""
    x, given = need_tensor(t, input, "input"), need_tensor(t, source, "source")
    _need_index(t, need_tensor(t, index, "index"))
    place = axis(t, dim, len(shape_of(t, x)), x)
    if not shape_of(t, x):  # a scalar is a vector of one
        whole = [x if shape_of(t, x) else t.op("Unsqueeze", x, np.array([0])) for x in (x, given)]
        made = index_reduce(t, whole[0], 0, index, whole[1], reduce, include_self=include_self)
        return t.op("Squeeze", made, np.array([0]))
    own: list[Dim] = [1] * len(shape_of(t, given))
    own[place] = shape_of(t, index, 1, "index")[0]
    spread = t.call_library("torch.broadcast_to", [reshape(t, index, own), shape_of(t, given)])
    keywords = {"reduce": reduce, "include_self": include_self}
    return t.call_library("torch.scatter_reduce", [x, place, spread, given], keywords)


@TORCH.method("fill_diagonal_")
def fill_diagonal_(t: Core, self: Value, fill_value: Value, wrap: Value = False) -> Value:
    """Return a tensor with a number on its diagonal, which ``wrap`` repeats in a tall matrix."""
    shape = shape_of(t, self)
    if len(shape) < 2:
        t.fail("rank", f"fill_diagonal_ expects at least two axes, got {t.show(self)}", self)
    if len(shape) > 2 and any(t.emit.differ(shape[0], size_) for size_ in shape[1:]):
        t.fail("shape-mismatch", "fill_diagonal_ expects axes of one size where there are more "
               f"than two, got {t.show(self)}", self)  # fmt: skip
    if not isinstance(wrap, bool):
        return t.emit.typed("Where", [self], self.dtype, shape)
    places = reshape(t, t.call_library("torch.arange", [elements(self)]), [*shape])
    step = sum((product(shape[k:]) for k in range(1, len(shape) + 1)), start=0)
    on = t.call_library("torch.eq", [t.call_library("torch.remainder", [places, step]), 0])
    if len(shape) == 2 and not wrap:
        limit = t.call_library("torch.lt", [places, shape[1] * shape[1]])
        on = t.call_library("torch.logical_and", [on, limit])
    return t.call_library("torch.masked_fill", [self, on, fill_value])


@TORCH.function("put", methods=("put", "put_"))
def put(t: Core, input: Value, index: Value, source: Value, accumulate: Value = False) -> Tensor:
    """Return the input with elements of the source at flat indices."""
    x = need_tensor(t, input, "input")
    _need_index(t, need_tensor(t, index, "index"))
    same_dtype(t, x, need_tensor(t, source, "source"), "input and source")
    return built(
        t, x, lambda x, index, source: placing.flat_put(
            x, index, source, accumulate=bool(accumulate)), x, index, source,
    )  # fmt: skip


@TORCH.function("select_scatter", methods=("select_scatter",))
def select_scatter(t: Core, input: Value, src: Value, dim: Value, index: Value) -> Tensor:
    """Return the input with the elements at a place along an axis replaced."""
    x, source = need_tensor(t, input, "input"), need_tensor(t, src, "src")
    parts: list[Value] = [slice(None)] * len(shape_of(t, x))
    parts[axis(t, dim, len(parts), x)] = size(t, index)
    return built(t, x, lambda x, source: put_items(x, parts, source), x, source)


@TORCH.function("slice_scatter", methods=("slice_scatter",))
def slice_scatter(
    t: Core, input: Value, src: Value, dim: Value = 0, start: Value = None, end: Value = None,
    step: Value = 1,
) -> Tensor:  # fmt: skip
    """Return the input with a slice along an axis replaced."""
    x, source = need_tensor(t, input, "input"), need_tensor(t, src, "src")
    parts: list[Value] = [slice(None)] * len(shape_of(t, x))
    parts[axis(t, dim, len(parts), x)] = slice(start, end, step)
    with t.emit.types_only():
        place = shape_of(t, t.item(x, tuple(parts)))
    own = shape_of(t, source)
    if len(own) != len(place) or any(map(t.emit.differ, own, place)):
        sizes = ", ".join(map(str, place))
        t.fail("shape-mismatch", f"expected a source of the slice's shape ({sizes}), got "
               f"{t.show(source)}", x, source)  # fmt: skip
    return built(t, x, lambda x, source: put_items(x, parts, source), x, source)


@TORCH.function("diagonal_scatter", methods=("diagonal_scatter",))
def diagonal_scatter(
    t: Core, input: Value, src: Value, offset: Value = 0, dim1: Value = 0, dim2: Value = 1
) -> Tensor:
    """Return the input with a diagonal of two axes replaced."""
    x, source = need_tensor(t, input, "input"), need_tensor(t, src, "src")
    rank, length = len(shape_of(t, x)), shape_of(t, source)[-1]
    rows, columns = axis(t, dim1, rank, x), axis(t, dim2, rank, x)
    with t.emit.types_only():
        wanted = need_tensor(t, t.call_library("torch.diagonal", [x, offset, dim1, dim2]), "input")
    same_shape(t, source, shape_of(t, wanted), "src to have the shape of the diagonal")
    if not isinstance(offset, int):
        return t.emit.typed("SelectScatter", [x, source], x.dtype, x.shape)
    return built(
        t, x, lambda x, source: placing.diagonal_put(x, source, offset, rows, columns, length),
        x, source,
    )  # fmt: skip


@TORCH.function("renorm", methods=("renorm", "renorm_"))
def renorm(t: Core, input: Value, p: Value, dim: Value, maxnorm: Value) -> Tensor:
    """Return the input with parts along an axis scaled down to a norm."""
    x = need_tensor(t, input, "input")
    expect_axes(t, x, 2)
    place = axis(t, dim, len(shape_of(t, x)), x)
    if not all(isinstance(n, int | float) for n in (p, maxnorm)):
        return t.emit.typed("Renorm", [x], x.dtype, x.shape)
    return built(t, x, statistics.limited, x, float(p), place, float(maxnorm))


def _vander(name: str, *, rises: bool) -> None:
    def function(t: Core, x: Value, N: Value = None, increasing: Value = rises) -> Tensor:
        found = need_tensor(t, x, "x")
        if category(found.dtype) < 2:  # as of cumprod
            found = cast(t, found, INT64)
        if name != "vander" and not shape_of(t, found):  # a scalar is a vector of one
            found = t.op("Unsqueeze", found, np.array([0]))
        shape = shape_of(t, found, 1 if name == "vander" else None, "x")
        count = shape[-1] if N is None else size(t, N)

        def powers(x: Tensor) -> Any:
            steps = to_dtype(filling.steps(count), found.dtype)
            order = steps if increasing else taken.flip(steps, [0])
            return products.vandermonde(x, order)

        return built(t, (found.dtype, (*shape, count)), powers, found)

    TORCH.function(name)(function)


_vander("vander", rises=False)
_vander("linalg.vander", rises=True)
