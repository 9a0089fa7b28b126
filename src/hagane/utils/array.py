"""Arrays in other sizes."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["as_mat", "as_vec", "empty_like", "size_of_shape", "sum_to"]


def as_vec(x: Any) -> Any:
    """Return the elements of an array as a vector."""
    return x if x.ndim == 1 else x.ravel()


def as_mat(x: Any) -> Any:
    """Return an array as a matrix, with a row for each element of the first axis."""
    return x if x.ndim == 2 else x.reshape(len(x), -1)


def empty_like(x: Any) -> Any:
    """Return an array of the same sizes and element type, whose elements are anything."""
    return np.empty_like(x)


def size_of_shape(shape: Any) -> int:
    """Return the number of elements."""
    return int(np.prod(shape, dtype=np.int64))


def sum_to(x: Any, shape: tuple[int, ...]) -> Any:
    """Return an array summed over the axes along which it would be broadcast from other sizes.

    Args:
        x: An array.
        shape: The sizes, each of them that of the array or 1.

    Raises:
        TypeError: It is a variable, which ``functions.sum_to`` takes.
    """
    if not isinstance(x, np.ndarray | np.generic):
        raise TypeError(
            f"utils.sum_to: expected a numpy.ndarray, got {type(x).__name__}; "
            "functions.sum_to takes variables"
        )
    if x.shape == shape:
        return x
    lead = x.ndim - len(shape)
    axes = (*range(lead), *(lead + i for i, n in enumerate(shape) if n == 1))
    return x.sum(axes, keepdims=True).reshape(shape)
