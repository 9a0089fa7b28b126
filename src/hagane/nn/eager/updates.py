"""Updates of parameters in one pass, in C: NumPy's results to the bit, which serves until then."""

from __future__ import annotations

import ctypes
import threading
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from hagane.machine import CodeCache, NoCompiler, best_level, find_compiler
from hagane.nn.eager.programs import WORKSHOP

_FLAGS = ("-O3", "-std=gnu11", "-fPIC", "-w", "-fno-math-errno", "-ffp-contract=off")
# Elements below which NumPy's calls cost as little.
_FEW = 512
_TYPES = frozenset({"float32", "float64"})


class Updates:
    """The compiled updates, asked for by the first use."""

    def __init__(self) -> None:
        self._library: ctypes.CDLL | None = None
        self._functions: dict[tuple[str, str], Any] = {}
        self._asked = False

    def update(self, name: str, arrays: tuple[Any, ...], numbers: tuple[float, ...]) -> bool:
        """Update arrays in place; whether that was done.

        Args:
            name: ``descend``, ``momentum`` or ``adam``.
            arrays: The parameter, its states and its gradient, of one type.
            numbers: The hyperparameters.
        """
        first = arrays[0]
        if first.size < _FEW or WORKSHOP.mode == "off":
            return False
        library = self._library
        if library is None:
            self._ask()
            library = self._library
            if library is None:
                return False
        dtype = first.dtype.name
        if dtype not in _TYPES or not all(map(_lies_plain, arrays)):
            return False
        if any(x.dtype != first.dtype or x.shape != first.shape for x in arrays):
            return False
        if any(np.may_share_memory(first, x) for x in arrays[1:]):
            return False
        key = name, dtype
        function = self._functions.get(key)
        if function is None:
            function = getattr(library, f"hg_{name}_{dtype}")
            pointers = [ctypes.c_void_p] * len(arrays)
            function.argtypes = [ctypes.c_int64, *pointers, *[ctypes.c_double] * len(numbers)]
            function.restype = None
            self._functions[key] = function
        function(first.size, *[x.ctypes.data for x in arrays], *numbers)
        return True

    def _ask(self) -> None:
        if self._asked:
            return
        self._asked = True
        if WORKSHOP.mode == "wait":
            self._load()
        else:
            threading.Thread(target=self._load, daemon=True).start()

    def _load(self) -> None:
        try:
            self._library = _compiled()
        except (NoCompiler, OSError):
            self._library = None  # NumPy serves


def _lies_plain(x: Any) -> bool:
    return bool(x.flags.c_contiguous and x.flags.aligned)


def _compiled() -> ctypes.CDLL:
    source = (resources.files("hagane.nn.eager") / "updates.c").read_text(encoding="utf-8")
    compiler = find_compiler()
    flags = (*_FLAGS, *best_level().flags)
    key = "\0".join((source, *flags, *compiler.command, compiler.version))

    def make(folder: Path) -> Path:
        written = folder / "updates.c"
        written.write_text(source, encoding="utf-8")
        library = folder / "updates.so"
        compiler.build([written], library, flags, libraries=("-lm",))
        return library

    return CodeCache("native").load(key, make, lambda path: ctypes.CDLL(str(path)))


UPDATES = Updates()
