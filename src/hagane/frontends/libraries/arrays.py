"""Real arrays as tensors of the program."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.values.values import Value
from hagane.ops.values import array_dtype

_MAX_KNOWN = 256


def lift_array(core: Core, found: Any, kind: str) -> Value:
    """Return a tensor for a NumPy array or a Chainer variable; small arrays keep their content."""
    array = found if isinstance(found, np.ndarray) else found.array
    trained = hasattr(found, "update_rule")
    if array is None:  # a Chainer parameter that is not initialised
        made = core.emit.new(ir.DataType.FLOAT, None, kind=kind)
        made.parameter = trained
        return made
    if array.dtype == object and not all(isinstance(item, str) for item in array.flat):
        return core.outside("an array of objects")
    small = array.size <= _MAX_KNOWN and array.dtype != object
    known = array if small and array is found else None
    made = core.emit.new(array_dtype(array), tuple(array.shape), kind=kind, known=known)
    made.parameter = trained
    core.emit.keep(made, found, lambda: array)
    return made
