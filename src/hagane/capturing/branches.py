"""The sides of branches that the runs of a graph took."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import onnx_ir as ir

from hagane.runtime.backends.reference import ReferenceBackend, ReferencePart
from hagane.runtime.device import Value
from hagane.runtime.port import Planned, Region, Watch


class Branches(ReferenceBackend):
    """A backend of reference kernels that notes which sides of each If were taken.

    Args:
        model: The model; its Ifs are told apart by name.
    """

    name = "branches"

    def __init__(self, model: ir.Model):
        self._places = {
            str(node.name): node.metadata_props.get("hagane.place", str(node.name))
            for node in model.graph.all_nodes()
            if node.op_type == "If" and node.domain == ""
        }
        self._taken: set[tuple[str, bool]] = set()

    def note(self, node: ir.Node, condition: bool) -> None:
        """Note the side that an If took."""
        self._taken.add((str(node.name), condition))

    @property
    def count(self) -> int:
        """How many Ifs there are."""
        return len(self._places)

    def left(self) -> Iterator[str]:
        """Yield the sides that no run took, with the places that they come from."""
        for name, place in self._places.items():
            for side in (True, False):
                if (name, side) not in self._taken:
                    yield f"{place}: no run in which the condition is {str(side).lower()}"

    def plan(self, region: Region) -> Planned:
        """Return a part for each node, which tells of the sides that Ifs take."""
        parts: list[ReferencePart] = []
        for part in super().plan(region).parts:
            assert isinstance(part, ReferencePart)
            parts.append(_Branch(part, self) if part.node.op_type == "If" else part)
        return Planned(tuple(parts))


class _Branch(ReferencePart):
    """An If that tells of its condition."""

    def __init__(self, part: ReferencePart, branches: Branches):
        super().__init__(part.node, part.named_bodies)
        self._branches = branches

    def run(self, values: Sequence[Value], watch: Watch | None = None) -> list[Value]:
        """Return the outputs of the node."""
        self._branches.note(self.node, bool(np.all(values[0])))
        return super().run(values, watch)


__all__ = ["Branches"]
