"""Kernels of one segment or body in order, and the packed weights that they read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.graph.walk import PLACE
from hagane.machine import Level
from hagane.native.kernels.kernel import Body, Kernel, Work
from hagane.native.kernels.names import function_name, named
from hagane.native.kernels.packing import Packing, as_is, recipe_of
from hagane.native.kernels.tensor import Buffer, Kind, Tensor, row_major
from hagane.ops.definition import Array
from hagane.symbolic import Dim, product


@dataclass
class Recorder:
    """Takes kernels as they come about.

    Attributes:
        level: Vector instructions to generate for.
        kernels: The result, in order.
        node: The node that is being lowered: kernels that no other node is given for are its.
    """

    level: Level
    kernels: list[Kernel] = field(default_factory=list)
    node: ir.Node | None = None
    _weights: dict[Any, Buffer] = field(default_factory=dict)

    def for_body(self) -> Recorder:
        """Return a recorder for the body of a loop or branch, which shares the weights."""
        return Recorder(self.level, [], self.node, self._weights)

    def emit(
        self,
        computed: ir.Node | str,
        body: Body,
        tasks: Dim,
        *,
        work: Work = 0.0,
        flops: Work = 0.0,
        scratch: Dim = 0,
        failure: str = "",
        failure_sizes: tuple[Dim, ...] = (),
        followers: Sequence[ir.Node] = (),
        name: str = "",
    ) -> None:
        """Append a kernel.

        Args:
            computed: The node that the kernel computes, or a label where it serves several.
            body: Its C text, pointers and sizes.
            tasks: How many independent pieces it has.
            work: Estimated nanoseconds of one thread.
            flops: Arithmetic, for profiles.
            scratch: Bytes of memory that each thread needs; those of the body if 0.
            failure: The meaning of a failure; see ``Kernel``.
            failure_sizes: Sizes that the text names.
            followers: Nodes that are computed with it; all nodes, if a label is given.
            name: The C function's, to which the operators of a node's followers are added; from the
                label and the shape of the result if empty.
        """
        if isinstance(computed, ir.Node):
            nodes, label = (computed, *followers), label_of(computed, *followers)
            name = named(name, followers) if name else ""
        else:
            nodes, label = tuple(followers), computed
            if not nodes and self.node is not None:
                nodes = (self.node,)
        self.kernels.append(
            Kernel(
                label,
                body.code(),
                tuple(body.pointers),
                tuple(body.sizes),
                tasks,
                work,
                flops,
                scratch or body.scratch,
                failure,
                failure_sizes,
                name=name or function_name(label, body.results),
                nodes=tuple(dict.fromkeys(map(name_of, nodes))),
            )
        )

    def weight(self, key: Any, packing: Packing, count: int) -> Buffer:
        """Return the buffer of packed weights; equal keys share one.

        So do equal recipes of the same arrays: layers that have their weights in common, as steps
        of a loop that was unrolled have them, read one copy.

        Args:
            key: Identifies the content.
            packing: The recipe of the content.
            count: Bytes.
        """
        if key not in self._weights:
            recipe = recipe_of(packing)
            found = None if recipe is None else self._weights.get((recipe, count))
            if found is None:
                found = Buffer(str(key), count, Kind.WEIGHT, packing)
            self._weights[key] = found
            if recipe is not None:
                self._weights[recipe, count] = found
        return self._weights[key]

    def constant(self, value: ir.Value | None, array: Array) -> Tensor:
        """Return a constant of the graph as a tensor in the weights' memory."""
        return self._placed(id(value), array)

    def table(self, node: ir.Node, name: str, array: Array) -> Tensor:
        """Return an array that a node's rule has made as a tensor in the weights' memory.

        Args:
            node: Of the graph.
            name: Of the array among those of the node.
            array: Contiguous.
        """
        return self._placed((name, id(node)), array)

    def _placed(self, owner: Any, array: Array) -> Tensor:
        key = owner, array.shape, array.dtype.name
        buffer = self.weight(key, Packing(as_is, (array,)), array.nbytes)
        return Tensor(buffer, array.dtype, array.shape, row_major(array.shape))

    def new(self, name: str, dtype: np.dtype[Any], shape: Sequence[Dim]) -> Tensor:
        """Return fresh contiguous memory that lives for a part of the run."""
        buffer = Buffer(name, product(shape) * dtype.itemsize, Kind.ARENA)
        return Tensor(buffer, dtype, tuple(shape), row_major(shape))


def name_of(node: ir.Node) -> str:
    """Return a node's name, or that of its first output where it has none."""
    return str(node.name or node.outputs[0].name)


def label_of(node: ir.Node, *followers: ir.Node) -> str:
    """Return the label of a node and its followers: ``Conv+Relu 'conv1'``, and its place."""
    return labelled("+".join(each.op_type for each in (node, *followers)), node)


def labelled(operators: str, node: ir.Node) -> str:
    """Return some operators with the name of a node, and its place in the source if it has one.

    ``Conv+Relu 'conv1' (model.py:12)``; :func:`label_parts` takes it apart.
    """
    place = ""
    if PLACE in node.metadata_props:
        from hagane.graph.places import place_of  # of captured models alone

        place = place_of(node)
    return f"{operators} '{node.name}'" + (f" ({place})" if place else "")


# The end of the label of a kernel that calls the library.
LIBRARY = " (oneDNN)"


def label_parts(label: str) -> tuple[str, str, str]:
    """Return the operators, the name and the place of a label, empty where it has none.

    A library that computes them is named with the operators.
    """
    operators, _, rest = label.partition(" ")
    if rest.endswith(LIBRARY):
        operators, rest = operators + LIBRARY, rest.removesuffix(LIBRARY)
    name, place = rest, ""
    if rest.startswith("'") and rest.endswith(")") and "' (" in rest:
        name, _, place = rest[:-1].rpartition("' (")
    return operators, name.strip("'"), place
