"""Variables as text."""

from __future__ import annotations

from typing import Any

import numpy as np


def described(variable: Any) -> str:
    """Return the type, the place, and mean and deviation of an array and its gradient."""
    array, grad = variable.array, variable._grad
    if grad is None:
        shown: Any = None
    elif np.all(grad == 0):
        shown = 0
    else:
        shown = _statistics(grad)
    lines = [
        variable.summary(),
        f"- device: {None if array is None else 'CPU'}",
        f"- backend: {None if array is None else type(array)}",
        f"- shape: {getattr(array, 'shape', None)}",
        f"- dtype: {getattr(array, 'dtype', None)}",
        f"- statistics: {None if array is None else _statistics(array)}",
        f"- grad: {shown}",
    ]
    return "\n".join(lines)


def _statistics(array: Any) -> str:
    return f"mean={float(np.mean(array)):.8f}, std={float(np.std(array)):.8f}"


def written(variable: Any, write: Any) -> str:
    """Return a variable as ``repr`` or ``str`` shows it.

    Args:
        variable: The variable.
        write: ``repr`` or ``str``.
    """
    array = variable.array
    label = f"variable {variable.name}" if variable.name else "variable"
    separator = ", " if write is repr else " "
    if array is None:
        text = "None"
    elif write is repr and array.size == 0 and array.shape != (0,):
        text = f"[], shape={array.shape}"
    else:
        text = np.array2string(array, separator=separator, prefix=f"{label}(")
    return f"{label}({text})"
