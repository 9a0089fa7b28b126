"""Sparse tensors by coordinates: shapes and types are those of the dense tensor."""

from __future__ import annotations

from hagane.frontends.libraries.torch.operands import (
    INT64,
    category,
    device_of,
    dtype_of,
    need_tensor,
    shape_of,
    sizes,
    to_tensor,
)
from hagane.frontends.libraries.torch.table import TORCH
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.report.findings import OPEN
from hagane.frontends.python.values.values import Tensor, Value
from hagane.graph.types import Shape


@TORCH.function("sparse_coo_tensor", "sparse.FloatTensor", "sparse.DoubleTensor")
def sparse_coo_tensor(
    t: Core, indices: Value, values: Value, size: Value = None, *, dtype: Value = None,
    device: Value = None, **_: Value,
) -> Tensor:  # fmt: skip
    """Return a tensor that has ``values`` at the places of the columns of ``indices``."""
    places, items = (
        x if isinstance(x, Tensor) else to_tensor(t, t.call_library("torch.tensor", [x]))
        for x in (indices, values)
    )
    if category(places.dtype) != 1:
        t.fail("dtype-mismatch", f"expected integers as indices, got {t.show(places)}", places)
    axes, count = shape_of(t, places, 2, "indices")
    rest = shape_of(t, items)
    if not rest or t.emit.differ(count, rest[0]):
        t.fail(
            "shape-mismatch",
            f"expected one value for each column of the indices, got {t.show(places)} and "
            f"{t.show(items)}",
            places,
            items,
        )
    whole: Shape
    if size is not None:
        whole = tuple(sizes(t, (size,)))
        if isinstance(axes, int) and len(whole) != axes + len(rest) - 1:
            t.fail(
                "rank",
                f"expected {axes + len(rest) - 1} sizes, an axis for each row of the indices and "
                f"each further one of the values, got {t.show(t.wrap(whole))}",
                places,
                items,
            )
    elif isinstance(axes, int):
        whole = (*(t.emit.fresh("highest") for _ in range(axes)), *rest[1:])
    else:
        t.fail(OPEN, f"the number of rows of the indices is not known: {t.show(places)}", places)
    wanted = items.dtype if dtype is None else dtype_of(dtype)
    made = t.emit.typed("Sparse", [items], wanted, whole)
    return made if device is None else t.emit.on(made, device_of(device))


@TORCH.method("to_sparse", "to_sparse_coo", "to_sparse_csr")
def to_sparse(t: Core, self: Value, *_: Value, **__: Value) -> Tensor:
    """Return the same tensor with its elements by coordinates."""
    x = need_tensor(t, self, "input")
    return t.emit.typed("Sparse", [x], x.dtype, shape_of(t, x))


@TORCH.method("to_dense")
def to_dense(t: Core, self: Value, *_: Value, **__: Value) -> Tensor:
    """Return the same tensor with all of its elements."""
    x = need_tensor(t, self, "input")
    if t.emit.builds:  # in which all tensors are dense
        return x
    return t.emit.typed("Dense", [x], x.dtype, shape_of(t, x))


@TORCH.method("coalesce")
def coalesce(t: Core, self: Value) -> Tensor:
    """Return the same tensor with one value for each place."""
    return need_tensor(t, self, "input")


@TORCH.method("indices", "_indices")
def indices(t: Core, self: Value) -> Tensor:
    """Return the places of the values: (axes, values)."""
    x = need_tensor(t, self, "input")
    return t.emit.typed("Indices", [x], INT64, (len(shape_of(t, x)), t.emit.fresh("stored")))


@TORCH.method("values", "_values")
def stored(t: Core, self: Value) -> Tensor:
    """Return the values that are stored."""
    x = need_tensor(t, self, "input")
    return t.emit.typed("Values", [x], x.dtype, (t.emit.fresh("stored"),))


@TORCH.function("sparse.mm", "spmm")
def product_of_either(t: Core, input: Value, mat2: Value, reduce: Value = None) -> Value:
    """Return a product of matrices, which may be sparse; graphs have dense ones."""
    return t.call_library("torch.mm", [input, mat2])


@TORCH.function("smm", "hspmm")
def product(t: Core, input: Value, mat2: Value, reduce: Value = None) -> Value:
    """Return a product of matrices of which some are sparse."""
    return t.call_library("torch.mm", [input, mat2])


@TORCH.function("sparse.addmm", "sspaddmm")
def sum_with_product(
    t: Core, input: Value, mat1: Value, mat2: Value, *, beta: Value = 1, alpha: Value = 1
) -> Value:
    """Return ``input`` plus a product of matrices of which some are sparse."""
    return t.call_library("torch.addmm", [input, mat1, mat2], {"beta": beta, "alpha": alpha})


@TORCH.attribute("is_sparse")
def is_sparse(t: Core, x: Tensor) -> Value:
    """Return whether its elements lie by coordinates."""
    producer = x.value.producer()
    return producer is not None and producer.op_type == "Sparse"
