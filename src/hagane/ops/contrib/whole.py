"""Operators of whole numbers: products of 16-bit ones, hashes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.graph.types import TensorType
from hagane.ops.builder import dtype_of, op
from hagane.ops.context import InferContext
from hagane.ops.contrib.declare import DOMAIN, declare
from hagane.ops.definition import Array, OpDef
from hagane.ops.linear.matmul import product_shape
from hagane.ops.vjp import DISCRETE

# Factors of MurmurHash3 for 32 bits (A. Appleby, 2011, in the public domain).
_FIRST, _SECOND, _STEP = 0xCC9E2D51, 0x1B873593, 0xE6546B64
_MIX = ((16, 0x85EBCA6B), (13, 0xC2B2AE35), (16, None))
_WORD = 2**32 - 1


def _matmul_integer(a: Array, b: Array) -> Array:
    return np.matmul(a.astype(np.int32), b.astype(np.int32))


def _composed_product(a: Any, b: Any) -> Any:
    return op("MatMul", *(op("Cast", x, to=ir.DataType.INT32) for x in (a, b)))


def _infer_product(ctx: InferContext) -> Sequence[Any]:
    return [TensorType(ir.DataType.INT32, product_shape(ctx, ctx.shape(0), ctx.shape(1)))]


def _hash_bytes(data: bytes, seed: int) -> int:
    """Return the hash of some bytes, words of four with the lowest first."""
    found, whole = seed, len(data) // 4 * 4
    for at in range(0, len(data), 4):
        word = int.from_bytes(data[at : at + 4], "little") * _FIRST & _WORD
        word = (word << 15 | word >> 17) * _SECOND & _WORD
        found ^= word
        if at < whole:
            found = ((found << 13 | found >> 19) * 5 + _STEP) & _WORD
    found ^= len(data)
    for shift, factor in _MIX:
        found ^= found >> shift
        found = found if factor is None else found * factor & _WORD
    return found


def _murmur_hash(x: Array, *, positive: int = 1, seed: int = 0) -> Array:
    if x.dtype == object:
        items = [str(each).encode("utf-8", "surrogateescape") for each in x.ravel()]
    else:
        items = [each.tobytes() for each in np.ascontiguousarray(x).ravel()]
    found = np.array([_hash_bytes(each, seed & _WORD) for each in items], np.uint32)
    return found.reshape(x.shape).view(np.uint32 if positive else np.int32)


def _infer_hash(ctx: InferContext) -> Sequence[Any]:
    dtype = ir.DataType.UINT32 if ctx.attr("positive") else ir.DataType.INT32
    return [TensorType(dtype, ctx.shape(0))]


def _rotated(x: Any, by: int) -> Any:
    left = op("BitShift", x, np.uint32(by), direction="LEFT")
    return op("BitwiseOr", left, op("BitShift", x, np.uint32(32 - by), direction="RIGHT"))


def _composed_hash(x: Any, *, positive: int = 1, seed: int = 0) -> Any:
    if dtype_of(x) == ir.DataType.STRING:
        return None  # no operator reads bytes of texts
    wide = dtype_of(x).itemsize == 8
    bits = op("BitCast", x, to=ir.DataType.UINT64 if wide else ir.DataType.UINT32)
    words = [bits]
    if wide:
        high = op("BitShift", bits, np.uint64(32), direction="RIGHT")
        low = op("BitwiseAnd", bits, np.uint64(_WORD))
        words = [op("Cast", half, to=ir.DataType.UINT32) for half in (low, high)]
    found: Any = np.uint32(seed & _WORD)
    for word in words:
        word = _rotated(op("Mul", word, np.uint32(_FIRST)), 15)
        found = op("BitwiseXor", op("Mul", word, np.uint32(_SECOND)), found)
        found = op("Add", op("Mul", _rotated(found, 13), np.uint32(5)), np.uint32(_STEP))
    found = op("BitwiseXor", found, np.uint32(4 * len(words)))
    for shift, factor in _MIX:
        shifted = op("BitShift", found, np.uint32(shift), direction="RIGHT")
        found = op("BitwiseXor", found, shifted)
        found = found if factor is None else op("Mul", found, np.uint32(factor))
    return found if positive else op("BitCast", found, to=ir.DataType.INT32)


OPERATORS = (
    OpDef(
        "MatMulInteger16",
        _infer_product,
        _matmul_integer,
        domain=DOMAIN,
        compose=_composed_product,
        vjp=DISCRETE,
    ),
    OpDef(
        "MurmurHash3",
        _infer_hash,
        _murmur_hash,
        domain=DOMAIN,
        compose=_composed_hash,
        vjp=DISCRETE,
    ),
)
SCHEMAS = {
    (DOMAIN, "MatMulInteger16"): declare("A:T, B:T -> Y:U", T="int16", U="int32"),
    (DOMAIN, "MurmurHash3"): declare(
        "X:T -> Y:U",
        {"positive": 1, "seed": 0},
        T="int32 int64 uint32 uint64 float double string",
        U="uint32 int32",
    ),
}
