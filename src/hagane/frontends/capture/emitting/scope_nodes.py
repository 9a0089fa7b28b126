"""The nodes of one scope: constants lie in the main graph, sizes are read from where they are."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import onnx_ir as ir

from hagane.errors import TypeInferenceError
from hagane.frontends.capture.emitting.exact import fitting, in_64_bits, may_leave
from hagane.frontends.capture.emitting.terms import as_value
from hagane.ops.builder import Nodes
from hagane.ops.definition import Array
from hagane.symbolic import Dim, Expr

if TYPE_CHECKING:
    from hagane.frontends.capture.emitting.scoped import ScopedEmitter

# Constants under these names are shared; others are arrays of the program.
_SHARED = ("constant", "axis 0", "filler", "shape")


class ScopeNodes(Nodes):
    """Nodes of one scope; names of sizes are found in all of them."""

    emitter: ScopedEmitter

    def note_sizes(self, value: ir.Value) -> None:
        """Take note of the sizes that a value has."""
        super().note_sizes(value)
        for name, found in self._sizes.items():
            self.emitter.sizes.setdefault(name, found)

    def divisor(self, dim: Dim | None, value: ir.Value) -> ir.Value:
        """Return a divisor, or 1 where it is 0: paths on which it is are computed beside others.

        Args:
            dim: It as a formula, None if there is none.
            value: It.
        """
        if dim is not None and self.emitter.knowledge.is_nonnegative(dim - 1):
            return value
        zero, one = (self.initializer(np.array(n, np.int64), f"size {n}") for n in (0, 1))
        return self._node("Where", self._node("Equal", value, zero), one, value)

    def _named(self, name: str) -> ir.Value:
        emitter = self.emitter
        if name in emitter.numbers:
            return emitter.visible(emitter.standing_for(emitter.numbers[name]))
        if name in emitter.knowledge.joined:
            found = emitter.knowledge.joined[name]
            condition = as_value(emitter, found.condition)
            yes = self._side(found.yes, condition)
            no = self._side(found.no, self._node("Not", condition))
            return self._node("Where", condition, yes, no)
        if name not in emitter.sizes:
            raise TypeInferenceError(
                f"the number '{name}' is not known when the graph runs: no input has an axis of "
                "this size, and no operator computes it"
            )
        shown = emitter.sizes[name]
        return self._read(replace(shown, value=emitter.visible(shown.value)))

    def _side(self, dim: Dim, needed: ir.Value) -> ir.Value:
        """Return a number that is read where a condition holds, but computed in all runs."""
        if not may_leave(self.emitter, dim):
            return self.size(dim)
        before, self._formulas = self._formulas, dict(self._formulas)
        self.emitter.needed.append(needed)
        try:
            return self.size(dim)
        finally:
            self.emitter.needed.pop()
            self._formulas = before

    def size(self, dim: Dim) -> ir.Value:
        """Return a size or another number as a scalar.

        Raises:
            CheckError: It is known, and has more than 64 bits.
        """
        if isinstance(dim, int):
            in_64_bits(self.emitter, dim)
        return super().size(dim)

    def fitting(self, dim: Expr, whole: int, value: ir.Value) -> ir.Value:
        """Return a sum of products; a run in which it does not fit into 64 bits fails."""
        return fitting(self.emitter, self, dim, whole, value)

    def initializer(self, content: Array, name: str) -> ir.Value:
        """Return an initializer of the main graph; small constants are there once."""
        emitter = self.emitter
        if self is not emitter.root.nodes:
            return emitter.root.nodes.initializer(content, name)
        content = np.asarray(content)
        shared = name in _SHARED or name.startswith("size ")
        key = (content.dtype.str, content.shape, content.tobytes()) if content.size <= 16 else None
        if key is not None and shared and key in emitter.shared:
            return emitter.shared[key]
        made = super().initializer(content, name.replace(" ", "_"))
        emitter.add_home(made, emitter.root)
        if key is not None and shared:
            emitter.shared[key] = made
        return made

    def insert(self, node: ir.Node) -> None:
        """Put a node into the scope."""
        super().insert(node)
        self.emitter.settle_home(node)


__all__ = ["ScopeNodes"]
