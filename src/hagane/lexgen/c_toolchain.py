"""C source of a lexer to a loaded shared library, compiled once and kept in the user's cache."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from pathlib import Path

from hagane.machine import CodeCache, find_compiler

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
