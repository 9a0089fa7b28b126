"""C source to a loaded shared library, compiled once and kept in the user's cache."""

from __future__ import annotations

import ctypes
import hashlib
import os
import platform
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from hagane.lexgen.errors import NoCompiler

_COMPILERS = ("cc", "gcc", "clang")
FLAGS = ("-O2", "-std=c11", "-fPIC", "-shared", "-fno-plt")


def find_compiler(environment: Mapping[str, str] | None = None) -> str:
    """Return the path of a C compiler: ``$CC``, ``cc``, ``gcc`` or ``clang``.

    Raises:
        NoCompiler: There is none.
    """
    environment = os.environ if environment is None else environment
    wanted = environment.get("CC", "").split()[:1]
    for name in (*wanted, *_COMPILERS):
        path = shutil.which(name, path=environment.get("PATH", os.defpath))
        if path is not None:
            return path
    raise NoCompiler(
        f"no C compiler was found (looked for {', '.join((*wanted, *_COMPILERS))} on PATH): "
        "install one, for instance 'apt-get install gcc', or use the Python form"
    )


def cache_folder(environment: Mapping[str, str] | None = None) -> Path:
    """Return the folder for compiled code, private to the user; it is made where it is missing."""
    environment = os.environ if environment is None else environment
    base = environment.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    folder = Path(base) / "hagane" / "lexgen"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = folder.stat()
        if (
            status.st_uid == os.getuid()
            and not status.st_mode & 0o022
            and os.access(folder, os.W_OK)
        ):
            return folder
    except OSError:
        pass
    # Never load code from a folder that others can write to.
    return _temporary_folder()


@cache
def _temporary_folder() -> Path:
    return Path(tempfile.mkdtemp(prefix="hagane-lexgen-"))


def compile_library(source: str, flags: Sequence[str] = FLAGS) -> Path:
    """Return the path of the shared library of a C source, compiled unless it is in the cache.

    Processes may do this at once: each writes a file of its own and renames it into place.

    Raises:
        NoCompiler: There is no compiler, or it refuses the source.
    """
    compiler = find_compiler()
    key = "\0".join((source, compiler, *flags, platform.machine(), _version(compiler)))
    name = hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()[:32]
    folder = cache_folder()
    library = folder / f"{name}.so"
    if library.exists():
        return library
    with tempfile.TemporaryDirectory(dir=folder, prefix="build-") as build:
        written = Path(build) / "lexer.c"
        written.write_text(source, encoding="utf-8")
        made = Path(build) / "lexer.so"
        command = [compiler, *flags, "-o", str(made), str(written)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise NoCompiler(
                f"{compiler} refused the generated code (exit code {done.returncode}):\n"
                f"{done.stderr[-2000:]}"
            )
        os.replace(made, library)
    return library


@cache
def _version(compiler: str) -> str:
    done = subprocess.run([compiler, "--version"], capture_output=True, text=True, check=False)
    return done.stdout.partition("\n")[0]


def load_library(source: str, flags: Sequence[str] = FLAGS) -> ctypes.CDLL:
    """Compile a C source where needed and load it.

    Raises:
        NoCompiler: There is no compiler, or it refuses the source.
    """
    path = compile_library(source, flags)
    try:
        return ctypes.CDLL(str(path))
    except OSError:
        # A damaged file in the cache: compile it anew.
        path.unlink(missing_ok=True)
        return ctypes.CDLL(str(compile_library(source, flags)))
