"""Matrix products of PyTorch."""

from __future__ import annotations

import re
from functools import partial

import onnx_ir as ir

from hagane.frontends.libraries.computing import built, computed
from hagane.frontends.libraries.torch.operands import (
    FLOAT as _FLOAT,
)
from hagane.frontends.libraries.torch.operands import (
    axes,
    category,
    need_tensor,
    promote,
    promoted,
    reshape,
    same_dtype,
    shape_of,
)
from hagane.frontends.libraries.torch.operands import cast as as_type
from hagane.frontends.libraries.torch.table import TORCH
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.values.values import Tensor, Value
from hagane.ops.functions.numbers.elementary import cast, mul, unsqueeze
from hagane.ops.functions.sums import products
from hagane.symbolic import Dim, product


def _product(t: Core, a: Tensor, b: Tensor) -> Tensor:
    same_dtype(t, a, b, "both operands of a matrix product")
    if category(a.dtype) < 2 or category(a.dtype) == 3:
        with t.emit.types_only():
            floats = [t.emit.like(x, _FLOAT) for x in (a, b)]
            made = t.op("MatMul", *floats)
        if category(a.dtype) == 3:
            return t.emit.like(made, a.dtype)
        return computed(t, (a.dtype, made.shape), products.matrix_product, a, b)
    return t.op("MatMul", a, b)


@TORCH.function("matmul", "linalg.matmul", methods=("matmul", "__matmul__"))
def matmul(t: Core, input: Value, other: Value, *, out: Value = None) -> Tensor:
    """Return the matrix product, broadcast over leading axes."""
    a, b = need_tensor(t, input, "input"), need_tensor(t, other, "other")
    if a.shape == () or b.shape == ():
        t.fail(
            "rank", f"both operands need at least one axis, got {t.show(a)} and {t.show(b)}", a, b
        )
    return _checked(t, a, b)


def _checked(t: Core, a: Tensor, b: Tensor) -> Tensor:
    """Return the product; a mistake gets a remedy where transposing mends it."""
    left, right = shape_of(t, a), shape_of(t, b)
    inner = right[-2] if len(right) > 1 else right[0]
    if t.emit.differ(left[-1], inner):
        remedy = ""
        if len(right) > 1 and not t.emit.differ(left[-1], right[-1]):
            remedy = "transpose the second operand: .transpose(-2, -1)"
        elif len(left) > 1 and not t.emit.differ(left[-2], inner):
            remedy = "transpose the first operand: .transpose(-2, -1)"
        t.emit.differ(left[-1], inner)
        t.fail(
            "shape-mismatch",
            f"expected the last axis of the first operand ({left[-1]}) to equal the rows of the "
            f"second ({inner}), got {t.show(a)} and {t.show(b)}",
            a,
            b,
            remedy=remedy,
        )
    return _product(t, a, b)


def _of_rank(name: str, first: int, second: int) -> None:
    def function(t: Core, input: Value, other: Value, *, out: Value = None) -> Tensor:
        a, b = need_tensor(t, input, "input"), need_tensor(t, other, "mat2")
        shape_of(t, a, first, "input")
        shape_of(t, b, second, "mat2")
        if first == 3 and t.emit.differ(shape_of(t, a)[0], shape_of(t, b)[0]):
            t.fail(
                "shape-mismatch", f"expected one batch size, got {t.show(a)} and {t.show(b)}", a, b
            )
        return _checked(t, a, b)

    TORCH.function(name, methods=(name,))(function)


_of_rank("mm", 2, 2)
_of_rank("bmm", 3, 3)
_of_rank("mv", 2, 1)
_of_rank("dot", 1, 1)
_of_rank("vdot", 1, 1)


def _scaled(t: Core, x: Value, factor: Value) -> Value:
    """Return ``x`` times a number, of which integers take the whole part."""
    from hagane.frontends.libraries.torch.functions.numbers.elementwise import binary

    factor = _factor(x, factor)
    return x if factor == 1 else binary(t, "mul", x, factor)


