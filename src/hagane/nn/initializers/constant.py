"""Arrays of one value, and such with ones on their diagonal."""

from __future__ import annotations

from typing import Any

import numpy as np

from hagane.nn.initializers.initializer import Initializer


class Constant(Initializer):
    """Fills with one value, or with the elements of an array."""

    def __init__(self, fill_value: Any, dtype: Any = None):
        self.fill_value = fill_value
        super().__init__(dtype)

    def __call__(self, array: Any) -> None:
        """Fill an array in place."""
        if self.dtype is not None:
            assert array.dtype == np.dtype(self.dtype), f"{array.dtype} != {self.dtype}"
        value = np.asarray(self.fill_value)
        try:
            array[...] = value
        except ValueError as error:
            raise ValueError(
                f"initializer: expected an array that fills {array.shape}, got {value.shape}"
            ) from error


class Zero(Constant):
    """Fills with zeros."""

    def __init__(self, dtype: Any = None):
        super().__init__(0.0, dtype)


class One(Constant):
    """Fills with ones."""

    def __init__(self, dtype: Any = None):
        super().__init__(1.0, dtype)


class NaN(Constant):
    """Fills with NaN."""

    def __init__(self, dtype: Any = None):
        super().__init__(np.nan, dtype)


class Identity(Initializer):
    """Fills a square matrix with ``scale`` times the identity."""

    def __init__(self, scale: float = 1.0, dtype: Any = None):
        self.scale = scale
        super().__init__(dtype)

    def __call__(self, array: Any) -> None:
        """Fill a matrix in place.

        Raises:
            ValueError: It is not square.
        """
        if array.ndim != 2 or array.shape[0] != array.shape[1]:
            raise ValueError(
                f"Identity: expected a square matrix, got an array of shape {array.shape}"
            )
        array[...] = 0
        np.fill_diagonal(array, self.scale)
