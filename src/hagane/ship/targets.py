"""The processors that a build may be for, by name."""

from __future__ import annotations

import importlib.util
import platform
import sys
from dataclasses import dataclass, replace

from hagane.errors import InvalidArgument, MissingExtra
from hagane.machine import (
    AMX,
    AVX2,
    AVX512,
    PORTABLE,
    Compiler,
    Level,
    best_level,
    cpu_features,
    find_compiler,
)

# The psABI's levels of x86-64, and the extensions that may follow one after a plus sign.
_LEVELS = {"x86-64-v4": AVX512, "x86-64-v3": AVX2, "x86-64": PORTABLE, "aarch64": PORTABLE}
_EXTRAS = {"vnni": "avx512_vnni", "bf16": "avx512_bf16"}
_ZIG = {"x86_64": "x86_64-linux-gnu.2.34", "aarch64": "aarch64-linux-gnu.2.34"}


@dataclass(frozen=True, slots=True)
class BuildTarget:
    """A kind of processor.

    Attributes:
        name: Such as ``x86-64-v4`` or ``x86-64-v4+vnni``.
        machine: ``x86_64`` or ``aarch64``.
        level: Vector instructions that kernels use.
    """

    name: str
    machine: str
    level: Level

    @property
    def needs(self) -> tuple[str, ...]:
        """Features that the processor must have, by the names of ``/proc/cpuinfo``."""
        return tuple(sorted(self.level.needs | (self.level.extras or frozenset())))

    @property
    def here(self) -> bool:
        """Whether this machine is one."""
        return platform.machine() == self.machine and frozenset(self.needs) <= cpu_features()


def target_named(name: str | None) -> BuildTarget:
    """Return the target of a name, or this machine if there is none.

    Args:
        name: ``x86-64-v4``, ``x86-64-v3``, ``x86-64``, ``aarch64``, or the first with ``+vnni``,
            ``+bf16`` or ``+amx``, which includes both.

    Raises:
        InvalidArgument: There is no such target.
    """
    if not name:
        return _this_machine()
    base, *more = name.split("+")
    if base not in _LEVELS or (more and base != "x86-64-v4") or not {*more} <= {*_EXTRAS, "amx"}:
        known = ", ".join([*_LEVELS, *(f"x86-64-v4+{extra}" for extra in (*_EXTRAS, "amx"))])
        raise InvalidArgument(f"--target '{name}': expected one of {known}")
    level = AMX if "amx" in more else _LEVELS[base]
    extras = frozenset(_EXTRAS[extra] for extra in more if extra in _EXTRAS)
    machine = "aarch64" if base == "aarch64" else "x86_64"
    return BuildTarget(_name(base, level, extras), machine, replace(level, extras=extras))


def targets_named(names: str | None) -> tuple[BuildTarget, ...]:
    """Return the targets of names separated by commas, the last of which needs least.

    Raises:
        InvalidArgument: There is no such target, one comes twice, or they are of several machines.
    """
    found = tuple(target_named(name.strip()) for name in (names or "").split(","))
    base = found[-1]
    for i, target in enumerate(found):
        if target.machine != base.machine:
            raise InvalidArgument(
                f"--target {names}: expected levels of one machine, got {target.machine} and "
                f"{base.machine}: make a build for each"
            )
        if not {*base.needs} <= {*target.needs} or any(t.name == target.name for t in found[:i]):
            raise InvalidArgument(
                f"--target {names}: expected levels from the one that needs most to the one that "
                f"needs least, got {target.name} before {base.name}"
            )
    return found


def _this_machine() -> BuildTarget:
    machine = platform.machine()
    if machine not in _ZIG:
        raise InvalidArgument(f"this machine is {machine}: name the one to build for with --target")
    level = best_level()
    base = "aarch64" if machine == "aarch64" else "x86-64"
    for name in ("x86-64-v4", "x86-64-v3"):
        base = name if level in (_LEVELS[name], AMX) and base == "x86-64" else base
    extras = frozenset(_EXTRAS.values()) & cpu_features() if level.lanes == 16 else frozenset()
    return BuildTarget(_name(base, level, extras), machine, replace(level, extras=extras))


def _name(base: str, level: Level, extras: frozenset[str]) -> str:
    if level.tiles:
        return f"{base}+amx"
    return "+".join([base, *(key for key, feature in _EXTRAS.items() if feature in extras)])


def compiler_for(target: BuildTarget) -> Compiler:
    """Return a C compiler for a target: this machine's, or ziglang's for other machines.

    Raises:
        MissingExtra: The target is another machine, and ziglang is not installed.
        NoCompiler: There is no C compiler.
    """
    if target.machine == platform.machine():
        return find_compiler()
    if importlib.util.find_spec("ziglang") is None:
        raise MissingExtra(f"--target {target.name}: compiling for {target.machine}", "compiler")
    command = (sys.executable, "-m", "ziglang", "cc", "-target", _ZIG[target.machine])
    return Compiler(command, f"ziglang for {target.machine}")
