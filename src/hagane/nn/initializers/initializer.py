"""The base of initializers, which fill the arrays of parameters."""

from __future__ import annotations

from typing import Any

import numpy as np

from hagane.nn.autograd.configuration import get_dtype


class Initializer:
    """Base of fillers of arrays.

    Attributes:
        dtype: The element type of arrays that it makes, None for the configured one.
    """

    def __init__(self, dtype: Any = None):
        self.dtype = dtype

    def __call__(self, array: Any) -> None:
        """Fill an array in place."""
        raise NotImplementedError


def generate_array(
    initializer: Any, shape: Any, xp: Any = np, dtype: Any = None, device: Any = None
) -> Any:
    """Return an array that an initializer filled.

    Args:
        initializer: The filler.
        shape: Its sizes; a number for one axis.
        xp: NumPy.
        dtype: Its element type, by default the initializer's, else the configured one.
        device: The CPU.

    Raises:
        ValueError: ``dtype`` is not that of the initializer, or a size is negative.
    """
    wanted = getattr(initializer, "dtype", None)
    if dtype is not None and wanted is not None and np.dtype(dtype) != np.dtype(wanted):
        raise ValueError(
            f"dtype mismatch: {dtype} was asked for, and the initializer makes {wanted}"
        )
    found = get_dtype(dtype if wanted is None else wanted)
    try:
        array = np.empty(shape, dtype=found)
    except ValueError as error:
        raise ValueError(f"expected sizes of 0 or more for a parameter, got {shape}") from error
    initializer(array)
    return array


def get_fans(shape: tuple[int, ...]) -> tuple[int, int]:
    """Return how many inputs and outputs each element of a weight connects.

    Raises:
        ValueError: There are fewer than two axes.
    """
    if not isinstance(shape, tuple):
        raise ValueError(f"expected shape to be a tuple, got {type(shape)}")
    if len(shape) < 2:
        raise ValueError(f"expected a shape of two or more axes, got {shape}")
    receptive = 1
    for size in shape[2:]:
        receptive *= size
    return shape[1] * receptive, shape[0] * receptive
