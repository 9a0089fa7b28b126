"""Values that depend on the observation number by number, up to the first convolution.

A blend is ``I + m·D``: an observation, a mask, the blur less the observation. A convolution is
linear, and a mask is the same for all channels, so that for a window ``p`` with taps ``k`` the
blend adds

    Σ_k m[p, k] · (Σ_c W[c, k] · D[c, p, k]).

The inner sum belongs to no mask and is made once; the outer one is made for masks that reach the
window. The blends themselves are never made.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from hagane.ops.builder import Nodes, op
from hagane.ops.gradient.replay import call_of
from hagane.tools.rl.blends.nodes import again, held
from hagane.tools.rl.blends.windows import Windows

Floats = npt.NDArray[np.float32]

_WITH_CONSTANT = {"Mul", "Div", "Add", "Sub"}
_MOST = 1 << 25  # numbers in the largest array
_LEAST = 1e-6  # the share of a blur that counts
_FEW = 8  # channels


@dataclass(frozen=True, slots=True)
class Pixels:
    """A value that depends on the observation number by number, linearly but for a constant.

    Attributes:
        value: for the observation and for its blur, a batch of 2.
        shape: with a batch of 1.
        axes: of height and width.
    """

    value: ir.Value
    shape: tuple[int, ...]
    axes: tuple[int, int]

    def through(self, node: ir.Node, nodes: Nodes) -> Pixels | None:
        """Return the value behind a node, None if it mixes numbers or is not linear."""
        if not self._passes(node):
            return None
        inputs = [self.value if held(value) is None else value for value in node.inputs]
        made = again(nodes, node, *inputs)
        if node.op_type != "Transpose":
            return Pixels(made, self.shape, self.axes)
        order = call_of(node).attr("perm")
        shape = tuple(self.shape[axis] for axis in order)
        return Pixels(made, shape, (order.index(self.axes[0]), order.index(self.axes[1])))

    def _passes(self, node: ir.Node) -> bool:
        call = call_of(node)
        if node.op_type == "Identity":
            return True
        if node.op_type == "Cast":
            return bool(call.attr("to") == ir.DataType.FLOAT)
        if node.op_type == "Transpose":
            return bool(call.attr("perm")) and call.attr("perm")[0] == 0
        if node.op_type not in _WITH_CONSTANT:
            return False
        constants = [held(value) for value in node.inputs]
        if all(c is None for c in constants) or (node.op_type == "Div" and constants[1] is None):
            return False
        sizes = next(c.shape for c in constants if c is not None)
        if len(sizes) > len(self.shape) or (len(sizes) == len(self.shape) and sizes[0] != 1):
            return False
        return np.broadcast_shapes(sizes, self.shape) == self.shape


def blurred(
    observation: ir.Value,
    shape: tuple[int, ...],
    axes: tuple[int, int],
    blurs: Sequence[npt.NDArray[np.float64]],
) -> Pixels:
    """Return the observation with its blur beside it.

    Args:
        observation: the value.
        shape: with a batch of 1.
        axes: of height and width.
        blurs: the matrices that blur along height, width and, if given, channels.
    """
    order = [axis for axis in range(len(shape)) if axis not in axes] + list(axes)
    turned = order != sorted(order)
    rows, columns, *channels = (matrix.astype(np.float32) for matrix in blurs)
    value = op("Transpose", observation, perm=order) if turned else observation
    if channels:
        value = op("Reshape", value, [len(channels[0]), -1])
        value = op("MatMul", channels[0], value)
        value = op("Reshape", value, [shape[axis] for axis in order])
    value = op("MatMul", rows, value)
    value = op("MatMul", value, columns.T)
    if turned:
        value = op("Transpose", value, perm=np.argsort(order).tolist())
    return Pixels(op("Concat", observation, value, axis=0), shape, axes)


def convolved(node: ir.Node, pixels: Pixels, masks: Floats, nodes: Nodes) -> Windows | None:
    """Return a convolution's output for the observation and for its blends.

    None if its weights are computed, its form is unusual, or the arrays would be too large.
    """
    window = _window(node, pixels)
    if window is None:
        return None
    outputs, channels, taps = window.weight.shape
    under, where = _under(masks, window.at)
    if max(under.size, where.size * outputs) > _MOST:
        return None
    base = op("Slice", pixels.value, [0], [1], [0])
    blur = op("Slice", pixels.value, [1], [2], [0])
    whole = again(nodes, node, base, *node.inputs[1:])

    change = op("Reshape", op("Sub", blur, base), [channels, -1])
    change = op("Transpose", change, perm=(1, 0))
    # A tap in the padding takes any pixel: the masks are zero there.
    at = np.maximum(window.at, 0).reshape(-1)
    change = op("Reshape", op("Gather", change, at, axis=0), [-1, taps, channels])
    moved = op("MatMul", under, _inner(change, window.weight))  # windows, near, outputs
    whole = op("Transpose", op("Reshape", whole, [outputs, -1, 1]), perm=(1, 2, 0))
    return Windows(op("Add", moved, whole), where, window.sizes)


def _inner(change: ir.Value, weight: Floats) -> ir.Value:
    """Return Σ_c W[c, k] · D[c, p, k], ``(windows, taps, outputs)``.

    For the few channels of pictures it is written out: one pass over the result, where a product of
    matrices a tap would take five times as long.
    """
    channels = weight.shape[1]
    made: ir.Value
    if channels > _FEW:
        turned = op("Transpose", change, perm=(1, 0, 2))  # taps, windows, channels
        made = op("Transpose", op("MatMul", turned, weight.transpose(2, 1, 0)), perm=(1, 0, 2))
        return made
    parts = [
        op("Mul", op("Slice", change, [c], [c + 1], [2]), weight[:, c].T) for c in range(channels)
    ]
    made = reduce(lambda total, part: op("Add", total, part), parts)
    return made


@dataclass(frozen=True, slots=True)
class _Window:
    """The geometry of a convolution over one picture.

    Attributes:
        weight: ``(outputs, channels, taps)``.
        at: the pixel under each tap, ``(windows, taps)``, -1 in the padding.
        sizes: height and width of the output.
    """

    weight: Floats
    at: npt.NDArray[np.int64]
    sizes: tuple[int, int]


def _window(node: ir.Node, pixels: Pixels) -> _Window | None:
    call = call_of(node)
    kernel = held(node.inputs[1])
    if len(pixels.shape) != 4 or pixels.axes != (2, 3) or kernel is None:
        return None
    weight = np.asarray(kernel, np.float32)
    if call.attr("group") != 1 or call.attr("auto_pad") not in ("NOTSET", "VALID"):
        return None
    strides, dilations = call.attr("strides") or (1, 1), call.attr("dilations") or (1, 1)
    pads = call.attr("pads") or (0, 0, 0, 0)
    lines = []
    for axis in range(2):
        size, taps = pixels.shape[2 + axis], weight.shape[2 + axis]
        reach = dilations[axis] * (taps - 1) + 1
        count = (size + pads[axis] + pads[2 + axis] - reach) // strides[axis] + 1
        at = strides[axis] * np.arange(count)[:, None] + dilations[axis] * np.arange(taps)[None]
        at = at - pads[axis]
        lines.append(np.where((at < 0) | (at >= size), -1, at))
    rows, columns = lines[0][:, None, :, None], lines[1][None, :, None, :]
    width = pixels.shape[3]
    found = np.where((rows < 0) | (columns < 0), -1, rows * width + columns)
    taps = weight.shape[2] * weight.shape[3]
    return _Window(
        weight.reshape(*weight.shape[:2], taps),
        np.asarray(found.reshape(-1, taps), np.int64),
        (len(lines[0]), len(lines[1])),
    )


def _under(masks: Floats, at: npt.NDArray[np.int64]) -> tuple[Floats, npt.NDArray[np.int64]]:
    """Return the masks that reach each window, and where each mask and window is among them.

    Returns:
        ``(windows, near, taps)``: zero in the padding, and for the first mask of each window, which
        stands for no mask and for all out of reach; ``(1 + masks, windows)``: indices into the
        first two dimensions as one, those of no mask first.
    """
    flat = np.zeros((len(masks), 1 + masks[0].size), np.float32)
    flat[:, :-1] = np.where(masks > _LEAST, masks, 0).reshape(len(masks), -1)
    whole = flat[:, at]
    reach = whole.any(axis=2)
    count = 1 + int(reach.sum(axis=0).max())
    place = np.where(reach, np.cumsum(reach, axis=0), 0)
    under = np.zeros((len(at), count, at.shape[1]), np.float32)
    mask, window = np.nonzero(reach)
    under[window, place[mask, window]] = whole[mask, window]
    place = np.concatenate((np.zeros((1, len(at)), np.int64), place))
    return under, np.asarray(place + count * np.arange(len(at)), np.int64)