def _factor(x: Value, factor: Value) -> Value:
    whole = isinstance(x, Tensor) and category(x.dtype) < 2
    return int(factor) if whole and isinstance(factor, float) else factor


def _added(t: Core, x: Value, beta: Value, made: Value) -> Value:
    """Return ``x`` times ``beta`` plus a product; of a ``beta`` of 0, x lends its shape alone."""
    from hagane.frontends.libraries.torch.functions.numbers.elementwise import binary

    beta = _factor(x, beta)
    if isinstance(beta, int | float) and beta == 0:  # NaN and infinity in x do not count
        return binary(t, "add", t.call_library("torch.zeros_like", [x]), made)
    return binary(t, "add", _scaled(t, x, beta), made)


def _need_room(t: Core, input: Value, made: Value) -> None:
    """Fail if what a product is added to has more axes than the product: it does not grow."""
    x, product_ = need_tensor(t, input, "input"), need_tensor(t, made, "product")
    most = len(shape_of(t, product_))
    if len(shape_of(t, x)) > most:
        axes_ = f"{most} axes" if most != 1 else "one axis"
        t.fail("rank", f"expected at most {axes_} as 'input', got {t.show(x)}", x)


def _add_product(name: str, first: str) -> None:
    def function(
        t: Core, input: Value, *factors: Value, beta: Value = 1, alpha: Value = 1, **named: Value
    ) -> Value:
        if len(factors) + len(named) != 2:
            t.fail("call", f"{name} takes an input and two factors, got {len(factors)} factors")
        a, b = (*factors, *named.values())
        made = t.call_library(f"torch.{first}", [a, b])
        _need_room(t, input, made)
        if name != "addr":
            same_dtype(t, need_tensor(t, input, "input"), made, f"the input and factors of {name}")
        elif category(made.dtype) < 2 and float in map(type, (alpha, beta)):
            t.fail("value", f"{name}: expected integers as alpha and beta of integers, got "
                   f"alpha={alpha} and beta={beta}")  # fmt: skip
        return _added(t, input, beta, _scaled(t, made, alpha))

    TORCH.function(name, methods=(name,))(function)


for _name, _first in (("addmm", "mm"), ("addmv", "mv"), ("baddbmm", "bmm"), ("addr", "outer")):
    _add_product(_name, _first)


@TORCH.function("addbmm", methods=("addbmm",))
def addbmm(
    t: Core, input: Value, batch1: Value, batch2: Value, *, beta: Value = 1, alpha: Value = 1
) -> Tensor:
    """Return ``input`` plus the sum of the products of a batch."""
    made = t.call_library("torch.bmm", [batch1, batch2])
    same_dtype(t, need_tensor(t, input, "input"), made, "the input and factors of addbmm")
    total = as_type(t, need_tensor(t, t.call_library("torch.sum", [made, 0]), "total"), made.dtype)
    _need_room(t, input, total)
    return _added(t, input, beta, _scaled(t, total, alpha))


@TORCH.function("inner", methods=("inner",))
def inner(t: Core, input: Value, other: Value) -> Tensor:
    """Return the products of the last axes."""
    a, b = need_tensor(t, input, "input"), need_tensor(t, other, "other")
    left, right = shape_of(t, a), shape_of(t, b)
    if not left or not right:
        return t.call_library("torch.mul", [a, b])
    same_dtype(t, a, b, "both operands of a matrix product")
    if t.emit.differ(left[-1], right[-1]):
        t.fail(
            "shape-mismatch",
            f"expected last axes of one size, got {t.show(a)} and {t.show(b)}",
            a,
            b,
        )
    made = (a.dtype, (*left[:-1], *right[:-1]))
    return built(t, made, products.tensordot, a, b, [len(left) - 1], [len(right) - 1])


