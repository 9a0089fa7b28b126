"""Rules from operators to kernels, one module or package a family."""

from __future__ import annotations

import onnx_ir as ir

from hagane.native.lowering.state import Rule
from hagane.native.rules import (
    attention,
    cached_attention,
    elementwise,
    movement,
    recurrent,
    resize,
    rotary,
    rows,
)
from hagane.native.rules.bytes import convolution as byte_convolution
from hagane.native.rules.bytes import general as general_quantization
from hagane.native.rules.bytes import products as byte_products
from hagane.native.rules.bytes import quantization
from hagane.native.rules.control import operators as control
from hagane.native.rules.convolution import choose as convolution
from hagane.native.rules.convolution import pooling, transposed
from hagane.native.rules.indexing import elements, tuples
from hagane.native.rules.looped import convolution as looped_convolution
from hagane.native.rules.looped import einsum as looped_einsum
from hagane.native.rules.looped import inverse, linear_attention
from hagane.native.rules.looped import products as looped_products
from hagane.native.rules.looped import transposed as looped_transposed
from hagane.native.rules.ordering import along, reducing
from hagane.native.rules.products import matrix
from hagane.native.rules.selecting import boxes, chosen
from hagane.native.rules.shaping import filling, slicing
from hagane.native.rules.signal import fourier
from hagane.native.rules.vision import (
    resizing,
    sampling,
    windows,
)
from hagane.ops.registry import find, operators

_FAMILIES = (
    attention,
    byte_convolution,
    byte_products,
    elementwise,
    control,
    convolution,
    matrix,
    movement,
    pooling,
    quantization,
    recurrent,
    resize,
    rotary,
    rows,
    transposed,
)
_WRITTEN = (
    along,
    boxes,
    cached_attention,
    chosen,
    elements,
    filling,
    fourier,
    general_quantization,
    inverse,
    linear_attention,
    looped_convolution,
    looped_einsum,
    looped_products,
    looped_transposed,
    reducing,
    resizing,
    sampling,
    slicing,
    tuples,
    windows,
)

# By domain and name. Passes write operators of other domains in those of ONNX.
RULES: dict[tuple[str, str], Rule] = {
    ("", name): rule for family in _FAMILIES for name, rule in family.RULES.items()
}
# The rules of loops in C over elements of any type; where there is another rule too, it comes first.
WRITTEN: dict[tuple[str, str], Rule] = {
    key: rule for family in _WRITTEN for key, rule in family.RULES.items()
}


def rules_of(node: ir.Node) -> list[Rule]:
    """Return the rules that may make kernels of a node, in order of preference."""
    key = node.domain, node.op_type
    found = [table[key] for table in (RULES, WRITTEN) if key in table]
    if node.domain == "ai.onnx.ml" or node.op_type == "TfIdfVectorizer":
        from hagane.native.rules import classical  # networks have none of these

        found += [classical.RULES[key]] if key in classical.RULES else []
    if node.domain == "com.microsoft":
        from hagane.native.rules import contributed  # few models have any of these

        found += [contributed.RULES[key]] if key in contributed.RULES else []
    if node.domain == "hagane":
        from hagane.native.rules import training  # inference has none of these

        found += training.RULES.get(key, ())
    if not found and key in operators().own and find(node).source is not None:
        from hagane.native.rules.own import lower_source  # few models need it

        return [lower_source]
    return found
