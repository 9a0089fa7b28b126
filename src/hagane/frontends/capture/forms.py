"""Forms of values: all that they are computed from, to compare values of several graphs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import Any

import onnx_ir as ir

_GRAPHS = (ir.AttributeType.GRAPH, ir.AttributeType.GRAPHS)


class Forms:
    """The forms of values of a graph, as numbers: values of one number are equal in all runs.

    Args:
        inputs: The names of inputs; those without are equal to nothing else.
        objects: The real arrays behind initializers, by their identity.
        known: The numbers of forms, shared by the graphs that are compared.

    Attributes:
        reached: The numbers of forms that the content of an input may decide.
    """

    def __init__(
        self,
        inputs: Mapping[ir.Value, str],
        objects: Mapping[ir.Value, int],
        known: dict[Any, int],
    ):
        self._inputs, self._objects, self._known = inputs, objects, known
        self._numbers: dict[ir.Value, int] = {}
        self._bound: dict[ir.Value, tuple[int, int]] = {}
        self._depths: dict[Any, int] = {}
        self.reached: set[int] = set()

    def of(self, value: ir.Value | None) -> int:
        """Return the number of a value's form; -1 for an input of a node that is not given."""
        if value is None:
            return -1
        if value not in self._numbers:
            self._numbers[value] = self._made(value)
        return self._numbers[value]

    def _made(self, value: ir.Value) -> int:
        node = value.producer()
        if value in self._objects:
            return self._number(("array", self._objects[value]), ())
        if value.const_value is not None:
            return self._number(("constant", _content(value.const_value)), ())
        if value in self._bound:
            return self._number(("inner", self._bound[value]), ())
        if node is None:
            number = self._number(("input", self._inputs.get(value, id(value))), ())
            self.reached.add(number)
            return number
        chosen = node.outputs.index(value)
        is_branch = node.op_type == "If" and not node.domain
        inputs = tuple(map(self.of, node.inputs))
        kept: list[Any] = []
        parts = [*inputs]
        for name, attribute in sorted(node.attributes.items()):
            if attribute.type in _GRAPHS:
                found = self._graphs(attribute, node, chosen if is_branch else None)
                parts += found
                kept.append((name, tuple(found)))
            elif attribute.type == ir.AttributeType.TENSOR:
                kept.append((name, _content(attribute.value)))
            else:
                kept.append((name, repr(attribute.value)))
        place = 0 if is_branch else chosen
        return self._number((node.domain, node.op_type, place, inputs, tuple(kept)), parts)

    def _graphs(self, attribute: ir.Attr, node: ir.Node, chosen: int | None) -> list[int]:
        """Return the forms of the outputs of inner graphs, or of one output alone."""
        many = attribute.type == ir.AttributeType.GRAPHS
        depth = self._depths.get(node.graph, 0) + 1
        found: list[int] = []
        for graph in attribute.value if many else [attribute.value]:
            self._depths[graph] = depth
            self._bound.update((value, (depth, at)) for at, value in enumerate(graph.inputs))
            found += map(self.of, graph.outputs if chosen is None else [graph.outputs[chosen]])
        return found

    def _number(self, key: Any, parts: Iterable[int]) -> int:
        number = self._known.setdefault(key, len(self._known))
        if not self.reached.isdisjoint(parts):
            self.reached.add(number)
        return number


def _content(tensor: ir.TensorProtocol) -> tuple[str, tuple[int, ...], str]:
    array = tensor.numpy()
    return str(tensor.dtype), array.shape, sha256(array.tobytes()).hexdigest()


__all__ = ["Forms"]