@TORCH.function("nn.functional.grouped_mm", "_grouped_mm")
def grouped_mm(
    t: Core, mat_a: Value, mat_b: Value, *, offs: Value = None, bias: Value = None,
    out_dtype: Value = None,
) -> Tensor:  # fmt: skip
    """Return the products of groups of rows or columns, whose ends are ``offs``."""
    a, b = need_tensor(t, mat_a, "mat_a"), need_tensor(t, mat_b, "mat_b")
    same_dtype(t, a, b, "both operands of a matrix product")
    left, right = shape_of(t, a), shape_of(t, b)
    if len(left) not in (2, 3) or len(right) not in (2, 3):
        t.fail("rank", f"expected two or three axes, got {t.show(a)} and {t.show(b)}", a, b)
    if (offs is None) is not (len(left) == len(right) == 3):
        t.fail("call", "offs is needed where an operand has two axes, and only there", a, b)
    if t.emit.differ(left[-1], right[-2]):
        t.fail("shape-mismatch", f"expected inner sizes to fit, got {t.show(a)} and {t.show(b)}",
               a, b)  # fmt: skip
    if offs is None:
        if t.emit.differ(left[0], right[0]):
            t.fail("shape-mismatch", f"expected one number of groups, got {t.show(a)} and "
                   f"{t.show(b)}", a, b)  # fmt: skip
        return t.op("MatMul", a, b)
    ends = need_tensor(t, offs, "offs")
    groups = shape_of(t, ends, 1, "offs")[0]
    shape: tuple[Dim, ...] = (left[-2], right[-1])
    if len(left) == len(right) == 2:
        shape = (groups, *shape)
    elif t.emit.differ(groups, (left if len(left) == 3 else right)[0]):
        t.fail("shape-mismatch", f"expected an end for each group, got {t.show(ends)} beside "
               f"{t.show(a)} and {t.show(b)}", ends, a, b)  # fmt: skip
    if bias is not None or out_dtype is not None or not isinstance(groups, int):
        return t.emit.typed("GroupedProduct", [a, b, ends], a.dtype, shape)
    return built(t, (a.dtype, shape), lambda x, y, e: products.grouped(
        x, y, cast(e, ir.DataType.INT64), groups), a, b, ends)  # fmt: skip


@TORCH.function("outer", "ger", methods=("outer", "ger"))
def outer(t: Core, input: Value, vec2: Value) -> Tensor:
    """Return all products of two vectors."""
    a, b = need_tensor(t, input, "input"), need_tensor(t, vec2, "vec2")
    shape = (shape_of(t, a, 1, "input")[0], shape_of(t, b, 1, "vec2")[0])
    dtype = promoted(a.dtype, b.dtype)
    return computed(
        t,
        (dtype, shape),
        lambda: mul(unsqueeze(cast(a, dtype), [1]), unsqueeze(cast(b, dtype), [0])),
    )


@TORCH.function("kron", methods=("kron",))
def kron(t: Core, input: Value, other: Value) -> Tensor:
    """Return the Kronecker product."""
    left, right = shape_of(t, input), shape_of(t, other)
    if len(left) != len(right):  # ones in front of the shorter shape
        rank = max(len(left), len(right))
        left, right = ((1,) * (rank - len(s)) + tuple(s) for s in (left, right))
        input, other = reshape(t, input, left), reshape(t, other, right)
    pairs = zip(left, right, strict=True)
    made = (promoted(input.dtype, other.dtype), tuple(a * b for a, b in pairs))
    return built(t, made, lambda x, y: products.kronecker(
        cast(x, made[0]), cast(y, made[0])), input, other)  # fmt: skip


@TORCH.function("nn.functional.linear")
def linear(t: Core, input: Value, weight: Value, bias: Value = None) -> Tensor:
    """Return ``input @ weight.T + bias``; the last axis is the features."""
    x, w = need_tensor(t, input, "input"), need_tensor(t, weight, "weight")
    same_dtype(t, x, w, "input and weight")
    shape, features = shape_of(t, x), _features(t, w)
    if not shape:
        t.fail("rank", f"a linear layer needs at least one axis, got {t.show(x)}", x)
    if t.emit.differ(shape[-1], features):
        t.fail(
            "shape-mismatch",
            f"expected {features} features in the last axis, got {shape[-1]}: {t.show(x)}",
            x,
            remedy=_features_remedy(t, x, features),
        )
    y = _product(t, x, t.op("Transpose", w))
    if isinstance(bias, Tensor):
        same_dtype(t, x, bias, "input and bias")
        added: Tensor = t.call_library("torch.add", [y, bias])
        return added
    return y


