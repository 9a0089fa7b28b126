"""The C of grammars (``c/``), compiled once: through ctypes, and as a module for each step."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from hagane.lexgen.c_toolchain import load_library, load_module
from hagane.machine import NoCompiler

# In order: a file uses those before it.
_FILES = (
    "lists.h", "vocabulary.c", "machine.c", "threads.c", "ahead.c", "places.c", "subsets.c",
    "facts.c",
)  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class Library:
    """The compiled functions.

    Attributes:
        functions: All but the following.
        steps: A module with ``take`` and ``mask``, which a step calls, and with functions that
            write the edges of rules; None where Python's headers are missing.
    """

    functions: ctypes.PyDLL
    steps: Any


@cache
def grammar_library() -> Library:
    """Return the C of grammars.

    Raises:
        NoCompiler: There is no C compiler.
    """
    folder = resources.files("hagane.lexgen.masks") / "c"

    def source(*files: str) -> str:
        return "".join(
            (folder / file).read_text(encoding="utf-8").replace('#include "lists.h"\n', "")
            for file in files
        )

    module = load_module("grammar", source(*_FILES, "edges.c", "module.c"))
    path = load_library(source(*_FILES))._name if module is None else module.__file__
    # Python's lock stays taken: calls are short, and no two threads may be in one machine.
    library = ctypes.PyDLL(path)
    void, number, long = ctypes.c_void_p, ctypes.c_int32, ctypes.c_int64
    for name, result, arguments in (
        ("hagane_store", void, [ctypes.c_char_p, void, number, void, number]),
        ("hagane_store_end", None, [void]),
        ("hagane_machine", void, [void, number, *[void] * 9]),
        ("hagane_machine_end", None, [void]),
        ("hagane_start", number, [void, number]),
        ("hagane_advance", number, [void, number, ctypes.c_char_p, long]),
        ("hagane_take", number, [void, number, number]),
        ("hagane_ends", number, [void, number]),
        ("hagane_places", number, [void]),
        ("hagane_mask", number, [void, number, void]),
        ("hagane_block", void, [number, void, number, void, number, void, number, void, number,
                                void, number, ctypes.c_char_p, number]),
        ("hagane_block_parts", None, [void, void]),
        ("hagane_block_end", None, [void]),
    ):  # fmt: skip
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return Library(library, module)


def steps() -> Any:
    """Return the module of the library; None without a compiler or Python's headers."""
    try:
        return grammar_library().steps
    except NoCompiler:
        return None
