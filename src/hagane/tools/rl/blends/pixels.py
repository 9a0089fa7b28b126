"""Values that depend on the observation number by number, up to the first convolution.

A blend is ``I + m·D``: an observation, a mask, the blur less the observation. A convolution is
linear, and a mask is the same for all channels, so that for a window ``p`` with taps ``k`` the
blend adds

    Σ_k m[p, k] · (Σ_c W[c, k] · D[c, p, k]).

The inner sum belongs to no mask and is made once; the outer one is made for masks that reach the
window. The blends themselves are never made.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper

from hagane.tools.rl.blends.differences import Difference
from hagane.tools.rl.blends.drawing import Drawing

Floats = npt.NDArray[np.float32]
Held = Mapping[str, onnx.TensorProto]

_WITH_CONSTANT = {"Mul", "Div", "Add", "Sub"}
_MOST = 1 << 25  # numbers in the largest array
_LEAST = 1e-6  # the share of a blur that counts


@dataclass(frozen=True, slots=True)
class Pixels:
    """A value that depends on the observation number by number, linearly but for a constant.

    Attributes:
        name: of the value for the observation and for its blur, a batch of 2.
        shape: with a batch of 1.
        axes: of height and width.
    """

    name: str
    shape: tuple[int, ...]
    axes: tuple[int, int]

    def through(self, node: onnx.NodeProto, drawing: Drawing, held: Held) -> Pixels | None:
        """Return the value behind a node, None if it mixes numbers or is not linear."""
        if not self._passes(node, held):
            return None
        inputs = [name if name in held else self.name for name in node.input]
        name = drawing.again(node, *inputs)
        if node.op_type != "Transpose":
            return Pixels(name, self.shape, self.axes)
        order = list(node.attribute[0].ints)
        shape = tuple(self.shape[axis] for axis in order)
        return Pixels(name, shape, (order.index(self.axes[0]), order.index(self.axes[1])))

    def _passes(self, node: onnx.NodeProto, held: Held) -> bool:
        if node.op_type == "Identity":
            return True
        if node.op_type == "Cast":
            return bool(node.attribute[0].i == TensorProto.FLOAT)
        if node.op_type == "Transpose":
            return bool(node.attribute) and node.attribute[0].ints[0] == 0
        if node.op_type not in _WITH_CONSTANT:
            return False
        constant = [name for name in node.input if name in held]
        if len(constant) != 1 or (node.op_type == "Div" and constant[0] == node.input[0]):
            return False
        sizes = tuple(held[constant[0]].dims)
        if len(sizes) > len(self.shape) or (len(sizes) == len(self.shape) and sizes[0] != 1):
            return False
        return np.broadcast_shapes(sizes, self.shape) == self.shape


def blurred(
    observation: str,
    shape: tuple[int, ...],
    axes: tuple[int, int],
    blurs: Sequence[npt.NDArray[np.float64]],
    drawing: Drawing,
) -> Pixels:
    """Return the observation with its blur beside it.

    Args:
        observation: the name of the value.
        shape: with a batch of 1.
        axes: of height and width.
        blurs: the matrices that blur along height, width and, if given, channels.
        drawing: gets the nodes.
    """
    order = [axis for axis in range(len(shape)) if axis not in axes] + list(axes)
    turned = order != sorted(order)
    rows, columns, *channels = (matrix.astype(np.float32) for matrix in blurs)
    value = drawing.node("Transpose", observation, perm=order) if turned else observation
    if channels:
        value = drawing.shaped(value, len(channels[0]), -1)
        value = drawing.node("MatMul", drawing.constant(channels[0]), value)
        value = drawing.shaped(value, *(shape[axis] for axis in order))
    value = drawing.node("MatMul", drawing.constant(rows), value)
    value = drawing.node("MatMul", value, drawing.constant(columns.T))
    if turned:
        value = drawing.node("Transpose", value, perm=np.argsort(order).tolist())
    return Pixels(drawing.node("Concat", observation, value, axis=0), shape, axes)


def convolved(
    node: onnx.NodeProto, pixels: Pixels, masks: Floats, drawing: Drawing, held: Held
) -> Difference | None:
    """Return a convolution's output for the observation and the change by each mask.

    None if its weights are computed, its form is unusual, or the arrays would be too large.
    """
    window = _window(node, pixels, held)
    if window is None:
        return None
    outputs, channels, taps = window.weight.shape
    under, where = _under(masks, window.at)
    if max(under.size, where.size * outputs) > _MOST:
        return None
    zero, one, two = drawing.integers(0), drawing.integers(1), drawing.integers(2)
    base = drawing.node("Slice", pixels.name, zero, one, zero)
    blur = drawing.node("Slice", pixels.name, one, two, zero)
    whole = drawing.again(node, base, *node.input[1:])

    change = drawing.shaped(drawing.node("Sub", blur, base), channels, -1)
    change = drawing.node("Transpose", change, perm=[1, 0])
    # A tap in the padding takes any pixel: the masks are zero there.
    at = drawing.constant(np.maximum(window.at, 0).T.reshape(-1))
    change = drawing.shaped(drawing.node("Gather", change, at, axis=0), taps, -1, channels)
    weight = drawing.constant(window.weight.transpose(2, 1, 0))
    inner = drawing.node("MatMul", change, weight)  # taps, windows, outputs
    inner = drawing.node("Transpose", inner, perm=[1, 0, 2])
    moved = drawing.node("MatMul", drawing.constant(under), inner)  # windows, near, outputs
    moved = drawing.node("Gather", drawing.shaped(moved, -1, outputs), drawing.constant(where))
    return Difference(
        drawing.node("Transpose", whole, perm=[0, 2, 3, 1]),
        drawing.shaped(moved, len(masks), *window.sizes, outputs),
        last=True,
    )


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


def _window(node: onnx.NodeProto, pixels: Pixels, held: Held) -> _Window | None:
    facts: dict[str, Any] = {a.name: helper.get_attribute_value(a) for a in node.attribute}
    if len(pixels.shape) != 4 or pixels.axes != (2, 3) or node.input[1] not in held:
        return None
    weight = np.asarray(numpy_helper.to_array(held[node.input[1]]), np.float32)
    if facts.get("group", 1) != 1 or facts.get("auto_pad", b"NOTSET") not in (b"NOTSET", b"VALID"):
        return None
    strides, dilations = facts.get("strides", [1, 1]), facts.get("dilations", [1, 1])
    pads = facts.get("pads", [0, 0, 0, 0])
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
        stands for all masks out of reach; ``(masks, windows)``: indices into the first two
        dimensions as one.
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
    return under, np.asarray(place + count * np.arange(len(at)), np.int64)
