"""Which vector instructions this CPU has, as the levels that code is generated for."""

from __future__ import annotations

import ctypes
import os
import platform
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from hagane.machine.notices import notice


@dataclass(frozen=True, slots=True)
class Level:
    """One set of vector instructions.

    Attributes:
        name: ``amx``, ``avx512``, ``avx2`` or ``portable``.
        lanes: 32-bit floats in one vector.
        registers: Vector registers that a kernel may use.
        assembly: Whether inner kernels are written as x86 assembly; else as C over vector types.
        needs: CPU features, by the names of ``/proc/cpuinfo``.
        flags: Compiler flags; the features one by one, since ``-march=native`` leaves some out.
        tiles: Whether there are matrix tiles of bfloat16 and of bytes.
        extras: Other features that kernels may use where they help; those of this CPU if None.
    """

    name: str
    lanes: int
    registers: int
    assembly: bool
    needs: frozenset[str]
    flags: tuple[str, ...]
    tiles: bool = False
    extras: frozenset[str] | None = None


AVX512 = Level(
    "avx512",
    16,
    32,
    True,
    frozenset({"avx512f", "avx512dq", "avx512bw", "avx512vl", "fma", "avx2", "f16c"}),
    (
        "-mavx512f",
        "-mavx512dq",
        "-mavx512bw",
        "-mavx512vl",
        "-mfma",
        "-mavx2",
        "-mf16c",
        "-mprefer-vector-width=512",
    ),
)
AMX = Level(
    "amx",
    16,
    32,
    True,
    AVX512.needs | {"avx512_bf16", "avx512_vnni", "amx_tile", "amx_bf16", "amx_int8"},
    AVX512.flags,
    tiles=True,
)
AVX2 = Level("avx2", 8, 16, True, frozenset({"avx2", "fma", "f16c"}), ("-mavx2", "-mfma", "-mf16c"))
PORTABLE = Level("portable", 8, 16, False, frozenset(), ("-Wno-psabi",))
LEVELS = (AMX, AVX512, AVX2, PORTABLE)


def multiplies_bfloat16(level: Level) -> bool:
    """Whether kernels of a level may use products of bfloat16."""
    return level.lanes == 16 and "avx512_bf16" in _features_of(level)


def multiplies_bytes(level: Level) -> bool:
    """Whether kernels of a level may use products of bytes."""
    return level.lanes == 16 and "avx512_vnni" in _features_of(level)


def _features_of(level: Level) -> frozenset[str]:
    return cpu_features() if level.extras is None else level.needs | level.extras


# Linux hands out the registers of AMX on request (Documentation/arch/x86/xstate.rst).
_ARCH_PRCTL, _REQUEST_PERMISSION, _TILE_DATA = 158, 0x1023, 18


@cache
def _may_use_tiles() -> bool:
    """Ask the system for the registers of matrix tiles, for this process and its children."""
    try:
        call = ctypes.CDLL(None, use_errno=True).syscall
        call.restype, call.argtypes = ctypes.c_long, [ctypes.c_long] * 3
        return bool(call(_ARCH_PRCTL, _REQUEST_PERMISSION, _TILE_DATA) == 0)
    except (OSError, AttributeError):
        return False


@cache
def cpu_features(path: str = "/proc/cpuinfo") -> frozenset[str]:
    """Return the features that the kernel lists for every CPU; none where it lists none."""
    try:
        text = Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return frozenset()
    listed = {
        value
        for name, _, value in (line.partition(":") for line in text.splitlines())
        if name.strip() in ("flags", "Features")
    }
    # A thread may move from one core to another of a different kind.
    found = frozenset.intersection(*(frozenset(value.split()) for value in listed or {""}))
    if "amx_tile" in found and not _may_use_tiles():
        return frozenset(name for name in found if not name.startswith("amx_"))
    return found


@cache
def processor_name(path: str = "/proc/cpuinfo") -> str:
    """Return the name of this machine's processor, with its family, model and stepping."""
    found: dict[str, str] = {}
    with suppress(OSError):
        for line in Path(path).read_text(encoding="utf-8", errors="replace").splitlines():
            name, _, value = line.partition(":")
            found.setdefault(name.strip(), value.strip())
    parts = [found.get(key, "?") for key in ("cpu family", "model", "stepping")]
    name = found.get("model name") or platform.processor() or platform.machine()
    return f"{name} ({'/'.join(parts)})"


def best_level(features: frozenset[str] | None = None) -> Level:
    """Return the widest level that this CPU can run."""
    features = cpu_features() if features is None else features
    if platform.machine() not in ("x86_64", "AMD64"):
        return PORTABLE
    return next(level for level in LEVELS if level.needs <= features)


def level_named(name: str | None, features: frozenset[str] | None = None) -> Level:
    """Return the level of a name, or the best one, with a notice where that one cannot be had.

    Args:
        name: ``amx``, ``avx512``, ``avx2`` or ``portable``; the best level if None or empty.
        features: Of the CPU; those of this machine if None.
    """
    features = cpu_features() if features is None else features
    best = best_level(features)
    if not name:
        return best
    for level in LEVELS:
        if level.name != name:
            continue
        missing = sorted(level.needs - features)
        if not missing and (level is PORTABLE or best is not PORTABLE):
            return level
        notice(
            f"the instructions '{name}' need {', '.join(missing) or 'an x86 CPU'}, which this CPU "
            f"lacks: kernels are generated for '{best.name}'"
        )
        return best
    known = ", ".join(level.name for level in LEVELS)
    notice(
        f"there are no instructions '{name}' (expected {known}): kernels are generated for "
        f"'{best.name}'"
    )
    return best


def usable_cores() -> int:
    """Return how many cores this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
