"""Operators that opsets before 18 lack, written in others: bits of integers, joining scatters."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.ops.builder import content_of, op, rank_of
from hagane.ops.builder.control import loop
from hagane.ops.functions.tensors.positions import positions_along

_INT64 = ir.DataType.INT64
_JOINED = {"add": "Add", "mul": "Mul", "max": "Max", "min": "Min"}


def bitwise(node: ir.Node, known: dict[str, Any]) -> Any:
    """Return the nodes of BitwiseAnd, BitwiseOr, BitwiseXor or BitwiseNot of integers.

    All are sums of the integers and of their common bits, modulo the size of the type. Those of a
    number below a power of two are a remainder; others are told bit by bit.
    """
    del known
    values = [value for value in node.inputs if value is not None]
    dtype = values[0].dtype
    assert dtype is not None
    wide = [op("Cast", value, to=_INT64) for value in values]
    if node.op_type == "BitwiseNot":
        made = op("Sub", np.array(-1), wide[0])
    else:
        made = _common_bits(values, wide)
    if node.op_type in ("BitwiseOr", "BitwiseXor"):
        common = made if node.op_type == "BitwiseOr" else op("Add", made, made)
        made = op("Sub", op("Add", *wide), common)
    return op("Cast", made, to=dtype)


def _common_bits(values: list[ir.Value], wide: list[Any]) -> Any:
    """Return the bits that two integers share, int64."""
    dtype = values[0].dtype
    assert dtype is not None
    bits, signed = 8 * int(dtype.itemsize), np.issubdtype(dtype.numpy(), np.signedinteger)
    for place, value in enumerate(values):
        content = content_of(value)
        if not isinstance(content, np.ndarray) or content.dtype == object or content.size == 0:
            continue
        if content.min() < 0 or int(content.max()) >= 2**62:
            continue
        if not np.any(content & (content + 1)):  # all ones
            return op("Mod", wide[1 - place], content.astype(np.int64) + 1)
        bits, signed = int(content.max()).bit_length(), False
    powers = 2 ** np.arange(min(bits - signed, 63), dtype=np.int64)
    each = []
    for value in wide:
        row = op("Unsqueeze", value, np.array([-1]))
        shifted = op("Div", op("Sub", row, op("Mod", row, powers)), powers)
        each.append(op("Mod", shifted, np.array(2)))
    # ONNX Runtime adds integers of 64 bits exactly in products alone.
    made = op("MatMul", op("Mul", *each), powers)
    if bits == 64 or signed:  # the bit of the sign
        lowest = np.array(-(2 ** (bits - 1)), np.int64)
        negative = op("And", *(op("Less", value, np.array(0)) for value in wide))
        made = op("Add", made, op("Mul", op("Cast", negative, to=_INT64), lowest))
    return made


def scattered(node: ir.Node, known: dict[str, Any]) -> Any:
    """Return the nodes of ScatterND or ScatterElements that joins elements, one after the other."""
    x, indices, updates = (value for value in node.inputs if value is not None)
    rank = rank_of(x)
    if node.op_type == "ScatterElements":
        axis = known.get("axis", 0) % rank
        columns = []
        for place in range(rank):
            other = [[step] for step in range(rank) if step != place]
            row = positions_along(indices, place)
            if rank > 1:
                row = op("Unsqueeze", row, np.array(other, np.int64).reshape(-1))
            same = op("Mul", op("Cast", indices, to=_INT64), np.array(0))
            chosen = op("Cast", indices, to=_INT64) if place == axis else op("Add", same, row)
            columns.append(op("Unsqueeze", chosen, np.array([-1])))
        indices = op("Concat", *columns, axis=-1)
        depth = rank
    else:
        assert indices.shape is not None
        last = indices.shape[-1]
        assert isinstance(last, int)
        depth = last
    places = op("Reshape", indices, np.array([-1, depth]))
    inner = op("Slice", op("Shape", x), np.array([depth]), np.array([rank]))
    rows = op("Reshape", updates, op("Concat", np.array([-1]), inner, axis=0))
    count = op("Gather", op("Shape", places), np.array(0), axis=0)
    join = _JOINED[known["reduction"]]

    def turn(k: Any, going: Any, content: Any) -> list[Any]:
        at = op("Unsqueeze", op("Gather", places, k, axis=0), np.array([0]))
        new = op("Unsqueeze", op("Gather", rows, k, axis=0), np.array([0]))
        return [going, op("ScatterND", content, at, op(join, op("GatherND", content, at), new))]

    return loop(count, None, [x], turn)[0]


__all__ = ["bitwise", "scattered"]
