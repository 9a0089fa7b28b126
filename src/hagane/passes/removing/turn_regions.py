"""Compute with channels first what lies between nodes that have them first."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir

from hagane.ops.builder import op
from hagane.ops.inference import GraphTypes
from hagane.ops.registry import has_trait
from hagane.ops.traits import Trait
from hagane.passes.edit import (
    add_initializer,
    attributes_of,
    building,
    constant,
    given,
    name_of,
    producer,
    remove_unread,
    replace_value,
    shape_of,
)
from hagane.passes.removing.cancel_transposes import constant_for

Perm = tuple[int, ...]

# Nodes whose images have their channels first.
_IMAGES = frozenset(
    {
        "AveragePool",
        "BatchNormalization",
        "Conv",
        "ConvTranspose",
        "DepthToSpace",
        "GlobalAveragePool",
        "GlobalMaxPool",
        "InstanceNormalization",
        "MaxPool",
    }
)
_REDUCTIONS = frozenset({"ReduceMax", "ReduceMean", "ReduceMin", "ReduceSum"})


def turn_regions(graph: ir.Graph, types: GraphTypes) -> list[str]:
    """Turn elementwise nodes, Pad, Concat and reductions to channels first; return where.

    Such nodes have their channels last where a program has them there; each convolution then lies
    between two Transposes. A region of all nodes that can be turned together is, if that takes
    more elements out of transpositions than it puts in; values that others read as they are get a
    Transpose.
    """
    changed: list[str] = []
    done: set[ir.Value] = set()
    for node in list(graph):
        if node.op_type != "Transpose" or node.domain != "" or node.graph is not graph:
            continue
        source, rank = node.inputs[0], len(shape_of(node.inputs[0], types) or ())
        perm, start = tuple(attributes_of(node).get("perm", ())), None
        if source is None or rank < 3:
            continue
        if perm == first_of(rank) and _is_read_by_images(node.outputs[0]):
            start = source
        elif perm == last_of(rank) and _is_image(source.producer()):
            start = node.outputs[0]
        if start is None or start in done:
            continue
        region = _Region(graph, types, rank)
        region.grow(start)
        done |= region.values
        if region.nodes and region.gain() > 0:
            changed += region.turn()
    return changed


def _is_image(node: ir.Node | None) -> bool:
    return node is not None and node.domain == "" and node.op_type in _IMAGES


def _is_read_by_images(value: ir.Value) -> bool:
    return any(_is_image(use.node) for use in value.uses())


def first_of(rank: int) -> Perm:
    """Return the order of axes that brings channels from the last place behind the first axis."""
    return (0, rank - 1, *range(1, rank - 1))


def last_of(rank: int) -> Perm:
    """Return the order of axes that undoes ``first_of``."""
    return (0, *range(2, rank), 1)


class _Region:
    """Values with channels last that are turned together, and the nodes between them."""

    def __init__(self, graph: ir.Graph, types: GraphTypes, rank: int):
        self.graph, self.types, self.rank = graph, types, rank
        self.perm, self.back = first_of(rank), last_of(rank)
        self.values: set[ir.Value] = set()
        self.nodes: set[ir.Node] = set()
        self.turned: dict[ir.Value, ir.Value] = {}

    def grow(self, start: ir.Value) -> None:
        """Take all that can be turned with a value."""
        waiting = [start]
        while waiting:
            value = waiting.pop()
            if value in self.values:
                continue
            self.values.add(value)
            near = [value.producer(), *(use.node for use in value.uses())]
            for node in near:
                if node is None or node in self.nodes or not self._turns(node):
                    continue
                self.nodes.add(node)
                waiting += [*self._operands(node), node.outputs[0]]

    def _turns(self, node: ir.Node) -> bool:
        """Whether a node can be turned with its operands and its result."""
        if node.graph is not self.graph or node.domain != "" or len(node.outputs) != 1:
            return False
        if len(shape_of(node.outputs[0], self.types) or ()) != self.rank:
            return False
        if node.op_type in ("Concat", "Pad"):
            fixed = [constant(value, self.types) for value in node.inputs[1:] if value is not None]
            return node.op_type == "Concat" or all(array is not None for array in fixed)
        if node.op_type in _REDUCTIONS:
            return bool(attributes_of(node)["keepdims"]) and self._axes(node) is not None
        if not has_trait(node, Trait.ELEMENTWISE) or "axis" in attributes_of(node):
            return False
        ranks = [len(shape_of(value, self.types) or ()) for value in self._operands(node)]
        return bool(ranks) and all(rank == self.rank for rank in ranks)

    def _operands(self, node: ir.Node) -> list[ir.Value]:
        """Return the operands of a node that are turned with it: those that are no constants."""
        if node.op_type == "Pad" or node.op_type in _REDUCTIONS:
            return [value for value in node.inputs[:1] if value is not None]
        fixed = [] if node.op_type == "Concat" else node.inputs
        known = {
            value
            for value in fixed
            if value is not None and constant_for(value, self.perm, self.types) is not None
        }
        return [value for value in node.inputs if value is not None and value not in known]

    def _axes(self, node: ir.Node) -> list[int] | None:
        """Return the axes that a reduction takes, as they are numbered in the turned operand."""
        axes = constant(node.inputs[1], self.types) if len(node.inputs) > 1 else None
        if axes is None or axes.size == 0:
            return None
        return [self.perm.index(int(axis) % self.rank) for axis in axes.reshape(-1)]

    def _leaves(self, node: ir.Node) -> bool:
        """Whether a node outside reads turned values as well: it leaves batch and channels."""
        if node.op_type not in _REDUCTIONS or node.domain != "" or node.graph is not self.graph:
            return False
        axes = self._axes(node)
        whole = axes is not None and set(axes) == set(range(2, self.rank))
        return whole and not attributes_of(node)["keepdims"]

    def _undoes(self, node: ir.Node) -> bool:
        return self._is(node, self.perm) and node.graph is self.graph

    def _is(self, node: ir.Node | None, perm: Perm) -> bool:
        if node is None or node.op_type != "Transpose" or node.domain != "":
            return False
        return tuple(attributes_of(node).get("perm", ())) == perm

    def _others(self, value: ir.Value) -> list[Any]:
        """Return the uses that need a value as it is."""
        return [
            use
            for use in value.uses()
            if use.node not in self.nodes
            and not self._undoes(use.node)
            and not self._leaves(use.node)
        ]

    def gain(self) -> int:
        """Return how many elements fewer are transposed, of what has known sizes."""
        gained = 0
        for value in self.values:
            size = 1
            for dim in shape_of(value, self.types) or ():
                size *= dim if isinstance(dim, int) else 1
            made_within = value.producer() in self.nodes
            if not made_within:
                gained += size if self._is(value.producer(), self.back) else -size
            if any(self._undoes(use.node) for use in value.uses()):
                gained += size
            if self._others(value) or value.is_graph_output():
                gained -= size
        return gained

    def turn(self) -> list[str]:
        """Turn all nodes; return their names."""
        inner = [node for node in self.graph if node in self.nodes]
        for node in inner:
            self._turn(node)
        for value in self.values:
            for use in list(value.uses()):
                if self._undoes(use.node):
                    first = use.node.outputs[0]
                    replace_value(self.graph, self.types, first, self._of(value, use.node))
                    remove_unread(self.graph, use.node)
                elif use.node not in self.nodes and self._leaves(use.node):
                    self._reduce(use.node, value)
        for node in inner:
            self._keep(node)
        names = [name_of(node) for node in inner]
        for node in reversed(inner):
            remove_unread(self.graph, node)
        return names

    def _of(self, value: ir.Value, before: ir.Node) -> ir.Value:
        """Return a value with its channels first."""
        if value not in self.turned:
            made = producer(value, "Transpose")
            if made is not None and self._is(made, self.back) and made.inputs[0] is not None:
                self.turned[value] = made.inputs[0]
            else:
                with building(self.graph, self.types, before, f"{value.name} turned"):
                    self.turned[value] = op("Transpose", value, perm=self.perm)
        return self.turned[value]

    def _turn(self, node: ir.Node) -> None:
        """Write a node anew, of turned operands."""
        moved = set(self._operands(node))
        operands: list[Any] = [
            self._of(value, node) if value in moved else self._constant(node, value)
            for value in node.inputs
        ]
        attributes: dict[str, Any] = given(node)
        if node.op_type == "Concat":
            attributes["axis"] = self.perm.index(int(attributes_of(node)["axis"]) % self.rank)
        with building(self.graph, self.types, node, node.name or ""):
            made = op(node.op_type, *operands, **attributes)
        self.turned[node.outputs[0]] = made

    def _constant(self, node: ir.Node, value: ir.Value | None) -> Any:
        """Return a constant operand of a turned node."""
        if value is None:
            return None
        if node.op_type in _REDUCTIONS:
            return self._axes(node)
        if node.op_type == "Pad":
            at = list(node.inputs).index(value)
            if at == 2:
                return value
            pads = constant(node.inputs[1], self.types)
            given_axes = constant(node.inputs[3], self.types) if len(node.inputs) > 3 else None
            assert pads is not None
            axes = range(self.rank) if given_axes is None else given_axes.reshape(-1)
            places = [self.perm.index(int(axis) % self.rank) for axis in axes]
            if at == 3:
                return places
            if given_axes is not None:
                return value
            ends = [0] * (2 * self.rank)
            for i, place in enumerate(places):
                ends[place], ends[self.rank + place] = int(pads[i]), int(pads[self.rank + i])
            return ends
        array = constant_for(value, self.perm, self.types)
        assert array is not None
        if array.ndim <= 1 and array.size == 1:
            return value
        return add_initializer(self.graph, f"{value.name} turned", array)

    def _reduce(self, node: ir.Node, value: ir.Value) -> None:
        """Let a reduction over all of each image read the turned one."""
        with building(self.graph, self.types, node, node.name or ""):
            made = op(node.op_type, self._of(value, node), self._axes(node), **given(node))
        replace_value(self.graph, self.types, node.outputs[0], made)
        remove_unread(self.graph, node)

    def _keep(self, node: ir.Node) -> None:
        """Bring a result back for those that read it as it was."""
        value = node.outputs[0]
        others = self._others(value)
        if not others and not value.is_graph_output():
            return
        with building(self.graph, self.types, node, f"{value.name} back"):
            back = op("Transpose", self.turned[value], perm=self.back)
        if value.is_graph_output():
            replace_value(self.graph, self.types, value, back)
            return
        for use in others:
            use.node.replace_input_with(use.idx, back)
