"""C and weights to the library of a build."""

from __future__ import annotations

import itertools
import shutil
import subprocess
import zlib
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from hagane.errors import HaganeError
from hagane.machine import CodeCache, Compiler, Lock, usable_cores
from hagane.machine.compiler import extra_flags
from hagane.machine.headers import Header
from hagane.native.c import c_source
from hagane.native.ready.extension import TABLE_HEADERS
from hagane.native.run.engine import (
    ENGINE_PARTS,
    HEADER,
    KERNEL_FLAGS,
)
from hagane.ship.targets import BuildTarget, compiler_for

_OWN = (
    *("tables.h", "base.c", "sum.c", "manifest.c", "processor.c"),
    *("plan.c", "context.c", "run.c", "interface.c"),
)
# Characters of C that one call of the compiler gets, at least and at most, but for a longer kernel:
# fixed, so that the same model makes the same library on every machine.
_LEAST_UNIT, _MOST_UNIT = 15_000, 60_000
# A unit ends behind one of so many kernels, whichever come before it: where a kernel changes, the
# units of all others are found in the cache.
_ENDS = 4
_FLAGS = ("-O2", "-std=gnu11", "-fPIC", "-w", "-fvisibility=hidden", "-fno-ident")
_HIDDEN = ("-fvisibility=hidden", "-fno-ident")
_MENOH = ("graph.c", "menoh.c", "model.c")
_EMBEDDED = """.section .rodata
.balign {alignment}
.globl {name}
.hidden {name}
{name}:
.incbin "{path}"
.section .note.GNU-stack,"",%progbits
"""


class NoArchiver(HaganeError, OSError):
    """A tool that makes archives is missing, or failed."""


def own_source(*names: str) -> str:
    """Return the text of some of the C files of the interface, one after the other."""
    folder = resources.files("hagane.ship.c")
    return "\n".join((folder / name).read_text(encoding="utf-8") for name in names)


def engine_header() -> str:
    """Return the C that a build is declared with."""
    return c_source(*TABLE_HEADERS[:2]) + own_source("tables.h")


@dataclass(frozen=True, slots=True)
class Sources:
    """Everything that a library is compiled of.

    Attributes:
        kernels: C functions by name.
        plan: The plan, whose functions these are.
        text: The C that brings both together.
    """

    kernels: Mapping[str, str]
    plan: bytes
    text: str


def build_library(
    sources: Sources,
    target: BuildTarget,
    library: Path,
    *,
    weights: Path | None,
    jobs: int | None = None,
    advance: Callable[[int, int], None] = lambda done, total: None,
) -> None:
    """Compile and link the library of a build; an archive if its name ends in ``.a``.

    Args:
        sources: The sources to compile.
        target: The machine to compile for.
        library: Where to write.
        weights: The file to embed, if it is to be.
        jobs: How many compilers run at a time.
        advance: Called with the files compiled, and the files in all.

    Raises:
        NoCompiler: There is no compiler, or it failed.
        NoArchiver: The tools that make an archive are missing.
    """
    compiler = compiler_for(target)
    work = library.parent / ".work"
    work.mkdir()
    try:
        objects = _kernel_objects(sources.kernels, target, compiler, work, jobs, advance)
        objects.append(_runtime_object(compiler, work))
        objects.append(_text_object(sources.text, compiler, work))
        plan = work / "plan"
        plan.write_bytes(sources.plan)
        objects.append(_embedded_object("hgb_plan", plan, 64, compiler, work))
        if weights is not None:
            objects.append(_embedded_object("hgb_weights", weights, 4096, compiler, work))
        if library.suffix == ".a":
            _archive(compiler, objects, library, work)
        else:
            _link(compiler, objects, library, work, "hagane_*")
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _units(kernels: Mapping[str, str]) -> list[str]:
    """Return C files of kernels, by name, each of a few."""
    units: list[list[str]] = [[]]
    length = 0
    ends = False
    for name in sorted(kernels):
        if length > _MOST_UNIT or (length > _LEAST_UNIT and ends):
            units.append([])
            length = 0
        units[-1].append(kernels[name].replace("KERNEL", name))
        length += len(kernels[name])
        ends = zlib.crc32(name.encode("utf-8", "surrogatepass")) % _ENDS == 0
    return ["\n".join(texts) for texts in units if texts]


def _kernel_objects(
    kernels: Mapping[str, str],
    target: BuildTarget,
    compiler: Compiler,
    work: Path,
    jobs: int | None,
    advance: Callable[[int, int], None],
) -> list[Path]:
    """Return the objects of all kernels; those of the cache are not compiled."""
    units = _units(kernels)
    flags = (*KERNEL_FLAGS, *target.level.flags, *extra_flags(), *_HIDDEN)
    text = c_source(*HEADER)
    cache = CodeCache("native")
    header = Header(cache, compiler, text, flags)
    begun = Lock()
    compiled = itertools.count(1)

    def object_of(number: int) -> Path:
        key = "\0".join(("build", text, units[number], *flags, *compiler.command, compiler.version))

        def make(folder: Path) -> Path:
            with begun:  # the first one translates the header
                include, (source,) = header.begin([units[number]])
            written = folder / "kernels.c"
            written.write_text(source, encoding="utf-8")
            made = folder / "kernels.o"
            compiler.call([*flags, *include, "-c", str(written)], made)
            written.unlink()
            return made

        made = work / f"kernels{number}.o"
        shutil.copyfile(cache.get(key, make), made)
        advance(next(compiled), len(units))
        return made

    # Long ones first, so that none is left over at the end.
    order = sorted(range(len(units)), key=lambda number: -len(units[number]))
    with ThreadPoolExecutor(usable_cores() if jobs is None else jobs) as pool:
        found = dict(zip(order, pool.map(object_of, order), strict=True))
    return [found[number] for number in range(len(units))]


