"""Weights of matrix products as 2, 4 or 8 bits, in blocks: what ONNX Runtime's module computes.

``onnxruntime.quantization.matmul_nbits_quantizer`` asks for it; the results are the inputs of
MatMulNBits and of DequantizeLinear.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hagane.onnxruntime.raised import BoundError

_Numbers = NDArray[Any]

# Magnitudes up to each bound get the code of its place, by the digits of bitsandbytes' source.
_FP4_BOUNDS = np.array(
    [0.00260417, 0.0859375, 0.20833333, 0.29166667, 0.4166667, 0.583333, 0.8333333], np.float32
)
_FP4_CODES = np.array([0, 1, 6, 7, 4, 5, 2, 3], np.uint8)


def quantizer_of_columns(bits: int) -> Callable[..., None]:
    """Return ``quantize_matmul_…bits``, which fills arrays for MatMulNBits."""

    def quantize(
        dst: _Numbers,
        src: _Numbers,
        scale: _Numbers,
        zero_points: _Numbers,
        block_size: int,
        N: int,
        K: int,
        is_symmetric: bool,
    ) -> None:
        """Quantise a matrix in blocks along its columns.

        Args:
            dst: uint8 ``(N, blocks, block_size * bits / 8)``: filled, the lowest bits first.
            src: float32 or float16 ``(K, N)``, or with more rows.
            scale: ``(N, blocks)``: filled.
            zero_points: uint8 ``(N, blocks * bits / 8)``: filled, unless ``is_symmetric``.
            block_size: Rows of a block.
            N: Columns.
            K: Rows.
            is_symmetric: Whether zero stands in the middle of the range.
        """
        blocks = -(-K // block_size)
        weights = _in_blocks(src, K, N, block_size).transpose(2, 0, 1)  # N, blocks, block_size
        scales, zeros = _ranges(weights, bits, scale.dtype, symmetric=is_symmetric)
        codes = _rounded(weights, scales, zeros, bits)
        if K % block_size and (rest := np.arange(blocks * block_size) >= K).any():
            codes[:, rest.reshape(blocks, block_size)] = 0
        _fill("dst", dst, _packed(codes, bits))
        _fill("scale", scale, scales)
        if not is_symmetric:
            short = -blocks % (8 // bits)  # in the last byte: the middle, as there
            whole = np.pad(zeros, [(0, 0), (0, short)], constant_values=1 << (bits - 1))
            _fill("zero_points", zero_points, _packed(whole.astype(np.uint8), bits))

    quantize.__name__ = quantize.__qualname__ = f"quantize_matmul_{bits}bits"
    return quantize


def quantize_matmul_bnb4(
    dst: _Numbers,
    src: _Numbers,
    absmax: _Numbers,
    block_size: int,
    quant_type: int,
    N: int,
    K: int,
) -> None:
    """Quantise a matrix to codes of four bits in blocks of its elements, for MatMulBnb4.

    Args:
        dst: uint8 ``(N * K / 2,)``: filled, the first code of a byte above.
        src: float32 or float16, of N * K elements.
        absmax: ``(blocks,)``: filled with the largest absolute value of each block.
        block_size: Elements of a block.
        quant_type: 0 for FP4, 1 for NF4.
        N: Columns.
        K: Rows.
    """
    count = N * K
    values = np.zeros(-(-count // block_size) * block_size, np.float32)
    values[:count] = src.ravel()[:count]
    blocks = values.reshape(-1, block_size)
    largest = np.abs(blocks).max(axis=1)
    with np.errstate(divide="ignore"):
        inverse = np.where(largest != 0, np.float32(1) / largest, np.float32(0))
    # (A last code alone in its byte stands before that of a zero.)
    scaled = np.pad((blocks * inverse[:, None]).ravel()[:count], (0, count % 2))
    if quant_type == 0:
        codes = _FP4_CODES[np.searchsorted(_FP4_BOUNDS, np.abs(scaled))]
        codes = codes + np.where(scaled < 0, 8, 0).astype(np.uint8)
    else:
        from hagane.ops.contrib.bnb4 import TABLES  # with all operators

        numbers = TABLES[1].astype(np.float64)
        bounds = ((numbers[1:] + numbers[:-1]) / 2).astype(np.float32)
        codes = np.searchsorted(bounds, scaled).astype(np.uint8)
    pairs = codes.reshape(-1, 2)
    _fill("dst", dst, (pairs[:, 0] << 4 | pairs[:, 1]).astype(np.uint8))
    _fill("absmax", absmax, largest.astype(absmax.dtype))


def quantizer_of_rows(bits: int) -> Callable[..., bool]:
    """Return ``quantize_qdq_matmul_…bits``, which fills arrays for DequantizeLinear."""

    def quantize(
        dst: _Numbers,
        src: _Numbers,
        scale: _Numbers,
        zero_points: _Numbers,
        quant_block_size: int,
        N: int,
        K: int,
        is_symmetric: bool,
    ) -> bool:
        """Quantise a matrix in blocks along its columns, and keep its order.

        Args:
            dst: uint8 ``(K * N * bits / 8,)``: filled, the lowest bits first.
            src: float32 or float16 ``(K, N)``.
            scale: ``(blocks, N)``: filled.
            zero_points: uint8 ``(blocks * N * bits / 8,)``: filled, unless ``is_symmetric``.
            quant_block_size: Rows of a block.
            N: Columns.
            K: Rows.
            is_symmetric: Whether numbers have signs, and zero is zero.

        Returns:
            Whether numbers have signs.
        """
        weights = _in_blocks(src, K, N, quant_block_size)
        scales, zeros = _ranges(
            weights.transpose(2, 0, 1), bits, scale.dtype, symmetric=is_symmetric
        )
        codes = _rounded(weights.transpose(2, 0, 1), scales, zeros, bits)
        middle = 1 << (bits - 1) if is_symmetric else 0
        plain = (codes ^ middle).transpose(1, 2, 0).reshape(-1, N)[:K]
        _fill("dst", dst, _packed(plain.reshape(-1), bits))
        _fill("scale", scale, scales.T)
        if not is_symmetric:
            _fill("zero_points", zero_points, _packed(zeros.T.reshape(-1).astype(np.uint8), bits))
        return bool(is_symmetric)

    quantize.__name__ = quantize.__qualname__ = f"quantize_qdq_matmul_{bits}bits"
    return quantize


def _in_blocks(src: _Numbers, rows: int, columns: int, size: int) -> _Numbers:
    """Return a matrix as ``(blocks, size, columns)``, rows that are missing as zeros."""
    given = np.asarray(src)
    if given.ndim != 2 or given.shape[0] < rows or given.shape[1] != columns:
        raise BoundError(f"expected src of shape ({rows}, {columns}), got {given.shape}")
    blocks = -(-rows // size)
    whole = np.zeros((blocks * size, columns), np.float32)
    whole[:rows] = given[:rows]
    return whole.reshape(blocks, size, columns)


def _ranges(
    weights: _Numbers, bits: int, dtype: np.dtype[Any], *, symmetric: bool
) -> tuple[_Numbers, _Numbers]:
    """Return the scale and the code of zero of each block, ``(columns, blocks)``."""
    least = np.minimum(weights.min(axis=2), np.float32(0))
    most = np.maximum(weights.max(axis=2), np.float32(0))
    top = (1 << bits) - 1
    if symmetric:
        middle = 1 << (bits - 1)
        widest = np.where(np.abs(most) > np.abs(least), most, least)
        return (widest / np.float32(-middle)).astype(dtype), np.full(widest.shape, middle)
    scales = (most - least) / np.float32(top)
    with np.errstate(divide="ignore", invalid="ignore"):
        zeros = np.where(scales != 0, -least / scales, least)
    return scales.astype(dtype), np.floor(np.clip(zeros, 0, top) + 0.5)


def _rounded(weights: _Numbers, scales: _Numbers, zeros: _Numbers, bits: int) -> _Numbers:
    """Return the codes of weights, halves rounded up."""
    wide = scales.astype(np.float32)
    with np.errstate(divide="ignore"):
        inverse = np.where(wide != 0, np.float32(1) / wide, np.float32(0))
    scaled = (weights * inverse[..., None]).astype(np.float64) + zeros[..., None]
    return np.clip(np.floor(scaled + 0.5), 0, (1 << bits) - 1).astype(np.uint8)


def _packed(codes: _Numbers, bits: int) -> _Numbers:
    """Return codes along the last axis in bytes, the first in the lowest bits."""
    each = 8 // bits
    short = -codes.shape[-1] % each
    padded = np.pad(codes, [(0, 0)] * (codes.ndim - 1) + [(0, short)])
    parts = padded.reshape(*codes.shape[:-1], -1, each)
    shifts = np.arange(each, dtype=np.uint8) * np.uint8(bits)
    packed: _Numbers = np.bitwise_or.reduce(parts << shifts, axis=-1).astype(np.uint8)
    return packed


def _fill(name: str, target: _Numbers, content: _Numbers) -> None:
    if target.size != content.size:
        raise BoundError(f"expected {name} of {content.size} elements, got {target.size}")
    target[...] = content.reshape(target.shape)
