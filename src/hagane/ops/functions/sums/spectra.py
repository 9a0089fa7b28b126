"""Fourier transforms of complex numbers as pairs of real tensors.

A pair is (real parts, imaginary parts) of one shape; the latter are None where all are zero.
Conventions are those of NumPy: the inverse divides by the length.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hagane.ops.builder import dtype_of, op, rank_of
from hagane.ops.functions.numbers.elementary import add, div, mul, neg, sub, unsqueeze, where
from hagane.ops.functions.tensors.parts import element, flip, part
from hagane.ops.functions.tensors.shapes import zeros_like
from hagane.symbolic import Dim, floordiv

Pair = tuple[Any, Any]


def transform(pair: Pair, axis: int, length: Dim | None = None, *, inverse: bool = False) -> Pair:
    """Return the discrete Fourier transform along an axis, of zeros or fewer elements beyond it.

    Args:
        pair: The numbers.
        axis: Counted from the front.
        length: Of the transform; None for that of the axis.
        inverse: Whether to go back.
    """
    found = op("DFT", _joined(pair), _count(length), axis, inverse=int(inverse))
    return _parts(found)


def half_transform(x: Any, axis: int, length: Dim | None = None) -> Pair:
    """Return the first ``length // 2 + 1`` elements of the transform of real numbers."""
    found = op("DFT", unsqueeze(x, [rank_of(x)]), _count(length), axis, onesided=1)
    return _parts(found)


def real_from_half(pair: Pair, axis: int, length: Dim) -> Any:
    """Return the ``length`` real numbers of which a pair is the first half of the transform.

    The pair has ``length // 2 + 1`` elements along the axis; the others are their conjugates.
    """
    real, imaginary = _both(pair)
    rest = length - floordiv(length, 2) - 1
    mirrored = [flip(part(x, axis, 1, rest), [axis]) for x in (real, imaginary)]
    whole = (
        op("Concat", real, mirrored[0], axis=axis),
        op("Concat", imaginary, neg(mirrored[1]), axis=axis),
    )
    return transform(whole, axis, inverse=True)[0]


def frames(x: Any, window: np.ndarray[Any, Any] | Any, step: int, *, onesided: bool = True) -> Pair:
    """Return the transforms of windows of real signals: (batch, frequencies, frames).

    Args:
        x: Signals, (batch, length).
        window: Factors of a window, (length of a window,).
        step: From one window to the next.
        onesided: Whether to leave out the frequencies that are conjugates of others.
    """
    found = op("STFT", unsqueeze(x, [2]), np.array(step), window, onesided=int(onesided))
    real, imaginary = _parts(op("Transpose", found, perm=[0, 2, 1, 3]))
    return real, imaginary


def overlapped(pair: Pair, window: Any, size: int, step: int) -> tuple[Any, Any]:
    """Return the sums of inverse transforms of frames in windows, and those of squared windows.

    The frames' signal is the former over the latter, where that is not zero.

    Args:
        pair: Frames of one-sided transforms, (batch, size // 2 + 1, frames).
        window: Factors, (size,).
        size: Of a window.
        step: From one window to the next.
    """
    real, imaginary = _both(pair)
    dtype = dtype_of(real).numpy()
    bins, places = np.arange(size // 2 + 1), np.arange(size)
    twice = np.where((bins == 0) | (2 * bins == size), 1.0, 2.0) / size
    angles = 2 * np.pi * bins[:, None] * places / size
    bases = [twice[:, None] * np.cos(angles), -twice[:, None] * np.sin(angles)]
    rows = [mul(base.astype(dtype)[:, None], window) for base in bases]
    joined = op("Concat", real, imaginary, axis=1)
    total = op("ConvTranspose", joined, op("Concat", *rows, axis=0), strides=[step])
    one = mul(element(real, 1, 0), np.array(0, dtype))
    ones = unsqueeze(add(one, np.array(1, dtype)), [1])
    squares = op("Reshape", mul(window, window), [1, 1, size])
    return element(total, 1, 0), element(op("ConvTranspose", ones, squares, strides=[step]), 1, 0)


def product(a: Pair, b: Pair) -> Pair:
    """Return the products of complex numbers."""
    (ar, ai), (br, bi) = a, b
    if ai is None and bi is None:
        return mul(ar, br), None
    if bi is None:
        return mul(ar, br), mul(ai, br)
    if ai is None:
        return mul(ar, br), mul(ar, bi)
    return sub(mul(ar, br), mul(ai, bi)), add(mul(ar, bi), mul(ai, br))


def quotient(a: Pair, b: Pair) -> Pair:
    """Return the quotients of complex numbers, by Smith's method: squares could overflow.

    Source: R. L. Smith, "Algorithm 116: Complex division", Communications of the ACM 5, 1962.
    """
    real, imaginary = b
    if imaginary is None:
        return div(a[0], real), None if a[1] is None else div(a[1], real)
    if isinstance(real, int | float):
        one = 1 / complex(real, imaginary)
        return product(a, (one.real, one.imag))
    is_flat = op("GreaterOrEqual", op("Abs", real), op("Abs", imaginary))
    large, small = where(is_flat, real, imaginary), where(is_flat, imaginary, real)
    ratio = where(op("Equal", large, 0), zeros_like(large), div(small, large))
    size = add(large, mul(small, ratio))
    if a[1] is None:
        along, across = a[0], mul(a[0], ratio)
        return (
            div(where(is_flat, along, across), size), neg(div(where(is_flat, across, along), size))
        )  # fmt: skip
    along, across = where(is_flat, *a), where(is_flat, a[1], a[0])
    turned = where(is_flat, sub(a[1], mul(a[0], ratio)), sub(mul(a[1], ratio), a[0]))
    return div(add(along, mul(across, ratio)), size), div(turned, size)


def _both(pair: Pair) -> Pair:
    real, imaginary = pair
    return real, zeros_like(real) if imaginary is None else imaginary


def _joined(pair: Pair) -> Any:
    rank = rank_of(pair[0])
    present = [unsqueeze(x, [rank]) for x in pair if x is not None]
    return op("Concat", *present, axis=rank) if len(present) == 2 else present[0]


def _parts(joined: Any) -> Pair:
    last = rank_of(joined) - 1
    return element(joined, last, 0), element(joined, last, 1)


def _count(length: Dim | None) -> Any:
    if length is None or isinstance(length, int):
        return None if length is None else np.array(length)
    return op("Squeeze", [length], [0])
