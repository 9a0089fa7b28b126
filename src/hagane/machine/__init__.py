"""The machine that runs us: its vector instructions, its C compiler, a cache of compiled code."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hagane.errors import NoCompiler
from hagane.machine.cache import CodeCache
from hagane.machine.cpu import (
    AMX,
    AVX2,
    AVX512,
    LEVELS,
    PORTABLE,
    Level,
    best_level,
    cpu_features,
    level_named,
    multiplies_bfloat16,
    multiplies_bytes,
    processor_name,
    usable_cores,
)
from hagane.machine.folder import data_folder
from hagane.machine.lock import Lock
from hagane.machine.notices import notice

# A session from the cache asks no compiler, whose module loads much else.
if TYPE_CHECKING:
    from hagane.machine.compiler import Compiler, find_compiler

__all__ = [
    "AMX",
    "AVX2",
    "AVX512",
    "LEVELS",
    "PORTABLE",
    "CodeCache",
    "Compiler",
    "Level",
    "Lock",
    "NoCompiler",
    "best_level",
    "cpu_features",
    "data_folder",
    "find_compiler",
    "is_of_handler",
    "level_named",
    "multiplies_bfloat16",
    "multiplies_bytes",
    "notice",
    "processor_name",
    "usable_cores",
]


def is_of_handler(error: BaseException) -> bool:
    """Whether the handler of a signal raised an error: what ran meanwhile is not its cause."""
    from hagane.machine import handlers  # which sessions that meet no error do without

    return handlers.raised(error)


def __getattr__(name: str) -> Any:
    if name in ("Compiler", "find_compiler"):
        from hagane.machine import compiler

        return getattr(compiler, name)
    raise AttributeError(f"module 'hagane.machine' has no attribute '{name}'")
