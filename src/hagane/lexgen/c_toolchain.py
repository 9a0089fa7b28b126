"""C source of a lexer to a loaded shared library, compiled once and kept in the user's cache."""

from __future__ import annotations

import ctypes
import sysconfig
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hagane.machine import CodeCache, find_compiler
from hagane.machine.cache import make_module

FLAGS = ("-O2", "-std=c11", "-fPIC", "-fno-plt")


def compile_library(source: str, flags: Sequence[str] = FLAGS) -> Path:
    """Return the path of the shared library of a C source, compiled unless it is in the cache.

    Raises:
        NoCompiler: There is no compiler, or it refuses the source.
    """
    compiler = find_compiler()
    key = "\0".join((source, *flags, *compiler.command, compiler.version))

    def make(folder: Path) -> Path:
        written, library = folder / "lexer.c", folder / "lexer.so"
        written.write_text(source, encoding="utf-8")
        compiler.build([written], library, flags)
        return library

    return CodeCache("lexgen").get(key, make)


def load_library(source: str, flags: Sequence[str] = FLAGS) -> ctypes.CDLL:
    """Compile a C source where needed and load it.

    Raises:
        NoCompiler: There is no compiler, or it refuses the source.
    """
    return ctypes.CDLL(str(compile_library(source, flags)))


def load_module(name: str, source: str, flags: Sequence[str] = FLAGS) -> Any | None:
    """Compile a Python module in C where needed and load it; None without Python's headers.

    Args:
        name: The module is ``hagane_`` and this.
        source: Its text.
        flags: Flags of the compiler.

    Raises:
        NoCompiler: There is no compiler, or it refuses the source.
    """
    headers = sysconfig.get_paths()["include"]
    if not (Path(headers) / "Python.h").exists():
        return None
    flags = (*flags, f"-I{headers}")
    return make_module(CodeCache("lexgen"), name, source, find_compiler(), flags)
