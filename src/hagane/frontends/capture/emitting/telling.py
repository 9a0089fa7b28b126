"""``print`` and ``assert`` on values of the run: left out with a notice, or kept as outputs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from hagane.frontends.capture.emitting.emitter import GraphEmitter
from hagane.frontends.python.values.values import (
    Real,
    Tensor,
    Truth,
    Value,
)
from hagane.symbolic import Expr

if TYPE_CHECKING:
    from hagane.frontends.python.enter.interpreter import Interpreter


class Telling:
    """Prints and assertions of a program while it runs.

    Args:
        core: The interpreter.
        emit: Knows where the path lies.

    Attributes:
        keep: Whether values become outputs where they can.
        left_out: A line for each call that is left out of the graph, with its place.
        kept: Values that become outputs, with their names.
    """

    def __init__(self, core: Interpreter, emit: GraphEmitter):
        self._core, self._emit = core, emit
        self.keep = False
        self.left_out: list[str] = []
        self.kept: list[tuple[str, Value]] = []
        self._count: Counter[str] = Counter()

    def tell(self, kind: str, values: Sequence[Value]) -> None:
        """Take note of a ``print`` or an ``assert``.

        Args:
            kind: ``print`` or ``assert``.
            values: The values shown; facts known of them are not used.
        """
        found = [v for v in values if isinstance(v, Tensor | Expr | Real | Truth)]
        frame = self._core.frame
        if not found or self._core.collector.muted or frame is None or not frame.is_user:
            return
        place = self._core.here()
        where = f"{place.file}:{place.line}: " if place is not None else ""
        if not self.keep:
            self._leave_out(f"{where}the {kind} of a tensor is left out of the graph")
        elif self._emit.scope is not self._emit.root:
            self._leave_out(
                f"{where}the {kind} of a tensor in a branch or loop is left out of the graph; only "
                "others can be outputs"
            )
        else:
            for value in found:
                self.kept.append((f"{kind}.{self._count[kind]}", value))
                self._count[kind] += 1

    def _leave_out(self, text: str) -> None:
        if text not in self.left_out:
            self.left_out.append(text)


__all__ = ["Telling"]
