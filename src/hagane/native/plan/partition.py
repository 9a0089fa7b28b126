"""Nodes that are compiled together: their kernels, and the values that these read and write."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.graph.types import TensorType
from hagane.graph.walk import all_nodes, read_values
from hagane.machine import Level
from hagane.native.kernels.control import changing_names
from hagane.native.kernels.sizes import names_of_sizes
from hagane.native.kernels.tensor import Buffer, Kind
from hagane.native.lowering.choices import Choices
from hagane.native.lowering.facts import Facts, NotNative
from hagane.native.lowering.state import Lowering
from hagane.native.plan.apply_rules import lower_nodes
from hagane.native.run.engine import Library
from hagane.native.run.segment import Segment
from hagane.ops.definition import Array
from hagane.ops.inference import GraphTypes
from hagane.symbolic import Dim, product

# Buffer, shape and element type of an input or output.
Port = tuple[Buffer, tuple[Dim, ...], np.dtype[Any]]


@dataclass(frozen=True, slots=True)
class Target:
    """What kernels are generated for.

    Attributes:
        level: Vector instructions.
        threads: How many threads a run may use.
        pairs: Whether products may be computed in bfloat16.
        choices: Forms of kernels that were found to be fastest.
    """

    level: Level
    threads: int = 1
    pairs: bool = False
    choices: Choices = field(default_factory=dict)


@dataclass
class Draft:
    """Kernels of some nodes that are generated and not compiled yet.

    Attributes:
        low: The kernels in order.
        inputs: Values that they read.
        outputs: Values that others read.
        equal: Sizes that the kernels take for equal.
    """

    low: Lowering
    inputs: tuple[ir.Value, ...]
    outputs: tuple[ir.Value, ...]
    equal: tuple[tuple[Dim, Dim], ...]

    @property
    def varies(self) -> bool:
        """Whether inputs may have other shapes than the kernels are for."""
        low = self.low
        shapes = [low.facts.shape(value) for value in self.inputs]
        shapes += [_size_before_run(low, value) for value in self.outputs]
        names = names_of_sizes(low.recorder.kernels, shapes, self.equal)
        return bool(
            names - changing_names([kernel.control for kernel in low.recorder.kernels]).keys()
        )

    def compile(
        self, settle: Callable[[], None] = lambda: None, library: Library | None = None
    ) -> Segment:
        """Return the compiled kernels with their weights.

        Args:
            settle: Called now and then while weights are copied, to let go of what was read.
            library: The kernels' compiled code, if it is there already.

        Raises:
            NoCompiler: They cannot be compiled on this machine.
        """
        low = self.low
        return Segment(
            low.recorder.kernels,
            [
                (low.forms.inputs[value], low.facts.shape(value), low.facts.dtype(value))
                for value in self.inputs
            ],
            [
                (low.forms.results[value], _size_before_run(low, value), low.facts.dtype(value))
                for value in self.outputs
            ],
            low.facts.level,
            low.facts.threads,
            settle,
            self.equal,
            library,
        )


def draft_nodes(
    graph: ir.Graph,
    nodes: Sequence[ir.Node],
    outputs: frozenset[ir.Value],
    types: GraphTypes,
    constants: Mapping[ir.Value, Array],
    target: Target,
) -> tuple[Draft, dict[ir.Node, str]]:
    """Return the kernels of some nodes, and the nodes that have none, with reasons.

    The draft is of use only if no node was refused.

    Args:
        graph: The graph or body that they belong to.
        nodes: In order.
        outputs: The values of these that others read.
        types: What inference found.
        constants: Arrays that are known.
        target: What to generate for.
    """
    facts = Facts(
        target.level,
        types,
        constants,
        outputs,
        target.threads,
        target.pairs,
        target.choices,
        nodes=frozenset(nodes),
    )
    low = Lowering.of(facts, lower_nodes)
    refused = lower_nodes(low, nodes)
    try:
        low.finish()
    except NotNative as reason:
        for value in outputs:
            producer = value.producer()
            if producer is not None and not _can_hold(low, value):
                refused[producer] = str(reason)
    if refused:
        return Draft(low, (), (), ()), refused
    equal = tuple(pair for node in all_nodes(nodes) for pair in types.assumed.get(node, ()))
    _read_sizes(low, graph, nodes, equal)
    results = tuple(sorted(low.facts.outputs, key=lambda value: str(value.name)))
    return Draft(low, tuple(low.forms.inputs), results, equal), {}


def _can_hold(low: Lowering, value: ir.Value) -> bool:
    try:
        low.facts.dtype(value)
    except NotNative:
        return False
    return True


def _size_before_run(low: Lowering, value: ir.Value) -> tuple[Dim, ...]:
    """Return the shape of an output, 0 in the place of a size that the run finds."""
    return low.forms.grown.get(value) or low.facts.shape(value)


def _read_sizes(
    low: Lowering,
    graph: ir.Graph,
    members: Sequence[ir.Node],
    equal: Sequence[tuple[Dim, Dim]],
) -> None:
    """Make values inputs of a part whose shapes alone it needs, to know its named sizes."""
    shapes = [low.facts.shape(value) for value in low.forms.inputs]
    shapes += [_size_before_run(low, value) for value in low.facts.outputs]
    needed = names_of_sizes(low.recorder.kernels, shapes, equal)
    needed -= {str(dim) for value in low.forms.inputs for dim in low.facts.shape(value)}
    made = {value for node in members for value in node.outputs}
    read = [value for node in members for value in read_values(node) if value not in made]
    for value in (*read, *graph.inputs):
        found = low.facts.types.types.get(value)
        if not needed or not isinstance(found, TensorType) or found.shape is None:
            continue
        given = needed & {str(dim) for dim in found.shape}
        if given and value not in low.forms.inputs and value not in low.facts.constants:
            with contextlib.suppress(NotNative):
                size = product(found.shape) * low.facts.dtype(value).itemsize
                low.forms.inputs[value] = Buffer(str(value.name), size, Kind.INPUT)
                needed -= given
