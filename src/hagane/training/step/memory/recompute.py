"""A step's graph with parts of its forward half computed again on the way back."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from hagane.graph.names import separate_names
from hagane.graph.walk import read_values
from hagane.native.lowering.facts import STORED
from hagane.ops.builder.node import copy_node
from hagane.ops.inference import GraphTypes
from hagane.passes.removing.remove_dead import remove_dead
from hagane.training.step.memory.chain import Act, Move
from hagane.training.step.memory.stages import Forward


def recompute(
    graph: ir.Graph, types: GraphTypes, forward: Forward, schedule: Sequence[Move]
) -> list[str]:
    """Follow a schedule: nodes of the way back read copies of the values not kept.

    Copies are made of the same operators, and values in memory stay there, so that every kernel
    rounds as before: results are equal to the bit.

    Args:
        graph: Changed in place.
        types: Those of the copies are added.
        forward: Its forward half.
        schedule: The moves of its chain.

    Returns:
        The names of the nodes that are computed again.
    """
    for node in forward.nodes:
        for value in node.outputs:
            if len(value.uses()) > 1:
                value.metadata_props[STORED] = "1"
    first, rounds = _rounds(schedule)
    writer = _Writer(graph, types, forward, first)
    behind = [node for node in graph if node not in forward.stage_of]
    for node in behind:
        for stage in sorted(
            {
                forward.stage_of[producer]
                for value in read_values(node)
                if value in forward.read_back and (producer := value.producer()) is not None
            },
            reverse=True,
        ):
            writer.reach(stage, rounds, node)
        writer.point(node)
    remove_dead(graph, types)
    separate_names(graph)
    return [str(node.name) for node in graph if node in writer.copies]


def _rounds(schedule: Sequence[Move]) -> tuple[set[int], dict[int, list[Move]]]:
    """Return the stages that are kept the first time, and the actions before each way back."""
    kept, seen = set(), set()
    rounds: dict[int, list[Move]] = {}
    pending: list[Move] = []
    for act, stage in schedule:
        if act is Act.BACK:
            rounds[stage], pending = pending, []
        elif stage not in seen:
            seen.add(stage)
            if act is Act.KEEP:
                kept.add(stage)
        else:
            pending.append((act, stage))
    return kept, rounds


class _Writer:
    """Copies stages in front of the nodes that need them.

    Args:
        graph: The graph.
        types: Of its values.
        forward: Its forward half.
        first: The stages whose values are kept from the first time on.
    """

    def __init__(self, graph: ir.Graph, types: GraphTypes, forward: Forward, first: set[int]):
        self._graph, self._types, self._forward = graph, types, forward
        self._now: dict[ir.Value, ir.Value] = {}  # the latest copy of each value
        self._left = len(forward.stages) - 1  # the stage that the way back has come to
        self._own: dict[int, list[ir.Node]] = {}
        for node in forward.nodes:
            self._own.setdefault(forward.stage_of[node], []).append(node)
        self._first = first
        self.copies: set[ir.Node] = set()

    def reach(self, stage: int, rounds: dict[int, list[Move]], before: ir.Node) -> None:
        """Copy the schedule's computations until the way back has come to a stage."""
        while self._left >= stage:
            for _, again in rounds.get(self._left, ()):
                self._copy(again, before)
            self._left -= 1

    def _copy(self, stage: int, before: ir.Node) -> None:
        made: dict[ir.Value, ir.Value] = {}
        for node in self._own[stage]:
            if all(value in self._forward.kept for value in node.outputs):
                continue
            inputs = [None if v is None else made.get(v, self._now.get(v, v)) for v in node.inputs]
            copy = copy_node(node, inputs, f"{node.name}.again")
            for old, new in zip(node.outputs, copy.outputs, strict=True):
                new.name, new.type, new.shape = f"{old.name}.again", old.type, old.shape
                new.metadata_props.update(old.metadata_props)
                if old in self._types.types:
                    self._types.types[new] = self._types.types[old]
                if old not in self._forward.kept:
                    made[old] = new
            if node in self._types.assumed:
                self._types.assumed[copy] = self._types.assumed[node]
                self._types.broadcast[copy] = self._types.broadcast.get(node, ())
            self._graph.insert_before(before, copy)
            self.copies.add(copy)
        self._now.update(made)

    def point(self, node: ir.Node) -> None:
        """Let a node of the way back read the latest copies."""
        for index, value in enumerate(node.inputs):
            if value in self._now and value in self._forward.read_back:
                node.replace_input_with(index, self._now[value])


__all__ = ["recompute"]
