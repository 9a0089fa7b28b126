"""Memory that a program over types writes: what is known of the tensors in it holds no longer.

Tensors of the checker have types, and a content only where that is known and small. A write in
place changes the content of every name and view of the memory. Their content is forgotten, on all
paths, and what follows from them later is no equal of what followed from them before.
"""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from hagane.frontends.python.values.memory import base_of
from hagane.frontends.python.values.values import Tensor

RENEWED = "hagane.renewed"  # marks what stands for content that the program has written


class Writes:
    """Takes note of writes in place, where no graph is built."""

    def __init__(self) -> None:
        # The memory that a value may have, by a value that stands for each; its own if not here.
        self._memory: dict[ir.Value, frozenset[ir.Value]] = {}
        self._holders: dict[ir.Value, dict[int, Tensor]] = {}  # of known content, by their memory
        self._written: dict[ir.Value, int] = {}  # memory, by the number of the last write of it
        self._born: dict[ir.Value, int] = {}  # how many writes there were before a value
        self._renewed: dict[tuple[ir.Value, int], ir.Value] = {}
        self._count = 0

    def hold(self, x: Tensor) -> None:
        """Note that the content of a tensor is known, until its memory is written."""
        for part in self._memory_of(x.value):
            self._holders.setdefault(part, {})[id(x)] = x

    def note_written(self, x: Tensor) -> None:
        """Note that the program has changed the content of a tensor, and so that of its views."""
        self._count += 1
        for part in self._memory_of(x.value):
            self._written[part] = self._count
            for holder in self._holders.pop(part, {}).values():
                holder.known = None

    def note_shared(self, x: Tensor, others: Sequence[Tensor]) -> None:
        """Note that a tensor may have the memory of others, if it is no copy."""
        memory = frozenset[ir.Value]().union(*(self._memory_of(other.value) for other in others))
        if memory != self._memory_of(x.value):
            self._memory[x.value] = memory
            x.hold()

    def note_made(self, value: ir.Value) -> None:
        """Note that a value has the content that its memory has now."""
        if self._count:
            self._born[value] = self._count

    def now(self, value: ir.Value) -> ir.Value:
        """Return the value that stands for the present content of the memory of one."""
        if not self._count:
            return value
        memory = self._memory_of(value)
        last = max(self._written.get(part, 0) for part in memory)
        if last <= self._born.get(value, 0):
            return value
        renewed = self._renewed.get((value, last))
        if renewed is None:
            renewed = self._renewed[value, last] = ir.Value(type=value.type)
            renewed.meta[RENEWED] = True
            self._memory[renewed] = memory
            self._born[renewed] = self._count
        return renewed

    def _memory_of(self, value: ir.Value) -> frozenset[ir.Value]:
        base = value if value in self._memory else base_of(value)
        return self._memory.get(base) or frozenset((base,))


__all__ = ["RENEWED", "Writes"]
