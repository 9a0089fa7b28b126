"""Functions of PyTorch that sort, accumulate, or count what is equal."""

from __future__ import annotations

import onnx_ir as ir

from hagane.frontends.libraries.computing import computed
from hagane.frontends.libraries.torch.operands import (
    FLOAT,
    INT64,
    axis,
    cast,
    category,
    dtype_of,
    need_float,
    need_tensor,
    shape_of,
    size,
)
from hagane.frontends.libraries.torch.table import TORCH
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.values.values import Fields, Tensor, Value
from hagane.ops.builder import op
from hagane.symbolic import Dim


@TORCH.function("topk", methods=("topk",))
def topk(
    t: Core, input: Value, k: Value, dim: Value = -1, largest: Value = True, sorted: Value = True
) -> Value:
    """Return the k largest elements along an axis, and where they are."""
    x = need_tensor(t, input, "input")
    shape = list(shape_of(t, x))
    place = axis(t, dim, len(shape), x)
    count = size(t, k)
    if not t.emit.holds(
        t.knowledge.less(count, shape[place], strict=False), f"{count} <= {shape[place]}"
    ):
        t.fail("value", f"topk takes {count} of only {shape[place]} elements: {t.show(x)}", x)
    shape[place] = count
    return _ordered(t, "TopK", x, tuple(shape), count, place, bool(largest))


def _ordered(
    t: Core, name: str, x: Tensor, shape: tuple[Dim, ...], count: Dim, place: int, largest: bool
) -> Fields:
    """Return the largest or smallest elements along an axis in order, and where they are."""
    if x.shape and category(x.dtype) in (1, 2):
        made = op("TopK", x, [count], axis=place, largest=int(largest), outputs=2)
        for tensor in made:
            t.emit.show_sizes(tensor, shape)
    else:
        made = (t.emit.typed(name, [x], x.dtype, shape), t.emit.typed(name, [x], INT64, shape))
    return Fields(made, ("values", "indices"))


@TORCH.function("sort", methods=("sort",))
def sort(t: Core, input: Value, dim: Value = -1, descending: Value = False, **_: Value) -> Value:
    """Return the input sorted along an axis, and where its elements were."""
    x = need_tensor(t, input, "input")
    shape = shape_of(t, x)
    place = axis(t, dim, len(shape), x)
    return _ordered(t, "Sort", x, shape, shape[place] if shape else 1, place, bool(descending))


@TORCH.function("msort", methods=("msort",))
def msort(t: Core, input: Value) -> Tensor:
    """Return the input sorted along its first axis."""
    x = need_tensor(t, input, "input")
    return sort(t, x, 0)[0]


@TORCH.function("argsort", methods=("argsort",))
def argsort(
    t: Core, input: Value, dim: Value = -1, descending: Value = False, **_: Value
) -> Tensor:
    """Return the positions that sort the input."""
    x = need_tensor(t, input, "input")
    return sort(t, x, dim, descending)[1]


def _cumulative(name: str) -> None:
    def function(t: Core, input: Value, dim: Value, *, dtype: Value = None) -> Value:
        x = need_tensor(t, input, "input")
        place = axis(t, dim, len(shape_of(t, x)), x)
        if name in ("cummax", "cummin"):
            values = t.emit.typed("CumMax", [x], x.dtype, x.shape)
            return Fields(
                (values, t.emit.typed("CumMax", [x], INT64, x.shape)), ("values", "indices")
            )
        wanted = dtype_of(dtype, INT64 if category(x.dtype) < 2 else x.dtype)
        made = t.emit.typed("CumSum", [x], wanted, x.shape)
        if name != "cumsum" or category(wanted) == 3 or not shape_of(t, x):
            return made
        return computed(t, made, lambda: op("CumSum", cast(t, x, wanted), place))

    TORCH.function(name, methods=(name,))(function)


for _name in ("cumsum", "cumprod", "logcumsumexp", "cummax", "cummin"):
    _cumulative(_name)
TORCH.method("cumsum_")(TORCH.functions["torch.cumsum"])
TORCH.method("cumprod_")(TORCH.functions["torch.cumprod"])


@TORCH.function("unique", "unique_consecutive", methods=("unique", "unique_consecutive"))
def unique(
    t: Core, input: Value, sorted: Value = True, return_inverse: Value = False,
    return_counts: Value = False, dim: Value = None,
) -> Value:  # fmt: skip
    """Return the different elements; how many there are nobody knows before."""
    x = need_tensor(t, input, "input")
    count = t.emit.fresh("unique")
    shape = list(shape_of(t, x))
    if dim is None:
        shape = [count]
    else:
        shape[axis(t, dim, len(shape), x)] = count
    results = [t.emit.typed("Unique", [x], x.dtype, tuple(shape))]
    if return_inverse:
        results.append(t.emit.typed("Unique", [x], INT64, x.shape))
    if return_counts:
        results.append(t.emit.typed("Unique", [x], INT64, (count,)))
    return results[0] if len(results) == 1 else tuple(results)


@TORCH.function("bincount", methods=("bincount",))
def bincount(t: Core, input: Value, weights: Value = None, minlength: Value = 0) -> Tensor:
    """Return how often each number occurs."""
    x = need_tensor(t, input, "input")
    shape_of(t, x, 1)
    if category(x.dtype) != 1:
        t.fail("dtype-mismatch", f"bincount takes integers, got {t.show(x)}", x,
               remedy="convert it with .long()")  # fmt: skip
    double = isinstance(weights, Tensor) and weights.dtype != FLOAT
    dtype = INT64 if weights is None else ir.DataType.DOUBLE if double else FLOAT
    return t.emit.typed("BinCount", [x], dtype, (t.emit.fresh("bins"),))


@TORCH.function("histogram", methods=("histogram",))
def histogram(t: Core, input: Value, bins: Value, **_: Value) -> Value:
    """Return how many elements fall into each bin, and the edges of the bins."""
    x = need_tensor(t, input, "input")
    need_float(t, x, "input")
    count = bins if not isinstance(bins, Tensor) else shape_of(t, bins, 1)[0] - 1
    return Fields(
        (t.emit.typed("Histogram", [x], x.dtype, (count,)),
         t.emit.typed("Histogram", [x], x.dtype, (count + 1,))), ("hist", "bin_edges"),
    )  # fmt: skip
