"""Recognise activations that exporters write as a product with a gate."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import onnx_ir as ir

from hagane.ops.inference import GraphTypes
from hagane.passes.edit import (
    attributes_of,
    name_of,
    producer,
    scalar,
    substitute,
    type_of,
)
from hagane.passes.fusing.polynomials import (
    close,
    completions,
    ingredients,
    polynomial,
    tolerance_of,
)


def fuse_activations(graph: ir.Graph, types: GraphTypes) -> list[str]:
    """Replace products of ``x`` and a gate by Swish, HardSwish or Mish; return where.

    - ``x · sigmoid(α · x)`` becomes Swish with α: SiLU for 1, "quick GELU" for 1.702;
    - ``x · HardSigmoid(x)`` with slope 1/6 and ``x · Clip(x + 3, 0, 6) / 6`` become HardSwish;
    - ``x · tanh(Softplus(x))`` becomes Mish;
    - ``Where(x > t, x, Softplus(x))`` with ``t`` of 20 or more becomes Softplus, which is ``x``
      there up to rounding.

    Products may come in any order. Nothing changes where the factor is not the argument of the gate
    or another constant is left over.
    """
    changed: list[str] = []
    for node in list(graph):
        if node.domain != "" or node.graph is not graph:
            continue
        for end, op_type, x, attributes in list(_found(node, types)):
            if end.graph is graph:
                changed.append(name_of(end))
                substitute(graph, types, end, op_type, [x], **attributes)
    return changed


def _found(
    node: ir.Node, types: GraphTypes
) -> Iterator[tuple[ir.Node, str, ir.Value, dict[str, Any]]]:
    """Yield nodes that complete an activation whose gate is ``node``, and their value."""
    match node.op_type:
        case "Sigmoid":
            for x in ingredients(node.inputs[0], types):
                factors = polynomial(node.inputs[0], x, types)
                if factors is not None and set(factors) == {1} and factors[1]:
                    for end in completions(node.outputs[0], x, 0.0, 1.0, types):
                        yield end, "Swish", x, {"alpha": factors[1]}
        case "HardSigmoid":
            source, attributes = node.inputs[0], attributes_of(node)
            gate = {0: attributes["beta"], 1: attributes["alpha"]}
            if source is not None and close(gate, {0: 0.5, 1: 1 / 6}, 1e-6):
                for end in completions(node.outputs[0], source, 0.0, 1.0, types):
                    yield end, "HardSwish", source, {}
        case "Clip":
            limits = [scalar(one, types) for one in node.inputs[1:]]
            if limits == [0.0, 6.0]:
                for x in ingredients(node.inputs[0], types):
                    if close(polynomial(node.inputs[0], x, types), {0: 3.0, 1: 1.0}, 0.0):
                        for end in completions(node.outputs[0], x, 0.0, 1 / 6, types):
                            yield end, "HardSwish", x, {}
        case "Tanh":
            softplus = producer(node.inputs[0], "Softplus")
            source = None if softplus is None else softplus.inputs[0]
            if source is not None:
                for end in completions(node.outputs[0], source, 0.0, 1.0, types):
                    yield end, "Mish", source, {}
        case "Where":
            source = _linear_above(node, types)
            if source is not None:
                yield node, "Softplus", source, {}


def _linear_above(choice: ir.Node, types: GraphTypes) -> ir.Value | None:
    """Return ``x`` of ``Where(x > t, x, Softplus(x))`` with a large enough ``t``."""
    test, x, softplus = choice.inputs
    compared = producer(test, "Greater")
    curve = producer(softplus, "Softplus")
    if x is None or compared is None or curve is None or curve.inputs[0] is not x:
        return None
    threshold = scalar(compared.inputs[1], types)
    if compared.inputs[0] is not x or threshold is None or type_of(x, types) is None:
        return None
    # ln(1 + exp(t)) - t is below the rounding of t.
    far = 40.0 if tolerance_of(x, types) < 1e-6 else 20.0
    enough = far <= threshold < math.inf
    same = type_of(x, types) == type_of(choice.outputs[0], types)
    return x if enough and same else None
