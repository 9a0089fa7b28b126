"""Results that share the memory of arguments, of other results, or of tensors of the program."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.frontends.python.values.memory import is_contiguous, is_own
from hagane.frontends.python.values.values import Tensor
from hagane.ops.layout.stopping import STOP

Sizes = tuple[int, ...]
Step = Callable[[Any, Sizes], Any]


@dataclass(frozen=True, slots=True)
class View:
    """How an output lies in the memory of another tensor.

    Attributes:
        path: The path of the argument in which it lies; empty if it is none.
        output: The output in which it lies; empty if it is none.
        held: The tensor of the running Python in which it lies, else None.
        steps: Each makes a view of an array, given the sizes of the output.
        ordered: Whether the program made it contiguous, by a copy where it was not.
        signed: Whether views may count backward, as those of NumPy do.
        axes: Of an output whose axes the graph gives as they lie in memory: their order in the
            program; empty for others.
    """

    path: str = ""
    output: str = ""
    held: Any = field(default=None, compare=False, repr=False)
    steps: tuple[Step, ...] = ()
    ordered: bool = False
    signed: bool = False
    axes: Sizes = ()

    def of(self, base: Any, made: Any) -> Any:
        """Return the part of an array that an output is, or the output where it is a copy.

        Args:
            base: The array.
            made: The output, with its own memory.
        """
        if self.axes:
            return made.transpose(self.axes)
        found = self._cut(base, made.shape)
        if found is None:
            return made
        if self.ordered and not found.flags.c_contiguous:
            # Of an array that lies otherwise, the program may have asked for nothing.
            alike = np.empty(base.shape, np.bool_)
            plain = None if base.flags.c_contiguous else self._cut(alike, made.shape)
            if plain is None or not plain.flags.c_contiguous:
                return made
        same = found.shape == made.shape and found.dtype == made.dtype
        return found if same and np.may_share_memory(found, base) else made

    def _cut(self, array: Any, sizes: Sizes) -> Any:
        for step in self.steps:
            array = step(array, sizes)
            if array is None:
                break
        return array


def view_of(tensor: Tensor, bases: Mapping[ir.Value, View]) -> View | None:
    """Return how a value lies in one of others; None where it has a memory of its own.

    Args:
        tensor: It.
        bases: The others.
    """
    steps: list[Step] = []
    current: ir.Value | None = tensor.value
    signed = tensor.kind == "numpy.ndarray"
    while current is not None and current not in bases:
        node = current.producer()
        if node is None or is_own(current) or node.op_type not in _STEPS:
            return None
        step = _STEPS[node.op_type](node, current, not steps)
        if step is None or (not signed and _is_backward(node)):
            return None
        steps.append(step)
        current = node.inputs[0]
    if current is None:
        return None
    base = bases[current]
    made = tuple(reversed(steps))
    ordered = tensor.kind == "torch.Tensor" and tensor.strides is None
    return View(base.path, base.output, base.held, made, ordered, signed)


def _known(node: ir.Node, place: int) -> Any:
    """Return a known input of a node as an array; None if the run alone knows it."""
    value = node.inputs[place] if place < len(node.inputs) else None
    if value is None:
        return None
    if value.const_value is None:
        return None
    return value.const_value.numpy()


def _same(node: ir.Node, value: ir.Value, is_last: bool) -> Step | None:
    if is_contiguous(value):
        return lambda array, _: array if array.flags.c_contiguous else None
    return lambda array, _: array


def _reshape(node: ir.Node, value: ir.Value, is_last: bool) -> Step | None:
    wanted = _known(node, 1)
    if is_last:  # its sizes are those of the output
        return lambda array, sizes: array.reshape(sizes)
    if wanted is None or 0 in wanted:
        return None
    shape = tuple(map(int, wanted))
    return lambda array, _: array.reshape(shape)


def _transpose(node: ir.Node, value: ir.Value, is_last: bool) -> Step | None:
    axes = node.attributes.get_ints("perm")
    return lambda array, _: array.transpose(axes)


def _slice(node: ir.Node, value: ir.Value, is_last: bool) -> Step | None:
    starts, stops = _known(node, 1), _known(node, 2)
    if starts is None or stops is None:
        return None
    axes = _known(node, 3) if len(node.inputs) > 3 and node.inputs[3] else np.arange(len(starts))
    steps = _known(node, 4) if len(node.inputs) > 4 and node.inputs[4] else np.ones_like(starts)
    if axes is None or steps is None:
        return None

    def cut(array: Any, _: Sizes) -> Any:
        places = [slice(None)] * array.ndim
        for axis, *ends in zip(axes, starts, stops, steps, strict=True):
            first, last, step = map(int, ends)
            whole = step < 0 and last < -array.shape[axis]  # through the first item
            places[int(axis)] = slice(first, None if whole else last, step)
        return array[tuple(places)]

    return cut


def _is_backward(node: ir.Node) -> bool:
    """Whether a node takes items from the last to the first, which PyTorch copies."""
    if node.op_type != "Slice" or len(node.inputs) < 5:
        return False
    steps = _known(node, 4)
    return steps is None or bool((steps < 0).any())


def _gather(node: ir.Node, value: ir.Value, is_last: bool) -> Step | None:
    index = _known(node, 1)
    if index is None or index.ndim:
        return None
    place, axis = int(index), node.attributes.get_int("axis", 0)
    return lambda array, _: array[(slice(None),) * (axis % array.ndim) + (place, ...)]


def _squeeze(node: ir.Node, value: ir.Value, is_last: bool) -> Step | None:
    axes = _known(node, 1)
    if axes is None:
        return None
    return lambda array, _: np.squeeze(array, tuple(map(int, axes)))


def _unsqueeze(node: ir.Node, value: ir.Value, is_last: bool) -> Step | None:
    axes = _known(node, 1)
    if axes is None:
        return None
    return lambda array, _: np.expand_dims(array, tuple(map(int, axes)))


def _expand(node: ir.Node, value: ir.Value, is_last: bool) -> Step | None:
    if not is_last:
        return None

    def expand(array: Any, sizes: Sizes) -> Any:
        strides = np.broadcast_to(array, sizes).strides
        return np.lib.stride_tricks.as_strided(array, sizes, strides)  # which can be written

    return expand


def _split(node: ir.Node, value: ir.Value, is_last: bool) -> Step | None:
    axis, place = node.attributes.get_int("axis", 0), list(node.outputs).index(value)
    sizes = _known(node, 1)
    if sizes is None:
        return None
    stop = int(np.cumsum(sizes)[place])
    start = stop - int(sizes[place])
    return lambda array, _: array[(slice(None),) * (axis % array.ndim) + (slice(start, stop),)]


_STEPS: dict[str, Callable[[ir.Node, ir.Value, bool], Step | None]] = {
    "Expand": _expand, "Flatten": _reshape, "Gather": _gather, "Identity": _same,
    "Reshape": _reshape, "Slice": _slice, "Split": _split, "Squeeze": _squeeze, STOP: _same,
    "Transpose": _transpose, "Unsqueeze": _unsqueeze,
}  # fmt: skip
__all__ = ["View", "view_of"]
