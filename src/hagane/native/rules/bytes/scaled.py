"""Floats made of sums of bytes: a cast, a constant factor and a constant summand that follow."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from hagane.native.kernels.expression import FLOAT32
from hagane.native.lowering.state import Lowering
from hagane.ops.definition import Array


@dataclass(frozen=True, slots=True)
class Scaled:
    """A result of sums, times a factor, plus a shift.

    Attributes:
        value: The value after both.
        factor: One number a channel.
        shift: The same.
        nodes: The nodes that bring the sums there.
    """

    value: ir.Value
    factor: Array
    shift: Array
    nodes: tuple[ir.Node, ...]


def scaled(low: Lowering, value: ir.Value, count: int, behind: int) -> Scaled | None:
    """Return the cast and the factor behind sums, if there are such; their nodes count as lowered.

    Args:
        low: The state.
        value: The sums, of int32.
        count: Channels.
        behind: How many axes follow that of the channels.
    """
    none = np.zeros(count, np.float32)
    cast = low.only_use(value)
    if cast is None or cast.op_type != "Cast" or low.facts.dtype(cast.outputs[0]) != FLOAT32:
        return None
    times = low.only_use(cast.outputs[0])
    factor = (
        _other(low, times, cast, count, behind)
        if times is not None and times.op_type == "Mul"
        else None
    )
    if times is None or factor is None:
        return None
    low.done.add(cast, times)
    plus = low.only_use(times.outputs[0])
    shift = (
        _other(low, plus, times, count, behind)
        if plus is not None and plus.op_type == "Add"
        else None
    )
    if plus is None or shift is None:
        return Scaled(times.outputs[0], factor, none, (cast, times))
    low.done.add(plus)
    return Scaled(plus.outputs[0], factor, shift, (cast, times, plus))


def _other(low: Lowering, node: ir.Node, before: ir.Node, count: int, behind: int) -> Array | None:
    """Return the constant that a node combines with a product, one number a channel."""
    (other,) = [v for v in node.inputs if v is not before.outputs[0]] or [None]
    array = low.facts.constant(other)
    if array is None or array.dtype != np.float32:
        return None
    rank = len(low.facts.shape(before.outputs[0]))
    shape = (1,) * (rank - array.ndim) + array.shape
    if len(shape) > rank or math.prod(shape) != shape[rank - 1 - behind]:
        return None
    if array.size not in (1, count):
        return None
    return np.ascontiguousarray(np.broadcast_to(array.reshape(-1), (count,)))
