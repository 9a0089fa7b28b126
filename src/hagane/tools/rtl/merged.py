"""Coverage of existing tests: Verilator's ``coverage.dat`` and UCIS XML, as goals met elsewhere.

Points covered by such a file are not sought again. Files are matched by the end of their paths,
instances by the place of the top module in the hierarchy of the file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias
from xml.etree import ElementTree

from hagane.errors import InvalidArgument
from hagane.tools.rtl.circuit.cycle import CycleModel
from hagane.tools.rtl.circuit.machine import PointKey
from hagane.tools.rtl.circuit.simulate import Bit, Goal
from hagane.tools.rtl.replay.verilator import coverage_entries

_PAGE = re.compile(r"^v_(\w+)/(.*)$")
_EDGE = re.compile(r":[01xz]->[01xz]$", re.I)


@dataclass(frozen=True, slots=True)
class _Hit:
    """A point of a file; ``instance`` is its path in the file's hierarchy, column 0 unknown."""

    kind: str
    instance: str
    label: str
    file: str = ""
    line: int = 0
    column: int = 0
    counted: bool = True


def covered_elsewhere(paths: Sequence[Path], model: CycleModel, top: str) -> dict[Goal, str]:
    """Return the goals that files of coverage show as met, each with the file's name.

    Raises:
        InvalidArgument: A file is missing, or in neither form; or has no instance of ``top``.
    """
    found: dict[Goal, str] = {}
    for path in paths:
        hits, tops = _read(path, top)
        if not tops:
            raise InvalidArgument(f"--covered {path}: it has no instance of module '{top}'")
        for goal in _goals(hits, tops, model):
            found.setdefault(goal, path.name)
    return found


def _read(path: Path, top: str) -> tuple[list[_Hit], set[str]]:
    if not path.is_file():
        raise InvalidArgument(f"--covered {path}: there is no such file")
    head = path.read_bytes()[:200].lstrip()
    if head.startswith(b"# SystemC::Coverage"):
        return _verilator(path, top)
    if head.startswith(b"<"):
        try:
            return _ucis(path, top)
        except (ElementTree.ParseError, ValueError) as error:
            raise InvalidArgument(f"--covered {path}: no UCIS XML: {error}") from None
    raise InvalidArgument(
        f"--covered {path}: expected a coverage.dat of Verilator or UCIS XML, got a file that "
        f"starts with {head[:20]!r}"
    )


def _verilator(path: Path, top: str) -> tuple[list[_Hit], set[str]]:
    hits, tops = [], set()
    for fields, count in coverage_entries(path):
        match = _PAGE.match(fields.get("page", ""))
        if match is None:
            continue
        instance = fields.get("h", "")
        if match[2] == top:
            tops.add(instance)
        kind = "toggle" if match[1] == "toggle" else "line"
        if count or kind == "line":
            hits.append(
                _Hit(
                    kind, instance, fields.get("o", ""), fields.get("f", ""),
                    int(fields.get("l", 0)), int(fields.get("n", 0)), count > 0,
                )
            )  # fmt: skip
    return hits, tops


def _ucis(path: Path, top: str) -> tuple[list[_Hit], set[str]]:
    root = ElementTree.parse(path).getroot()
    if _tag(root) != "UCIS":
        raise ValueError(f"the root is '{_tag(root)}'")
    files = {
        item.get("id", ""): item.get("fileName", "") for item in root if _tag(item) == "sourceFiles"
    }
    hits, tops = [], set()
    for instance in root:
        if _tag(instance) != "instanceCoverages":
            continue
        name = instance.get("name", "")
        if instance.get("moduleName", name.rpartition(".")[2]) == top:
            tops.add(name)
        hits += list(_ucis_hits(instance, name, files))
    return hits, tops


