"""Products with weights of few bits: MatMulNBits, GatherBlockQuantized."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.graph.types import TensorType
from hagane.ops.builder import content_of, dtype_of, op, rank_of, shape_of
from hagane.ops.context import InferContext
from hagane.ops.contrib.declare import DOMAIN, FLOATS, INT, declare
from hagane.ops.definition import Array, OpDef
from hagane.ops.indexing.gather import checked
from hagane.ops.precision import composed_wide, widened
from hagane.ops.quantization.linear import spread
from hagane.ops.vjp import PACKED
from hagane.symbolic import ceildiv, product


def unpack(packed: Array, bits: int) -> Array:
    """Return the unsigned numbers of ``bits`` bits in the bytes of the last axis, low bits first.

    A byte holds 8 / ``bits`` numbers; with 3 bits and the like numbers run across bytes.
    """
    planes = np.unpackbits(packed, axis=-1, bitorder="little")
    count = planes.shape[-1] // bits
    numbers = planes[..., : count * bits].reshape(*packed.shape[:-1], count, bits)
    return (numbers * (1 << np.arange(bits))).sum(axis=-1)


def _matmul_nbits(
    a: Array,
    b: Array,
    scales: Array,
    zero_points: Array | None = None,
    g_idx: Array | None = None,
    bias: Array | None = None,
    *,
    K: int,
    N: int,
    accuracy_level: int = 0,
    bits: int = 4,
    block_size: int,
    weight_prepacked: int = 0,
) -> Array:
    """``a @ wᵀ`` with w, (N, K), stored in blocks along K with a scale each."""
    blocks = -(-K // block_size)
    numbers = unpack(b.reshape(N, blocks, -1), bits)[..., :block_size].astype(np.float32)
    if zero_points is None:
        zero: Array = np.float32(1 << (bits - 1))  # type: ignore[assignment]
    elif zero_points.dtype == np.uint8:
        zero = unpack(zero_points.reshape(N, -1), bits)[:, :blocks, None].astype(np.float32)
    else:
        zero = zero_points.reshape(N, blocks, 1).astype(np.float32)
    scale = scales.reshape(N, blocks, 1).astype(np.float32)
    weights = ((numbers - zero) * scale).reshape(N, -1)[:, :K]
    if g_idx is not None and g_idx.size:
        if g_idx.min() < 0 or g_idx.max() >= blocks:
            found = f"{g_idx.min()} to {g_idx.max()}"
            raise ValueError(f"expected blocks of 0 to {blocks - 1} in 'g_idx', got {found}")
        flat = numbers.reshape(N, -1)[:, :K]
        zeros = np.broadcast_to(zero, (N, blocks, 1))[:, g_idx, 0]
        weights = (flat - zeros) * scale[:, g_idx, 0]
    y = a.astype(np.float32) @ weights.T
    return (y if bias is None else y + bias).astype(a.dtype)


def _fit_elements(ctx: InferContext, index: int, count: int) -> None:
    """Fail unless input ``index`` has so many elements, along whatever axes."""
    if ctx.has(index) and ctx.known_rank(index) is not None:
        found = product(ctx.shape(index))
        ctx.unify(found, count, f"expected {count} elements of '{ctx.name(index)}', got {found}")


def _infer_matmul_nbits(ctx: InferContext) -> Sequence[Any]:
    shape = ctx.shape(0)
    if ctx.attr("weight_prepacked"):
        ctx.fail("weights in a device's own packing are not supported")
    if min(ctx.attr("K"), ctx.attr("N")) < 0 or ctx.attr("block_size") <= 0:
        ctx.fail(
            f"expected sizes K={ctx.attr('K')} and N={ctx.attr('N')}, and a positive "
            f"block_size={ctx.attr('block_size')}"
        )
    if not 1 <= ctx.attr("bits") <= 8:
        ctx.fail(f"expected 1 to 8 bits a number, got bits={ctx.attr('bits')}")
    ctx.unify(shape[-1], ctx.attr("K"), f"expected {ctx.attr('K')} columns")
    rows, blocks = ctx.attr("N"), -(-ctx.attr("K") // ctx.attr("block_size"))
    bits = ctx.attr("bits")
    _fit_elements(ctx, 1, rows * blocks * -(-ctx.attr("block_size") * bits // 8))
    _fit_elements(ctx, 2, rows * blocks)
    if ctx.has(3):
        packed = ctx.dtype(3) == ir.DataType.UINT8
        _fit_elements(ctx, 3, rows * (-(-blocks * bits // 8) if packed else blocks))
    ctx.fit(5, (rows,))
    return [(*shape[:-1], ctx.attr("N"))]


@widened
def _gather_block_quantized(
    data: Array,
    indices: Array,
    scales: Array,
    zero_points: Array | None = None,
    *,
    bits: int = 4,
    block_size: int = 128,
    gather_axis: int = 0,
    quantize_axis: int = 1,
) -> Array:
    packed = data.dtype == np.uint8
    axis = quantize_axis % data.ndim
    if packed and bits < 8:
        numbers = unpack(data, bits)
        zero = None if zero_points is None else unpack(zero_points, bits)
    else:
        numbers = data.astype(np.int32)
        zero = None if zero_points is None else zero_points.astype(np.int32)
    if zero is None:
        shift: Any = (1 << (bits - 1)) if packed else 0
    else:
        shift = spread(zero, numbers.shape, axis, block_size)
    real = (numbers - shift) * spread(scales, numbers.shape, axis, block_size)
    where = checked(indices, real.shape[gather_axis], gather_axis)
    return np.take(real, where, gather_axis).astype(scales.dtype)


def _infer_gather(ctx: InferContext) -> Sequence[Any]:
    shape = list(ctx.shape(0))
    if ctx.attr("bits") not in (2, 4, 8) or ctx.attr("block_size") <= 0:
        ctx.fail(
            f"expected 2, 4 or 8 bits a number and a positive block_size, got "
            f"bits={ctx.attr('bits')}, block_size={ctx.attr('block_size')}"
        )
    axis = ctx.axis(ctx.attr("gather_axis"), len(shape), "gather_axis")
    across = ctx.axis(ctx.attr("quantize_axis"), len(shape), "quantize_axis")
    each = 8 // ctx.attr("bits") if ctx.dtype(0) == ir.DataType.UINT8 else 1
    if each > 1 and axis == len(shape) - 1 > 0:
        ctx.fail(f"expected gather_axis={axis} not to be the last one, whose bytes are packed")
    shape[-1] = shape[-1] * each
    blocks = list(shape)
    blocks[across] = ceildiv(shape[across], ctx.attr("block_size"))
    ctx.fit(2, blocks)
    if ctx.has(3):
        ctx.fit(3, (*blocks[:-1], ceildiv(blocks[-1], each)))
    return [TensorType(ctx.dtype(2), (*shape[:axis], *ctx.shape(1), *shape[axis + 1 :]))]


def _levels(packed: Any, bits: int, shape: Sequence[int]) -> Array | None:
    """Return the constant numbers in packed bytes, one a byte, if they are constant."""
    content = content_of(packed)
    if content is None:
        return None
    return unpack(content.reshape(shape), bits).astype(np.uint8)


@composed_wide
def _composed_nbits(
    a: Any,
    b: Any,
    scales: Any,
    zero_points: Any = None,
    g_idx: Any = None,
    bias: Any = None,
    *,
    K: int,
    N: int,
    bits: int = 4,
    block_size: int,
) -> Any:
    """Bytes of one number each stay in memory, not floats: engines make these as they pack."""
    blocks = -(-K // block_size)
    numbers = _levels(b, bits, (N, blocks, -1))
    if numbers is None or (g_idx is not None and shape_of(g_idx) != (0,)):
        return None
    zero: Any = float(1 << (bits - 1))
    if zero_points is not None and dtype_of(zero_points) == ir.DataType.UINT8:
        levels = _levels(zero_points, bits, (N, -1))
        if levels is None:
            return None
        zero = levels[:, :blocks, None].astype(np.float32)
    elif zero_points is not None:
        zero = op("Reshape", op("Cast", zero_points, to=ir.DataType.FLOAT), [N, blocks, 1])
    levels = op("Cast", numbers[..., :block_size], to=ir.DataType.FLOAT)
    scaled = op("Mul", op("Sub", levels, zero), op("Reshape", scales, [N, blocks, 1]))
    rows = op("Reshape", scaled, [N, -1])
    if K % block_size:
        rows = op("Slice", rows, [0], [K], [1])
    y = op("MatMul", a, op("Transpose", rows, perm=[1, 0]))
    return y if bias is None else op("Add", y, bias)


@composed_wide
def _composed_gather(
    data: Any,
    indices: Any,
    scales: Any,
    zero_points: Any = None,
    *,
    bits: int = 4,
    block_size: int = 128,
    gather_axis: int = 0,
    quantize_axis: int = 1,
) -> Any:
    """Rows are looked up first, and only these are dequantised."""
    content = content_of(data)
    rank = rank_of(data)
    along, across = gather_axis % rank, quantize_axis % rank
    if content is None or along == across:
        return None
    packed = dtype_of(data) == ir.DataType.UINT8 and bits < 8
    signed = dtype_of(data) == ir.DataType.INT4
    levels = unpack(content, bits) if packed else np.asarray(content).astype(np.int8)
    numbers = levels.astype(np.int8 if signed else np.uint8)
    length = numbers.shape[across]
    if length % block_size:
        return None
    zero: Any = 0.0 if dtype_of(data) != ir.DataType.UINT8 else float(1 << (bits - 1))
    if zero_points is not None:
        shifts = content_of(zero_points)
        if shifts is None:
            return None
        shifts = unpack(shifts, bits) if packed else np.asarray(shifts).astype(np.int8)
        zero = op("Gather", shifts.astype(np.float32), indices, axis=along)
        zero = op("Unsqueeze", zero, [_after(across, along, indices) + 1])
    rows = op("Cast", op("Gather", numbers, indices, axis=along), to=ir.DataType.FLOAT)
    at = _after(across, along, indices)
    shape = list(shape_of(rows))
    blocks = [*shape[:at], length // block_size, block_size, *shape[at + 1 :]]
    scale = op("Unsqueeze", op("Gather", scales, indices, axis=along), [at + 1])
    scaled = op("Mul", op("Sub", op("Reshape", rows, blocks), zero), scale)
    return op("Reshape", scaled, shape)


def _after(axis: int, gathered: int, indices: Any) -> int:
    """Return where an axis lies after another one was gathered along."""
    return axis if axis < gathered else axis + rank_of(indices) - 1


OPERATORS = (
    OpDef(
        "GatherBlockQuantized",
        _infer_gather,
        _gather_block_quantized,
        domain=DOMAIN,
        compose=_composed_gather,
        vjp=PACKED,
    ),
    OpDef(
        "MatMulNBits",
        _infer_matmul_nbits,
        _matmul_nbits,
        domain=DOMAIN,
        compose=_composed_nbits,
        vjp=PACKED,
    ),
)

SCHEMAS = {
    (DOMAIN, "GatherBlockQuantized"): declare(
        "data:T1, indices:I, scales:T2, zero_points:T1? -> output:T2",
        {"bits": 4, "block_size": 128, "gather_axis": 0, "quantize_axis": 1},
        T1="int4 uint4 uint8",
        T2=FLOATS,
        I="int32 int64",
    ),
    (DOMAIN, "MatMulNBits"): declare(
        "A:T1, B:T2, scales:T1, zero_points:T3?, g_idx:int32?, bias:T1? -> Y:T1",
        {
            "K": INT,
            "N": INT,
            "accuracy_level": 0,
            "bits": 4,
            "block_size": INT,
            "weight_prepacked": 0,
        },
        required=("K", "N", "block_size"),
        T1=FLOATS,
        T2="uint8 int32",
        T3=f"uint8 int32 {FLOATS}",
    ),
}
