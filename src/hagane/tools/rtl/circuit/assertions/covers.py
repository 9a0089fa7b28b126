"""Cover statements of the source: which of them are points, and under which condition.

An immediate ``cover`` is one where it stands. So is a ``cover property`` of a condition sampled at
a rising edge; ``monitors`` follows properties over more than one cycle.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Sampled:
    """A property of one cycle: ``condition`` holds at the event ``clocking``, ``disabled`` not.

    ``clocking`` is None where the property takes the clock of the process that it stands in.
    """

    condition: Any
    clocking: Any = None
    disabled: tuple[Any, ...] = ()

    @property
    def conditions(self) -> tuple[Any, ...]:
        """All expressions that it evaluates."""
        return (self.condition, *self.disabled)


def clocking_of(spec: Any) -> Any:
    """Return the clocking event of a property, or None where it has none of its own."""
    while True:
        kind = spec.kind.name
        if kind == "Clocking":
            return spec.clocking
        if kind == "DisableIff":
            spec = spec.expr
        elif kind == "Simple" and spec.expr.kind.name == "AssertionInstance":
            spec = spec.expr.body
        else:
            return None


def is_cover(statement: Any) -> bool:
    """Return whether an assertion statement is a ``cover`` or a ``cover property``."""
    return bool(statement.assertionKind.name in ("CoverProperty", "CoverSequence"))


def changes(statement: Any) -> bool:
    """Return whether a statement assigns to something, or calls what may."""
    found = False

    def look(node: Any) -> None:
        nonlocal found
        kind = getattr(node.kind, "name", "")
        if kind == "Call":
            found |= not node.isSystemCall
        elif kind == "UnaryOp":
            found |= node.op.name.endswith(("increment", "decrement"))
        else:
            found |= kind == "Assignment"

    statement.visit(look)
    return found


def sampled(spec: Any) -> Sampled | None:
    """Return a property of one cycle, or None where it spans more than that."""
    kind = spec.kind.name
    if kind == "Clocking":
        inner = sampled(spec.expr)
        if inner is None or inner.clocking is not None:
            return None
        return Sampled(inner.condition, spec.clocking, inner.disabled)
    if kind == "DisableIff":
        inner = sampled(spec.expr)
        if inner is None:
            return None
        return Sampled(inner.condition, inner.clocking, (*inner.disabled, spec.condition))
    if kind != "Simple" or spec.repetition is not None:
        return None
    if spec.expr.kind.name == "AssertionInstance":
        # A named property or sequence; slang has put the arguments in.
        return None if list(spec.expr.localVars) else sampled(spec.expr.body)
    return Sampled(spec.expr)
