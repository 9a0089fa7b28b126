"""C extension modules, compiled once: calls that ctypes lacks, or makes slowly."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from hagane.machine.cache import load_module as _load_module
from hagane.machine.cache import open_module
from hagane.native.c import c_source

# Functions by which other C reads contexts and tables.
TABLE_HEADERS = ("engine.h", "tables.h", "context.h")


def load_extension() -> Any | None:
    """Return the engine's module, or None where there can be none; see ``load_module``."""
    return load_module("call", _engine_source)


def load_module(name: str, source: Callable[[], str]) -> Any | None:
    """Return a module in C that may use NumPy's headers, or None where there can be none.

    Args:
        name: The module is ``hagane_`` and this.
        source: Returns its text.
    """
    return _load_module(name, source, (np.get_include(),), np.__version__)


def _engine_source() -> str:
    return c_source(*TABLE_HEADERS, "entry.h", "frames.c", "results.c", "call.c")


def open_extension(path: Path, name: str = "call") -> Any:
    """Return the module of a library; it is loaded once.

    Raises:
        ImportError: It cannot be loaded.
    """
    return open_module(path, name)
