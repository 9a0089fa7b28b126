"""Results of library functions as functions over the builder, for the checker and for capture."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import onnx_ir as ir

from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.values.values import Tensor
from hagane.graph.types import Shape
from hagane.ops.builder import interpreting

_COMPLEX = (ir.DataType.COMPLEX64, ir.DataType.COMPLEX128)


def computed(
    t: Core,
    promised: Tensor | tuple[ir.DataType, Shape | None],
    function: Callable[..., Any],
    *operands: Any,
) -> Tensor:
    """Return what a function over the builder makes of operands.

    The checker runs it over types, capture over the values of a graph.

    Args:
        t: The interpreter.
        promised: The type of the result by the library's own rule, in the sizes that the reader
            of the program knows; or a tensor of that type.
        function: The function.
        operands: What it is called with.

    Raises:
        AssertionError: The function gives a tensor of another element type or rank.
    """
    dtype, shape = (promised.dtype, promised.shape) if isinstance(promised, Tensor) else promised
    given = [operand for operand in operands if isinstance(operand, Tensor)]
    if dtype in _COMPLEX or any(x.dtype in _COMPLEX for x in given):  # no operator computes them
        return t.emit.typed("Complex", given, dtype, shape)
    with interpreting(t.emit):
        found = function(*operands)
    made: Tensor = t.op("Identity", found) if any(found is x for x in given) else found
    if made.dtype != dtype or (shape is not None and made.rank != len(shape)):
        raise AssertionError(f"{function} gives {t.show(made)}, promised {dtype}{shape}")
    if shape is not None and made.shape != shape:
        t.emit.show_sizes(made, shape)
    return made
