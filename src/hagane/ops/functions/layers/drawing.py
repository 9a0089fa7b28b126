"""Random numbers that follow from a seed and a position alone, so that nothing is kept."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.ops.builder import dtype_of, op, shape_of
from hagane.ops.functions.numbers.elementary import add, cast, div, mul, where
from hagane.ops.functions.tensors.parts import resized
from hagane.symbolic import Dim, product

_UINT32 = ir.DataType.UINT32
_SATURATED = 1.7580993408473766  # minus the limit of SELU far below zero
_STREAM = 0x9E3779B9  # sets the positions of one array apart from those of the next


def _number(value: int) -> Any:
    return np.array(value, np.uint32)


def _xor_shifted(x: Any, bits: int) -> Any:
    return op("BitwiseXor", x, op("BitShift", x, _number(bits), direction="RIGHT"))


def _mixed(x: Any) -> Any:
    """Return 32 bits that depend on all bits of ``x`` (Wellons, "lowbias32", 2018)."""
    x = op("Mul", _xor_shifted(x, 16), _number(0x7FEB352D))
    x = op("Mul", _xor_shifted(x, 15), _number(0x846CA68B))
    return _xor_shifted(x, 16)


def random_bits(seed: Any, stream: int, count: Dim) -> Any:
    """Return uniform numbers of 32 bits.

    Args:
        seed: Two numbers, uint32.
        stream: Which array of the program it is; others of the same seed are independent.
        count: How many.

    Returns:
        (count,), uint32.
    """
    first, second = (op("Gather", seed, np.array(place)) for place in (0, 1))
    places = cast(op("Range", 0, count, 1), _UINT32)
    key = op("Add", second, _number(stream * _STREAM & 0xFFFFFFFF))
    return _mixed(op("Add", _mixed(op("BitwiseXor", places, first)), _mixed(key)))


def dropped(x: Any, share: float, seed: Any, stream: int, axes: int | None = None) -> Any:
    """Return ``x`` with a random share of it zero, and the rest larger by as much.

    Args:
        x: Floats.
        share: The probability of each element to become zero, from 0 to 1.
        seed: Two numbers, uint32.
        stream: Which array of the program it is.
        axes: How many first axes have draws of their own, along the others all elements share
            one; all if None.
    """
    zero = np.array(0, dtype_of(x).numpy())
    if share >= 1:
        return mul(x, zero)
    kept = _kept(x, share, seed, stream, axes)
    return where(kept, div(x, np.array(1 - share, dtype_of(x).numpy())), zero)


def alpha_dropped(x: Any, share: float, seed: Any, stream: int, axes: int | None = None) -> Any:
    """Return ``x`` with a random share of it saturated, and all scaled to keep mean and variance.

    Elements of mean 0 and variance 1 have them afterwards (Klambauer et al., 2017, section 3).

    Args:
        x: Floats.
        share: The probability of each element to be dropped, from 0 to 1.
        seed: Two numbers, uint32.
        stream: Which array of the program it is.
        axes: As of :func:`dropped`.
    """
    number = dtype_of(x).numpy().type
    if share >= 1:
        return mul(x, np.array(0, number))
    scale = 1 / math.sqrt((_SATURATED**2 * share + 1) * (1 - share))
    kept = _kept(x, share, seed, stream, axes)
    chosen = where(kept, x, np.array(-_SATURATED, number))
    return add(mul(chosen, np.array(scale, number)), np.array(scale * _SATURATED * share, number))


def _kept(x: Any, share: float, seed: Any, stream: int, axes: int | None) -> Any:
    """Return which elements are not dropped, ready to broadcast against ``x``."""
    sizes = list(shape_of(x))
    own = sizes if axes is None else [*sizes[:axes], *[1] * (len(sizes) - axes)]
    bits = resized(random_bits(seed, stream, product(own)), own)
    return op("GreaterOrEqual", bits, _number(min(round(share * 2**32), 2**32 - 1)))
