"""Verilator's own run time compiled once: it takes most of a short replay's build."""

from __future__ import annotations

import hashlib
import os
import shlex
import shutil
import subprocess
from pathlib import Path

from hagane.errors import NoCompiler
from hagane.machine.cache import CodeCache
from hagane.tools.rtl.circuit.elaborate import Sources
from hagane.tools.rtl.replay.verilator import build_words, simulator_environment

_QUICK = ("OPT_FAST=-O0", "OPT_GLOBAL=-O0", "VM_PARALLEL_BUILDS=0")


def runtime_key(command: str) -> str:
    """Return a name for the compiled run time of a Verilator and of this machine's compiler."""
    said = []
    for words in ([command, "--version"], [os.environ.get("CXX", "g++"), "--version"]):
        try:
            done = subprocess.run(
                words, capture_output=True, text=True, check=False, timeout=20,
                env=simulator_environment(),
            )  # fmt: skip
            said.append(done.stdout)
        except (OSError, subprocess.TimeoutExpired):
            said.append("")
    text = "\0".join([command, *said, *_QUICK])
    return f"verilated-{hashlib.sha256(text.encode()).hexdigest()}"


def staged_words(
    command: str, sources: Sources, testbench: Path, folder: Path, key: str
) -> list[str]:
    """Return the command that writes a bench's C++ and builds it with the kept run time."""
    write = build_words(command, sources, testbench, folder, ("-CFLAGS", "-O0"), building=False)
    steps = [shlex.join(write)]
    kept = CodeCache("rtl").find(key)
    if kept is not None:
        base = kept if kept.is_dir() else kept.parent
        objects = " ".join(shlex.quote(str(path)) for path in sorted(base.glob("*.o")))
        # Newer than the sources, so that make takes them as they are.
        steps.append(f"cp {objects} {shlex.quote(str(folder / 'obj'))}")
    steps.append(shlex.join(["make", "-C", str(folder / "obj"), "-f", "Vtb.mk", "-j2", *_QUICK]))
    return ["sh", "-c", " && ".join(steps)]


def keep_runtime(key: str, built: Path) -> None:
    """Keep the run time that a build compiled, for those to come."""
    cache = CodeCache("rtl")
    objects = sorted(built.glob("verilated*.o"))
    if not objects or cache.find(key) is not None:
        return

    def fill(folder: Path) -> None:
        for path in objects:
            shutil.copyfile(path, folder / path.name)

    try:
        cache.get_folder(key, fill)
    except NoCompiler:
        return  # there is no room; it is compiled again
