"""Matrix tiles on processors that lack them: all with AVX-512 and bfloat16 test their kernels."""

from __future__ import annotations

import ctypes
import shutil
import tempfile
from functools import cache
from pathlib import Path

from hagane.machine import NoCompiler, cpu_features, find_compiler
from hagane.machine.compiler import extra_flags
from hagane.machine.cpu import AMX
from hagane.runtime import chosen

_FLAGS = ("-O3", "-std=gnu11", "-fPIC", "-mavx2", "-ffp-contract=off")
_TILES = frozenset(name for name in AMX.needs if name.startswith("amx_"))


@cache
def may_emulate_tiles() -> bool:
    """Whether this machine lacks tiles alone of what their kernels need, and has a compiler."""
    found = cpu_features()
    if found >= AMX.needs or not found >= AMX.needs - _TILES:
        return False
    try:
        return bool(find_compiler())
    except NoCompiler:
        return False


def emulate_tiles() -> None:
    """Have kernels for tiles run in this process where sessions ask for them by name."""
    with tempfile.TemporaryDirectory() as folder:
        source = shutil.copy(Path(__file__).with_suffix(".c"), folder)
        library = Path(folder) / "tiles.so"
        find_compiler().build([Path(source)], library, (*_FLAGS, *extra_flags()))
        assert ctypes.CDLL(str(library)).emulate_tiles() == 0
    level_named = chosen.level_named
    chosen.level_named = lambda name: AMX if name == "amx" else level_named(name)  # type: ignore[attr-defined]
