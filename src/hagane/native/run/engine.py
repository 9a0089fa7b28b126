"""C to machine code: the shared part of the engine, compiled once, and models' libraries."""

from __future__ import annotations

import ctypes
import hashlib
import os
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path

from hagane.machine import CodeCache, Level, Lock, usable_cores
from hagane.machine.compiler import Compiler, extra_flags, find_compiler
from hagane.native.c import c_source
from hagane.native.kernels.kernel import Kernel
from hagane.native.ready.extension import load_extension
from hagane.native.ready.mapped import Engine, Library, known_engine

_ENGINE_FLAGS = ("-O2", "-std=gnu11", "-fPIC", "-w")
KERNEL_FLAGS = (
    "-O3",
    "-std=gnu11",
    "-fPIC",
    "-w",
    "-fwrapv",
    "-fno-strict-aliasing",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-ffp-contract=fast",
)


# The beginning of every kernel, and the files of the engine, in order.
HEADER = ("vector.h", "functions.h", "squares.h", "small_types.h", "scalar.h", "tiny_types.h")
ENGINE_PARTS = (
    *("engine.h", "program.c", "control.c", "threads.c", "pool.c"),
    *("tables.h", "context.h", "sizes.c", "place.c", "tabled.c", "fit.c"),
)


_making = Lock()


@cache
def _compiled_engine(compiler: Compiler) -> Engine:
    def make(folder: Path) -> Path:
        written = folder / "engine.c"
        written.write_text(c_source(*ENGINE_PARTS), encoding="utf-8")
        library = folder / "engine.so"
        compiler.build([written], library, flags, libraries=("-lpthread",))
        return library

    flags = (*_ENGINE_FLAGS, *extra_flags())
    return CodeCache("native").load(_engine_key(compiler), make, Engine)


def _engine_key(compiler: Compiler) -> str:
    flags = (*_ENGINE_FLAGS, *extra_flags())
    return "\0".join((c_source(*ENGINE_PARTS), *flags, *compiler.command, compiler.version))


def load_engine() -> Engine:
    """Return the engine, compiled if this is the first use on this machine.

    Raises:
        NoCompiler: There is no C compiler.
    """
    with _making:
        return known_engine(_compiled_engine(find_compiler()))


def begin_engine(level: Level, more: Sequence[Callable[[], object]] = ()) -> None:
    """Have threads make what no model is needed for while one is read, if this is its first use.

    These are the engine, its module and the kernels' header. That takes two cores for a second on a
    new machine, and whoever needs them waits for what is left of it. A failure is left to the session
    that needs them, which says what is wrong.

    Args:
        level: The instructions of the kernels.
        more: Functions that make other modules.
    """

    def make(load: Callable[[], object]) -> None:
        with suppress(Exception):  # it comes again where it can be told
            load()

    if not _compiled_engine.cache_info().currsize:
        for load in (load_engine, load_extension, lambda: _make_header(level), *more):
            # A process that ends meanwhile waits for them: files that they write would be removed.
            threading.Thread(target=make, args=(load,), name="hagane-engine").start()


def _make_header(level: Level) -> None:
    """Translate the kernels' header on a machine that has no engine yet."""
    cache_, compiler = CodeCache("native"), find_compiler()
    if cache_.find(_engine_key(compiler)) is None:
        from hagane.machine.headers import Header  # where kernels are cached nothing needs it

        Header(cache_, compiler, c_source(*HEADER), _kernel_flags(level)).make()


def _kernel_flags(level: Level) -> tuple[str, ...]:
    return (*KERNEL_FLAGS, *level.flags, *extra_flags())


def kernel_name(code: str) -> str:
    """Return the name that a kernel is found by: the hash of its text."""
    return f"hagane_{hashlib.sha256(code.encode('utf-8', 'surrogatepass')).hexdigest()[:24]}"


# Kernels of equal text are one function, which people know by a name and the engine by a hash.
_ALIAS = 'extern __typeof__({0}) {1} __attribute__((weak, alias("{0}")));\n'


def function_names(kernels: Sequence[Kernel]) -> dict[str, str]:
    """Return the names of kernels' C functions, by the names that they are found by.

    Sizes and operators make the name; the first of several that kernels of equal text have counts.
    """
    found: dict[str, str] = {}
    for kernel in sorted(kernels, key=lambda each: each.name):
        if kernel.code:
            name = kernel_name(kernel.code)
            found.setdefault(name, f"{kernel.name}_{name[-8:]}")
    return found


def _jobs() -> int:
    """Return how many compilers may run at a time: ``HAGANE_JOBS``, or as many as cores."""
    stated = os.environ.get("HAGANE_JOBS", "")
    return max(1, int(stated)) if stated.isdecimal() else usable_cores()


def compile_kernels(kernels: Sequence[Kernel], level: Level, jobs: int | None = None) -> Library:
    """Return the library of some kernels, compiled in parallel unless it is in the cache."""
    codes = {kernel_name(kernel.code): kernel.code for kernel in kernels if kernel.code}
    functions = function_names(kernels)
    compiler = find_compiler()
    flags = _kernel_flags(level)
    header = c_source(*HEADER)
    called = (f"{name} {function}" for name, function in sorted(functions.items()))
    key = "\0".join((*called, header, *flags, *compiler.command, compiler.version))
    cache_ = CodeCache("native")
    jobs = _jobs() if jobs is None else jobs
    cached = True

    def make(folder: Path) -> Path:
        nonlocal cached
        from hagane.native.run.objects import Objects  # kernels of the cache need none

        cached = False
        library = folder / "kernels.so"
        named = {
            name: code.replace("KERNEL", functions[name]) + _ALIAS.format(functions[name], name)
            for name, code in codes.items()
        }
        objects = Objects(cache_, compiler, flags, header, jobs)
        objects.link(named, library, list(functions.values()))
        return library

    return cache_.load(key, make, lambda path: Library(ctypes.CDLL(str(path)), path, cached))
