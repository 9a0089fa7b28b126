"""Opset 7: broadcasting became NumPy's; before, attributes said whether and from which axis."""

from __future__ import annotations

import onnx_ir as ir

from hagane.passes.legalise.rewrite import Site


def binary_7(site: Site) -> None:
    """``axis`` aligned the second operand with axes of the first; ones after it do the same."""
    broadcasts = site.take("broadcast", 0)
    axis = site.take("axis")
    site.take("consumed_inputs")
    if not broadcasts or axis is None:
        return
    x, y = site.node.inputs
    start = site.constant([axis])
    after = site.before("Sub", [_rank(site, x), _rank(site, y)])
    if axis >= 0:
        site.set_input(1, _with_ones(site, y, site.before("Sub", [after, start])))
    else:
        # Counted from the back: -1 aligns the operand's first axis with the last one.
        beyond = site.before("Sub", [site.before("Neg", [start]), _rank(site, y)])
        site.set_input(1, _with_ones(site, y, beyond))


def gemm_7(site: Site) -> None:
    """``broadcast`` allowed what is always allowed now."""
    site.take("broadcast")


def prelu_7(site: Site) -> None:
    """A slope of one axis held one number a channel, the second axis of the input."""
    site.take("consumed_inputs")
    x, slope = site.node.inputs
    spatial = site.before("Sub", [_rank(site, x), site.constant([2])])
    count = site.before("Max", [spatial, site.constant([0])])
    site.set_input(1, _with_ones(site, slope, count))


def training_attributes_7(site: Site) -> None:
    """BatchNormalization and Dropout: ``is_test`` chose between training and inference."""
    site.take("consumed_inputs")
    if site.take("is_test", 0) == 0 and site.node.op_type == "BatchNormalization":
        site.refuse("is_test=0 (statistics of the batch) has no current form")


def recurrent_7(site: Site) -> None:
    """``output_sequence`` went away: outputs are computed where they are used."""
    site.take("output_sequence")


def _rank(site: Site, value: ir.Value | None) -> ir.Value:
    return site.before("Shape", [site.before("Shape", [value])])


def _with_ones(site: Site, value: ir.Value | None, count: ir.Value) -> ir.Value:
    """Return ``value`` with ``count`` axes of size 1 after its own."""
    ones = site.before(
        "ConstantOfShape", [count], {"value": ir.tensor([1], dtype=ir.DataType.INT64)}
    )
    shape = site.before("Concat", [site.before("Shape", [value]), ones], {"axis": 0})
    return site.before("Reshape", [value, shape])