def _features_remedy(t: Core, x: Tensor, features: Dim) -> str:
    shape = shape_of(t, x)
    if features in shape[:-1]:
        return f"move axis {shape.index(features)} to the end with transpose or permute"
    if len(shape) > 2 and product(shape[1:]) == features:
        return "flatten it first: torch.flatten(x, 1)"
    return ""


def _features(t: Core, w: Tensor) -> Dim:
    """Return how many features a weight takes."""
    shape = shape_of(t, w)
    return shape[0] if len(shape) == 1 else shape_of(t, w, 2, "weight")[1]


@TORCH.function("nn.functional.bilinear", "bilinear")
def bilinear(t: Core, input1: Value, input2: Value, weight: Value, bias: Value = None) -> Tensor:
    """Return ``x1 A x2 + b``."""
    out, first, second = shape_of(t, weight, 3, "weight")
    a, b = shape_of(t, input1), shape_of(t, input2)
    if t.emit.differ(a[-1], first) or t.emit.differ(b[-1], second):
        t.fail(
            "shape-mismatch",
            f"expected {first} and {second} features, got {t.show(input1)} and {t.show(input2)}",
            input1,
            input2,
        )
    made = (input1.dtype, (*a[:-1], out))
    operands = [input1, input2, weight, *([bias] if isinstance(bias, Tensor) else [])]
    return built(t, made, products.bilinear, *operands)


def _multiplies(equation: str) -> bool:
    """Whether an einsum has no sums, so that PyTorch multiplies numbers of two types."""
    before, arrow, after = re.sub(r"\s", "", equation).partition("->")
    return bool(arrow) and set(before) - {","} <= set(after)


@TORCH.function("einsum")
def einsum(t: Core, equation: Value, *operands: Value) -> Tensor:
    """Return a sum of products over the indices of an equation."""
    if not isinstance(equation, str):
        t.fail("type", "einsum takes its equation as a text first")
    given = (
        list(operands[0])
        if len(operands) == 1 and isinstance(operands[0], list | tuple)
        else list(operands)
    )
    tensors = [need_tensor(t, x, f"operands[{i}]") for i, x in enumerate(given)]
    if len(tensors) == 2 and _multiplies(equation):
        tensors = promote(t, *tensors)
    for x in tensors[1:]:
        same_dtype(t, tensors[0], x, "the operands of einsum")
    dtype = tensors[0].dtype
    with t.emit.types_only():
        floats = [t.emit.like(x, _FLOAT) for x in tensors]
        found: Tensor = t.op("Einsum", *floats, equation=re.sub(r"\s", "", equation))
    if found.shape is None:
        return t.emit.like(found, dtype)
    return built(t, (dtype, found.shape), partial(products.einsum, equation), *tensors)


@TORCH.function("tensordot")
def tensordot(t: Core, a: Value, b: Value, dims: Value = 2, **_: Value) -> Tensor:
    """Return a sum of products over pairs of axes."""
    left, right = shape_of(t, a), shape_of(t, b)
    if isinstance(dims, int):
        first, second = list(range(len(left) - dims, len(left))), list(range(dims))
    else:
        first, second = axes(t, dims[0], len(left), a), axes(t, dims[1], len(right), b)
    for i, j in zip(first, second, strict=True):
        if t.emit.clash(left[i], right[j]):  # one item is summed with each of the other's
            t.fail(
                "shape-mismatch",
                f"expected axis {i} of {t.show(a)} to equal axis {j} of {t.show(b)}",
                a,
                b,
            )
    rest = [d for i, d in enumerate(left) if i not in first]
    rest += [d for j, d in enumerate(right) if j not in second]
    return built(t, (a.dtype, tuple(rest)), products.tensordot, a, b, first, second)
