"""Transformers over tokens, drawn from a seed."""

from __future__ import annotations

import numpy as np
from onnx import helper

from tests.native.drawn_layers import Network, attention


def text(g: Network) -> list[str]:
    """Append a transformer over tokens ``ids`` and their ``mask``."""
    heads, per = g.pick(1, 2, 4), g.pick(4, 8, 16)
    width = g.pick(heads * per, 24)
    x = g.op("Gather", g.weight(50, width, fan=1), "ids")
    if g.chance(0.7):
        count = g.op("Squeeze", g.size("ids", 1), g.constant([0]))
        steps = g.op("Range", g.constant(np.array(0)), count, g.constant(np.array(1)))
        x = g.op("Add", x, g.op("Gather", g.weight(70, width, fan=1), steps))
    mask = ""
    if g.chance(0.6):
        real = g.op("Cast", "mask", to=helper.np_dtype_to_tensor_dtype(np.dtype(g.dtype)))
        lack = g.op("Mul", g.op("Sub", g.number(1), real), g.number(-1e4))
        mask = g.op("Unsqueeze", lack, g.constant([1, 2]))
    causal = g.chance(0.3)
    outputs = []
    for _ in range(g.whole(1, 3)):
        a = attention(g, x, x, width, heads, per, mask, causal=causal)
        a = g.op("MatMul", a, g.weight(heads * per, width, fan=heads * per))
        x = _norm(g, g.op("Add", x, a), width)
        inner = g.whole(5, 80)
        b = g.op("Add", g.op("MatMul", g.bytes(x), g.weight(width, inner, fan=width)),
                 g.weight(inner, fan=4))  # fmt: skip
        b = g.op("MatMul", g.bytes(g.act(b)), g.weight(inner, width, fan=inner))
        x = _norm(g, g.op("Add", b, x), width)
        if g.chance(0.2):
            outputs.append(x)
    end = g.pick("rows", "first", "mean", "last", "scores")
    if end == "first":
        x = g.op("Gather", x, g.constant(np.array(0)), axis=1)
        x = g.op("Tanh", g.op("Gemm", x, g.weight(width, width), g.weight(width, fan=4)))
    elif end == "last":
        at = [g.constant([-1]), g.constant([1 << 40]), g.constant([1])]
        x = g.op("Slice", x, *at)
    elif end == "mean":
        to = helper.np_dtype_to_tensor_dtype(np.dtype(g.dtype))
        real = g.op("Unsqueeze", g.op("Cast", "mask", to=to), g.constant([-1]))
        total = g.op("ReduceSum", g.op("Mul", x, real), g.constant([1]), keepdims=0)
        count = g.op("ReduceSum", real, g.constant([1]), keepdims=0)
        x = g.op("Div", total, g.op("Max", count, g.number(1)))
    elif end == "scores":
        x = g.op("Softmax", g.op("MatMul", x, g.weight(width, 50, fan=width)), axis=-1)
    return list(dict.fromkeys([*outputs, x]))


def _norm(g: Network, x: str, width: int) -> str:
    """Normalise rows, in one node or in many."""
    kind = g.pick("layer", "spelled", "rms", "none")
    if kind == "none":
        return x
    if kind == "layer":
        return str(
            g.op("LayerNormalization", x, g.weight(width), g.weight(width), epsilon=0.01, axis=-1)
        )
    last = g.constant([-1])
    middle = g.op("Sub", x, g.op("ReduceMean", x, last)) if kind == "spelled" else x
    square = g.op("ReduceMean", g.op("Pow", middle, g.number(2)), last)
    root = g.op("Sqrt", g.op("Add", square, g.number(0.01)))
    return str(g.op("Mul", g.op("Div", middle, root), g.weight(width, fan=1)))
