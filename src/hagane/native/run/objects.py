"""The machine code of kernels: each is compiled once on a machine, whichever programs have it.

A compiler translates several kernels at a time, since it takes 50 ms to begin. Their object files
stay in the cache of code, with a list of which one has which kernel; a library is linked from old
ones and new.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from hagane.errors import NoCompiler
from hagane.machine import CodeCache
from hagane.machine.compiler import Compiler
from hagane.machine.headers import Header
from hagane.native.kernels.kernel import SHARED

# Functions have sections of their own, so that a library has only those that it calls.
_SECTIONS = ("-ffunction-sections", "-fdata-sections")
# An object file's own name in its entry, and that of the list of its kernels.
_OBJECT, _NAMES = "kernels.o", "names"
# Bytes of a list of kernels, beyond which it begins anew.
_LIST_LIMIT = 4 << 20
# The beginning of functions that several object files call, which libraries do not show.
_ELSEWHERE = '__attribute__((visibility("hidden")))'
# Characters of C that are worth a compiler of their own.
_UNIT = 16_000


@dataclass(frozen=True)
class Objects:
    """Object files of kernels in a cache.

    Attributes:
        cache: Where they are kept.
        compiler: What makes them.
        flags: Those of the compiler.
        header: The text that each kernel begins with.
        jobs: How many compilers may run at a time.
    """

    cache: CodeCache
    compiler: Compiler
    flags: tuple[str, ...]
    header: str
    jobs: int

    def link(self, codes: Mapping[str, str], library: Path, more: Sequence[str] = ()) -> None:
        """Write a library of kernels.

        Args:
            codes: C of each kernel, by the symbol that it is found by.
            library: The file to write.
            more: Further symbols of theirs that the library shows.

        Raises:
            NoCompiler: The compiler failed; see ``Compiler.build``.
        """
        apart = (part for code in codes.values() for part in _apart(code))
        texts = {_short(code): code for code in apart}
        files = self._found(texts)
        missing = {name: code for name, code in texts.items() if name not in files}
        if missing:
            files.update(self._compiled(missing))
        self._join(sorted({str(f) for f in files.values()}), sorted({*codes, *more}), library)

    @property
    def _key(self) -> str:
        compiler = self.compiler
        parts = (self.header, *self.flags, *_SECTIONS, *compiler.command, compiler.version)
        return "\0".join(parts)

    @property
    def _list(self) -> Path:
        return self.cache.folder / f"{_short(self._key)}.kernels"

    def _found(self, codes: Mapping[str, str]) -> dict[str, Path]:
        """Return the object files that have kernels, by the hashes of the kernels' texts."""
        places: dict[str, str] = {}
        with suppress(OSError, ValueError):
            for line in self._list.read_text(encoding="ascii").splitlines():
                name, _, unit = line.partition(" ")
                if name in codes:
                    places[name] = unit
        found: dict[str, Path] = {}
        for unit in dict.fromkeys(places.values()):
            file = self.cache.find(f"{self._key}\0{unit}")
            if file is not None:
                names = file.with_name(_NAMES).read_text(encoding="ascii").split()
                found.update({name: file for name in names if name in codes})
        return found

    def _compiled(self, codes: Mapping[str, str]) -> dict[str, Path]:
        """Compile kernels, several at a time, and return their object files."""
        most = min(2 * self.jobs, len(codes), 1 + sum(map(len, codes.values())) // _UNIT)
        units: list[dict[str, str]] = [{} for _ in range(max(1, most))]
        # Long ones first, each to the shortest unit so far.
        for name, code in sorted(codes.items(), key=lambda item: -len(item[1])):
            min(units, key=lambda unit: sum(map(len, unit.values())))[name] = code
        header = Header(self.cache, self.compiler, self.header, self.flags)
        include, texts = header.begin(["\n".join(unit.values()) for unit in units])
        flags = (*self.flags, *_SECTIONS, *include)

        def compile_one(unit: Mapping[str, str], text: str) -> Path:
            def fill(folder: Path) -> None:
                source = folder / "kernels.c"
                source.write_text(text, encoding="utf-8")
                self.compiler.call([*flags, "-c", str(source)], folder / _OBJECT)
                source.unlink()
                (folder / _NAMES).write_text("\n".join(unit), encoding="ascii")

            return self.cache.get_folder(f"{self._key}\0{_unit_name(unit)}", fill) / _OBJECT

        if len(units) == 1 or self.jobs <= 1:
            made = list(map(compile_one, units, texts))
        else:
            with ThreadPoolExecutor(self.jobs) as pool:
                made = list(pool.map(compile_one, units, texts))
        self._note(units)
        return {name: file for unit, file in zip(units, made, strict=True) for name in unit}

    def _note(self, units: Sequence[Mapping[str, str]]) -> None:
        """Add kernels to the list; where it cannot be written, they are compiled anew."""
        lines = "".join(f"{name} {_unit_name(unit)}\n" for unit in units for name in unit)
        with suppress(OSError):
            fresh = os.O_TRUNC if _is_long(self._list) else 0
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | fresh
            place = os.open(self._list, flags, 0o600)
            with os.fdopen(place, "w", encoding="ascii") as file:
                file.write(lines)

    def _join(self, files: Sequence[str], names: Sequence[str], library: Path) -> None:
        """Link object files, without what no kernel of the library calls where the linker can."""
        script = library.with_name("kernels.map")
        script.write_text(f"{{ global: {'; '.join(names)}; local: *; }};\n", encoding="ascii")
        # Processes that ran side by side may have compiled a kernel twice, with others beside it.
        call = [*self.flags, "-shared", *files, "-lm", "-Wl,-z,muldefs"]
        try:
            lean = ["-Wl,--gc-sections", f"-Wl,--version-script={script}"]
            self.compiler.call([*call, *lean], library)
        except NoCompiler:  # an old linker
            self.compiler.call(call, library)


def _apart(code: str) -> Iterator[str]:
    """Yield a kernel that calls functions from elsewhere, and each of these."""
    signatures: dict[str, str] = {}
    for found in SHARED.finditer(code):
        text = found[2].replace("SHARED", _ELSEWHERE)
        yield text
        signatures[found[1]] = f"{text[: text.index('{')].strip()};"
    yield SHARED.sub(lambda found: signatures[found[1]], code)


def _short(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:40]


def _unit_name(unit: Mapping[str, str]) -> str:
    return _short("\n".join(sorted(unit)))


def _is_long(file: Path) -> bool:
    try:
        return file.stat().st_size > _LIST_LIMIT
    except OSError:
        return False
