"""C extension modules, compiled once: calls that ctypes lacks, or makes slowly."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import sysconfig
import threading
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from hagane.machine import CodeCache, Compiler, Lock, NoCompiler, find_compiler, notice
from hagane.native.c import c_source
from hagane.native.run.engine import TABLE_HEADERS, load_engine

_lock = Lock()


def load_extension() -> Any | None:
    """Return the module, or None where there can be none; see ``load_module``."""
    return load_module("call", _engine_source)


def load_module(name: str, source: Callable[[], str]) -> Any | None:
    """Return a module in C, or None where there can be none: Python's headers may be missing.

    If they are there and it cannot be compiled or loaded, a notice says why.

    Args:
        name: The module is ``hagane_`` and this.
        source: Returns its text.
    """
    try:
        compiler = find_compiler()
    except NoCompiler:
        return None  # said of the model, which cannot be compiled either
    include = (sysconfig.get_paths()["include"], np.get_include())
    if not (Path(include[0]) / "Python.h").exists():
        return None
    with _lock:
        return _module(name, source, compiler, include)


def _engine_source() -> str:
    return c_source(*TABLE_HEADERS, "call.c")


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
    key = "\0".join((source, np.__version__, *flags, *compiler.command, compiler.version))

    def build(folder: Path) -> Path:
        written = folder / f"{name}.c"
        written.write_text(source, encoding="utf-8")
        library = folder / f"{name}.so"
        compiler.build([written], library, flags)
        return library

    def load(path: Path) -> Any:
        loader = importlib.machinery.ExtensionFileLoader(f"hagane_{name}", str(path))
        spec = importlib.util.spec_from_loader(f"hagane_{name}", loader)
        assert spec is not None
        module = importlib.util.module_from_spec(spec)
        loader.exec_module(module)
        return module

    return CodeCache("native").load(key, build, load)


@cache
def make_ahead() -> None:
    """Begin to compile the engine and this module, once a process; returns at once.

    On a machine whose cache has both, they are only mapped. A failure is left to the session that
    needs them, which says what is wrong.
    """
    for make in (load_engine, load_extension):
        threading.Thread(target=_tried, args=(make,), name=f"hagane {make.__name__}").start()


def _tried(make: Callable[[], object]) -> None:
    try:
        make()
    except Exception:  # whatever it is, it comes again where it can be told
        return
