"""Methods of PyTorch that change the element type or the device."""

from __future__ import annotations

import onnx_ir as ir

from hagane.frontends.libraries.torch.operands import (
    BOOL,
    FLOAT,
    INT64,
    cast,
    need_tensor,
)
from hagane.frontends.libraries.torch.table import TORCH
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.values.values import Device, DType, Tensor, Value


def _convert(name: str, dtype: ir.DataType) -> None:
    def method(t: Core, self: Value, memory_format: Value = None) -> Tensor:
        return cast(t, self, dtype)

    TORCH.method(name)(method)


for _name, _dtype in (
    ("float", FLOAT), ("double", ir.DataType.DOUBLE), ("half", ir.DataType.FLOAT16),
    ("bfloat16", ir.DataType.BFLOAT16), ("long", INT64), ("int", ir.DataType.INT32),
    ("short", ir.DataType.INT16), ("char", ir.DataType.INT8), ("byte", ir.DataType.UINT8),
    ("bool", BOOL), ("cfloat", ir.DataType.COMPLEX64), ("cdouble", ir.DataType.COMPLEX128),
):  # fmt: skip
    _convert(_name, _dtype)


@TORCH.method("to", "type")
def to(
    t: Core, self: Value, *arguments: Value, dtype: Value = None, device: Value = None, **_: Value
) -> Tensor:
    """Return the tensor with another element type, on another device."""
    from hagane.frontends.libraries.torch.operands import device_of

    result: Tensor = self
    for argument in (*arguments, dtype, device):
        if isinstance(argument, DType):
            result = cast(t, result, argument.dtype)
        elif isinstance(argument, Tensor):
            result = t.emit.on(cast(t, result, argument.dtype), argument.device)
        elif isinstance(argument, Device | str) or (
            isinstance(argument, int) and not isinstance(argument, bool)
        ):
            result = t.emit.on(result, device_of(argument))
    return result


@TORCH.method("type_as")
def type_as(t: Core, self: Value, other: Value) -> Tensor:
    """Return the tensor with the element type of another."""
    return t.emit.on(cast(t, self, need_tensor(t, other, "other").dtype), other.device)


@TORCH.method("cuda")
def cuda(t: Core, self: Value, device: Value = None, **_: Value) -> Tensor:
    """Return the tensor on a GPU."""
    from hagane.frontends.libraries.torch.operands import device_of

    return t.emit.on(self, device_of(device, "cuda:0"))


@TORCH.method("cpu")
def cpu(t: Core, self: Value) -> Tensor:
    """Return the tensor on the CPU."""
    return t.emit.on(self, "cpu")
