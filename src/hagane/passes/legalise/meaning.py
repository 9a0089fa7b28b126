"""Operators whose meaning, default or spelling changed."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from hagane.ops.builder import Nodes, interpreting, op
from hagane.passes.edit import given
from hagane.passes.legalise.rewrite import Site


def batch_normalization_14(site: Site) -> None:
    """``spatial`` went away (9), and with it the outputs of training (14)."""
    node = site.node
    spatial = site.take("spatial", 1)
    if len(node.outputs) > 1:
        if any(output.uses() or output.is_graph_output() for output in node.outputs[1:]):
            site.refuse("its training outputs are used, which have no current form")
        node.resize_outputs(1)
    if spatial != 1:  # statistics for each element, no longer one a channel
        x, scale, bias, mean, variance = node.inputs
        epsilon = site.constant(site.take("epsilon", 1e-5), np.float32)
        root = op("Sqrt", op("Add", variance, op("CastLike", epsilon, x)))
        normed = op("Div", op("Sub", x, mean), root)
        site.replace(op("Add", op("Mul", normed, scale), bias))


def grid_sample_20(site: Site) -> None:
    """The modes were renamed."""
    renamed = {"bilinear": "linear", "bicubic": "cubic"}
    mode = site.take("mode", "bilinear")
    site.put("mode", renamed.get(mode, mode))


def group_normalization_21(site: Site) -> None:
    """Scale and bias hold one number a channel now, no longer one a group."""
    groups = site.node.attributes["num_groups"].as_int()
    channels = op("Shape", site.node.inputs[0], start=1, end=2)
    shape = op("Concat", [groups], op("Div", channels, [groups]), axis=0)
    for index in (1, 2):
        column = op("Reshape", site.node.inputs[index], [groups, 1])
        site.set_input(index, op("Reshape", op("Expand", column, shape), [-1]))


def loop_scalars(site: Site) -> None:
    """Inputs that a body declares to have one axis get it from scalars, as in ONNX Runtime."""
    body = site.node.attributes["body"].as_graph()
    for index, value in enumerate(body.inputs[:2]):
        if value.shape is None or len(value.shape) != 1:
            continue
        scalar = ir.Value(name=value.name, shape=ir.Shape([]), type=value.type)
        before = next(iter(body), None)
        nodes = Nodes(body, before=before, name=f"{value.name}.legalised", typed=False)
        with interpreting(nodes):
            vector = op("Unsqueeze", scalar, [0])
        value.replace_all_uses_with(vector, replace_graph_outputs=True)
        value.name, body.inputs[index] = None, scalar


def roi_align_16(site: Site) -> None:
    """Until opset 16 there was no half-pixel offset."""
    site.put("coordinate_transformation_mode", "output_half_pixel")


def scatter_11(site: Site) -> None:
    """Scatter was renamed ScatterElements."""
    site.replace(op("ScatterElements", *site.node.inputs, **given(site.node)))


def softmax_13(site: Site) -> None:
    """Softmax, LogSoftmax and Hardmax ran over all axes from ``axis`` on, flattened."""
    node = site.node
    axis = site.take("axis", 1)
    x = node.inputs[0]
    rank = None if x is None or x.shape is None else len(x.shape)
    if axis == -1 or (rank is not None and axis == rank - 1):
        site.put("axis", -1)
        return
    shape = op("Shape", x)
    normalised = op(node.op_type, op("Flatten", x, axis=axis), axis=-1)
    site.replace(op("Reshape", normalised, shape))
