"""Recognise the Gaussian error linear unit as exporters write it."""

from __future__ import annotations

import math

import onnx_ir as ir

from hagane.ops.inference import GraphTypes
from hagane.passes.edit import name_of, other_input, producer, readers, scalar, substitute


def fuse_gelu(graph: ir.Graph, types: GraphTypes) -> list[str]:
    """Replace ``x · ½ · (1 + erf(x / √2))``, in any order of its products, by Gelu.

    The forms of PyTorch and TensorFlow exporters: ``(x · s) · ½``, ``x · (s · ½)`` and
    ``(x · ½) · s`` with ``s = 1 + erf(x / √2)`` or ``erf(x · √½)`` (Hendrycks and Gimpel, 2016).
    Values inside may be read by others too; they are then computed besides.
    """
    changed: list[str] = []
    for erf in list(graph):
        if erf.op_type != "Erf" or erf.domain != "":
            continue
        x = _scaled_source(erf.inputs[0], types)
        if x is None:
            continue
        for end in _ends(erf, x, types):
            changed.append(name_of(end))
            substitute(graph, types, end, "Gelu", [x])
    return changed


def _close(found: float | None, wanted: float) -> bool:
    return found is not None and math.isclose(found, wanted, rel_tol=1e-4)


def _scaled_source(value: ir.Value | None, types: GraphTypes) -> ir.Value | None:
    """Return ``x`` of ``x / √2`` or ``x · √½``."""
    divided = producer(value, "Div")
    if divided is not None and _close(scalar(divided.inputs[1], types), math.sqrt(2)):
        return divided.inputs[0]
    product = producer(value, "Mul")
    if product is not None:
        for factor, x in (product.inputs, tuple(reversed(product.inputs))):
            if _close(scalar(factor, types), math.sqrt(0.5)):
                return x
    return None


def _ends(erf: ir.Node, x: ir.Value, types: GraphTypes) -> list[ir.Node]:
    """Return the products that complete the pattern."""
    found: list[ir.Node] = []
    for add in readers(erf.outputs[0], "Add"):
        if not _close(scalar(other_input(add, erf.outputs[0]), types), 1.0):
            continue
        s = add.outputs[0]
        for product in readers(s, "Mul"):
            other = other_input(product, s)
            if other is x:  # (x · s) · ½
                found += [
                    end
                    for end in readers(product.outputs[0], "Mul")
                    if _close(scalar(other_input(end, product.outputs[0]), types), 0.5)
                ]
            elif _close(scalar(other, types), 0.5):  # x · (s · ½)
                found += [
                    end
                    for end in readers(product.outputs[0], "Mul")
                    if other_input(end, product.outputs[0]) is x
                ]
            elif (half := producer(other, "Mul")) is not None and x in half.inputs:  # (x · ½) · s
                halved = _close(scalar(other_input(half, x), types), 0.5)
                found += [product] if halved else []
    return list(dict.fromkeys(found))
