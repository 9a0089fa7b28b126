"""The C compiler of this machine: ``cc``, ``gcc``, ``clang``, or that of the package ziglang."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from hagane.errors import HaganeError

_NAMES = ("cc", "gcc", "clang")


class NoCompiler(HaganeError, OSError):
    """There is no C compiler, or it refuses what it is given."""


@dataclass(frozen=True, slots=True)
class Compiler:
    """A C compiler.

    Attributes:
        command: The words that start it.
        version: The first line of what it says of itself.
    """

    command: tuple[str, ...]
    version: str

    def build(
        self,
        sources: Sequence[Path],
        library: Path,
        flags: Sequence[str],
        *,
        jobs: int = 1,
        libraries: Sequence[str] = (),
    ) -> None:
        """Compile each source, ``jobs`` at a time, and link them to a shared library.

        Raises:
            NoCompiler: The compiler failed; the message carries the end of what it printed.
        """
        objects = [source.with_suffix(".o") for source in sources]

        def compile_one(source: Path, made: Path) -> None:
            self._call([*flags, "-c", str(source), "-o", str(made)])

        if len(sources) == 1 or jobs <= 1:
            for source, made in zip(sources, objects, strict=True):
                compile_one(source, made)
        else:
            with ThreadPoolExecutor(jobs) as pool:
                list(pool.map(compile_one, sources, objects))
        self._call([*flags, "-shared", "-o", str(library), *map(str, objects), *libraries])

    def precompile(self, header: Path, flags: Sequence[str]) -> None:
        """Translate a header ahead, beside it, where the compiler is gcc; others read the text."""
        if "gcc" in self.version.lower() or "(GCC)" in self.version or "Debian" in self.version:
            self._call([*flags, "-x", "c-header", str(header), "-o", f"{header}.gch"])

    def _call(self, arguments: Sequence[str]) -> None:
        try:
            done = subprocess.run(
                [*self.command, *arguments], capture_output=True, text=True, check=False
            )
        except OSError as error:
            raise NoCompiler(f"{' '.join(self.command)} cannot be started: {error}") from error
        if done.returncode != 0:
            raise NoCompiler(
                f"{' '.join(self.command)} failed with exit code {done.returncode}:\n"
                f"{done.stderr[-2000:]}"
            )


def find_compiler(environment: Mapping[str, str] | None = None) -> Compiler:
    """Return the compiler that ``$CC`` names, else cc, gcc, clang, or ziglang's.

    Raises:
        NoCompiler: There is none; the message says how to get one.
    """
    environment = os.environ if environment is None else environment
    wanted = environment.get("CC", "").split()
    for words in ([wanted] if wanted else []) + [[name] for name in _NAMES]:
        path = shutil.which(words[0], path=environment.get("PATH", os.defpath))
        if path is not None:
            command = (path, *words[1:])
            return Compiler(command, _version(command))
    if importlib.util.find_spec("ziglang") is not None:
        command = (sys.executable, "-m", "ziglang", "cc")
        return Compiler(command, _version(command))
    raise NoCompiler(
        f"no C compiler was found (looked for {', '.join((*wanted[:1], *_NAMES))} on PATH): "
        "install one, for instance 'apt-get install gcc', or 'pip install hagane[compiler]'"
    )


@cache
def _version(command: tuple[str, ...]) -> str:
    try:
        done = subprocess.run([*command, "--version"], capture_output=True, text=True, check=False)
    except OSError as error:
        raise NoCompiler(f"{' '.join(command)} cannot be started: {error}") from error
    return done.stdout.partition("\n")[0]
