"""Sizes of inputs that a file leaves open and its weights tell, as those of channels."""

from __future__ import annotations

import onnx_ir as ir

from hagane.graph.types import TensorType
from hagane.ops import GraphTypes
from hagane.symbolic import Expr, symbol, symbols_of

# Operators that take no sizes but equal ones where they need these.
_STRICT = frozenset(
    {"Conv", "ConvInteger", "ConvTranspose", "Gemm", "MatMul", "MatMulInteger", "QLinearConv"}
)


def told_sizes(model: ir.Model, types: GraphTypes) -> dict[str, int]:
    """Return the numbers of named sizes that nodes of every run need to be these.

    Args:
        model: In current form.
        types: Of its values.
    """
    found = [types.types.get(value) for value in model.graph.inputs]
    shapes = [type_.shape or () for type_ in found if isinstance(type_, TensorType)]
    open_ = {name for shape in shapes for dim in shape for name in symbols_of(dim)}
    told: dict[str, int] = {}
    for node in model.graph if open_ else ():
        if node.op_type not in _STRICT or (node.op_type == "Gemm" and len(node.inputs) > 2):
            continue
        may_be_one = types.broadcast.get(node, ())
        for pair in types.assumed.get(node, ()):
            if pair in may_be_one:
                continue
            for dim, size in (pair, pair[::-1]):
                if not isinstance(dim, Expr) or not isinstance(size, int):
                    continue
                names = symbols_of(dim) & open_
                if len(names) == 1 and dim == symbol(*names) and size > 0:
                    told.setdefault(*names, size)
    return told
