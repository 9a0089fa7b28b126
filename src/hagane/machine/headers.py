"""C headers translated ahead, and without the functions that nothing calls.

The intrinsics of a vector level are some 6,000 functions, of which a kernel calls a few: gcc takes
60 ms to start on all of them, translated ahead, and 25 ms on those.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from hagane.errors import NoCompiler
from hagane.machine.cache import CodeCache
from hagane.machine.compiler import Compiler
from hagane.machine.lock import Lock

_NAME = re.compile(r"[A-Za-z_]\w*")
# A function's definition, and the name and arguments at the end of what stands before its body.
_DEFINITION = re.compile(
    r"^(?:extern|static)\b([^;{}#]*)(?:\n\{\n(?:[^}\n].*\n|\n)*\}|\{.*\})[ \t]*\n", re.MULTILINE
)
_SIGNATURE = re.compile(r"(\w+)\s*\([^()]*(?:\([^()]*\)[^()]*)*\)\s*$")


_making = Lock()


class Header:
    """A header that C sources begin with, translated ahead once a machine.

    Args:
        cache: The place of the translated header.
        compiler: The compiler that reads it.
        text: The header.
        flags: The flags of the sources that begin with it.
    """

    def __init__(self, cache: CodeCache, compiler: Compiler, text: str, flags: Sequence[str]):
        self._cache, self._compiler = cache, compiler
        self._text, self._flags = text, tuple(flags)

    def make(self) -> None:
        """Translate the header, if no process has on this machine.

        Raises:
            NoCompiler: It cannot be translated.
        """
        _ = self._lean

    def begin(self, sources: Sequence[str]) -> tuple[tuple[str, ...], list[str]]:
        """Return sources that begin with the header, and the flags with which they find it.

        Raises:
            NoCompiler: The header cannot be translated.
        """
        folder, left_out = self._lean
        flags: tuple[str, ...] = (f"-I{folder}",)
        begun = []
        for source in sources:
            lean = left_out.isdisjoint(_NAME.findall(source))
            begun.append(f'#include "{"lean" if lean else "whole"}.h"\n{source}')
            if not lean and len(flags) == 1:
                flags = (*flags, f"-I{self._whole}")
        return flags, begun

    @cached_property
    def _whole(self) -> Path:
        def make(folder: Path) -> None:
            (folder / "whole.h").write_text(self._text, encoding="utf-8")
            self._compiler.precompile(folder / "whole.h", self._flags)

        with _making:
            return self._cache.get_folder(self._key("header"), make)

    @cached_property
    def _lean(self) -> tuple[Path, frozenset[str]]:
        def make(folder: Path) -> None:
            whole = Lean(self._text, frozenset())
            lean = self._lean_text(folder) or whole
            try:
                self._translate(folder, lean)
            except NoCompiler:  # the compiler misses something that was left out
                lean = whole
                self._translate(folder, lean)
            (folder / "left_out").write_text(" ".join(sorted(lean.left_out)), encoding="utf-8")

        with _making:  # by one thread: the others need it too
            folder = self._cache.get_folder(self._key("lean header 3"), make)
        names = (folder / "left_out").read_text(encoding="utf-8").split()
        return folder, frozenset(names)

    def _translate(self, folder: Path, lean: Lean) -> None:
        """Write ``lean.h``, translated ahead where the compiler can do that, else tried."""
        header = folder / "lean.h"
        header.write_text(lean.text, encoding="utf-8")
        flags = list(self._flags)
        if lean.left_out:  # -w would keep the compiler from telling of functions that are missing
            flags = [flag for flag in flags if flag != "-w"]
            flags.append("-Werror=implicit-function-declaration")
        if not self._compiler.precompile(header, flags) and lean.left_out:
            self._compiler.call([*flags, "-x", "c", "-c", str(header)], folder / "made")
            (folder / "made").unlink()

    def _lean_text(self, folder: Path) -> Lean | None:
        """Return the header without uncalled functions, None where it cannot be preprocessed."""
        source, made = folder / "whole.c", folder / "made"
        try:
            source.write_text(self._text, encoding="utf-8")
            self._compiler.call([*self._flags, "-E", "-dD", "-P", str(source)], made)
            return without_unused(made.read_text(encoding="utf-8"))
        except (NoCompiler, UnicodeError):
            return None
        finally:
            source.unlink(missing_ok=True)
            made.unlink(missing_ok=True)

    def _key(self, kind: str) -> str:
        compiler = self._compiler
        return "\0".join((kind, self._text, *self._flags, *compiler.command, compiler.version))


@dataclass(frozen=True, slots=True)
class Lean:
    """A preprocessed header with fewer definitions.

    Attributes:
        text: The header.
        left_out: The names whose definitions it lacks.
    """

    text: str
    left_out: frozenset[str]


def without_unused(text: str) -> Lean:
    """Return a header without the system's functions that the rest does not need.

    Macros stay: the headers of the system tell by them which ones were read. So does each
    definition that is written in another form than the system's, which end with a brace in a
    line's first column or take one line.

    Args:
        text: The header, preprocessed with its macros kept (``-E -dD -P``). Names that begin with
            an underscore are the system's.
    """
    spans: list[tuple[int, int]] = []
    by_name: dict[str, list[int]] = defaultdict(list)
    for found in _DEFINITION.finditer(text):
        named = _last_name(found[1])
        if named.startswith("_"):
            by_name[named].append(len(spans))
            spans.append(found.span())
    ends = [0, *(end for _, end in spans)]
    starts = [*(start for start, _ in spans), len(text)]
    rest = [text[end:start] for end, start in zip(ends, starts, strict=True)]
    kept: set[int] = set()
    needed = ["".join(rest)]
    while needed:
        for name in set(_NAME.findall(needed.pop())):
            more = by_name.pop(name, ())
            kept.update(more)
            needed.extend(text[slice(*spans[number])] for number in more)
    lines = [rest[0]]
    for number, span in enumerate(spans):
        if number in kept:
            lines.append(text[slice(*span)])
        lines.append(rest[number + 1])
    return Lean("".join(lines), frozenset(by_name))


def _last_name(head: str) -> str:
    """Return the name of the function that a definition defines, or ""."""
    # Mostly the last line holds the name and its arguments.
    found = _SIGNATURE.search(head, head.rfind("\n") + 1) or _SIGNATURE.search(head)
    return found[1] if found else ""
