"""Shapes (n, 1) and (n,), whose elements are paired on purpose or by mistake."""

from __future__ import annotations

from collections.abc import Mapping

import onnx_ir as ir

from hagane.frontends.python.values.values import Tensor


def is_meant(column: Tensor, row: Tensor, tensors: Mapping[ir.Value, Tensor]) -> bool:
    """Whether a program means to pair all elements of a column and a row.

    It does where a reduction kept the axis of the column, as for distances of all rows, and where
    both come from one tensor, as in ``x[:, None] - x``.
    """
    producer = column.value.producer()
    if producer is None:
        return False
    if producer.op_type.startswith("Reduce"):
        return True
    return not _sources(column.value, tensors).isdisjoint(_sources(row.value, tensors))


def _sources(value: ir.Value, tensors: Mapping[ir.Value, Tensor]) -> set[ir.Value]:
    """Return the tensors that no operator made, and one is computed from; parameters aside."""
    found, waiting, seen = set[ir.Value](), [value], set[ir.Value]()
    while waiting:
        current = waiting.pop()
        if current in seen:
            continue
        seen.add(current)
        producer = current.producer()
        if producer is not None:
            waiting += [item for item in producer.inputs if item is not None]
            continue
        tensor = tensors.get(current)
        if tensor is None or (not tensor.parameter and tensor.known is None):
            found.add(current)
    return found


__all__ = ["is_meant"]