def _cached_object(name: str, source: str, compiler: Compiler, work: Path) -> Path:
    flags = (*_FLAGS, *extra_flags())
    key = "\0".join((name, source, *flags, *compiler.command, compiler.version))

    def make(folder: Path) -> Path:
        written = folder / f"{name}.c"
        written.write_text(source, encoding="utf-8")
        made = folder / f"{name}.o"
        compiler.call([*flags, "-c", str(written)], made)
        written.unlink()
        return made

    made = work / f"{name}.o"
    shutil.copyfile(CodeCache("native").get(key, make), made)
    return made


def runtime_source() -> str:
    """Return the C that all builds share: the engine and the interface."""
    header = own_source("hagane.h")
    text = own_source("memory.c") + c_source(*ENGINE_PARTS) + own_source(*_OWN)
    return text.replace('#include "hagane.h"', header)


def _runtime_object(compiler: Compiler, work: Path) -> Path:
    return _cached_object("runtime", runtime_source(), compiler, work)


def menoh_header() -> str:
    """Return the header of Menoh's functions."""
    return _menoh_source("menoh.h")


def _menoh_source(*names: str) -> str:
    folder = resources.files("hagane.ship.c.menoh")
    return "\n".join((folder / name).read_text(encoding="utf-8") for name in names)


def build_menoh(target: BuildTarget, library: Path) -> None:
    """Compile and link the library of Menoh's functions, which opens builds.

    Raises:
        NoCompiler: There is no compiler, or it failed.
    """
    compiler = compiler_for(target)
    work = library.parent / ".work"
    work.mkdir()
    try:
        text = _menoh_source(*_MENOH).replace('#include "menoh.h"', menoh_header())
        made = _cached_object("menoh", runtime_source() + text, compiler, work)
        _link(compiler, [made], library, work, "menoh_*")
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _embedded_object(
    name: str, content: Path, alignment: int, compiler: Compiler, work: Path
) -> Path:
    """Return an object that has the content of a file under a name."""
    assembly, made = work / f"{name}.S", work / f"{name}.o"
    text = _EMBEDDED.format(name=name, path=content, alignment=alignment)
    assembly.write_text(text, encoding="utf-8")
    compiler.call(["-c", str(assembly)], made)
    return made


def _text_object(text: str, compiler: Compiler, work: Path) -> Path:
    source = work / "built.c"
    source.write_text(engine_header() + text, encoding="utf-8")
    made = work / "built.o"
    compiler.call([*_FLAGS, "-fwrapv", *extra_flags(), "-c", str(source)], made)
    return made


def _link(
    compiler: Compiler, objects: Sequence[Path], library: Path, work: Path, names: str
) -> None:
    """Link a library that exports some names alone."""
    exports = work / "exports"
    exports.write_text(f"{{ global: {names}; local: *; }};\n", encoding="utf-8")
    flags = [
        *(
            "-shared",
            "-s",
            "-static-libgcc",
            f"-Wl,-soname,{library.name}",
            "-Wl,-Bsymbolic",
            "-Wl,-z,defs",
            "-Wl,-z,nodelete",
        ),
        *(f"-Wl,--version-script={exports}", "-Wl,--build-id=none", "-Wl,--as-needed"),
        *("-Wl,-z,noexecstack", *extra_flags()),
    ]
    compiler.call([*flags, *map(str, objects), "-lm", "-lpthread"], library)


def _archive(compiler: Compiler, objects: Sequence[Path], library: Path, work: Path) -> None:
    whole = work / f"{library.stem}.o"
    compiler.call(["-r", "-nostdlib", *extra_flags(), *map(str, objects)], whole)
    # A program may have several archives: the functions of the first serve all of them.
    # (Weak references to libm's functions would not make linkers load it: they stay as they are.)
    kept = tuple(
        f"--{way}-symbol={name}"
        for way in ("keep-global", "weaken")
        for name in ("hagane_*", "hgb_register")
    )
    _tool("objcopy", "-w", *kept, "--strip-unneeded", str(whole))
    _tool("ar", "rcsD", str(library), str(whole))


def _tool(name: str, *arguments: str) -> None:
    path = shutil.which(name)
    if path is None:
        raise NoArchiver(f"--static needs '{name}': install binutils, or build with --shared")
    done = subprocess.run([path, *arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise NoArchiver(f"{name} failed: {done.stderr.strip()[-500:]}")
