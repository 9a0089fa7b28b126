"""Arrays to compare and to test with, and links that are saved and loaded."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from typing import Any

import numpy as np

from hagane.nn.autograd.variable import Variable
from hagane.nn.serializers import load_hdf5, load_npz, save_hdf5, save_npz


def _array(x: Any) -> Any:
    return np.asarray(x.array if isinstance(x, Variable) else x)


def assert_allclose(
    x: Any, y: Any, atol: float = 1e-5, rtol: float = 1e-4, verbose: bool = True
) -> None:
    """Check that arrays, or variables, are equal but for rounding.

    Args:
        x: What came.
        y: What was expected.
        atol: How much elements may differ.
        rtol: The same, in relation to the expected ones.
        verbose: Whether the message shows the arrays.

    Raises:
        AssertionError: They differ.
    """
    np.testing.assert_allclose(_array(x), _array(y), atol=atol, rtol=rtol, verbose=verbose)


def generate_matrix(
    shape: tuple[int, ...], dtype: Any = float, *, singular_values: Any = None
) -> Any:
    """Return drawn matrices of given singular values, from ``numpy.random``.

    Args:
        shape: (*batch, rows, columns).
        dtype: The element type, floating or complex.
        singular_values: Numbers that broadcast to (*batch, smaller size).

    Raises:
        ValueError: The shape has fewer than two axes, or a value is negative.
        TypeError: No values are given, or they are complex.
    """
    if len(shape) <= 1:
        raise ValueError(f"generate_matrix: expected a shape of two or more axes, got {shape}")
    if singular_values is None:
        raise TypeError("generate_matrix: expected singular_values, got None")
    kind = np.dtype(dtype)
    if kind.kind not in "fc":
        raise TypeError(f"generate_matrix: expected a floating or complex dtype, got {kind}")
    values = np.asarray(singular_values)
    if values.dtype.kind == "c":
        raise TypeError("generate_matrix: expected singular_values to be real")
    if (values < 0).any():
        raise ValueError("generate_matrix: expected singular_values not to be negative")
    drawn = np.random.randn(*shape)
    if kind.kind == "c":
        drawn = drawn + 1j * np.random.randn(*shape)
    left, _, right = np.linalg.svd(drawn, full_matrices=False)
    sizes = np.broadcast_to(values, (*shape[:-2], min(shape[-2:])))
    return ((left * sizes[..., None, :]) @ right).astype(kind)


def save_and_load(
    src: Any,
    dst: Any,
    filename: str,
    saver: Callable[[str, Any], None],
    loader: Callable[[str, Any], None],
) -> None:
    """Save an object in a file of a temporary folder, and load another from it."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, filename)
        saver(path, src)
        loader(path, dst)


def save_and_load_npz(src: Any, dst: Any) -> None:
    """Save an object as npz, and load another from it."""
    save_and_load(src, dst, "tmp.npz", save_npz, load_npz)


def save_and_load_hdf5(src: Any, dst: Any) -> None:
    """Save an object as HDF5, and load another from it."""
    save_and_load(src, dst, "tmp.h5", save_hdf5, load_hdf5)