def _ucis_hits(instance: ElementTree.Element, name: str, files: dict[str, str]) -> Iterator[_Hit]:
    for node in instance.iter():
        tag = _tag(node)
        if tag == "toggleObject":
            for bit in (item for item in node if _tag(item) == "toggleBit"):
                edges = [item for item in bit if _tag(item) == "toggle"]
                if len(edges) > 1 and all(map(_counted, edges)):
                    yield _Hit("toggle", name, bit.get("name", node.get("name", "")))
        elif tag in ("statement", "block") and _counted(node, direct=True):
            yield _Hit("statement", name, "", *_place(node, files))
        elif tag == "branch":
            for held in (item for item in node if _tag(item) == "branchBin"):
                if _counted(held):
                    yield _Hit("branch", name, held.get("alias", ""), *_place(node, files))


def _place(node: ElementTree.Element, files: dict[str, str]) -> tuple[str, int]:
    for item in node:
        if _tag(item) in ("id", "statementId", "stmtId", "blockId"):
            return files.get(item.get("file", ""), ""), int(item.get("line", 0))
    return "", 0


def _counted(node: ElementTree.Element, *, direct: bool = False) -> bool:
    bins = [item for item in node if _tag(item).endswith(("in", "ins"))] if direct else [node]
    return any(
        int(item.get("coverageCount", 0)) > 0
        for held in bins
        for item in held.iter()
        if _tag(item) == "contents"
    )


def _tag(node: ElementTree.Element) -> str:
    return node.tag.rpartition("}")[2]


_Place: TypeAlias = "tuple[str, str, str, int, str]"  # kind, scope, file, line, label


def _goals(hits: Sequence[_Hit], tops: set[str], model: CycleModel) -> Iterator[Goal]:
    toggled: set[tuple[str, str]] = set()
    placed: dict[_Place, list[_Hit]] = {}
    for hit in hits:
        for top in tops:
            if hit.instance != top and not hit.instance.startswith(f"{top}."):
                continue
            scope = _plain(hit.instance[len(top) + 1 :])
            if hit.kind == "toggle":
                toggled.add((scope, _plain(_EDGE.sub("", hit.label))))
            else:
                label = {"elsif": "if"}.get(hit.label, hit.label)
                place = (hit.kind, scope, Path(hit.file).name, hit.line, label)
                placed.setdefault(place, []).append(hit)
    keys: dict[_Place, list[PointKey]] = {}
    for key in model.points:
        where = (_plain(key.scope), Path(key.position.file).name, key.position.line)
        for label in (key.label, ""):
            if (key.kind, *where, label) in placed:
                keys.setdefault((key.kind, *where, label), []).append(key)
    for place, group in keys.items():
        yield from _met(group, placed[place])
    for name, term in model.signals.items():
        scope, _, short = name.rpartition(".")
        for index in range(term.width):
            bit = f"{short}[{index}]" if term.width > 1 else short
            if (_plain(scope), _plain(bit)) in toggled:
                yield Bit(name, index, 0)
                yield Bit(name, index, 1)


def _met(keys: Sequence[PointKey], hits: Sequence[_Hit]) -> Sequence[PointKey]:
    """Return those of the points of one line and label that hits of the same show as met.

    Columns tell them apart. Where a file has none, or one use of a macro makes several points in
    one place, all of them have to be counted.
    """
    columns = [key.position.column for key in keys]
    if len(keys) == 1 and not all(hit.column for hit in hits):
        return keys if any(hit.counted for hit in hits) else ()
    if len(set(columns)) < len(columns) or not all(hit.column for hit in hits):
        met = all(hit.counted for hit in hits) and len(hits) >= len(keys)
        return keys if met else ()
    nearest: dict[int, list[tuple[int, bool]]] = {}
    for hit in hits:
        at = min(range(len(keys)), key=lambda i: abs(columns[i] - hit.column))
        nearest.setdefault(at, []).append((abs(columns[at] - hit.column), hit.counted))
    found = []
    for at, each in nearest.items():
        least = min(far for far, _ in each)
        if any(counted for far, counted in each if far == least):
            found.append(keys[at])
    return found


def _plain(path: str) -> str:
    text = path.replace("__BRA__", "[").replace("__KET__", "]").replace("__DOT__", ".")
    return text.replace("\\", "").replace(" ", "")
