"""Sources without the concurrent assertions that simulators at hand do not parse.

A replay needs none of them: hagane computes from the waves whether they hold. Their text becomes
blanks, and a directive in front tells the file, so that all else keeps its place.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

from hagane.tools.rtl.circuit.elaborate import Sources, parse

# Operators of sequences and properties, of which Verilator 5.006 and Icarus 11 know none.
_OPERATORS = re.compile(
    rb"\b(assert|assume|cover|restrict)\s+(property|sequence)\b|\b(endproperty|endsequence)\b"
)
_UNKNOWN = re.compile(
    rb"##\s*[\[\d($\w]|\[\s*(\*|->|=)|\|->\s*##|\b(endsequence|throughout|within|intersect|"
    rb"first_match|s_eventually|eventually|nexttime|s_nexttime|until|until_with|s_until|"
    rb"s_until_with|strong|weak|s_always|accept_on|reject_on)\b"
)
_MEMBERS = {"ConcurrentAssertionMember", "PropertyDeclaration", "SequenceDeclaration"}
_STATEMENTS = {
    f"{name}Statement"
    for name in (
        *("AssertProperty", "AssumeProperty", "CoverProperty"),
        *("CoverSequence", "RestrictProperty"),
    )
}


def without_properties(sources: Sources, folder: Path) -> Sources:
    """Return the sources, those with such assertions as copies without them in a folder."""
    texts = {path: path.read_bytes() for path in sources.files}
    if not any(_OPERATORS.search(text) and _UNKNOWN.search(text) for text in texts.values()):
        return sources
    found = _ranges(sources)
    files = []
    for number, (path, text) in enumerate(texts.items()):
        if str(path) in found:
            folder.mkdir(parents=True, exist_ok=True)
            copy = folder / f"{number}_{path.name}"
            copy.write_bytes(f'`line 1 "{path}" 0\n'.encode() + _blank(text, found[str(path)]))
            path = copy
        files.append(path)
    include = (*sources.include, *dict.fromkeys(path.parent for path in texts))
    return replace(sources, files=tuple(files), include=include)


def _ranges(sources: Sources) -> dict[str, list[tuple[int, int, bool]]]:
    """Return for each file where such texts begin and end, and which stand for a statement."""
    driver, manager = parse(sources)
    found: dict[str, list[tuple[int, int, bool]]] = {}

    def visit(node: Any) -> None:
        kind = getattr(getattr(node, "kind", None), "name", "")
        if kind in _MEMBERS | _STATEMENTS:
            start, end = node.sourceRange.start, node.sourceRange.end
            if start.buffer == end.buffer and not manager.isMacroLoc(start):
                path = str(Path(str(manager.getFullPath(start.buffer))).resolve())
                found.setdefault(path, []).append((start.offset, end.offset, kind in _STATEMENTS))

    for tree in driver.syntaxTrees:
        tree.root.visit(visit)
    return found


def _blank(text: bytes, ranges: list[tuple[int, int, bool]]) -> bytes:
    made = bytearray(text)
    whole = [(start, end) for start, end, statement in ranges if not statement]
    for start, end, statement in ranges:
        for at in range(start, end):
            if made[at] not in b"\r\n":
                made[at] = 0x20
        alone = statement and not any(a <= start and end <= b for a, b in whole)
        if alone and end > start:  # a process wants a statement there
            made[end - 1] = 0x3B
    return bytes(made)
