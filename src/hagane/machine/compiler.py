"""The C compiler of this machine: ``cc``, ``gcc``, ``clang``, or that of the package ziglang."""

from __future__ import annotations

import importlib.util
import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from hagane.errors import NoCompiler
from hagane.machine.lock import Lock
from hagane.machine.notices import notice

_NAMES = ("cc", "gcc", "clang")
# Seconds that one call may take, and that a compiler may take to say its version.
_LIMIT = 300.0
_VERSION_LIMIT = 20.0
_REMEDY = "let CC name another compiler, or pip install 'hagane[compiler]'"


@dataclass(frozen=True, slots=True)
class Compiler:
    """A C compiler.

    Attributes:
        command: The words that start it.
        version: The first line of its own description.
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
            NoCompiler: The compiler failed or took longer than ``HAGANE_COMPILER_SECONDS`` (300
                if unset); the message carries the end of its output.
        """
        objects = [source.with_suffix(".o") for source in sources]

        def compile_one(source: Path, made: Path) -> None:
            self.call([*flags, "-c", str(source)], made)

        if len(sources) == 1 or jobs <= 1:
            for source, made in zip(sources, objects, strict=True):
                compile_one(source, made)
        else:
            with ThreadPoolExecutor(jobs) as pool:
                list(pool.map(compile_one, sources, objects))
        self.call([*flags, "-shared", *map(str, objects), *libraries], library)

    def precompile(self, header: Path, flags: Sequence[str]) -> bool:
        """Translate a header ahead, beside it, and return True if the compiler is gcc.

        Others read the text, so there is nothing to do.

        Raises:
            NoCompiler: The compiler failed; see ``build``.
        """
        is_gcc = (
            "gcc" in self.version.lower() or "(GCC)" in self.version or "Debian" in self.version
        )
        if is_gcc:
            made = header.with_name(f"{header.name}.gch")
            self.call([*flags, "-x", "c-header", str(header)], made)
        return is_gcc

    def translate(self, source: Path, made: Path, flags: Sequence[str]) -> None:
        """Write the assembly of a source.

        Raises:
            NoCompiler: The compiler failed; see ``build``.
        """
        self.call([*flags, "-S", str(source)], made)

    def call(self, arguments: Sequence[str], made: Path) -> None:
        """Run the compiler, which must write ``made``.

        Raises:
            NoCompiler: It failed; see ``build``.
        """
        # Its own temporary files go where there is room, if there is any.
        environment = {**os.environ, "LC_ALL": "C", "TMPDIR": str(made.parent)}
        command = (*self.command, *arguments, "-o", str(made))
        code, text = _run(command, self.command, _limit(os.environ), environment)
        name = " ".join(self.command)
        if code != 0:
            raise NoCompiler(f"{name} failed with {_ending(code)}:\n{text[-2000:]}\n{_REMEDY}")
        if not made.is_file() or made.stat().st_size == 0:
            raise NoCompiler(f"{name} reported no error, yet wrote no '{made.name}'; {_REMEDY}")


def find_compiler(environment: Mapping[str, str] | None = None) -> Compiler:
    """Return the compiler that ``$CC`` names, else cc, gcc, clang, or ziglang's.

    One that cannot say its version is passed over with a notice.

    Raises:
        NoCompiler: There is none; the message says how to get one.
    """
    environment = os.environ if environment is None else environment
    with _ASKING:  # several threads begin to compile at once
        return _found(environment.get("CC", ""), environment.get("PATH", os.defpath))


_ASKING = Lock()


@cache
def _found(named: str, folders: str) -> Compiler:
    """Return the compiler that is named, or another on the path; each is asked once a process."""
    wanted = named.split()
    for words in ([wanted] if wanted else []) + [[name] for name in _NAMES]:
        path = shutil.which(words[0], path=folders)
        found = None if path is None else _compiler((path, *words[1:]))
        if found is not None:
            return found
        if words is wanted and path is None:
            notice(f"the compiler '{wanted[0]}', which CC names, is not on PATH")
    if importlib.util.find_spec("ziglang") is not None:
        found = _compiler((sys.executable, "-m", "ziglang", "cc"))
        if found is not None:
            return found
    raise NoCompiler(
        f"no C compiler was found (looked for {', '.join((*wanted[:1], *_NAMES))} on PATH): "
        "install one, for instance 'apt-get install gcc', or 'pip install hagane[compiler]'"
    )


def _compiler(command: tuple[str, ...]) -> Compiler | None:
    """Return a compiler that answers, or None."""
    try:
        environment = {**os.environ, "LC_ALL": "C"}
        code, text = _run((*command, "--version"), command, _VERSION_LIMIT, environment)
        if code == 0:
            return Compiler(command, text.partition("\n")[0])
        reason = f"{' '.join(command)} --version failed with {_ending(code)}"
    except NoCompiler as error:
        reason = str(error)
    notice(f"a compiler is passed over: {reason}")
    return None


def _run(
    command: Sequence[str], name: Sequence[str], limit: float, environment: Mapping[str, str]
) -> tuple[int, str]:
    """Return a command's exit code and its output, errors last.

    The command has a process group of its own, so that its children end with it.
    """
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            env=environment,
            process_group=0,
        )
    except OSError as error:
        raise NoCompiler(f"{' '.join(name)} cannot be started: {error}; {_REMEDY}") from error
    with process:
        try:
            printed, errors = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired as error:
            _end(process)
            raise NoCompiler(
                f"{' '.join(name)} had not ended after {limit:g} seconds; set "
                f"HAGANE_COMPILER_SECONDS to wait longer, or {_REMEDY}"
            ) from error
        except BaseException:
            _end(process)
            raise
    return process.returncode, printed + errors


def _end(process: subprocess.Popen[str]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def _ending(code: int) -> str:
    """Return how a process ended, in words."""
    if code >= 0:
        return f"exit code {code}"
    try:
        return f"signal {signal.Signals(-code).name}"
    except ValueError:
        return f"signal {-code}"


def _limit(environment: Mapping[str, str]) -> float:
    stated = environment.get("HAGANE_COMPILER_SECONDS", "")
    try:
        seconds = float(stated or _LIMIT)
    except ValueError:
        seconds = 0.0
    if 0.0 < seconds < float("inf"):
        return seconds
    notice(
        f"HAGANE_COMPILER_SECONDS: expected a positive number of seconds, got '{stated}'; "
        f"it is {_LIMIT:g}"
    )
    return _LIMIT


def extra_flags() -> tuple[str, ...]:
    """Return the compiler flags of ``HAGANE_CFLAGS``, and those of sanitizers.

    ``HAGANE_SANITIZE`` names sanitizers; the process must have their runtime loaded, as
    ``make sanitize`` does.
    """
    given = tuple(shlex.split(os.environ.get("HAGANE_CFLAGS", "")))
    chosen = os.environ.get("HAGANE_SANITIZE", "")
    if not chosen:
        return given
    return (*given, f"-fsanitize={chosen}", "-fno-sanitize-recover=all", "-g", "-O1")
