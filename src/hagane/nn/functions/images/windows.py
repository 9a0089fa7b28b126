"""Sizes of sliding windows, as Chainer counts them."""

from __future__ import annotations

from typing import Any

from hagane.errors import WrongLength


def get_conv_outsize(size: int, k: int, s: int, p: int, cover_all: bool = False, d: int = 1) -> int:
    """Return the number of windows along an axis.

    Args:
        size: The size of the axis.
        k: Of the window.
        s: The stride.
        p: Padding on each side.
        cover_all: Whether every element lies in a window, the last reaching over the end.
        d: The dilation.
    """
    extent = k + (k - 1) * (d - 1)
    if cover_all:
        return (size + p * 2 - extent + s - 1) // s + 1
    return (size + p * 2 - extent) // s + 1


def get_deconv_outsize(
    size: int, k: int, s: int, p: int, cover_all: bool = False, d: int = 1
) -> int:
    """Return the size of an axis from the number of its windows."""
    extent = (k - 1) * d + 1
    if cover_all:
        return s * (size - 1) + extent - s + 1 - 2 * p
    return s * (size - 1) + extent - 2 * p


def as_tuple(x: Any, n: int) -> tuple[int, ...]:
    """Return a number ``n`` times, or a sequence of that length.

    Raises:
        WrongLength: It has another length.
    """
    if hasattr(x, "__getitem__"):
        found = tuple(int(one) for one in x)
        if len(found) != n:
            raise WrongLength(f"expected {n} numbers, got {x}")
        return found
    return (int(x),) * n
