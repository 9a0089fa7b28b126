"""Between tensors as models hold them and arrays as kernels take them."""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np
import onnx_ir as ir

from hagane.errors import InvalidContent, InvalidModel, KernelError, OutOfMemory
from hagane.machine import is_of_handler
from hagane.ops.definition import Array, RuntimeValue

_DTYPES = {
    np.dtype(dtype.numpy()): dtype
    for dtype in ir.DataType
    if dtype not in (ir.DataType.UNDEFINED, ir.DataType.STRING)
}
# Types without NumPy support in every operation: computed in float32 and rounded back.
LOW_PRECISION = frozenset(
    np.dtype(t)
    for t in (
        np.float16,
        ml_dtypes.bfloat16,
        ml_dtypes.float8_e4m3fn,
        ml_dtypes.float8_e4m3fnuz,
        ml_dtypes.float8_e5m2,
        ml_dtypes.float8_e5m2fnuz,
    )
)


def array_dtype(array: Array) -> ir.DataType:
    """Return the element type of ``array``; arrays of ``str`` objects are strings."""
    if array.dtype == object or array.dtype.kind in "US":
        return ir.DataType.STRING
    found = _DTYPES.get(array.dtype) or _DTYPES.get(array.dtype.newbyteorder("="))
    return ir.DataType.UNDEFINED if found is None else found


def tensor_to_array(tensor: ir.TensorProtocol) -> Array:
    """Return the content of ``tensor``; strings come as an object array of ``str``."""
    try:
        return (
            texts_of(tensor) if tensor.dtype == ir.DataType.STRING else np.asarray(tensor.numpy())
        )
    except Exception as error:
        if is_of_handler(error):
            raise
        raise InvalidModel(f"tensor '{tensor.name}' cannot be read: {error}") from error


def texts_of(tensor: ir.TensorProtocol) -> Array:
    """Return a tensor of strings as an object array of ``str``."""
    # (an array of NumPy's bytes would lose NULs at the end)
    held = tensor.string_data() if isinstance(tensor, ir.StringTensor) else tensor.numpy().ravel()
    return strings([_text(item) for item in held]).reshape(tensor.shape.numpy())


def _text(item: str | bytes) -> str:
    return item.decode("utf-8", "surrogateescape") if isinstance(item, bytes) else str(item)


def strings(items: list[str]) -> Array:
    """Return a one-dimensional array of ``str`` objects."""
    result = np.empty(len(items), dtype=object)
    result[:] = items
    return result


@cache
def texts() -> Any | None:
    """Return loops over texts in C (``ops/text/texts.c``); None where they cannot be made."""
    from hagane.machine.cache import load_module  # few models have texts

    return load_module("texts", _loops_over_texts, (np.get_include(),), np.__version__)


def _loops_over_texts() -> str:
    from importlib import resources

    return (resources.files("hagane.ops.text") / "texts.c").read_text(encoding="utf-8")


def describe_value(value: RuntimeValue) -> str:
    """Return the type of a value at run time, for messages."""
    if value is None:
        return "absent"
    if isinstance(value, list):
        return f"sequence of {len(value)}"
    if isinstance(value, dict):
        return f"map of {len(value)}"
    return f"{value.dtype}[{', '.join(map(str, value.shape))}]"


def kernel_failed(label: str, error: Exception, inputs: Iterable[RuntimeValue]) -> KernelError:
    """Return the error of a reference kernel that failed.

    Args:
        label: The operator or node.
        error: The cause; where memory is short, the array is named with its bytes.
        inputs: The kernel's operands.
    """
    given = f"inputs: {', '.join(map(describe_value, inputs))}"
    shape, dtype = getattr(error, "shape", None), getattr(error, "dtype", None)
    if isinstance(error, MemoryError):
        array = ""
        if shape is not None and dtype is not None:
            size = math.prod(map(int, shape)) * dtype.itemsize
            array = f" for {dtype}[{', '.join(map(str, shape))}], which is {size:,} bytes"
        return OutOfMemory(f"{label} failed: there is no memory{array}; {given}")
    text = f"{type(error).__name__}: {error}"
    if "array is too big" in text:
        text = "its result has more bytes than any memory"
    if "could not be broadcast together" in text:
        text = "sizes do not broadcast: expected equal ones or 1 along each axis"
    kind = InvalidContent if isinstance(error, ValueError) else KernelError
    return kind(f"{label} failed: {text}; {given}")
