"""Results that share the memory of arguments, of other results, or of tensors of the program."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.frontends.python.values.memory import (
    COMPLEX,
    is_by_function,
    is_contiguous,
    is_own,
    part_of,
)
from hagane.frontends.python.values.values import Tensor
from hagane.ops.gradient.marks import is_stopped
from hagane.ops.layout.stopping import STOP

Sizes = tuple[int, ...]
Outputs = Mapping[str, Any]
Step = Callable[[Any, Sizes, Outputs], Any]
Number = Callable[[Outputs], Any]


@dataclass(frozen=True, slots=True)
class View:
    """How an output lies in the memory of another tensor.

    Attributes:
        path: The path of the argument in which it lies; empty if it is none.
        output: The output in which it lies; empty if it is none.
        held: The tensor of the running Python in which it lies, else None.
        base_kind: The kind of the output in which it lies, as a :class:`Leaf` has it.
        steps: Each makes a view of an array, given the sizes of the output, and all outputs.
        ordered: Whether the program made it contiguous, by a copy where it was not.
        kind: The class of a tensor that it is in the program.
        is_complex: Whether it is complex: its last axis then holds the two parts.
        detached: Whether the program detached it.
        still: Whether the program made it without gradients.
        by_function: Whether a function with gradients of its own made it.
        axes: Of an output whose axes the graph gives as they lie in memory: their order in the
            program; empty for others.
    """

    path: str = ""
    output: str = ""
    held: Any = field(default=None, compare=False, repr=False)
    base_kind: str = ""
    steps: tuple[Step, ...] = ()
    ordered: bool = False
    kind: str = ""
    is_complex: bool = False
    detached: bool = False
    still: bool = False
    by_function: bool = False
    axes: Sizes = ()

    def of(self, base: Any, made: Any, outputs: Outputs) -> Any:
        """Return the part of an array that an output is, or the output where it is a copy.

        Args:
            base: The array.
            made: The output, with its own memory.
            outputs: All outputs by name.
        """
        if self.axes:
            return made.transpose(self.axes)
        found = self.cut(base, made.shape, outputs)
        if found is None:
            return made
        if self.ordered and not found.flags.c_contiguous:
            # Of an array that lies otherwise, the program may have asked for nothing.
            alike = np.empty(base.shape, np.bool_)
            plain = None if base.flags.c_contiguous else self.cut(alike, made.shape, outputs)
            if plain is None or not plain.flags.c_contiguous:
                return made
        same = found.shape == made.shape and found.dtype == made.dtype
        return found if same and np.may_share_memory(found, base) else made

    def cut(self, array: Any, sizes: Sizes, outputs: Outputs) -> Any:
        """Return the view of an array, None where it is a copy.

        Args:
            array: It.
            sizes: The sizes of the view.
            outputs: All outputs by name.
        """
        for step in self.steps:
            array = step(array, sizes, outputs)
            if array is None:
                break
        return array


class Needs:
    """Values of a graph that views need to be laid: bounds and places that a run decides.

    Attributes:
        names: The names of the outputs that they become, which are given later.
    """

    def __init__(self) -> None:
        self.names: dict[ir.Value, str] = {}
        self._found: list[ir.Value] = []

    def begin(self) -> None:
        """Forget what a view needed."""
        self._found.clear()

    def end(self) -> None:
        """Keep what a view needs."""
        self.names.update((value, self.names.get(value, "")) for value in self._found)

    def number(self, node: ir.Node, place: int) -> Number | None:
        """Return how to get an input of a node; None where there is none."""
        value = node.inputs[place] if place < len(node.inputs) else None
        if value is None:
            return None
        if value.const_value is not None:
            known = value.const_value.numpy()
            return lambda _: known
        self._found.append(value)
        names = self.names
        return lambda outputs: np.asarray(outputs[names[value]])

    @property
    def none(self) -> bool:
        """Whether a view needs nothing."""
        return not self._found


def view_of(tensor: Tensor, bases: Mapping[ir.Value, View], needs: Needs) -> View | None:
    """Return how a value lies in one of others; None where it has a memory of its own.

    Args:
        tensor: It.
        bases: The others.
        needs: Takes the values of the graph that a view needs.
    """
    steps: list[Step] = []
    current: ir.Value | None = tensor.value
    detached = still = by_function = False
    needs.begin()
    while current is not None and current not in bases:
        node, part = current.producer(), part_of(current)
        if part is not None and not is_own(current):
            steps.append(_noted(part[1]))
            current = part[0]
            continue
        if node is None or is_own(current) or node.op_type not in _STEPS:
            return None
        step = _STEPS[node.op_type](node, current, not steps, needs)
        if step is None or (tensor.kind != _ARRAY and _is_backward(node)):
            return None
        detached |= node.op_type == STOP
        still |= node.op_type != STOP and is_stopped(node)
        by_function |= is_by_function(current)
        steps.append(step)
        current = node.inputs[0]
    if current is None:
        return None
    needs.end()
    return replace(
        bases[current],
        steps=tuple(reversed(steps)),
        ordered=tensor.kind == "torch.Tensor" and tensor.strides is None,
        kind=tensor.kind,
        is_complex=tensor.dtype in COMPLEX,
        detached=detached,
        still=still,
        by_function=by_function,
    )


def wholes_of(tensor: Tensor) -> list[ir.Value]:
    """Return a value, that of which it is a view, and so on to one with memory of its own."""
    needs, found = Needs(), [tensor.value]
    while True:
        current = found[-1]
        node, part = current.producer(), part_of(current)
        if part is not None and not is_own(current):
            found.append(part[0])
            continue
        if node is None or is_own(current) or node.op_type not in _STEPS:
            return found
        step = _STEPS[node.op_type](node, current, len(found) == 1, needs)
        whole = node.inputs[0]
        if step is None or whole is None or (tensor.kind != _ARRAY and _is_backward(node)):
            return found
        found.append(whole)


_ARRAY = "numpy.ndarray"


def _noted(cut: Callable[[Any], Any]) -> Step:
    return lambda array, *_: cut(array)


def _same(node: ir.Node, value: ir.Value, is_last: bool, needs: Needs) -> Step | None:
    if is_contiguous(value):
        return lambda array, *_: array if array.flags.c_contiguous else None
    return lambda array, *_: array


def _reshape(node: ir.Node, value: ir.Value, is_last: bool, needs: Needs) -> Step | None:
    if is_last:  # its sizes are those of the output
        return lambda array, sizes, _: array.reshape(sizes)
    wanted = needs.number(node, 1)
    if wanted is None:
        return None

    def reshape(array: Any, _: Sizes, outputs: Outputs) -> Any:
        shape = tuple(map(int, wanted(outputs)))
        return None if 0 in shape else array.reshape(shape)

    return reshape


def _transpose(node: ir.Node, value: ir.Value, is_last: bool, needs: Needs) -> Step | None:
    axes = node.attributes.get_ints("perm")
    return lambda array, *_: array.transpose(axes)


def _slice(node: ir.Node, value: ir.Value, is_last: bool, needs: Needs) -> Step | None:
    starts, stops = needs.number(node, 1), needs.number(node, 2)
    axes, steps = needs.number(node, 3), needs.number(node, 4)
    if starts is None or stops is None:
        return None

    def cut(array: Any, _: Sizes, outputs: Outputs) -> Any:
        first, last = starts(outputs), stops(outputs)
        of = range(len(first)) if axes is None else axes(outputs)
        by = [1] * len(first) if steps is None else steps(outputs)
        places = [slice(None)] * array.ndim
        for axis, start, stop, step in zip(of, first, last, by, strict=True):
            whole = step < 0 and stop < -array.shape[axis]  # through the first item
            places[int(axis)] = slice(int(start), None if whole else int(stop), int(step))
        return array[tuple(places)]

    return cut


def _is_backward(node: ir.Node) -> bool:
    """Whether a node takes items from the last to the first, which PyTorch copies."""
    if node.op_type != "Slice" or len(node.inputs) < 5:
        return False
    steps = node.inputs[4]
    if steps is None:
        return False
    return steps.const_value is None or bool((steps.const_value.numpy() < 0).any())


def _gather(node: ir.Node, value: ir.Value, is_last: bool, needs: Needs) -> Step | None:
    index = node.inputs[1]
    if index is None or index.shape is None or len(index.shape):
        return None
    place, axis = needs.number(node, 1), node.attributes.get_int("axis", 0)
    assert place is not None

    def take(array: Any, _: Sizes, outputs: Outputs) -> Any:
        return array[(slice(None),) * (axis % array.ndim) + (int(place(outputs)), ...)]

    return take


def _squeeze(node: ir.Node, value: ir.Value, is_last: bool, needs: Needs) -> Step | None:
    axes = needs.number(node, 1)
    if axes is None:
        return None
    return lambda array, _, outputs: np.squeeze(array, tuple(map(int, axes(outputs))))


def _unsqueeze(node: ir.Node, value: ir.Value, is_last: bool, needs: Needs) -> Step | None:
    axes = needs.number(node, 1)
    if axes is None:
        return None
    return lambda array, _, outputs: np.expand_dims(array, tuple(map(int, axes(outputs))))


def _expand(node: ir.Node, value: ir.Value, is_last: bool, needs: Needs) -> Step | None:
    wanted = None if is_last else needs.number(node, 1)

    def expand(array: Any, sizes: Sizes, outputs: Outputs) -> Any:
        if wanted is not None:
            sizes = np.broadcast_shapes(array.shape, tuple(map(int, wanted(outputs))))
        strides = np.broadcast_to(array, sizes).strides
        return np.lib.stride_tricks.as_strided(array, sizes, strides)  # which can be written

    return expand


def _split(node: ir.Node, value: ir.Value, is_last: bool, needs: Needs) -> Step | None:
    axis, place = node.attributes.get_int("axis", 0), list(node.outputs).index(value)
    sizes = needs.number(node, 1)
    if sizes is None:
        return None

    def part(array: Any, _: Sizes, outputs: Outputs) -> Any:
        stops = np.cumsum(sizes(outputs))
        start = int(stops[place - 1]) if place else 0
        return array[(slice(None),) * (axis % array.ndim) + (slice(start, int(stops[place])),)]

    return part


_STEPS: dict[str, Callable[[ir.Node, ir.Value, bool, Needs], Step | None]] = {
    "Expand": _expand, "Flatten": _reshape, "Gather": _gather, "Identity": _same,
    "Reshape": _reshape, "Slice": _slice, "Split": _split, "Squeeze": _squeeze, STOP: _same,
    "Transpose": _transpose, "Unsqueeze": _unsqueeze,
}  # fmt: skip
__all__ = ["Needs", "View", "view_of", "wholes_of"]
