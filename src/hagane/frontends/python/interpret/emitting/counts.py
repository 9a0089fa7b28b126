"""Sizes that contents decide, such as the number of elements that are not zero."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import onnx_ir as ir

from hagane.frontends.python.interpret.emitting.writes import RENEWED
from hagane.frontends.python.values.values import Tensor
from hagane.symbolic import Dim, Expr
from hagane.symbolic.questions import Knowledge
from hagane.symbolic.substitute import symbols_of

_SIZES = ("Shape", "Size")
# Operators that keep all elements, in another shape, order or type.
_MOVING = frozenset(("Reshape", "Identity", "Flatten", "Squeeze", "Unsqueeze", "Transpose"))


class Counts:
    """Sizes by the computation whose result decides them: equal computations give the same one.

    Args:
        knowledge: The facts of sizes.
        tensors: The tensors of the program, by their values.
        fresh: Makes a size that nothing is known about.
    """

    def __init__(
        self,
        knowledge: Knowledge,
        tensors: Mapping[ir.Value, Tensor],
        fresh: Callable[[str], Expr],
    ):
        self._knowledge = knowledge
        self._tensors = tensors
        self._fresh = fresh
        self._made: dict[tuple[str, int], Expr] = {}
        self._keys: dict[ir.Value, int] = {}
        self._computations: dict[object, int] = {}

    def count(self, label: str, source: ir.Value) -> Expr:
        """Return the size that the content of ``source`` decides.

        Unlike a size that is lost, it takes any value: nothing may rest on it.
        """
        key = (label, self._key(_same_elements(source)))
        if key not in self._made:
            made = self._made[key] = self._fresh(label)
            if not self._is_plain(source):
                self._knowledge.invented.discard(str(made))
        return self._made[key]

    def item(self, source: ir.Value) -> Dim:
        """Return the whole number that a value of one element holds."""
        offset, source = _apart(source)
        key = ("item", self._key(source))
        if key not in self._made:
            self._made[key] = self._fresh("item")
        return self._made[key] + offset

    def _is_plain(self, value: ir.Value) -> bool:
        """Whether no data reach a value: only the program decides its content."""
        queue, seen = [value], set()
        while queue:
            current = queue.pop()
            if current in seen or current.const_value is not None or self._is_size(current):
                continue
            seen.add(current)
            producer = current.producer()
            if current.meta.get(RENEWED) or (producer is not None and producer.op_type in _SIZES):
                continue  # what was written, nobody knows: it may be a mask of the program's own
            if producer is None or producer.op_type.startswith(("Random", "Multinomial")):
                return False
            queue += [one for one in producer.inputs if one is not None]
        return True

    def _is_size(self, value: ir.Value) -> bool:
        """Whether a value holds known numbers, or sizes that the program alone decides."""
        tensor = self._tensors.get(value)
        if tensor is None or tensor.known is None or value.producer() is not None:
            return False
        names = (
            {name for item in tensor.known.ravel() for name in symbols_of(item)}
            if (tensor.known.dtype == object)
            else set()
        )
        return names <= self._knowledge.invented

    def marked(self) -> tuple[Mapping[Any, Any], ...]:
        """Return the mark that :meth:`back_to` goes back to."""
        return dict(self._made), dict(self._keys), dict(self._computations)

    def back_to(self, mark: tuple[Mapping[Any, Any], ...]) -> None:
        """Forget the sizes made since."""
        self._made, self._keys, self._computations = (dict(one) for one in mark)

    def _key(self, value: ir.Value) -> int:
        """Return a number that equal computations share."""
        found = self._keys.get(value)
        if found is not None:
            return found
        producer = value.producer()
        shape: object = id(value)
        if producer is not None:
            inputs = tuple(-1 if item is None else self._key(item) for item in producer.inputs)
            attributes = tuple(sorted(f"{a.name}={a.value}" for a in producer.attributes.values()))
            shape = (producer.op_type, attributes, inputs, value.index())
        else:
            tensor = self._tensors.get(value)
            if tensor is not None and tensor.known is not None:
                shape = ("constant", str(tensor.dtype), repr(tensor.known.tolist()))
        self._keys[value] = self._computations.setdefault(shape, len(self._computations))
        return self._keys[value]


def _same_elements(value: ir.Value) -> ir.Value:
    """Return the value whose elements one holds in another shape."""
    producer = value.producer()
    while producer is not None and producer.op_type in _MOVING and producer.inputs[0] is not None:
        value = producer.inputs[0]
        producer = value.producer()
    return value


def _apart(value: ir.Value) -> tuple[int, ir.Value]:
    """Return a whole number and the value that it is added to."""
    value = _same_elements(value)
    producer = value.producer()
    if producer is None or producer.op_type not in ("Add", "Sub"):
        return 0, value
    left, right = producer.inputs
    for known, other in ((right, left), (left, right)):
        content = None if known is None else known.const_value
        if content is None or other is None or content.size != 1:
            continue
        number = int(content.numpy().ravel()[0])
        if producer.op_type == "Sub" and known is left:
            continue
        offset, source = _apart(other)
        return offset + (number if producer.op_type == "Add" else -number), source
    return 0, value
