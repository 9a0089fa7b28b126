"""Numbers of Python as inputs of a step: what a program may do with one whose value is open."""

from __future__ import annotations

from collections.abc import Set

import onnx_ir as ir

from hagane.errors import CaptureError

# What integers may go through without deciding a size, or how often a loop runs.
_ARITHMETIC = {
    "Abs", "Add", "And", "Cast", "Clip", "Div", "Equal", "Gather", "Greater", "GreaterOrEqual",
    "Identity", "If", "Less", "LessOrEqual", "Max", "Min", "Mod", "Mul", "Neg", "Not", "Or", "Pow",
    "Sign", "Sub", "Where", "Xor",
}  # fmt: skip


def check_numbers(graph: ir.Graph, numbers: Set[str]) -> None:
    """Fail if a number that is an input decides a size, or how often a loop runs.

    A program for each of its values is faster than one whose sizes only its runs know, where there
    is one at all.

    Args:
        graph: A loss.
        numbers: The names of the inputs.

    Raises:
        CaptureError: One does; it is named.
    """
    for given in graph.inputs:
        if given.name not in numbers:
            continue
        waiting, seen = [given], set[int]()
        while waiting:
            value = waiting.pop()
            if id(value) in seen:
                continue
            seen.add(id(value))
            for node in {use.node for use in value.uses()}:
                if _decides(value, node):
                    raise CaptureError([f"the number '{given.name}' decides a size"])
                waiting += [made for made in node.outputs if _is_number(made)]
            if value.is_graph_output() and value.graph is not graph and _is_whole(value):
                raise CaptureError([f"the number '{given.name}' leaves a branch"])


def _decides(value: ir.Value, node: ir.Node) -> bool:
    if _is_whole(value):
        return node.op_type not in _ARITHMETIC
    return node.op_type == "Range"


def _is_number(value: ir.Value) -> bool:
    return value.shape is None or len(value.shape) == 0


def _is_whole(value: ir.Value) -> bool:
    return value.dtype is None or not value.dtype.is_floating_point()


__all__ = ["check_numbers"]
