"""Names that Chainer's programs ask for at the top, and that mean little on one CPU."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any, TextIO

import numpy as np

from hagane.nn.autograd.configuration import config

disable_experimental_feature_warning = False


class PerformanceWarning(Warning):
    """Something that works, and could be faster."""


def get_array_types() -> tuple[type, ...]:
    """Return the classes of arrays."""
    return (np.ndarray,)


def get_cpu_array_types() -> tuple[type, ...]:
    """Return the classes of arrays in this machine's memory."""
    return (np.ndarray,)


def is_arrays_compatible(arrays: Sequence[Any]) -> bool:
    """Return whether arrays can be used together."""
    return all(array is None or isinstance(array, np.ndarray) for array in arrays)


def get_compute_mode() -> Any:
    """Return the configured mode of computation."""
    return config.compute_mode


def print_runtime_info(out: TextIO | None = None) -> None:
    """Print the versions of the libraries that compute.

    Args:
        out: Where to, by default the standard output.
    """
    import platform

    import hagane

    target = sys.stdout if out is None else out
    print(f"Platform: {platform.platform()}", file=target)
    print(f"hagane: {hagane.__version__}", file=target)
    print(f"NumPy: {np.__version__}", file=target)
    target.flush()


def static_graph(*args: Any, **kwargs: Any) -> Any:
    """Return the decorated function as it is: graphs are not replayed."""
    return args[0] if args and callable(args[0]) else _as_it_is


def static_code(*args: Any, **kwargs: Any) -> Any:
    """Return the decorated function as it is."""
    return args[0] if args and callable(args[0]) else _as_it_is


def _as_it_is(function: Callable[..., Any]) -> Callable[..., Any]:
    return function
