"""A network while it is drawn from a seed: its nodes, its constants, and what all kinds share."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import helper


@dataclass(frozen=True)
class Map:
    """A value of ``[batch, channels, …]``.

    Attributes:
        name: Of the value.
        channels: Its channels.
        path: What was done to the sizes behind: equal paths are equal sizes.
    """

    name: str
    channels: int
    path: tuple[object, ...] = ()


@dataclass
class Network:
    """A network while it is drawn.

    Attributes:
        random: Where everything is drawn from.
        dtype: Of its numbers.
        rank: How many sizes lie behind the channels.
        quantized: Whether layers are quantised.
        nodes: In order.
        constants: Initializers.
    """

    random: np.random.Generator
    dtype: str = "float32"
    rank: int = 2
    quantized: bool = False
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    constants: dict[str, np.ndarray] = field(default_factory=dict)

    def op(self, operator: str, *inputs: str, count: int = 1, **attributes: Any) -> Any:
        """Append a node; return the name of its result, or a list of names."""
        names = [f"v{len(self.nodes)}_{i}" for i in range(count)]
        self.nodes.append(helper.make_node(operator, inputs, names, **attributes))
        return names[0] if count == 1 else names

    def constant(self, array: object, dtype: str = "") -> str:
        name = f"c{len(self.constants)}"
        self.constants[name] = np.asarray(array, dtype or None)
        return name

    def number(self, value: float) -> str:
        return self.constant(value, self.dtype)

    def weight(self, *shape: int, fan: int = 0) -> str:
        scale = 1 / np.sqrt(max(1, fan or int(np.prod(shape[1:]))))
        return self.constant(self.random.standard_normal(shape) * scale, self.dtype)

    def pick(self, *items: Any) -> Any:
        return items[int(self.random.integers(len(items)))]

    def chance(self, share: float) -> bool:
        return bool(self.random.random() < share)

    def whole(self, low: int, high: int) -> int:
        return int(self.random.integers(low, high + 1))

    def size(self, name: str, axis: int) -> str:
        """Return one size of a value, as a list of one number."""
        if self.chance(0.5):
            at = self.constant(np.array(axis))
            found = self.op("Gather", self.op("Shape", name), at)
            return str(self.op("Unsqueeze", found, self.constant(np.array([0]))))
        return str(self.op("Shape", name, start=axis, end=axis + 1))

    def bytes(self, name: str) -> str:
        """Return a value rounded to bytes and back, in networks that have quantised layers."""
        if not self.quantized:
            return name
        kind, zero = self.pick(("uint8", 121), ("int8", 3), ("uint8", 128))
        pair = [self.number(0.045), self.constant(zero, kind)]
        return str(self.op("DequantizeLinear", self.op("QuantizeLinear", name, *pair), *pair))

    def byte_weight(self, *shape: int) -> str:
        """Return weights, in bytes where layers are quantised."""
        if not self.quantized:
            return self.weight(*shape)
        whole = self.constant(self.random.integers(-127, 128, shape), "int8")
        many = self.chance(0.5)
        scale = np.full(shape[0], 1 / 75 / np.sqrt(np.prod(shape[1:])), self.dtype)
        scale *= self.random.random(shape[0]) + 0.5
        scales = self.constant(scale if many else scale[0], self.dtype)
        zeros = self.constant(np.zeros(shape[0]) if many else 0, "int8")
        return str(self.op("DequantizeLinear", whole, scales, zeros, axis=0))

    def act(self, name: str) -> str:
        """Append an activation."""
        kind = self.pick(
            "Relu", "Relu", "LeakyRelu", "HardSwish", "Sigmoid", "Tanh", "Clip", "silu", "Gelu",
            "gelu", "Elu", "Softplus", "Mish", "PRelu", "HardSigmoid", "none", "Selu",
        )  # fmt: skip
        if kind == "none":
            return name
        if kind == "silu":
            return str(self.op("Mul", name, self.op("Sigmoid", name)))
        if kind == "gelu":
            half = self.op("Erf", self.op("Div", name, self.number(2**0.5)))
            raised = self.op("Mul", name, self.op("Add", half, self.number(1)))
            return str(self.op("Mul", raised, self.number(0.5)))
        if kind == "Clip":
            return str(self.op("Clip", name, self.number(0), self.number(6)))
        if kind == "PRelu":
            return str(self.op("PRelu", name, self.number(0.2)))
        return str(self.op(kind, name))


def attention(
    g: Network, x: str, y: str, width: int, heads: int, per: int, mask: str, *, causal: bool
) -> str:
    """Append attention of rows ``x`` to rows ``y``; the result is ``[batch, rows, heads * per]``.

    Args:
        g: The network.
        x: The rows that ask, ``[batch, rows, width]``.
        y: The rows that are asked.
        width: Of both.
        heads: How many.
        per: Width of a head.
        mask: What is added to the scores, or nothing.
        causal: Whether rows see no later ones; ``x`` is ``y`` then.
    """
    inner = heads * per

    def head(rows: str, order: list[int]) -> str:
        made = g.op("MatMul", g.bytes(rows), g.weight(width, inner, fan=width))
        if g.chance(0.6):
            made = g.op("Add", made, g.weight(inner, fan=4))
        if g.chance(0.5):
            shape = g.constant([0, -1, heads, per])
        else:
            sizes = [g.size(rows, 0), g.size(rows, 1)]
            shape = g.op("Concat", *sizes, g.constant([heads]), g.constant([per]), axis=0)
        return str(g.op("Transpose", g.op("Reshape", made, shape), perm=order))

    q, v = head(x, [0, 2, 1, 3]), head(y, [0, 2, 1, 3])
    k = head(y, [0, 2, 3, 1])
    if g.chance(0.5):
        q = g.op("Mul", q, g.number(per**-0.5))
        scores = g.op("MatMul", q, k)
    else:
        scores = g.op("Div", g.op("MatMul", q, k), g.number(per**0.5))
    if mask:
        scores = g.op("Add", scores, mask)
    if causal:
        size = g.op("Squeeze", g.size(x, 1), g.constant([0]))
        steps = g.op("Range", g.constant(np.array(0)), size, g.constant(np.array(1)))
        later = g.op("Less", g.op("Unsqueeze", steps, g.constant([1])), steps)
        scores = g.op("Where", later, g.number(-1e4), scores)
    weights = g.op("Softmax", scores, axis=-1)
    found = g.op("Transpose", g.op("MatMul", weights, v), perm=[0, 2, 1, 3])
    return str(g.op("Reshape", found, g.constant([0, -1, inner])))
