"""Numbers that the elements of a tensor cannot hold, which PyTorch refuses to fill it with.

Its rule is ``c10::overflows``: floats may be infinite, unsigned integers may be given as the
negative ones of as many bits, and a complex number fits others if it has no imaginary part.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import onnx_ir as ir

from hagane.frontends.libraries.torch.operands import category
from hagane.frontends.libraries.torch.published.signatures import METHODS
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.values.values import Tensor, Value
from hagane.graph.types import dtype_name

# Functions that put a number into a tensor of the result's type: the number's place and name.
_FILLING = {
    "masked_fill": (2, "value"), "fill": (1, "value"), "index_fill": (3, "value"),
    "fill_diagonal": (1, "fill_value"), "scatter": (3, "value"), "full": (1, "fill_value"),
    "full_like": (1, "fill_value"), "new_full": (2, "fill_value"), "pad": (3, "value"),
    "clamp_": (2, "max"),
}  # fmt: skip
# Those that make numbers that are too great for floats infinite.
_STORING = {"tensor": (0, "data"), "as_tensor": (0, "data"), "scalar_tensor": (0, "s")}
_READING = ("masked_fill", "masked_fill_")  # which read the number of a tensor
_PARTS = ("torch.", METHODS, "torch.nn.functional.")


def refuse_overflow(
    core: Core, name: str, arguments: Sequence[Value], keywords: Mapping[str, Value], made: Value
) -> None:
    """Refuse a call that fills a tensor with a number that its elements cannot hold."""
    owner, _, last = name.rpartition(".")
    if not isinstance(made, Tensor) or f"{owner}." not in _PARTS:
        return
    for table, stores in ((_FILLING, False), (_STORING, True)):
        found = table.get(last) or table.get(last.removesuffix("_"))
        if found is not None:
            place, key = found
            given = arguments[place] if place < len(arguments) else keywords.get(key)
            if isinstance(given, Tensor) and given.known is not None and last in _READING:
                given = given.known.item() if given.known.size == 1 else None
            need_room(core, made.dtype, given, key, stores=stores)


def need_room(
    core: Core, dtype: ir.DataType, value: Value, what: str, *, stores: bool = False
) -> None:
    """Fail if elements cannot hold a number, as far as it is known.

    Args:
        core: The interpreter.
        dtype: The elements' type.
        value: The number.
        what: What fills them, for the message.
        stores: Whether floats take numbers that are too great as infinite ones.
    """
    if isinstance(value, complex):
        fits = category(dtype) in (0, 3) or value.imag == 0
    elif isinstance(value, int | float) and category(dtype) in (1, 2, 3):
        fits = _holds(dtype, value) or (stores and category(dtype) > 1)
    else:
        return
    if fits:
        return
    name = dtype_name(dtype)
    remedy = "convert the tensor with .float()"
    if category(dtype) == 2 and not isinstance(value, complex):
        remedy = f"use float('-inf') or torch.finfo(torch.{name}).min"
    core.fail(
        "value",
        f"expected {what} that elements of type {name} can hold, got {value}",
        remedy=remedy,
    )


def _holds(dtype: ir.DataType, value: float) -> bool:
    if category(dtype) > 1:
        most = _LARGEST.get(dtype, math.inf)
        return not math.isfinite(value) or abs(value) <= most
    if not math.isfinite(value):
        return False
    limits = np.iinfo(dtype.numpy())
    least = -int(limits.max) if limits.min == 0 else int(limits.min)
    return least <= value <= int(limits.max)


_LARGEST = {
    ir.DataType.FLOAT16: 65504.0,
    ir.DataType.BFLOAT16: 3.3895313892515355e38,
    ir.DataType.FLOAT: float(np.finfo(np.float32).max),
    ir.DataType.COMPLEX64: float(np.finfo(np.float32).max),
}


__all__ = ["need_room", "refuse_overflow"]
