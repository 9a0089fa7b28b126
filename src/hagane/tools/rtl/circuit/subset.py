"""Which constructs lie outside the subset, found before anything is executed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hagane.tools.rtl.circuit.elaborate import Position
from hagane.tools.rtl.circuit.memory_files import READING
from hagane.tools.rtl.circuit.system_calls import OF_ENUMERATIONS, SILENT

# The remedies.
BENCH = "it belongs in a test bench; a circuit has bits, numbers of fixed point among them"
DELAYED = (
    "a delay or an event inside a process (a state machine waits for cycles; `q <= #1 d` and the "
    "delays of continuous assignments are ignored)"
)
THREE_STATES = (
    "give what is driven and its enable as outputs of their own, or write a choice: "
    "`enable ? a : b`"
)

_STATEMENTS = {
    "Wait": "wait",
    "WaitFork": "wait fork",
    "WaitOrder": "wait_order",
    "EventTrigger": "an event trigger",
    "ForeverLoop": "a forever loop",
    "ProceduralAssign": "a procedural continuous assignment",
    "ProceduralDeassign": "deassign",
    "RandCase": "randcase",
    "RandSequence": "randsequence",
    "PatternCase": "case with patterns",
    "Disable": "disable",
    "DisableFork": "disable fork",
    "Timed": DELAYED,
    "ProceduralChecker": "a checker",
}
_EXPRESSIONS = {
    "RealLiteral": f"a real number ({BENCH})",
    "TimeLiteral": "a time",
    "NewClass": f"an object ({BENCH})",
    "NewArray": "a dynamic array",
    "TaggedUnion": "a tagged union",
    "Dist": "a distribution",
    "CopyClass": "an object",
    "NewCovergroup": "a covergroup",
}
_CALLS = frozenset(
    {
        "$signed", "$unsigned", "$countones", "$onehot", "$onehot0", "$isunknown", "$clog2",
        "$bits", "$high", "$low", "$left", "$right", "$size", "$increment", "$dimensions",
        "$unpacked_dimensions", "$cast", "$rtoi", "$itor", "$countbits",
    }
)  # fmt: skip


# Those of values sampled on earlier cycles, in assertions.
PAST = frozenset({"$past", "$rose", "$fell", "$stable", "$changed", "$sampled"})


def outside(
    node: Any, position: Callable[[Any], Position], *, past: bool = False, start: bool = False
) -> list[str]:
    """Return the parts of ``node`` (statement or expression) outside the subset, with positions.

    Args:
        node: The statement or expression.
        position: Where a location is.
        past: Whether functions of earlier cycles belong to the subset.
        start: Whether those do that give memories their words at the start.
    """
    found: list[str] = []

    def look(item: Any) -> None:
        kind = getattr(getattr(item, "kind", None), "name", "")
        name = type(item).__name__
        table = _STATEMENTS if name.endswith("Statement") else _EXPRESSIONS
        if kind in table:
            found.append(f"{position(item.sourceRange.start)}: {table[kind]}")
        elif name == "CallExpression" and item.isSystemCall:
            called = str(item.subroutineName)
            known = called in _CALLS or called in SILENT or called in OF_ENUMERATIONS
            if not (known or (past and called in PAST) or (start and called in READING)):
                where = position(item.sourceRange.start)
                found.append(f"{where}: system function {called}")

    node.visit(look)
    return list(dict.fromkeys(found))
