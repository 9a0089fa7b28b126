"""Linear layers and matrix products of Chainer."""

from __future__ import annotations

import re

from hagane.frontends.libraries.chainer.operands import (
    computed,
    floating,
    kind_of,
    made,
    need_rank,
    same_dtype,
    shape_of,
    variable,
)
from hagane.frontends.libraries.chainer.table import VARIABLE, function
from hagane.frontends.libraries.numpy.operands import promoted
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.values.values import Tensor, Value
from hagane.ops.functions.chainer import products as functions
from hagane.ops.functions.numbers import elementary
from hagane.symbolic import Dim, product


@function("linear")
def linear(t: Core, x: Value, W: Value, b: Value = None, n_batch_axes: Value = 1) -> Tensor:
    """Return ``x @ W.T + b``; axes after the batch's are flattened."""
    found, w = floating(t, x), floating(t, W, "W")
    shape, (out, features) = shape_of(t, found), need_rank(t, w, 2, "W")
    if not isinstance(n_batch_axes, int) or n_batch_axes < 1:
        t.fail("value", f"expected n_batch_axes of at least 1, got {n_batch_axes}", found)
    if len(shape) < max(2, n_batch_axes):
        t.fail("rank", f"a linear layer expects (batch, features), got {t.show(found)}", found)
    lead, rest = shape[:n_batch_axes], shape[n_batch_axes:]
    count = product(rest)
    if t.emit.differ(count, features):
        given = t.show(found)
        axes = f" ({' * '.join(map(str, rest))})" if len(rest) > 1 else ""
        t.fail(
            "shape-mismatch",
            f"expected {features} features, got {count}{axes}: {given}",
            found,
            remedy=_remedy(t, shape, features, n_batch_axes),
        )
    bias = None
    if b is not None:
        bias = variable(t, b, "b")
        same_dtype(t, found, bias, "x and b")
        if t.emit.differ(need_rank(t, bias, 1, "b")[0], out):
            t.fail("shape-mismatch", f"expected a bias of {out}, got {t.show(bias)}", bias)
    return computed(t, (found.dtype, (*lead, out)), functions.linear, found, w, bias, n_batch_axes)


def _remedy(t: Core, shape: tuple[Dim, ...], features: Dim, n_batch_axes: int) -> str:
    if len(shape) > n_batch_axes + 1 and not t.emit.differ(shape[-1], features):
        return f"keep the axes before with n_batch_axes={len(shape) - 1}"
    return ""


@function("matmul")
def matmul(t: Core, a: Value, b: Value, transa: Value = False, transb: Value = False) -> Tensor:
    """Return the matrix product, broadcast over leading axes."""
    left, right = floating(t, a, "a"), floating(t, b, "b")
    for x in (left, right):
        if not shape_of(t, x):
            t.fail("rank", f"expected at least one axis, got {t.show(x)}", x)
    first = _turned(t, left) if transa else left
    second = _turned(t, right) if transb else right
    return _product(t, first, second)


def _turned(t: Core, x: Tensor) -> Tensor:
    """Return the variable with its last two axes swapped."""
    shape = shape_of(t, x)
    if len(shape) < 2:
        return x
    turned = computed(t, (x.dtype, (*shape[:-2], shape[-1], shape[-2])), elementary.swapped, x)
    turned.origin = x.origin
    return turned


def _product(t: Core, a: Tensor, b: Tensor) -> Tensor:
    left, right = shape_of(t, a), shape_of(t, b)
    inner = right[-2] if len(right) > 1 else right[0]
    if t.emit.differ(left[-1], inner):
        remedy = ""
        if len(right) > 1 and not t.emit.differ(left[-1], right[-1]):
            remedy = "transpose the second operand: transb=True"
        t.emit.differ(left[-1], inner)
        t.fail(
            "shape-mismatch",
            f"expected the last axis of the first operand ({left[-1]}) to equal the rows of the "
            f"second ({inner}), got {t.show(a)} and {t.show(b)}",
            a,
            b,
            remedy=remedy,
        )
    dtype = promoted(t, [a, b])
    same = [computed(t, (dtype, x.shape), elementary.cast, x, dtype) for x in (a, b)]
    for one, x in zip(same, (a, b), strict=True):
        one.origin = x.origin
    result: Tensor = t.op("MatMul", *same, kind=VARIABLE)
    return result


@function("batch_matmul")
def batch_matmul(
    t: Core, a: Value, b: Value, transa: Value = False, transb: Value = False
) -> Tensor:
    """Return the products of matrices of one batch; two axes are taken as columns."""
    sides = []
    for value, name, turn in ((a, "a", transa), (b, "b", transb)):
        x = floating(t, value, name)
        shape = shape_of(t, x)
        if len(shape) not in (2, 3):
            t.fail("rank", f"expected '{name}' to have 2 or 3 axes, got {t.show(x)}", x)
        if len(shape) == 2:
            x = computed(t, (x.dtype, (*shape, 1)), elementary.unsqueeze, x, [2])
        sides.append(_turned(t, x) if turn else x)
    if t.emit.differ(shape_of(t, sides[0])[0], shape_of(t, sides[1])[0]):
        t.fail("shape-mismatch", "expected one batch size", *sides)
    return _product(t, sides[0], sides[1])


