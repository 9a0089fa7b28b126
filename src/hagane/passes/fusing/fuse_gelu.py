"""Recognise the Gaussian error linear unit as exporters write it."""

from __future__ import annotations

import math

import onnx_ir as ir

from hagane.ops.inference import GraphTypes
from hagane.passes.edit import name_of, substitute
from hagane.passes.fusing.polynomials import (
    Polynomial,
    close,
    completions,
    ingredients,
    polynomial,
    tolerance_of,
)

_TANH = math.sqrt(2 / math.pi)
# The function, the argument that it has, and the form of Gelu that it belongs to.
_FORMS: dict[str, tuple[Polynomial, str]] = {
    "Erf": ({1: math.sqrt(0.5)}, "none"),
    "Tanh": ({1: _TANH, 3: _TANH * 0.044715}, "tanh"),
}


def fuse_gelu(graph: ir.Graph, types: GraphTypes) -> list[str]:
    """Replace ``x · ½ · (1 + erf(x / √2))`` by Gelu, with tanh by its approximation; return where.

    Arguments are compared as polynomials of ``x``: ``x / √2`` and ``x · 0.7071``, ``x³`` by Pow or
    by products, ``√(2/π) · (x + 0.044715 · x³)`` and ``√(2/π) · x · (1 + 0.044715 · x²)``. What
    follows may multiply in any order, and multiply out: ``½ · x + ½ · x · erf(x / √2)`` (Hendrycks
    and Gimpel, 2016). Constants may be written with four digits, unless ``x`` is float64.

    Values inside may be read by others too; they are then computed besides.
    """
    changed: list[str] = []
    for node in list(graph):
        if node.domain != "" or node.op_type not in _FORMS or node.graph is not graph:
            continue
        wanted, approximate = _FORMS[node.op_type]
        for x in list(ingredients(node.inputs[0], types)):
            if not close(polynomial(node.inputs[0], x, types), wanted, tolerance_of(x, types)):
                continue
            for end in completions(node.outputs[0], x, 0.5, 0.5, types):
                changed.append(name_of(end))
                substitute(graph, types, end, "Gelu", [x], approximate=approximate)
            break
    return changed
