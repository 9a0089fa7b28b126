"""Opset 7: broadcasting became NumPy's; before, attributes said whether and from which axis."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from hagane.ops.builder import op
from hagane.passes.legalise.rewrite import Site


def binary_7(site: Site) -> None:
    """``axis`` aligned the second operand with axes of the first; ones after it do the same."""
    broadcasts = site.take("broadcast", 0)
    axis = site.take("axis")
    site.take("consumed_inputs")
    if not broadcasts or axis is None:
        return
    x, y = site.node.inputs
    if axis >= 0:
        site.set_input(1, _with_ones(y, op("Sub", op("Sub", _rank(x), _rank(y)), [axis])))
    else:
        # Counted from the back: -1 aligns the operand's first axis with the last one.
        site.set_input(1, _with_ones(y, op("Sub", [-axis], _rank(y))))


def gemm_7(site: Site) -> None:
    """``broadcast`` allowed today's rule."""
    site.take("broadcast")


def prelu_7(site: Site) -> None:
    """A slope of one axis held one number a channel, the second axis of the input."""
    site.take("consumed_inputs")
    x, slope = site.node.inputs
    spatial = op("Sub", _rank(x), [2])
    site.set_input(1, _with_ones(slope, op("Max", spatial, [0])))


def training_attributes_7(site: Site) -> None:
    """BatchNormalization and Dropout: ``is_test`` chose between training and inference."""
    site.take("consumed_inputs")
    if site.take("is_test", 0) == 0 and site.node.op_type == "BatchNormalization":
        site.refuse("is_test=0 (statistics of the batch) has no current form")


def recurrent_7(site: Site) -> None:
    """``output_sequence`` went away: outputs are computed where they are used."""
    site.take("output_sequence")


def _rank(value: ir.Value | None) -> ir.Value:
    rank: ir.Value = op("Shape", op("Shape", value))
    return rank


def _with_ones(value: ir.Value | None, count: ir.Value) -> ir.Value:
    """Return ``value`` with ``count`` axes of size 1 after its own."""
    ones = op("ConstantOfShape", count, value=np.array([1]))
    spread: ir.Value = op("Reshape", value, op("Concat", op("Shape", value), ones, axis=0))
    return spread
