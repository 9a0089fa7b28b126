"""How many bytes the inputs and outputs of a step's graph take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import onnx_ir as ir

from hagane.training.step.program import StepProgram

# Of graph, tables and machine code: of any step, and for each node; measured on networks of 67 to
# 2,200 nodes, in processes that had given back what they did not use.
_OF_A_STEP, _OF_A_NODE = 800_000, 12_000
# The same, where schedules were tried: what planning them took does not all come back.
_OF_A_TRIED_NODE, _OF_TRIES = 16_000, 4_000_000
# Of what is planned: small steps find a place in memory that the process has and does not use.
_MOST = 5


def bytes_of_program(nodes: int, planned: int, *, tried: bool = False) -> int:
    """Return the bytes that a compiled step takes itself, about.

    Args:
        nodes: Of its graph.
        planned: Bytes of all else.
        tried: Whether schedules were tried that compute some of it again.
    """
    own = nodes * _OF_A_TRIED_NODE + _OF_TRIES if tried else _OF_A_STEP + nodes * _OF_A_NODE
    return min(own, planned // _MOST)


def without_program(nodes: int, budget: int, *, tried: bool = False) -> int:
    """Return the bytes of a budget that the program of a step leaves."""
    return budget - bytes_of_program(nodes, budget * _MOST // (_MOST + 1), tried=tried)


def sizes_of(graph: ir.Graph, names: Sequence[str], tensors: Sequence[Any]) -> dict[str, int]:
    """Return the numbers of the named sizes of a graph's inputs, as the arguments have them."""
    shapes = {str(value.name): value.shape for value in graph.inputs}
    return {
        str(dim.value): int(size)
        for name, item in zip(names, tensors, strict=True)
        if (shape := shapes.get(name)) is not None
        for dim, size in zip(shape, getattr(item, "shape", ()), strict=False)
        if isinstance(dim, ir.SymbolicDim)
    }


def _bytes_of(value: ir.Value, sizes: Mapping[str, int]) -> int:
    assert value.type is not None
    assert value.shape is not None
    count = value.type.dtype.itemsize
    for dim in value.shape:
        count *= dim if isinstance(dim, int) else sizes.get(str(dim.value), 1)
    return int(count)


def bytes_of_results(graph: ir.Graph, sizes: Mapping[str, int]) -> int:
    """Return the bytes of all results of a step for the caller."""
    return sum(_bytes_of(value, sizes) for value in graph.outputs)


def bytes_of_states(graph: ir.Graph, made: StepProgram) -> int:
    """Return the bytes of the tensors that the optimizer keeps."""
    parameters = {value.name: value for value in graph.inputs}
    return sum(len(item.states) * _bytes_of(parameters[item.name], {}) for item in made.updated)
