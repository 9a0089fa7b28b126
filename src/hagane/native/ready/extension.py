"""C extension modules, compiled once: calls that ctypes lacks, or makes slowly."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hagane.machine import CodeCache, Lock, NoCompiler, notice
from hagane.machine.cache import make_module, open_module
from hagane.native.c import c_source

if TYPE_CHECKING:
    from hagane.machine import Compiler

# Functions by which other C reads contexts and tables.
TABLE_HEADERS = ("engine.h", "tables.h", "context.h")


def load_extension() -> Any | None:
    """Return the engine's module, or None where there can be none; see ``load_module``."""
    return load_module("call", _engine_source)


def load_module(name: str, source: Callable[[], str]) -> Any | None:
    """Return a module in C, or None where there can be none: Python's headers may be missing.

    If they are there and it cannot be compiled or loaded, a notice says why.

    Args:
        name: The module is ``hagane_`` and this.
        source: Returns its text.
    """
    import sysconfig

    from hagane.machine.compiler import find_compiler

    try:
        compiler = find_compiler()
    except NoCompiler:
        return None  # said of the model, which cannot be compiled either
    include = (sysconfig.get_paths()["include"], np.get_include())
    if not (Path(include[0]) / "Python.h").exists():
        return None
    with _making:
        return _module(name, source, compiler, include)


def _engine_source() -> str:
    return c_source(*TABLE_HEADERS, "call.c")


_making = Lock()


@cache
def _module(
    name: str, source: Callable[[], str], compiler: Compiler, include: tuple[str, str]
) -> Any | None:
    """Return the module or None; after one failure it is not tried again in this process."""
    try:
        return _compiled(name, source(), compiler, include)
    except (ImportError, OSError) as error:
        notice(f"calls take longer than they could: the engine's module cannot be made: {error}")
        return None


def _compiled(name: str, source: str, compiler: Compiler, include: tuple[str, str]) -> Any:
    flags = ("-O2", "-std=gnu11", "-fPIC", "-w", *(f"-I{folder}" for folder in include))
    return make_module(CodeCache("native"), name, source, compiler, flags, np.__version__)


def open_extension(path: Path, name: str = "call") -> Any:
    """Return the module of a library; it is loaded once.

    Raises:
        ImportError: It cannot be loaded.
    """
    return open_module(path, name)
