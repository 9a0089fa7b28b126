"""Results of PyTorch's functions of which the type is known before the operators are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import onnx_ir as ir

from hagane.frontends.libraries.torch.operands import category
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.values.values import Tensor
from hagane.graph.types import Shape
from hagane.ops.builder import interpreting


def computed(
    t: Core,
    name: str,
    inputs: Sequence[Tensor],
    dtype: ir.DataType,
    shape: Shape,
    compute: Callable[[], Any],
) -> Tensor:
    """Return the result of a function over the builder.

    Args:
        t: The interpreter of the program.
        name: Stands for the function where only types are asked for: nothing is computed there.
        inputs: The operands.
        dtype: The element type of the result.
        shape: The shape of the result, in the sizes that the reader of the program knows.
        compute: Returns the result, which has that type.
    """
    if not t.emit.builds or category(dtype) == 3:
        return t.emit.typed(name, inputs, dtype, shape)
    with interpreting(t.emit):
        found = compute()
    made: Tensor = t.op("Identity", found) if any(found is x for x in inputs) else found
    if made.shape != shape:
        t.emit.show_sizes(made, shape)
    return made
