"""C headers translated ahead, and without the functions that nothing calls.

The intrinsics of a vector level are some 6,000 functions, of which a kernel calls a few: gcc takes
60 ms to start on all of them, translated ahead, and 25 ms on those.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from hagane.errors import NoCompiler
from hagane.machine.cache import CodeCache
from hagane.machine.compiler import Compiler

_NAME = re.compile(r"[A-Za-z_]\w*")


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

        return self._cache.get_folder(self._key("header"), make)

    @cached_property
    def _lean(self) -> tuple[Path, frozenset[str]]:
        def make(folder: Path) -> None:
            lean = self._lean_text(folder)
            (folder / "left_out").write_text(" ".join(sorted(lean.left_out)), encoding="utf-8")
            (folder / "lean.h").write_text(lean.text, encoding="utf-8")
            self._compiler.precompile(folder / "lean.h", self._flags)

        folder = self._cache.get_folder(self._key("lean header 2"), make)
        names = (folder / "left_out").read_text(encoding="utf-8").split()
        return folder, frozenset(names)

    def _lean_text(self, folder: Path) -> Lean:
        """Return the header without uncalled functions; all of it if the compiler refuses that."""
        source, made = folder / "whole.c", folder / "made"
        try:
            source.write_text(self._text, encoding="utf-8")
            self._compiler.call([*self._flags, "-E", "-dD", "-P", str(source)], made)
            lean = without_unused(made.read_text(encoding="utf-8"))
            source.write_text(lean.text, encoding="utf-8")
            strict = "-Werror=implicit-function-declaration"
            self._compiler.call([*self._flags, strict, "-c", str(source)], made)
        except (NoCompiler, UnicodeError):
            lean = Lean(self._text, frozenset())
        finally:
            source.unlink(missing_ok=True)
            made.unlink(missing_ok=True)
        return lean

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

    Macros stay: the headers of the system tell by them which ones were read.

    Args:
        text: The header, preprocessed with its macros kept (``-E -dD -P``). Names that begin with
            an underscore are the system's.
    """
    chunks = list(_chunks(text))
    by_name: dict[str, list[int]] = defaultdict(list)
    needed: list[int] = []
    for number, (name, _) in enumerate(chunks):
        if name.startswith("_"):
            by_name[name].append(number)
        else:
            needed.append(number)
    kept = set(needed)
    while needed:
        for name in set(_NAME.findall(chunks[needed.pop()][1])):
            more = by_name.pop(name, ())
            kept.update(more)
            needed.extend(more)
    lines = [chunk for number, (_, chunk) in enumerate(chunks) if number in kept]
    return Lean("\n".join(lines) + "\n", frozenset(by_name))


def _chunks(text: str) -> Iterator[tuple[str, str]]:
    """Yield the name and the text of each function, and "" with the text of anything else."""
    lines: list[str] = []
    depth = 0
    for line in text.split("\n"):
        if not lines and line.startswith("#"):
            yield "", line
            continue
        if not lines and not line.strip():
            continue
        lines.append(line)
        depth += line.count("{") + line.count("(") - line.count("}") - line.count(")")
        if depth == 0 and line.rstrip().endswith((";", "}")):
            chunk = "\n".join(lines)
            lines = []
            yield _function(chunk), chunk
    if lines:
        yield "", "\n".join(lines)


def _function(chunk: str) -> str:
    """Return the name of the function that a definition defines, or ""."""
    head, brace, _ = chunk.partition("{")
    head = head.rstrip()
    if not brace or not head.endswith(")"):
        return ""
    depth = 0
    for at in range(len(head) - 1, -1, -1):
        depth += {")": 1, "(": -1}.get(head[at], 0)
        if depth == 0:
            name = re.search(r"(\w+)\s*$", head[:at])
            return name[1] if name else ""
    return ""
