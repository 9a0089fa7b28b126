"""Products of matrices and tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from hagane.errors import OutOfRange, TypeInferenceError
from hagane.nn.autograd import type_check
from hagane.nn.autograd.debugging import at_place
from hagane.nn.autograd.variable import Variable
from hagane.nn.functions.applying import as_dtype_of, function, lift, promoted, require, shape_of
from hagane.nn.functions.array import reshape
from hagane.nn.functions.fusing import fused
from hagane.ops.builder import op


@function("a", "b")
def matmul(a: Any, b: Any, transa: bool = False, transb: bool = False) -> Any:
    """Return the product of matrices, or of stacks of them.

    Args:
        a: A matrix, a stack of such, or a vector.
        b: The same.
        transa: Whether the matrices of ``a`` are transposed first.
        transb: Whether those of ``b`` are.
    """
    a, b = promoted("matmul", a, b)
    first, second = tuple(shape_of(a)), tuple(shape_of(b))
    if not first or not second:
        raise type_check.refuse("matmul", "one or more axes", f"{first} and {second}")
    inner_a = first[-1] if len(first) == 1 or not transa else first[-2]
    inner_b = second[0] if len(second) == 1 else second[-1] if transb else second[-2]
    if inner_a != inner_b:
        raise type_check.refuse(
            "matmul", "equal inner sizes of a and b", f"a.shape == {first}, b.shape == {second}"
        )
    if len(first) > 2 or len(second) > 2:
        try:
            np.broadcast_shapes(first[:-2], second[:-2])
        except ValueError:
            raise type_check.refuse(
                "matmul", "stacks that broadcast", f"{first} and {second}"
            ) from None
    if not transa and not transb:
        return op("MatMul", a, b)
    return fused(multiplied, a, b, transa=bool(transa), transb=bool(transb))


def multiplied(a: Any, b: Any, *, transa: bool, transb: bool) -> Any:
    """Return the product of matrices that are transposed first, or of stacks of them."""
    return op("MatMul", _swapped(a) if transa else a, _swapped(b) if transb else b)


def _swapped(a: Any) -> Any:
    rank = len(shape_of(a))
    if rank < 2:
        return a
    return op("Transpose", a, perm=(*range(rank - 2), rank - 1, rank - 2))


@function("a", "b")
def batch_matmul(a: Any, b: Any, transa: bool = False, transb: bool = False) -> Any:
    """Return the product of matrices of each sample; vectors are columns."""
    import warnings

    warnings.warn(
        "batch_matmul is deprecated. Use matmul instead.", DeprecationWarning, stacklevel=3
    )
    for name, x in (("a", a), ("b", b)):
        if len(shape_of(x)) not in (2, 3):
            raise type_check.refuse("batch_matmul", f"2 <= {name}.ndim <= 3", f"{shape_of(x)}")
    if len(shape_of(a)) == 2:
        a = op("Unsqueeze", a, [2])
    if len(shape_of(b)) == 2:
        b = op("Unsqueeze", b, [2])
    return matmul(a, b, transa=transa, transb=transb)


@function("a", "b")
def tensordot(a: Any, b: Any, axes: Any = 2) -> Any:
    """Return the sum of products over axes of two arrays, as ``numpy.tensordot``."""
    a, b = promoted("tensordot", a, b)
    first, second = tuple(shape_of(a)), tuple(shape_of(b))
    if isinstance(axes, int):
        over_a = list(range(len(first) - axes, len(first)))
        over_b = list(range(axes))
    else:
        over_a, over_b = [[x] if isinstance(x, int) else list(x) for x in axes]
    try:
        over_a = [x % len(first) for x in over_a]
        over_b = [x % len(second) for x in over_b]
        sizes = [first[x] for x in over_a]
        fits = sizes == [second[x] for x in over_b]
    except (ZeroDivisionError, IndexError):
        fits = False
    if not fits:
        raise ValueError(f"tensordot: axes {axes} do not fit arrays of shapes {first} and {second}")
    rest_a = [i for i in range(len(first)) if i not in over_a]
    rest_b = [i for i in range(len(second)) if i not in over_b]
    inner = int(np.prod(sizes, dtype=np.int64))
    rows = int(np.prod([first[i] for i in rest_a], dtype=np.int64))
    columns = int(np.prod([second[i] for i in rest_b], dtype=np.int64))
    left = reshape(op("Transpose", a, perm=(*rest_a, *over_a)), (rows, inner))
    right = reshape(op("Transpose", b, perm=(*over_b, *rest_b)), (inner, columns))
    shape = tuple(first[i] for i in rest_a) + tuple(second[i] for i in rest_b)
    return reshape(op("MatMul", left, right), shape)


def einsum(*operands: Any) -> Any:
    """Return a sum of products by Einstein's convention, as ``numpy.einsum``.

    Args:
        operands: A string and arrays, or arrays each with the list of its indices.
    """
    subscripts, arrays = _spelled(operands)
    row = [lift(x) for x in arrays]
    for i, x in enumerate(row):
        require("einsum", f"x{i}", x, kind="f", dtype_as=("x0", row[0]))
    return _einsum(row, subscripts)


@function("*xs", name="einsum")
def _einsum(xs: Any, subscripts: str) -> Any:
    inputs, arrow, output = subscripts.replace(" ", "").partition("->")
    terms = inputs.split(",")
    if len(terms) != len(xs):
        raise type_check.refuse("einsum", f"{len(terms)} operands for '{subscripts}'", f"{len(xs)}")
    for i, (term, x) in enumerate(zip(terms, xs, strict=True)):
        letters, rank = term.replace("...", ""), len(shape_of(x))
        if (len(letters) != rank) if "..." not in term else (len(letters) > rank):
            raise type_check.refuse(
                "einsum", f"x{i} to have the axes '{term}'", f"x{i}.shape == {shape_of(x)}"
            )
    sizes: dict[str, int] = {}
    for i, (term, x) in enumerate(zip(terms, xs, strict=True)):
        shape = list(shape_of(x))
        before, dots, after = term.partition("...")
        pairs = list(zip(before, shape, strict=False))
        pairs += list(zip(after, shape[len(shape) - len(after) :], strict=False)) if dots else []
        for letter, size in pairs:
            if sizes.setdefault(letter, size) != size:
                raise type_check.refuse(
                    "einsum", f"axis '{letter}' of x{i} to have size {sizes[letter]}", f"{size}"
                )
    if arrow:
        for letter in output.replace("...", ""):
            if letter not in sizes:
                raise type_check.refuse(
                    "einsum", "output axes among those of the inputs", f"'{letter}'"
                )
        wide = any(
            len(term.replace("...", "")) < len(shape_of(x))
            for term, x in zip(terms, xs, strict=True)
        )
        if (wide and "..." not in output) or ("..." in output and "..." not in inputs):
            raise ValueError(
                f"einsum: expected '...' in the output if and only if it is in the inputs, "
                f"got '{subscripts}'"
            )
    try:
        return op("Einsum", *xs, equation=subscripts.replace(" ", ""))
    except TypeInferenceError as error:
        raise type_check.refuse("einsum", "operands that fit", str(error)) from None


def _spelled(operands: tuple[Any, ...]) -> tuple[str, tuple[Any, ...]]:
    if not operands:
        raise ValueError("must specify the einstein sum subscripts string and at least one operand")
    if isinstance(operands[0], str):
        return operands[0], operands[1:]
    letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
    arrays = operands[0 : len(operands) // 2 * 2 : 2]
    indices = operands[1::2]

    def spell(index: Any) -> str:
        return "".join("..." if i is Ellipsis else letters[i] for i in index)

    text = ",".join(map(spell, indices))
    if len(operands) % 2:
        text += f"->{spell(operands[-1])}"
    return text, arrays


@function("x", "W", "b", name="linear")
def _product(x: Any, W: Any, b: Any) -> Any:
    return op("Gemm", x, W, b, transB=1)


@function("x", "W", "b", composed=True)
def linear(x: Any, W: Any, b: Any = None, n_batch_axes: int = 1) -> Any:
    """Return ``x @ W.T + b``.

    Args:
        x: An array of shape (*batch, *features); the features are taken as one axis.
        W: (outputs, features).
        b: (outputs,).
        n_batch_axes: The number of axes of the batch.
    """
    if n_batch_axes == 1 and _are_matrices(x, W, b):
        return _product(x, W, b)
    require("linear", "W", W, kind="f", ndim=2)
    require("linear", "x", x, kind="f", at_least=1)
    if n_batch_axes <= 0:
        raise ValueError("n_batch_axes should be greater than 0.")
    shape = tuple(shape_of(x))
    if len(shape) <= n_batch_axes and len(shape) < 2:
        raise type_check.refuse("linear", "x.ndim >= 2", f"x.shape == {shape}")
    lead: tuple[Any, ...] = ()
    if n_batch_axes > 1:
        lead = shape[:n_batch_axes]
        x = reshape(x, (int(np.prod(lead)), -1 if np.prod(lead) else shape_of(W)[1]))
    elif len(shape) > 2:
        features = int(np.prod(shape[1:], dtype=np.int64))
        x = reshape(x, (shape[0], features))
    require("linear", "x", x, shape=(None, shape_of(W)[1]))
    if b is not None:
        require("linear", "b", b, kind="f", shape=(shape_of(W)[0],), dtype_as=("x", x))
    W, b = as_dtype_of(x, W), as_dtype_of(x, b)
    y = _product(x, W, b)
    return reshape(y, (*lead, shape_of(W)[0])) if lead else y


def _are_matrices(x: Any, W: Any, b: Any) -> bool:
    """Whether operands of ``linear`` are matrices and a row that fit, as they nearly always are."""
    if not (isinstance(x, Variable) and isinstance(W, Variable)):
        return False
    rows, weight = x._array, W._array
    if rows is None or weight is None or rows.ndim != 2 or weight.ndim != 2:
        return False
    if rows.shape[1] != weight.shape[1]:
        return False
    dtype = rows.dtype
    if dtype.kind != "f" or weight.dtype != dtype:
        return False
    if b is None:
        return True
    row = b._array if isinstance(b, Variable) else None
    return row is not None and row.shape == weight.shape[:1] and bool(row.dtype == dtype)


@function("e1", "e2", "W", "V1", "V2", "b")
def bilinear(e1: Any, e2: Any, W: Any, V1: Any = None, V2: Any = None, b: Any = None) -> Any:
    """Return ``e1 W e2 + e1 V1 + e2 V2 + b``.

    Args:
        e1: (batch, left).
        e2: (batch, right).
        W: (left, right, outputs).
        V1: (left, outputs); all of V1, V2 and b are given, or none.
        V2: (right, outputs).
        b: (outputs,).
    """
    flags = [V1 is None, V2 is None, b is None]
    if any(flags) and not all(flags):
        raise ValueError(
            "All coefficients of the linear part (V1, V2, b) need to be given, or none"
        )
    e1, e2 = _flat(e1), _flat(e2)
    require("bilinear", "e1", e1, kind="f")
    require("bilinear", "e2", e2, dtype_as=("e1", e1), shape=(shape_of(e1)[0], None))
    left, right = shape_of(e1)[1], shape_of(e2)[1]
    require("bilinear", "W", W, dtype_as=("e1", e1), shape=(left, right, None))
    outputs = shape_of(W)[2]
    y = op("Einsum", e1, e2, W, equation="ij,ik,jkl->il")
    if V1 is not None:
        require("bilinear", "V1", V1, dtype_as=("e1", e1), shape=(left, outputs))
        require("bilinear", "V2", V2, dtype_as=("e1", e1), shape=(right, outputs))
        require("bilinear", "b", b, dtype_as=("e1", e1), shape=(outputs,))
        y = op("Add", y, op("MatMul", e1, V1))
        y = op("Add", op("Add", y, op("MatMul", e2, V2)), b)
    return y


def _flat(x: Any) -> Any:
    shape = shape_of(x)
    if len(shape) < 2:
        raise type_check.refuse("bilinear", "two or more axes", f"{shape}")
    return reshape(x, (shape[0], int(np.prod(shape[1:], dtype=np.int64))))


@function("x", "W")
def embed_id(x: Any, W: Any, ignore_label: int | None = None) -> Any:
    """Return the rows of ``W`` at the indices ``x``; zeros at ``ignore_label``."""
    require("embed_id", "x", x, kind="i", at_least=1)
    require("embed_id", "W", W, ndim=2)
    indices = x.array.astype(np.int64)
    rows = shape_of(W)[0]
    valid = indices if ignore_label is None else indices[indices != ignore_label]
    if valid.size and (valid.min() < 0 or valid.max() >= rows):
        found = valid.min() if valid.min() < 0 else valid.max()
        raise OutOfRange(
            "embed_id: Each not ignored `x` value need to satisfy `0 <= x < len(W)`, "
            f"here {rows}, got {found}{at_place()}"
        )
    if ignore_label is None:
        return op("Gather", W, indices, axis=0)
    kept = indices != ignore_label
    found = op("Gather", W, np.where(kept, indices, 0), axis=0)
    mask = kept[..., None].astype(W.dtype)
    return op("Mul", found, mask)
