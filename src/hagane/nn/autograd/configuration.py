"""Configuration of define-by-run programs: one for all threads, overridden by each thread."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO

import numpy as np

from hagane.errors import InvalidArgument


class GlobalConfig:
    """Values of all threads, one an attribute.

    Attributes:
        debug: Whether results that are not numbers are errors that name their function.
        enable_backprop: Whether computations are recorded.
        train: Whether links behave as in training.
        type_check: Whether the types of arguments are checked.
        dtype: The element type of parameters and of converters' results.
        keep_graph_on_report: Whether reported variables keep their graph.
        lazy_grad_sum: Kept for programs that set it; sums are made at once.
    """

    debug: bool
    enable_backprop: bool
    train: bool
    type_check: bool
    dtype: Any

    def show(self, file: TextIO | None = None) -> None:
        """Print the values, one a line."""
        _show(vars(self), file)


class LocalConfig(threading.local):
    """Values of one thread, which stand before those of all threads."""

    def __init__(self, fallback: GlobalConfig):
        self.__dict__["_fallback"] = fallback

    def __getattr__(self, name: str) -> Any:
        if name == "_fallback":
            raise AttributeError(name)
        return getattr(self.__dict__["_fallback"], name)

    def __delattr__(self, name: str) -> None:
        try:
            del self.__dict__[name]
        except KeyError:
            raise AttributeError(f"the configuration of this thread has no '{name}'") from None

    def show(self, file: TextIO | None = None) -> None:
        """Print the values as this thread sees them, one a line."""
        own = {key: item for key, item in vars(self).items() if key != "_fallback"}
        _show({**vars(self.__dict__["_fallback"]), **own}, file)


def _show(values: dict[str, Any], file: TextIO | None) -> None:
    width = max(map(len, values), default=0)
    for name in sorted(values):
        print(f"{name:<{width}} {values[name]}", file=sys.stdout if file is None else file)


class Mixed16:
    """The element type of a mixed precision: float16, and float32 in norms of batches."""

    dtype = np.dtype(np.float16)

    def __repr__(self) -> str:
        return "dtype('mixed16')"


mixed16 = Mixed16()
global_config = GlobalConfig()
config = LocalConfig(global_config)


def _from_environment(name: str, default: str) -> bool:
    return bool(int(os.environ.get(f"CHAINER_{name}", default)))


def _dtype_from_environment() -> Any:
    name = os.environ.get("CHAINER_DTYPE", "float32")
    if name == "mixed16":
        return mixed16
    if name in ("float16", "float32", "float64"):
        return np.dtype(name)
    raise InvalidArgument(
        f"CHAINER_DTYPE: expected float16, float32, float64 or mixed16, got '{name}'"
    )


def _set_defaults(values: GlobalConfig) -> None:
    defaults = {
        "debug": _from_environment("DEBUG", "0"),
        "enable_backprop": True,
        "train": True,
        "type_check": _from_environment("TYPE_CHECK", "1"),
        "dtype": _dtype_from_environment(),
        "keep_graph_on_report": _from_environment("KEEP_GRAPH_ON_REPORT", "0"),
        "lazy_grad_sum": _from_environment("LAZY_GRAD_SUM", "0"),
        "warn_nondeterministic": False,
        "deterministic": False,
        "autotune": False,
        "cudnn_deterministic": False,
        "cudnn_fast_batch_normalization": False,
        "use_cudnn": "auto",
        "use_cudnn_tensor_core": "auto",
        "use_ideep": "never",
        "use_static_graph": True,
        "schedule_func": None,
        "in_recomputing": False,
        "_will_recompute": False,
        "compute_mode": None,
    }
    for name, item in defaults.items():
        setattr(values, name, item)


_set_defaults(global_config)
_ABSENT = object()
_GLOBAL = global_config.__dict__


def read(name: str) -> Any:
    """Return one value as this thread sees it: ``getattr(config, name)`` at less cost."""
    own = config.__dict__
    return own[name] if name in own else _GLOBAL[name]


def modes() -> tuple[bool, bool]:
    """Return whether computations are recorded, and whether the debug mode is on."""
    own = config.__dict__
    recorded = own["enable_backprop"] if "enable_backprop" in own else _GLOBAL["enable_backprop"]
    return recorded, own["debug"] if "debug" in own else _GLOBAL["debug"]


@contextmanager
def using_config(name: str, value: Any, config: Any = config) -> Iterator[None]:
    """Set one value of a configuration inside a ``with`` block.

    Args:
        name: The value's name.
        value: Its value inside the block.
        config: The configuration, by default that of the thread.
    """
    values = config.__dict__
    before = values.get(name, _ABSENT)
    setattr(config, name, value)
    try:
        yield
    finally:
        if before is _ABSENT:
            delattr(config, name)
        else:
            setattr(config, name, before)


def no_backprop_mode() -> Any:
    """Return a context in which computations are not recorded."""
    return using_config("enable_backprop", False)


def force_backprop_mode() -> Any:
    """Return a context in which computations are recorded, inside ``no_backprop_mode`` too."""
    return using_config("enable_backprop", True)


enable_backprop_mode = force_backprop_mode


def is_debug() -> bool:
    """Return whether results that are not numbers are errors."""
    return bool(config.debug)


def set_debug(debug: bool) -> None:
    """Set whether results that are not numbers are errors, in this thread."""
    config.debug = debug


class DebugMode:
    """A context with the debug mode set; ``using_config('debug', …)`` does the same."""

    def __init__(self, debug: bool):
        self._using = using_config("debug", debug)

    def __enter__(self) -> None:
        self._using.__enter__()

    def __exit__(self, *details: Any) -> None:
        self._using.__exit__(*details)


def get_dtype(dtype: Any = None, map_mixed16: Any = None) -> np.dtype[Any]:
    """Return an element type, by default the configured one.

    Args:
        dtype: An element type, None for the configured one.
        map_mixed16: The type of the mixed precision, by default float16.
    """
    if dtype is None:
        dtype = config.dtype
    if dtype is mixed16 and map_mixed16 is not None:
        dtype = map_mixed16
    found: np.dtype[Any] = np.dtype(dtype)
    return found