@function("einsum")
def einsum(t: Core, *operands: Value) -> Tensor:
    """Return a sum of products over the indices of an equation."""
    if not operands or not isinstance(operands[0], str):
        t.fail("type", "einsum takes its equation as a text first")
    found = [floating(t, x, f"operands[{i}]") for i, x in enumerate(operands[1:])]
    for x in found[1:]:
        same_dtype(t, found[0], x, "the operands of einsum")
    y: Tensor = t.op("Einsum", *found, equation=re.sub(r"\s", "", operands[0]), kind=VARIABLE)
    return y


@function("tensordot")
def tensordot(t: Core, a: Value, b: Value, axes: Value = 2) -> Tensor:
    """Return a sum of products over pairs of axes."""
    from hagane.frontends.libraries.numpy.products import tensordot as run

    left, right = floating(t, a, "a"), floating(t, b, "b")
    same_dtype(t, left, right, "a and b")
    pairs = axes
    if not (isinstance(pairs, int) or (isinstance(pairs, list | tuple) and len(pairs) == 2)):
        told = f"expected axes to be an integer or a pair of them, got {t.show(t.wrap(axes))}"
        t.fail("value", told, left, right)
    if isinstance(pairs, list | tuple):
        pairs = tuple(p if isinstance(p, list | tuple) else (p,) for p in pairs)
    promised = run(t, left, right, pairs, left.dtype)
    return computed(t, promised, functions.tensordot, left, right, *_axes_of(left, right, pairs))


def _axes_of(a: Tensor, b: Tensor, axes: Value) -> tuple[list[int], list[int]]:
    """Return the axes of both operands that are summed over."""
    if isinstance(axes, int):
        return list(range(a.rank - axes, a.rank)), list(range(axes))
    return [place % a.rank for place in axes[0]], [place % b.rank for place in axes[1]]


@function("bilinear")
def bilinear(t: Core, e1: Value, e2: Value, W: Value, V1: Value = None, V2: Value = None,
             b: Value = None) -> Tensor:  # fmt: skip
    """Return ``e1 W e2`` of (batch, left) and (batch, right): (batch, out)."""
    left, right, w = floating(t, e1, "e1"), floating(t, e2, "e2"), floating(t, W, "W")
    sizes = need_rank(t, w, 3, "W")
    flat = []
    for x, expected in ((left, sizes[0]), (right, sizes[1])):
        shape = shape_of(t, x)
        if len(shape) < 2 or t.emit.differ(product(shape[1:]), expected):
            t.fail("shape-mismatch", f"expected {expected} features, got {t.show(x)}", x)
        flat.append(shape[0])
    if t.emit.differ(*flat):
        t.fail(
            "shape-mismatch",
            f"expected one batch size, got {t.show(left)} and {t.show(right)}",
            left,
            right,
        )
    given = [None if v is None else floating(t, v, n)
             for v, n in ((V1, "V1"), (V2, "V2"), (b, "b"))]  # fmt: skip
    result = (left.dtype, (flat[0], sizes[2]))
    return computed(t, result, functions.bilinear, left, right, w, *given)


@function("embed_id")
def embed_id(t: Core, x: Value, W: Value, ignore_label: Value = None) -> Tensor:
    """Return rows of the weight: (*x, features)."""
    places, w = variable(t, x), floating(t, W, "W")
    if kind_of(places) != "i":
        t.fail(
            "dtype-mismatch",
            f"expected signed integers as IDs, got {t.show(places)}",
            places,
            remedy="convert them with .astype(np.int32)",
        )
    shape = shape_of(t, places)
    if not shape:
        t.fail("rank", f"expected at least one axis of IDs, got {t.show(places)}", places)
    features = need_rank(t, w, 2, "W")[1]
    result = (w.dtype, (*shape, features))
    return computed(t, result, functions.embed_id, places, w, ignore_label)


@function("simplified_dropconnect")
def simplified_dropconnect(t: Core, x: Value, W: Value, b: Value = None, ratio: Value = 0.5,
                           train: Value = True, mask: Value = None,
                           use_batchwise_mask: Value = True) -> Tensor:  # fmt: skip
    """Return a linear layer with weights dropped, unless ``train`` says no."""
    y = linear(t, x, W, b)
    if train and mask is None and isinstance(ratio, int | float) and ratio == 1:
        t.fail("value", "expected a ratio below 1, got 1: what is left is divided by 1 - ratio", y)
    if train and mask is not None:
        kept, whole = variable(t, mask, "mask"), shape_of(t, variable(t, W, "W"))
        wanted = (shape_of(t, y)[0], *whole) if use_batchwise_mask else whole
        own = need_rank(t, kept, len(wanted), "mask")
        if any(t.emit.differ(a, b) for a, b in zip(own, wanted, strict=True)):
            t.fail("shape-mismatch", f"the mask {t.show(kept)} does not fit the weights", kept, y)
    return made(t, "Dropconnect", [y], y.dtype, y.shape) if train else y
