"""What ``$readmemh`` and ``$readmemb`` give memories at the start, from files."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hagane.symbolic import bitvector as bv
from hagane.symbolic.term import TRUE
from hagane.tools.rtl.circuit.machine import Machine, Target
from hagane.tools.rtl.circuit.values import Array, Packed

if TYPE_CHECKING:
    from hagane.tools.rtl.circuit.expressions import Expressions
    from hagane.tools.rtl.circuit.scope import Scope

READING = {"$readmemb": 2, "$readmemh": 16}
_REMARK = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_UNKNOWN = re.compile(r"[xXzZ?]")


def read_memory(x: Expressions, scope: Scope, e: Any, m: Machine) -> None:
    """Write the words of a file into a memory, as IEEE 1800-2017, 21.4 has it."""
    if m.dead:
        return
    name, arguments = str(e.subroutineName), list(e.arguments)
    if not m.once or m.guard is not TRUE:
        x.refuse(e, f"{name} elsewhere than at the start, or under a condition that inputs decide")
    told = _text(scope, arguments[0])
    if told is None:
        x.refuse(arguments[0], f"a name of a file for {name} that is no constant")
    target = x.target(_memory(arguments[1]), m)
    layout = target.layout
    if not isinstance(layout, Array) or not isinstance(layout.element, Packed):
        x.refuse(arguments[1], f"{name} into anything but a memory of one dimension")
    path = _found(told, Path(scope.position(e.sourceRange.start).file).parent)
    if path is None:
        x.refuse(
            e,
            f"{name} of '{told}', of which there is no such file in {Path.cwd()} nor beside the "
            "source (run it in the folder of the file; paths with '..' are not followed)",
        )
    low, high = sorted((layout.left, layout.right))
    ends = [_number(x, scope, each) for each in arguments[2:4]]
    first = ends[0] if ends else low
    last = ends[1] if len(ends) > 1 else high
    step = 1 if first <= last else -1
    at = first
    text = _REMARK.sub(" ", path.read_text(encoding="utf-8", errors="replace"))
    for word in text.split():
        try:
            if word.startswith("@"):
                at = int(word[1:].replace("_", ""), 16)
                continue
            number = int(_UNKNOWN.sub("0", word.replace("_", "")), READING[name])
        except ValueError:
            x.refuse(e, f"{name}: '{path}' has '{word}', which is no number there")
        if _UNKNOWN.search(word):
            m.notices[f"{path}: digits x and z are 0, as values are two-state"] = None
        if not (min(first, last) <= at <= max(first, last) and low <= at <= high):
            x.refuse(e, f"{name}: '{path}' has a word for {at}, beyond the memory [{low}:{high}]")
        place = at - layout.left if layout.left <= layout.right else layout.left - at
        value = bv.value(number, layout.element.width)
        m.write(Target(target.variable, (*target.steps, ("element", place)), layout.element), value)
        at += step
    if not Path(told).is_absolute():
        m.files[told] = path


def _memory(argument: Any) -> Any:
    """Return the memory that an argument names, which slang may have as a target."""
    return argument.left if argument.kind.name == "Assignment" else argument


def _text(scope: Scope, argument: Any) -> str | None:
    found = scope.constant(argument)
    if found is None:
        return None
    value = found.value
    if isinstance(value, str):
        return value
    number = int(value)
    data = number.to_bytes((number.bit_length() + 7) // 8, "big")
    return data.decode("utf-8", "replace")


def _number(x: Expressions, scope: Scope, argument: Any) -> int:
    found = scope.constant(argument)
    if found is None:
        x.refuse(argument, "an address that is no constant")
    return int(found.value)


def _found(name: str, beside: Path) -> Path | None:
    if ".." in Path(name).parts:
        return None
    return next((path for path in (Path.cwd() / name, beside / name) if path.is_file()), None)
