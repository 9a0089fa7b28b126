"""Attributes that became inputs."""

from __future__ import annotations

import numpy as np

from hagane.ops.builder import op
from hagane.passes.edit import given
from hagane.passes.legalise.rewrite import Site


def axes_to_input(site: Site) -> None:
    """Squeeze, Unsqueeze and ReduceSum (13), the other reductions (18)."""
    axes = site.take("axes")
    if axes:
        site.set_input(1, site.constant(axes))


def clip_11(site: Site) -> None:
    """``min`` and ``max``; an absent one stays without bound."""
    for index, name in ((1, "min"), (2, "max")):
        bound = site.take(name)
        if bound is not None:
            site.set_input(index, op("CastLike", np.float32(bound), site.node.inputs[0]))


def dft_20(site: Site) -> None:
    """``axis``, whose default changes from 1 to -2."""
    axis = site.take("axis", 1)
    site.set_input(2, site.constant(axis))


def dropout_12(site: Site) -> None:
    """``ratio``; the mask is of zeros, before opset 10 of the data's element type."""
    ratio = site.take("ratio")
    if ratio is not None:
        site.set_input(1, site.constant(ratio, np.float32))
    outputs, x = site.node.outputs, site.node.inputs[0]
    if len(outputs) < 2 or not (outputs[1].uses() or outputs[1].is_graph_output()):
        return
    made = op("Dropout", *site.node.inputs, **given(site.node))
    mask = op("Expand", site.constant(False, np.bool_), op("Shape", x))
    site.replace(made, mask if site.version >= 10 else op("CastLike", mask, x))


def pad_11(site: Site) -> None:
    """``pads`` and ``value``."""
    site.set_input(1, site.constant(site.take("pads")))
    value = site.take("value", 0.0)
    if value:
        site.set_input(2, op("CastLike", np.float32(value), site.node.inputs[0]))


def slice_10(site: Site) -> None:
    """``starts``, ``ends`` and ``axes``."""
    for index, name in enumerate(("starts", "ends", "axes"), start=1):
        values = site.take(name)
        if values is not None:
            site.set_input(index, site.constant(values))


def split_13(site: Site) -> None:
    """``split``, the lengths of the parts."""
    lengths = site.take("split")
    if lengths:
        site.set_input(1, site.constant(lengths))


def split_18(site: Site) -> None:
    """Equal parts are asked for by ``num_outputs``; before, the outputs were counted."""
    if len(site.node.inputs) < 2 or site.node.inputs[1] is None:
        site.put("num_outputs", len(site.node.outputs))


def topk_10(site: Site) -> None:
    """``k``."""
    site.set_input(1, site.constant([site.take("k")]))
